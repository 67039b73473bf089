"""
A job as it ran: one lane per slot of each node, phases coloured and hatched.

Where the inside of a task is known, its bar shows what the main thread did, and a thinner one below
it what other threads did meanwhile.
"""

from __future__ import annotations

import math

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.records.trace import JobTrace, TaskAttempt
from harness.records.trial import TrialRecord
from harness.reports.data import ReportData, label
from harness.reports.inside.choice import detailed
from harness.reports.inside.names import DRAWN
from harness.reports.inside.tracks import Piece, paint, thinned, tracks
from harness.reports.plots.canvas import (
    INK,
    MUTED,
    PHASE_NAMES,
    Canvas,
    Figure,
    grid,
    legend_of_parts,
    part_bar,
    phase_bar,
    phase_legend,
)
from harness.reports.tables import Table, Value, table
from harness.reports.wording import UNKNOWN, count, natural, number, one_line, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 9.4
_MOST_TIPS = 400
_MOST_ROWS = 500
_MOST_DRAWN = 2000
_MOST_LANES = 100
_STEPS = 1000  # pieces narrower than this part of the axis become one with their neighbours
_LEAST_LOST = 80  # this part of the axis says at least that an attempt failed
_RESOLUTION_S = 0.05
_MOST_NUMBERS = 12  # of jobs above a timeline
Lane = tuple[str, str, int]


def timeline(data: ReportData, place: int, record: TrialRecord, job: JobTrace) -> Figure:
    """Swim lanes of a trial's job, or of all its jobs: submissions, masters' starts, the end."""
    lanes = assign_lanes(job.attempts)
    names = _some_lanes(lanes)
    rows = {lane: row for row, lane in enumerate(names)}
    shown = [a for a in job.attempts if lanes[a.attempt_id] in rows]
    inside = _inside(data, record, job)
    jobs = data.jobs.get(record.trial.id, (job,))
    what = f"{len(jobs)} jobs" if len(jobs) > 1 else "one job"
    title = f"{job.name or job.job_id}: attempts of {what} over time, by node and slot"
    pitch = (0.42 if inside else 0.27) if len(names) <= 24 else max(0.05, 6.5 / len(names))
    canvas = Canvas(f"timeline{place}", title, _WIDTH, 1.45 + pitch * max(1, len(names)))
    axes = canvas.figure.add_subplot()
    few = len(job.attempts) <= _MOST_DRAWN
    if not few:
        _coarse(axes, rows, shown, lanes, job)
    for attempt in shown if few else ():
        row = rows[lanes[attempt.attempt_id]]
        if attempt.attempt_id in inside:
            _pieces(canvas, axes, row, attempt, job, inside=inside)
        else:
            _bars(canvas, axes, row, attempt, job, tips=len(shown) <= _MOST_TIPS)
    _frame(axes, names, job, "first job" if len(jobs) > 1 else "job")
    _events(axes, jobs)
    _legend(canvas, shown, inside)
    hidden = len(set(lanes.values())) - len(names)
    note = f" {count(hidden, 'slot')} between these not drawn." if hidden else ""
    note += "" if few else " Neighbouring attempts share a bar where they are too short to be seen."
    return Figure(
        canvas.svg(), _caption(data, record, job, jobs) + note + _said(inside), _data(job)
    )


Inside = Mapping[str, tuple[list[Piece], list[Piece]]]


def _inside(data: ReportData, record: TrialRecord, job: JobTrace) -> Inside:
    """Of each attempt whose inside is known: the main thread, and the others beside it."""
    known = data.inside.get(record.trial.id)
    if known is None or not detailed(job):
        return {}
    found = {}
    for a in job.attempts:
        name = a.attempt_id
        if main_first := tracks(a, known.told.get(name), known.recordings.get(name)):
            main, *others = main_first
            # Copying is seen in the main thread's bar, which does nothing else meanwhile.
            beside = [p for t in others for p in t.pieces if p.part not in {"copy", "connect"}]
            found[name] = main.pieces, paint(beside)
    return found


def _some_lanes(lanes: Mapping[str, Lane]) -> list[Lane]:
    """Every lane, or where there are too many every second, every third, ..."""
    names = sorted(set(lanes.values()), key=_lane_key)
    return names[:: max(1, math.ceil(len(names) / _MOST_LANES))]


def _coarse(
    axes: Axes,
    rows: Mapping[Lane, int],
    shown: Sequence[TaskAttempt],
    lanes: Mapping[str, Lane],
    job: JobTrace,
) -> None:
    """Lanes of a job with so many attempts that neighbours have to share a bar."""
    found: dict[int, list[Piece]] = {}
    for a in sorted(shown, key=lambda a: (a.start_s, a.attempt_id)):
        row = rows[lanes[a.attempt_id]]
        found.setdefault(row, []).extend(Piece(start, end, n) for n, start, end in phases(a))
    step = job.job_s * len(rows) / _MOST_DRAWN
    for row, pieces in found.items():
        for piece in thinned(pieces, step):
            phase_bar(axes, row, piece.start - job.submit_s, piece.end - job.submit_s, piece.part)


