"""Measured over predicted job times: each cell against the line on which both are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.records.score import Score
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import BAND, INK, MUTED, SERIES, Canvas, grid, marker
from harness.reports.wording import floor_percent, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = 4.7  # inches
_LOGARITHMIC_FROM = 6.0
_LEAD = (
    "Each point is a cell: the mean of its repeats, as measured, with their spread as a"
    " bar. On the line, prediction and measurement agree; the bands hold predictions"
    " within 10 % and 20 % of the measured time."
)


class Range(NamedTuple):
    """Range that all panels share, so that they can be compared by eye."""

    lowest: float
    highest: float
    logarithmic: bool


def section(results: ReportData) -> Section:
    """One panel per model: each scored cell with the spread of its repeats, and the 1:1 line."""
    panels = [scatter_panel(results, *panel) for panel in scored_panels(results)]
    return Section(
        id="predicted",
        title="Predicted and measured",
        blocks=[Figures(panels, _LEAD, side_by_side=True)],
        missing="No cell has both a prediction and a measurement.",
    )


def scored_panels(results: ReportData) -> list[tuple[str, list[Score], Range]]:
    """Each model with its scores of the raw job time, and the range of all models' times."""
    chosen = results.scores("job_s", "raw")
    times = [seconds_ for each in chosen for seconds_ in (each.predicted_s, each.measured_s)]
    if not times:
        return []
    lowest, highest = min(times), max(times)
    logarithmic = lowest > 0 and highest / lowest > _LOGARITHMIC_FROM
    limits = Range(lowest / 1.3 if logarithmic else 0.0, highest * 1.18 or 1.0, logarithmic)
    by_model = {
        model_name: [cell_score for cell_score in chosen if cell_score.model == model_name]
        for model_name in results.models()
    }
    return [(model, scores, limits) for model, scores in by_model.items() if scores]


def square_axes(canvas: Canvas, limits: Range, model: str) -> Axes:
    """Axes of a panel: measured over predicted seconds."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    panel_axes = canvas.figure.add_subplot()
    panel_axes.set_title(one_line(model, 40))
    for axis in (panel_axes.xaxis, panel_axes.yaxis):
        if limits.logarithmic:
            (panel_axes.set_xscale if axis is panel_axes.xaxis else panel_axes.set_yscale)("log")
            wide = limits.highest / limits.lowest > 30
            axis.set_major_locator(LogLocator(subs=(1, 3) if wide else (1, 2, 3, 5, 7)))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel_axes.set(xlim=limits[:2], ylim=limits[:2], aspect="equal")
    panel_axes.set(xlabel="predicted job time, s", ylabel="measured job time, s")
    grid(panel_axes, "both")
    return panel_axes


def draw_points(
    results: ReportData, canvas: Canvas, panel_axes: Axes, scores: Sequence[Score], model: int
) -> None:
    """Draw a point per cell, with the spread of its repeats; its shape is that of its workload."""
    for place, workload in enumerate(results.workloads()):
        style = marker(place, model)
        chosen = [
            cell_score for cell_score in scores if results.workload_of(cell_score.cell) == workload
        ]
        for cell_score in chosen:
            noise = cell_score.measured_s * (cell_score.floor or 0.0)
            colour = SERIES[model % len(SERIES)]
            panel_axes.errorbar(
                cell_score.predicted_s, cell_score.measured_s, yerr=noise, color=colour, linewidth=1
            )
            (point,) = panel_axes.plot(
                [cell_score.predicted_s], [cell_score.measured_s], **style, zorder=3
            )
            error = percent(cell_score.signed_error, cell_score.floor, signed=True)
            canvas.mark(
                point,
                tooltip=f"{results.label(cell_score.cell)}: predicted"
                f" {seconds(cell_score.predicted_s, noise or None)},"
                f" measured {seconds(cell_score.measured_s, noise or None)} ({error};"
                f" noise {floor_percent(cell_score.floor)})",
            )
        if chosen:
            panel_axes.plot([], [], **style, label=one_line(workload, 24))
    if panel_axes.get_legend_handles_labels()[0]:
        canvas.figure.legend(loc="outside lower center", ncols=2)


def scatter_panel(
    results: ReportData, model: str, scores: Sequence[Score], limits: Range
) -> Figure:
    """Points of one model, the line of equality, and bands of 10 % and 20 % around it."""
    place = results.models().index(model)

    def draw(canvas: Canvas) -> None:
        panel_axes, ends = square_axes(canvas, limits, model), limits[:2]
        for share in (0.2, 0.1):
            lowest, highest = ([end / (1 + error) for end in ends] for error in (share, -share))
            panel_axes.fill_between(
                ends,
                lowest,
                highest,
                facecolor=BAND,
                alpha=0.5,
                edgecolor=MUTED,
                linewidth=0.5,
                zorder=0,
            )
        panel_axes.plot(ends, ends, color=INK, linewidth=0.9, zorder=1)
        panel_axes.text(0.04, 0.96, "took longer than predicted", color=MUTED, fontsize=8, va="top",
                  transform=panel_axes.transAxes)  # fmt: skip
        panel_axes.text(0.96, 0.04, "took less", color=MUTED, fontsize=8, ha="right",
                  transform=panel_axes.transAxes)  # fmt: skip
        draw_points(results, canvas, panel_axes, scores, place)

    rows = []
    for cell_score in scores:
        noise = cell_score.measured_s * cell_score.floor if cell_score.floor else None
        rows.append(
            (
                results.label(cell_score.cell),
                number(cell_score.predicted_s, noise),
                number(cell_score.measured_s, noise),
                floor_percent(cell_score.floor),
                percent(cell_score.signed_error, cell_score.floor, signed=True),
            )
        )
    columns = ("Cell", "Predicted, s", "Measured, s", "Noise floor", "Error")
    close = sum(cell_score.relative_error <= 0.1 for cell_score in scores)
    fair = sum(cell_score.relative_error <= 0.2 for cell_score in scores)
    title = f"{model}: measured over predicted job time, one point per cell"
    height = PANEL + 0.25
    caption = (
        f"{model}: {close} of {len(scores)} cells within 10 % of the measured time (inner"
        f" band), {fair} within 20 % (outer band)."
    )
    data = table(f"{model}: data of the figure", columns, "lrrrr", rows, folded=True)
    return Figure(f"scatter{place}", title, PANEL, height, caption, data, draw)
