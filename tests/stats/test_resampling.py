"""Leaving one unit out: variances, and intervals that keep their word."""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from harness.base.stats.resampling import (
    drawn_interval,
    jackknife_interval,
    jackknife_variance,
    kept_cells,
    mean_interval,
    prediction_interval,
)

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


class TestUnits:
    """What is left out at a time."""

    def test_cells_of_one_input_are_left_out_together(self):
        """
        Three inputs are units; a cell whose input is not known stands for itself.
        """
        rows = kept_cells(["a", "a", "b", ""])

        left_out = {tuple(np.flatnonzero(~row)) for row in rows}
        assert left_out == {(0, 1), (2,), (3,)}

    def test_two_inputs_say_nothing_of_a_third(self):
        """
        Then each cell is a unit.
        """
        rows = kept_cells(["a", "a", "b", "b"])

        assert rows.tolist() == (~np.eye(4, dtype=bool)).tolist()

    def test_three_known_inputs_are_enough(self):
        """
        And are left out one after the other, in the order of their names.
        """
        rows = kept_cells(["c", "a", "b", "a"])

        assert [np.flatnonzero(~row).tolist() for row in rows] == [[1, 3], [2], [0]]

    @given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=12))
    def test_single_cells_give_the_variance_of_a_mean(self, values):
        """
        Sample variance over number.
        """
        kept = kept_cells([""] * len(values))
        replicates = kept @ np.asarray(values) / kept.sum(axis=1)

        expected = np.var(values, ddof=1) / len(values)
        assert jackknife_variance(replicates) == pytest.approx(expected, rel=1e-6, abs=1e-9)

    def test_inputs_of_one_size_give_the_variance_of_their_means(self):
        """
        What cells of one input share counts once.
        """
        kept = kept_cells(["a", "a", "b", "b", "c", "c"])
        replicates = kept @ np.asarray([1.0, 2.0, 5.0, 6.0, 9.0, 10.0]) / kept.sum(axis=1)

        expected = np.var([1.5, 5.5, 9.5], ddof=1) / 3
        assert jackknife_variance(replicates) == pytest.approx(expected)

    def test_equal_values_have_no_variance(self):
        """
        Not even that of rounding; each row of several is judged by itself.
        """
        replicates = np.asarray([[0.1 + 0.2] * 7, [1.0, 2, 3, 4, 5, 6, 7]])

        variances = jackknife_variance(replicates)
        assert variances[0] == 0
        assert variances[1] == pytest.approx(6 * 4)


class TestDrawnInterval:
    """Quantiles of draws."""

    def test_known_values(self):
        """
        Of 0, 1, ... 100 in logarithms 80 % lie between 10 and 90.
        """
        low, high = drawn_interval(np.arange(101.0) / 100, 0.8)

        assert (low, high) == pytest.approx((math.exp(0.1), math.exp(0.9)))

    @pytest.mark.parametrize("odd", [math.inf, math.nan])
    def test_a_draw_without_an_answer_bounds_nothing(self, odd):
        """
        One is enough.
        """
        assert drawn_interval(np.asarray([0.0, odd, 0.1]), 0.8) is None


class TestMeanInterval:
    """The interval of one mean."""

    @given(VALUES)
    def test_contains_the_mean(self, values):
        """
        Of any values, in whatever order.
        """
        low, high = mean_interval(values)

        assert low - 1e-6 <= np.mean(values) <= high + 1e-6

    def test_below_six_cells_it_is_the_range(self):
        """
        Five cells have no interval, six have.
        """
        assert mean_interval([3.0, 1.0, 2.0, 9.0, 2.0]) == (1.0, 9.0)
        assert mean_interval([3.0, 1.0, 2.0, 9.0, 2.0, 2.0])[1] > 9.0
        assert mean_interval([4.0]) == (4.0, 4.0)

    def test_is_students_where_values_are_not_skew(self):
        """
        Six values about 0: 2.571 standard errors.
        """
        values = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]

        half = 2.5706 * np.std(values, ddof=1) / math.sqrt(6)
        assert mean_interval(values) == pytest.approx((-half, half), rel=1e-4)

    def test_skew_counts_as_hall_says(self):
        """
        Both ends are as far as Student's t once they are transformed (Hall, 1992).
        """
        values = np.asarray([0.0, 0.0, 0.1, 0.1, 0.2, 1.0])
        gaps = values - values.mean()
        bend = (gaps**3).mean() / values.std() ** 3 / math.sqrt(6)

        distances = [
            (values.mean() - end) / (values.std(ddof=1) / math.sqrt(6))
            for end in mean_interval([*values])
        ]
        transformed = [t + bend / 3 * t**2 + bend**2 / 27 * t**3 + bend / 6 for t in distances]
        assert transformed == pytest.approx([2.570582, -2.570582])

    def test_a_constant_series_has_an_interval_of_no_width(self):
        """
        Not an error, and not a number from nothing.
        """
        assert mean_interval([2.0] * 8) == (2.0, 2.0)


def covered(draws, truth, inputs=()):
    """
    Share of the intervals of the rows of *draws* that contain the *truth*.
    """
    ends = [mean_interval(row, inputs) for row in draws]
    return np.mean([low <= truth <= high for low, high in ends])


