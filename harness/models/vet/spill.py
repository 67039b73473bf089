"""Section 5: vet of a map supposes that it spills once, so that its main thread never waits."""

from __future__ import annotations

import math

from collections.abc import Mapping
from typing import Any, Literal

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, check_number
from harness.models.vet.inputs import WHERE
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
    size = check_number("map_out_bytes", profile.get("map_out_bytes"), where=WHERE)
    records = check_number("map_out_records", profile.get("map_out_records"), where=WHERE)
    buffer = _MIB * check_number(
        "sort_buffer_mb", config.get("sort_buffer_mb"), where=WHERE, above=True
    )
    share = check_number(
        "sort_spill_percent", config.get("sort_spill_percent"), where=WHERE, high=1, above=True
    )
    metadata = METADATA_BYTES * records
    counters = profile.get("counters")
    combined = check_flag("use_combiner", config.get("use_combiner", False), where=WHERE)
    if rules == "mr2":
        fits = size + metadata <= buffer * share
        needed = math.ceil(_buffer_for(size + metadata, share))
    elif rules == "paper":
        of_metadata = check_number(
            "sort_record_percent", config.get("sort_record_percent"), where=WHERE, high=1
        )
        parts = ((size, 1 - of_metadata), (metadata, of_metadata))
        fits = all(need <= buffer * part * share for need, part in parts)
        needed = math.ceil(max(_buffer_for(need, part * share) for need, part in parts))
    else:
        raise ModelError(f"rules = {rules!r} is not mr2 or paper", where=WHERE)
    return SingleSpill(
        single_spill=fits,
        required_sort_buffer_mb=needed if needed <= MOST_SORT_BUFFER_MB else None,
        observed_single_spill=observed_single_spill(counters, combined=combined),
    )


def _buffer_for(need: float, share: float) -> float:
    """Sort buffer in MiB of which *share* holds *need* bytes; beyond all where it holds none."""
    too_much = MOST_SORT_BUFFER_MB + 1.0
    if need == 0:
        return 0.0
    return min(need / (_MIB * share), too_much) if share else too_much


def observed_single_spill(counters: Mapping[str, int] | None, *, combined: bool) -> bool | None:
    """
    Whether a map's counters show one spill; `None` where they do not tell.

    With a combiner, one that combined in the merge has read more than the map wrote.
    """
    if counters is None:
        return None
    wrote, spilled = _count(counters, "MAP_OUTPUT_RECORDS"), _count(counters, "SPILLED_RECORDS")
    if wrote == 0:
        return True
    if wrote is None or spilled is None:
        return None
    if not combined:
        return spilled == wrote
    into, out = (
        _count(counters, "COMBINE_INPUT_RECORDS"),
        _count(counters, "COMBINE_OUTPUT_RECORDS"),
    )
    return None if into is None or out is None else spilled == out and into == wrote


def _count(counters: Mapping[str, int], name: str) -> int | None:
    """A counter under its full name, or without its group."""
    found = counters.get(f"{TASK_COUNTER}.{name}", counters.get(name))
    return None if found is None else check_count(name, found, where=WHERE)
