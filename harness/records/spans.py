"""
What happened inside one task JVM, as the tracer recorded it.

Times are seconds since the epoch (the node's clock), durations are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

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
    disk).
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

    def named(self, *names: str) -> tuple[Span, ...]:
        """Spans of these names, in their order."""
        return tuple(span for span in self.spans if span.name in names)


class UnitTimes(NamedTuple):
    """Seconds of each unit of so many records of one attempt, in their order."""

    attempt_id: str
    unit_records: int
    seconds: tuple[float, ...]
