"""
A recorded task as bars over time, a job's tasks as a list, and both as Chrome's trace events.

Bars and lists are plain text, without escapes.  A row stands for all spans of one kind at one place
in the nesting: of thousands of copies one wants to know how many, how long in all, and when.
"""

from __future__ import annotations

import itertools
import math
import re

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.base.documents.wording import aligned, by_number, one_line
from harness.base.records.tasks import RecordLoop, Span, TaskSpans
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.units import format_duration

# A kind of thread, and the names of the spans around a span with its own.
Place = tuple[str, tuple[str, ...]]

_NUMBERED = re.compile(r"[#-]?\d+$")
_NAMES = {
    "main": "process",
    "configuration": "read the configuration",
    "get_task": "ask for the task",
    "configure_task": "configure the task",
    "local_folders": "find local folders",
    "job_file": "write job.xml",
    "file_system": "make a file system",
    "split": "read the split",
    "reader_open": "open the input",
    "reader_close": "close the input",
    "collector_open": "set up the buffer",
    "collector_close": "close the output",
    "writer_open": "open the output",
    "writer_close": "close the output",
    "run_mapper": "mapper",
    "map_loop": "map loop",
    "blocked": "blocked: buffer full",
    "spill_single": "spill of one record",
    "write_file": "write",
    "merge_pass": "merge pass",
    "run_reducer": "reducer",
    "reduce_loop": "reduce loop",
    "reduce_combine": "combine",
    "shuffle_open": "set up the shuffle",
    "events": "ask for map outputs",
    "visit": "visit a host",
    "segment": "copy a segment",
    "wait_memory": "wait for memory",
    "stall": "no memory for a segment",
    "memory_merge": "merge in memory",
    "disk_merge": "merge on disk",
    "close_merges": "end the merges",
    "final_merge": "final merge",
    "done": "report done",
    "shut_down": "shut down",
}
_SHADES = " ░▒▓█"
_SPAN_ARGS = ("amount", "text", "details", "open")  # of an event of Chrome's
_LEAST_BAR = 20


@dataclass
class Row:
    """
    Spans of one kind at one place.

    *threads* is a thread, or a kind of thread and how many of them there were.  *wall_s* is the sum
    over all spans, *cpu_s* `None` where it was not recorded.  A row without intervals is a sum over
    records; *sampled* says that it is an estimate.
    """

    threads: str
    depth: int
    name: str
    count: int = 0
    wall_s: float = 0.0
    cpu_s: float | None = None
    open: bool = False
    sampled: bool = False
    intervals: list[tuple[float, float]] = field(default_factory=list)

    def add(self, span: Span) -> None:
        """Count *span* in, whose name and place are those of the row."""
        self.count += 1
        self.wall_s += span.wall_s
        self.open = self.open or span.open
        self.intervals.append((span.start_s, span.finish_s))
        if span.cpu_s is not None:
            self.cpu_s = (self.cpu_s or 0.0) + span.cpu_s

    def texts(self) -> tuple[str, str, str, str]:
        """Name, number of spans, wall and CPU time."""
        name = "  " * (self.depth + 1) + one_line(self.name)
        count = f"{self.count:,}" if self.count > 1 else ""
        wall = ("~" if self.sampled else "") + format_duration(self.wall_s)
        cpu = "" if self.cpu_s is None else format_duration(self.cpu_s)
        return name, count, wall, cpu


