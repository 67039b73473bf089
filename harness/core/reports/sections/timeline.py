"""
A job as it ran: one lane per slot of each node, and beside it as models schedule its tasks.

Where the parts of a task are known, its bar shows what the main thread did, and a thinner one below
it what other threads did meanwhile.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from statistics import median_low
from typing import TYPE_CHECKING

from harness.base.documents.document import Figure, Figures, Section, Table, Value, table
from harness.base.documents.drawing import INK, MUTED, WIDE, Canvas, grid, row_axes
from harness.base.documents.wording import UNKNOWN, count, natural, number, one_line, seconds
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import TrialRecord
from harness.core.reports.data import JobTaskTimes, ReportData
from harness.core.reports.sections.phases import PHASE_NAMES
from harness.core.reports.sections.task_times import KINDS, PARTS
from harness.observe.pieces import Piece, TaskPieces, thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAD = (
    "One representative job of each workload, or all jobs of such a trial, every attempt in the"
    " slot where it ran."
)
_MOST_TOOLTIPS = 400
_MOST_DRAWN = 2000  # attempts, or tasks of a schedule; more would be drawn as dust
_MOST_LANES = 100
_MOST_WIDE_LANES = 24  # of more, all share the height of a page
_MOST_NAMED_LANES = 60
_STEPS = 1000  # pieces narrower than this part of the axis become one with their neighbours
_LEAST_END = 80  # this part of the axis at least shows that an attempt failed or was killed
_RESOLUTION_S = 0.05
_MOST_NUMBERS = 12  # of jobs above a timeline
_LANE = 0.13
_GAP = 1.0  # of a schedule
_TOLERANCE_S = 1e-6

# What people call the parts where they are drawn over time: a loop is one piece, whatever is known
# of what is in it.
_DRAWN: dict[str, str] = {
    **PARTS,
    "map_loop": "record loop",
    "wait": "nothing to copy, or no memory for it",
    "reduce_loop": "reduce loop",
    "output": "closing the output",
}

Lane = tuple[str, str, int]
_by_start = attrgetter("start_s", "attempt_id")


def section(results: ReportData) -> Section:
    """One timeline for each workload's representative job."""
    figures = [
        timeline(results, place, record, traced_job)
        for place, (record, traced_job) in enumerate(results.timelines)
    ]
    return Section(
        id="timeline",
        title="Timeline of a job",
        blocks=[Figures(figures, _LEAD)],
        missing="No job has been traced.",
    )


def schedule_section(results: ReportData) -> Section:
    """One figure for each timeline's job whose tasks a model schedules."""
    figures = [
        schedule_figure(results, place, record, results.jobs.get(record.trial.id, (traced_job,)))
        for place, (record, traced_job) in enumerate(results.timelines)
    ]
    shown = Figures([figure for figure in figures if figure])
    return Section("schedule", "Measured and predicted schedule", [shown])


