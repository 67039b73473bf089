"""Tests of pairs of predictors, and simulations of what their verdicts are worth."""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.pairs import change_tests, fewest, holm, pair_tests
from harness.base.stats.resampling import kept_cells

MARGIN = 0.02
ERROR = 0.05


def simulate(families, models, cells, repeats, generator, *, errors, noise=0.03, inputs=()):
    """
    Test the models of many families: *errors* are those of predictions, repeats have *noise*.

    The floors are pooled over the cells, as those of scores are.
    """
    times = 1 + noise * generator.standard_normal((families, cells, repeats))
    means = times.mean(axis=-1)
    spread = np.sqrt((times.std(axis=-1, ddof=1) ** 2 / means**2).mean(axis=-1, keepdims=True))
    shares = (1 + errors) / means[:, None, :]
    return pair_tests(
        shares, np.broadcast_to(spread / np.sqrt(repeats), means.shape),
        kept_cells(inputs or [""] * cells), margin=MARGIN, freedom=repeats - 1,
    )  # fmt: skip


def share_with_nearer(tests):
    """
    Share of the families in which some pair is called nearer.
    """
    return ((tests.distinct <= ERROR) & (tests.equal > ERROR)).any(axis=-1).mean()


FAMILIES = 4000
# Standard error of the share of families in which something of 5 % happens, three times.
CHANCE = 3 * np.sqrt(0.05 * 0.95 / FAMILIES)


@pytest.mark.process
class TestEqualModels:
    """A/A: of equal models some pair is called nearer in 5 % of the families at most."""

    @pytest.mark.parametrize("cells", [2, 3, 5, 6, 10])
    @pytest.mark.parametrize(("models", "repeats"), [(2, 2), (2, 5), (9, 3)])
    def test_whose_errors_are_drawn_alike(self, cells, models, repeats):
        """
        Every model is off by 10 % at random in every cell.
        """
        generator = np.random.default_rng([cells, models, repeats])
        errors = 0.1 * generator.standard_normal((FAMILIES, models, cells))

        tests = simulate(FAMILIES, models, cells, repeats, generator, errors=errors)

        assert share_with_nearer(tests) <= ERROR + CHANCE

    @pytest.mark.parametrize("cells", [1, 2, 3, 5, 10])
    @pytest.mark.parametrize("repeats", [2, 3, 5])
    @pytest.mark.parametrize("off", [0.013, 0.03, 0.2])
    def test_that_are_off_to_both_sides(self, cells, repeats, off):
        """
        One as much too long as the other is too short: only the noise of the repeats varies.
        """
        generator = np.random.default_rng([cells, repeats])
        errors = np.asarray([off, -off])[:, None]

        tests = simulate(FAMILIES, 2, cells, repeats, generator, errors=errors)

        assert share_with_nearer(tests) <= ERROR + CHANCE

    @pytest.mark.parametrize("cells", [1, 2, 6, 10])
    @pytest.mark.parametrize("profiled", [4, 8])
    def test_whose_profile_is_noisy(self, cells, profiled):
        """
        Both have the profile's mean cost, 10 % too long and too short: which is nearer depends on
        it.  Taken as given, a third of the families at ten cells and four profiling cells err.
        """
        generator = np.random.default_rng([cells, profiled])
        costs = 1 + 0.03 * generator.standard_normal((FAMILIES, profiled))
        refitted = (costs.sum(axis=1, keepdims=True) - costs) / (profiled - 1)
        off = np.asarray([1.1, 0.9])[:, None]

        def judged(*, is_given):
            seeded = np.random.default_rng([profiled, cells])
            times = 1 + 0.03 * seeded.standard_normal((FAMILIES, cells, 3))
            means = times.mean(axis=-1)[:, None]
            floors = np.sqrt((times.var(axis=-1, ddof=1) / means[:, 0] ** 2).mean(axis=-1) / 3)
            refits = refitted.T[:, :, None, None] * off / means
            return share_with_nearer(
                pair_tests(
                    costs.mean(axis=1)[:, None, None] * off / means,
                    np.broadcast_to(floors[:, None], (FAMILIES, cells)),
                    kept_cells([""] * cells), margin=MARGIN, freedom=2,
                    refits=None if is_given else refits,
                )
            )  # fmt: skip

        assert judged(is_given=False) <= ERROR + CHANCE
        assert (cells, profiled) != (10, 4) or judged(is_given=True) > 0.3

    def test_nine_on_one_cell(self):
        """
        Of nine models, off by 20 % to either side.
        """
        generator = np.random.default_rng(9)
        errors = np.asarray([0.2, -0.2] * 4 + [0.2])[:, None]

        tests = simulate(FAMILIES, 9, 1, 3, generator, errors=errors)

        assert share_with_nearer(tests) <= ERROR + CHANCE

    @pytest.mark.parametrize("names", ["aabbcc", "aaabbbccc", "aaaabbc", "aabbccddee"])
    def test_whose_cells_share_inputs(self, names):
        """
        What a model gets wrong of an input it gets wrong in all cells of it.
        """
        generator = np.random.default_rng(len(names))
        _, of_cell = np.unique(list(names), return_inverse=True)
        shared = 0.1 * generator.standard_normal((FAMILIES, 3, of_cell.max() + 1))[..., of_cell]
        errors = 0.3 + shared + 0.03 * generator.standard_normal((FAMILIES, 3, len(names)))

        tests = simulate(FAMILIES, 3, len(names), 2, generator, errors=errors, inputs=list(names))

        assert share_with_nearer(tests) <= ERROR + CHANCE


