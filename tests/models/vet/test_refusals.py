"""
What vet refuses, by name and place.
"""

import math

import pytest

from harness.base.errors import ModelError
from harness.base.records.prediction import JobConfig
from harness.base.records.vet import TaskUnits
from harness.models.vet.assessment import assess
from harness.models.vet.equations import hill_points, ks_two_sample, vet_task

UNITS = [1.0] * 20 + [3.0, 8.0, 30.0]


def units(attempt_id, unit_records, **changes):
    """
    A map task with 23 units.
    """
    fields = {"kind": "map", "unit_seconds": UNITS, "task_s": 70.0, "records": None}
    return TaskUnits(
        attempt_id=attempt_id, unit_records=unit_records, **fields | {"counters": {}} | changes
    )


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
        (kind,) = assess([units("attempt_1", 5, task_s=0.0, spill_s=0.0)], JobConfig())

        assert kind.spill_share is None


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
