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

    low: float
    high: float
    logarithmic: bool


def section(results: ReportData) -> Section:
    """One panel per model: each scored cell with the spread of its repeats, and the 1:1 line."""
    panels = [_panel(results, *panel) for panel in scored_panels(results)]
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
    low, high = min(times), max(times)
    logarithmic = low > 0 and high / low > _LOGARITHMIC_FROM
    limits = Range(low / 1.3 if logarithmic else 0.0, high * 1.18 or 1.0, logarithmic)
    by_model = {m: [score for score in chosen if score.model == m] for m in results.models()}
    return [(model, scores, limits) for model, scores in by_model.items() if scores]


def square_axes(canvas: Canvas, limits: Range, model: str) -> Axes:
    """Axes of a panel: measured over predicted seconds."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes = canvas.figure.add_subplot()
    axes.set_title(one_line(model, 40))
    for axis in (axes.xaxis, axes.yaxis):
        if limits.logarithmic:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            wide = limits.high / limits.low > 30
            axis.set_major_locator(LogLocator(subs=(1, 3) if wide else (1, 2, 3, 5, 7)))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set(xlim=limits[:2], ylim=limits[:2], aspect="equal")
    axes.set(xlabel="predicted job time, s", ylabel="measured job time, s")
    grid(axes, "both")
    return axes


def draw_points(
    results: ReportData, canvas: Canvas, axes: Axes, scores: Sequence[Score], model: int
) -> None:
    """Draw a point per cell, with the spread of its repeats; its shape is that of its workload."""
    for place, workload in enumerate(results.workloads()):
        style = marker(place, model)
        chosen = [score for score in scores if results.workload_of(score.cell) == workload]
        for score in chosen:
            noise = score.measured_s * (score.floor or 0.0)
            colour = SERIES[model % len(SERIES)]
            axes.errorbar(
                score.predicted_s, score.measured_s, yerr=noise, color=colour, linewidth=1
            )
            (point,) = axes.plot([score.predicted_s], [score.measured_s], **style, zorder=3)
            error = percent(score.signed_error, score.floor, signed=True)
            canvas.mark(
                point,
                tooltip=f"{results.label(score.cell)}: predicted"
                f" {seconds(score.predicted_s, noise or None)},"
                f" measured {seconds(score.measured_s, noise or None)} ({error};"
                f" noise {floor_percent(score.floor)})",
            )
        if chosen:
            axes.plot([], [], **style, label=one_line(workload, 24))
    if axes.get_legend_handles_labels()[0]:
        canvas.figure.legend(loc="outside lower center", ncols=2)


def _panel(results: ReportData, model: str, scores: Sequence[Score], limits: Range) -> Figure:
    place = results.models().index(model)

    def draw(canvas: Canvas) -> None:
        axes, ends = square_axes(canvas, limits, model), limits[:2]
        for share in (0.2, 0.1):
            low, high = ([end / (1 + error) for end in ends] for error in (share, -share))
            axes.fill_between(
                ends, low, high, facecolor=BAND, alpha=0.5, edgecolor=MUTED, linewidth=0.5, zorder=0
            )
        axes.plot(ends, ends, color=INK, linewidth=0.9, zorder=1)
        axes.text(0.04, 0.96, "took longer than predicted", color=MUTED, fontsize=8, va="top",
                  transform=axes.transAxes)  # fmt: skip
        axes.text(0.96, 0.04, "took less", color=MUTED, fontsize=8, ha="right",
                  transform=axes.transAxes)  # fmt: skip
        draw_points(results, canvas, axes, scores, place)

    rows = []
    for score in scores:
        noise = score.measured_s * score.floor if score.floor else None
        rows.append(
            (
                results.label(score.cell),
                number(score.predicted_s, noise),
                number(score.measured_s, noise),
                floor_percent(score.floor),
                percent(score.signed_error, score.floor, signed=True),
            )
        )
    columns = ("Cell", "Predicted, s", "Measured, s", "Noise floor", "Error")
    close = sum(score.relative_error <= 0.1 for score in scores)
    fair = sum(score.relative_error <= 0.2 for score in scores)
    return Figure(
        name=f"scatter{place}",
        title=f"{model}: measured over predicted job time, one point per cell",
        width=PANEL,
        height=PANEL + 0.25,
        caption=f"{model}: {close} of {len(scores)} cells within 10 % of the measured time (inner"
        f" band), {fair} within 20 % (outer band).",
        data=table(f"{model}: data of the figure", columns, "lrrrr", rows, folded=True),
        draw=draw,
    )