class TestBetterModels:
    """What is true is found."""

    @pytest.mark.parametrize("errors", [(0.10, -0.15), (0.10, 0.15), (-0.02, 0.07)])
    def test_a_gain_of_five_points_over_ten_cells(self, errors):
        """
        At 3 % noise it is called nearer in four of five families at least.
        """
        generator = np.random.default_rng(5)
        of_models = np.asarray(errors)[:, None]

        tests = simulate(FAMILIES, 2, 10, 3, generator, errors=of_models)

        assert share_with_nearer(tests) >= 0.8
        assert (tests.difference.mean(axis=0) < -0.04).all()

    def test_models_half_a_point_apart_are_equal(self):
        """
        Over ten cells with three repeats, where the noise allows to say so.
        """
        generator = np.random.default_rng(6)
        errors = np.asarray([0.1, 0.105])[:, None]

        tests = simulate(FAMILIES, 2, 10, 3, generator, errors=errors)

        assert (tests.equal <= ERROR).mean() > 0.9

    def test_models_three_points_apart_are_seldom_equal(self):
        """
        Beyond the margin of two points, in 5 % of families at most.
        """
        generator = np.random.default_rng(7)
        errors = np.asarray([0.10, -0.121])[:, None]

        tests = simulate(FAMILIES, 2, 10, 3, generator, errors=errors, noise=0.01)

        assert (tests.equal <= ERROR).mean() <= ERROR + CHANCE

    @pytest.mark.parametrize("cells", [6, 10])
    def test_the_interval_of_the_difference_covers_it(self, cells):
        """
        In 93 to 97 % of families.
        """
        generator = np.random.default_rng(cells)
        errors = 0.3 + 0.05 * generator.standard_normal((FAMILIES, 2, cells))
        errors[:, 1] += 0.1

        tests = simulate(FAMILIES, 2, cells, 3, generator, errors=errors)

        truth = -0.1 * np.mean(1 + 0.03**2 / 3)
        assert 0.93 <= ((tests.low <= truth) & (truth <= tests.high)).mean() <= 0.97


class TestOneCell:
    """All that varies is the repeats."""

    def judged(self, *shares, floor=0.01, freedom=4):
        """
        Test predictions of these shares of the measured mean.
        """
        return pair_tests(
            np.asarray(shares)[:, None], np.asarray([floor]), kept_cells([""]),
            margin=MARGIN, freedom=freedom,
        )  # fmt: skip

    def test_the_middle_of_two_predictions_decides(self):
        """
        1.10 and 0.95 have their middle at 1.025: 2.5 standard errors, 6.7 % of Student's t.
        """
        tests = self.judged(1.10, 0.95)

        assert tests.distinct[0] == pytest.approx(0.0668, rel=0.01)
        assert tests.difference[0] == pytest.approx(0.05)

    def test_equal_is_what_stays_within_the_margin(self):
        """
        At 1.01 and 1.005 wherever the measured mean may lie; at 1.10 and 0.90 nothing does.
        """
        assert self.judged(1.01, 1.005).equal[0] < 1e-6
        assert self.judged(1.10, 0.901).equal[0] > ERROR

    @given(st.floats(0.5, 0.999), st.floats(1.001, 2.0))
    def test_the_margin_is_where_errors_differ_by_it(self, shorter, longer):
        """
        With hardly any noise the verdict is that of the errors themselves.
        """
        tests = self.judged(shorter, longer, floor=1e-9)

        difference = abs((1 - shorter) - (longer - 1))
        if abs(difference - MARGIN) > 1e-6:
            assert (tests.equal[0] <= ERROR) == (difference < MARGIN)

    def test_the_range_is_the_difference_itself(self):
        """
        There is no other cell.
        """
        tests = self.judged(1.10, 0.95)

        assert tests.low[0] == tests.high[0] == tests.difference[0]


