"""Tasks of a job as they ran, above the same tasks as each model's scheduler runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.records.trace import JobTrace
from harness.records.trial import TrialRecord
from harness.reports.data import ReportData, label, models
from harness.reports.jobs import typical_job
from harness.reports.plots.canvas import INK, Canvas, Figure, grid, phase_bar, phase_legend
from harness.reports.tables import table
from harness.reports.wording import number, one_line, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _LANE, _GAP = 9.4, 0.13, 1.0
_MOST_TASKS = 2000  # of a job; more would be drawn as dust
_TOLERANCE_S = 1e-6


class Task(NamedTuple):
    """A task of a job: `map` or `reduce`, and its seconds since the first task's start."""

    kind: str
    start_s: float
    end_s: float


def schedules(
    data: ReportData, place: int, record: TrialRecord, jobs: Sequence[JobTrace]
) -> Figure | None:
    """
    Draw the measured and the predicted tasks of one job; nothing where no model has them.

    Of several *jobs* it is the one that took the median time.
    """
    nth = typical_job(jobs)
    job = jobs[nth]
    groups = [("measured", _from_first(_measured(job)))]
    asked = {p.model: p for p in data.predictions if p.cell == record.trial.cell.id}
    for model in models(data):
        if model in asked and asked[model].timeline:
            spans = [Task(t.kind, t.start_s, t.end_s) for t in asked[model].timeline]
            groups.append((model, _from_first(spans)))
    sizes = [len(tasks) for _, tasks in groups]
    if len(groups) < 2 or not 0 < min(sizes) <= max(sizes) <= _MOST_TASKS:
        return None
    lanes = {name: in_lanes(tasks) for name, tasks in groups}
    title = f"{label(data, record.trial.cell.id)}: tasks as they ran and as models schedule them"
    rows = sum(len(found) + _GAP for found in lanes.values())
    canvas = Canvas(f"schedule{place}", title, _WIDTH, 1.0 + _LANE * rows)
    axes = canvas.figure.add_subplot()
    ticks, at = [], 0.0
    for name, found in lanes.items():
        ticks.append((at + (len(found) - 1) / 2, one_line(name, 26)))
        for lane in found:
            _draw(canvas, axes, at, name, lane)
            at += 1
        at += _GAP
    _frame(axes, ticks, at)
    phase_legend(canvas, {t.kind for _, tasks in groups for t in tasks})
    ends = [(name, number(max(t.end_s for t in tasks))) for name, tasks in groups]
    which = f", job {nth + 1} of {len(jobs)}" if len(jobs) > 1 else ""
    caption = (
        f"{label(data, record.trial.cell.id)}{which}: every task from the start of the first one, a"
        " row per slot in use; predicted ones with separate pools of slots."
    )
    rows_of_data = table(
        f"{title}: data of the figure", ("Source", "Last task ends, s"), "lr", ends
    )
    return Figure(canvas.svg(), caption, rows_of_data)


def in_lanes(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks in as few lanes as hold them: each in the first lane that is free, maps first."""
    lanes: list[list[Task]] = []
    for kind in ("map", "reduce"):
        mine: list[list[Task]] = []
        for task in sorted(t for t in tasks if t.kind == kind):
            free = (lane for lane in mine if lane[-1].end_s <= task.start_s + _TOLERANCE_S)
            lane = next(free, None)
            if lane is None:
                lane = []
                mine.append(lane)
            lane.append(task)
        lanes += mine
    return lanes


def _measured(job: JobTrace) -> list[Task]:
    done = [*job.succeeded("map"), *job.succeeded("reduce")]
    return [Task(a.kind, a.start_s, a.finish_s) for a in done]


def _from_first(tasks: Sequence[Task]) -> list[Task]:
    first = min((t.start_s for t in tasks), default=0.0)
    return [Task(t.kind, t.start_s - first, t.end_s - first) for t in tasks]


def _draw(canvas: Canvas, axes: Axes, at: float, name: str, lane: Sequence[Task]) -> None:
    for task in lane:
        bar = phase_bar(axes, at, task.start_s, task.end_s, task.kind)
        canvas.tip(bar, f"{name}, {task.kind}: {seconds(task.end_s - task.start_s)}")


def _frame(axes: Axes, ticks: Sequence[tuple[float, str]], rows: float) -> None:
    axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    axes.set_ylim(rows - _GAP + 0.1, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds from the start of the first task")
    axes.spines["left"].set_color(INK)
    grid(axes, "x")