def timeline(results: ReportData, place: int, record: TrialRecord, traced_job: JobTrace) -> Figure:
    """Swim lanes of a trial's job, or of all its jobs: submissions, masters' starts, the end."""
    lanes = assign_lanes(traced_job.attempts)
    all_lanes = sorted(set(lanes.values()), key=lambda lane: (natural(lane[0]), *lane[1:]))
    # Where there are too many lanes every second, every third, ... is drawn.
    lane_names = all_lanes[:: max(1, math.ceil(len(all_lanes) / _MOST_LANES))]
    rows = {lane: lane_row for lane_row, lane in enumerate(lane_names)}
    shown = [
        (attempt, rows[lanes[attempt.attempt_id]])
        for attempt in sorted(traced_job.attempts, key=_by_start)
        if lanes[attempt.attempt_id] in rows
    ]
    task_pieces = results.task_times.get(record.trial.id, JobTaskTimes()).pieces
    details = {name: pieces for name, pieces in task_pieces.items() if any(pieces)}
    trial_jobs = results.jobs.get(record.trial.id, (traced_job,))
    are_too_many = len(traced_job.attempts) > _MOST_DRAWN

    def draw(canvas: Canvas) -> None:
        lane_axes = canvas.figure.add_subplot()
        if are_too_many:
            _draw_thinned(canvas, lane_axes, shown, traced_job)
        else:
            _draw_attempts(canvas, lane_axes, shown, traced_job, details)
        _draw_axes(canvas, lane_axes, lane_names, traced_job, trial_jobs)
        canvas.texture_legend(_DRAWN | PHASE_NAMES, columns=4 if details else 8)

    caption = _caption(results, record, traced_job, trial_jobs)
    if hidden := len(all_lanes) - len(lane_names):
        caption += f" {count(hidden, 'slot')} between these not drawn."
    if are_too_many:
        caption += " Neighbouring attempts share a bar where they are too short to be seen."
    if any(pieces.beside for pieces in details.values()):
        caption += " A thinner bar is what other threads of a task did meanwhile."
    what = f"{len(trial_jobs)} jobs" if len(trial_jobs) > 1 else "one job"
    job_name = traced_job.name or traced_job.job_id
    title = f"{job_name}: attempts of {what} over time, by node and slot"
    height = 1.45 + _pitch(len(lane_names), is_detailed=bool(details)) * max(1, len(lane_names))
    attempts = attempts_table(traced_job)
    return Figure(f"timeline{place}", title, WIDE, height, caption, attempts, draw)


def _pitch(lanes: int, *, is_detailed: bool) -> float:
    """Inches from one lane to the next."""
    if lanes > _MOST_WIDE_LANES:
        return max(0.05, 6.5 / lanes)
    return 0.42 if is_detailed else 0.27


def _draw_thinned(
    canvas: Canvas,
    lane_axes: Axes,
    shown: Sequence[tuple[TaskAttempt, int]],
    traced_job: JobTrace,
) -> None:
    """Draw so many attempts that neighbours have to share a bar."""
    by_row = defaultdict[int, list[Piece]](list)
    for attempt, lane_row in shown:
        by_row[lane_row].extend(phases(attempt))
    lanes = len({lane_row for _, lane_row in shown})
    for lane_row, pieces in by_row.items():
        for piece in thinned(pieces, traced_job.job_s * lanes / _MOST_DRAWN):
            canvas.bar(lane_axes, lane_row, piece.since(traced_job.submit_s), piece.part)


def _draw_attempts(
    canvas: Canvas,
    lane_axes: Axes,
    shown: Sequence[tuple[TaskAttempt, int]],
    traced_job: JobTrace,
    details: Mapping[str, TaskPieces],
) -> None:
    """Draw each attempt by what its threads did, or by its phases where that is not known."""
    has_tooltips = len(shown) <= _MOST_TOOLTIPS
    for attempt, lane_row in shown:
        if attempt.attempt_id in details:
            run = (attempt, traced_job)
            _draw_pieces(canvas, lane_axes, lane_row, run, details[attempt.attempt_id])
            continue
        for phase in phases(attempt):
            length = seconds(phase.end - phase.start, _RESOLUTION_S)
            tooltip = f"{_name(attempt)}: {PHASE_NAMES[phase.part]} {length}"
            times_s = phase.since(traced_job.submit_s)
            canvas.bar(
                lane_axes, lane_row, times_s, phase.part, tooltip=tooltip if has_tooltips else ""
            )


def _name(attempt: TaskAttempt) -> str:
    return f"{attempt.attempt_id} on {attempt.host}"


