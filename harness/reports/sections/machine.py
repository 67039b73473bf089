"""The machine while the trials ran: load, speed and its correction, and limits set on purpose."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

from harness.experiment.grid import readable
from harness.records.profile import SpeedCorrection
from harness.records.trial import ENTRY, LimitedCluster, TrialRecord, format_control
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, Table, Text, Value, table
from harness.reports.drawing import BAD, INK, MUTED, SERIES, SURFACE, WIDE, Canvas, grid, marker
from harness.reports.sections.predicted import PANEL
from harness.reports.wording import UNKNOWN, count, number, one_line, percent
from harness.units import format_bytes

_MOST_TOOLTIPS = 150
_STYLES: dict[str, dict[str, Any]] = {
    "profiling trial": {"marker": "o", "color": SERIES[0], "markerfacecolor": SURFACE},
    "scored trial": {"marker": "o", "color": SERIES[0]},
    "disturbed trial": {"marker": "D", "color": SERIES[1]},
    "failed trial": {"marker": "X", "color": BAD},
}
_LOADS = {"busy": "busy", "steal": "taken by other guests of the host"}
_CONTROLS = {
    "cores": "processors",
    "disk_write": "disk, written",
    "disk_read": "disk, read",
    "network_out": "network, sent",
    "network_in": "network, received",
}
_LIMITS = (
    "Nodes were slower than their machine: they were limited, each limit was measured under a"
    " small load before the daemons started, and its setting corrected until what was measured"
    " was within 10 % of what was requested. What is read again from memory is not limited."
)


def section(results: ReportData) -> Section:
    """Load and speed over the trials, and for each workload the correction that was used."""
    loads = []
    for load, words in _LOADS.items():
        if shares := [means[load] for means in results.machine.values() if load in means]:
            most = percent(max(shares), 0.004)
            loads.append(f"{percent(fmean(shares), 0.004)} {words} (at most {most})")
    average = f"The machine was, on average over the trials: {', '.join(loads)}." if loads else ""
    corrections = [
        correction_text(workload, profile.speed) for workload, profile in results.profiles.items()
    ]
    panels = [correction_panel(results, *item) for item in enumerate(results.workloads())]
    return Section(
        id="machine",
        title="The machine",
        blocks=[
            *map(Text, (average, *corrections)),
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
            f"{workload}: no correction, for {trials} do not bear one;"
            f" times at reference speed equal raw times{note}."
        )
    return (
        f"{workload}: times \u00d7 (speed / reference speed)^{number(speed.coefficient, 0.03)},"
        f" fitted on {trials}; leave-one-out spread falls by {percent(speed.gain, 0.03)}{note}."
    )


def speed_over_time(results: ReportData) -> Figure | None:
    """Speed of the machine at each trial, in the order of running; `None` without a probe."""
    rates, disturbed = results.relative_rates(), results.disturbed_trials()

    def kind_of(record: TrialRecord) -> str:
        if record.state != "done":
            return "failed trial"
        if record.trial.id in disturbed:
            return "disturbed trial"
        return "profiling trial" if record.trial.profiling else "scored trial"

    points = [
        (position, record.trial, kind_of(record), rates[record.trial.id])
        for position, record in enumerate(results.ordered_trials(), start=1)
        if record.trial.id in rates
    ]
    if not points:
        return None
    speeds = [speed for *_, speed in points]

    def draw(canvas: Canvas) -> None:
        speed_axes = canvas.figure.add_subplot()
        speed_axes.axhline(100, color=INK, linewidth=0.9)
        orders = [position for position, *_ in points]
        speed_axes.plot(orders, [100 * speed for speed in speeds], color=MUTED, linewidth=0.7)
        for kind, style in _STYLES.items():
            look = {"markersize": 5.5, "linestyle": "none", **style}
            chosen = [point for point in points if point[2] == kind]
            for position, trial, _, speed in chosen:
                (mark,) = speed_axes.plot([position], [100 * speed], **look)
                if len(points) <= _MOST_TOOLTIPS:
                    where = f"trial {position}, {results.label(trial.cell.id)}"
                    canvas.mark(mark, tooltip=f"{where}: {percent(speed, 0.004)} of reference")
            if chosen:
                speed_axes.plot([], [], label=kind, **look)
        speed_axes.set(xlabel="trials in the order of running", ylabel="speed, % of reference")
        speed_axes.margins(x=0.02, y=0.12)
        grid(speed_axes, "y")
        canvas.figure.legend(loc="outside upper left", ncols=4)

    table_rows = [
        (str(position), trial.id, results.label(trial.cell.id), kind, percent(speed, 0.004))
        for position, trial, kind, speed in points
    ]
    title = "Speed of the machine during each trial, in the order of running"
    caption = (
        "Speed of the machine by the probe that runs beside each job: from"
        f" {percent(min(speeds))} to {percent(max(speeds))} of reference speed over {len(points)}"
        " trials."
    )
    columns = ("Order", "Trial", "Cell", "Kind", "Speed")
    data = table("Data of the figure", columns, "rcllr", table_rows, folded=True)
    return Figure("speed", title, WIDE, 2.7, caption, data, draw)


def correction_panel(results: ReportData, place: int, workload: str) -> Figure | None:
    """How job times follow the speed, and the coefficient that was used."""
    profile, rates = results.profiles.get(workload), results.relative_rates()
    measurements = {measurement.trial: measurement for measurement in results.measurements}
    cells: dict[str, list[tuple[str, float, float]]] = {}
    for record in results.ordered_trials():
        trial = record.trial.id
        measured = measurements.get(trial)
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
        speed_axes = canvas.figure.add_subplot()
        low, *_, high = sorted(speed for _, speed, _ in points)
        speeds = [low + (high - low) * step / 40 for step in range(41)]
        line = [100 * (speed / 100) ** -coefficient for speed in speeds]
        speed_axes.plot(speeds, line, color=INK, linewidth=1.2, label="correction that was used")
        style = marker(place, 0) | {"markersize": 4.5}
        for name, speed, time in points:
            (mark,) = speed_axes.plot([speed], [time], **style)
            canvas.mark(mark, tooltip=name)
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
    table_rows = [
        (name, percent(speed / 100, 0.004), percent(time / 100, 0.004))
        for name, speed, time in points
    ]
    caption = (
        f"{workload}: each point is a trial against the mean of its cell. The line is {line_text}."
    )
    columns = ("Trial", "Speed / mean of cell", "Time / mean of cell")
    data = table(f"{workload}: data", columns, "lrr", table_rows, folded=True)
    title = f"{workload}: job time over speed"
    return Figure(f"correction{place}", title, PANEL, 3.4, caption, data, draw)


def hardware_section(results: ReportData) -> Section | None:
    """Each limit of each node, and what went through limited disks; `None` without limits."""
    starts = TypeAdapter(list[LimitedCluster]).validate_python(results.manifest.get(ENTRY, []))
    if not starts:
        return None
    nodes = dict.fromkeys(
        node
        for start in starts
        for node, limits in start.nodes.items()
        if not all(limit.is_enforced for limit in limits.values())
    )
    # Trials that are done and had limited disks, by their cells.
    trials: dict[str, list[TrialRecord]] = {}
    for record in results.ordered_trials():
        if record.state == "done" and record.disk_bytes:
            trials.setdefault(record.trial.cell.id, []).append(record)
    texts, table_rows = [_LIMITS], []
    if nodes:
        texts.append(
            f"The limit of the disk of {', '.join(nodes)} applies to synced writes alone: tasks and"
            " DataNodes, whose writes are buffered, are hardly limited by it."
        )
    for cell_id, records in trials.items():
        cell = records[0].trial.cell
        size, is_limited = cell.workload.input_bytes, cell.cluster.node.disk_bytes_per_s is not None
        read, written = (
            fmean(sum(disk.get(verb, 0) for disk in each.disk_bytes.values()) for each in records)
            for verb in ("read", "written")
        )
        sizes = [format_bytes(amount) for amount in (size, read, written)]
        table_rows.append((results.label(cell_id), str(len(records)), *sizes))
        if is_limited and read < size / 2:
            texts.append(
                f"{results.label(cell_id)}: of {sizes[0]} of input, {sizes[1]} came from the"
                " limited disks, the rest from memory: reading was hardly limited."
            )
    columns = ("Cell", "Trials", "Input", "Read from disks", "Written to disks")
    note = "Of a trial, all nodes together. What came from memory, or stayed in it, is not here."
    disks = table("Through limited disks while jobs ran", columns, "lrrrr", table_rows, note=note)
    return Section(
        id="hardware",
        title="Hardware limited on purpose",
        blocks=[*map(Text, texts), limits_table(results, starts), disks],
    )


def limits_table(results: ReportData, starts: list[LimitedCluster]) -> Table:
    """Each limit of each node: requested, measured, and the setting that gave it."""
    specs = {cell.cluster.id: cell.cluster for cell, _ in results.cells.values()}
    table_rows: list[tuple[str | Value, ...]] = []
    for order, start in enumerate(starts, start=1):
        words = [start.cluster]
        if spec := specs.get(start.cluster):
            common = {name.partition("_")[0]: value for name, value in spec.node.limits().items()}
            words = [
                f"{field} {readable(field, requested)}"
                for field, requested in common.items()
                if requested is not None
            ]
            words += [f"{node} different" for node in spec.nodes]
        for node, limits in start.nodes.items():
            for control, limit in limits.items():
                remark = Value("")
                if limit.buffered_write is not None:
                    rate = format_control(control, limit.buffered_write)
                    remark = Value(f"not enforced: {rate} for buffered writes", "mark")
                    if limit.is_enforced:
                        remark = Value(f"buffered writes {rate}")
                rates = (limit.requested, limit.measured, limit.setting)
                table_rows.append(
                    (
                        *(f"{order}: {', '.join(words) or UNKNOWN}", node),
                        _CONTROLS.get(control, control),
                        *(format_control(control, rate) for rate in rates),
                        remark,
                    )
                )
    columns = ("Start of a cluster", "Node", "What", "Requested", "Measured", "Set to", "Remark")
    return table("Limits of nodes", columns, "lclrrrl", table_rows)