@pytest.mark.process
class TestCoverage:
    """Simulated: an interval at 95 % contains the truth in 93 to 97 % of runs."""

    @pytest.mark.parametrize("cells", [6, 10, 20])
    @pytest.mark.parametrize("bias", [0.0, 0.1, 0.3])
    def test_of_mean_errors(self, cells, bias):
        """
        Errors of predictions that are off by 10 % at random, around none, some and much bias.
        """
        generator = np.random.default_rng(cells)
        errors = np.abs(bias + 0.1 * generator.standard_normal((4000, cells)))
        truth = np.abs(bias + 0.1 * np.random.default_rng(0).standard_normal(1_000_000)).mean()

        assert 0.93 <= covered(errors, truth) <= 0.97

    def test_of_cells_that_share_inputs(self):
        """
        Twelve cells of six inputs that move together.
        """
        generator = np.random.default_rng(5)
        shared = np.repeat(0.05 * generator.standard_normal((4000, 6)), 2, axis=1)
        errors = 0.3 + shared + 0.05 * generator.standard_normal((4000, 12))

        assert 0.93 <= covered(errors, 0.3, [f"input {i // 2}" for i in range(12)]) <= 0.97


def test_the_jackknife_of_a_mean_is_students():
    """
    Replicates of 1, 2 and 3 with one left out: 2 +- 4.303 / sqrt(3).
    """
    half = 4.3027 / math.sqrt(3)

    assert jackknife_interval(2.0, np.asarray([2.5, 2.0, 1.5])) == pytest.approx(
        (2 - half, 2 + half), rel=1e-4
    )


def test_the_jackknife_of_equal_values_has_no_width():
    """
    Nothing moved.
    """
    assert jackknife_interval(2.0, np.full(5, 2.0)) == (2.0, 2.0)


def test_few_units_that_make_most_of_the_variance_are_few_degrees_of_freedom():
    """
    One of eight alone moves the number: its t has one degree of freedom, not seven, for which the
    quantiles are 12.71 and 2.36.
    """
    alone = np.asarray([1.0] + [0.0] * 7)
    alike = np.asarray([1.0, -1.0] * 4)
    halves = [
        (high - low) / 2 / math.sqrt(jackknife_variance(replicates))
        for replicates in (alone, alike)
        for low, high in [jackknife_interval(0.0, replicates)]
    ]

    # 3 squares^2 / fourth powers: of 0.875 and seven of 0.125 just 3.9, of eight alike 24.
    weight = 3 * (0.875**2 + 7 * 0.125**2) ** 2 / (0.875**4 + 7 * 0.125**4)
    assert halves == pytest.approx([stdtrit(weight - 1, 0.975), stdtrit(7, 0.975)])


def test_a_long_tail_moves_the_interval():
    """
    To its side: the upper end lies farther off than the lower.
    """
    low, high = mean_interval([0.0, 0.0, 0.1, 0.1, 0.2, 1.0])

    assert high - 1.4 / 6 > 2 * (1.4 / 6 - low)


def jackknife_plus(cells, level, generator, runs=500):
    """
    Share of new times in their interval, and how many intervals there are.

    Times are 2 s + 1 s a block, with 8 % of noise; the model is a line between logarithms, which is
    not true.
    """
    blocks = np.exp(generator.uniform(0, 2.3, (runs, cells + 1)))
    times = np.log(2 + blocks) + 0.08 * generator.standard_normal((runs, cells + 1))
    x, y = np.log(blocks), times
    covered = []
    for row in range(runs):
        kept = ~np.eye(cells, dtype=bool)
        weights = kept / (cells - 1)
        mean_x, mean_y = weights @ x[row, :cells], weights @ y[row, :cells]
        slopes = weights @ (x[row, :cells] * y[row, :cells]) - mean_x * mean_y
        slopes /= weights @ x[row, :cells] ** 2 - mean_x**2
        fits = mean_y + slopes * (x[row, -1] - mean_x)
        own = mean_y + slopes * (x[row, :cells] - mean_x)
        ends = prediction_interval(fits, y[row, :cells] - own, level)
        if ends is not None:
            covered.append(ends[0] <= math.exp(y[row, -1]) <= ends[1])
    return np.mean(covered) if covered else None, len(covered)


class TestPredictionInterval:
    """Jackknife+ between logarithms."""

    @pytest.mark.parametrize(("cells", "level"), [(4, 0.8), (9, 0.8), (9, 0.9), (14, 0.9)])
    def test_covers_at_least_its_level(self, cells, level):
        """
        Simulated with a model that is wrong; three standard errors are chance.
        """
        share, count = jackknife_plus(cells, level, np.random.default_rng(cells))

        assert count == 500
        assert share >= level - 3 * math.sqrt(level * (1 - level) / count)

    @pytest.mark.parametrize(("cells", "level"), [(3, 0.8), (8, 0.9)])
    def test_too_few_cells_bound_nothing(self, cells, level):
        """
        80 % take four, 90 % nine.
        """
        assert jackknife_plus(cells, level, np.random.default_rng(1), 3) == (None, 0)

    def test_known_values(self):
        """
        Of four the ends are the farthest: 10 s less the factor 2, 11 s and the factor 1.5.
        """
        fits, misses = np.log([10.0, 10, 11, 10]), np.log([0.5, 1.1, 1.5, 1.2])

        assert prediction_interval(fits, misses, 0.8) == pytest.approx((5.0, 20.0))
        assert prediction_interval(fits, np.log([1.2, 1.1, 1.5, 1.2]), 0.8) == pytest.approx(
            (11 / 1.5, 16.5)
        )

    def test_a_fit_without_an_answer_bounds_nothing(self):
        """
        It takes the place of the farthest: with nine cells one may lack it at 80 %, not at 90 %.
        """
        fits, misses = np.log([10.0] * 9), np.log([1.1] * 8 + [1.5])
        unknown = np.where(np.arange(9) == 0, np.nan, misses)

        assert prediction_interval(fits, unknown, 0.8) == pytest.approx((10 / 1.5, 15.0))
        assert prediction_interval(fits, unknown, 0.9) is None
        assert prediction_interval(fits, misses, 0.9) == pytest.approx((10 / 1.5, 15.0))
