"""
How the kernel limits a node: control groups, ``tc``, and disks that are files of this machine.

A limit on a group of processes misses what tasks leave in the page cache, which the kernel writes
later in nobody's name.  So a disk is a block device that one node alone uses, with a file system on
it, limited as a whole.  `WAITING_BYTES` may wait in memory; a writer that is further ahead is
slowed down to the disk's rate.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import time

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.base.errors import ClusterError
from harness.base.text import excerpt

ROOT = Path("/sys/fs/cgroup")
PARENT = "mapreduce-harness"
PERIOD_US = 20_000  # shorter than usual: a task stands still for milliseconds, not for a tenth
LEAST_QUOTA_US = 1000
_REMOVE_LIMIT_S = 10.0
_V1_CPU = "cpu"
_V1_DISK = "blkio"
_V2_CONTROLLERS = ("cpu", "io", "memory")  # with memory the kernel knows who has written a page
_LEAST_BURST_BYTES = 32 * 1024
_LATENCY = "50ms"
_TICKS_PER_S = 250  # a bucket must hold what passes between two ticks of the kernel's clock

LOOP_CONTROL = Path("/dev/loop-control")
DISK_TOOLS = {"mkfs.ext4": "e2fsprogs", "losetup": "mount"}
WAITING_BYTES = 8 * 2**20
FIRST_NUMBER = 200
LAST_NUMBER = 1000  # of devices, out of the way of others'
MOUNT_OPTIONS = "noatime,noinit_itable"  # the kernel would write tables for minutes otherwise
_FORMAT_OPTIONS = (
    "-q",
    "-F",  # a plain file is fine
    *("-m", "0"),  # no blocks are kept for root
    *("-i", "65536"),  # bytes per inode: few files, and large ones
    *("-O", "^has_journal"),
    *("-E", "lazy_itable_init=1,nodiscard"),  # it is made in a moment
)
_ADD_DEVICE = 0x4C80
_REMOVE_DEVICE = 0x4C81
_SECTOR_BYTES = 512  # of the kernel's statistics, whatever the device's own is


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
        disk_controller = "io" if self.version == 2 else _V1_DISK
        needed = ["cpu"] * cores + [disk_controller] * disk
        lacking = [controller for controller in needed if not self._has(controller)]
        if lacking:
            return f"the kernel's control groups lack {', '.join(lacking)}"
        closed = [file for file in self._entrances(needed) if not os.access(file, os.W_OK)]
        if closed:
            return f"{closed[0]} cannot be written"
        # Of version 2 only the topmost group, which has no type, passes on beside processes.
        if (self.root / "cgroup.type").exists() and (self.root / "cgroup.procs").read_text():
            return f"{self.root} is a container's own group, and processes run in it"
        return ""

    def _has(self, controller: str) -> bool:
        """Whether the kernel has a controller here."""
        if self.version == 2:
            return controller in (self.root / "cgroup.controllers").read_text().split()
        return (self.root / controller).is_dir()

    def _entrances(self, controllers: Sequence[str]) -> list[Path]:
        """Files that must be written for nodes to be limited by these *controllers*."""
        if self.version == 2:
            return [self.root / "cgroup.subtree_control"]
        return [self.root / controller / "cgroup.procs" for controller in controllers]

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
            nodes = sorted(below for below in cluster_group.glob("*") if below.is_dir())
            for group in (*nodes, cluster_group):
                while group.is_dir():
                    try:
                        group.rmdir()
                    except OSError:  # the last of its processes may still be ending
                        if time.monotonic() > deadline:
                            raise
                        time.sleep(0.05)
            with suppress(OSError):  # other clusters may have theirs in it
                (hierarchy / PARENT).rmdir()

    def _group(self, node: str) -> Path:
        """Folder of the group that limits the processors of *node*."""
        hierarchy = self.root / _V1_CPU if self.version == 1 else self.root
        return hierarchy / PARENT / self.name / node

    def _throttle(self, direction: str) -> Path:
        """File of version 1 that limits devices for all processes."""
        return self.root / _V1_DISK / f"blkio.throttle.{direction}_bps_device"


@dataclass(frozen=True, slots=True)
class Disk:
    """A block device: *path*, *device* numbers as the kernel writes them (``7:200``), its file."""

    path: str
    device: str
    image: str

    def passed(self) -> dict[str, int]:
        """Bytes ``read`` and ``written`` since it was made."""
        fields = Path(f"/sys/block/loop{self.number}/stat").read_text().split()
        return {"read": int(fields[2]) * _SECTOR_BYTES, "written": int(fields[6]) * _SECTOR_BYTES}

    @property
    def number(self) -> int:
        """Its number among the loop devices."""
        return int(self.path.removeprefix("/dev/loop"))


def disks_refusal() -> str:
    """Why this user cannot make disks, in a few words; empty where it can."""
    if os.geteuid() != 0:
        return "only root can make disks"
    if not os.access(LOOP_CONTROL, os.W_OK):
        return f"{LOOP_CONTROL} is not there, or cannot be written"
    return ""


def make_disk(image: Path, size_bytes: int) -> Disk:
    """Make an empty disk of *size_bytes*, kept in the file *image*, which takes what is used."""
    with image.open("xb") as stream:
        os.truncate(stream.fileno(), size_bytes)
    _run("mkfs.ext4", *_FORMAT_OPTIONS, str(image))
    number = _add_device()
    path = f"/dev/loop{number}"
    try:
        device = Path(f"/sys/block/loop{number}/dev").read_text().strip()
        if not Path(path).exists():  # where no udev makes the device's file
            major, minor = map(int, device.split(":"))
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(major, minor))
        _run("losetup", "--direct-io=on", path, str(image))
    except BaseException:
        _remove_device(number)  # with no file behind it, `find_disks` would not find it
        raise
    settings = Path("/sys/class/bdi") / device
    # Kernels before 6.2 have neither, nor make them; what is measured shows the difference.
    with suppress(FileNotFoundError, PermissionError):
        (settings / "strict_limit").write_text("1")
        (settings / "max_bytes").write_text(str(WAITING_BYTES))
    return Disk(path, device, str(image))


def find_disks(folder: Path) -> list[Disk]:
    """Disks whose files are, or were, in *folder*."""
    disks = []
    for entry in Path("/sys/block").glob("loop*"):
        with suppress(OSError):  # it has no file behind it
            image = (entry / "loop" / "backing_file").read_text().strip()
            device = (entry / "dev").read_text().strip()
            if image.startswith(f"{folder}/"):
                disks.append(Disk(f"/dev/{entry.name}", device, image))
    return sorted(disks, key=lambda disk: disk.number)


def remove_disk(disk: Disk) -> None:
    """Detach a disk that nobody has mounted any more, or is about to leave; its number goes."""
    _run("losetup", "-d", disk.path)
    deadline = time.monotonic() + _REMOVE_LIMIT_S
    while not _remove_device(disk.number):
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{disk.path} is still in use {_REMOVE_LIMIT_S:g} s after its cluster has ended",
                where="losetup -l",
                fix="repeat: harness cluster down",
            )
        time.sleep(0.05)


def _add_device() -> int:
    """Make a device of a free number; that number."""
    with LOOP_CONTROL.open("rb") as control:
        for number in range(FIRST_NUMBER, LAST_NUMBER):
            try:
                fcntl.ioctl(control, _ADD_DEVICE, number)
            except OSError as error:
                if error.errno != errno.EEXIST:
                    raise
            else:
                return number
    raise ClusterError(
        f"there are {LAST_NUMBER - FIRST_NUMBER} disks of clusters already",
        where=str(LOOP_CONTROL),
        fix="harness cluster down --all",
    )


def _remove_device(number: int) -> bool:
    """Give a device's number back; `False` while it is in use."""
    with LOOP_CONTROL.open("rb") as control:
        try:
            fcntl.ioctl(control, _REMOVE_DEVICE, number)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
            if error.errno != errno.ENODEV:
                raise
    return True


def _run(*argv: str) -> None:
    completed = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if completed.returncode != 0:
        last_line = completed.stderr.strip().splitlines()[-1:] or ["no message"]
        raise ClusterError(
            f"cannot make a disk for a node: {excerpt(last_line[0], 200)}",
            where=" ".join(argv),
            fix="leave the limit of disks out, or run where block devices can be made",
        )
