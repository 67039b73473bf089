"""
Spans of a task gathered into rows: one for each kind of span at its place in the nesting.

A map task has hundreds of combines and a reduce thousands of copies; what is wanted of them is how
many, how long in all, and where in time.
"""

from __future__ import annotations

import re

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.records.spans import RecordLoop, Span, TaskSpans
from harness.records.trace import TaskAttempt

Path = tuple[str, ...]

_NUMBERED = re.compile(r"[#-]?\d+$")
_NAMES = {
    "main": "process",
    "task": "task",
    "reader_open": "open the input",
    "collector_open": "set up the buffer",
    "map_loop": "map loop",
    "reader_close": "close the input",
    "collector_close": "close the output",
    "blocked": "blocked: buffer full",
    "write_file": "write",
    "done": "report done",
    "spill_single": "spill of one record",
    "merge_pass": "merge pass",
    "run_mapper": "mapper",
    "run_reducer": "reducer",
    "events": "ask for map outputs",
    "visit": "visit a host",
    "segment": "copy a segment",
    "wait_memory": "wait for memory",
    "stall": "no memory for a segment",
    "memory_merge": "merge in memory",
    "disk_merge": "merge on disk",
    "close_merges": "end the merges",
    "final_merge": "final merge",
    "writer_close": "close the output",
    "reduce_combine": "combine",
    "reduce_loop": "reduce loop",
    "configuration": "read the configuration",
    "get_task": "ask for the task",
    "configure_task": "configure the task",
    "local_folders": "find local folders",
    "job_file": "write job.xml",
    "file_system": "make a file system",
    "split": "read the split",
    "writer_open": "open the output",
    "shuffle_open": "set up the shuffle",
    "shut_down": "shut down",
}


@dataclass
class Row:
    """
    Spans of one kind at one place.

    *threads* is a thread, or a kind of thread and how many of them there were.  *wall_s* is the sum
    over all spans, *cpu_s* `None` where it was not told.  A row without intervals is a sum over
    records; *sampled* says that it is an estimate.
    """

    threads: str
    depth: int
    name: str
    count: int = 0
    wall_s: float = 0.0
    cpu_s: float | None = None
    amount: int = 0
    open: bool = False
    sampled: bool = False
    intervals: list[tuple[float, float]] = field(default_factory=list)


def rows(task: TaskSpans, attempt: TaskAttempt | None = None) -> list[Row]:
    """
    Rows of *task*, thread after thread, inner spans below outer ones.

    With its *attempt* of the job history the launch, the start of the JVM and what came after its
    last span are rows, too.
    """
    found: dict[tuple[str, Path], Row] = {}
    threads: dict[str, set[str]] = {}
    paths: list[Path] = []
    for span in task.spans:
        outer = paths[span.parent] if span.parent >= 0 else ()
        paths.append((*outer, span.name))
        kind = _NUMBERED.sub("", span.thread)
        threads.setdefault(kind, set()).add(span.thread)
        key = kind, paths[-1]
        row = found.setdefault(key, Row(kind, len(outer), _NAMES.get(span.name, span.name)))
        _add(row, span)
    ordered = _nested(found)
    for row in ordered:
        count = len(threads[row.threads])
        row.threads = f"{row.threads} (x{count})" if count > 1 else row.threads
    ordered = list(_with_loop(ordered, task.loop))
    mains = sum(row.threads == "main" for row in ordered)
    return [*_before(task, attempt), *ordered[:mains], *_after(task, attempt), *ordered[mains:]]


def _add(row: Row, span: Span) -> None:
    row.count += 1
    row.wall_s += span.wall_s
    row.amount += span.amount
    row.open = row.open or span.open
    row.intervals.append((span.start_s, span.finish_s))
    if span.cpu_s is not None:
        row.cpu_s = (row.cpu_s or 0.0) + span.cpu_s


def _nested(found: dict[tuple[str, Path], Row]) -> list[Row]:
    """Main thread first; below each row, in the order of their first span, the rows within it."""
    children: dict[tuple[str, Path], list[tuple[str, Path]]] = {}
    for thread, path in found:
        children.setdefault((thread, path[:-1]), []).append((thread, path))
    first = [key for key in children if not key[1]]
    ordered: list[Row] = []
    waiting = [key for top in sorted(first, key=_main_first) for key in children[top]][::-1]
    while waiting:
        key = waiting.pop()
        ordered.append(found[key])
        waiting += children.get(key, [])[::-1]
    return ordered


def _main_first(key: tuple[str, Path]) -> bool:
    return key[0] != "main"


def _with_loop(ordered: list[Row], loop: RecordLoop) -> Iterable[Row]:
    """Put the sums over records below the span of their loop."""
    parts = {"map loop": _map_sums, "reduce loop": _reduce_sums}
    for row in ordered:
        yield row
        if row.name in parts and loop.records:
            yield from parts[row.name](loop, row)


def _map_sums(loop: RecordLoop, row: Row) -> Iterable[Row]:
    split, calls = "read_s" in loop.sampled, "output_s" in loop.sampled
    alone = loop.records - loop.overlapped
    yield _sum(row, "read", loop.read_s, loop.records, sampled=split)
    yield _sum(row, "map, no spill running", loop.function_s, alone, sampled=split)
    if loop.overlapped:
        yield _sum(row, "map while spilling", loop.spilling_s, loop.overlapped)
    if loop.outputs:
        yield _sum(row, "of both: collect", loop.output_s, loop.outputs, sampled=calls)


def _reduce_sums(loop: RecordLoop, row: Row) -> Iterable[Row]:
    split, calls = "read_s" in loop.sampled, "output_s" in loop.sampled
    yield _sum(row, "read and merge", loop.read_s, loop.records, sampled=split)
    rest = max(loop.function_s - loop.output_s, 0.0)
    yield _sum(row, "reduce", rest, loop.records, sampled=split or calls)
    yield _sum(row, "write", loop.output_s, loop.outputs, sampled=calls)


def _sum(row: Row, name: str, wall_s: float, count: int, *, sampled: bool = False) -> Row:
    return Row(row.threads, row.depth + 1, name, count, wall_s, sampled=sampled)


def _before(task: TaskSpans, attempt: TaskAttempt | None) -> list[Row]:
    main = min((s.start_s for s in task.spans), default=task.opened_s)
    born = task.process_start_s
    parts = []
    if attempt and born:
        parts.append(("launch the container", attempt.start_s, born))
    if born:
        parts.append(("start the JVM", born, main))
    return [_piece(name, start, end) for name, start, end in parts if end > start]


def _after(task: TaskSpans, attempt: TaskAttempt | None) -> list[Row]:
    end = max((s.finish_s for s in task.spans), default=task.opened_s)
    if attempt is None or attempt.finish_s <= end:
        return []
    seen = "the end was seen" if attempt.state == "succeeded" else f"it was seen as {attempt.state}"
    return [_piece(f"until {seen}", end, attempt.finish_s)]


def _piece(name: str, start: float, end: float) -> Row:
    return Row("main", 0, name, 1, end - start, intervals=[(start, end)])
