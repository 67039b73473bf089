"""The machine while the trials ran: load, speed and its correction, and limits set on purpose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

from harness.base.documents.document import Figure, Figures, Section, Table, Text, Value, table
from harness.base.documents.drawing import BAD, INK, MUTED, SERIES, SURFACE, WIDE, Canvas, grid
from harness.base.documents.wording import UNKNOWN, count, number, one_line, percent
from harness.base.records.profile import SpeedCorrection
from harness.base.records.trial import Limit, LimitedCluster, TrialRecord, TrialUse, format_control
from harness.base.units import format_bytes
from harness.core.experiment.grid import limit_texts
from harness.core.reports.data import ReportData

_STYLES: dict[str, dict[str, Any]] = {
    "profiling trial": {"marker": "o", "color": SERIES[0], "markerfacecolor": SURFACE},
    "scored trial": {"marker": "o", "color": SERIES[0]},
    "sentinel": {"marker": "D", "color": SERIES[0], "markerfacecolor": SURFACE},
    "disturbed trial": {"marker": "D", "color": SERIES[1]},
    "failed trial": {"marker": "X", "color": BAD},
}
_KINDS: dict[TrialUse, str] = {
    "profile": "profiling trial",
    "sentinel": "sentinel",
    "score": "scored trial",
}
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
    " was within 10 % of what was requested. What is read again from memory is not limited; a limit"
    " that is not enforced applies to synced writes alone, and tasks and DataNodes buffer theirs."
)


def section(results: ReportData) -> Section:
    """Speed over the trials, and for each workload the correction that was used."""
    corrections = [
        correction_text(workload, profile.speed) for workload, profile in results.profiles.items()
    ]
    return Section(
        id="machine",
        title="The machine",
        blocks=[
            *map(Text, corrections),
            Figures([figure for figure in [speed_over_time(results)] if figure]),
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
    rates = results.relative_rates
    disturbed = results.disturbed_trials
    rows = []
    points = defaultdict[str, list[tuple[float, float, str]]](list)
    for position, record in enumerate(results.ordered_trials, start=1):
        if (speed := rates.get(record.trial.id)) is not None:
            kind = _KINDS[record.trial.use]
            if record.state != "done":
                kind = "failed trial"
            elif record.trial.id in disturbed:
                kind = "disturbed trial"
            label = results.label(record.trial.cell.id)
            shown = percent(speed, 0.004)
            rows.append((str(position), record.trial.id, label, kind, shown))
            tooltip = f"trial {position}, {label}: {shown} of reference"
            points[kind].append((position, 100 * speed, tooltip))
    if not rows:
        return None
    orders, speeds, _ = zip(*sorted(chain(*points.values())), strict=True)

    def draw(canvas: Canvas) -> None:
        speed_axes = canvas.figure.add_subplot()
        speed_axes.axhline(100, color=INK, linewidth=0.9)
        speed_axes.plot(orders, speeds, color=MUTED, linewidth=0.7)
        for kind, style in _STYLES.items():
            look = {"markersize": 5.5, "linestyle": "none", "label": kind, **style}
            canvas.points(speed_axes, points[kind], **look)
        speed_axes.set(xlabel="trials in the order of running", ylabel="speed, % of reference")
        speed_axes.margins(x=0.02, y=0.12)
        grid(speed_axes, "y")
        canvas.figure.legend(loc="outside upper left", ncols=4)

    title = "Speed of the machine during each trial, in the order of running"
    caption = (
        "Speed of the machine by the probe that runs beside each job: from"
        f" {min(speeds):.0f} to {max(speeds):.0f} % of reference speed over {len(rows)}"
        " trials."
    )
    columns = ("Order", "Trial", "Cell", "Kind", "Speed")
    data = table("Data of the figure", columns, "rcllr", rows, folded=True)
    return Figure("speed", title, WIDE, 2.7, caption, data, draw)


def hardware_section(results: ReportData) -> Section:
    """Each limit of each node, and what went through limited disks."""
    starts = TypeAdapter(list[LimitedCluster]).validate_python(results.manifest.get("limits", []))
    # Trials that are done and had limited disks, by their cells.
    trials: dict[str, list[TrialRecord]] = {}
    for record in results.ordered_trials:
        if record.state == "done" and record.disk_bytes:
            trials.setdefault(record.trial.cell.id, []).append(record)
    texts = [_LIMITS] if starts else []
    table_rows = []
    for cell_id, records in trials.items():
        cell = records[0].trial.cell
        size_bytes = cell.workload.input_bytes
        read_bytes = mean_disk_bytes(records, "read")
        written_bytes = mean_disk_bytes(records, "written")
        sizes = [format_bytes(amount) for amount in (size_bytes, read_bytes, written_bytes)]
        table_rows.append((results.label(cell_id), str(len(records)), *sizes))
        is_limited = cell.cluster.node.disk_bytes_per_s is not None
        if is_limited and read_bytes < size_bytes / 2:
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


def mean_disk_bytes(records: Sequence[TrialRecord], verb: str) -> float:
    """Bytes that all disks of a trial have `read` or `written`, mean over the trials."""
    return fmean(
        sum(disk.get(verb, 0) for disk in record.disk_bytes.values()) for record in records
    )


def limits_table(results: ReportData, starts: Sequence[LimitedCluster]) -> Table:
    """Each limit of each node: requested, measured, and the setting that gave it."""
    specs = {cell.cluster.id: cell.cluster for cell, _ in results.cells.values()}
    table_rows: list[tuple[str | Value, ...]] = []
    for order, start in enumerate(starts, start=1):
        words = [start.cluster]
        if spec := specs.get(start.cluster):
            words = [*limit_texts(spec.node), *(f"{node} different" for node in spec.nodes)]
        name = f"{order}: {', '.join(words) or UNKNOWN}"
        for node, limits in start.nodes.items():
            for control, limit in limits.items():
                rates = (limit.requested, limit.measured, limit.setting)
                table_rows.append(
                    (
                        *(name, node, _CONTROLS.get(control, control)),
                        *(format_control(control, rate) for rate in rates),
                        limit_remark(control, limit),
                    )
                )
    columns = ("Start of a cluster", "Node", "What", "Requested", "Measured", "Set to", "Remark")
    return table("Limits of nodes", columns, "lclrrrl", table_rows)


def limit_remark(control: str, limit: Limit) -> Value:
    """What a limit is for writes that are buffered, where that was measured."""
    if limit.buffered_write is None:
        return Value("")
    rate = format_control(control, limit.buffered_write)
    if limit.is_enforced:
        return Value(f"buffered writes {rate}")
    return Value(f"not enforced: {rate} for buffered writes", "mark")
