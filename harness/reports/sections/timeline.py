"""
A job as it ran: one lane per slot of each node, phases coloured and hatched.

Where the parts of a task are known, its bar shows what the main thread did, and a thinner one below
it what other threads did meanwhile.
"""

from __future__ import annotations

import math

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.records.trace import JobTrace, TaskAttempt
from harness.records.trial import TrialRecord
from harness.reports.data import JobTaskTimes, ReportData
from harness.reports.document import Figure, Figures, Section, Table, Value, table
from harness.reports.drawing import INK, MUTED, WIDE, Canvas, time_axis
from harness.reports.sections.phases import PHASE_NAMES
from harness.reports.tracks import DRAWN, Piece, is_detailed, paint, thinned, tracks
from harness.reports.wording import UNKNOWN, count, natural, number, one_line, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAD = (
    "One representative job of each workload, or all jobs of such a trial, every attempt in the"
    " slot where it ran."
)
_MOST_TOOLTIPS = 400
_MOST_DRAWN = 2000
_MOST_LANES = 100
_STEPS = 1000  # pieces narrower than this part of the axis become one with their neighbours
_LEAST_END = 80  # this part of the axis at least shows that an attempt failed or was killed
_RESOLUTION_S = 0.05
_MOST_NUMBERS = 12  # of jobs above a timeline

Lane = tuple[str, str, int]
# Of each attempt whose parts are known: pieces of the main thread, and of the others beside it.
Details = Mapping[str, tuple[list[Piece], list[Piece]]]


def section(results: ReportData) -> Section:
    """One timeline for each workload's representative job."""
    return Section(
        id="timeline",
        title="Timeline of a job",
        blocks=[
            Figures(
                [timeline(results, place, *each) for place, each in enumerate(results.timelines)],
                _LEAD,
            )
        ],
        missing="No job has been traced.",
    )


def timeline(results: ReportData, place: int, record: TrialRecord, traced_job: JobTrace) -> Figure:
    """Swim lanes of a trial's job, or of all its jobs: submissions, masters' starts, the end."""
    lanes = assign_lanes(traced_job.attempts)
    lane_names = sorted(set(lanes.values()), key=lambda lane: (natural(lane[0]), *lane[1:]))
    hidden = len(lane_names)
    # Where there are too many lanes every second, every third, ... is drawn.
    lane_names = lane_names[:: max(1, math.ceil(len(lane_names) / _MOST_LANES))]
    hidden -= len(lane_names)
    rows = {lane: lane_row for lane_row, lane in enumerate(lane_names)}
    shown = {
        attempt.attempt_id: (attempt, rows[lanes[attempt.attempt_id]])
        for attempt in traced_job.attempts
        if lanes[attempt.attempt_id] in rows
    }
    details = _details(results, record, traced_job)
    trial_jobs = results.jobs.get(record.trial.id, (traced_job,))
    pitch = (
        (0.42 if details else 0.27) if len(lane_names) <= 24 else max(0.05, 6.5 / len(lane_names))
    )
    height = 1.45 + pitch * max(1, len(lane_names))
    few = len(traced_job.attempts) <= _MOST_DRAWN

    def draw(canvas: Canvas) -> None:
        lane_axes = canvas.figure.add_subplot()
        by_row: dict[int, list[Piece]] = {}
        for attempt, lane_row in sorted(shown.values(), key=lambda each: _by_start(each[0])):
            if few and attempt.attempt_id in details:
                _draw_pieces(
                    canvas, lane_axes, lane_row, (attempt, traced_job), details[attempt.attempt_id]
                )
                continue
            for phase, start, ended in phases(attempt):
                if not few:  # so many attempts that neighbours have to share a bar
                    by_row.setdefault(lane_row, []).append(Piece(start, ended, phase))
                    continue
                length = seconds(ended - start, _RESOLUTION_S)
                tooltip = f"{attempt.attempt_id} on {attempt.host}: {PHASE_NAMES[phase]} {length}"
                tooltip = tooltip if len(shown) <= _MOST_TOOLTIPS else ""
                times_s = start - traced_job.submit_s, ended - traced_job.submit_s
                canvas.bar(lane_axes, lane_row, times_s, phase, tooltip=tooltip)
        for lane_row, pieces in by_row.items():
            for piece in thinned(pieces, traced_job.job_s * len(rows) / _MOST_DRAWN):
                times_s = piece.start - traced_job.submit_s, piece.end - traced_job.submit_s
                canvas.bar(lane_axes, lane_row, times_s, piece.part)
        _draw_axes(canvas, lane_axes, lane_names, traced_job, trial_jobs)
        canvas.texture_legend(DRAWN | PHASE_NAMES, columns=4 if details else 8)

    caption = _caption(results, record, traced_job, trial_jobs)
    caption += f" {count(hidden, 'slot')} between these not drawn." if hidden else ""
    if not few:
        caption += " Neighbouring attempts share a bar where they are too short to be seen."
    if any(beside for _, beside in details.values()):
        caption += " A thinner bar is what other threads of a task did meanwhile."
    what = f"{len(trial_jobs)} jobs" if len(trial_jobs) > 1 else "one job"
    title = (
        f"{traced_job.name or traced_job.job_id}: attempts of {what} over time, by node and slot"
    )
    attempts = attempts_table(traced_job)
    return Figure(f"timeline{place}", title, WIDE, height, caption, attempts, draw)


