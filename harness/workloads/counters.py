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

from harness.records.trace import TASK_COUNTER, JobTrace


def unbalanced(trace: JobTrace, *, uses_combiner: bool, input_records: int | None) -> str:
    """
    Say what does not add up, rule by rule, or nothing.

    *input_records* is the number of records in the input files, `None` where nobody counted them.
    """
    if f"{TASK_COUNTER}.MAP_INPUT_RECORDS" not in trace.counters:
        return "the job's counters lack MAP_INPUT_RECORDS"

    def count(name: str) -> int:
        # Hadoop leaves out counters that nothing touched.
        return trace.counters.get(f"{TASK_COUNTER}.{name}", 0)

    rules: list[tuple[str, int, str]] = []  # counter, its value by the rule, what that value is
    if input_records is not None:
        rules.append(("MAP_INPUT_RECORDS", input_records, "records of the input"))
    map_output, combine_input = count("MAP_OUTPUT_RECORDS"), count("COMBINE_INPUT_RECORDS")
    if trace.num_reduces and not uses_combiner:
        rules += [
            ("COMBINE_INPUT_RECORDS", 0, "a job without a combiner"),
            ("COMBINE_OUTPUT_RECORDS", 0, "a job without a combiner"),
        ]
    elif trace.num_reduces:
        least = max(combine_input, map_output)
        rules.append(("COMBINE_INPUT_RECORDS", least, "MAP_OUTPUT_RECORDS, or more"))
    if trace.num_reduces:
        remaining = map_output - (combine_input - count("COMBINE_OUTPUT_RECORDS"))
        fetches = trace.num_maps * trace.num_reduces
        written = count("MAP_OUTPUT_MATERIALIZED_BYTES")
        rules += [
            ("REDUCE_INPUT_RECORDS", remaining, "map output records less combined ones"),
            ("SHUFFLED_MAPS", fetches, "maps x reduces"),
            ("REDUCE_SHUFFLE_BYTES", written, "MAP_OUTPUT_MATERIALIZED_BYTES"),
            ("FAILED_SHUFFLE", 0, "a job without repeated fetches"),
        ]
    return "; ".join(
        f"{name} is {count(name)} and not {expected} ({meaning})"
        for name, expected, meaning in rules
        if count(name) != expected
    )