def _draw_pieces(
    canvas: Canvas,
    lane_axes: Axes,
    lane_row: int,
    run: tuple[TaskAttempt, JobTrace],
    threads: TaskPieces,
) -> None:
    """Draw what the threads of an attempt of a job did, and at its end what became of it."""
    attempt, traced_job = run
    main, beside = threads
    if attempt.state != "succeeded":
        # A task may outlive what its master records of it.
        main = _until(main, attempt.finish_s)
        beside = _until(beside, attempt.finish_s)
        known_until = main[-1].end if main else attempt.start_s
        start = min(known_until, attempt.finish_s - traced_job.job_s / _LEAST_END)
        end = Piece(max(start, attempt.start_s), attempt.finish_s, attempt.state)
        length = seconds(attempt.duration_s, _RESOLUTION_S)
        tooltip = f"{_name(attempt)}: {PHASE_NAMES[attempt.state]} after {length}"
        times_s = end.since(traced_job.submit_s)
        canvas.bar(lane_axes, lane_row, times_s, attempt.state, tooltip=tooltip)
    for thread, middle, height in ((main, lane_row - 0.13, 0.5), (beside, lane_row + 0.25, 0.22)):
        for piece in thinned(thread, traced_job.job_s / _STEPS):
            times_s = piece.since(traced_job.submit_s)
            tooltip = f"{_name(attempt)}: {_DRAWN[piece.part]} {seconds(times_s[1] - times_s[0])}"
            canvas.bar(
                lane_axes, middle, times_s, piece.part, tooltip=tooltip, height=height, edge=0.3
            )


def _until(pieces: Sequence[Piece], finish_s: float) -> list[Piece]:
    """What of *pieces* came before *finish_s*."""
    return [
        piece._replace(end=min(piece.end, finish_s)) for piece in pieces if piece.start < finish_s
    ]


def assign_lanes(attempts: Iterable[TaskAttempt]) -> dict[str, Lane]:
    """
    Slot of each attempt: (host, kind, number from 1), the lowest that is free when it starts.

    History names containers, not slots; the number of lanes is what ran at once.
    """
    groups = defaultdict[tuple[str, str], list[Piece]](list)
    for attempt in attempts:
        task = Piece(attempt.start_s, attempt.finish_s, attempt.attempt_id)
        groups[attempt.host, attempt.kind].append(task)
    lanes = dict[str, Lane]()
    for group, tasks in groups.items():
        for slot, lane in enumerate(in_lanes(tasks), start=1):
            lanes |= {task.part: (*group, slot) for task in lane}
    return lanes


def phases(attempt: TaskAttempt) -> Iterator[Piece]:
    """Phases of an attempt; one that did not succeed is one phase, named by its state."""
    if attempt.state != "succeeded":
        ends: list[tuple[str, float | None]] = [(attempt.state, attempt.finish_s)]
    elif attempt.kind == "map":
        ends = [("map", attempt.map_finish_s), ("map_tail", attempt.finish_s)]
    else:
        ends = [("shuffle", attempt.shuffle_finish_s), ("sort", attempt.sort_finish_s)]
        ends.append(("reduce", attempt.finish_s))
    start = attempt.start_s
    for name, ended in ends:
        # A phase whose end is not in the history runs into the next one.
        if ended is not None and ended > start:
            yield Piece(start, ended, name)
            start = ended


def _draw_axes(
    canvas: Canvas,
    lane_axes: Axes,
    lane_names: Sequence[Lane],
    traced_job: JobTrace,
    trial_jobs: Sequence[JobTrace],
) -> None:
    """Name the lanes, and mark the events above them."""
    from matplotlib.ticker import MaxNLocator

    if len(lane_names) <= _MOST_NAMED_LANES:
        texts = [
            f"{one_line(host.partition(':')[0], 22)}  {kind} {slot}"
            for host, kind, slot in lane_names
        ]
        lane_axes.set_yticks(range(len(lane_names)), texts)
    else:
        lane_axes.set_yticks([])
        lane_axes.set_ylabel(count(len(lane_names), "slot"))
    for lane_row, lane in enumerate(lane_names[1:], start=1):
        if lane[0] != lane_names[lane_row - 1][0]:
            lane_axes.axhline(lane_row - 0.5, color=MUTED, linewidth=0.5)
    lane_axes.set_ylim(max(1, len(lane_names)) - 0.4, -0.6)
    ends_s = [attempt.finish_s - traced_job.submit_s for attempt in traced_job.attempts]
    lane_axes.set_xlim(0, 1.01 * max([traced_job.job_s, *ends_s, 0.001]))
    lane_axes.xaxis.set_major_locator(MaxNLocator(10))
    lane_axes.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    lane_axes.spines["left"].set_visible(False)
    grid(lane_axes, "x")
    which = "first job" if len(trial_jobs) > 1 else "job"
    lane_axes.set_xlabel(f"seconds since the {which} was submitted")
    raised = 1 + 0.16 / (canvas.figure.get_figheight() - 1.3)
    for at_s, text, side, is_raised in job_events(trial_jobs):
        lane_axes.axvline(at_s, color=INK, linewidth=1.1, linestyle=(0, (4, 2)), zorder=4)
        lane_axes.text(
            at_s,
            raised if is_raised else 1.0,
            text,
            ha=side,
            va="bottom",
            fontsize=8.5,
            transform=lane_axes.get_xaxis_transform(),
        )


