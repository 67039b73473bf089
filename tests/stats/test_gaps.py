"""Gaps: their noise in a cell, and tests of those between two estimates, with simulations."""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from harness.base.stats.gaps import (
    POWER_QUANTILE,
    change_tests,
    gap_noise,
    holm,
    shown_sizes,
)

MARGIN = 0.02
ERROR = 0.05
FAMILIES = 2000
# Standard error of the share of families in which something of 5 % happens, three times.
CHANCE = 3 * np.sqrt(0.05 * 0.95 / FAMILIES)
SHARES = st.floats(0.2, 4)


def noise_of(lower, upper, floor):
    """
    Noise of one gap.
    """
    return float(gap_noise(np.asarray([lower]), np.asarray([upper]), np.asarray([floor]))[0])


class TestGapNoise:
    """What noise of the measured mean makes of the difference of two errors."""

    def test_counts_twice_between_two_predictions(self):
        """
        A longer time is nearer to the upper and farther from the lower: 10 points apart on both
        sides of it, 4 % of noise are 4 % of both.
        """
        assert noise_of(0.85, 1.05, 0.04) == pytest.approx(1.9 * 0.04)

    def test_that_both_errors_share_hardly_counts(self):
        """
        Two predictions far above the measured value: a longer one is as much nearer to both.
        """
        assert noise_of(1.4, 1.5, 0.04) == pytest.approx(0.1 * 0.04)
        assert noise_of(0.4, 0.5, 0.04) == pytest.approx(0.1 * 0.04)

    def test_never_exceeds_what_lies_between_the_predictions(self):
        """
        Two that are nearly the same are never far apart, however noisy.
        """
        assert noise_of(0.99, 1.01, 0.3) == pytest.approx(0.02)
        assert noise_of(1.4, 1.5, 3.0) == pytest.approx(0.1)
        assert noise_of(8.0, 9.0, 1.5) == pytest.approx(1.0)

    def test_two_floors_away_is_still_between(self):
        """
        1.07 is less than two floors of 4 % above the measured mean, 1.09 is more; as below it.
        """
        assert noise_of(1.07, 1.27, 0.04) == pytest.approx(2.34 * 0.04)
        assert noise_of(1.09, 1.29, 0.04) == pytest.approx(0.2 * 0.04)
        assert noise_of(0.73, 0.93, 0.04) == pytest.approx(1.66 * 0.04)
        assert noise_of(0.71, 0.91, 0.04) == pytest.approx(0.2 * 0.04)
        # Just two floors away is beyond them: 1.5 and 0.5 by 25 %, which binary floats hold.
        assert noise_of(1.5, 2.5, 0.25) == pytest.approx(0.25)
        assert noise_of(0.25, 0.5, 0.25) == pytest.approx(0.0625)

    @given(SHARES, SHARES, st.floats(0, 0.5), st.floats(0, 0.5))
    def test_grows_with_the_floor_and_with_no_floor_is_none(self, share, other, floor, more):
        """
        And is never below 0.
        """
        lower, upper = sorted((share, other))

        assert noise_of(lower, upper, 0.0) == 0
        assert 0 <= noise_of(lower, upper, floor) <= noise_of(lower, upper, floor + more) + 1e-12

    def test_is_the_spread_of_gaps_where_the_mean_is_drawn(self):
        """
        Simulated far inside and far outside of two predictions.
        """
        means = 1 + 0.02 * np.random.default_rng(2).standard_normal(20_000)
        for lower, upper in ((0.7, 1.4), (1.5, 1.9)):
            gaps = np.abs(upper / means - 1) - np.abs(lower / means - 1)
            assert noise_of(lower, upper, 0.02) == pytest.approx(gaps.std(), rel=0.05)


