"""
What vet refuses, by name and place, and the exact p where SciPy's own went out of its range.
"""

import math
import warnings

from fractions import Fraction
from itertools import combinations

import pytest
import scipy.stats

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ModelError
from harness.models.vet.assessment import assess
from harness.models.vet.equations import hill_points, ks_two_sample, pearson, vet_task
from harness.records.prediction import JobConfig
from harness.records.vet import TaskUnits

UNITS = [1.0] * 20 + [3.0, 8.0, 30.0]


def units(attempt_id, unit_records, **changes):
    """
    A map task with 23 units.
    """
    fields = {"kind": "map", "unit_seconds": UNITS, "task_s": 70.0, "records": None}
    return TaskUnits(
        attempt_id=attempt_id, unit_records=unit_records, **fields | {"counters": {}} | changes
    )


def share_as_extreme(first, second):
    """
    By counting: of all ways to deal the values to two samples of these sizes, the share whose
    distributions are at least as far apart as these two.
    """
    pooled = sorted(first + second)

    def distance(chosen):
        left = right = 0
        largest = Fraction(0)
        for place in range(len(pooled)):
            left, right = left + (place in chosen), right + (place not in chosen)
            apart = abs(Fraction(left, len(first)) - Fraction(right, len(second)))
            largest = max(largest, apart)
        return largest

    observed = distance({pooled.index(value) for value in first})
    ways = [distance(set(way)) for way in combinations(range(len(pooled)), len(first))]
    return sum(each >= observed for each in ways) / len(ways)


class TestKsOutOfRange:
    @given(st.permutations(range(9)), st.integers(1, 8))
    def test_p_is_counted_where_scipy_warns(self, values, first_count):
        """
        The share of the orders of the values that are as far apart, whatever SciPy made of it.
        """
        first, second = values[:first_count], values[first_count:]
        original = scipy.stats.ks_2samp

        def warning_ks(*samples):
            warnings.warn("p out of [0, 1]", RuntimeWarning, stacklevel=2)
            return original(*samples)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scipy.stats, "ks_2samp", warning_ks)
            result = ks_two_sample(first, second)

        assert result.p_value == pytest.approx(share_as_extreme(first, second))


class TestPlaces:
    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (lambda: ks_two_sample([], [1.0]), "sample_a"),
            (lambda: ks_two_sample([1.0], ["1"]), "sample_b[0]"),
            (lambda: hill_points(UNITS, 3), "k_values"),
            (lambda: hill_points(UNITS, [23]), "k = 23 is above n - 1 = 22"),
            (lambda: vet_task(UNITS, omega=1), "omega"),
            (lambda: vet_task(UNITS, buckets=0), "buckets"),
            (lambda: vet_task(UNITS, buckets=5), "buckets = 5 is below 2*omega = 6"),
            (lambda: pearson([1, 2, 3], [1, 2]), "a has 3 values and b has 2"),
        ],
    )
    def test_a_refusal_names_the_value_and_the_model(self, call, name):
        """
        So that a case among thousands of a vector file can be found.
        """
        with pytest.raises(ModelError) as refused:
            call()

        assert name in refused.value.what
        assert "vet" in refused.value.where

    def test_units_of_a_task_are_named_by_its_attempt(self):
        """
        No records in a unit, and units of another size than the task before had.
        """
        with pytest.raises(ModelError, match="unit_records") as refused:
            assess([units("attempt_7", 0)], JobConfig())
        assert "attempt_7" in refused.value.where

        sizes = "units of 5 and of 6 records in one job"
        with pytest.raises(ModelError, match=sizes) as refused:
            assess([units("attempt_1", 5), units("attempt_2", 6)], JobConfig())
        assert "attempt_2" in refused.value.where

    def test_a_task_of_no_seconds_has_no_share_of_spilling(self):
        """
        Its clock was too coarse; nothing is divided by it.
        """
        report = assess([units("attempt_1", 5, task_s=0.0, spill_s=0.0)], JobConfig())

        assert report.kinds[0].spill_share is None


class TestTooFewUnits:
    def test_keeps_what_was_set_aside(self):
        """
        Eleven units in ten buckets: too few in each, one left over, and all of their seconds.
        """
        task = vet_task(UNITS[:11], buckets=10)

        assert (task.status, task.buckets, task.set_aside, task.bucket_units) == (
            "too_few_units", 10, 1, 1,
        )  # fmt: skip
        assert math.isclose(task.profiled_real_s, 11.0)
