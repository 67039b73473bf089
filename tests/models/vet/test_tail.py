"""
Tests for `harness.models.vet.task`: Hill's estimate and the views of ordered units.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ModelError
from harness.models.vet import bucket_view, emplot, hill, hill_plot, tail_index

tasks = st.lists(st.just(0.0) | st.floats(1e-9, 1e3), min_size=1, max_size=80)


def pareto(alpha, n=20_000, seed=7):
    """
    Units whose share above x is x^-alpha.
    """
    return 1 + np.random.default_rng(seed).pareto(alpha, n)


class TestHill:
    @given(tasks)
    def test_plot_is_the_estimate_of_each_k(self, values):
        """
        Summed up at once or one by one: the same, and what is refused alone is left out.
        """
        plot = {point.k: point.mean_log_excess for point in hill_plot(values)}

        for k in range(1, max(1, len(values) // 10) + 1):
            try:
                alone = hill(values, k).mean_log_excess
            except ModelError:
                assert k not in plot
            else:
                assert plot[k] == pytest.approx(alone, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize("alpha", [0.8, 1.3, 2.5])
    def test_finds_the_index_of_a_power_law(self, alpha):
        """
        Two thousand of the largest estimate it to some percent.
        """
        assert tail_index(pareto(alpha)) == pytest.approx(alpha, rel=0.1)

    @given(st.lists(st.floats(1e-9, 1e3), min_size=2, max_size=20), st.integers(-9, 9))
    def test_units_cancel(self, values, exponent):
        """
        An index has no unit.
        """
        scaled = [v * 2.0**exponent for v in values]

        assert hill(scaled, 1).mean_log_excess == pytest.approx(
            hill(values, 1).mean_log_excess, abs=1e-12
        )

    def test_equal_units_have_no_tail(self):
        """
        Of no excess the index is infinite; of few units, or of none that took time, it is none.
        """
        assert hill([1.0] * 5, 2).alpha == math.inf
        assert tail_index([1.0] * 300) == math.inf
        assert tail_index([1.0] * 199) is None
        assert tail_index([0.0] * 300) is None
        assert hill_plot([]) == hill_plot([1.0]) == ()

    @pytest.mark.parametrize("k", [0, -1, 3, 1.5, None, math.nan])
    def test_refuses_a_k_without_meaning(self, k):
        """
        There are as many as units, but one.
        """
        with pytest.raises(ModelError, match="k = "):
            hill([1.0, 2.0, 3.0], k)

    def test_refuses_a_unit_of_no_time(self):
        """
        Its logarithm is none.
        """
        with pytest.raises(ModelError, match="k = 2"):
            hill([0.0, 2.0, 3.0], 2)


class TestEmplot:
    def test_slope_is_minus_alpha(self):
        """
        The last tenth of a power law is a straight line.
        """
        result = emplot(pareto(1.3))

        assert result.slope == pytest.approx(-1.3, rel=0.1)
        assert result.r2 > 0.98

    def test_points_leave_out_units_of_no_time(self):
        """
        They count all the same.
        """
        result = emplot([0.0, 1.0, math.e])

        (first, second) = result.points
        assert first == pytest.approx((0, math.log(1.5 / 3)))
        assert second == pytest.approx((1, math.log(0.5 / 3)))
        assert (result.slope, result.r2) == (None, None)

    def test_equal_units_are_no_line(self):
        """
        All points of the last tenth stand above each other.
        """
        assert emplot([2.0] * 100).slope is None


class TestBucketView:
    @given(st.lists(st.floats(0, 1e3), max_size=3000, min_size=1))
    def test_holds_every_unit_once(self, values):
        """
        A thousand buckets at most, in order, whose sum is that of the units.
        """
        result = bucket_view(values)

        assert len(result) == min(1000, len(values))
        assert sum(result) == pytest.approx(sum(values), rel=1e-9)

    def test_counts_differ_by_one_at_most(self):
        """
        2500 equal units: two or three of them in each bucket.
        """
        assert set(bucket_view([1.0] * 2500)) == {2.0, 3.0}
        assert bucket_view([]) == ()
