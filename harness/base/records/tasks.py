"""
What happened inside tasks: as the tracer recorded it, as their own logs say it, and part by part.

Recordings and logs hold moments and amounts, and nothing inferred from them; `MapTimes` and
`ReduceTimes` hold the seconds of each part of a task, from either source.  Times are seconds since
the epoch by the node's clock, durations are seconds; `None` is what a source does not show.
"""

from __future__ import annotations

import math

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Source = Literal["spans", "logs"]
Interval = tuple[float, float]

# What a span is called, by the number that the recorder writes.
SPAN_NAMES: dict[int, str] = {
    1: "main", 2: "task", 3: "run_mapper", 4: "reader_open", 5: "collector_open", 6: "map_loop",
    7: "reader_close", 8: "collector_close", 9: "flush", 10: "blocked", 11: "spill", 12: "sort",
    13: "combine", 14: "merge", 15: "write_file", 16: "done", 17: "commit", 18: "spill_single",
    19: "merge_pass", 20: "configuration", 21: "metrics", 22: "login", 23: "get_task",
    24: "configure_task", 25: "local_folders", 26: "job_file", 27: "file_system", 28: "initialize",
    29: "split", 30: "shuffle", 31: "events", 32: "visit", 33: "connect", 34: "segment",
    35: "wait_memory", 36: "stall", 37: "memory_merge", 38: "disk_merge", 39: "close_merges",
    40: "final_merge", 41: "run_reducer", 42: "writer_close", 43: "reduce_combine",
    44: "reduce_loop", 45: "writer_open", 46: "shuffle_open", 47: "shut_down", 100: "workload",
}  # fmt: skip


class Span(NamedTuple):
    """
    One piece of work of one thread.

    *cpu_s* is the thread's CPU time within it, `None` where it was not read.  *parent* is the
    place, among the task's spans, of the span around it, -1 for the outermost.  An *open* span was
    not over when the JVM ended; its duration reaches to the last moment in the file.
    *amount* is what the kind counts (records of a sort, bytes of a segment), *text* and *details*
    what else was recorded of it.
    """

    name: str
    thread: str
    start_s: float
    wall_s: float
    cpu_s: float | None
    parent: int
    open: bool = False
    amount: int = 0
    text: str = ""
    details: tuple[int, ...] = ()

    @property
    def finish_s(self) -> float:
        """When it ended."""
        return self.start_s + self.wall_s


@dataclass(frozen=True, slots=True)
class RecordLoop:
    """
    Counts and sums of a task's loop over its records.

    Of a map, *function_s* is the map function with collecting and without being blocked, apart for
    the time while no spill ran and while one did; *overlapped* are the records of the latter.  Of a
    reduce, *function_s* is the reduce function with writing.  *output_s* is the part of collecting
    or writing: exact where *output_samples* is 0, else an estimate from so many samples.  So it is
    with what of the loop is *read_s* and what *function_s*, and *read_samples*; their sum is exact.
    """

    records: int
    read_s: float
    function_s: float
    spilling_s: float
    spilling_read_s: float
    overlapped: int
    outputs: int
    output_s: float
    output_samples: int
    blocked_s: float
    blocked: int
    histogram: tuple[int, ...]
    read_samples: int = 0

    @property
    def sampled(self) -> tuple[str, ...]:
        """Names of the times that are estimates."""
        reads = ("read_s", "function_s") if self.read_samples else ()
        return (*reads, "output_s") if self.output_samples else reads


@dataclass(frozen=True, slots=True)
class TaskSpans:
    """
    The recording of one task attempt.

    *process_start_s* is when the JVM's process started, `None` where the recorder did not see it.
    *opening_s* is what opening the recorder took; *lost* counts spans for which the file had no
    room.  *state* is ``closed``, ``open`` (the JVM was killed) or ``given up`` (no space on the
    disk).  *cpu_at_main_s* and *cpu_at_end_s* are processor seconds of the process since it was
    forked, in all its threads and ended children, when the recorder opened and when it closed;
    `None` where they were not read.
    """

    attempt_id: str
    state: Literal["open", "closed", "given up"]
    opened_s: float
    process_start_s: float | None
    opening_s: float
    lost: int
    unit_records: int
    loop: RecordLoop
    spans: tuple[Span, ...]
    cpu_at_main_s: float | None = None
    cpu_at_end_s: float | None = None

    def named(self, *names: str) -> tuple[Span, ...]:
        """Spans of these names, in their order."""
        return tuple(span for span in self.spans if span.name in names)