def rows(task: TaskSpans, attempt: TaskAttempt | None = None) -> list[Row]:
    """
    Rows of *task*, thread after thread, inner spans below outer ones.

    With its *attempt* of the job history the launch, the start of the JVM and what came after its
    last span are rows, too.
    """
    by_place: dict[Place, Row] = {}
    threads: dict[str, set[str]] = {}
    paths: list[tuple[str, ...]] = []
    for span in task.spans:
        outer = paths[span.parent] if span.parent >= 0 else ()
        paths.append((*outer, span.name))
        kind = _NUMBERED.sub("", span.thread)
        threads.setdefault(kind, set()).add(span.thread)
        span_row = by_place.setdefault(
            (kind, paths[-1]), Row(kind, len(outer), _NAMES.get(span.name, span.name))
        )
        span_row.add(span)
    ordered: list[Row] = []
    for place in nested_places(by_place):
        span_row = by_place[place]
        count = len(threads[place[0]])
        if count > 1:
            span_row.threads = f"{span_row.threads} (x{count})"
        ordered += [span_row, *_record_sums(span_row, task.loop)]
    mains = sum(span_row.threads == "main" for span_row in ordered)
    before = rows_before(task, attempt)
    after = rows_after(task, attempt)
    return [*before, *ordered[:mains], *after, *ordered[mains:]]


def nested_places(places: Iterable[Place]) -> Iterator[Place]:
    """Places of the main thread first; below each, in the order given, those within it."""
    children: dict[Place, list[Place]] = {}
    for thread, path in places:
        children.setdefault((thread, path[:-1]), []).append((thread, path))
    outermost = sorted((key for key in children if not key[1]), key=lambda key: key[0] != "main")
    waiting = list(itertools.chain.from_iterable(children[key] for key in outermost))
    waiting.reverse()
    while waiting:
        place = waiting.pop()
        yield place
        waiting += reversed(children.get(place, []))


def rows_before(task: TaskSpans, attempt: TaskAttempt | None) -> Iterator[Row]:
    """The launch of the container, as far as it is known, and the start of the JVM."""
    process_start = task.process_start_s
    if not process_start:
        return
    if attempt and process_start > attempt.start_s:
        yield _whole_row("launch the container", attempt.start_s, process_start)
    main_start = min((span.start_s for span in task.spans), default=task.opened_s)
    if main_start > process_start:
        yield _whole_row("start the JVM", process_start, main_start)


def rows_after(task: TaskSpans, attempt: TaskAttempt | None) -> Iterator[Row]:
    """What came between the last span and the end that the application master saw."""
    main_end = max((span.finish_s for span in task.spans), default=task.opened_s)
    if attempt is not None and attempt.finish_s > main_end:
        done = attempt.state == "succeeded"
        seen = "the end was seen" if done else f"it was seen as {attempt.state}"
        yield _whole_row(f"until {seen}", main_end, attempt.finish_s)


def _whole_row(name: str, start: float, end: float) -> Row:
    """A row of the main thread for what has no span."""
    return Row("main", 0, name, 1, end - start, intervals=[(start, end)])


def _record_sums(span_row: Row, loop: RecordLoop) -> Iterable[Row]:
    """Sums over records, below the span of their loop."""
    split = "read_s" in loop.sampled
    calls = "output_s" in loop.sampled
    sums: list[tuple[str, float, int, bool]] = []
    if span_row.name == "map loop" and loop.records:
        alone = loop.records - loop.overlapped
        sums.append(("read", loop.read_s, loop.records, split))
        sums.append(("map, no spill running", loop.function_s, alone, split))
        if loop.overlapped:
            sums.append(("map while spilling", loop.spilling_s, loop.overlapped, False))
        if loop.outputs:
            sums.append(("of both: collect", loop.output_s, loop.outputs, calls))
    elif span_row.name == "reduce loop" and loop.records:
        function_s = max(loop.function_s - loop.output_s, 0.0)
        sums.append(("read and merge", loop.read_s, loop.records, split))
        sums.append(("reduce", function_s, loop.records, split or calls))
        sums.append(("write", loop.output_s, loop.outputs, calls))
    for name, wall_s, count, sampled in sums:
        yield Row(span_row.threads, span_row.depth + 1, name, count, wall_s, sampled=sampled)


