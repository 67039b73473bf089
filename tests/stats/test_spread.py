"""Spread, and bootstrap intervals."""

import math
import statistics

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.stats.spread import (
    coefficient_of_variation,
    mean_interval,
    median_absolute_deviation,
    paired_difference,
    standard_deviation,
)

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


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


class TestMeanInterval:
    """The interval of one mean."""

    @given(VALUES, st.integers(0, 99))
    def test_holds_the_mean_and_repeats_itself(self, values, seed):
        """
        The interval holds the sample mean, and the same seed gives the same interval.
        """
        low, high = mean_interval(values, seed=seed)

        assert low <= np.mean(values) <= high
        assert (low, high) == mean_interval(values, seed=seed)

    def test_is_as_wide_as_theory_says(self):
        """
        For many normal values the interval is the mean +- 1.96 standard errors.
        """
        values = np.random.default_rng(3).normal(10, 2, size=400)

        low, high = mean_interval(list(values), seed=1)

        assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(400), rel=0.1)

    def test_blocks_do_not_matter(self, monkeypatch):
        """
        Resampling in small blocks gives as many means as in one.
        """
        monkeypatch.setattr("harness.stats.spread._BLOCK", 7)

        assert mean_interval([1.0, 3.0], seed=10)[1] == 3.0

    @pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
    def test_refuses_what_has_no_interval(self, values):
        """
        No values and what is not finite are errors, never an interval.
        """
        with pytest.raises(ValueError, match="needs at least one value"):
            mean_interval(values, seed=1)


class TestPairedDifference:
    """The interval of a mean difference."""

    def test_what_pairs_share_cancels(self):
        """
        A constant difference has no spread, however far the pairs lie apart.
        """
        first = [1.0, 50.0, 900.0]

        result = paired_difference([v + 2 for v in first], first, seed=1)

        assert result == (2.0, 2.0, 2.0)

    def test_pairs_need_partners(self):
        """
        Rows of unequal length are refused.
        """
        with pytest.raises(ValueError, match="do not make pairs"):
            paired_difference([1.0], [1.0, 2.0], seed=1)