def _pieces(
    canvas: Canvas, axes: Axes, row: int, a: TaskAttempt, job: JobTrace, *, inside: Inside
) -> None:
    main, beside = inside[a.attempt_id]
    if a.state != "succeeded":
        main, beside = _until(main, a.finish_s), _until(beside, a.finish_s)
        begin = min(main[-1].end if main else a.start_s, a.finish_s - job.job_s / _LEAST_LOST)
        _lost(
            canvas, axes, row, a, (max(begin, a.start_s) - job.submit_s, a.finish_s - job.submit_s)
        )
    for pieces, at, height in ((main, row - 0.13, 0.5), (beside, row + 0.25, 0.22)):
        for piece in thinned(pieces, job.job_s / _STEPS):
            span = piece.start - job.submit_s, piece.end - job.submit_s
            bar = part_bar(axes, at, span, piece.part, height)
            length = seconds(span[1] - span[0])
            canvas.tip(bar, f"{a.attempt_id} on {a.host}: {DRAWN[piece.part]} {length}")


def _until(pieces: Sequence[Piece], end: float) -> list[Piece]:
    """*pieces* as far as they come before *end*: a task may outlive what its master says of it."""
    return [Piece(p.start, min(p.end, end), p.part) for p in pieces if p.start < end]


def _lost(canvas: Canvas, axes: Axes, row: int, a: TaskAttempt, span: tuple[float, float]) -> None:
    """What became of an attempt, from the end of what is known of it to its own."""
    bar = phase_bar(axes, row, *span, a.state)
    length = seconds(a.duration_s, _RESOLUTION_S)
    canvas.tip(bar, f"{a.attempt_id} on {a.host}: {PHASE_NAMES[a.state]} after {length}")


def _legend(canvas: Canvas, shown: Sequence[TaskAttempt], inside: Inside) -> None:
    if not inside:
        phase_legend(canvas, {name for a in shown for name, _, _ in phases(a)})
        return
    parts = {p.part for main, beside in inside.values() for p in (*main, *beside)}
    left = [a for a in shown if a.attempt_id not in inside or a.state != "succeeded"]
    legend_of_parts(canvas, parts, DRAWN, {name for a in left for name, _, _ in phases(a)})


def _said(inside: Inside) -> str:
    beside = any(beside for _, beside in inside.values())
    return " A thinner bar is what other threads of a task did meanwhile." if beside else ""


def assign_lanes(attempts: Sequence[TaskAttempt]) -> dict[str, Lane]:
    """
    Slot of each attempt: (host, kind, number from 1), the lowest that is free when it starts.

    History names containers and no slots; the number of lanes is what ran at once.
    """
    free: dict[tuple[str, str], list[float]] = {}
    lanes: dict[str, Lane] = {}
    for a in sorted(attempts, key=lambda a: (a.start_s, a.attempt_id)):
        ends = free.setdefault((a.host, a.kind), [])
        slot = next((i for i, end in enumerate(ends) if end <= a.start_s), len(ends))
        ends[slot : slot + 1] = [a.finish_s]
        lanes[a.attempt_id] = (a.host, a.kind, slot + 1)
    return lanes


def _lane_key(lane: Lane) -> tuple[list[tuple[int, int, str]], str, int]:
    host, kind, slot = lane
    return natural(host), kind, slot


def phases(a: TaskAttempt) -> Iterator[tuple[str, float, float]]:
    """
    Phases of an attempt as (name, start, end), in seconds since the epoch.

    An attempt that did not succeed is one phase, named by its state.
    """
    if a.state != "succeeded":
        cuts: list[tuple[str, float | None]] = [(a.state, a.finish_s)]
    elif a.kind == "map":
        cuts = [("map", a.map_finish_s), ("map_tail", a.finish_s)]
    else:
        cuts = [("shuffle", a.shuffle_finish_s), ("sort", a.sort_finish_s), ("reduce", a.finish_s)]
    start = a.start_s
    for name, end in cuts:
        # A phase whose end history does not know runs into the next one.
        if end is not None and end > start:
            yield name, start, end
            start = end


def _bars(
    canvas: Canvas, axes: Axes, row: int, a: TaskAttempt, job: JobTrace, *, tips: bool
) -> None:
    for name, start, end in phases(a):
        bar = phase_bar(axes, row, start - job.submit_s, end - job.submit_s, name)
        if tips:
            length = seconds(end - start, _RESOLUTION_S)
            canvas.tip(bar, f"{a.attempt_id} on {a.host}: {PHASE_NAMES[name]} {length}")


