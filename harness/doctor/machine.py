"""The machine itself: system, cores, load, memory, disk."""

from __future__ import annotations

import os
import platform
import re
import shutil

from pathlib import Path

from harness.doctor.finding import Finding
from harness.hadoop.slots import effective
from harness.monitor.machine import machine_facts
from harness.providers import state as states
from harness.records.trial import ClusterSpec
from harness.run.preflight import memory_needed
from harness.units import MIB, format_bytes

LEAST_DISK = 4096 * MIB  # inputs, the clusters' copies of them, intermediate data, logs
MOST_LOAD = 0.5  # runnable threads per core, before we have started anything


def system() -> Finding:
    """Linux: Hadoop's daemons live in its namespaces."""
    facts = machine_facts()
    text = f"{facts.get('os', platform.system())}, kernel {platform.release()}"
    if platform.system() == "Linux":
        return Finding("system", "ok", f"{text}, {platform.machine()}")
    return Finding("system", "lacking", text, "run it on Linux, or in a Linux virtual machine")


def cores() -> Finding:
    """Cores that may be used, less a quota of a control group."""
    facts = machine_facts()
    usable, quota = float(facts["cores_usable"]), _cpu_quota()
    text = f"{facts['cores_usable']} of {facts['cores']} usable, {facts.get('cpu', 'unknown')}"
    if quota is not None and quota < usable:
        usable, text = quota, f"{text}; a control group allows {quota:g}"
    if usable < 2:
        fix = "give this machine two cores; on one, tasks wait for each other and times tell that"
        return Finding("cores", "note", text, fix)
    return Finding("cores", "ok", text)


def load() -> Finding:
    """What others run here: it goes into every measured time."""
    runnable, number = os.getloadavg()[0], len(os.sched_getaffinity(0))
    text = f"{runnable:.1f} runnable threads on {number} cores over the last minute"
    if runnable > MOST_LOAD * number:
        return Finding("load", "note", text, "end what else runs before you measure")
    return Finding("load", "ok", text)


def memory() -> Finding:
    """Memory for a cluster of three workers, the one that the ready-made experiments ask for."""
    spec = ClusterSpec(workers=3)
    needed = memory_needed(spec, effective(spec, {}))
    facts = machine_facts()
    total = min(n for n in (facts.get("memory_bytes"), _memory_limit()) if n is not None)
    text = f"{format_bytes(total)}; a cluster of three workers takes up to {format_bytes(needed)}"
    if total < needed:
        return Finding("memory", "lacking", text, "lower cluster.workers, or add memory")
    return Finding("memory", "ok", text)


def disk(results: Path) -> Finding:
    """Room where results and clusters are written."""
    folders = {"results": results, "clusters": states.clusters_folder()}
    for name, folder in folders.items():
        if not os.access(_existing(folder), os.W_OK | os.X_OK):
            what = f"{folder.absolute()}, the place for {name}, is not this user's to write"
            return Finding("disk", "lacking", what, "choose another: --results-dir DIR")
    free = {name: shutil.disk_usage(_existing(folder)).free for name, folder in folders.items()}
    text = ", ".join(f"{format_bytes(n)} free for {name}" for name, n in free.items())
    if min(free.values()) < LEAST_DISK:
        fix = f"free {format_bytes(LEAST_DISK)}, or choose other places: --results-dir DIR,"
        return Finding("disk", "lacking", text, f"{fix} XDG_STATE_HOME=DIR")
    return Finding("disk", "ok", text)


def _existing(folder: Path) -> Path:
    """*folder*, or the nearest above it that is there."""
    folder = folder.absolute()
    # Not `is_dir`, which refuses to answer for what lies in a folder of somebody else.
    return next(p for p in (folder, *folder.parents) if os.path.isdir(p))  # noqa: PTH112


def _cpu_quota() -> float | None:
    """Cores that the control group of version 2 allows, `None` without a limit."""
    match = re.match(r"(\d+) (\d+)", _text(Path("/sys/fs/cgroup/cpu.max")))
    return int(match[1]) / int(match[2]) if match else None


def _memory_limit() -> int | None:
    text = _text(Path("/sys/fs/cgroup/memory.max")).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
