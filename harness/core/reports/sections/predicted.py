"""Measured over predicted times: the line on which both are equal, and the one that fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.documents.document import Figure, Figures, Section, Table, table
from harness.base.documents.drawing import BAND, INK, MUTED, SERIES, Canvas, grid, marker, row_axes
from harness.base.documents.wording import (
    TIMES,
    count,
    floor_percent,
    number,
    one_line,
    percent,
    seconds,
)
from harness.base.records.score import MetricValue, Score, Summary
from harness.core.reports.data import ReportData, noise_s
from harness.core.reports.sections.cells import error_table
from harness.core.reports.sections.scores import score_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL = 4.7  # inches
_LOGARITHMIC_FROM = 6.0
# Metrics of calibration, with the value that is best: in 80 % are 80 of 100 cells.
_BEST = {"calibration_slope": 1.0, "coverage_80": 0.8, "coverage_90": 0.9}
_LEAD = (
    "Each point is a cell: the mean of its repeats, as measured, with their spread as a bar. On the"
    " black line, prediction and measurement agree; the bands hold predictions within 10 % and 20 %"
    " of the measured time. The coloured line is fitted through the points: its intercept is a"
    " constant error (what a job takes whatever its size), its slope a proportional one (costs that"
    " are too low or too high). Intervals are by jackknife+ over the profiling cells; unbounded:"
    " fewer than four of them for 80 %, than nine for 90 %."
)
# What is drawn is what the verdict is on.
_BODIES = (
    " Times are bodies, jobs without their frame: so is the verdict, because the frame is too large"
    " a part of most jobs."
)


def section(results: ReportData) -> Section:
    """One panel per model: each scored cell with the spread of its repeats, 1:1 line and fit."""
    chosen = results.scores(results.answered, results.speed)
    ends = panel_ends(chosen)
    panels = [
        scatter_panel(results, model, scores, ends)
        for model in results.models
        if (scores := [score for score in chosen if score.model == model])
    ]
    lead = _LEAD + (_BODIES if results.answered == "body_s" else "")
    return Section(
        id="predicted",
        title="Predicted and measured",
        blocks=[Figures(panels, lead, side_by_side=True)],
        missing="No cell has both a prediction and a measurement.",
    )


def panel_ends(scores: Sequence[Score]) -> tuple[float, float]:
    """One range of seconds for all panels, to compare them by eye: from 0, or logarithmic."""
    times_s = [time_s for score in scores for time_s in (score.predicted_s, score.measured_s)]
    lowest = min(times_s, default=0.0)
    highest = max(times_s, default=0.0)
    is_logarithmic = lowest > 0 and highest / lowest > _LOGARITHMIC_FROM
    return (lowest / 1.3 if is_logarithmic else 0.0), highest * 1.18 or 1.0


def draw_axes(canvas: Canvas, ends: tuple[float, float], time: str) -> Axes:
    """Measured over predicted seconds of *time*, with the line of equality and its bands."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    panel_axes = canvas.figure.add_subplot()
    if ends[0]:
        panel_axes.set(xscale="log", yscale="log")
    for axis in (panel_axes.xaxis, panel_axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
        if ends[0]:
            subs = (1, 3) if ends[1] / ends[0] > 30 else (1, 2, 3, 5, 7)
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(lambda tick, _: f"{tick:g}")
    panel_axes.set(xlim=ends, ylim=ends, aspect="equal")
    panel_axes.set(xlabel=f"predicted {time}, s", ylabel=f"measured {time}, s")
    grid(panel_axes, "both")
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
    style: Any = {"color": MUTED, "fontsize": 8, "transform": panel_axes.transAxes}
    panel_axes.text(0.04, 0.96, "took longer than predicted", va="top", **style)
    panel_axes.text(0.96, 0.04, "took less", ha="right", **style)
    return panel_axes


def draw_points(
    results: ReportData, canvas: Canvas, panel_axes: Axes, scores: Sequence[Score], model: int
) -> None:
    """Draw a point per cell, with the spread of its repeats; its shape is that of its workload."""
    for place, workload in enumerate(results.workloads):
        style = marker(place, model)
        colour = SERIES[model % len(SERIES)]
        points = []
        noises_s = []
        for score in scores:
            if results.workload_of(score.cell) == workload:
                time_s = (score.predicted_s, score.measured_s)
                noise = noise_s(score)
                predicted, measured = (seconds(length_s, noise) for length_s in time_s)
                error = percent(score.signed_error, score.floor, signed=True)
                tooltip = f"{results.label(score.cell)}: predicted {predicted}, measured {measured}"
                tooltip += f" ({error}; noise {floor_percent(score.floor)})"
                points.append((*time_s, tooltip))
                noises_s.append(noise or 0.0)
        if points:
            x, y, _ = zip(*points, strict=True)
            panel_axes.errorbar(x, y, yerr=noises_s, fmt="none", ecolor=colour, elinewidth=1)
        canvas.points(panel_axes, points, **style, zorder=3, label=one_line(workload, 24))


def scatter_panel(
    results: ReportData, model: str, scores: Sequence[Score], ends: tuple[float, float]
) -> Figure:
    """Points of one model, the line of equality with bands of 10 % and 20 %, and the fit."""
    place = results.models.index(model)
    time = TIMES[results.answered]
    fit = fitted_line(results, model)

    def draw(canvas: Canvas) -> None:
        panel_axes = draw_axes(canvas, ends, time)
        panel_axes.set_title(one_line(model, 40))
        if fit is not None:
            draw_fit(panel_axes, fit, ends, SERIES[place % len(SERIES)])
        draw_points(results, canvas, panel_axes, scores, place)
        if panel_axes.get_legend_handles_labels()[0]:
            canvas.figure.legend(loc="outside lower center", ncols=3)

    close = sum(score.relative_error <= 0.1 for score in scores)
    fair = sum(score.relative_error <= 0.2 for score in scores)
    title = f"{model}: measured over predicted {time}, one point per cell"
    caption = (
        f"{model}: {close} of {count(len(scores), 'cell')} within 10 % of the measured time (inner"
        f" band), {fair} within 20 % (outer band)."
    )
    if fit is not None:
        sign = "+" if fit.intercept_s >= 0 else "\u2212"
        caption += (
            f" The line through all cells: measured = {fit.slope:.2f} \u00d7 predicted {sign}"
        )
        caption += f" {seconds(abs(fit.intercept_s), 0.2)}, R² {number(fit.r2, 0.02)}."
    data = prediction_table(results, model, scores)
    return Figure(f"scatter{place}", title, _PANEL, _PANEL + 0.25, caption, data, draw)


class FittedLine(NamedTuple):
    """Measured seconds as *slope* times predicted ones and *intercept_s*, and how well it fits."""

    slope: float
    intercept_s: float
    r2: float | None


def fitted_line(results: ReportData, model: str) -> FittedLine | None:
    """The line through the points of a model; `None` where its cells determine none."""
    summary = results.summary(model, results.speed, quantity=results.answered)
    if summary is None:
        return None
    slope = summary.value("calibration_slope")
    intercept_s = summary.value("calibration_intercept_s")
    if slope is None or intercept_s is None:
        return None
    return FittedLine(slope, intercept_s, summary.value("calibration_r2"))


def draw_fit(panel_axes: Axes, fit: FittedLine, ends: tuple[float, float], colour: str) -> None:
    """Draw the line, which logarithmic axes bend."""
    import numpy as np

    steps_s = np.geomspace(*ends, 60) if ends[0] else np.linspace(*ends, 60)
    fit_s = np.array([steps_s, fit.intercept_s + fit.slope * steps_s])
    panel_axes.plot(*fit_s[:, fit_s[1] > 0], color=colour, linewidth=1.4, label="fit")


def prediction_table(results: ReportData, model: str, scores: Sequence[Score]) -> Table:
    """Each predicted time of a model with its intervals beside what was measured."""
    intervals = {
        prediction.cell: prediction.intervals.get(results.answered, {})
        for prediction in results.predictions
        if prediction.model == model
    }
    rows = []
    for score in scores:
        noise = noise_s(score)
        cell_intervals = intervals.get(score.cell, {})
        rows.append(
            (
                results.label(score.cell),
                number(score.predicted_s, noise),
                number(score.measured_s, noise),
                floor_percent(score.floor),
                percent(score.signed_error, score.floor, signed=True),
                interval_text(cell_intervals.get("80"), noise),
                interval_text(cell_intervals.get("90"), noise),
            )
        )
    columns = (
        "Cell",
        "Predicted, s",
        "Measured, s",
        "Noise floor",
        "Error",
        "80 % interval, s",
        "90 % interval, s",
    )
    return table(f"{model}: data of the figure", columns, "lrrrrrr", rows, folded=True)


def interval_text(ends_s: Sequence[float] | None, noise: float | None) -> str:
    """An interval of seconds; without *ends_s* there were too few cells to bound it."""
    return " to ".join(number(end_s, noise) for end_s in ends_s or ()) or "unbounded"


def models_panel(results: ReportData) -> Figure | None:
    """All models in one panel, for a page of its own; `None` where nothing is scored."""
    chosen = results.scores(results.answered, results.speed)
    time = TIMES[results.answered]
    workloads = [*dict.fromkeys(results.workload_of(score.cell) for score in chosen)]

    def draw(canvas: Canvas) -> None:
        panel_axes = draw_axes(canvas, panel_ends(chosen), time)
        handles = list[Any]()
        for model in results.scored_models:
            place = results.models.index(model)
            model_scores = [score for score in chosen if score.model == model]
            draw_points(results, canvas, panel_axes, model_scores, place)
            style = marker(results.workloads.index(workloads[0]), place)
            handles += panel_axes.plot([], [], **style, label=one_line(model, 24))
        for workload in workloads if len(workloads) > 1 else ():
            style = marker(results.workloads.index(workload), 1)
            style |= {"color": INK, "markeredgecolor": INK}
            handles += panel_axes.plot([], [], **style, label=one_line(workload, 24))
        entry = 0.5 + 0.075 * max(len(handle.get_label()) for handle in handles)  # inches
        columns = max(1, int(canvas.figure.get_figwidth() / entry))
        canvas.figure.legend(handles=handles, loc="outside lower center", ncols=columns)

    caption = (
        f"Measured over predicted {time} of every model: a point for each cell, with the spread of"
        " its repeats. The bands hold predictions within 10 % and 20 % of the measured time."
    )
    title = f"Measured over predicted {time}"
    data = error_table(results, results.answered)
    height = _PANEL + 0.13 * (len(results.scored_models) + len(workloads) + 1)
    return Figure("predicted", title, _PANEL, height, caption, data, draw) if chosen else None


def calibration_figure(results: ReportData) -> Figure | None:
    """Calibration metrics of each model beside what is best, for a page of its own."""
    summaries = list[Summary]()
    for model in results.scored_models:
        if summary := results.summary(model, results.speed, quantity=results.answered):
            summaries.append(summary)
    names = [name for name in _BEST if any(name in summary.metrics for summary in summaries)]
    if not names:
        return None
    rows = [(row, one_line(summary.model, 20)) for row, summary in enumerate(summaries)]

    def draw(canvas: Canvas) -> None:
        all_axes = canvas.figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for plot_axes, name in zip(all_axes, names, strict=True):
            plot_axes.axvline(_BEST[name], color=INK, linewidth=0.9, zorder=1)
            for row, summary in enumerate(summaries):
                if value := summary.metrics.get(name):
                    place = results.models.index(summary.model)
                    draw_metric(plot_axes, row, value, SERIES[place % len(SERIES)])
            plot_axes.margins(x=0.12)
            row_axes(plot_axes, rows, plot_axes.get_xlim(), results.metrics[name].title)

    metrics = [results.metrics[name] for name in names]
    described = "; ".join(f"{metric.title}: {metric.description}" for metric in metrics)
    caption = f"Calibration, with what is best as a line. {described}."
    data = score_table(results, further=results.speed)
    height = 1.5 + 0.32 * len(rows)
    title = f"Calibration of the {TIMES[results.answered]}"
    return Figure("calibration", title, _PANEL, height, caption, data, draw)


def draw_metric(plot_axes: Axes, row: int, value: MetricValue, colour: str) -> None:
    """Draw a value as a point in its row, with its interval as a line."""
    plot_axes.plot(value.value, row, "o", color=colour)
    if value.low is not None and value.high is not None:
        plot_axes.plot([value.low, value.high], [row, row], color=colour)
