"""
Tests for `harness.models.vet.equations`: vet of one task, its flags, its refusals.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.base.records.vet import NEGATIVE_OVERHEAD, OMEGA_SENSITIVE
from harness.models.vet.change_point import order_units
from harness.models.vet.equations import estimated_ideal, ideal_after, vet_task
from tests.models.vet.obvious import obvious_change_point

seconds = st.floats(0, 1e3) | st.integers(0, 9).map(lambda n: n * 32e-9)
tasks = st.lists(seconds, min_size=6, max_size=60)
FLAT_TOP = [1, 2, 3, 4, 5, 6, 6.1, 6.2, 6.3, 6.4, 6.5, 6.6]


def obvious(unit_seconds, omega=3):
    """
    EI and OC of (2) to (4), one unit after the other.
    """
    y = sorted(unit_seconds)
    ideal = y[: obvious_change_point(y, omega)]
    while len(ideal) < len(y):
        ideal.append(2 * ideal[-1] - ideal[-2])
    return math.fsum(ideal), math.fsum(y) - math.fsum(ideal)


def tailed(n=5000, share=0.01, seed=5):
    """
    Units of nearly equal time, and some that take a hundred times as long.
    """
    random = np.random.default_rng(seed)
    base = random.lognormal(0, 0.2, n)
    base[: int(share * n)] += 95 * (1 + random.pareto(1.3, int(share * n)))
    return random.permutation(base)


class TestVetTask:
    @given(tasks)
    def test_is_the_recursion_of_the_paper(self, values):
        """
        The closed form of the ideal is its recursion, and PR is the sum of both parts.
        """
        result, (ideal, overhead) = vet_task(values), obvious(values)
        scale = pytest.approx(0, abs=1e-10 * (abs(ideal) + abs(overhead) + 1e-300))

        assert result.estimated_ideal_s - ideal == scale
        assert result.overhead_s - overhead == scale
        assert result.estimated_ideal_s + result.overhead_s - result.profiled_real_s == scale

    @given(tasks, st.randoms())
    def test_order_is_of_no_meaning(self, values, random):
        """
        The measure is of ordered times: in whatever order they come.
        """
        shuffled = random.sample(values, len(values))

        assert vet_task(shuffled) == vet_task(values)

    @given(tasks, st.integers(-20, 20))
    def test_units_cancel(self, values, exponent):
        """
        Times of another unit scale PR, EI and OC, and leave vet and its flags.
        """
        values, factor = [v + 1.0 for v in values], 2.0**exponent
        one, other = vet_task(values), vet_task([v * factor for v in values])

        assert (other.vet, other.flags, other.change_point) == (
            one.vet,
            one.flags,
            one.change_point,
        )
        assert other.overhead_s == one.overhead_s * factor
        assert other.sse == one.sse * factor**2

    @given(tasks)
    def test_capped_is_never_below_one(self, values):
        """
        An ideal that is never above what was observed leaves no negative overhead.
        """
        result = vet_task(values, cap_at_observed=True)

        assert result.overhead_s >= 0
        assert NEGATIVE_OVERHEAD not in result.flags
        assert result.vet is None or result.vet >= 1 - 1e-12

    @given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.integers(6, 400))
    def test_a_line_has_no_overhead(self, start, step, n):
        """
        Units on a straight line are ideal: rounding is no negative overhead.
        """
        result = vet_task([start + step * i for i in range(n)])

        assert result.vet == pytest.approx(1, abs=1e-9)
        assert result.flags == ()

    def test_flat_top_is_flagged(self):
        """
        Fewer seconds than the ideal: the value stays, and says so.
        """
        assert vet_task(FLAT_TOP).flags == (NEGATIVE_OVERHEAD,)

    def test_a_wider_window_is_another_answer(self):
        """
        A change point at the very end with three units on its right, and another with fifty.
        """
        assert OMEGA_SENSITIVE in vet_task(tailed(), omega=3).flags
        assert OMEGA_SENSITIVE not in vet_task(np.linspace(1, 2, 5000)).flags

    def test_infinitesimal_ideal_is_none(self):
        """
        What would be divided by next to nothing is not defined, rather than infinite.
        """
        result = vet_task([5e-324] * 20 + [1.0, 2.0, 3.0])

        assert (result.status, result.vet) == ("zero_ideal", None)

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ({"unit_seconds": [1.0, -1e-9] * 4}, r"unit_seconds\[1\] = -1e-09"),
            ({"unit_seconds": [math.nan] * 8}, r"unit_seconds\[0\] = nan"),
            ({"unit_seconds": [1.0] * 8 + [math.inf]}, r"unit_seconds\[8\] = inf"),
            ({"unit_seconds": np.array([1.0, np.nan])}, r"unit_seconds\[1\] = nan"),
            ({"unit_seconds": [1e200] * 8}, r"unit_seconds\[0\]"),
            ({"unit_seconds": [10**400] * 8}, r"unit_seconds\[0\]"),
            ({"unit_seconds": [True] * 8}, r"unit_seconds\[0\] = True"),
            ({"unit_seconds": ["1"] * 8}, r"unit_seconds\[0\]"),
            ({"unit_seconds": None}, "unit_seconds = None"),
            ({"unit_seconds": np.ones((3, 3))}, "unit_seconds"),
            ({"unit_seconds": [1.0] * 8, "omega": 1}, "omega = 1"),
            ({"unit_seconds": [1.0] * 8, "omega": 2.5}, "omega = 2.5"),
            ({"unit_seconds": [1.0] * 3, "omega": 0}, "omega = 0"),
            ({"unit_seconds": [1.0] * 8, "cap_at_observed": 1}, "cap_at_observed = 1"),
            ({"unit_seconds": [1.0] * 80, "buckets": 5}, r"buckets = 5 is below 2\*omega = 6"),
            ({"unit_seconds": [1.0] * 80, "buckets": 7.5}, "buckets = 7.5"),
        ],
    )
    def test_refuses(self, arguments, complaint):
        """
        What is no list of times, or no window, names its field.
        """
        with pytest.raises(ModelError, match=complaint):
            vet_task(**arguments)


class TestBuckets:
    def test_units_set_aside_count_on_both_sides(self):
        """
        A bucket of one unit each is no bucket at all, but for the smallest, which count as ideal.
        """
        units = tailed(403)

        whole, some = vet_task(units), vet_task(units, buckets=40)

        assert (some.n, some.set_aside, some.bucket_units) == (403, 3, 10)
        assert some.profiled_real_s == pytest.approx(whole.profiled_real_s, rel=1e-12)
        assert some.estimated_ideal_s + some.overhead_s == pytest.approx(some.profiled_real_s)

    def test_nine_units_to_a_bucket_are_too_few(self):
        """
        The status says so, and PR is given all the same.
        """
        result = vet_task([1.0] * 99, buckets=10)

        assert (result.status, result.profiled_real_s, result.vet) == ("too_few_units", 99.0, None)

    def test_see_what_units_do_not(self):
        """
        The table of section 3.6: on units a tail hides its overhead, on buckets it does not.
        """
        units = tailed(100_000, 0.01)
        true = units.sum() / tailed(100_000, 0.0).sum()

        assert vet_task(units).vet < 1.25
        assert vet_task(units, buckets=100).vet == pytest.approx(true, rel=0.05)


def test_ideal_with_a_cap_ends_where_it_meets_what_was_observed():
    """
    Above the observed times it is these, below it is the line.
    """
    y = order_units(FLAT_TOP)

    assert ideal_after(y, 5).tolist() == [6, 7, 8, 9, 10, 11, 12]
    assert ideal_after(y, 5, capped=True).tolist() == FLAT_TOP[5:]
    assert estimated_ideal(y, 5, capped=True) == pytest.approx(sum(FLAT_TOP))
