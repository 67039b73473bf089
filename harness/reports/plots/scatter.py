"""Measured over predicted job times: against the identity line, and with the calibration's fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.records.score import Calibration, Score
from harness.reports.data import ReportData, label, models, scores, summary, workload_of, workloads
from harness.reports.plots.canvas import (
    BAND,
    INK,
    MUTED,
    SERIES,
    Canvas,
    Figure,
    grid,
    marker,
)
from harness.reports.tables import Table, table
from harness.reports.wording import UNKNOWN, floor_percent, number, one_line, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL = 4.7
_LOGARITHMIC_FROM = 6.0


@dataclass(frozen=True, slots=True)
class _Range:
    """Range that all panels share, so that they can be compared by eye."""

    low: float
    high: float
    logarithmic: bool


def predicted_and_measured(data: ReportData) -> list[Figure]:
    """One panel per model: each scored cell with the spread of its repeats, and the 1:1 line."""
    return [_panel(data, m, s, reach) for m, s, reach in _panels(data)]


def calibrations(data: ReportData) -> list[Figure]:
    """One panel per model that has a calibration: the points and the line fitted through them."""
    found = []
    for model, chosen, reach in _panels(data):
        s = summary(data, model, speed="raw")
        if s is not None and s.calibration is not None:
            found.append(_fit_panel(data, model, chosen, reach, s.calibration))
    return found


def _panels(data: ReportData) -> list[tuple[str, list[Score], _Range]]:
    chosen = scores(data, "job_s", "raw")
    if not chosen:
        return []
    reach = _reach([v for s in chosen for v in (s.predicted_s, s.measured_s)])
    by_model = {m: [s for s in chosen if s.model == m] for m in models(data)}
    return [(m, found, reach) for m, found in by_model.items() if found]


def _reach(values: Sequence[float]) -> _Range:
    low, high = min(values), max(values)
    logarithmic = low > 0 and high / low > _LOGARITHMIC_FROM
    return _Range(low / 1.3 if logarithmic else 0.0, high * 1.18 or 1.0, logarithmic)


def _panel(data: ReportData, model: str, chosen: Sequence[Score], reach: _Range) -> Figure:
    which = models(data).index(model)
    title = f"{model}: measured over predicted job time, one point per cell"
    canvas = Canvas(f"scatter{which}", title, _PANEL, _PANEL + 0.25)
    axes = _square(canvas, reach, model)
    _bands(axes, reach)
    _points(data, canvas, axes, chosen, which)
    return Figure(canvas.svg(), _caption(model, chosen), _data(data, model, chosen))


def _square(canvas: Canvas, reach: _Range, model: str) -> Axes:
    axes = canvas.figure.add_subplot()
    scale = "log" if reach.logarithmic else "linear"
    axes.set_xscale(scale)
    axes.set_yscale(scale)
    axes.set(xlim=(reach.low, reach.high), ylim=(reach.low, reach.high), aspect="equal")
    axes.set(xlabel="predicted job time, s", ylabel="measured job time, s")
    axes.set_title(one_line(model, 40))
    _ticks(axes, reach)
    grid(axes, "both")
    return axes


def _ticks(axes: Axes, reach: _Range) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    for axis in (axes.xaxis, axes.yaxis):
        if reach.logarithmic:
            wide = reach.high / reach.low > 30
            axis.set_major_locator(LogLocator(subs=(1, 3) if wide else (1, 2, 3, 5, 7)))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def _bands(axes: Axes, reach: _Range) -> None:
    """Where the prediction is within 20 % and 10 % of the measured time, and the 1:1 line."""
    ends = (reach.low, reach.high)
    for share in (0.2, 0.1):
        low, high = ([v / (1 + e) for v in ends] for e in (share, -share))
        axes.fill_between(
            ends, low, high, facecolor=BAND, alpha=0.5, edgecolor=MUTED, linewidth=0.5, zorder=0
        )
    axes.plot(ends, ends, color=INK, linewidth=0.9, zorder=1)
    axes.text(0.04, 0.96, "took longer than predicted", color=MUTED, fontsize=8, va="top",
              transform=axes.transAxes)  # fmt: skip
    axes.text(0.96, 0.04, "took less", color=MUTED, fontsize=8, ha="right",
              transform=axes.transAxes)  # fmt: skip


def _points(
    data: ReportData, canvas: Canvas, axes: Axes, chosen: Sequence[Score], which: int
) -> None:
    for place, workload in enumerate(workloads(data)):
        style = marker(place, which)
        mine = [s for s in chosen if workload_of(data, s.cell) == workload]
        for s in mine:
            spread = s.measured_s * (s.floor or 0.0)
            colour = SERIES[which % len(SERIES)]
            axes.errorbar(s.predicted_s, s.measured_s, yerr=spread, color=colour, linewidth=1)
            (drawn,) = axes.plot([s.predicted_s], [s.measured_s], **style, zorder=3)
            canvas.tip(drawn, _tip(data, s))
        if mine:
            axes.plot([], [], **style, label=one_line(workload, 24))
    if axes.get_legend_handles_labels()[0]:
        canvas.figure.legend(loc="outside lower center", ncols=2)


def _tip(data: ReportData, s: Score) -> str:
    error = percent(s.signed_error, s.floor, signed=True)
    noise = s.measured_s * s.floor if s.floor else None
    return (
        f"{label(data, s.cell)}: predicted {seconds(s.predicted_s, noise)},"
        f" measured {seconds(s.measured_s, noise)} ({error}; noise {floor_percent(s.floor)})"
    )


def _caption(model: str, chosen: Sequence[Score]) -> str:
    close = sum(s.relative_error <= 0.1 for s in chosen)
    fair = sum(s.relative_error <= 0.2 for s in chosen)
    return (
        f"{model}: {close} of {len(chosen)} cells within 10 % of the measured time (inner band),"
        f" {fair} within 20 % (outer band)."
    )


def _data(data: ReportData, model: str, chosen: Sequence[Score]) -> Table:
    rows = [
        (
            label(data, s.cell),
            number(s.predicted_s, _noise(s)),
            number(s.measured_s, _noise(s)),
            floor_percent(s.floor),
            percent(s.signed_error, s.floor, signed=True),
        )
        for s in chosen
    ]
    columns = ("Cell", "Predicted, s", "Measured, s", "Noise floor", "Error")
    return table(f"{model}: data of the figure", columns, "lrrrr", rows)


def _noise(s: Score) -> float | None:
    return s.measured_s * s.floor if s.floor else None


def _fit_panel(
    data: ReportData, model: str, chosen: Sequence[Score], reach: _Range, fit: Calibration
) -> Figure:
    which = models(data).index(model)
    linear = _Range(0.0, reach.high, logarithmic=False)
    title = f"{model}: measured job time fitted as a line in the predicted one"
    canvas = Canvas(f"fit{which}", title, _PANEL, _PANEL + 0.25)
    axes = _square(canvas, linear, model)
    ends = (0.0, reach.high)
    axes.plot(
        ends, ends, color=INK, linewidth=0.9, linestyle=(0, (2, 3)), label="measured = predicted"
    )
    line = [fit.intercept_s + fit.slope * v for v in ends]
    axes.plot(ends, line, color=SERIES[which % len(SERIES)], linewidth=1.6, label="fit")
    _points(data, canvas, axes, chosen, which)
    return Figure(canvas.svg(), _equation(model, fit), _calibration_table(data, model))


def _equation(model: str, fit: Calibration) -> str:
    sign = "+" if fit.intercept_s >= 0 else "\u2212"
    return (
        f"{model}: measured = {fit.slope:.2f} \u00d7 predicted"
        f" {sign} {seconds(abs(fit.intercept_s), 0.2)}, R² {fit.r2:.2f}, {fit.count} cells."
    )


def _calibration_table(data: ReportData, model: str) -> Table:
    rows = []
    for s in data.book.summaries:
        if s.model == model and s.level == "job":
            fit = s.calibration
            numbers = (
                (f"{fit.slope:.2f}", number(fit.intercept_s, 0.2), f"{fit.r2:.2f}", str(fit.count))
                if fit
                else (UNKNOWN,) * 4
            )
            name = "all" if s.workload == "*" else s.workload
            rows.append((name, s.quantity, s.speed, *numbers))
    columns = ("Workload", "Quantity", "Speed", "Slope", "Intercept, s", "R²", "Cells")
    return table(f"{model}: calibration by workload", columns, "lllrrrr", rows)
