"""
A disk of its own for a node: a file of this machine as a block device, with a file system on it.

A limit on a group of processes misses what tasks leave in the page cache, which the kernel writes
later in nobody's name.  A device that one node alone uses is limited as a whole, and whatever is
written to it waits.  `WAITING_BYTES` may wait in memory; a writer that is further ahead is slowed
down to the disk's rate.  What is read again from the page cache is as fast as memory, as on any
machine.

A device is known by the file behind it, so `find` finds those of a cluster from any process.
Numbers from `FIRST_NUMBER` on keep out of the way of others' devices; a number is given back.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import time

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ClusterError
from harness.text import excerpt

CONTROL = Path("/dev/loop-control")
TOOLS = {"mkfs.ext4": "e2fsprogs", "losetup": "mount"}
WAITING_BYTES = 8 * 2**20
FIRST_NUMBER, LAST_NUMBER = 200, 1000
MOUNT_OPTIONS = "noatime,noinit_itable"  # the kernel would write tables for minutes otherwise
_ADD, _REMOVE = 0x4C80, 0x4C81
_REMOVE_LIMIT_S = 10.0
_SECTOR_BYTES = 512  # of the kernel's statistics, whatever the device's own is


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


def refusal() -> str:
    """Why this user cannot make disks, in a few words; empty where it can."""
    if os.geteuid() != 0:
        return "only root can make disks"
    if not os.access(CONTROL, os.W_OK):
        return f"{CONTROL} is not there, or cannot be written"
    return ""


def make(image: Path, size_bytes: int) -> Disk:
    """Make an empty disk of *size_bytes*, kept in the file *image*, which takes what is used."""
    with image.open("xb") as stream:
        os.truncate(stream.fileno(), size_bytes)
    _run(
        "mkfs.ext4", "-q", "-F", "-m", "0", "-i", "65536", "-O", "^has_journal",
        "-E", "lazy_itable_init=1,nodiscard", str(image),
    )  # fmt: skip
    number = _add_device()
    path = f"/dev/loop{number}"
    try:
        device = Path(f"/sys/block/loop{number}/dev").read_text().strip()
        if not Path(path).exists():  # where no udev makes the device's file
            major, minor = map(int, device.split(":"))
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(major, minor))
        _run("losetup", "--direct-io=on", path, str(image))
    except BaseException:
        _remove_device(number)  # with no file behind it, `find` would not find it
        raise
    settings = Path("/sys/class/bdi") / device
    with suppress(FileNotFoundError):  # kernels before 6.2; what is measured shows the difference
        (settings / "strict_limit").write_text("1")
        (settings / "max_bytes").write_text(str(WAITING_BYTES))
    return Disk(path, device, str(image))


def find(folder: Path) -> list[Disk]:
    """Disks whose files are, or were, in *folder*."""
    disks = []
    for entry in Path("/sys/block").glob("loop*"):
        try:
            image = (entry / "loop" / "backing_file").read_text().strip()
            device = (entry / "dev").read_text().strip()
        except OSError:  # it has no file behind it
            continue
        if image.startswith(f"{folder}/"):
            disks.append(Disk(f"/dev/{entry.name}", device, image))
    return sorted(disks, key=lambda disk: disk.number)


def remove(disk: Disk) -> None:
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
    with CONTROL.open("rb") as control:
        for number in range(FIRST_NUMBER, LAST_NUMBER):
            try:
                fcntl.ioctl(control, _ADD, number)
            except OSError as error:
                if error.errno != errno.EEXIST:
                    raise
            else:
                return number
    raise ClusterError(
        f"there are {LAST_NUMBER - FIRST_NUMBER} disks of clusters already",
        where=str(CONTROL),
        fix="harness cluster down --all",
    )


def _remove_device(number: int) -> bool:
    """Give a device's number back; `False` while it is in use."""
    with CONTROL.open("rb") as control:
        try:
            fcntl.ioctl(control, _REMOVE, number)
        except OSError as error:
            if error.errno == errno.EBUSY:
                return False
            if error.errno != errno.ENODEV:
                raise
    return True


def _run(*argv: str) -> None:
    completed = subprocess.run(
        argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace",
    )  # fmt: skip
    if completed.returncode != 0:
        last_line = completed.stderr.strip().splitlines()[-1:] or ["no message"]
        raise ClusterError(
            f"cannot make a disk for a node: {excerpt(last_line[0], 200)}",
            where=" ".join(argv),
            fix="leave the limit of disks out, or run where block devices can be made",
        )
