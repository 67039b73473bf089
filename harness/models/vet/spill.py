"""Section 5: vet of a map supposes that it spills once, so that its main thread never waits."""

from __future__ import annotations

import math

from collections.abc import Mapping
from typing import Any, Literal

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, check_number
from harness.models.vet.change_point import WHERE
from harness.records.trace import TASK_COUNTER
from harness.records.vet import SingleSpill

METADATA_BYTES = 16  # of a record in the sort buffer
MOST_SORT_BUFFER_MB = 2047

_MIB = 2**20


def single_spill_check(
    profile: Mapping[str, Any], config: Mapping[str, Any], rules: Literal["mr2", "paper"] = "mr2"
) -> SingleSpill:
    """
    Whether a map's output fits into its sort buffer, and whether its counters say that it did.

    *profile* has `map_out_bytes` and `map_out_records` of one map, and perhaps its `counters`;
    *config* `sort_buffer_mb`, `sort_spill_percent`, `use_combiner` for the counters, and
    `sort_record_percent` for the paper's rules.  ``ModelError`` names the one that is bad.
    """
    data_bytes = check_number("map_out_bytes", profile.get("map_out_bytes"), where=WHERE)
    records = check_number("map_out_records", profile.get("map_out_records"), where=WHERE)
    buffer_mb = check_number(
        "sort_buffer_mb", config.get("sort_buffer_mb"), where=WHERE, above=True
    )
    spill_share = check_number(
        "sort_spill_percent", config.get("sort_spill_percent"), where=WHERE, high=1, above=True
    )
    uses_combiner = check_flag("use_combiner", config.get("use_combiner", False), where=WHERE)
    metadata_bytes = METADATA_BYTES * records
    # Parts of the buffer: what must fit into each, and its share of the whole.
    if rules == "mr2":
        parts = [(data_bytes + metadata_bytes, 1.0)]
    elif rules == "paper":
        metadata_share = check_number(
            "sort_record_percent", config.get("sort_record_percent"), where=WHERE, high=1
        )
        parts = [(data_bytes, 1 - metadata_share), (metadata_bytes, metadata_share)]
    else:
        raise ModelError(f"rules = {rules!r} is not mr2 or paper", where=WHERE)
    too_much_mb = MOST_SORT_BUFFER_MB + 1.0
    needed_mb = 0.0
    for part_bytes, part_share in parts:
        if part_bytes and (usable_share := part_share * spill_share):
            needed_mb = max(needed_mb, part_bytes / (_MIB * usable_share))
        elif part_bytes:  # no buffer is large enough
            needed_mb = too_much_mb
    required_mb = math.ceil(min(needed_mb, too_much_mb))
    return SingleSpill(
        single_spill=all(
            part_bytes <= _MIB * buffer_mb * part_share * spill_share
            for part_bytes, part_share in parts
        ),
        required_sort_buffer_mb=required_mb if required_mb <= MOST_SORT_BUFFER_MB else None,
        observed_single_spill=observed_single_spill(
            profile.get("counters"), uses_combiner=uses_combiner
        ),
    )


def observed_single_spill(
    counters: Mapping[str, int] | None, *, uses_combiner: bool
) -> bool | None:
    """
    Whether a map's counters show one spill; `None` where they do not show it either way.

    A combiner that ran in the merge as well has read more records than the map wrote.
    """
    if counters is None:
        return None

    def read_counter(name: str) -> int | None:
        """A counter under its full name, or without its group."""
        value = counters.get(f"{TASK_COUNTER}.{name}", counters.get(name))
        return None if value is None else check_count(name, value, where=WHERE)

    written, spilled = read_counter("MAP_OUTPUT_RECORDS"), read_counter("SPILLED_RECORDS")
    if written == 0:
        return True
    if written is None or spilled is None:
        return None
    if not uses_combiner:
        return spilled == written
    combined = read_counter("COMBINE_INPUT_RECORDS")
    combiner_output = read_counter("COMBINE_OUTPUT_RECORDS")
    if combined is None or combiner_output is None:
        return None
    return spilled == combiner_output and combined == written
