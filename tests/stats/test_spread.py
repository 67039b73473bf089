"""Spread and straight lines."""

import math
import statistics

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.stats.regression import fit_line
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


class TestLine:
    """The line of least squares."""

    @given(NUMBERS, st.floats(-100, 100), st.floats(-100, 100))
    def test_points_on_a_line(self, x, slope, intercept):
        """
        Points on a line give the line, as far as they lie apart.
        """
        if max(x) - min(x) < 1:
            return
        line = fit_line(x, [intercept + slope * v for v in x])

        assert (line.slope, line.intercept) == (
            pytest.approx(slope, abs=1e-5),
            pytest.approx(intercept, abs=1e-3 * (1 + max(map(abs, x)))),
        )

    def test_agrees_with_numpy(self):
        """
        Slope, intercept and R2 are those of numpy.
        """
        rng = np.random.default_rng(6)
        x = rng.uniform(0, 10, 50)
        y = 2 * x + 1 + rng.normal(0, 3, 50)

        line = fit_line(list(x), list(y))

        slope, intercept = np.polyfit(x, y, 1)
        assert (line.slope, line.intercept) == (pytest.approx(slope), pytest.approx(intercept))
        assert line.r2 == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)
        assert line.count == 50

    def test_no_line(self):
        """
        One point, or points above each other, make no line; a flat line explains all.
        """
        assert fit_line([1.0], [1.0]) is None
        assert fit_line([1.0, 1.0], [1.0, 2.0]) is None
        assert fit_line([1.0, 2.0], [3.0, 3.0]).r2 == 1.0

    @pytest.mark.parametrize(("x", "y"), [([1.0], []), ([math.nan, 1.0], [1.0, 2.0])])
    def test_refused(self, x, y):
        """
        Rows of unequal length and values that are no numbers are errors.
        """
        with pytest.raises(ValueError):
            fit_line(x, y)