def render_task(task: TaskSpans, attempt: TaskAttempt | None, width: int = 100) -> str:
    """
    Draw what each thread did, *width* columns wide at least as far as the names allow.

    A shade shows which part of a column's time is covered; ``~`` marks estimates from samples,
    ``>`` spans that were not over when the JVM ended.
    """
    shown = rows(task, attempt)
    texts = [("", "count", "wall", "CPU"), *(span_row.texts() for span_row in shown)]
    heads = aligned(texts, "lrrr")
    columns = max(width - len(heads[0]) - 4, _LEAST_BAR)
    intervals = list(itertools.chain.from_iterable(span_row.intervals for span_row in shown))
    start = min((first for first, _ in intervals), default=0.0)
    end = max((last for _, last in intervals), default=0.0)
    end = max(end, start + 1e-9)
    title = task.attempt_id
    if attempt is not None:
        where = f"{attempt.kind} on {attempt.host}"
        title = f"{attempt.attempt_id}: {where}, {_duration_text(attempt)}"
    scale = f"0{format_duration(end - start):>{columns - 1}}"
    lines = [one_line(title), "", f"{heads[0]}  {scale}"]
    thread = "main"
    for span_row, head in zip(shown, heads[1:], strict=True):
        if span_row.threads != thread:
            thread = span_row.threads
            lines.append(one_line(thread))
        lines.append(f"{head}  |{_bar(span_row, start, end, columns)}|")
    if notes := task_notes(task, shown):
        lines += ["", *notes]
    return "\n".join(lines) + "\n"


def task_notes(task: TaskSpans, shown: Sequence[Row]) -> list[str]:
    """What the signs in a waterfall mean, and what the recording lacks."""
    notes = []
    if any(span_row.sampled for span_row in shown):
        samples = {"reads": task.loop.read_samples, "calls": task.loop.output_samples}
        counts = " and ".join(f"{count:,} {what}" for what, count in samples.items() if count)
        notes.append(f"~ estimated from {counts} that were timed")
    if any(span_row.open for span_row in shown):
        notes.append("> was not over when the JVM ended")
    if task.state == "given up":
        notes.append("recording was stopped: no space on the disk")
    if task.lost:
        spans = by_number(task.lost, "span", "spans")
        notes.append(f"{task.lost:,} {spans} did not fit into the file")
    return notes


def render_tasks(traced_job: JobTrace, tasks: Sequence[TaskSpans]) -> str:
    """List the attempts of *job* that were recorded, longest first, with where their time went."""
    attempts = {attempt.attempt_id: attempt for attempt in traced_job.attempts}
    recorded = [(attempts[task.attempt_id], task) for task in tasks if task.attempt_id in attempts]
    recorded.sort(key=lambda pair: -pair[0].duration_s)
    row_texts: list[Sequence[str]] = [("attempt", "on", "took", "longest parts")]
    for attempt, task in recorded:
        inner = innermost(rows(task, attempt))
        inner.sort(key=lambda span_row: -span_row.wall_s)
        longest = ", ".join(
            f"{span_row.name} {format_duration(span_row.wall_s)}" for span_row in inner[:3]
        )
        texts = (attempt.attempt_id, attempt.host, _duration_text(attempt), longest)
        row_texts.append(tuple(map(one_line, texts)))
    lines = [line.rstrip() for line in aligned(row_texts, "llll")]
    head = f"{traced_job.job_id}: {len(traced_job.attempts)} attempts, {len(recorded)} recorded"
    return "\n".join([one_line(head), "", *lines]) + "\n"


def innermost(shown: Sequence[Row]) -> list[Row]:
    """Rows that hold no other ones."""
    inner = [
        span_row
        for span_row, after in itertools.pairwise(shown)
        if after.depth <= span_row.depth or after.threads != span_row.threads
    ]
    return [*inner, *shown[-1:]]


def _duration_text(attempt: TaskAttempt) -> str:
    """How long it ran, and what became of it where it did not end well."""
    state = "" if attempt.state == "succeeded" else f", {attempt.state}"
    return format_duration(attempt.duration_s) + state