class ProcessCpu(NamedTuple):
    """
    Processor seconds of a task's process.

    *boot_s* until its main method begins, the container's launch script in it; *total_s* until its
    end; *helpers_s* of what is left of that without the spans of its threads: compiler, garbage
    collector.
    """

    boot_s: float
    total_s: float
    helpers_s: float | None


class UnitTimes(NamedTuple):
    """Seconds of each unit of so many records of one attempt, in their order."""

    attempt_id: str
    unit_records: int
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SpillLog:
    """
    One spill of a map task; *last* is the one that the flush makes on the main thread.

    *records* and *buffer_bytes* were taken from the buffer.  From its start to *reset_s*, when its
    space was given back, the map function emitted *collected* records; there was room for
    *room_records* by the metadata and for *room_bytes* of keys and values.
    """

    start_s: float
    finish_s: float
    last: bool
    records: int | None = None
    buffer_bytes: int | None = None
    collected: int | None = None
    reset_s: float | None = None
    room_records: int | None = None
    room_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TaskLog:
    """
    The ``syslog`` of a map or a reduce.

    *split_s*: the input split is read; *collector_s*: the sort buffer stands, mapping begins;
    *flush_s*: mapping is over.  *large_records* were spilled one by one, for they do not fit the
    buffer.  The merge read *merged_bytes* (uncompressed) in *merge_passes* besides the last one.
    *shuffle_s*: a reduce has its shuffle.  *done_s*: the task's work is over; *allowed_s*: it may
    commit its output; *saved_s*: it has; *ended_s*: the master knows.
    """

    attempt_id: str = ""
    split_s: float | None = None
    collector_s: float | None = None
    flush_s: float | None = None
    spills: tuple[SpillLog, ...] = ()
    large_records: int = 0
    merge_passes: int = 0
    merged_bytes: int = 0
    shuffle_s: float | None = None
    done_s: float | None = None
    allowed_s: float | None = None
    saved_s: float | None = None
    ended_s: float | None = None


@dataclass(frozen=True, slots=True)
class CopyLog:
    """One map output as a fetcher copied it; *visit* is its place among the visits, -1 for none."""

    map_attempt: str
    sent_bytes: int
    raw_bytes: int
    to: Literal["memory", "disk"]
    start_s: float
    finish_s: float
    visit: int = -1


@dataclass(frozen=True, slots=True)
class VisitLog:
    """One connection of a fetcher to a node, for one or more map outputs."""

    host: str
    start_s: float
    finish_s: float


@dataclass(frozen=True, slots=True)
class ShuffleLog:
    """
    The ``syslog.shuffle`` of a reduce.

    *begin_s*: fetching begins; *copied_s*: the last map output is there; *merged_s*: what is left
    of merging belongs to the reduce function.  *full_s* are the moments at which a fetcher found
    no memory for a map output.
    """

    begin_s: float | None = None
    copied_s: float | None = None
    merged_s: float | None = None
    copies: tuple[CopyLog, ...] = ()
    visits: tuple[VisitLog, ...] = ()
    merges: tuple[MergeTimes, ...] = ()
    full_s: tuple[float, ...] = ()


def covered_s(intervals: Iterable[Interval], within: Interval = (-math.inf, math.inf)) -> float:
    """Seconds of *within* that one or more of *intervals*, each a start and a finish, cover."""
    total_s = 0.0
    reached_s = within[0]
    for start_s, finish_s in sorted(intervals):
        left_s = max(start_s, reached_s)
        right_s = min(finish_s, within[1])
        if right_s > left_s:
            total_s = total_s + right_s - left_s
            reached_s = right_s
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
    (the last spill in it), *end_s* from the merge (of a map-only job, the record loop) to the end.
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
    sampled: tuple[str, ...] = ()
    process: ProcessCpu | None = None


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
    """
    One merge of a reduce: of segments in memory, of files on disk, or the final one.

    *bytes* is the size of the file that it wrote.
    """

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
    sampled: tuple[str, ...] = ()
    process: ProcessCpu | None = None


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
