"""The machine while the trials ran: its speed over their order, and what the correction does."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from harness.records.trial import TrialRecord
from harness.reports.data import (
    ReportData,
    disturbed,
    in_order,
    job_seconds,
    label,
    reference_rate,
    workloads,
)
from harness.reports.plots.canvas import (
    FAILED,
    INK,
    MUTED,
    SERIES,
    SURFACE,
    Canvas,
    Figure,
    grid,
    marker,
)
from harness.reports.tables import Table, table
from harness.reports.wording import number, one_line, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[int, TrialRecord, float]
_MANY = 150


def relative_rates(data: ReportData) -> dict[str, float]:
    """Probe rate of each trial as a share of reference speed (of the median without a profile)."""
    rates = {trial: values["rate"] for trial, values in data.machine.items() if "rate" in values}
    rates = {trial: rate for trial, rate in rates.items() if rate > 0}
    if not rates:
        return {}
    usual = median(rates.values())
    workload = {r.trial.id: r.trial.cell.workload.name for r in data.trials}
    return {t: v / (reference_rate(data, workload.get(t, "")) or usual) for t, v in rates.items()}


def speed_over_time(data: ReportData) -> Figure | None:
    """Speed of the machine at each trial, in the order of running; `None` without a probe."""
    rates = relative_rates(data)
    points = [
        (n, r, rates[r.trial.id])
        for n, r in enumerate(in_order(data), start=1)
        if r.trial.id in rates
    ]
    if not points:
        return None
    title = "Speed of the machine during each trial, in the order of running"
    canvas = Canvas("speed", title, 9.4, 2.7)
    axes = canvas.figure.add_subplot()
    axes.axhline(100, color=INK, linewidth=0.9)
    axes.plot([n for n, _, _ in points], [100 * v for *_, v in points], color=MUTED, linewidth=0.7)
    _trials(data, canvas, axes, points)
    axes.set(xlabel="trials in the order of running", ylabel="speed, % of reference")
    axes.margins(x=0.02, y=0.12)
    grid(axes, "y")
    canvas.figure.legend(loc="outside upper left", ncols=4)
    values = [v for *_, v in points]
    caption = (
        f"Speed of the machine by the probe that runs beside each job: from {percent(min(values))}"
        f" to {percent(max(values))} of reference speed over {len(points)} trials."
    )
    return Figure(canvas.svg(), caption, _speed_table(data, points))


def _trials(data: ReportData, canvas: Canvas, axes: Axes, points: Sequence[Point]) -> None:
    marks = disturbed(data)
    kinds: dict[str, dict[str, Any]] = {
        "profiling trial": {"marker": "o", "color": SERIES[0], "markerfacecolor": SURFACE},
        "scored trial": {"marker": "o", "color": SERIES[0]},
        "disturbed trial": {"marker": "D", "color": SERIES[1]},
        "failed trial": {"marker": "X", "color": FAILED},
    }
    for name, style in kinds.items():
        mine = [p for p in points if _kind(p[1], marks) == name]
        for n, r, rate in mine:
            (drawn,) = axes.plot([n], [100 * rate], markersize=5.5, linestyle="none", **style)
            if len(points) <= _MANY:
                cell = label(data, r.trial.cell.id)
                canvas.tip(drawn, f"trial {n}, {cell}: {percent(rate, 0.004)} of reference")
        if mine:
            axes.plot([], [], markersize=5.5, linestyle="none", label=name, **style)


def _kind(r: TrialRecord, marks: dict[str, str]) -> str:
    if r.state != "done":
        return "failed trial"
    if r.trial.id in marks:
        return "disturbed trial"
    return "profiling trial" if r.trial.profiling else "scored trial"


def _speed_table(data: ReportData, points: Sequence[Point]) -> Table:
    marks = disturbed(data)
    rows = [
        (str(n), r.trial.id, label(data, r.trial.cell.id), _kind(r, marks), percent(v, 0.004))
        for n, r, v in points
    ]
    columns = ("Order", "Trial", "Cell", "Kind", "Speed")
    return table("Data of the figure", columns, "rcllr", rows)


def corrections(data: ReportData) -> list[Figure]:
    """One panel per workload: how job times follow the speed, and the coefficient that was used."""
    return [
        figure
        for place, workload in enumerate(workloads(data))
        if (figure := _correction(data, place, workload)) is not None
    ]


def _correction(data: ReportData, place: int, workload: str) -> Figure | None:
    profile = data.profiles.get(workload)
    points = _relative_times(data, workload)
    if profile is None or profile.speed is None or len(points) < 3:
        return None
    coefficient = profile.speed.coefficient
    canvas = Canvas(f"correction{place}", f"{workload}: job time over speed", 4.7, 3.4)
    axes = canvas.figure.add_subplot()
    xs = [100 * x for _, x, _ in points]
    ends = [min(xs), max(xs)]
    steps = [ends[0] + (ends[1] - ends[0]) * i / 40 for i in range(41)]
    line = [100 * (x / 100) ** -coefficient for x in steps]
    axes.plot(steps, line, color=INK, linewidth=1.2, label="correction that was used")
    for name, x, y in points:
        (drawn,) = axes.plot([100 * x], [100 * y], **marker(place, 0) | {"markersize": 4.5})
        canvas.tip(drawn, name)
    axes.set(xlabel="speed, % of the cell's mean", ylabel="job time, % of the cell's mean")
    axes.set_title(one_line(workload, 40))
    axes.margins(0.08)
    grid(axes, "both")
    line_text = (
        f"time \u221d speed^(-{number(coefficient, 0.03)}), fitted on the profiling trials only"
        if coefficient
        else "flat, because no correction was used"
    )
    caption = (
        f"{workload}: each point is a trial against the mean of its cell. The line is {line_text}."
    )
    rows = [(name, percent(x, 0.004), percent(y, 0.004)) for name, x, y in points]
    columns = ("Trial", "Speed / mean of cell", "Time / mean of cell")
    return Figure(canvas.svg(), caption, table(f"{workload}: data", columns, "lrr", rows))


def _relative_times(data: ReportData, workload: str) -> list[tuple[str, float, float]]:
    """(trial, speed over its cell's mean, job time over its cell's mean), cells with repeats."""
    rates, times = relative_rates(data), job_seconds(data)
    cells: dict[str, list[tuple[str, float, float]]] = {}
    for r in in_order(data):
        m = times.get(r.trial.id)
        if r.trial.id in rates and m is not None and m.workload == workload:
            found = cells.setdefault(m.cell, [])
            if m.raw_s.get("job_s", 0) > 0:
                found.append((r.trial.id, rates[r.trial.id], m.raw_s["job_s"]))
    points = []
    for cell, found in cells.items():
        if len(found) > 1:
            x, y = fmean(f[1] for f in found), fmean(f[2] for f in found)
            points += [(f"{label(data, cell)}, trial {t}", a / x, b / y) for t, a, b in found]
    return points
