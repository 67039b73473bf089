"""
Tests for `harness.models.vet.assessment`: when the measure applies.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ModelError
from harness.models.vet import single_spill_check
from harness.records.trace import TASK_COUNTER

MIB = 2**20


def check(rules="mr2", **changes):
    """
    A map of 40 MiB in 400 000 records in a buffer of 100 MiB, but for the *changes*.
    """
    config = {
        "map_out_bytes": 40 * MIB,
        "map_out_records": 400_000,
        "sort_buffer_mb": 100,
        "sort_spill_percent": 0.8,
        "sort_record_percent": 0.05,
        **changes,
    }
    return single_spill_check(config, config, rules)


class TestSizes:
    def test_the_buffer_holds_output_and_metadata(self):
        """
        40 MiB and 16 bytes for each record, in 80 % of the buffer.
        """
        result = check()

        assert (result.single_spill, result.required_sort_buffer_mb) == (True, 58)

    @given(st.integers(0, 2**31), st.integers(0, 10**7), st.floats(0.01, 1), st.booleans())
    def test_the_smallest_buffer_is_just_enough(self, size, records, share, paper):
        """
        It passes the check, and the one below it does not.
        """
        rules = "paper" if paper else "mr2"
        config = {"map_out_bytes": size, "map_out_records": records, "sort_spill_percent": share}
        needed = check(rules, **config).required_sort_buffer_mb

        if needed is None:
            assert not check(rules, **config, sort_buffer_mb=2047).single_spill
        elif needed > 0:
            assert check(rules, **config, sort_buffer_mb=needed).single_spill
            assert needed == 1 or not check(rules, **config, sort_buffer_mb=needed - 1).single_spill

    def test_a_share_of_nothing_holds_no_metadata(self):
        """
        Under the paper's rules a buffer without records' share is never large enough.
        """
        result = check("paper", sort_record_percent=0)

        assert (result.single_spill, result.required_sort_buffer_mb) == (False, None)

    def test_no_output_passes(self):
        """
        What wrote nothing spilled nothing.
        """
        result = check(map_out_bytes=0, map_out_records=0, counters={"MAP_OUTPUT_RECORDS": 0})

        assert (result.single_spill, result.observed_single_spill) == (True, True)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("map_out_bytes", None),
            ("map_out_bytes", -1),
            ("map_out_records", math.nan),
            ("sort_buffer_mb", 0),
            ("sort_spill_percent", 0),
            ("sort_spill_percent", 1.1),
            ("use_combiner", "no"),
        ],
    )
    def test_refuses(self, field, value):
        """
        It names the field.
        """
        with pytest.raises(ModelError, match=field):
            check(**{field: value})

    def test_refuses_unknown_rules(self):
        """
        There are two sets.
        """
        with pytest.raises(ModelError, match="rules = 'mr3'"):
            check("mr3")


@pytest.mark.parametrize(
    ("counters", "combined", "once"),
    [
        (None, False, None),
        ({}, False, None),
        ({"MAP_OUTPUT_RECORDS": 9, "SPILLED_RECORDS": 9}, False, True),
        (
            {f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": 9, f"{TASK_COUNTER}.SPILLED_RECORDS": 18},
            False,
            False,
        ),
        ({"MAP_OUTPUT_RECORDS": 9, "SPILLED_RECORDS": 4}, True, None),
        (
            {"MAP_OUTPUT_RECORDS": 9, "SPILLED_RECORDS": 4, "COMBINE_INPUT_RECORDS": 9,
             "COMBINE_OUTPUT_RECORDS": 4}, True, True,
        ),
        (  # the merge combined once more
            {"MAP_OUTPUT_RECORDS": 9, "SPILLED_RECORDS": 6, "COMBINE_INPUT_RECORDS": 13,
             "COMBINE_OUTPUT_RECORDS": 6}, True, False,
        ),
    ],
)  # fmt: skip
def test_counters_tell_what_happened(counters, combined, once):
    """
    Section 5, with and without a combiner; `None` where a counter is missing.
    """
    assert check(counters=counters, use_combiner=combined).observed_single_spill is once
