"""
The proof that the counters of a job add up.

Each rule is an equation that holds for every job whose attempts all ran once:

    MAP_INPUT_RECORDS     = records of the input
    COMBINE_INPUT_RECORDS = COMBINE_OUTPUT_RECORDS = 0              without a combiner
    COMBINE_INPUT_RECORDS >= MAP_OUTPUT_RECORDS                     with one: each spill combines
    REDUCE_INPUT_RECORDS  = MAP_OUTPUT_RECORDS
                            - (COMBINE_INPUT_RECORDS - COMBINE_OUTPUT_RECORDS)
    SHUFFLED_MAPS         = maps x reduces                          empty segments are fetched, too
    REDUCE_SHUFFLE_BYTES  = MAP_OUTPUT_MATERIALIZED_BYTES
    FAILED_SHUFFLE        = 0

The rule of REDUCE_INPUT_RECORDS is exact also where a merge of three or more spills combines
again: what the spills put out is then put in a second time by the merge, and drops out of the
difference.  A job without reduces has the first rule only.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.records.trace import JobTrace, TASK_COUNTER


def unbalanced(trace: JobTrace, *, uses_combiner: bool, input_records: int | None) -> str:
    """
    Say what does not add up, rule by rule, or nothing.

    *input_records* is the number of records in the input files, `None` where nobody counted them.
    """
    if f"{TASK_COUNTER}.MAP_INPUT_RECORDS" not in trace.counters:
        return "the job's counters lack MAP_INPUT_RECORDS"
    return "; ".join(
        _violations(_Counters(trace), uses_combiner=uses_combiner, input_records=input_records)
    )


class _Counters:
    """Task counters by name, and the two numbers that they are multiplied from."""

    def __init__(self, trace: JobTrace) -> None:
        self._values = trace.counters
        self.maps, self.reduces = trace.num_maps, trace.num_reduces

    def __getitem__(self, name: str) -> int:
        # Hadoop leaves out counters that nothing touched.
        return self._values.get(f"{TASK_COUNTER}.{name}", 0)


def _violations(
    count: _Counters, *, uses_combiner: bool, input_records: int | None
) -> Iterator[str]:
    if input_records is not None:
        yield from _equal("MAP_INPUT_RECORDS", count, input_records, "records of the input")
    if count.reduces == 0:
        return
    yield from _combiner(count, uses_combiner=uses_combiner)
    left = count["MAP_OUTPUT_RECORDS"]
    left -= count["COMBINE_INPUT_RECORDS"] - count["COMBINE_OUTPUT_RECORDS"]
    yield from _equal("REDUCE_INPUT_RECORDS", count, left, "map output records less combined ones")
    yield from _equal("SHUFFLED_MAPS", count, count.maps * count.reduces, "maps x reduces")
    written = count["MAP_OUTPUT_MATERIALIZED_BYTES"]
    yield from _equal("REDUCE_SHUFFLE_BYTES", count, written, "MAP_OUTPUT_MATERIALIZED_BYTES")
    yield from _equal("FAILED_SHUFFLE", count, 0, "a job without repeated fetches")


def _combiner(count: _Counters, *, uses_combiner: bool) -> Iterator[str]:
    if not uses_combiner:
        yield from _equal("COMBINE_INPUT_RECORDS", count, 0, "a job without a combiner")
        yield from _equal("COMBINE_OUTPUT_RECORDS", count, 0, "a job without a combiner")
    elif count["COMBINE_INPUT_RECORDS"] < count["MAP_OUTPUT_RECORDS"]:
        combined, output = count["COMBINE_INPUT_RECORDS"], count["MAP_OUTPUT_RECORDS"]
        yield f"COMBINE_INPUT_RECORDS is {combined}, below MAP_OUTPUT_RECORDS {output}"


def _equal(name: str, count: _Counters, expected: int, meaning: str) -> Iterator[str]:
    if count[name] != expected:
        yield f"{name} is {count[name]} and not {expected} ({meaning})"
