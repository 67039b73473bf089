"""
Limits of nodes that are processes of this machine: control groups, disks of their own, shaping.

The groups are named after the cluster and its folder, the disks are files in that folder: so
`release` finds all of it from any process, whatever has ended before.
"""

from __future__ import annotations

import os
import shutil

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, MachineError
from harness.base.records.trial import (
    CORES,
    DISK_READ,
    DISK_WRITE,
    NETWORK_IN,
    NETWORK_OUT,
    ClusterSpec,
    digest,
)
from harness.clusters import kernel
from harness.clusters.adjust import Rates, requested_by_worker, requested_names
from harness.clusters.host import Completed
from harness.clusters.kernel import Groups, shape_argv
from harness.clusters.local import namespace

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
    # what experiment files call the limits: cores, disk, network
    requested = {control.partition("_")[0] for control in requested_names(spec)}
    if not requested:
        return
    if flat:
        raise _limit_error(requested, f"its nodes have no namespaces: {flat}", flat)
    grouped = requested & {"cores", "disk"}
    if grouped and (refusal := _groups_refusal(folder, grouped)):
        raise _limit_error(grouped, refusal, flat)
    if "disk" in requested and (refusal := kernel.disks_refusal()):
        raise _limit_error({"disk"}, refusal, flat)
    tools = {"disk": kernel.DISK_TOOLS, "network": {"tc": "iproute2"}}
    for limit_name in sorted(requested & tools.keys()):
        where = f"cluster.node.{limit_name}, cluster.nodes"
        namespace.require_tools(tools[limit_name], f"limits of nodes ({where})")


def _groups_refusal(folder: Path, grouped: set[str]) -> str:
    """Why control groups cannot limit what is *grouped*, in a few words; empty if they can."""
    if os.geteuid() != 0:
        return "an ordinary user can only limit the network"
    return groups_of(folder).refusal(cores="cores" in grouped, disk="disk" in grouped)


def _limit_error(names: set[str], reason: str, flat: str) -> MachineError:
    """The error for limits that cannot be set here; *flat* as for `require`."""
    alternative = "; harness doctor shows the reason"
    if "=ports" in flat:
        alternative = f", or unset {flat.partition('=')[0]}"
    elif os.geteuid() != 0:
        alternative = ", or be root"
    keys = ", ".join(sorted(f"cluster.node.{limit_name}" for limit_name in names))
    return MachineError(
        f"the {' and '.join(sorted(names))} of nodes cannot be limited here: {reason}",
        where="cluster.node, cluster.nodes",
        fix=f"leave out {keys}{alternative}",
    )


def make(folder: Path, spec: ClusterSpec, data: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """
    Make groups and disks of the cluster in *folder*, *data* being its nodes' folders by name.

    Returned is what the supervisor needs to know of each limited worker: ``joins``, the groups, and
    ``disk``, what to mount where.
    """
    requested = requested_by_worker(spec)
    groups = groups_of(folder)
    with_disks = [worker for worker, node_rates in requested.items() if DISK_READ in node_rates]
    free_bytes = shutil.disk_usage(folder).free // max(1, len(with_disks))
    hardware: dict[str, dict[str, Any]] = {}
    for worker in requested:
        hardware[worker] = {}
        if files := group_files(folder, spec, worker):
            try:
                groups.make(worker)
            except OSError as error:
                raise MachineError(
                    f"no control group can be made: {error.strerror}",
                    where=str(error.filename),
                    fix="run where control groups can be made, or leave the limits out",
                ) from error
            hardware[worker]["joins"] = files
        if worker in with_disks:
            node_disk = kernel.make_disk(folder / f"{worker}.disk", free_bytes)
            hardware[worker]["disk"] = {
                "device": node_disk.path,
                "options": kernel.MOUNT_OPTIONS,
                "at": f"{data[worker]}/{MOUNTED}",
                "over": {part: f"{data[worker]}/{part}" for part in PARTS},
            }
    return hardware


def group_files(folder: Path, spec: ClusterSpec, worker: str) -> list[str]:
    """Files into which a process of *worker* writes itself, as it starts; none for the master."""
    node_rates = requested_by_worker(spec).get(worker, {})
    return groups_of(folder).joins(worker) if CORES in node_rates or DISK_READ in node_rates else []


def disk_bytes(folder: Path) -> dict[str, dict[str, int]]:
    """Bytes ``read`` and ``written`` by the disk of each node that has one."""
    return {Path(disk.image).stem: disk.passed() for disk in kernel.find_disks(folder)}


def lift(folder: Path) -> None:
    """Lift the limits of the disks of the cluster in *folder*: what waits for them ends sooner."""
    groups = groups_of(folder)
    for node_disk in kernel.find_disks(folder):
        groups.lift_device(node_disk.device)


def release(folder: Path) -> None:
    """Remove disks and groups of the cluster in *folder*, whose processes have ended."""
    for node_disk in kernel.find_disks(folder):
        kernel.remove_disk(node_disk)
    groups_of(folder).remove()


def set_limits(
    folder: Path, tc: Tc, links: Mapping[str, str], settings: Mapping[str, Rates]
) -> None:
    """
    Set limits of nodes, whose links end at the bridge as *links*.

    *tc* runs a command in the network of a worker; with an empty name, in that of the bridge.
    """
    devices = {Path(disk.image).stem: disk.device for disk in kernel.find_disks(folder)}
    groups = groups_of(folder)
    for node_name, node_rates in settings.items():
        if CORES in node_rates:
            groups.set_cores(node_name, node_rates[CORES])
        if DISK_READ in node_rates:
            read = node_rates[DISK_READ]
            write = node_rates[DISK_WRITE]
            groups.set_device(node_name, devices[node_name], read=read, write=write)
        if NETWORK_OUT not in node_rates:
            continue
        for place, device, rate in (
            (node_name, "eth0", node_rates[NETWORK_OUT]),
            ("", links[node_name], node_rates[NETWORK_IN]),
        ):
            argv = shape_argv(device, rate)
            completed = tc(place, argv)
            if completed.status != 0:
                reason = f"{completed.err.strip()!a}"
                raise ClusterError(
                    f"the network of {place or 'the bridge'} cannot be limited: {reason}",
                    where=" ".join(argv),
                    fix="the kernel may lack sch_tbf: modprobe sch_tbf, or leave the limit out",
                )
