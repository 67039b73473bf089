"""
Seconds of each part of a task, from the tracer's recording (spans) or from the task's own log.

Durations are wall time; `None` is what a source does not show.  *sampled* names the fields that
are estimates.
"""

from __future__ import annotations

import math

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Source = Literal["spans", "logs"]
Interval = tuple[float, float]


def covered_s(intervals: Iterable[Interval], within: Interval = (-math.inf, math.inf)) -> float:
    """Seconds of *within* that one or more of *intervals*, each a start and a finish, cover."""
    total_s, reached_s = 0.0, within[0]
    for start_s, finish_s in sorted(intervals):
        left_s, right_s = max(start_s, reached_s), min(finish_s, within[1])
        if right_s > left_s:
            total_s, reached_s = total_s + right_s - left_s, right_s
    return total_s


@dataclass(frozen=True, slots=True)
class SpillTimes:
    """
    One spill of a map task.

    *last* is the one that the flush makes on the main thread, overlapped by nothing.  *records* and
    *buffer_bytes* were taken from the buffer, *file_bytes* written.  *overlapped* are the records
    that were mapped while it ran.  *sort_s*, *combine_s* and *write_s* are its parts; combining and
    writing are one in what a log shows.
    """

    start_s: float
    finish_s: float
    last: bool
    records: int | None = None
    buffer_bytes: int | None = None
    file_bytes: int | None = None
    overlapped: int | None = None
    sort_s: float | None = None
    combine_s: float | None = None
    write_s: float | None = None

    @property
    def duration_s(self) -> float:
        """How long it ran."""
        return self.finish_s - self.start_s


@dataclass(frozen=True, slots=True)
class MapTimes:
    """
    A map task.

    *alone_s* and *spilling_s* are the main thread's time in the record loop (reading, mapping and
    collecting, without being blocked) while no spill ran and while one did, *alone_records* and
    *spilling_records* the input records of each.  *read_s* and *collect_s* are parts of their sum.
    *loop_s* is all that the mapper ran, with its set-up, its clean-up and what it was blocked.
    *start_up_s* lasts from the launch to the record loop, *flush_s* from its end to the merge
    (the last spill in it), *end_s* from the merge to the end.
    """

    attempt_id: str
    source: Source
    host: str
    records: int
    spills: tuple[SpillTimes, ...]
    start_up_s: float | None = None
    alone_s: float | None = None
    alone_records: int | None = None
    spilling_s: float | None = None
    spilling_records: int | None = None
    loop_s: float | None = None
    read_s: float | None = None
    collect_s: float | None = None
    blocked_s: float | None = None
    flush_s: float | None = None
    merge_s: float | None = None
    end_s: float | None = None
    cpu_s: float | None = None
    sampled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentTimes:
    """One map output copied by a reduce: sizes in bytes as sent and unpacked, and where it went."""

    map_attempt: str
    host: str
    sent_bytes: int
    raw_bytes: int
    to: Literal["memory", "disk"]
    start_s: float
    finish_s: float
    connect_s: float | None = None


@dataclass(frozen=True, slots=True)
class MergeTimes:
    """One merge of a reduce: of segments in memory, of files on disk, or the final one."""

    kind: Literal["memory", "disk", "final"]
    start_s: float
    finish_s: float
    segments: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReduceTimes:
    """
    A reduce task.

    *waited_s* is the time in which the shuffle had nothing to copy, *stalled_s* that in which it
    had no memory for a segment.  *read_s* (with the last, lazy merge), *function_s* and *write_s*
    are parts of the loop over its records, *loop_s* all of it.
    """

    attempt_id: str
    source: Source
    host: str
    records: int
    segments: tuple[SegmentTimes, ...]
    merges: tuple[MergeTimes, ...]
    start_up_s: float | None = None
    shuffle_s: float | None = None
    waited_s: float | None = None
    stalled_s: float | None = None
    read_s: float | None = None
    function_s: float | None = None
    write_s: float | None = None
    loop_s: float | None = None
    commit_s: float | None = None
    end_s: float | None = None
    cpu_s: float | None = None
    sampled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceComparison:
    """
    A statistic of tasks from both sources, over the tasks that have it from both.

    *text* says what it is, *ratio* is *logs* / *spans*, *spread* the standard deviation of the
    *count* tasks' own ratios (of those whose spans are not 0).
    """

    name: str
    text: str
    spans: float
    logs: float
    ratio: float
    spread: float
    count: int
