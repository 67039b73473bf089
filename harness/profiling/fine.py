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

from harness.profiling.observation import Observation
from harness.profiling.spans import covered
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import TASK_COUNTER, TaskAttempt

Terms = Mapping[str, Mapping[str, float]]

_EVERYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Timed:
    """
    Seconds of the parts of one task, by name.

    *sent_bytes* are those that a reduce copied; *straight* says that some went to disk at once.
    """

    seconds: Mapping[str, float]
    sent_bytes: int = 0
    straight: bool = False


def timed_tasks(observation: Observation) -> dict[str, Timed]:
    """
    Tasks that succeeded and were recorded from begin to end, by the ids of their attempts.

    A recording is none that lacks a part, has not all records or segments of the task's counters,
    or whose parts take longer than the task: so do those of a mapper with several threads.
    """
    done = {a.attempt_id: a for a in observation.trace.attempts if a.state == "succeeded"}
    found = {}
    for task in observation.inside:
        attempt = done.get(task.attempt_id)
        if task.source == "spans" and attempt is not None:
            timed = _timed(task, attempt, observation)
            if timed is not None and min(timed.seconds.values()) >= 0:
                found[task.attempt_id] = timed
    return found


def fine_rows(timed: Timed, terms: Terms) -> dict[str, tuple[float, dict[str, float]]]:
    """Seconds and coefficients of each part that both the recording and the model have."""
    mine = {part: dict(terms.get(part, {})) for part in timed.seconds}
    if timed.sent_bytes:
        written = terms.get("inmem_merge_s", {}) if timed.straight else {}
        mine["copy_s"] = {**written, "network_s_per_byte": float(timed.sent_bytes)}
    return {part: (timed.seconds[part], t) for part, t in mine.items() if any(t.values())}


def _timed(
    task: MapTimes | ReduceTimes, attempt: TaskAttempt, observation: Observation
) -> Timed | None:
    trace = observation.trace
    if isinstance(task, ReduceTimes):
        return _reduce(task, attempt, trace.num_maps)
    return _map_only(task, attempt) if trace.num_reduces == 0 else _map(task, attempt)


def _map(task: MapTimes, attempt: TaskAttempt) -> Timed | None:
    spilled = sum(s.records or 0 for s in task.spills)
    loop = _loop(task, attempt)
    if loop is None or task.merge_s is None or spilled != _count(attempt, "MAP_OUTPUT_RECORDS"):
        return None
    flushed = math.fsum(s.duration_s for s in task.spills if s.last)
    parts = _with_output(loop, "collect_s")
    parts["map_cleanup_s"] -= flushed
    if task.spills:
        parts["spill_sort_s"] = math.fsum(s.sort_s or 0.0 for s in task.spills)
        parts["spill_write_s"] = math.fsum(
            (s.combine_s or 0.0) + (s.write_s or 0.0) for s in task.spills
        )
    if len(task.spills) > 1:  # a single one is renamed
        parts["map_merge_s"] = task.merge_s
        parts["map_cleanup_s"] -= task.merge_s
    return Timed(parts)


def _map_only(task: MapTimes, attempt: TaskAttempt) -> Timed | None:
    """Closing the writer comes behind the record loop, and so counts as cleaning up."""
    loop = _loop(task, attempt)
    return None if loop is None else Timed(_with_output(loop, "map_write_s"))


def _loop(task: MapTimes, attempt: TaskAttempt) -> dict[str, float] | None:
    """Parts that every map has, with its output as `output`; `map_cleanup_s` is all behind them."""
    told = (task.start_up_s, task.alone_s, task.spilling_s, task.read_s, task.blocked_s)
    known = [seconds for seconds in told if seconds is not None]
    if len(known) < len(told) or task.records != _count(attempt, "MAP_INPUT_RECORDS"):
        return None
    start_up, alone, spilling, read, blocked = known
    mapping = alone + spilling - read
    # An estimate, and no more than what it is a part of.
    output = min(task.collect_s or 0.0, mapping)
    return {
        "map_setup_s": start_up,
        "map_read_s": read,
        "map_function_s": mapping - output,
        "output": output,
        "map_cleanup_s": attempt.duration_s - start_up - alone - spilling - blocked,
    }


def _with_output(loop: dict[str, float], name: str) -> dict[str, float]:
    return {name if part == "output" else part: seconds for part, seconds in loop.items()}


def _reduce(task: ReduceTimes, attempt: TaskAttempt, maps: int) -> Timed | None:
    told = (task.start_up_s, task.shuffle_s, task.read_s, task.function_s, task.write_s)
    known = [seconds for seconds in told if seconds is not None]
    whole = task.records == _count(attempt, "REDUCE_INPUT_RECORDS")
    copied = len(task.segments) == _count(attempt, "SHUFFLED_MAPS", maps)
    if len(known) < len(told) or not (whole and copied):
        return None
    start_up, shuffle, read, function, write = known
    copying = covered([(s.start_s, s.finish_s) for s in task.segments], _EVERYWHERE)
    visiting = covered(
        [(s.start_s - (s.connect_s or 0.0), s.finish_s) for s in task.segments], _EVERYWHERE
    )
    parts = {
        "reduce_setup_s": start_up + visiting - copying,
        "copy_s": copying,
        "reduce_function_s": read + function,
        "reduce_write_s": write,
        "reduce_cleanup_s": attempt.duration_s - start_up - shuffle - read - function - write,
    }
    straight = any(s.to == "disk" for s in task.segments)
    merges = _merges(task)
    if straight:
        parts["copy_s"] += merges.pop("inmem_merge_s", 0.0)
    return Timed(parts | merges, sum(s.sent_bytes for s in task.segments), straight)


_MERGES = {"inmem_merge_s": "memory", "ondisk_merge_s": "disk", "reduce_merge_s": "final"}


def _merges(task: ReduceTimes) -> dict[str, float]:
    """Seconds of each kind of merge that there was."""
    found = {}
    for part, kind in _MERGES.items():
        seconds = [m.finish_s - m.start_s for m in task.merges if m.kind == kind]
        if seconds:
            found[part] = math.fsum(seconds)
    return found


def _count(attempt: TaskAttempt, counter: str, absent: int = 0) -> int:
    return attempt.counters.get(f"{TASK_COUNTER}.{counter}", absent)
