"""Spread, and noise floors."""

import math
import statistics

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.spread import (
    coefficient_of_variation,
    mean_floors,
    median_absolute_deviation,
    split_by_start,
    spread_interval,
    standard_deviation,
)


class TestSpread:
    """Coefficient of variation and its kin."""

    def test_coefficient_of_variation(self):
        """
        Standard deviation over mean; of one value, and of a mean of 0, there is none.
        """
        assert coefficient_of_variation([9.0, 11.0]) == pytest.approx(math.sqrt(2) / 10)
        assert coefficient_of_variation([9.0]) is None
        assert coefficient_of_variation([-1.0, 1.0]) is None

    @given(st.lists(st.floats(1, 1e6), min_size=2, max_size=20), st.floats(1e-3, 1e3))
    def test_units_cancel(self, values, unit):
        """
        The coefficient of variation is the same in any unit.
        """
        assert coefficient_of_variation([v * unit for v in values]) == pytest.approx(
            coefficient_of_variation(values), rel=1e-6, abs=1e-9
        )

    def test_standard_deviation_of_one_value(self):
        """
        One value shows no spread.
        """
        assert standard_deviation([3.0]) == 0.0
        assert standard_deviation([1.0, 3.0]) == statistics.stdev([1.0, 3.0])

    def test_median_absolute_deviation(self):
        """
        For normal values it is their standard deviation, and an outlier does not move it.
        """
        values = list(np.random.default_rng(4).normal(7, 3, size=20_000))

        assert median_absolute_deviation(values) == pytest.approx(3, rel=0.03)
        assert median_absolute_deviation([1.0, 2.0, 3.0, 1e9]) < 3


class TestFloors:
    """Noise of the means of cells."""

    def test_cells_with_few_repeats_share_their_spread(self):
        """
        Spreads of 10 and 20 % of two and three repeats: the squares count once and twice, and the
        mean of more repeats is better known.
        """
        two, three = [95.0, 105.0], [80.0, 100.0, 120.0]
        shared = math.sqrt((0.005 + 2 * 0.04) / 3)

        floors = mean_floors([two, three, [7.0]])

        assert floors == pytest.approx([shared / math.sqrt(2), shared / math.sqrt(3), shared])

    def test_six_repeats_speak_for_themselves(self):
        """
        A cell with enough repeats keeps its own spread.
        """
        six = [99.0, 101.0] * 3

        own, _ = mean_floors([six, [50.0, 150.0]])

        assert own == pytest.approx(coefficient_of_variation(six) / math.sqrt(6))

    def test_cells_measured_once_have_the_spread_of_others(self):
        """
        Others with repeats, where there are some; what cells show themselves goes first.
        """
        others = [[95.0, 105.0], [7.0]]

        assert mean_floors([[1.0], [2.0]], others) == pytest.approx([0.005**0.5] * 2)
        assert mean_floors([[80.0, 120.0]], others) == mean_floors([[80.0, 120.0]])
        assert mean_floors([[1.0]], [[7.0]]) == [None]

    def test_nothing_repeated_has_no_floor(self):
        """
        Nothing is known of single values.
        """
        assert mean_floors([[1.0], [2.0]]) == [None, None]
        assert mean_floors([]) == []

    def test_is_split_by_the_starts_of_the_cluster(self):
        """
        400 cells on three starts that vary by 4 %, with three repeats that vary by 2 %.
        """
        generator = np.random.default_rng(7)
        starts = 1 + 0.04 * generator.standard_normal((400, 3, 1))
        values = starts + 0.02 * generator.standard_normal((400, 3, 3))

        repeat, start = split_by_start((60 * values).tolist())

        assert (repeat, start) == pytest.approx((0.02, 0.04), rel=0.1)

    def test_starts_that_vary_no_more_than_repeats_add_nothing(self):
        """
        A variance is never below 0.
        """
        repeat, start = split_by_start([[[9.0, 11.0], [11.0, 9.0]]])

        assert (repeat, start) == (pytest.approx(math.sqrt(2) / 10), 0.0)

    def test_cannot_be_split_without_two_starts_of_two_repeats(self):
        """
        One repeat of a start says nothing of repeats, one start nothing of starts.
        """
        assert split_by_start([[[9.0, 11.0], [10.0]], [[8.0, 9.0, 10.0]], []]) is None

    def test_the_interval_of_a_spread_is_that_of_chi_square(self):
        """
        Of 10 degrees of freedom, 95 % lie between 3.247 and 20.483.
        """
        low, high = spread_interval(2.0, 10)

        assert (low, high) == pytest.approx(
            (2 * math.sqrt(10 / 20.483), 2 * math.sqrt(10 / 3.247)), rel=1e-3
        )
