"""What the kernel lets this user do."""

from __future__ import annotations

import os

from pathlib import Path

from harness.doctor.asking import first_line, run
from harness.doctor.finding import Finding, lacking
from harness.errors import MachineError
from harness.providers.limits import disks
from harness.providers.local import namespace


def namespaces() -> Finding:
    """Namespaces of our own, made for a moment as a cluster makes them."""
    as_root = os.geteuid() == 0
    if namespace.find_tool("unshare") is None:
        return Finding("namespaces", "lacking", "no unshare", "apt-get install -y util-linux")
    done = run(namespace.make_argv(["true"], as_root=as_root))
    if done.returncode == 0:
        who = "root" if as_root else "an ordinary user"
        return Finding("namespaces", "ok", f"network, mount and process namespaces, as {who}")
    if error := namespace.refusal(done.stderr):
        text = f"{error.what}; clusters get by with ports of the loopback address, and lose by it"
        return Finding("namespaces", "note", text, error.fix)
    error = MachineError(
        f"unshare failed: {first_line(done.stderr)}", fix="run as root, or with --privileged"
    )
    return lacking("namespaces", error)


def cgroups() -> Finding:
    """Control groups: which version, and whether this user may limit CPU and disk with them."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").is_file():
        text = f"version 2: {(root / 'cgroup.controllers').read_text().strip()}"
        writable = os.access(root / "cgroup.subtree_control", os.W_OK)
    elif (root / "cpu").is_dir():
        present = [name for name in ("blkio", "cpu", "cpuset", "memory") if (root / name).is_dir()]
        text, writable = f"version 1: {' '.join(present)}", os.access(root / "cpu", os.W_OK)
    else:
        return Finding("cgroups", "note", "none mounted: no node can be slowed down on purpose")
    if writable:
        return Finding("cgroups", "ok", text)
    return Finding("cgroups", "note", f"{text}; not this user's to change", "run as root")


def node_disks() -> Finding:
    """Whether nodes can have disks of their own, whose rate can be limited."""
    missing = [tool for tool in disks.TOOLS if namespace.find_tool(tool) is None]
    if missing:
        packages = " ".join(sorted({disks.TOOLS[tool] for tool in missing}))
        what = f"no {', '.join(missing)}: disks of nodes cannot be limited"
        return Finding("node disks", "note", what, f"apt-get install -y {packages}")
    if why := disks.refusal():
        return Finding("node disks", "note", f"{why}: disks of nodes cannot be limited")
    return Finding("node disks", "ok", "disks of nodes can be given a rate (loop devices)")


def traffic_control() -> Finding:
    """Whether the rate of a network link can be limited, tried on one that is thrown away."""
    if namespace.find_tool("tc") is None:
        return Finding("traffic control", "note", "no tc", "apt-get install -y iproute2")
    shape = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "100mbit"]
    shape += ["burst", "32kb", "latency", "50ms"]
    done = run(namespace.make_argv(shape, as_root=os.geteuid() == 0))
    if done.returncode == 0:
        return Finding("traffic control", "ok", "links of nodes can be given a rate (tbf)")
    fix = "modprobe sch_tbf" if "Specified qdisc" in done.stderr else ""
    return Finding("traffic control", "note", f"tc: {first_line(done.stderr)}", fix)
