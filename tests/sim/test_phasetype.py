"""
Tests for `harness.models.sim.phasetype`: sums of exponential delays, and the last of many.
"""

import math

from decimal import Decimal, localcontext

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.sim.phasetype import Quantiles, maximum

delays = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=5)


def reached(means, t):
    """
    Distribution function by partial fractions, with digits enough for means that nearly agree.
    """
    with localcontext(prec=80):
        exact = [Decimal(m) for m in means]
        tail = sum(
            (-Decimal(t) / one).exp()
            / math.prod(1 - other / one for other in exact if other != one)
            for one in exact
        )
        return float(1 - tail)


def obvious_mean(means, number):
    """
    Integral of 1 - F^n by the trapezoidal rule, F by partial fractions, as means differ enough.
    """
    end = 60 * sum(means)
    t = np.linspace(0, 1, 100_001) ** 2 * end
    tail = sum(
        np.exp(-t / one) / math.prod(1 - other / one for other in means if other != one)
        for one in means
    )
    return np.trapezoid(1 - (1 - tail) ** number, t)


class TestMaximum:
    @pytest.mark.parametrize("number", [1, 2, 16, 1000, 100_000])
    def test_of_exponential_delays(self, number):
        """
        The mean is the harmonic number, the variance the sum of inverse squares.
        """
        moments = maximum([3.0], number)

        k = np.arange(1, number + 1)
        assert moments.mean == pytest.approx(3 * (1 / k).sum(), rel=1e-13)
        assert moments.std == pytest.approx(3 * math.sqrt((1 / k**2).sum()), rel=1e-12)

    @given(delays)
    def test_of_one(self, means):
        """
        Means add up, variances add up.
        """
        moments = maximum(means, 1)

        assert moments.mean == pytest.approx(sum(means), rel=1e-8)
        assert moments.std == pytest.approx(math.hypot(*means), rel=1e-8)

    @pytest.mark.parametrize(
        ("means", "number"), [([1.0, 2.0], 3), ([1.0, 1.1, 1.3], 20), ([0.02, 5.0, 6.0], 700)]
    )
    def test_agrees_with_the_obvious_form(self, means, number):
        """
        As far as a trapezoidal rule goes.
        """
        moments = maximum(means, number).mean

        assert moments == pytest.approx(obvious_mean(means, number), rel=1e-7)

    @settings(max_examples=15)
    @given(delays, st.integers(1, 1000), st.floats(1e-6, 1e6))
    def test_units_cancel(self, means, number, factor):
        """
        Seconds scaled by k scale the answer by k.
        """
        one, other = (maximum([m * f for m in means], number) for f in (1.0, factor))

        assert other.mean == pytest.approx(one.mean * factor, rel=1e-12)
        assert other.std == pytest.approx(one.std * factor, rel=1e-9)

    @settings(max_examples=15)
    @given(delays, st.integers(1, 10_000), st.integers(1, 10_000))
    def test_more_delays_end_later(self, means, number, more):
        """
        And never before the longest of their means.
        """
        few, many = (maximum(means, n).mean for n in (number, number + more))

        assert sum(means) * (1 - 1e-12) <= few <= many * (1 + 1e-12)

    def test_of_nothing(self):
        """
        No delays, or delays of 0, take no time.
        """
        assert maximum([], 2) == maximum([0.0, 0.0], 5) == maximum([1.0], 0)


class TestQuantiles:
    @pytest.mark.parametrize(
        "means",
        [
            [2.0],
            [1.0, 1.0 + 1e-9, 1.0 + 2e-9, 1.0 + 3e-9],
            [6.7, 0.6, 0.8, 1.1, 6.6],
            [1.0, 1e-7],
            [1e-5, 2.0, 2.0000001],
        ],
    )
    def test_invert_the_distribution(self, means):
        """
        F(Q(u)) = u, from 1e-43 to as near to 1 as one in a hundred million.
        """
        minus_log_u = np.logspace(-8, 2, 40)

        times = Quantiles(means).of_maximum(minus_log_u, 1)

        moments = [reached(means, float(t)) for t in times]
        assert moments == pytest.approx(np.exp(-minus_log_u).tolist(), rel=1e-8)

    @settings(max_examples=15)
    @given(delays, st.integers(1, 100_000))
    def test_mean_of_draws_is_the_expectation(self, means, number):
        """
        At the middles of 20,000 equal shares: no chance is left but the tails'.
        """
        u = (np.arange(20_000) + 0.5) / 20_000
        drawn = Quantiles(means).of_maximum(-np.log(u), number)
        exact = maximum(means, number)

        assert drawn.mean() == pytest.approx(exact.mean, rel=1e-3)
        assert drawn.std() == pytest.approx(exact.std, rel=1e-2)

    @settings(max_examples=15)
    @given(delays, st.integers(1, 1000), st.integers(0, 4), st.floats(1.0, 10.0))
    def test_never_fall_with_a_mean(self, means, number, which, factor):
        """
        At the same u a slower delay ends later: what makes simulated times comparable.
        """
        slower = [m * factor if i == which % len(means) else m for i, m in enumerate(means)]
        minus_log_u = np.logspace(-6, 2, 50)
        fast, slow = (Quantiles(m).of_maximum(minus_log_u, number) for m in (means, slower))

        assert (slow >= fast * (1 - 1e-8)).all()

    def test_extremes_are_numbers(self):
        """
        Draws beyond the table, at both ends.
        """
        drawn = Quantiles([1.0, 2.0]).of_maximum(np.array([0.0, 1e-300, 1e3, 1e300]), 10)

        assert np.isfinite(drawn).all()
        assert (np.diff(drawn) <= 0).all()

    def test_of_nothing(self):
        """
        Delays of 0, or no copies.
        """
        u = np.ones(3)

        assert (Quantiles([0.0]).of_maximum(u, 5) == 0).all()
        assert (Quantiles([1.0]).of_maximum(u, 0) == 0).all()