def job_events(trial_jobs: Sequence[JobTrace]) -> Iterator[tuple[float, str, str, bool]]:
    """When jobs began and ended: seconds, text, the side it stands on, whether above others."""
    first = trial_jobs[0]
    end_s = trial_jobs[-1].finish_s - first.submit_s
    are_several = len(trial_jobs) > 1
    for place in range(0, len(trial_jobs), math.ceil(len(trial_jobs) / _MOST_NUMBERS)):
        text = f"job {place + 1}" if are_several else "submitted"
        yield trial_jobs[place].submit_s - first.submit_s, text, "left", False
    launch_s = first.launch_s - first.submit_s
    if not are_several and 0 < launch_s < end_s:
        side = "right" if launch_s > end_s / 2 else "left"
        yield launch_s, f"application master started, {launch_s:.1f} s", side, True
    yield end_s, f"finished, {end_s:.1f} s", "right", are_several


def _caption(
    results: ReportData, record: TrialRecord, traced_job: JobTrace, trial_jobs: Sequence[JobTrace]
) -> str:
    unfinished = sum(attempt.state != "succeeded" for attempt in traced_job.attempts)
    job_count = ""
    sums = ""
    if len(trial_jobs) > 1:
        job_count = f"{len(trial_jobs)} jobs, one after the other, "
        jobs_s = math.fsum(trial_job.job_s for trial_job in trial_jobs)
        sums = f", {seconds(jobs_s, 0.3)} of them in jobs"
    tasks = f"{count(traced_job.num_maps, 'map')}, {count(traced_job.num_reduces, 'reduce')}"
    caption = (
        f"{results.label(record.trial.cell.id)}, trial {record.trial.id}: {job_count}{tasks},"
        f" {seconds(traced_job.job_s, 0.3)} from submission to end{sums}."
    )
    caption += f" {count(unfinished, 'attempt')} failed or was killed." if unfinished else ""
    return caption


def attempts_table(traced_job: JobTrace) -> Table:
    """Every attempt with its times from the submission, and the errors of those that failed."""
    rows = []
    for attempt in sorted(traced_job.attempts, key=_by_start):
        times_s = (
            f"{PHASE_NAMES[phase.part]} {number(phase.end - phase.start, _RESOLUTION_S)}"
            for phase in phases(attempt)
        )
        done = attempt.state == "succeeded"
        rows.append(
            (
                *(attempt.attempt_id, attempt.kind, attempt.host),
                Value(attempt.state, "" if done else "mark"),
                number(attempt.start_s - traced_job.submit_s, _RESOLUTION_S),
                number(attempt.finish_s - traced_job.submit_s, _RESOLUTION_S),
                "; ".join(times_s) if done else UNKNOWN,
                attempt.error or "",
            )
        )
    columns = ("Attempt", "Kind", "Host", "State", "Start, s", "End, s", "Phases, s", "Error")
    caption = "Attempts; times from the submission"
    return table(caption, columns, "clllrrll", rows, folded=True)