def _by_start(attempt: TaskAttempt) -> tuple[float, str]:
    return attempt.start_s, attempt.attempt_id


def _details(results: ReportData, record: TrialRecord, traced_job: JobTrace) -> Details:
    known = results.task_times.get(record.trial.id, JobTaskTimes())
    details = {}
    for attempt in traced_job.attempts if is_detailed(traced_job) else ():
        name = attempt.attempt_id
        times_s, recording = known.from_logs.get(name), known.recordings.get(name)
        if attempt_tracks := tracks(attempt, times_s, recording):
            main, *others = attempt_tracks
            # Copying is seen in the main thread's bar, which does nothing else meanwhile.
            beside = [
                piece
                for track in others
                for piece in track.pieces
                if piece.part not in {"copy", "connect"}
            ]
            details[name] = main.pieces, paint(beside)
    return details


def _draw_pieces(
    canvas: Canvas,
    lane_axes: Axes,
    lane_row: int,
    run: tuple[TaskAttempt, JobTrace],
    pieces: tuple[list[Piece], list[Piece]],
) -> None:
    """Draw what the threads of an attempt of a job did, and at its end what became of it."""
    attempt, traced_job = run
    name, (main, beside) = f"{attempt.attempt_id} on {attempt.host}", pieces
    if attempt.state != "succeeded":
        # A task may outlive what its master records of it.
        main, beside = (
            [Piece(drawn_piece.start, min(drawn_piece.end, attempt.finish_s), drawn_piece.part)
             for drawn_piece in thread if drawn_piece.start < attempt.finish_s]
            for thread in pieces
        )  # fmt: skip
        known_until = main[-1].end if main else attempt.start_s
        start = min(known_until, attempt.finish_s - traced_job.job_s / _LEAST_END)
        times_s = (
            max(start, attempt.start_s) - traced_job.submit_s,
            attempt.finish_s - traced_job.submit_s,
        )
        length = seconds(attempt.duration_s, _RESOLUTION_S)
        tooltip = f"{name}: {PHASE_NAMES[attempt.state]} after {length}"
        canvas.bar(lane_axes, lane_row, times_s, attempt.state, tooltip=tooltip)
    for thread, middle, height in ((main, lane_row - 0.13, 0.5), (beside, lane_row + 0.25, 0.22)):
        for piece in thinned(thread, traced_job.job_s / _STEPS):
            times_s = piece.start - traced_job.submit_s, piece.end - traced_job.submit_s
            tooltip = f"{name}: {DRAWN[piece.part]} {seconds(times_s[1] - times_s[0])}"
            canvas.bar(
                lane_axes, middle, times_s, piece.part, tooltip=tooltip, height=height, edge=0.3
            )


def assign_lanes(attempts: Sequence[TaskAttempt]) -> dict[str, Lane]:
    """
    Slot of each attempt: (host, kind, number from 1), the lowest that is free when it starts.

    History names containers, not slots; the number of lanes is what ran at once.
    """
    busy_until: dict[tuple[str, str], list[float]] = {}
    lanes: dict[str, Lane] = {}
    for attempt in sorted(attempts, key=_by_start):
        ends = busy_until.setdefault((attempt.host, attempt.kind), [])
        free = (slot for slot, ended in enumerate(ends) if ended <= attempt.start_s)
        slot = next(free, len(ends))
        ends[slot : slot + 1] = [attempt.finish_s]
        lanes[attempt.attempt_id] = (attempt.host, attempt.kind, slot + 1)
    return lanes


def phases(attempt: TaskAttempt) -> Iterator[tuple[str, float, float]]:
    """
    Phases of an attempt as (name, start, end), in seconds since the epoch.

    An attempt that did not succeed is one phase, named by its state.
    """
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
            yield name, start, ended
            start = ended