class TestHolm:
    """Correction for many pairs."""

    def test_known_values(self):
        """
        The smallest counts as often as there are pairs, and none falls below a smaller one.
        """
        assert holm(np.asarray([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
    def test_keeps_the_order_and_makes_nothing_smaller(self, values):
        """
        A correction takes, it never gives.
        """
        corrected = holm(np.asarray(values))

        assert (corrected >= values).all()
        assert (np.diff(corrected[np.argsort(values)]) >= 0).all()


class TestShownSizes:
    """How large a gap would be shown."""

    def test_known_value_with_many_repeats(self):
        """
        1.960 and 0.842 standard errors, as of the normal distribution.
        """
        sizes = shown_sizes(np.full((2, 1), 0.02), np.full((2, 1), 1e5), error=0.05)

        assert sizes == pytest.approx([2.8016 * 0.2], rel=1e-3)
        assert pytest.approx(stdtrit(1e9, 0.8), abs=1e-4) == POWER_QUANTILE

    def test_few_repeats_and_a_smaller_error_show_less(self):
        """
        It takes larger gaps.
        """
        variances = np.full((2, 3), 0.02)
        freedoms = np.asarray([[2.0, 4.0, 100.0]] * 2)

        sizes = shown_sizes(variances, freedoms, error=0.05)
        assert (np.diff(sizes) < 0).all()
        assert (shown_sizes(variances, freedoms, error=0.01) > sizes).all()

    @pytest.mark.parametrize(("first", "second", "repeats"), [(0.04, 0.04, 5), (0.02, 0.06, 8)])
    def test_such_gaps_are_shown_in_four_cases_of_five(self, first, second, repeats):
        """
        Simulated with the spreads that each run shows.
        """
        variances = np.asarray([[first**2], [second**2]]) / repeats
        freedoms = np.full((2, 1), repeats - 1.0)
        size = shown_sizes(variances, freedoms, error=ERROR)[0]
        generator = np.random.default_rng(repeats)
        logs = [noise * generator.standard_normal((4000, 1, repeats)) for noise in (first, second)]
        known = np.asarray([times.var(axis=-1, ddof=1) / repeats for times in logs])
        gaps = size + logs[1].mean(axis=-1) - logs[0].mean(axis=-1)

        _, _, distinct, _ = change_tests(
            gaps, known, np.full((2, 1, 1), repeats - 1.0), margin=MARGIN
        )
        assert 0.75 <= (distinct <= ERROR).mean() <= 0.83


class TestChangesByHand:
    """Numbers of Welch's test that a table gives."""

    def test_known_values(self):
        """
        A gap of 10 points, variances of 4 and 12 square points, ten degrees of freedom each:
        4 points of standard error, 16 degrees of freedom by Welch, t = 2.5: 2.37 %; 2.120 standard
        errors to both sides.
        """
        low, high, distinct, equal = change_tests(
            np.asarray([0.10]), np.asarray([[4e-4], [12e-4]]), np.full((2, 1), 10.0), margin=MARGIN
        )

        assert (low[0], high[0]) == pytest.approx((0.0152, 0.1848), abs=1e-4)
        assert distinct[0] == pytest.approx(0.02367, abs=1e-4)
        assert equal[0] == pytest.approx(0.9686, abs=1e-3)

    def test_one_family_is_corrected_as_holm_does(self):
        """
        Two gaps of one family, of which one is much clearer.
        """
        variances, freedoms = np.full((2, 2), 2e-4), np.full((2, 2), 20.0)
        _, _, distinct, _ = change_tests(np.asarray([0.1, 0.045]), variances, freedoms, margin=0.02)
        alone = change_tests(np.asarray([0.045]), variances[:, :1], freedoms[:, :1], margin=0.02)[2]
        first = change_tests(np.asarray([0.1]), variances[:, :1], freedoms[:, :1], margin=0.02)[2]

        assert distinct.tolist() == pytest.approx([2 * first[0], alone[0]])

    @given(st.floats(-1, 1), st.floats(1e-4, 0.1), st.floats(1e-4, 0.1), st.integers(1, 40))
    def test_direction_does_not_matter(self, gap, variance, other, freedom):
        """
        What got longer is as certain as what got shorter.
        """
        variances, freedoms = np.asarray([[variance], [other]]), np.full((2, 1), float(freedom))
        low, high, distinct, equal = change_tests(
            np.asarray([gap]), variances, freedoms, margin=MARGIN
        )
        mirrored = change_tests(np.asarray([-gap]), variances[::-1], freedoms, margin=MARGIN)

        assert mirrored[0] == pytest.approx(-high)
        assert mirrored[1] == pytest.approx(-low)
        assert mirrored[2:] == pytest.approx(np.asarray((distinct, equal)))
        assert low[0] < gap < high[0]
        assert (distinct[0] <= 0.05) == (low[0] >= 0 or high[0] <= 0)


class TestChanges:
    """Two runs that measured the same cells: logarithms of their times, by Welch's test."""

    @staticmethod
    def simulate(generator, cells, repeats, *, change=0.0, noises=(0.04, 0.04)):
        """
        Tests of the cells of many pairs of runs; each run has one spread for all of its cells.
        """
        means, variances = [], []
        for place, noise in enumerate(noises):
            shape = (FAMILIES, cells, repeats)
            logs = place * change + noise * generator.standard_normal(shape)
            means.append(logs.mean(axis=-1))
            pooled = logs.var(axis=-1, ddof=1).mean(axis=-1, keepdims=True) / repeats
            variances.append(np.broadcast_to(pooled, means[-1].shape))
        freedoms = np.full((2, 1, 1), cells * (repeats - 1))
        return change_tests(means[1] - means[0], np.asarray(variances), freedoms, margin=MARGIN)

    @pytest.mark.parametrize("noises", [(0.04, 0.04), (0.02, 0.08)])
    @pytest.mark.parametrize(("cells", "repeats"), [(1, 3), (2, 2), (8, 2), (20, 5)])
    def test_equal_runs_are_seldom_told_apart(self, noises, cells, repeats):
        """
        A/A: in 5 % of the pairs of runs at most, any cell is called changed.
        """
        generator = np.random.default_rng([cells, repeats])
        _, _, distinct, equal = self.simulate(generator, cells, repeats, noises=noises)

        alarms = ((distinct <= ERROR) & (equal > ERROR)).any(axis=-1).mean()
        assert alarms <= ERROR + CHANCE

    def test_intervals_hold_what_changed(self):
        """
        95 % of them, and a change of the margin is called equal in 5 % of the runs at most.
        """
        low, high, _, equal = self.simulate(np.random.default_rng(1), 8, 3, change=MARGIN)

        assert abs(((low <= MARGIN) & (high >= MARGIN)).mean() - 0.95) <= CHANCE
        assert (equal <= ERROR).any(axis=-1).mean() <= ERROR + CHANCE

    def test_what_never_varies_is_certain(self):
        """
        And what is not known stays so.
        """
        gaps = np.asarray([0.0, 0.1, 0.1])
        variances = np.asarray([[0, 0, np.nan], [0, 0, 1.0]])

        low, high, distinct, equal = change_tests(gaps, variances, np.ones((2, 3)), margin=MARGIN)

        assert np.isnan([low[2], high[2], distinct[2], equal[2]]).all()
        assert np.allclose([distinct[:2], equal[:2]], [[1, 0], [0, 1]])
        assert np.allclose(low[:2], high[:2])
