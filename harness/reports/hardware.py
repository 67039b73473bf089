"""Hardware made on purpose: what nodes were asked to be, what they were, and what is not felt."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from pydantic import TypeAdapter, ValidationError

from harness.experiment.grid import readable
from harness.records.hardware import ENTRY, Limit, LimitedCluster, format_control
from harness.records.trial import ClusterSpec, TrialRecord
from harness.reports.data import ReportData, in_order, label
from harness.reports.tables import Table, Value, table
from harness.reports.wording import UNKNOWN
from harness.units import format_bytes

_NAMES = {
    "cores": "processors",
    "disk_write": "disk, written",
    "disk_read": "disk, read",
    "network_out": "network, sent",
    "network_in": "network, received",
}


def limited(data: ReportData) -> list[LimitedCluster]:
    """
    Starts of limited clusters, as the manifest tells of them.

    An entry of the manifest that is none of ours is as good as none.
    """
    try:
        return TypeAdapter(list[LimitedCluster]).validate_python(data.manifest.get(ENTRY))
    except ValidationError:
        return []


def hardware_table(data: ReportData) -> Table | None:
    """Each limit of each node: asked, measured, and the setting that gave it."""
    rows = [
        (
            f"{number}: {_asked(data, start.cluster)}",
            node,
            _NAMES.get(dial, dial),
            format_control(dial, limit.requested),
            format_control(dial, limit.measured),
            format_control(dial, limit.setting),
            _remark(dial, limit),
        )
        for number, start in enumerate(limited(data), start=1)
        for node, dials in start.nodes.items()
        for dial, limit in dials.items()
    ]
    columns = ("Start of a cluster", "Node", "What", "Asked", "Measured", "Set to", "Remark")
    return table("Hardware made on purpose", columns, "lclrrrl", rows) if rows else None


def disks_table(data: ReportData) -> Table | None:
    """What went through limited disks while jobs ran, for each cell, on average."""
    rows = [
        (
            label(data, cell),
            str(len(trials)),
            format_bytes(trials[0].trial.cell.workload.input_bytes),
            format_bytes(fmean(_passed(r, "read") for r in trials)),
            format_bytes(fmean(_passed(r, "written") for r in trials)),
        )
        for cell, trials in _through_disks(data).items()
    ]
    columns = ("Cell", "Trials", "Input", "Read from disks", "Written to disks")
    note = "Of a trial, all nodes together.  What came from memory, or stayed in it, is not here."
    title = "Through limited disks while jobs ran"
    return table(title, columns, "lrrrr", rows, note=note.replace("  ", " ")) if rows else None


def _through_disks(data: ReportData) -> dict[str, list[TrialRecord]]:
    """Trials that are done and had limited disks, by their cells."""
    found: dict[str, list[TrialRecord]] = {}
    for r in in_order(data):
        if r.state == "done" and r.disk_bytes:
            found.setdefault(r.trial.cell.id, []).append(r)
    return found


def _passed(r: TrialRecord, verb: str) -> int:
    return sum(disk.get(verb, 0) for disk in r.disk_bytes.values())


def hardware_texts(data: ReportData) -> list[str]:
    """Say what was limited, and which limits tasks did not feel."""
    starts = limited(data)
    if not starts:
        return []
    said = (
        "Nodes were slower than their machine: they were limited, each limit was measured under a"
        " small load before the daemons started, and its setting corrected until what was measured"
        " was within 10 % of what was asked.  What is read again from memory is not limited."
    )
    return [said.replace("  ", " "), *_unfelt(starts), *_unread(data)]


def _unfelt(starts: list[LimitedCluster]) -> Iterator[str]:
    nodes = dict.fromkeys(
        node
        for start in starts
        for node, dials in start.nodes.items()
        if not all(limit.is_enforced for limit in dials.values())
    )
    if nodes:
        yield (
            f"The limit of the disk of {', '.join(nodes)} holds what is waited for alone: tasks and"
            " DataNodes, which wait for nothing, hardly feel it."
        )


def _unread(data: ReportData) -> Iterator[str]:
    """Cells whose input did not come from the limited disks: to them it is no limit."""
    for cell, trials in _through_disks(data).items():
        size = trials[0].trial.cell.workload.input_bytes
        read = fmean(_passed(r, "read") for r in trials)
        every = trials[0].trial.cell.cluster.node.disk_bytes_per_s is not None
        if every and read < size / 2:
            yield (
                f"{label(data, cell)}: of {format_bytes(size)} of input, {format_bytes(read)} came"
                " from the limited disks, the rest from memory: reading hardly felt the limit."
            )


def _asked(data: ReportData, cluster: str) -> str:
    """What the cluster of that id was asked to be, in a few words."""
    specs: dict[str, ClusterSpec] = {
        cell.cluster.id: cell.cluster for cell, _ in data.cells.values()
    }
    if cluster not in specs:
        return cluster
    spec = specs[cluster]
    every = {name.partition("_")[0]: v for name, v in spec.node.limits().items() if v is not None}
    words = [f"{name} {readable(name, value)}" for name, value in every.items()]
    words += [f"{node} different" for node in spec.nodes]
    return ", ".join(words) or UNKNOWN


def _remark(dial: str, limit: Limit) -> Value:
    if limit.buffered_write is None:
        return Value("")
    rate = format_control(dial, limit.buffered_write)
    return (
        Value(f"unwaited {rate}")
        if limit.is_enforced
        else Value(f"not felt: {rate} unwaited", "mark")
    )
