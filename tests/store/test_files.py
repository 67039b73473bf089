"""
Files of the store: what a full disk does to a lock, and what is never replaced.
"""

import errno
import os

import pytest

from harness.base.errors import MachineError, SpecError
from harness.observe.storage.files import exclusive_lock, write_file


def test_a_lock_on_a_full_disk_says_that_it_is_full(tmp_path, monkeypatch):
    """
    Nothing is left to be written when the file is closed, which would hide that error.
    """

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.pwrite", full)
    with (
        pytest.raises(MachineError, match="no space left on device"),
        exclusive_lock(tmp_path / "lock", "it"),
    ):
        pass


def test_no_device_or_pipe_is_replaced_by_a_file(tmp_path):
    """
    As an output, `/dev/null` of root: a rename would put a file in its place for everybody.
    """
    pipe = tmp_path / "pipe"
    link = tmp_path / "link"
    folder = tmp_path / "folder"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    folder.mkdir()

    for path in (pipe, link):
        with pytest.raises(SpecError, match="no plain file"):
            write_file(path, b"text", tmp_path / "scratch")
    with pytest.raises(MachineError, match="is a directory"):
        write_file(folder, b"text", tmp_path / "scratch")
    assert pipe.is_fifo()
    assert link.is_symlink()
    write_file(tmp_path / "file", b"text", tmp_path / "scratch")
    write_file(tmp_path / "file", b"other", tmp_path / "scratch")
    assert (tmp_path / "file").read_bytes() == b"other"