def _bar(span_row: Row, start: float, end: float, columns: int) -> str:
    """Each column shaded by the part of its time that is covered; the shortest span is seen."""
    step = (end - start) / columns
    covered_s = [0.0] * columns

    def last_column(finish: float) -> int:
        return min(max(math.ceil((finish - start) / step - 1e-6) - 1, 0), columns - 1)

    for span_start, span_finish in span_row.intervals:
        first = min(int((span_start - start) / step), columns - 1)
        for column in range(first, max(last_column(span_finish), first) + 1):
            left = start + column * step
            right = start + (column + 1) * step
            overlap_s = min(span_finish, right) - max(span_start, left)
            covered_s[column] += max(overlap_s, step * 1e-3)
    shades = [_SHADES[min(4, int(4 * seconds / step + 0.999))] for seconds in covered_s]
    if span_row.open and span_row.intervals:
        shades[last_column(max(finish for _, finish in span_row.intervals))] = ">"
    return "".join(shades)


def chrome_events(traced_job: JobTrace, tasks: Iterable[TaskSpans]) -> Iterator[Mapping[str, Any]]:
    """
    Events of *job* in Chrome's trace format, which Perfetto and ``chrome://tracing`` open.

    A process is a task attempt, a thread one of those in *tasks* with its spans; times are
    microseconds since the job was submitted.  Perfetto knows a thread by its number alone, takes 0
    for an idle core, and drops a span that overlaps another one of its thread without lying in it.
    """
    threads = itertools.count(1)

    def nanoseconds(moment_s: float) -> int:
        return round((moment_s - traced_job.submit_s) * 1e9)

    def work(name: str, times: tuple[int, int], process: int, thread: int, args: Any) -> Any:
        start = times[0] / 1e3
        duration = (times[1] - times[0]) / 1e3
        event = {"name": name, "ph": "X", "ts": start, "dur": duration}
        return event | {"pid": process, "tid": thread, "args": args}

    def metadata(kind: str, process: int, thread: int, **args: Any) -> Mapping[str, Any]:
        return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": args}

    number = next(threads)
    times = (0, nanoseconds(traced_job.finish_s))
    yield metadata("process_name", 1, number, name=f"{traced_job.job_id} {traced_job.name}")
    yield work("job", times, 1, number, {"state": traced_job.state})
    processes = {}
    for process, attempt in enumerate(traced_job.attempts, start=2):
        processes[attempt.attempt_id] = process
        number = next(threads)
        times = (nanoseconds(attempt.start_s), nanoseconds(attempt.finish_s))
        yield metadata("process_name", process, number, name=f"{attempt.task_id} on {attempt.host}")
        yield metadata("process_sort_index", process, number, sort_index=process)
        args = {"attempt": attempt.attempt_id, "state": attempt.state, **attempt.counters}
        yield work(f"{attempt.kind} attempt", times, process, number, args)
    for recording in tasks:
        if recording.attempt_id not in processes:
            continue
        process = processes[recording.attempt_id]
        numbers = dict[str, int]()
        limits = list[tuple[int, int]]()
        before = dict[tuple[str, int], int]()
        for span in recording.spans:
            if span.thread not in numbers:
                numbers[span.thread] = next(threads)
                yield metadata("thread_name", process, numbers[span.thread], name=span.thread)
            more = {name: value for name in _SPAN_ARGS if (value := getattr(span, name))}
            if span.cpu_s is not None:
                more["cpu_ms"] = round(span.cpu_s * 1e3, 3)
            # Seconds since the epoch are exact to a quarter of a microsecond: what touches its
            # neighbour, or the end of the span around it, may overlap by as much.
            around = limits[span.parent] if span.parent >= 0 else (-(2**62), 2**62)
            place = span.thread, span.parent
            start = max(nanoseconds(span.start_s), around[0], before.get(place, around[0]))
            finish = max(start, min(nanoseconds(span.finish_s), around[1]))
            limits.append((start, finish))
            before[place] = finish
            yield work(span.name, limits[-1], process, numbers[span.thread], more)
