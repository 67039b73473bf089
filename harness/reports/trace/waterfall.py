"""A task's spans as bars over time, and the tasks of a job as a list: plain text, no escapes."""

from __future__ import annotations

import math

from collections.abc import Sequence

from harness.records.spans import RecordLoop, TaskSpans
from harness.records.trace import JobTrace, TaskAttempt
from harness.reports.trace.rows import Row, rows
from harness.reports.wording import one_line
from harness.units import format_duration

_SHADES = " ░▒▓█"
_LEAST_BAR = 20
_HEAD = ("", "count", "wall", "CPU")


def render_task(task: TaskSpans, attempt: TaskAttempt | None, width: int = 100) -> str:
    """
    Draw what each thread did, *width* columns wide at least as far as the names allow.

    A shade tells which part of a column's time is covered; ``~`` marks estimates from samples,
    ``>`` spans that were not over when the JVM ended.
    """
    found = rows(task, attempt)
    table = [_HEAD, *(_cells(row) for row in found)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(_HEAD))]
    room = max(width - sum(widths) - 2 * len(widths) - 2, _LEAST_BAR)
    start, end = _extent(found)
    scale = f"0{format_duration(end - start):>{room - 1}}"
    lines = [_title(task, attempt), "", _line(_HEAD, widths, scale)]
    thread = "main"
    for row, cells in zip(found, table[1:], strict=True):
        if row.threads != thread:
            thread = row.threads
            lines.append(one_line(thread))
        lines.append(_line(cells, widths, f"|{_bar(row, start, end, room)}|"))
    return "\n".join([*lines, *_notes(task, found)]) + "\n"


def render_tasks(job: JobTrace, tasks: Sequence[TaskSpans]) -> str:
    """List the attempts of *job* that were recorded, longest first, with where their time went."""
    attempts = {a.attempt_id: a for a in job.attempts}
    known = [(attempts[t.attempt_id], t) for t in tasks if t.attempt_id in attempts]
    known.sort(key=lambda pair: -pair[0].duration_s)
    table = [("attempt", "on", "took", "longest parts")]
    table += [(a.attempt_id, a.host, _took(a), _longest(t, a)) for a, t in known]
    widths = [max(len(one_line(row[i])) for row in table) for i in range(3)]
    lines = [
        "  ".join([*(one_line(c).ljust(w) for c, w in zip(row, widths, strict=False)), row[3]])
        for row in table
    ]
    head = f"{job.job_id}: {len(job.attempts)} attempts, {len(known)} recorded"
    return "\n".join([one_line(head), "", *lines]) + "\n"


def _title(task: TaskSpans, attempt: TaskAttempt | None) -> str:
    if attempt is None:
        return one_line(task.attempt_id)
    return one_line(f"{attempt.attempt_id}: {attempt.kind} on {attempt.host}, {_took(attempt)}")


def _took(attempt: TaskAttempt) -> str:
    """How long it ran, and what became of it where it did not end well."""
    state = "" if attempt.state == "succeeded" else f", {attempt.state}"
    return format_duration(attempt.duration_s) + state


def _cells(row: Row) -> tuple[str, ...]:
    mark = "~" if row.sampled else ""
    return (
        "  " * (row.depth + 1) + one_line(row.name),
        f"{row.count:,}" if row.count > 1 else "",
        mark + format_duration(row.wall_s),
        "" if row.cpu_s is None else format_duration(row.cpu_s),
    )


def _line(cells: Sequence[str], widths: Sequence[int], bar: str) -> str:
    first, *others = (
        cell.rjust(w) if i else cell.ljust(w)
        for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others, bar]).rstrip()


def _extent(found: Sequence[Row]) -> tuple[float, float]:
    moments = [moment for row in found for interval in row.intervals for moment in interval]
    start, end = (min(moments), max(moments)) if moments else (0.0, 0.0)
    return start, max(end, start + 1e-9)


def _bar(row: Row, start: float, end: float, room: int) -> str:
    """Each column shaded by the part of its time that is covered; what is there is seen."""
    step = (end - start) / room
    cover = [0.0] * room
    for begin, finish in row.intervals:
        first = min(int((begin - start) / step), room - 1)
        last = min(max(math.ceil((finish - start) / step - 1e-6) - 1, first), room - 1)
        for column in range(first, last + 1):
            left, right = start + column * step, start + (column + 1) * step
            cover[column] += max(min(finish, right) - max(begin, left), step * 1e-3)
    marks = [_SHADES[min(4, int(4 * c / step + 0.999))] for c in cover]
    if row.open and row.intervals:
        end = max(finish for _, finish in row.intervals)
        marks[min(max(math.ceil((end - start) / step - 1e-6) - 1, 0), room - 1)] = ">"
    return "".join(marks)


def _longest(task: TaskSpans, attempt: TaskAttempt) -> str:
    """Name the three longest things that hold nothing else."""
    found = rows(task, attempt)
    inner = [
        row
        for row, after in zip(found, [*found[1:], None], strict=True)
        if after is None or after.depth <= row.depth or after.threads != row.threads
    ]
    inner.sort(key=lambda row: -row.wall_s)
    return ", ".join(one_line(f"{r.name} {format_duration(r.wall_s)}") for r in inner[:3])


def _samples(loop: RecordLoop) -> str:
    """
    Say of how many records the estimates are made.

    >>> _samples(RecordLoop(9, 1.0, 1.0, 0.0, 0.0, 0, 9, 0.1, 2, 0.0, 0, (), read_samples=4))
    '4 reads and 2 calls that were timed'
    """
    counts = {"reads": loop.read_samples, "calls": loop.output_samples}
    return " and ".join(f"{n:,} {what}" for what, n in counts.items() if n) + " that were timed"


def _notes(task: TaskSpans, found: Sequence[Row]) -> list[str]:
    notes = []
    if any(row.sampled for row in found):
        notes.append(f"~ estimated from {_samples(task.loop)}")
    if any(row.open for row in found):
        notes.append("> was not over when the JVM ended")
    if task.state == "given up":
        notes.append("recording was given up: no space on the disk")
    if task.lost:
        notes.append(f"{task.lost:,} spans found no room in the file")
    return ["", *notes] if notes else []
