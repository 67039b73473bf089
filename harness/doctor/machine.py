"""The machine itself: system, cores, load, memory, disk; what its kernel lets this user do."""

from __future__ import annotations

import os
import platform
import re
import shutil

from pathlib import Path

from harness.doctor.commands import first_line, lacking_finding, run_command
from harness.errors import MachineError
from harness.hadoop.slots import effective
from harness.monitor.machine import machine_facts
from harness.providers import kernel, state
from harness.providers.base import Finding
from harness.providers.local import namespace
from harness.records.trial import ClusterSpec
from harness.run.preflight import memory_needed
from harness.units import MIB, format_bytes

LEAST_DISK = 4096 * MIB  # inputs, the clusters' copies of them, intermediate data, logs
MOST_LOAD = 0.5  # runnable threads per core, before we have started anything


def check_system() -> Finding:
    """Linux: Hadoop's daemons live in its namespaces."""
    facts = machine_facts()
    summary = f"{facts.get('os', platform.system())}, kernel {platform.release()}"
    if platform.system() == "Linux":
        return Finding("system", "ok", f"{summary}, {platform.machine()}")
    return Finding("system", "lacking", summary, "run it on Linux, or in a Linux virtual machine")


def check_cores() -> Finding:
    """Cores that may be used, less a quota of a control group."""
    facts = machine_facts()
    usable, quota_cores = float(facts["cores_usable"]), cpu_quota()
    summary = f"{facts['cores_usable']} of {facts['cores']} usable, {facts.get('cpu', 'unknown')}"
    if quota_cores is not None and quota_cores < usable:
        usable, summary = quota_cores, f"{summary}; a control group allows {quota_cores:g}"
    if usable < 2:
        remedy = "give this machine two cores; on one, tasks delay each other"
        return Finding("cores", "note", summary, remedy)
    return Finding("cores", "ok", summary)


def check_load() -> Finding:
    """What others run here: it goes into every measured time."""
    runnable, number = os.getloadavg()[0], len(os.sched_getaffinity(0))
    summary = f"{runnable:.1f} runnable threads on {number} cores over the last minute"
    if runnable > MOST_LOAD * number:
        return Finding("load", "note", summary, "end other programs before you measure")
    return Finding("load", "ok", summary)


def check_memory() -> Finding:
    """Memory for a cluster of three workers, the one that the ready-made experiments ask for."""
    spec = ClusterSpec(workers=3)
    needed = memory_needed(spec, effective(spec, {}))
    facts = machine_facts()
    sizes = (facts.get("memory_bytes"), memory_limit())
    total = min(size for size in sizes if size is not None)
    summary = (
        f"{format_bytes(total)}; a cluster of three workers takes up to {format_bytes(needed)}"
    )
    if total < needed:
        return Finding("memory", "lacking", summary, "lower cluster.workers, or add memory")
    return Finding("memory", "ok", summary)


def check_disk(results: Path) -> Finding:
    """Room where results and clusters are written."""
    folders = {"results": results, "clusters": state.clusters_folder()}
    for purpose, folder in folders.items():
        if not os.access(_nearest_folder(folder), os.W_OK | os.X_OK):
            what = f"this user may not write {folder.absolute()}, where {purpose} go"
            return Finding("disk", "lacking", what, "choose another: --results-dir DIR")
    free_bytes = {
        purpose: shutil.disk_usage(_nearest_folder(folder)).free
        for purpose, folder in folders.items()
    }
    summary = ", ".join(
        f"{format_bytes(size)} free for {purpose}" for purpose, size in free_bytes.items()
    )
    if min(free_bytes.values()) < LEAST_DISK:
        remedy = f"free {format_bytes(LEAST_DISK)}, or choose other folders: --results-dir DIR,"
        return Finding("disk", "lacking", summary, f"{remedy} XDG_STATE_HOME=DIR")
    return Finding("disk", "ok", summary)


