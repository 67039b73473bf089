"""
How the kernel limits a node: processors and block devices by control groups, its link by ``tc``.

Control groups of version 1 keep a tree for each controller, version 2 one for all; which one a
machine has is seen from the files below `ROOT`.  A group is known by the cluster's name, from any
process, and is gone when its last process has ended and `Groups.remove` was called.

In version 1 a device is limited for the group of all processes, not for the node's own: what the
kernel writes later belongs to nobody there and would pass beside a node's limit.  So the device has
to be one that a single node uses (`harness.providers.limits.disks`).
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
LEAST_QUOTA_US = 1000
_REMOVE_LIMIT_S = 10.0
_V1_CPU, _V1_DISK = "cpu", "blkio"
_V2_CONTROLLERS = ("cpu", "io", "memory")  # with memory the kernel knows who has written a page
_LEAST_BURST_BYTES, _LATENCY = 32 * 1024, "50ms"
_TICKS_PER_S = 250  # a bucket must hold what passes between two ticks of the kernel's clock


def shape_argv(device: str, bytes_per_s: float) -> list[str]:
    """
    Command that holds what leaves through *device* to a rate; it replaces an earlier limit.

    A link takes two: what a node sends is held at its own end, what it receives at the other.

    >>> " ".join(shape_argv("eth0", 12_500_000))
    'tc qdisc replace dev eth0 root tbf rate 100000000bit burst 50000b latency 50ms'
    """
    bit_rate = max(1, round(8 * bytes_per_s))
    burst = max(_LEAST_BURST_BYTES, round(bytes_per_s / _TICKS_PER_S))
    token_bucket = ["tbf", "rate", f"{bit_rate}bit", "burst", f"{burst}b", "latency", _LATENCY]
    return ["tc", "qdisc", "replace", "dev", device, "root", *token_bucket]


@dataclass(frozen=True, slots=True)
class Groups:
    """Control groups of the cluster *name*, one for each node, below *root*."""

    name: str
    root: Path = ROOT

    @property
    def version(self) -> int:
        """1 or 2; 0 where there are no control groups."""
        if (self.root / _V1_CPU).is_dir():
            return 1
        return 2 if (self.root / "cgroup.controllers").exists() else 0

    def refusal(self, *, cores: bool, disk: bool) -> str:
        """Why nodes cannot be limited so, in a few words; empty where they can."""
        if not self.version:
            return f"there are no control groups in {self.root}"
        needed = [*(["cpu"] * cores), *(["io" if self.version == 2 else _V1_DISK] * disk)]
        if self.version == 2:
            available = (self.root / "cgroup.controllers").read_text().split()
            lacking = [controller for controller in needed if controller not in available]
            files = [self.root / "cgroup.subtree_control"]
        else:
            lacking = [controller for controller in needed if not (self.root / controller).is_dir()]
            files = [self.root / controller / "cgroup.procs" for controller in needed]
        if lacking:
            return f"the kernel's control groups lack {', '.join(lacking)}"
        closed = [str(file) for file in files if not os.access(file, os.W_OK)]
        return f"{closed[0]} cannot be written" if closed else ""

    def make(self, node: str) -> None:
        """Make the groups of *node*; `OSError` where the kernel refuses."""
        if self.version == 2:  # a controller works where all groups above pass it on
            for parent in (self.root, self.root / PARENT, self.root / PARENT / self.name):
                parent.mkdir(exist_ok=True)
                available = (parent / "cgroup.controllers").read_text().split()
                passed_on = [f"+{name}" for name in _V2_CONTROLLERS if name in available]
                (parent / "cgroup.subtree_control").write_text(" ".join(passed_on))
        self._group(node).mkdir(parents=True, exist_ok=True)

    def joins(self, node: str) -> list[str]:
        """Files into which a process of *node* writes itself, as it starts."""
        folders = [self._group(node)]
        if self.version == 1 and (self.root / _V1_DISK).is_dir():
            folders.append(self.root / _V1_DISK)  # the group in which devices are limited
        return [str(folder / "cgroup.procs") for folder in folders]

    def set_cores(self, node: str, cores: float) -> None:
        """Give *node* a share of the processors."""
        quota_us = max(LEAST_QUOTA_US, round(cores * PERIOD_US))
        if self.version == 2:
            (self._group(node) / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            return
        (self._group(node) / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self._group(node) / "cpu.cfs_quota_us").write_text(str(quota_us))

    def set_device(self, node: str, device: str, *, read: float, write: float) -> None:
        """Hold *device* (``7:100``), which *node* alone uses, to bytes per second."""
        if self.version == 2:
            limits = f"{device} rbps={round(read)} wbps={round(write)}"
            (self._group(node) / "io.max").write_text(limits)
            return
        for direction, bytes_per_s in (("read", read), ("write", write)):
            self._throttle(direction).write_text(f"{device} {round(bytes_per_s)}")

    def lift_device(self, device: str) -> None:
        """Let *device* go as fast as it can, so that what still waits in it passes soon."""
        if self.version == 1:
            settings = {self._throttle(direction): f"{device} 0" for direction in ("read", "write")}
        else:
            files = (self.root / PARENT / self.name).glob("*/io.max")
            settings = dict.fromkeys(files, f"{device} rbps=max wbps=max")
        for file, text in settings.items():
            with suppress(OSError):
                file.write_text(text)

    def remove(self) -> None:
        """Remove all groups of the cluster; its processes have ended, or are about to."""
        deadline = time.monotonic() + _REMOVE_LIMIT_S
        for hierarchy in (self.root / _V1_CPU, self.root):
            cluster_group = hierarchy / PARENT / self.name
            groups = [
                *sorted(subfolder for subfolder in cluster_group.glob("*") if subfolder.is_dir()),
                cluster_group,
            ]
            while groups:
                try:
                    groups[0].rmdir()
                except FileNotFoundError:
                    groups.pop(0)
                except OSError:  # the last of its processes may still be ending
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
                else:
                    groups.pop(0)
            with suppress(OSError):  # other clusters may have theirs in it
                (hierarchy / PARENT).rmdir()

    def _group(self, node: str) -> Path:
        """Folder of the group that limits the processors of *node*."""
        hierarchy = self.root / _V1_CPU if self.version == 1 else self.root
        return hierarchy / PARENT / self.name / node

    def _throttle(self, direction: str) -> Path:
        """File of version 1 that limits devices for all processes."""
        return self.root / _V1_DISK / f"blkio.throttle.{direction}_bps_device"
