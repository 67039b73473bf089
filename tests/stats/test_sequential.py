"""Looks at growing data: where more is measured, and simulations of what the verdicts are worth."""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.flips import flip_tests
from harness.base.stats.gaps import gap_noise
from harness.base.stats.sequential import (
    LOOK_ERROR,
    LOOKS,
    may_tell,
    most_useful,
    shrunk_spreads,
)

CELLS, MOST = 10, 60
UNITS = [f"c{place}" for place in range(CELLS)]
MARGIN = 0.02


class TestMostUseful:
    """Where one more repeat goes."""

    def test_noisy_cells_come_first_and_more_than_once(self):
        """
        Noise of 4 and 1: one repeat more takes 16 / 6 and then 16 / 12 of the variance of the
        first, 1 / 6 of that of the second.
        """
        assert most_useful(np.asarray([1.0, 4.0]), np.asarray([2, 2]), 3) == [1, 1, 1]

    def test_noise_counts_by_its_square(self):
        """
        Noise of 1 and 3: a third repeat takes 1 / 6 of the variance of the first, a fifth 9 / 20 of
        that of the second, and an eighth 9 / 56.
        """
        assert most_useful(np.asarray([1.0, 3.0]), np.asarray([2, 4]), 4) == [1, 1, 1, 0]

    @given(st.integers(1, 5), st.integers(1, 20))
    def test_equal_cells_get_equally_many(self, cells, number):
        """
        None has two more than another.
        """
        chosen = most_useful(np.full(cells, 0.03), np.full(cells, 2), number)

        counts = np.bincount(chosen, minlength=cells)
        assert counts.sum() == number
        assert counts.max() - counts.min() <= 1


class TestShrunkSpreads:
    """What is known of each cell's noise."""

    def test_few_repeats_are_drawn_to_all(self):
        """
        Two repeats each: two of three parts are the mean variance.
        """
        spreads = shrunk_spreads(np.asarray([0.0, 0.06]), np.asarray([2, 2]))

        assert spreads**2 == pytest.approx([2 / 3 * 0.0018, 2 / 3 * 0.0018 + 0.0012])

    def test_one_repeated_cell_speaks_for_all(self):
        """
        The other has no spread of its own.
        """
        spreads = shrunk_spreads(np.asarray([0.06, 0.0]), np.asarray([2, 1]))

        assert spreads == pytest.approx([0.06, 0.06])

    def test_single_repeats_know_nothing(self):
        """
        And are no error.
        """
        assert shrunk_spreads(np.zeros(2), np.ones(2)).tolist() == [0, 0]


class TestMayTell:
    """Whether repeats are of use."""

    def test_noise_goes_away(self):
        """
        All that cells differ by is noise: enough repeats tell a gap of any size.
        """
        gaps = np.asarray([0.02, 0.10] * 4)

        assert may_tell(gaps, np.full(8, 0.06), np.full(8, 2), margin=MARGIN)

    def test_what_cells_differ_by_stays(self):
        """
        Without noise a look at eight needs a mean of t(7, 0.988) / sqrt(8) of their spread, which
        is 1.01 of it: this one has 0.96.
        """
        gaps = np.asarray([-0.01, 0.11] * 4) + 0.0115

        assert gaps.mean() / gaps.std(ddof=1) == pytest.approx(0.96, abs=0.01)
        assert not may_tell(gaps, np.full(8, 1e-4), np.full(8, 2), margin=MARGIN)
        assert may_tell(gaps + 0.01, np.full(8, 1e-4), np.full(8, 2), margin=MARGIN)

    def test_six_cells_are_never_told_at_the_level_of_a_look(self):
        """
        Six are flipped in 64 ways, of which one is 1.6 %; seven in 128.
        """
        gaps = np.full(7, 0.1)

        assert may_tell(gaps, np.full(7, 0.01), np.full(7, 2), margin=MARGIN)
        assert not may_tell(gaps[:6], np.full(6, 0.01), np.full(6, 2), margin=MARGIN)

    def test_equal_models_may_be_told(self):
        """
        Their mean lies within the margin, by more than the cells leave open.
        """
        gaps = np.asarray([0.001, -0.001] * 3)

        assert may_tell(gaps, np.full(6, 0.01), np.full(6, 2), margin=MARGIN)

    def test_one_cell_tells_nothing(self):
        """
        However often it is repeated.
        """
        assert not may_tell(np.asarray([0.1]), np.ones(1), np.ones(1), margin=MARGIN)


def verdict(times, repeats, errors, level):
    """
    The verdict on two models after so many *repeats* of each cell, and the noise of one repeat.
    """
    known = [cell[:number] for cell, number in zip(times, repeats, strict=True)]
    means = np.asarray([cell.mean() for cell in known])
    spreads = np.asarray([cell.std(ddof=1) for cell in known]) / means
    shares = (1 + errors) / means
    gaps = np.abs(shares[0] - 1) - np.abs(shares[1] - 1)
    tests = flip_tests(gaps[None], UNITS, side="either", error=level)
    noise = gap_noise(shares.min(axis=0), shares.max(axis=0), shrunk_spreads(spreads, repeats))
    if tests.low[0] > -MARGIN and tests.high[0] < MARGIN:
        return "equal", noise
    return ("nearer" if tests.chance[0] <= level else "undecided"), noise


def sequential(errors, noise, generator):
    """
    Measure until decided: the verdict and the number of trials.
    """
    times = 1 + noise[:, None] * generator.standard_normal((CELLS, MOST))
    repeats = np.full(CELLS, 2)
    for look in range(LOOKS):
        decided, gap = verdict(times, repeats, errors, LOOK_ERROR)
        if decided != "undecided" or look == LOOKS - 1:
            break
        repeats = repeats + np.bincount(most_useful(gap, repeats, CELLS), minlength=CELLS)
    return decided, repeats.sum()


def of_models(*errors):
    """
    Errors of two models, the same in all cells.
    """
    return np.asarray(errors)[:, None]


MIXED = np.geomspace(0.01, 0.09, CELLS)  # noise of cells: small jobs on a shared machine and large


@pytest.mark.process
class TestUntilDecided:
    """Simulated: what looking again and again is worth."""

    @pytest.mark.parametrize("noise", [np.full(CELLS, 0.03), MIXED], ids=["same", "mixed"])
    def test_equal_models_stay_equal(self, noise):
        """
        However often one looks, one is called nearer in 5 % of runs at most.
        """
        generator = np.random.default_rng(11)
        runs = [sequential(of_models(0.1, -0.1), noise, generator)[0] for _ in range(400)]

        assert runs.count("nearer") / 400 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)

    def test_takes_six_of_ten_trials_of_a_fixed_plan_of_equal_power(self):
        """
        A gain of 5 points: a fixed plan finds it no more often, although the trials until decided
        are 0.6 of its own.
        """
        generator, errors = np.random.default_rng(12), of_models(0.1, -0.15)
        runs = [sequential(errors, MIXED, generator) for _ in range(300)]
        repeats = int(np.mean([trials for _, trials in runs]) / 0.6 / CELLS)
        fixed = [
            verdict(
                1 + MIXED[:, None] * generator.standard_normal((CELLS, MOST)),
                np.full(CELLS, repeats), errors, 0.05,
            )[0]
            for _ in range(300)
        ]  # fmt: skip

        power = sum(decided == "nearer" for decided, _ in runs) / 300
        assert power >= max(0.95, fixed.count("nearer") / 300)
