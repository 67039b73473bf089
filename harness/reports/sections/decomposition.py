"""From the measured job time to the predicted one: what the error of each phase is worth."""

from __future__ import annotations

import math

from collections.abc import Mapping
from statistics import fmean
from typing import Any, NamedTuple

from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import INK, MUTED, WIDE, Canvas, grid
from harness.reports.sections.phases import PHASE_NAMES, PHASE_TEXTURES
from harness.reports.wording import count, number, one_line, percent, seconds

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
    if not results.book.decompositions:
        return None
    means = {workload: _mean_errors(results, workload) for workload in results.workloads()}
    known = {workload: by_model for workload, by_model in means.items() if by_model}

    def values() -> dict[str, Any]:
        return {
            "decompositions": [
                {"label": results.label(each.cell), **each.model_dump(mode="json")}
                for each in results.book.decompositions
            ]
        }

    return Section(
        id="decomposition",
        title="Where the error of a job comes from",
        blocks=[Figures([_figure(place, *item) for place, item in enumerate(known.items())])],
        values=values,
    )


def _mean_errors(results: ReportData, workload: str) -> dict[str, MeanError]:
    """Mean decompositions at raw speed, by model."""
    means = {}
    for model in results.models():
        chosen = [
            each
            for each in results.book.decompositions
            if (each.speed, each.model) == ("raw", model)
            and results.workload_of(each.cell) == workload
        ]
        errors = [{part.phase: part.error_s for part in each.parts} for each in chosen]
        if chosen:
            means[model] = MeanError(
                cells=len(chosen),
                measured_s=fmean(each.measured_s for each in chosen),
                predicted_s=fmean(each.predicted_s for each in chosen),
                parts={
                    phase: fmean(each.get(phase, 0.0) for each in errors)
                    for phase in _NAMES
                    if any(phase in each for each in errors)
                },
                cancelled=fmean(each.cancelled for each in chosen),
            )
    return means


def _figure(place: int, workload: str, means: Mapping[str, MeanError]) -> Figure:
    columns = min(_COLUMNS, len(means))
    panel_rows = math.ceil(len(means) / columns)
    steps = [name for name in _NAMES if any(name in mean.parts for mean in means.values())]
    reached = [
        mean.measured_s + math.fsum(list(mean.parts.values())[:done])
        for mean in means.values()
        for done in range(len(mean.parts) + 1)
    ]
    lowest_s, highest_s = min(reached), max(reached)
    room = max(0.08 * (highest_s - lowest_s), _LEAST_ROOM * highest_s)

    def draw(canvas: Canvas) -> None:
        panels = canvas.figure.subplots(
            panel_rows, columns, squeeze=False, sharex=True, sharey=True
        ).flat
        for axes in list(panels)[len(means) :]:
            axes.set_axis_off()
        for axes, (model, mean) in zip(panels, means.items(), strict=False):
            name, at_s = one_line(model, 26), mean.measured_s
            totals = ((0, at_s, "measured"), (len(steps) + 1, mean.predicted_s, "predicted"))
            for row, total_s, what in totals:
                (mark,) = axes.plot([total_s], [row], "D", color=INK, markersize=5)
                canvas.mark(mark, tooltip=f"{name}: {what} {seconds(total_s)}")
            for row, step in enumerate(steps, start=1):
                error_s = mean.parts.get(step, 0.0)
                span_s = min(at_s, at_s + error_s), max(at_s, at_s + error_s)
                tooltip = f"{name}, {_NAMES[step]}: {number(error_s)} s in the job time"
                texture = PHASE_TEXTURES.get(step, "other")
                canvas.bar(axes, row, span_s, texture, tooltip=tooltip)
                axes.plot([at_s, at_s], [row - 1, row], color=MUTED, linewidth=0.6)
                at_s += error_s
            axes.plot([at_s, at_s], [len(steps), len(steps) + 1], color=MUTED, linewidth=0.6)
            axes.set_title(f"{name}: {percent(mean.cancelled)} cancels")
            names = ["measured", *(_NAMES[step] for step in steps), "predicted"]
            axes.set(yticks=range(len(names)), yticklabels=names, xlabel="seconds")
            axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(lowest_s - room, highest_s + room))
            axes.label_outer()
            axes.spines["left"].set_color(INK)
            grid(axes, "x")

    rows = [
        (
            *(model, str(mean.cells), number(mean.measured_s)),
            *(f"{mean.parts[step]:+.1f}" if step in mean.parts else "" for step in steps),
            *(number(mean.predicted_s), percent(mean.cancelled)),
        )
        for model, mean in means.items()
    ]
    heads = ("Model", "Cells", "Measured", *(_NAMES[step] for step in steps))
    errors = table(
        f"{workload}: where the error of the job time comes from (means over cells, s)",
        (*heads, "Predicted", "Cancels"), "l" + "r" * (len(steps) + 4), rows,
        note="What cancels is the share of these errors that the job time does not show.",
    )  # fmt: skip
    cells = count(max(mean.cells for mean in means.values()), "cell")
    title = f"{workload}: from the measured job time to the predicted one"
    caption = (
        f"{workload}: mean over {cells}. The error of a phase counts once per wave of its tasks;"
        " what phases do not explain is overlap and overhead. The axis does not begin at 0."
    )
    height = panel_rows * (0.75 + 0.24 * (len(steps) + 2))
    return Figure(f"waterfall{place}", title, WIDE, height, caption, errors, draw)
