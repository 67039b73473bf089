"""
Tests for `harness.models.vet.assessment`: which maps spilled more than once.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.base.records.prediction import JobConfig
from harness.base.records.trace import TASK_COUNTER
from harness.base.records.vet import TaskUnits
from harness.models.vet.assessment import is_multi_spill

NAMES = {
    "size": "MAP_OUTPUT_BYTES",
    "written": "MAP_OUTPUT_RECORDS",
    "spilled": "SPILLED_RECORDS",
    "combined": "COMBINE_INPUT_RECORDS",
    "left": "COMBINE_OUTPUT_RECORDS",
}


def map_task(kind="map", **counters):
    """
    A task with these *counters*.
    """
    named = {f"{TASK_COUNTER}.{NAMES[name]}": value for name, value in counters.items()}
    return TaskUnits("attempt_1", kind, 1, [1.0], 1.0, counters=named)


@given(st.integers(1, 100), st.floats(0.1, 1), st.integers(1, 10**6))
def test_the_buffer_holds_output_and_metadata(buffer_mb, share, records):
    """
    Sixteen bytes for each record beside its own, up to the share that starts a spill.
    """
    config = JobConfig(sort_buffer_mb=buffer_mb, sort_spill_percent=share)
    fits = int(buffer_mb * 2**20 * share) - 16 * records

    if fits >= 0:
        assert not is_multi_spill(map_task(size=fits, written=records), config)
    assert is_multi_spill(map_task(size=max(0, fits + 1), written=records), config)


@pytest.mark.parametrize(
    "counters", [{}, {"size": 9}, {"written": 9}, {"size": 2**40, "written": 0}]
)
def test_a_map_whose_output_is_unknown_or_none_is_not_flagged(counters):
    """
    What wrote nothing spilled nothing.
    """
    assert not is_multi_spill(map_task(**counters), JobConfig())


def test_only_a_map_that_sorts_can_spill():
    """
    A map-only job writes its output as it comes.
    """
    twice = {"size": 90, "written": 9, "spilled": 18}

    assert is_multi_spill(map_task(**twice), JobConfig())
    assert not is_multi_spill(map_task(**twice), JobConfig(num_reduces=0))
    assert not is_multi_spill(map_task("reduce", **twice), JobConfig())


def test_a_counter_below_zero_is_refused():
    """
    It names the counter.
    """
    with pytest.raises(ModelError, match="SPILLED_RECORDS = -1"):
        is_multi_spill(map_task(size=9, written=9, spilled=-1), JobConfig())


@pytest.mark.parametrize(
    ("counters", "combiner", "several"),
    [
        ({"spilled": 9}, False, False),
        ({"spilled": 18}, False, True),
        ({"spilled": 4}, True, False),  # unknown what the combiner did: by its size
        ({"spilled": 4, "combined": 9, "left": 4}, True, False),
        ({"spilled": 6, "combined": 13, "left": 6}, True, True),  # the merge combined once more
        ({"spilled": 8, "combined": 9, "left": 4}, True, True),
        ({"spilled": 9, "combined": 13, "left": 4}, False, False),
    ],
)
def test_counters_show_what_happened(counters, combiner, several):
    """
    Section 5, with and without a combiner, whatever the size.
    """
    units = map_task(size=90, written=9, **counters)

    assert is_multi_spill(units, JobConfig(use_combiner=combiner)) is several
    if len(counters) != 1 or not combiner:
        full = JobConfig(use_combiner=combiner, sort_spill_percent=1e-9)
        assert is_multi_spill(units, full) is several
