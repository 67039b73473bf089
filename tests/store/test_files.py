"""
Files of the store: what a full disk does to a lock.
"""

import errno
import os

import pytest

from harness.errors import MachineError
from harness.store.files import exclusive_lock


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
