"""
What is told of the inside of tasks: each statistic as a ratio, by name.

Names are those of ``docs/models/prophet.md``, section 2.1, where it has one.

``spill_bytes_selectivity`` is Prophet's `combine_bytes_selectivity`: combiner and compression
together, while What-If's statistic of that name holds no compression.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from harness.profiling.dataflow import Pair
from harness.profiling.spans import covered
from harness.records.task_times import MapTimes, ReduceTimes, SegmentTimes, SpillTimes
from harness.records.trace import TASK_COUNTER

Counters = Mapping[str, int]
Task = TypeVar("Task", MapTimes, ReduceTimes)
_Maybe = float | None


@dataclass(frozen=True, slots=True)
class TaskStatistic(Generic[Task]):
    """
    A statistic of the tasks of one kind as numerator and denominator of one task.

    *time* says which of the two is a time, *codec* whose compression it depends on.  *of* names the
    field that it rests on, for a source may only estimate that.  Not *kept*: it follows from the
    job's configuration, so it serves to compare sources and is no part of a profile.
    """

    text: str
    pair: Callable[[Task, Counters], tuple[_Maybe, _Maybe]]
    time: Literal["top", "bottom", ""] = "top"
    codec: Literal["map_output", "output", ""] = ""
    of: str = ""
    kept: bool = True


def _spills(
    part: Callable[[SpillTimes], _Maybe], per: Callable[[SpillTimes], _Maybe]
) -> Callable[[MapTimes, Counters], tuple[_Maybe, _Maybe]]:
    """Sums over the spills of which both are known."""

    def pair(task: MapTimes, _: Counters) -> Pair:
        told = [(part(s), per(s)) for s in task.spills]
        known = [(top, bottom) for top, bottom in told if top is not None and bottom is not None]
        return math.fsum(top for top, _ in known), math.fsum(bottom for _, bottom in known)

    return pair


def _spill_bytes(task: MapTimes, counters: Counters) -> tuple[_Maybe, _Maybe]:
    taken = [s.buffer_bytes for s in task.spills]
    emitted = counters.get(f"{TASK_COUNTER}.MAP_OUTPUT_BYTES")
    return _sum(s.file_bytes for s in task.spills), _sum(taken) if None not in taken else emitted


def _map_merge(task: MapTimes, _: Counters) -> tuple[_Maybe, _Maybe]:
    """A single spill is the output: nothing is merged."""
    read = _sum(s.file_bytes for s in task.spills) if len(task.spills) > 1 else None
    return task.merge_s, read


def _sum(values: Iterable[_Maybe]) -> _Maybe:
    """Sum, `None` where a part is not known."""
    known = list(values)
    return None if any(v is None for v in known) else math.fsum(v or 0.0 for v in known)


MAP: dict[str, TaskStatistic[MapTimes]] = {
    "map_s_per_record": TaskStatistic(
        "map function with reading and collecting, no spill running / records",
        lambda m, _: (m.alone_s, m.alone_records),
        of="alone_s",
    ),
    "map_while_spilling_s_per_record": TaskStatistic(
        "map function with reading and collecting, a spill running / records",
        lambda m, _: (m.spilling_s, m.spilling_records),
        codec="map_output",
        of="spilling_s",
    ),
    "read_s_per_record": TaskStatistic("reading / records", lambda m, _: (m.read_s, m.records)),
    "collect_s_per_record": TaskStatistic(
        "collecting / map output records",
        lambda m, c: (m.collect_s, c.get(f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS")),
        of="collect_s",
    ),
    "sort_s_per_record": TaskStatistic(
        "sorting in spills / their records", _spills(lambda s: s.sort_s, lambda s: s.records)
    ),
    # The combiner writes as it goes, so its time holds the codec's.
    "combine_s_per_record": TaskStatistic(
        "combining in spills / their records",
        _spills(lambda s: s.combine_s, lambda s: s.records),
        codec="map_output",
    ),
    "spill_write_s_per_byte": TaskStatistic(
        "writing of spills / bytes of their files",
        _spills(lambda s: s.write_s, lambda s: s.file_bytes),
        codec="map_output",
    ),
    "spill_s_per_record": TaskStatistic(
        "whole spills / their records",
        _spills(lambda s: s.duration_s, lambda s: s.records),
        codec="map_output",
    ),
    "spill_bytes_selectivity": TaskStatistic(
        "bytes of spill files / bytes taken from the buffer",
        _spill_bytes,
        time="",
        codec="map_output",
    ),
    "map_merge_s_per_byte": TaskStatistic(
        "merging of spills / bytes of their files", _map_merge, codec="map_output"
    ),
    "map_startup_s": TaskStatistic("launch to map function", lambda m, _: (m.start_up_s, 1)),
    "map_end_s": TaskStatistic("merge to end", lambda m, _: (m.end_s, 1)),
    "map_flush_s": TaskStatistic("flush", lambda m, _: (m.flush_s, 1), kept=False),
    "map_blocked_s": TaskStatistic(
        "blocked on the full buffer", lambda m, _: (m.blocked_s, 1), of="blocked_s", kept=False
    ),
    "map_overlap_share": TaskStatistic(
        "records mapped while a spill ran / records",
        lambda m, _: (m.spilling_records, m.records),
        time="",
        kept=False,
    ),
}


def _copies(part: Callable[[SegmentTimes], float]) -> Callable[[ReduceTimes], float]:
    return lambda r: math.fsum(part(s) for s in r.segments)


_SENT = _copies(lambda s: s.sent_bytes)
_COPYING = _copies(lambda s: s.finish_s - s.start_s + (s.connect_s or 0.0))


def _busy(task: ReduceTimes) -> float:
    """Seconds in which one or more map outputs were on their way."""
    return covered([(s.start_s, s.finish_s) for s in task.segments], (-math.inf, math.inf))


def _merges(kind: str) -> Callable[[ReduceTimes, Counters], Pair]:
    def pair(task: ReduceTimes, _: Counters) -> Pair:
        known = [(m.finish_s - m.start_s, m.bytes) for m in task.merges if m.kind == kind]
        told = [(seconds, size) for seconds, size in known if size is not None]
        return math.fsum(seconds for seconds, _ in told), float(sum(size for _, size in told))

    return pair


def _loop(task: ReduceTimes, _: Counters) -> tuple[_Maybe, _Maybe]:
    told = task.loop_s
    if told is None:
        told = _sum((task.read_s, task.function_s, task.write_s))
    return told, task.records


def _final_merge(task: ReduceTimes, _: Counters) -> tuple[_Maybe, _Maybe]:
    final = [m.finish_s - m.start_s for m in task.merges if m.kind == "final"]
    return math.fsum(final), len(final)


REDUCE: dict[str, TaskStatistic[ReduceTimes]] = {
    "reduce_startup_s": TaskStatistic("launch to shuffle", lambda r, _: (r.start_up_s, 1)),
    "copy_s_per_byte": TaskStatistic(
        "connecting and copying of each fetcher / bytes sent",
        lambda r, _: (_COPYING(r), _SENT(r)),
        codec="map_output",
    ),
    "shuffle_bytes_per_s": TaskStatistic(
        "bytes sent / time in which map outputs were on their way",
        lambda r, _: (_SENT(r), _busy(r)),
        time="bottom",
        codec="map_output",
    ),
    "memory_merge_s_per_byte": TaskStatistic(
        "memory merges / bytes written", _merges("memory"), codec="map_output"
    ),
    "disk_merge_s_per_byte": TaskStatistic(
        "disk merges / bytes written", _merges("disk"), codec="map_output"
    ),
    "reduce_read_s_per_record": TaskStatistic(
        "reading with the last merge / records", lambda r, _: (r.read_s, r.records), of="read_s"
    ),
    "reduce_s_per_record": TaskStatistic(
        "reduce function / records", lambda r, _: (r.function_s, r.records), of="function_s"
    ),
    "reduce_write_s_per_record": TaskStatistic(
        "writing / output records",
        lambda r, c: (r.write_s, c.get(f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS")),
        codec="output",
        of="write_s",
    ),
    "reduce_loop_s_per_record": TaskStatistic(
        "reading, reduce function and writing / records", _loop, codec="output"
    ),
    "reduce_commit_s": TaskStatistic("commit", lambda r, _: (r.commit_s, 1)),
    "reduce_end_s": TaskStatistic("reduce function to end", lambda r, _: (r.end_s, 1)),
    "shuffle_s": TaskStatistic("shuffle", lambda r, _: (r.shuffle_s, 1), kept=False),
    "shuffle_waited_s": TaskStatistic("nothing to copy", lambda r, _: (r.waited_s, 1), kept=False),
    "shuffle_stalled_s": TaskStatistic(
        "no memory for a map output", lambda r, _: (r.stalled_s, 1), kept=False
    ),
    "final_merge_s": TaskStatistic("final merge", _final_merge, kept=False),
}
