"""Tasks of a job as they ran, above the same tasks as each model's scheduler runs them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import NamedTuple

from harness.records.trace import JobTrace
from harness.records.trial import TrialRecord
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import WIDE, Canvas, row_axes
from harness.reports.sections.phases import PHASE_NAMES
from harness.reports.wording import number, one_line, seconds

_LANE, _GAP = 0.13, 1.0
_MOST_TASKS = 2000  # of a job; more would be drawn as dust
_TOLERANCE_S = 1e-6


class Task(NamedTuple):
    """A task of a job: `map` or `reduce`, and its seconds since the first task's start."""

    kind: str
    start_s: float
    end_s: float


def section(results: ReportData) -> Section | None:
    """One figure for each timeline's job whose tasks a model schedules."""
    figures = [
        schedule_figure(results, place, record, results.jobs.get(record.trial.id, (job,)))
        for place, (record, job) in enumerate(results.timelines)
    ]
    shown = [figure for figure in figures if figure is not None]
    return (
        Section("schedule", "Measured and predicted schedule", [Figures(shown)]) if shown else None
    )


def schedule_figure(
    results: ReportData, place: int, record: TrialRecord, jobs: Sequence[JobTrace]
) -> Figure | None:
    """
    Draw the measured and the predicted tasks of one job; nothing where no model has them.

    Of several *jobs* it is the one that took the median time.
    """
    median_job, cell = typical_job(jobs), record.trial.cell.id
    done = (*jobs[median_job].succeeded("map"), *jobs[median_job].succeeded("reduce"))
    tasks = {
        "measured": [Task(of_model.kind, of_model.start_s, of_model.finish_s) for of_model in done]
    }
    predicted = {
        of_model.model: of_model.timeline
        for of_model in results.predictions
        if of_model.cell == cell
    }
    for model in results.models():
        if spans := predicted.get(model):
            tasks[model] = [Task(span.kind, span.start_s, span.end_s) for span in spans]
    sizes = [len(of_source) for of_source in tasks.values()]
    if len(sizes) < 2 or not 0 < min(sizes) <= max(sizes) <= _MOST_TASKS:
        return None
    for source, of_source in tasks.items():
        first_s = min(lane_task.start_s for lane_task in of_source)
        tasks[source] = [
            Task(task_kind, start - first_s, end - first_s) for task_kind, start, end in of_source
        ]
    lanes = {source: in_lanes(of_source) for source, of_source in tasks.items()}
    ends = {
        source: max(lane_task.end_s for lane_task in of_model) for source, of_model in tasks.items()
    }

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.add_subplot()
        names, lane_row = [], 0.0
        for source, of_source in lanes.items():
            names.append((lane_row + (len(of_source) - 1) / 2, one_line(source, 26)))
            for lane in of_source:
                for kind, start_s, end_s in lane:
                    tooltip = f"{source}, {kind}: {seconds(end_s - start_s)}"
                    canvas.bar(axes, lane_row, (start_s, end_s), kind, tooltip=tooltip)
                lane_row += 1
            lane_row += _GAP
        row_axes(axes, names, max(ends.values()) * 1.02, "seconds from the start of the first task")
        axes.set_ylim(lane_row - _GAP + 0.1, -0.6)
        canvas.texture_legend(PHASE_NAMES)

    title = f"{results.label(cell)}: tasks as they ran and as models schedule them"
    rows = [(source, number(end_s)) for source, end_s in ends.items()]
    columns = ("Source", "Last task ends, s")
    which = f", job {median_job + 1} of {len(jobs)}" if len(jobs) > 1 else ""
    height = 1.0 + _LANE * sum(len(of_model) + _GAP for of_model in lanes.values())
    caption = (
        f"{results.label(cell)}{which}: every task from the start of the first one, a row"
        " per slot in use; predicted ones with separate pools of slots."
    )
    data = table(f"{title}: data of the figure", columns, "lr", rows, folded=True)
    return Figure(f"schedule{place}", title, WIDE, height, caption, data, draw)


def typical_job(jobs: Sequence[JobTrace]) -> int:
    """Place of the job with the median time."""
    times = [job.job_s for job in jobs]
    return times.index(median_low(times))


def in_lanes(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks in as few lanes as hold them: each in the first lane that is free, maps first."""
    lanes: list[list[Task]] = []
    for kind in ("map", "reduce"):
        of_kind: list[list[Task]] = []
        for lane_task in sorted(lane_task for lane_task in tasks if lane_task.kind == kind):
            earliest = lane_task.start_s + _TOLERANCE_S
            free = (lane for lane in of_kind if lane[-1].end_s <= earliest)
            if (lane := next(free, None)) is not None:
                lane.append(lane_task)
            else:
                of_kind.append([lane_task])
        lanes += of_kind
    return lanes
