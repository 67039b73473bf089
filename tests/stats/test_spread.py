"""Spread and straight lines."""

import math
import statistics

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.stats.spread import (
    coefficient_of_variation,
    median_absolute_deviation,
    standard_deviation,
)

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)


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
