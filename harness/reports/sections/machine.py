"""The machine while the trials ran: its load, its speed, and what the correction of speed does."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from harness.records.profile import SpeedCorrection
from harness.records.trial import TrialRecord
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Text, table
from harness.reports.drawing import BAD, INK, MUTED, SERIES, SURFACE, WIDE, Canvas, grid, marker
from harness.reports.sections.predicted import PANEL
from harness.reports.wording import count, number, one_line, percent

_MOST_TIPS = 150
_STYLES: dict[str, dict[str, Any]] = {
    "profiling trial": {"marker": "o", "color": SERIES[0], "markerfacecolor": SURFACE},
    "scored trial": {"marker": "o", "color": SERIES[0]},
    "disturbed trial": {"marker": "D", "color": SERIES[1]},
    "failed trial": {"marker": "X", "color": BAD},
}
_LOADS = {"busy": "busy", "steal": "taken by other guests of the host"}


def section(results: ReportData) -> Section:
    """Load and speed over the trials, and for each workload the correction that was used."""
    loads = []
    for name, words in _LOADS.items():
        shares = [means[name] for means in results.machine.values() if name in means]
        if shares:
            most = percent(max(shares), 0.004)
            loads.append(f"{percent(fmean(shares), 0.004)} {words} (at most {most})")
    average = "The machine was, on average over the trials: " + ", ".join(loads) + "."
    panels = [_correction(results, place, name) for place, name in enumerate(results.workloads())]
    return Section(
        id="machine",
        title="The machine",
        blocks=[
            Text(average if loads else ""),
            *(Text(correction_text(name, p.speed)) for name, p in results.profiles.items()),
            Figures([figure for figure in [speed_over_time(results)] if figure]),
            Figures([figure for figure in panels if figure], side_by_side=True),
        ],
    )


def correction_text(workload: str, speed: SpeedCorrection | None) -> str:
    """Say what was done to bring times to reference speed."""
    if speed is None:
        return f"{workload}: no speed was measured; times at reference speed equal raw times."
    note = f" ({one_line(speed.note)})" if speed.note else ""
    trials = count(speed.count, "profiling trial")
    if speed.coefficient == 0:
        return (
            f"{workload}: no correction, because leave-one-out over {trials} shows no gain;"
            f" times at reference speed equal raw times{note}."
        )
    return (
        f"{workload}: times \u00d7 (speed / reference speed)^{number(speed.coefficient, 0.03)},"
        f" fitted on {trials}; leave-one-out spread falls by {percent(speed.gain, 0.03)}{note}."
    )


def speed_over_time(results: ReportData) -> Figure | None:
    """Speed of the machine at each trial, in the order of running; `None` without a probe."""
    rates, disturbed = results.relative_rates(), results.disturbed_trials()

    def kind(record: TrialRecord) -> str:
        if record.state != "done":
            return "failed trial"
        if record.trial.id in disturbed:
            return "disturbed trial"
        return "profiling trial" if record.trial.profiling else "scored trial"

    points = [
        (order, record, rates[record.trial.id])
        for order, record in enumerate(results.ordered_trials(), start=1)
        if record.trial.id in rates
    ]
    if not points:
        return None

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.add_subplot()
        axes.axhline(100, color=INK, linewidth=0.9)
        orders, speeds = [order for order, _, _ in points], [100 * rate for *_, rate in points]
        axes.plot(orders, speeds, color=MUTED, linewidth=0.7)
        for name, style in _STYLES.items():
            look = {"markersize": 5.5, "linestyle": "none", **style}
            chosen = [point for point in points if kind(point[1]) == name]
            for order, record, rate in chosen:
                (point,) = axes.plot([order], [100 * rate], **look)
                if len(points) <= _MOST_TIPS:
                    cell = results.label(record.trial.cell.id)
                    share = percent(rate, 0.004)
                    canvas.mark(point, tooltip=f"trial {order}, {cell}: {share} of reference")
            if chosen:
                axes.plot([], [], label=name, **look)
        axes.set(xlabel="trials in the order of running", ylabel="speed, % of reference")
        axes.margins(x=0.02, y=0.12)
        grid(axes, "y")
        canvas.figure.legend(loc="outside upper left", ncols=4)

    rows = [
        (
            *(str(order), record.trial.id, results.label(record.trial.cell.id)),
            *(kind(record), percent(rate, 0.004)),
        )
        for order, record, rate in points
    ]
    columns = ("Order", "Trial", "Cell", "Kind", "Speed")
    speeds = [rate for *_, rate in points]
    return Figure(
        name="speed",
        title="Speed of the machine during each trial, in the order of running",
        width=WIDE,
        height=2.7,
        caption="Speed of the machine by the probe that runs beside each job: from"
        f" {percent(min(speeds))} to {percent(max(speeds))} of reference speed over {len(points)}"
        " trials.",
        data=table("Data of the figure", columns, "rcllr", rows, folded=True),
        draw=draw,
    )


def _correction(results: ReportData, place: int, workload: str) -> Figure | None:
    """How job times follow the speed, and the coefficient that was used."""
    profile, rates = results.profiles.get(workload), results.relative_rates()
    times = {each.trial: each for each in results.measurements}
    cells: dict[str, list[tuple[str, float, float]]] = {}
    for record in results.ordered_trials():
        trial = record.trial.id
        measured = times.get(trial)
        job_s = measured.raw_s.get("job_s", 0.0) if measured else 0.0
        if trial in rates and measured and measured.workload == workload and job_s > 0:
            cells.setdefault(measured.cell, []).append((trial, rates[trial], job_s))
    points = []
    for cell, trials in cells.items():
        if len(trials) > 1:
            mean_rate, mean_s = fmean(each[1] for each in trials), fmean(each[2] for each in trials)
            for trial, rate, job_s in trials:
                name = f"{results.label(cell)}, trial {trial}"
                points.append((name, 100 * rate / mean_rate, 100 * job_s / mean_s))
    if profile is None or profile.speed is None or len(points) < 3:
        return None
    coefficient = profile.speed.coefficient

    def draw(canvas: Canvas) -> None:
        axes = canvas.figure.add_subplot()
        low, high = min(x for _, x, _ in points), max(x for _, x, _ in points)
        speeds = [low + (high - low) * step / 40 for step in range(41)]
        line = [100 * (speed / 100) ** -coefficient for speed in speeds]
        axes.plot(speeds, line, color=INK, linewidth=1.2, label="correction that was used")
        for name, x, y in points:
            (point,) = axes.plot([x], [y], **marker(place, 0) | {"markersize": 4.5})
            canvas.mark(point, tooltip=name)
        axes.set(xlabel="speed, % of the cell's mean", ylabel="job time, % of the cell's mean")
        axes.set_title(one_line(workload, 40))
        axes.margins(0.08)
        grid(axes, "both")

    line_text = (
        f"time \u221d speed^(-{number(coefficient, 0.03)}), fitted on the profiling trials only"
        if coefficient
        else "flat, because no correction was used"
    )
    rows = [(name, percent(x / 100, 0.004), percent(y / 100, 0.004)) for name, x, y in points]
    columns = ("Trial", "Speed / mean of cell", "Time / mean of cell")
    return Figure(
        name=f"correction{place}",
        title=f"{workload}: job time over speed",
        width=PANEL,
        height=3.4,
        caption=f"{workload}: each point is a trial against the mean of its cell. The line is"
        f" {line_text}.",
        data=table(f"{workload}: data", columns, "lrr", rows, folded=True),
        draw=draw,
    )
