"""From the measured job time to the predicted one: what the error of each phase is worth."""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.records.score import Decomposition
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import INK, MUTED, WIDE, Canvas, grid
from harness.reports.sections.phases import PHASE_NAMES, PHASE_TEXTURES
from harness.reports.wording import count, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = {
    **{phase: PHASE_NAMES[texture] for phase, texture in PHASE_TEXTURES.items()},
    "rest_s": "overlap and overhead",
}
_COLUMNS = 3  # of panels
_LEAST_ROOM = 0.02  # of the longest time


class MeanError(NamedTuple):
    """Means over the cells of a workload, in seconds; *cancelled* is a share."""

    cells: int
    measured_s: float
    predicted_s: float
    parts: Mapping[str, float]
    cancelled: float


def section(results: ReportData) -> Section | None:
    """A panel per workload and model."""
    if not results.score_book.decompositions:
        return None
    by_workload = {workload: mean_errors(results, workload) for workload in results.workloads()}
    known = {workload: errors for workload, errors in by_workload.items() if errors}
    figures = [waterfall_figure(place, *item) for place, item in enumerate(known.items())]

    def values() -> dict[str, Any]:
        decompositions = [
            {"label": results.label(each.cell), **each.model_dump(mode="json")}
            for each in results.score_book.decompositions
        ]
        return {"decompositions": decompositions}

    title = "Where the error of a job comes from"
    return Section("decomposition", title, [Figures(figures)], values=values)


def mean_errors(results: ReportData, workload: str) -> dict[str, MeanError]:
    """Mean decompositions at raw speed, by model."""
    by_model: dict[str, list[Decomposition]] = {}
    for each in results.score_book.decompositions:
        if each.speed == "raw" and results.workload_of(each.cell) == workload:
            by_model.setdefault(each.model, []).append(each)
    means = {}
    for model in results.models():
        if chosen := by_model.get(model):
            errors = [{part.phase: part.error_s for part in each.parts} for each in chosen]
            phases = [phase for phase in _NAMES if any(phase in each for each in errors)]
            means[model] = MeanError(
                cells=len(chosen),
                measured_s=fmean(each.measured_s for each in chosen),
                predicted_s=fmean(each.predicted_s for each in chosen),
                parts={phase: fmean(each.get(phase, 0.0) for each in errors) for phase in phases},
                cancelled=fmean(each.cancelled for each in chosen),
            )
    return means


def waterfall_figure(place: int, workload: str, errors: Mapping[str, MeanError]) -> Figure:
    """From the measured to the predicted mean job time, a panel for each model."""
    columns = min(_COLUMNS, len(errors))
    panel_rows = math.ceil(len(errors) / columns)
    phases = [phase for phase in _NAMES if any(phase in each.parts for each in errors.values())]
    reached = [
        error.measured_s + math.fsum(list(error.parts.values())[:steps])
        for error in errors.values()
        for steps in range(len(error.parts) + 1)
    ]
    lowest_s, highest_s = min(reached), max(reached)
    room = max(0.08 * (highest_s - lowest_s), _LEAST_ROOM * highest_s)

    def draw(canvas: Canvas) -> None:
        panels = canvas.figure.subplots(
            panel_rows, columns, squeeze=False, sharex=True, sharey=True
        ).flat
        for unused in list(panels)[len(errors) :]:
            unused.set_axis_off()
        names = ["measured", *(_NAMES[phase] for phase in phases), "predicted"]
        for axes, (model, error) in zip(panels, errors.items(), strict=False):
            _draw_steps(canvas, axes, one_line(model, 26), error, phases)
            axes.set(yticks=range(len(names)), yticklabels=names, xlabel="seconds")
            axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(lowest_s - room, highest_s + room))
            axes.label_outer()
            axes.spines["left"].set_color(INK)
            grid(axes, "x")

    rows = [
        (
            *(model, str(error.cells), number(error.measured_s)),
            *(f"{error.parts[phase]:+.1f}" if phase in error.parts else "" for phase in phases),
            *(number(error.predicted_s), percent(error.cancelled)),
        )
        for model, error in errors.items()
    ]
    heads = ("Model", "Cells", "Measured", *(_NAMES[phase] for phase in phases))
    data = table(
        f"{workload}: where the error of the job time comes from (means over cells, s)",
        (*heads, "Predicted", "Cancels"), "l" + "r" * (len(phases) + 4), rows,
        note="What cancels is the share of these errors that the job time does not show.",
    )  # fmt: skip
    cells = count(max(error.cells for error in errors.values()), "cell")
    caption = (
        f"{workload}: mean over {cells}. The error of a phase counts once per wave of its tasks;"
        " what phases do not explain is overlap and overhead. The axis does not start at 0."
    )
    title = f"{workload}: from the measured job time to the predicted one"
    height = panel_rows * (0.75 + 0.24 * (len(phases) + 2))
    return Figure(f"waterfall{place}", title, WIDE, height, caption, data, draw)


def _draw_steps(
    canvas: Canvas, axes: Axes, model: str, error: MeanError, phases: Sequence[str]
) -> None:
    """Draw the measured time, a bar for the error of each phase, and the predicted time."""
    reached_s, last_row = error.measured_s, len(phases) + 1
    totals = ((0, reached_s, "measured"), (last_row, error.predicted_s, "predicted"))
    for row, total_s, what in totals:
        (mark,) = axes.plot([total_s], [row], "D", color=INK, markersize=5)
        canvas.mark(mark, tooltip=f"{model}: {what} {seconds(total_s)}")
    for row, phase in enumerate(phases, start=1):
        error_s = error.parts.get(phase, 0.0)
        span_s = min(reached_s, reached_s + error_s), max(reached_s, reached_s + error_s)
        tooltip = f"{model}, {_NAMES[phase]}: {number(error_s)} s in the job time"
        canvas.bar(axes, row, span_s, PHASE_TEXTURES.get(phase, "other"), tooltip=tooltip)
        axes.plot([reached_s, reached_s], [row - 1, row], color=MUTED, linewidth=0.6)
        reached_s += error_s
    axes.plot([reached_s, reached_s], [last_row - 1, last_row], color=MUTED, linewidth=0.6)
    axes.set_title(f"{model}: {percent(error.cancelled)} cancels")