def schedule_figure(
    results: ReportData, place: int, record: TrialRecord, jobs: Sequence[JobTrace]
) -> Figure | None:
    """
    Draw the measured and the predicted tasks of one job; nothing where no model has them.

    Of several *jobs* it is the one that took the median time.
    """
    times_s = [traced_job.job_s for traced_job in jobs]
    cell = record.trial.cell.id
    median_job = times_s.index(median_low(times_s))
    schedules = task_schedules(results, cell, jobs[median_job])
    sizes = [len(tasks) for tasks in schedules.values()]
    if len(sizes) < 2 or not 0 < min(sizes) <= max(sizes) <= _MOST_DRAWN:
        return None
    lanes = {source: schedule_lanes(tasks) for source, tasks in schedules.items()}
    ends_s = {source: max(task.end for task in tasks) for source, tasks in schedules.items()}

    def draw(canvas: Canvas) -> None:
        lane_axes = canvas.figure.add_subplot()
        names = []
        lane_row = 0.0
        for source, source_lanes in lanes.items():
            names.append((lane_row + (len(source_lanes) - 1) / 2, one_line(source, 26)))
            for lane in source_lanes:
                for start_s, end_s, kind in lane:
                    tooltip = f"{source}, {kind}: {seconds(end_s - start_s)}"
                    canvas.bar(lane_axes, lane_row, (start_s, end_s), kind, tooltip=tooltip)
                lane_row += 1
            lane_row += _GAP
        longest_s = max(ends_s.values()) * 1.02
        row_axes(lane_axes, names, (0.0, longest_s), "seconds from the start of the first task")
        lane_axes.set_ylim(lane_row - _GAP + 0.1, -0.6)
        canvas.texture_legend(PHASE_NAMES)

    title = f"{results.label(cell)}: tasks as they ran and as models schedule them"
    which = f", job {median_job + 1} of {len(jobs)}" if len(jobs) > 1 else ""
    caption = (
        f"{results.label(cell)}{which}: every task from the start of the first one, a row"
        " per slot in use; predicted ones with separate pools of slots."
    )
    rows = [(source, number(end_s)) for source, end_s in ends_s.items()]
    columns = ("Source", "Last task ends, s")
    data = table(f"{title}: data of the figure", columns, "lr", rows, folded=True)
    height = 1.0 + _LANE * sum(len(source_lanes) + _GAP for source_lanes in lanes.values())
    return Figure(f"schedule{place}", title, WIDE, height, caption, data, draw)


def task_schedules(results: ReportData, cell: str, traced_job: JobTrace) -> dict[str, list[Piece]]:
    """Tasks of *traced_job* from the start of the first, as measured and by each model with any."""
    done = (*traced_job.succeeded("map"), *traced_job.succeeded("reduce"))
    schedules = {"measured": [Piece(task.start_s, task.finish_s, task.kind) for task in done]}
    timelines = {
        prediction.model: prediction.timeline
        for prediction in results.predictions
        if prediction.cell == cell
    }
    for model in results.models:
        if spans := timelines.get(model):
            schedules[model] = [Piece(span.start_s, span.end_s, span.kind) for span in spans]
    for source, tasks in schedules.items():
        first_s = min((task.start for task in tasks), default=0.0)
        schedules[source] = [Piece(*task.since(first_s), task.part) for task in tasks]
    return schedules


def schedule_lanes(tasks: Sequence[Piece]) -> list[list[Piece]]:
    """Tasks in lanes, those of maps above those of reduces."""
    lanes = list[list[Piece]]()
    for kind in KINDS:
        lanes += in_lanes([task for task in tasks if task.part == kind])
    return lanes


def in_lanes(tasks: Iterable[Piece]) -> list[list[Piece]]:
    """Tasks in as few lanes as hold them: each in the first lane that is free when it starts."""
    lanes: list[list[Piece]] = []
    for task in sorted(tasks):
        free = (lane for lane in lanes if lane[-1].end <= task.start + _TOLERANCE_S)
        if (lane := next(free, None)) is not None:
            lane.append(task)
        else:
            lanes.append([task])
    return lanes