class TestSeveralCells:
    """Student's t over the units."""

    def test_the_same_predictions_are_equal_and_never_distinct(self):
        """
        Whatever the noise.
        """
        shares = np.full((2, 4), 1.3)

        tests = pair_tests(shares, np.full(4, 0.2), kept_cells([""] * 4), margin=MARGIN)

        assert (tests.distinct[0], tests.equal[0]) == (1.0, 0.0)

    def test_no_variance_is_smaller_than_half_of_the_noise(self):
        """
        Differences that happen to agree: 10 points in each cell, between which 4 % of noise count
        twice.
        """
        shares = np.asarray([[1.05] * 4, [0.85] * 4])

        tests = pair_tests(shares, np.full(4, 0.04), kept_cells([""] * 4), margin=MARGIN)

        assert tests.noise[0] == pytest.approx((1.9 * 0.04) ** 2 / 4)
        assert tests.variance[0] == tests.noise[0] / 2

    def test_noise_that_both_errors_share_hardly_counts(self):
        """
        Two predictions far above the measured value: a longer one is as much nearer to both.
        """
        shares = np.asarray([[1.5] * 4, [1.4] * 4])

        tests = pair_tests(shares, np.full(4, 0.04), kept_cells([""] * 4), margin=MARGIN)

        assert tests.noise[0] == pytest.approx((0.1 * 0.04) ** 2 / 4)

    def test_below_six_cells_the_range_stands_for_the_interval(self):
        """
        Differences of 10, 20 and 30 points.
        """
        shares = np.asarray([[1.2, 1.3, 1.4], [1.1, 1.1, 1.1]])

        tests = pair_tests(shares, np.full(3, 0.01), kept_cells([""] * 3), margin=MARGIN)

        assert (tests.low[0], tests.high[0]) == pytest.approx((0.1, 0.3))

    def test_profiles_fitted_without_a_cell_widen_the_variance(self):
        """
        Two refits whose differences lie 4 points apart: a jackknife variance of 4 square points.
        """
        shares = np.asarray([[1.2] * 4, [1.1] * 4])
        refits = np.asarray([[[1.18] * 4, [1.1] * 4], [[1.22] * 4, [1.1] * 4]])

        def variance(refits):
            return pair_tests(
                shares, np.full(4, 0.01), kept_cells([""] * 4), margin=MARGIN, refits=refits
            ).variance[0]

        assert variance(refits) - variance(None) == pytest.approx(0.02**2)

    def test_a_missing_answer_takes_the_profile_as_given(self):
        """
        For its own pairs alone.
        """
        shares = np.asarray([[1.2] * 4, [1.1] * 4, [1.3] * 4])
        refits = np.stack([shares, shares + 0.02])
        refits[0, 2, 1] = np.nan

        tests = pair_tests(
            shares, np.full(4, 0.01), kept_cells([""] * 4), margin=MARGIN, refits=refits
        )

        assert np.isnan(tests.profile).tolist() == [False, True, True]
        assert np.isfinite(tests.distinct).all()


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


class TestFewest:
    """How much more would tell."""

    def test_the_first_variance_that_tells(self):
        """
        A difference of 10 points needs a standard error of 3.6 with many degrees of freedom.
        """
        scales = np.asarray([0.05, 0.04, 0.035, 0.02])
        freedoms = np.full(4, 1e6)

        assert fewest(0.1, scales**2, freedoms, margin=MARGIN, error=ERROR) == 2

    def test_no_difference_needs_to_be_proved_small(self):
        """
        2 points are 2.49 standard errors.
        """
        scales = np.asarray([0.02, 0.0079])

        assert fewest(0.0, scales**2, np.full(2, 1e6), margin=MARGIN, error=ERROR) == 1
        assert fewest(0.0, scales[:1] ** 2, np.full(1, 1e6), margin=MARGIN, error=ERROR) is None


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
