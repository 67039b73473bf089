"""Measured over predicted job times: the line on which both are equal, and the one that fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.records.score import Score
from harness.reports.data import ReportData, noise_s
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
    " within 10 % and 20 % of the measured time. The dashed line is fitted through the points: its"
    " intercept is a constant error (what a job takes whatever its size), its slope a proportional"
    " one (costs that are too low or too high). Intervals are by jackknife+ over the profiling"
    " cells; unbounded: fewer than four of them for 80 %, than nine for 90 %."
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
    times_s = [time_s for score in chosen for time_s in (score.predicted_s, score.measured_s)]
    if not times_s:
        return []
    lowest, highest = min(times_s), max(times_s)
    logarithmic = lowest > 0 and highest / lowest > _LOGARITHMIC_FROM
    limits = Range(lowest / 1.3 if logarithmic else 0.0, highest * 1.18 or 1.0, logarithmic)
    return [
        (model, [score for score in chosen if score.model == model], limits)
        for model in results.scored_models()
        if any(score.model == model for score in chosen)
    ]


def square_axes(canvas: Canvas, limits: Range, model: str) -> Axes:
    """Axes of a panel: measured over predicted seconds."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    panel_axes = canvas.figure.add_subplot()
    panel_axes.set_title(one_line(model, 40))
    if limits.logarithmic:
        panel_axes.set(xscale="log", yscale="log")
    for axis in (panel_axes.xaxis, panel_axes.yaxis):
        if limits.logarithmic:
            wide = limits.highest / limits.lowest > 30
            axis.set_major_locator(LogLocator(subs=(1, 3) if wide else (1, 2, 3, 5, 7)))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(lambda tick, _: f"{tick:g}")
    panel_axes.set(xlim=limits[:2], ylim=limits[:2], aspect="equal")
    panel_axes.set(xlabel="predicted job time, s", ylabel="measured job time, s")
    grid(panel_axes, "both")
    return panel_axes


def draw_points(
    results: ReportData, canvas: Canvas, panel_axes: Axes, scores: Sequence[Score], model: int
) -> None:
    """Draw a point per cell, with the spread of its repeats; its shape is that of its workload."""
    for place, workload in enumerate(results.workloads()):
        style, colour = marker(place, model), SERIES[model % len(SERIES)]
        chosen = [score for score in scores if results.workload_of(score.cell) == workload]
        for score in chosen:
            times_s, noise = (score.predicted_s, score.measured_s), noise_s(score)
            panel_axes.errorbar(*times_s, yerr=noise or 0.0, color=colour, linewidth=1)
            (point,) = panel_axes.plot(times_s[:1], times_s[1:], **style, zorder=3)
            predicted, measured = (seconds(time_s, noise) for time_s in times_s)
            error = percent(score.signed_error, score.floor, signed=True)
            tooltip = f"{results.label(score.cell)}: predicted {predicted}, measured {measured}"
            tooltip += f" ({error}; noise {floor_percent(score.floor)})"
            canvas.mark(point, tooltip=tooltip)
        if chosen:
            panel_axes.plot([], [], **style, label=one_line(workload, 24))
    if panel_axes.get_legend_handles_labels()[0]:
        canvas.figure.legend(loc="outside lower center", ncols=2)


def interval_text(ends: tuple[float, float] | None, noise: float | None) -> str:
    """Seconds between which a predicted interval lies."""
    return f"{number(ends[0], noise)} to {number(ends[1], noise)}" if ends else "unbounded"


def scatter_panel(
    results: ReportData, model: str, scores: Sequence[Score], limits: Range
) -> Figure:
    """Points of one model, the line of equality, and bands of 10 % and 20 % around it."""
    place, summary = results.models().index(model), results.summary(model, "raw")
    slope, intercept_s, r2 = (
        summary.value(f"calibration_{name}") if summary else None
        for name in ("slope", "intercept_s", "r2")
    )

    def draw(canvas: Canvas) -> None:
        panel_axes, ends = square_axes(canvas, limits, model), limits[:2]
        for share in (0.2, 0.1):
            lowest, highest = ([end / (1 + error) for end in ends] for error in (share, -share))
            panel_axes.fill_between(ends, lowest, highest, facecolor=BAND, alpha=0.5,
                                    edgecolor=MUTED, linewidth=0.5, zorder=0)  # fmt: skip
        panel_axes.plot(ends, ends, color=INK, linewidth=0.9, zorder=1)
        if slope is not None and intercept_s is not None:  # bent where the axes are logarithmic
            steps_s = [ends[0] + (ends[1] - ends[0]) * step / 100 for step in range(101)]
            line = [(x, y) for x in steps_s if (y := intercept_s + slope * x) > 0]
            panel_axes.plot(*zip(*line, strict=True), color=SERIES[place % len(SERIES)],
                            linewidth=1, linestyle=(0, (4, 2)), zorder=1)  # fmt: skip
        panel_axes.text(0.04, 0.96, "took longer than predicted", color=MUTED, fontsize=8, va="top",
                        transform=panel_axes.transAxes)  # fmt: skip
        panel_axes.text(0.96, 0.04, "took less", color=MUTED, fontsize=8, ha="right",
                        transform=panel_axes.transAxes)  # fmt: skip
        draw_points(results, canvas, panel_axes, scores, place)

    intervals = {
        each.cell: each.intervals.get("job_s", {})
        for each in results.predictions
        if each.model == model
    }
    table_rows = [
        (
            results.label(score.cell),
            number(score.predicted_s, noise_s(score)),
            number(score.measured_s, noise_s(score)),
            floor_percent(score.floor),
            percent(score.signed_error, score.floor, signed=True),
            *(
                interval_text(intervals.get(score.cell, {}).get(level), noise_s(score))
                for level in ("80", "90")
            ),
        )
        for score in scores
    ]
    columns = ("Cell", "Predicted, s", "Measured, s", "Noise floor", "Error", "80 % interval, s",
               "90 % interval, s")  # fmt: skip
    close, fair = (sum(score.relative_error <= most for score in scores) for most in (0.1, 0.2))
    title = f"{model}: measured over predicted job time, one point per cell"
    caption = (
        f"{model}: {close} of {len(scores)} cells within 10 % of the measured time (inner"
        f" band), {fair} within 20 % (outer band)."
    )
    if slope is not None and intercept_s is not None:
        sign = "+" if intercept_s >= 0 else "\u2212"
        caption += f" The line through all cells: measured = {slope:.2f} \u00d7 predicted {sign}"
        caption += f" {seconds(abs(intercept_s), 0.2)}, R² {number(r2, 0.02)}."
    data = table(f"{model}: data of the figure", columns, "lrrrrrr", table_rows, folded=True)
    return Figure(f"scatter{place}", title, PANEL, PANEL + 0.25, caption, data, draw)
