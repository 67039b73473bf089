"""
Tests for `harness.scoring.accuracy`.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.scoring import (
    METRICS,
    calibration,
    i_accu,
    mape,
    relative_error,
    signed_error,
    variation,
)

times = st.floats(0.1, 1e5)
rows = st.lists(st.tuples(times, times), min_size=1, max_size=12)


class TestErrors:
    @given(times)
    def test_perfect_prediction_scores_zero(self, time):
        """
        No distance, no sign.
        """
        assert relative_error(time, time) == signed_error(time, time) == 0

    @given(times, times, st.floats(0.01, 100))
    def test_units_cancel(self, predicted, measured, c):
        """
        Minutes have the errors of seconds.
        """
        assert signed_error(c * predicted, c * measured) == pytest.approx(
            signed_error(predicted, measured), abs=1e-9
        )

    @given(times, times, times)
    def test_indicator_is_the_difference_of_the_errors(self, actual, model, whatif):
        """
        Eq. (6): above 0 is better than What-If, and the two parts stand beside it.
        """
        got = i_accu(actual, model, whatif)
        parts = got["whatif_error_percent"] - got["prophet_error_percent"]

        assert got["i_accu_percent"] == pytest.approx(parts, abs=1e-6)
        assert i_accu(actual, whatif, whatif)["i_accu_percent"] == 0

    @given(rows, st.randoms())
    def test_mape_does_not_depend_on_the_order(self, pairs, random):
        """
        The same cells in any order have the same mean.
        """
        shuffled = random.sample(pairs, len(pairs))

        assert mape(*zip(*pairs, strict=True)) == mape(*zip(*shuffled, strict=True))

    @pytest.mark.parametrize("actual", [0, -1, math.nan, math.inf, "3", True])
    def test_time_that_is_none_is_refused(self, actual):
        """
        Nothing can be a share of it.
        """
        with pytest.raises(ValueError, match="not"):
            i_accu(actual, 1.0, 1.0)

    def test_mean_of_nothing_is_refused(self):
        """
        No cells have no MAPE.
        """
        with pytest.raises(ValueError, match="no predictions"):
            mape([], [])


class TestCalibration:
    @given(
        st.lists(st.integers(1, 10_000), min_size=3, max_size=12, unique=True),
        st.floats(0.1, 10),
        st.floats(-5, 5),
    )
    def test_finds_the_line_on_which_all_points_lie(self, predicted, slope, intercept):
        """
        Points on a line give its slope and intercept, and R2 of 1.
        """
        line = calibration(predicted, [intercept + slope * p for p in predicted])

        assert line.slope == pytest.approx(slope, rel=1e-6)
        assert line.intercept_s == pytest.approx(intercept, abs=1e-4 * max(predicted))
        assert line.r2 == pytest.approx(1, abs=1e-9)

    def test_known_scatter(self):
        """
        Four points, worked out by hand: slope 0.6, intercept 2.5, R2 0.9.
        """
        line = calibration([1, 2, 3, 4], [3, 4, 4, 5])

        assert (line.slope, line.intercept_s, line.r2) == pytest.approx((0.6, 2.5, 0.9))

    @pytest.mark.parametrize(
        ("predicted", "measured"),
        [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5]), ([], [])],
    )
    def test_says_nothing_where_nothing_is_known(self, predicted, measured):
        """
        Two points always lie on a line, and one time makes none.
        """
        assert calibration(predicted, measured) is None


class TestVariation:
    def test_known_spread(self):
        """
        9, 10, 11: deviation 1, mean 10.
        """
        assert variation([9, 10, 11]) == pytest.approx(0.1)

    @pytest.mark.parametrize("values", [[], [5.0], [0.0, 0.0]])
    def test_is_unknown_without_repeats(self, values):
        """
        One trial has no spread, and a mean of 0 no share.
        """
        assert variation(values) is None


def test_every_metric_says_what_is_good():
    """
    A metric without its meaning helps nobody.
    """
    assert [n for n, m in METRICS.items() if not callable(m.function) or not m.description] == []
