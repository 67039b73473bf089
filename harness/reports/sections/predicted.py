"""Measured over predicted job times: the line on which both are equal, and the one that fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.records.score import Score, Summary
from harness.reports.data import ReportData, noise_s
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import BAND, INK, MUTED, SERIES, Canvas, grid, marker
from harness.reports.wording import UNKNOWN, floor_percent, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = 4.7  # inches
_LOGARITHMIC_FROM = 6.0
_LEAD = (
    "Each point is a cell: the mean of its repeats, as measured, with their spread as a"
    " bar. On the line, prediction and measurement agree; the bands hold predictions"
    " within 10 % and 20 % of the measured time."
)
_FIT_LEAD = (
    "A line fitted through measured over predicted times distinguishes a constant error"
    " (the intercept: what a job takes whatever its size) from a proportional one"
    " (the slope: costs that are too low or too high)."
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


def calibration_section(results: ReportData) -> Section:
    """One panel per model that has a calibration: the points and the line through them."""
    panels = []
    for model, scores, limits in scored_panels(results):
        summary = results.summary(model, "raw")
        if summary is not None and "calibration_slope" in summary.metrics:
            panels.append(fit_panel(results, summary, scores, limits.highest))
    return Section(
        id="calibration",
        title="Calibration",
        blocks=[Figures(panels, _FIT_LEAD, side_by_side=True)],
        missing="No calibration line was fitted; it needs at least three scored cells.",
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


def scatter_panel(
    results: ReportData, model: str, scores: Sequence[Score], limits: Range
) -> Figure:
    """Points of one model, the line of equality, and bands of 10 % and 20 % around it."""
    place = results.models().index(model)

    def draw(canvas: Canvas) -> None:
        panel_axes, ends = square_axes(canvas, limits, model), limits[:2]
        for share in (0.2, 0.1):
            lowest, highest = ([end / (1 + error) for end in ends] for error in (share, -share))
            panel_axes.fill_between(ends, lowest, highest, facecolor=BAND, alpha=0.5,
                                    edgecolor=MUTED, linewidth=0.5, zorder=0)  # fmt: skip
        panel_axes.plot(ends, ends, color=INK, linewidth=0.9, zorder=1)
        panel_axes.text(0.04, 0.96, "took longer than predicted", color=MUTED, fontsize=8, va="top",
                        transform=panel_axes.transAxes)  # fmt: skip
        panel_axes.text(0.96, 0.04, "took less", color=MUTED, fontsize=8, ha="right",
                        transform=panel_axes.transAxes)  # fmt: skip
        draw_points(results, canvas, panel_axes, scores, place)

    table_rows = [
        (
            results.label(score.cell),
            number(score.predicted_s, noise_s(score)),
            number(score.measured_s, noise_s(score)),
            floor_percent(score.floor),
            percent(score.signed_error, score.floor, signed=True),
        )
        for score in scores
    ]
    columns = ("Cell", "Predicted, s", "Measured, s", "Noise floor", "Error")
    close, fair = (sum(score.relative_error <= most for score in scores) for most in (0.1, 0.2))
    title = f"{model}: measured over predicted job time, one point per cell"
    caption = (
        f"{model}: {close} of {len(scores)} cells within 10 % of the measured time (inner"
        f" band), {fair} within 20 % (outer band)."
    )
    data = table(f"{model}: data of the figure", columns, "lrrrr", table_rows, folded=True)
    return Figure(f"scatter{place}", title, PANEL, PANEL + 0.25, caption, data, draw)


def fit_panel(
    results: ReportData, summary: Summary, scores: Sequence[Score], longest_s: float
) -> Figure:
    """Points of one model and the line through them; as data the lines of all its summaries."""
    model, place = summary.model, results.models().index(summary.model)
    slope, intercept_s, r2 = (
        summary.value(f"calibration_{name}") or 0.0 for name in ("slope", "intercept_s", "r2")
    )

    def draw(canvas: Canvas) -> None:
        panel_axes = square_axes(canvas, Range(0.0, longest_s, logarithmic=False), model)
        ends = (0.0, longest_s)
        panel_axes.plot(ends, ends, color=INK, linewidth=0.9, linestyle=(0, (2, 3)),
                  label="measured = predicted")  # fmt: skip
        line = [intercept_s + slope * end for end in ends]
        panel_axes.plot(ends, line, color=SERIES[place % len(SERIES)], linewidth=1.6, label="fit")
        draw_points(results, canvas, panel_axes, scores, place)

    table_rows = []
    for other in results.score_book.summaries:
        if other.model == model and other.level == "job":
            fitted = [
                number(other.value(name), noise)
                for name, noise in (
                    ("calibration_slope", 0.02),
                    ("calibration_intercept_s", 0.2),
                    ("calibration_r2", 0.02),
                    ("robust_slope", 0.02),
                    ("robust_intercept_s", 0.2),
                    ("calibration_exponent", 0.02),
                    ("tau", 0.02),
                )
            ]
            fitted.append(percent(other.value("recalibrated_error")))
            workload = "all" if other.workload == "*" else other.workload
            cells = str(other.cells) if "calibration_slope" in other.metrics else UNKNOWN
            table_rows.append((workload, other.quantity, other.speed, *fitted, cells))
    columns = (
        "Workload", "Quantity", "Speed", "Slope", "Intercept, s", "R²", "Robust slope",
        "Robust intercept, s", "Exponent", "Tau", "Recalibrated error", "Cells",
    )  # fmt: skip
    sign = "+" if intercept_s >= 0 else "\u2212"
    title = f"{model}: measured job time fitted as a line in the predicted one"
    caption = (
        f"{model}: measured = {slope:.2f} \u00d7 predicted {sign}"
        f" {seconds(abs(intercept_s), 0.2)}, R² {r2:.2f}, {summary.cells} cells."
    )
    data = table(
        f"{model}: calibration by workload", columns, "lllrrrrrrrrr", table_rows, folded=True
    )
    return Figure(f"fit{place}", title, PANEL, PANEL + 0.25, caption, data, draw)
