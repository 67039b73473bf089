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

_MOST_TOOLTIPS = 150
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
    for kind_name, words in _LOADS.items():
        shares = [means[kind_name] for means in results.machine.values() if kind_name in means]
        if shares:
            most = percent(max(shares), 0.004)
            loads.append(f"{percent(fmean(shares), 0.004)} {words} (at most {most})")
    average = "The machine was, on average over the trials: " + ", ".join(loads) + "."
    panels = [
        correction_panel(results, place, kind_name)
        for place, kind_name in enumerate(results.workloads())
    ]
    return Section(
        id="machine",
        title="The machine",
        blocks=[
            Text(average if loads else ""),
            *(
                Text(correction_text(kind_name, workload_profile.speed))
                for kind_name, workload_profile in results.profiles.items()
            ),
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
        (position, record, rates[record.trial.id])
        for position, record in enumerate(results.ordered_trials(), start=1)
        if record.trial.id in rates
    ]
    speeds = [speed for *_, speed in points]
    if not points:
        return None

    def draw(canvas: Canvas) -> None:
        speed_axes = canvas.figure.add_subplot()
        speed_axes.axhline(100, color=INK, linewidth=0.9)
        orders = [position for position, *_ in points]
        speed_axes.plot(orders, [100 * speed for speed in speeds], color=MUTED, linewidth=0.7)
        for kind_name, style in _STYLES.items():
            look = {"markersize": 5.5, "linestyle": "none", **style}
            chosen = [drawn_point for drawn_point in points if kind(drawn_point[1]) == kind_name]
            for position, record, speed in chosen:
                (drawn_point,) = speed_axes.plot([position], [100 * speed], **look)
                if len(points) <= _MOST_TOOLTIPS:
                    where = f"trial {position}, {results.label(record.trial.cell.id)}"
                    tooltip = f"{where}: {percent(speed, 0.004)} of reference"
                    canvas.mark(drawn_point, tooltip=tooltip)
            if chosen:
                speed_axes.plot([], [], label=kind_name, **look)
        speed_axes.set(xlabel="trials in the order of running", ylabel="speed, % of reference")
        speed_axes.margins(x=0.02, y=0.12)
        grid(speed_axes, "y")
        canvas.figure.legend(loc="outside upper left", ncols=4)

    rows = [
        (
            *(str(position), record.trial.id, results.label(record.trial.cell.id)),
            *(kind(record), percent(speed_share, 0.004)),
        )
        for position, record, speed_share in points
    ]
    columns = ("Order", "Trial", "Cell", "Kind", "Speed")
    title = "Speed of the machine during each trial, in the order of running"
    caption = (
        "Speed of the machine by the probe that runs beside each job: from"
        f" {percent(min(speeds))} to {percent(max(speeds))} of reference speed over {len(points)}"
        " trials."
    )
    data = table("Data of the figure", columns, "rcllr", rows, folded=True)
    return Figure("speed", title, WIDE, 2.7, caption, data, draw)


def correction_panel(results: ReportData, place: int, workload: str) -> Figure | None:
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
            for trial, speed_share, job_s in trials:
                kind_name = f"{results.label(cell)}, trial {trial}"
                points.append((kind_name, 100 * speed_share / mean_rate, 100 * job_s / mean_s))
    if profile is None or profile.speed is None or len(points) < 3:
        return None
    coefficient = profile.speed.coefficient

    def draw(canvas: Canvas) -> None:
        speed_axes = canvas.figure.add_subplot()
        low, high = (
            min(relative_speed for _, relative_speed, _ in points),
            max(relative_speed for _, relative_speed, _ in points),
        )
        speeds = [low + (high - low) * step / 40 for step in range(41)]
        line = [100 * (speed / 100) ** -coefficient for speed in speeds]
        speed_axes.plot(speeds, line, color=INK, linewidth=1.2, label="correction that was used")
        for kind_name, relative_speed, relative_time in points:
            (drawn_point,) = speed_axes.plot(
                [relative_speed], [relative_time], **marker(place, 0) | {"markersize": 4.5}
            )
            canvas.mark(drawn_point, tooltip=kind_name)
        speed_axes.set(
            xlabel="speed, % of the cell's mean", ylabel="job time, % of the cell's mean"
        )
        speed_axes.set_title(one_line(workload, 40))
        speed_axes.margins(0.08)
        grid(speed_axes, "both")

    line_text = (
        f"time \u221d speed^(-{number(coefficient, 0.03)}), fitted on the profiling trials only"
        if coefficient
        else "flat, because no correction was used"
    )
    rows = [
        (kind_name, percent(relative_speed / 100, 0.004), percent(relative_time / 100, 0.004))
        for kind_name, relative_speed, relative_time in points
    ]
    columns = ("Trial", "Speed / mean of cell", "Time / mean of cell")
    title = f"{workload}: job time over speed"
    height = 3.4
    caption = (
        f"{workload}: each point is a trial against the mean of its cell. The line is {line_text}."
    )
    data = table(f"{workload}: data", columns, "lrr", rows, folded=True)
    return Figure(f"correction{place}", title, PANEL, height, caption, data, draw)
