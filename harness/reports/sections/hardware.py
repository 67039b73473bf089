"""Hardware limited on purpose: what nodes were to have, what they had, and what is not limited."""

from __future__ import annotations

from statistics import fmean

from pydantic import TypeAdapter

from harness.experiment.grid import readable
from harness.records.hardware import ENTRY, LimitedCluster, format_control
from harness.records.trial import TrialRecord
from harness.reports.data import ReportData
from harness.reports.document import Section, Table, Text, Value, table
from harness.reports.wording import UNKNOWN
from harness.units import format_bytes

_NAMES = {
    "cores": "processors",
    "disk_write": "disk, written",
    "disk_read": "disk, read",
    "network_out": "network, sent",
    "network_in": "network, received",
}


def section(results: ReportData) -> Section | None:
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
    explanation = (
        "Nodes were slower than their machine: they were limited, each limit was measured under a"
        " small load before the daemons started, and its setting corrected until what was measured"
        " was within 10 % of what was requested. What is read again from memory is not limited."
    )
    texts = [explanation]
    if nodes:
        texts.append(
            f"The limit of the disk of {', '.join(nodes)} applies to synced writes alone: tasks and"
            " DataNodes, whose writes are buffered, are hardly limited by it."
        )
    for cell_id, records in trials.items():
        size = records[0].trial.cell.workload.input_bytes
        read = fmean(_passed(record, "read") for record in records)
        limited = records[0].trial.cell.cluster.node.disk_bytes_per_s is not None
        if limited and read < size / 2:
            texts.append(
                f"{results.label(cell_id)}: of {format_bytes(size)} of input, {format_bytes(read)}"
                " came from the limited disks, the rest from memory: reading was hardly limited."
            )
    disks = [
        (
            *(results.label(cell_id), str(len(records))),
            format_bytes(records[0].trial.cell.workload.input_bytes),
            format_bytes(fmean(_passed(record, "read") for record in records)),
            format_bytes(fmean(_passed(record, "written") for record in records)),
        )
        for cell_id, records in trials.items()
    ]
    columns = ("Cell", "Trials", "Input", "Read from disks", "Written to disks")
    note = "Of a trial, all nodes together. What came from memory, or stayed in it, is not here."
    passed = table("Through limited disks while jobs ran", columns, "lrrrr", disks, note=note)
    return Section(
        id="hardware",
        title="Hardware limited on purpose",
        blocks=[*map(Text, texts), limits_table(results, starts), passed],
    )


def _passed(record: TrialRecord, verb: str) -> int:
    return sum(disk.get(verb, 0) for disk in record.disk_bytes.values())


def limits_table(results: ReportData, starts: list[LimitedCluster]) -> Table:
    """Each limit of each node: requested, measured, and the setting that gave it."""
    specs = {cell_id.cluster.id: cell_id.cluster for cell_id, _ in results.cells.values()}
    rows: list[tuple[str | Value, ...]] = []
    for order, start in enumerate(starts, start=1):
        words = [start.cluster]
        if spec := specs.get(start.cluster):
            common = {name.partition("_")[0]: value for name, value in spec.node.limits().items()}
            words = [
                f"{field} {readable(field, requested_value)}"
                for field, requested_value in common.items()
                if requested_value is not None
            ]
            words += [f"{node} different" for node in spec.nodes]
        for node, limits in start.nodes.items():
            for control, limit in limits.items():
                remark = Value("")
                if limit.buffered_write is not None:
                    rate = format_control(control, limit.buffered_write)
                    remark = (
                        Value(f"buffered writes {rate}")
                        if limit.is_enforced
                        else Value(f"not enforced: {rate} for buffered writes", "mark")
                    )
                rates = (limit.requested, limit.measured, limit.setting)
                rows.append(
                    (
                        *(f"{order}: {', '.join(words) or UNKNOWN}", node),
                        _NAMES.get(control, control),
                        *(format_control(control, rate) for rate in rates),
                        remark,
                    )
                )
    columns = ("Start of a cluster", "Node", "What", "Requested", "Measured", "Set to", "Remark")
    return table("Limits of nodes", columns, "lclrrrl", rows)