def _frame(axes: Axes, names: Sequence[Lane], job: JobTrace, which: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if len(names) <= 60:
        texts = [f"{one_line(h.partition(':')[0], 22)}  {kind} {slot}" for h, kind, slot in names]
        axes.set_yticks(range(len(names)), texts)
    else:
        axes.set_yticks([])
        axes.set_ylabel(count(len(names), "slot"))
    for row, lane in enumerate(names[1:], start=1):
        if lane[0] != names[row - 1][0]:
            axes.axhline(row - 0.5, color=MUTED, linewidth=0.5)
    axes.set_ylim(max(1, len(names)) - 0.4, -0.6)
    end = max([job.job_s, *(a.finish_s - job.submit_s for a in job.attempts)])
    axes.set_xlim(0, max(end, 0.001) * 1.01)
    axes.set_xlabel(f"seconds since the {which} was submitted")
    axes.xaxis.set_major_locator(MaxNLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.spines["left"].set_visible(False)
    grid(axes, "x")


def _events(axes: Axes, jobs: Sequence[JobTrace]) -> None:
    if len(jobs) > 1:
        _events_of_many(axes, jobs)
        return
    (job,) = jobs
    marks = [(0.0, "submitted", "left", 1.0)]
    launch = job.launch_s - job.submit_s
    if 0 < launch < job.job_s:
        name = f"application master started, {launch:.1f} s"
        late = launch > job.job_s / 2
        marks.append((launch, name, "right" if late else "left", 1.0 + 0.16 / _height(axes)))
    marks.append((job.job_s, f"finished, {job.job_s:.1f} s", "right", 1.0))
    _mark(axes, marks)


def _events_of_many(axes: Axes, jobs: Sequence[JobTrace]) -> None:
    """Each job's submission with its number, as far as there is room, and the end of the last."""
    begin, end = jobs[0].submit_s, jobs[-1].finish_s - jobs[0].submit_s
    every = math.ceil(len(jobs) / _MOST_NUMBERS)
    marks = [
        (j.submit_s - begin, "" if n % every else f"job {n + 1}", "left", 1.0)
        for n, j in enumerate(jobs)
    ]
    marks.append((end, f"finished, {end:.1f} s", "right", 1.0 + 0.16 / _height(axes)))
    _mark(axes, marks)


def _mark(axes: Axes, marks: Sequence[tuple[float, str, str, float]]) -> None:
    for at, name, side, height in marks:
        axes.axvline(at, color=INK, linewidth=1.1, linestyle=(0, (4, 2)), zorder=4)
        axes.text(at, height, name, ha=side, va="bottom", fontsize=8.5,
                  transform=axes.get_xaxis_transform())  # fmt: skip


def _height(axes: Axes) -> float:
    return float(axes.figure.get_figheight()) - 1.3  # type: ignore[union-attr]


def _caption(data: ReportData, record: TrialRecord, job: JobTrace, jobs: Sequence[JobTrace]) -> str:
    cell = record.trial.cell.id
    answers = [
        f"{p.model} {seconds(p.job_s, 0.3)}"
        for p in data.predictions
        if p.cell == cell and p.job_s is not None
    ]
    predicted = f" Predicted: {', '.join(answers)}." if answers else ""
    lost = sum(a.state != "succeeded" for a in job.attempts)
    failures = f" {count(lost, 'attempt')} failed or was killed." if lost else ""
    several, sums = "", ""
    if len(jobs) > 1:
        several = f"{len(jobs)} jobs, one after the other, "
        sums = f", {seconds(math.fsum(j.job_s for j in jobs), 0.3)} of them in jobs"
    return (
        f"{label(data, cell)}, trial {record.trial.id}: {several}{count(job.num_maps, 'map')},"
        f" {count(job.num_reduces, 'reduce')}, {seconds(job.job_s, 0.3)} from submission to end"
        f"{sums}."
        f"{predicted}{failures}"
    )


def _data(job: JobTrace) -> Table:
    ordered = sorted(job.attempts, key=lambda a: (a.start_s, a.attempt_id))
    rows = [_row(a, job) for a in ordered[:_MOST_ROWS]]
    columns = ("Attempt", "Kind", "Host", "State", "Start, s", "End, s", "Phases, s", "Error")
    hidden = len(ordered) - len(rows)
    note = f"{count(hidden, 'later attempt')} not shown." if hidden else ""
    return table("Attempts; times from the submission", columns, "clllrrll", rows,
                 note=note)  # fmt: skip


def _row(a: TaskAttempt, job: JobTrace) -> tuple[str | Value, ...]:
    spans = (f"{PHASE_NAMES[n]} {number(e - s, _RESOLUTION_S)}" for n, s, e in phases(a))
    return (
        a.attempt_id,
        a.kind,
        a.host,
        Value(a.state, "" if a.state == "succeeded" else "mark"),
        number(a.start_s - job.submit_s, _RESOLUTION_S),
        number(a.finish_s - job.submit_s, _RESOLUTION_S),
        "; ".join(spans) if a.state == "succeeded" else UNKNOWN,
        a.error or "",
    )
