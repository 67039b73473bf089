"""
Tests for `harness.models.vet.equations`: Hill's estimate of the tail.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.vet.equations import hill_points, tail_index


def pareto(alpha, n=20_000, seed=7):
    """
    Units whose share above x is x^-alpha.
    """
    return np.sort(1 + np.random.default_rng(seed).pareto(alpha, n))


def hill(values, k):
    """
    The estimate of one k.
    """
    return hill_points(values, [k])[0]


class TestHill:
    @given(st.lists(st.floats(1e-9, 1e3), min_size=200, max_size=400), st.integers(0, 390))
    def test_index_is_the_median_of_the_estimates(self, values, zeros):
        """
        Summed up at once or one by one: the same, and what is refused alone is left out.
        """
        ordered = np.sort(np.array([*values, *[0.0] * zeros]))
        first, last = max(10, math.ceil(len(ordered) / 100)), len(ordered) // 10

        alphas = [hill(ordered, k).alpha for k in range(first, min(last, len(values) - 1) + 1)]
        index = tail_index(ordered)

        assert index == (pytest.approx(np.median(alphas), rel=1e-6) if alphas else None)

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
        assert tail_index(np.ones(300)) == math.inf
        assert tail_index(np.ones(199)) is None
        assert tail_index(np.zeros(300)) is None

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