def check_namespaces() -> Finding:
    """Namespaces of our own, made for a moment as a cluster makes them."""
    if namespace.find_tool("unshare") is None:
        return Finding("namespaces", "lacking", "no unshare", "apt-get install -y util-linux")
    completed = run_command(namespace.make_argv(["true"]))
    if completed.returncode == 0:
        user = "root" if os.geteuid() == 0 else "an ordinary user"
        return Finding("namespaces", "ok", f"network, mount and process namespaces, as {user}")
    if refusal := namespace.refusal_error(completed.stderr):
        summary = f"{refusal.what}; clusters use ports of the loopback address, with less isolation"
        return Finding("namespaces", "note", summary, refusal.fix)
    refusal = MachineError(
        f"unshare failed: {first_line(completed.stderr)}", fix="run as root, or with --privileged"
    )
    return lacking_finding("namespaces", refusal)


def check_cgroups() -> Finding:
    """Control groups: which version, and whether this user may limit CPU and disk with them."""
    cgroup_root = Path("/sys/fs/cgroup")
    if (cgroup_root / "cgroup.controllers").is_file():
        summary = f"version 2: {(cgroup_root / 'cgroup.controllers').read_text().strip()}"
        is_writable = os.access(cgroup_root / "cgroup.subtree_control", os.W_OK)
    elif (cgroup_root / "cpu").is_dir():
        names = [
            name for name in ("blkio", "cpu", "cpuset", "memory") if (cgroup_root / name).is_dir()
        ]
        summary, is_writable = (
            f"version 1: {' '.join(names)}",
            os.access(cgroup_root / "cpu", os.W_OK),
        )
    else:
        return Finding("cgroups", "note", "none mounted: nodes cannot be limited")
    if is_writable:
        return Finding("cgroups", "ok", summary)
    return Finding("cgroups", "note", f"{summary}; this user may not change them", "run as root")


def check_node_disks() -> Finding:
    """Whether nodes can have disks of their own, whose rate can be limited."""
    missing = [
        tool_name for tool_name in kernel.DISK_TOOLS if namespace.find_tool(tool_name) is None
    ]
    if missing:
        packages = " ".join(sorted({kernel.DISK_TOOLS[tool] for tool in missing}))
        what = f"no {', '.join(missing)}: disks of nodes cannot be limited"
        return Finding("node disks", "note", what, f"apt-get install -y {packages}")
    if reason := kernel.disks_refusal():
        return Finding("node disks", "note", f"{reason}: disks of nodes cannot be limited")
    return Finding("node disks", "ok", "disks of nodes can be given a rate (loop devices)")


def check_traffic_control() -> Finding:
    """Whether the rate of a network link can be limited, tried on one that is removed at once."""
    if namespace.find_tool("tc") is None:
        return Finding("traffic control", "note", "no tc", "apt-get install -y iproute2")
    tc_argv = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "100mbit"]
    tc_argv += ["burst", "32kb", "latency", "50ms"]
    completed = run_command(namespace.make_argv(tc_argv))
    if completed.returncode == 0:
        return Finding("traffic control", "ok", "links of nodes can be given a rate (tbf)")
    remedy = "modprobe sch_tbf" if "Specified qdisc" in completed.stderr else ""
    return Finding("traffic control", "note", f"tc: {first_line(completed.stderr)}", remedy)


def _nearest_folder(folder: Path) -> Path:
    """*folder*, or the nearest above it that exists."""
    folder = folder.absolute()
    # Not `is_dir`, which raises for what is in a folder of somebody else.
    return next(path for path in (folder, *folder.parents) if os.path.isdir(path))  # noqa: PTH112


def cpu_quota() -> float | None:
    """Cores that the control group of version 2 allows, `None` without a limit."""
    match = re.match(r"(\d+) (\d+)", _read(Path("/sys/fs/cgroup/cpu.max")))
    return int(match[1]) / int(match[2]) if match else None


def memory_limit() -> int | None:
    """Bytes that the control group of version 2 allows, `None` without a limit."""
    summary = _read(Path("/sys/fs/cgroup/memory.max")).strip()
    return int(summary) if summary.isdecimal() else None


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
