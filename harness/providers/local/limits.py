"""
Limits of nodes that are processes of this machine: control groups, disks of their own, shaping.

The groups are named after the cluster and its folder, the disks are files in that folder: so
`release` finds all of it from any process, whatever has ended before.
"""

from __future__ import annotations

import os
import shutil

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, MachineError
from harness.providers.host import Completed
from harness.providers.limits import disks
from harness.providers.limits.calibrate import Rates, requested_by_worker
from harness.providers.limits.kernel import Groups, shape_argv
from harness.providers.local import namespace
from harness.records.hardware import CORES, DISK_READ, DISK_WRITE, NETWORK_IN, NETWORK_OUT
from harness.records.trial import ClusterSpec, digest

MOUNTED = "disk"  # a node's disk, in the node's folder; parts of it lie over folders of that name
PARTS = ("data", "local")  # of DataNode and NodeManager: blocks, spills, what is shuffled
Tc = Callable[[str, Sequence[str]], Completed]


def groups_of(folder: Path) -> Groups:
    """The control groups of the cluster in *folder*."""
    return Groups(f"{folder.name}-{digest(str(folder))[:8]}")


def require(spec: ClusterSpec, folder: Path, *, flat: str = "") -> None:
    """
    `MachineError` that names what of *spec* this user cannot limit on this machine, and why.

    *flat* says why a cluster has no namespaces, and is empty where it has.
    """
    asked = {name for of in requested_by_worker(spec).values() for name in map(_limit_of, of)}
    lacking, cure = _missing(asked), _or_else(flat)
    for names, why in (
        (asked, f"its nodes have no namespaces: {flat}" if flat else ""),
        (asked & {"cores", "disk"}, _no_groups(asked, folder)),
        (asked & {"disk"}, disks.refusal()),
        (asked & lacking.keys(), f"missing commands: {', '.join(_tools(lacking))}"),
    ):
        if names and why:
            install = f"apt-get install -y {' '.join(_tools(lacking, packages=True))}"
            others = ", ".join(sorted(f"cluster.node.{name}" for name in names))
            raise MachineError(
                f"the {' and '.join(sorted(names))} of nodes cannot be limited here: {why}",
                where="cluster.node, cluster.nodes",
                fix=install if lacking and "commands" in why else f"leave out {others}{cure}",
            )


def _or_else(flat: str) -> str:
    """What this user can do to have nodes limited, but install commands."""
    if "=ports" in flat:
        return f", or unset {flat.partition('=')[0]}"
    return ", or be root" if os.geteuid() != 0 else "; harness doctor looks at what is in the way"


def _limit_of(limit_name: str) -> str:
    """Key of a limit in an experiment file."""
    return limit_name.partition("_")[0]


def _no_groups(asked: set[str], folder: Path) -> str:
    """Why this user has no control groups for what is *asked*; empty where it has."""
    if os.geteuid() != 0:
        return "an ordinary user limits the network alone"
    return groups_of(folder).refusal(cores="cores" in asked, disk="disk" in asked)


def _missing(asked: set[str]) -> dict[str, dict[str, str]]:
    """Commands that are not there, with their packages, for each limit that is *asked*."""
    tools = {"disk": disks.TOOLS, "network": {"tc": "iproute2"}}
    found = {
        name: {tool: pack for tool, pack in tools[name].items() if not namespace.find_tool(tool)}
        for name in asked & tools.keys()
    }
    return {name: missing for name, missing in found.items() if missing}


def _tools(lacking: Mapping[str, Mapping[str, str]], *, packages: bool = False) -> list[str]:
    """Commands of *lacking*, or the packages that bring them."""
    return sorted({pair[packages] for missing in lacking.values() for pair in missing.items()})


def make(folder: Path, spec: ClusterSpec, data: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """
    Make groups and disks of the cluster in *folder*, *data* being its nodes' folders by name.

    Answers what the first process of the cluster needs to know of each limited worker: ``joins``,
    the groups, and ``disk``, what to mount where.
    """
    asked, groups = requested_by_worker(spec), groups_of(folder)
    with_disks = [worker for worker, rates in asked.items() if DISK_READ in rates]
    room = shutil.disk_usage(folder).free // max(1, len(with_disks))
    made: dict[str, dict[str, Any]] = {}
    for worker, rates in asked.items():
        made[worker] = {}
        if joined := joins(folder, spec, worker):
            _grouped(groups, worker)
            made[worker]["joins"] = joined
        if DISK_READ in rates:
            disk = disks.make(folder / f"{worker}.disk", room)
            made[worker]["disk"] = {
                "device": disk.path,
                "options": disks.MOUNT_OPTIONS,
                "at": f"{data[worker]}/{MOUNTED}",
                "over": {part: f"{data[worker]}/{part}" for part in PARTS},
            }
    return made


def joins(folder: Path, spec: ClusterSpec, worker: str) -> list[str]:
    """Files into which a process of *worker* writes itself, as it starts; the master has none."""
    rates = requested_by_worker(spec).get(worker, {})
    return groups_of(folder).joins(worker) if CORES in rates or DISK_READ in rates else []


def _grouped(groups: Groups, worker: str) -> None:
    try:
        groups.make(worker)
    except OSError as error:
        raise MachineError(
            f"no control group can be made: {error.strerror}",
            where=str(error.filename),
            fix="run where control groups can be made, or leave the limits out",
        ) from error


def disk_bytes(folder: Path) -> dict[str, dict[str, int]]:
    """Bytes ``read`` and ``written`` by the disk of each node that has one."""
    return {Path(disk.image).stem: disk.passed() for disk in disks.find(folder)}


def lift(folder: Path) -> None:
    """Let the disks of the cluster in *folder* go fast: what waits for them ends sooner."""
    groups = groups_of(folder)
    for disk in disks.find(folder):
        groups.lift_device(disk.device)


def release(folder: Path) -> None:
    """Remove disks and groups of the cluster in *folder*, whose processes have ended."""
    for disk in disks.find(folder):
        disks.remove(disk)
    groups_of(folder).remove()


@dataclass(frozen=True)
class NodeLimiter:
    """
    Sets the limits of a cluster's nodes.

    *tc* runs a command in the network of a worker; with an empty name, in that of the bridge.
    *links* are the bridge's ends of the workers' links.
    """

    folder: Path
    tc: Tc
    links: Mapping[str, str]

    def set(self, settings: Mapping[str, Rates]) -> None:
        """Set limits of nodes."""
        devices = {Path(disk.image).stem: disk.device for disk in disks.find(self.folder)}
        for node, rates in settings.items():
            if CORES in rates:
                groups_of(self.folder).set_cores(node, rates[CORES])
            if DISK_READ in rates:
                groups_of(self.folder).set_device(
                    node, devices[node], read=rates[DISK_READ], write=rates[DISK_WRITE]
                )
            if NETWORK_OUT in rates:
                self._shape(node, shape_argv("eth0", rates[NETWORK_OUT]))
                self._shape("", shape_argv(self.links[node], rates[NETWORK_IN]))

    def _shape(self, node: str, argv: Sequence[str]) -> None:
        done = self.tc(node, argv)
        if done.status != 0:
            raise ClusterError(
                f"the network of {node or 'the bridge'} cannot be limited: {done.err.strip()!a}",
                where=" ".join(argv),
                fix="the kernel may lack sch_tbf: modprobe sch_tbf, or leave the limit out",
            )
