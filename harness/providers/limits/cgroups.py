"""
Control groups of a cluster's nodes: a share of the processors, and the rate of a block device.

Version 1 keeps a tree for each controller, version 2 one for all; which one a machine has is told
by the files below `ROOT`.  A group is found by the cluster's name, from any process, and is gone
when its last process has ended and `remove` was called.

In version 1 a device is limited for the group of all processes, not for the node's own: what is
written later, by the kernel, is nobody's there and would pass beside a node's limit.  So it takes a
device that one node alone uses (`harness.providers.limits.disks`).
"""

from __future__ import annotations

import os
import time

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PARENT = "mapreduce-harness"
PERIOD_US = 20_000  # shorter than usual: a task stands still for milliseconds, not for a tenth
_REMOVE_LIMIT_S = 10.0
_V1_CPU, _V1_DISK = "cpu", "blkio"
_V2_CONTROLLERS = ("cpu", "io", "memory")  # with memory the kernel knows who has written a page


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of the cluster *name*, one for each node, below *root*."""

    name: str
    root: Path = ROOT

    @property
    def version(self) -> int:
        """1 or 2; 0 where there are no control groups."""
        if (self.root / _V1_CPU / "cpu.shares").exists() or (self.root / _V1_CPU).is_dir():
            return 1
        return 2 if (self.root / "cgroup.controllers").exists() else 0

    def refusal(self, *, cores: bool, disk: bool) -> str:
        """Why nodes cannot be limited so, in a few words; empty where they can."""
        if not self.version:
            return f"there are no control groups in {self.root}"
        needed = [*(["cpu"] * cores), *(["io" if self.version == 2 else _V1_DISK] * disk)]
        if self.version == 2:
            there = (self.root / "cgroup.controllers").read_text().split()
            lacking = [name for name in needed if name not in there]
            files = [self.root / "cgroup.subtree_control"]
        else:
            lacking = [name for name in needed if not (self.root / name).is_dir()]
            files = [self.root / name / "cgroup.procs" for name in needed]
        if lacking:
            return f"the kernel's control groups lack {', '.join(lacking)}"
        closed = [str(file) for file in files if not os.access(file, os.W_OK)]
        return f"{closed[0]} cannot be written" if closed else ""

    def make(self, node: str) -> None:
        """Make the groups of *node*; `OSError` where the kernel refuses."""
        if self.version == 2:
            for parent in (self.root, self.root / PARENT, self.root / PARENT / self.name):
                parent.mkdir(exist_ok=True)
                there = (parent / "cgroup.controllers").read_text().split()
                wanted = [f"+{name}" for name in _V2_CONTROLLERS if name in there]
                (parent / "cgroup.subtree_control").write_text(" ".join(wanted))
        self._cpu(node).mkdir(parents=True, exist_ok=True)

    def joins(self, node: str) -> list[str]:
        """Files into which a process of *node* writes itself, as it starts."""
        folders = [self._cpu(node)]
        if self.version == 1 and (self.root / _V1_DISK).is_dir():
            folders.append(self.root / _V1_DISK)  # the group in which devices are limited
        return [str(folder / "cgroup.procs") for folder in folders]

    def set_cores(self, node: str, cores: float) -> None:
        """Give *node* a share of the processors."""
        quota = max(1000, round(cores * PERIOD_US))
        if self.version == 2:
            (self._cpu(node) / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            return
        (self._cpu(node) / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self._cpu(node) / "cpu.cfs_quota_us").write_text(str(quota))

    def set_device(self, node: str, device: str, *, read: float, write: float) -> None:
        """Hold *device* (``7:100``), which *node* alone uses, to bytes per second."""
        if self.version == 2:
            limits = f"{device} rbps={round(read)} wbps={round(write)}"
            (self._cpu(node) / "io.max").write_text(limits)
            return
        for verb, rate in (("read", read), ("write", write)):
            file = self.root / _V1_DISK / f"blkio.throttle.{verb}_bps_device"
            file.write_text(f"{device} {round(rate)}")

    def lift_device(self, device: str) -> None:
        """Let *device* go as fast as it can; what waits in it goes on."""
        if self.version == 1:
            for verb in ("read", "write"):
                file = self.root / _V1_DISK / f"blkio.throttle.{verb}_bps_device"
                with suppress(OSError):
                    file.write_text(f"{device} 0")
        else:
            for file in (self.root / PARENT / self.name).glob("*/io.max"):
                with suppress(OSError):
                    file.write_text(f"{device} rbps=max wbps=max")

    def remove(self) -> None:
        """Remove all groups of the cluster; its processes have ended, or are about to."""
        for tree in (self.root / _V1_CPU, self.root):
            top = tree / PARENT / self.name
            if top.is_dir():
                for group in (*sorted(p for p in top.iterdir() if p.is_dir()), top):
                    _remove_group(group)
            with suppress(OSError):  # other clusters may have theirs in it
                (tree / PARENT).rmdir()

    def _cpu(self, node: str) -> Path:
        tree = self.root / _V1_CPU if self.version == 1 else self.root
        return tree / PARENT / self.name / node


def _remove_group(group: Path) -> None:
    """Remove one group; the last of its processes may still be ending."""
    deadline = time.monotonic() + _REMOVE_LIMIT_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