def _draw_axes(
    canvas: Canvas,
    lane_axes: Axes,
    lane_names: Sequence[Lane],
    traced_job: JobTrace,
    trial_jobs: Sequence[JobTrace],
) -> None:
    """
    Name the lanes, and mark the events above them.

    Of several jobs each submission with its number, as far as there is room, and the last end.
    """
    if len(lane_names) <= 60:
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
    last_s = max(
        [
            traced_job.job_s,
            *(attempt.finish_s - traced_job.submit_s for attempt in traced_job.attempts),
        ]
    )
    time_axis(lane_axes, max(last_s, 0.001))
    which = "first job" if len(trial_jobs) > 1 else "job"
    lane_axes.set_xlabel(f"seconds since the {which} was submitted")
    height, end_s = canvas.figure.get_figheight(), trial_jobs[-1].finish_s - trial_jobs[0].submit_s
    end_text, raised = f"finished, {end_s:.1f} s", 1.0 + 0.16 / (height - 1.3)
    if len(trial_jobs) > 1:
        every, first_s = math.ceil(len(trial_jobs) / _MOST_NUMBERS), trial_jobs[0].submit_s
        events = [
            (each.submit_s - first_s, "" if place % every else f"job {place + 1}", "left", 1.0)
            for place, each in enumerate(trial_jobs)
        ]
        events.append((end_s, end_text, "right", raised))
    else:
        events = [(0.0, "submitted", "left", 1.0), (end_s, end_text, "right", 1.0)]
        launch_s = trial_jobs[0].launch_s - trial_jobs[0].submit_s
        if 0 < launch_s < end_s:
            side = "right" if launch_s > end_s / 2 else "left"
            events.append((launch_s, f"application master started, {launch_s:.1f} s", side, raised))
    for at_s, text, side, top in events:
        lane_axes.axvline(at_s, color=INK, linewidth=1.1, linestyle=(0, (4, 2)), zorder=4)
        lane_axes.text(at_s, top, text, ha=side, va="bottom", fontsize=8.5,
                  transform=lane_axes.get_xaxis_transform())  # fmt: skip


def _caption(
    results: ReportData, record: TrialRecord, traced_job: JobTrace, trial_jobs: Sequence[JobTrace]
) -> str:
    cell = record.trial.cell.id
    answers = [
        f"{prediction.model} {seconds(prediction.job_s, 0.3)}"
        for prediction in results.predictions
        if prediction.cell == cell and prediction.job_s is not None
    ]
    unfinished = sum(attempt.state != "succeeded" for attempt in traced_job.attempts)
    several, sums = "", ""
    if len(trial_jobs) > 1:
        several = f"{len(trial_jobs)} jobs, one after the other, "
        sums = f", {seconds(math.fsum(each.job_s for each in trial_jobs), 0.3)} of them in jobs"
    tasks = f"{count(traced_job.num_maps, 'map')}, {count(traced_job.num_reduces, 'reduce')}"
    caption = (
        f"{results.label(cell)}, trial {record.trial.id}: {several}{tasks},"
        f" {seconds(traced_job.job_s, 0.3)} from submission to end{sums}."
    )
    caption += f" Predicted: {', '.join(answers)}." if answers else ""
    return caption + (
        f" {count(unfinished, 'attempt')} failed or was killed." if unfinished else ""
    )


def attempts_table(traced_job: JobTrace) -> Table:
    """Every attempt with its times from the submission, and the errors of those that failed."""
    rows = []
    for attempt in sorted(traced_job.attempts, key=_by_start):
        times_s = (
            f"{PHASE_NAMES[name]} {number(ended - start, _RESOLUTION_S)}"
            for name, start, ended in phases(attempt)
        )
        done = attempt.state == "succeeded"
        rows.append(
            (
                attempt.attempt_id,
                attempt.kind,
                attempt.host,
                Value(attempt.state, "" if done else "mark"),
                number(attempt.start_s - traced_job.submit_s, _RESOLUTION_S),
                number(attempt.finish_s - traced_job.submit_s, _RESOLUTION_S),
                "; ".join(times_s) if done else UNKNOWN,
                attempt.error or "",
            )
        )
    columns = ("Attempt", "Kind", "Host", "State", "Start, s", "End, s", "Phases, s", "Error")
    caption = "Attempts; times from the submission"
    return table(caption, columns, "clllrrll", rows, folded=True, most=500)
