"""
Parts of recorded tasks: the seconds and coefficients of each equation of the model by itself.

    part                 seconds
    -------------------  -----------------------------------------------------------------
    `map_setup_s`        launch to record loop
    `map_read_s`         reading
    `map_function_s`     the record loop, without reading and collecting
    `collect_s`          collecting (sampled); of a map-only job it is `map_write_s`
    `spill_sort_s`       sorting, all spills, whichever thread they ran on
    `spill_write_s`      combining and writing, all spills
    `map_merge_s`        the merge, where there is more than one spill
    `map_cleanup_s`      all else that the main thread did
    `reduce_setup_s`     launch to shuffle, and connecting while nothing was copied
    `copy_s`             time in which map outputs were on their way, for the bytes sent
    `inmem_merge_s`      merges of segments in memory
    `ondisk_merge_s`     merges on disk while the shuffle goes on
    `reduce_merge_s`     the final merge
    `reduce_function_s`  reading with the last merge, and the reduce function
    `reduce_write_s`     writing, and closing the writer
    `reduce_cleanup_s`   all else behind the shuffle: commit, end

Waiting is in none: blocked on the full buffer, for map outputs, for memory.  The time of spill
thread, copiers and mergers counts in full, though other threads work meanwhile: a cost is what a
byte or a record takes, as the paper's profiler measured it.  The model adds what overlaps.

Segments that go straight to disk are written while they are copied: then `copy_s` holds the terms
of `inmem_merge_s`, too.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass

from harness.profiling.jobs import Observation
from harness.records.task_times import MapTimes, ReduceTimes, covered_s
from harness.records.trace import TASK_COUNTER, TaskAttempt

Terms = Mapping[str, Mapping[str, float]]

_MERGES = {"inmem_merge_s": "memory", "ondisk_merge_s": "disk", "reduce_merge_s": "final"}


@dataclass(frozen=True, slots=True)
class PartTimes:
    """
    Seconds of the parts of one task, by name.

    *sent_bytes* are those that a reduce copied; *straight_to_disk* says that some were not kept in
    memory first.
    """

    seconds: Mapping[str, float]
    sent_bytes: int = 0
    straight_to_disk: bool = False


def part_times(observation: Observation) -> dict[str, PartTimes]:
    """
    Tasks that succeeded and were recorded from start to end, by the ids of their attempts.

    A recording is left out that lacks a part, has not all records or segments of the task's
    counters, or whose parts take longer than the task, as with a mapper of several threads.
    """
    trace = observation.trace
    succeeded = {
        task_times.attempt_id: task_times
        for task_times in trace.attempts
        if task_times.state == "succeeded"
    }
    complete = {}
    for task_times in observation.task_times:
        attempt = succeeded.get(task_times.attempt_id)
        if task_times.source != "spans" or attempt is None:
            continue
        if isinstance(task_times, ReduceTimes):
            parts = _reduce_parts(task_times, attempt, trace.num_maps)
        else:
            parts = _map_parts(task_times, attempt, is_map_only=trace.num_reduces == 0)
        if parts is not None and min(parts.seconds.values()) >= 0:
            complete[task_times.attempt_id] = parts
    return complete


def part_terms_of(parts: PartTimes, terms: Terms) -> dict[str, tuple[float, dict[str, float]]]:
    """Seconds and coefficients of each part that both the recording and the model have."""
    part_terms = {part: dict(terms.get(part, {})) for part in parts.seconds}
    if parts.sent_bytes:
        written = terms.get("inmem_merge_s", {}) if parts.straight_to_disk else {}
        part_terms["copy_s"] = {**written, "network_s_per_byte": float(parts.sent_bytes)}
    return {
        part: (parts.seconds[part], coefficients)
        for part, coefficients in part_terms.items()
        if any(coefficients.values())
    }


def _map_parts(map_times: MapTimes, attempt: TaskAttempt, *, is_map_only: bool) -> PartTimes | None:
    known_times = _known_seconds(
        map_times, "start_up_s", "alone_s", "spilling_s", "read_s", "blocked_s"
    )
    if known_times is None or map_times.records != _count(attempt, "MAP_INPUT_RECORDS"):
        return None
    start_up_s, alone_s, spilling_s, read_s, blocked_s = known_times
    mapping_s = alone_s + spilling_s - read_s
    # An estimate, and no more than what it is a part of.
    output_s = min(map_times.collect_s or 0.0, mapping_s)
    parts = {
        "map_setup_s": start_up_s,
        "map_read_s": read_s,
        "map_function_s": mapping_s - output_s,
        "map_write_s" if is_map_only else "collect_s": output_s,
        "map_cleanup_s": attempt.duration_s - start_up_s - alone_s - spilling_s - blocked_s,
    }
    if is_map_only:  # Closing the writer comes behind the record loop: it counts as cleaning up.
        return PartTimes(parts)
    spilled = sum(spill.records or 0 for spill in map_times.spills)
    if map_times.merge_s is None or spilled != _count(attempt, "MAP_OUTPUT_RECORDS"):
        return None
    parts["map_cleanup_s"] -= math.fsum(
        spill.duration_s for spill in map_times.spills if spill.last
    )
    if map_times.spills:
        parts["spill_sort_s"] = math.fsum(spill.sort_s or 0.0 for spill in map_times.spills)
        parts["spill_write_s"] = math.fsum(
            (spill.combine_s or 0.0) + (spill.write_s or 0.0) for spill in map_times.spills
        )
    if len(map_times.spills) > 1:  # A single one is renamed.
        parts["map_merge_s"] = map_times.merge_s
        parts["map_cleanup_s"] -= map_times.merge_s
    return PartTimes(parts)


def _reduce_parts(reduce_times: ReduceTimes, attempt: TaskAttempt, maps: int) -> PartTimes | None:
    known_times = _known_seconds(
        reduce_times, "start_up_s", "shuffle_s", "read_s", "function_s", "write_s"
    )
    has_all_records = reduce_times.records == _count(attempt, "REDUCE_INPUT_RECORDS")
    has_all_segments = len(reduce_times.segments) == _count(attempt, "SHUFFLED_MAPS", maps)
    if known_times is None or not (has_all_records and has_all_segments):
        return None
    start_up_s, shuffle_s, read_s, function_s, write_s = known_times
    copying_s = covered_s((segment.start_s, segment.finish_s) for segment in reduce_times.segments)
    visiting_s = covered_s(
        (segment.start_s - (segment.connect_s or 0.0), segment.finish_s)
        for segment in reduce_times.segments
    )
    left_s = attempt.duration_s - start_up_s - shuffle_s - read_s - function_s - write_s
    parts = {
        "reduce_setup_s": start_up_s + visiting_s - copying_s,
        "copy_s": copying_s,
        "reduce_function_s": read_s + function_s,
        "reduce_write_s": write_s,
        "reduce_cleanup_s": left_s,
    }
    merges = {
        part: math.fsum(merge.finish_s - merge.start_s for merge in of_kind)
        for part, kind in _MERGES.items()
        if (of_kind := [merge for merge in reduce_times.merges if merge.kind == kind])
    }
    straight_to_disk = any(segment.to == "disk" for segment in reduce_times.segments)
    if straight_to_disk:
        parts["copy_s"] += merges.pop("inmem_merge_s", 0.0)
    sent_bytes = sum(segment.sent_bytes for segment in reduce_times.segments)
    return PartTimes(parts | merges, sent_bytes, straight_to_disk)


def _known_seconds(task_times: MapTimes | ReduceTimes, *names: str) -> list[float] | None:
    """Seconds of the fields *names*; `None` where one is not known."""
    known_times = [getattr(task_times, name) for name in names]
    return None if None in known_times else known_times


def _count(attempt: TaskAttempt, counter: str, absent: int = 0) -> int:
    return attempt.counters.get(f"{TASK_COUNTER}.{counter}", absent)
