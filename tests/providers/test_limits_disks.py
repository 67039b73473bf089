"""
Tests for disks of nodes: how they are found, and that nothing stays of one that was not made.

A real one is made in `tests/live/test_limits.py`.
"""

import errno
import os

import pytest

from harness.base.errors import ClusterError
from harness.clusters import kernel

MIB = 2**20


@pytest.fixture
def loop_devices(tmp_path, monkeypatch):
    """
    Loop devices as a kernel without any: numbers that were commands for and given back.
    """
    devices = {}

    def control(_, verb, number):
        if verb == kernel._ADD_DEVICE:
            if number in devices:
                raise OSError(errno.EEXIST, "exists")
            devices[number] = "made"
        elif devices.pop(number, None) is None:
            raise OSError(errno.ENODEV, "no such device")

    monkeypatch.setattr(kernel, "LOOP_CONTROL", tmp_path / "control")
    (tmp_path / "control").touch()
    monkeypatch.setattr("fcntl.ioctl", control)
    return devices


def test_a_disk_that_cannot_be_attached_leaves_no_device(loop_devices, tmp_path, monkeypatch):
    """
    Its number is given back; numbers that others have are passed over.
    """
    loop_devices[kernel.FIRST_NUMBER] = "another's"
    monkeypatch.setattr(kernel, "_run", lambda *argv: None)

    with pytest.raises(FileNotFoundError, match=f"loop{kernel.FIRST_NUMBER + 1}"):
        kernel.make_disk(tmp_path / "worker1.disk", 16 * MIB)

    assert loop_devices == {kernel.FIRST_NUMBER: "another's"}


def test_a_disk_is_no_larger_than_what_is_in_it(loop_devices, tmp_path, monkeypatch):
    """
    The file takes room as it is used.
    """
    commands = []
    monkeypatch.setattr(kernel, "_run", lambda *argv: commands.append(argv[0]))

    with pytest.raises(FileNotFoundError):  # no device comes of it
        kernel.make_disk(tmp_path / "worker1.disk", 64 * MIB)

    facts = (tmp_path / "worker1.disk").stat()
    assert (facts.st_size, facts.st_blocks, commands) == (64 * MIB, 0, ["mkfs.ext4"])


@pytest.mark.process
def test_the_last_line_of_a_failed_command_is_reported(tmp_path):
    """
    With the command, and one line that cannot move a terminal's cursor.
    """
    with pytest.raises(ClusterError) as caught:
        kernel._run("sh", "-c", "echo a >&2; printf '\\033[2Jno room\\n' >&2; exit 1")

    assert caught.value.what == "cannot make a disk for a node: \\x1b[2Jno room"


def test_a_disk_that_stays_in_use_is_an_error(loop_devices, monkeypatch):
    """
    The namespace that has it mounted may still be ending.
    """
    monkeypatch.setattr(kernel, "_run", lambda *argv: None)
    monkeypatch.setattr(kernel, "_REMOVE_LIMIT_S", 0.1)
    monkeypatch.setattr(kernel, "_remove_device", lambda number: False)

    with pytest.raises(ClusterError, match=r"/dev/loop200 is still in use 0\.1 s after"):
        kernel.remove_disk(kernel.Disk("/dev/loop200", "7:200", "x"))


def test_only_disks_of_the_folder_are_its_own(tmp_path):
    """
    Whatever this machine has: none of it lies in a folder that was just made.
    """
    assert kernel.find_disks(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root makes disks")
def test_an_ordinary_user_cannot_make_disks():
    """
    The loop_devices lets nobody else attach files.
    """
    assert kernel.disks_refusal() == "only root can make disks"
