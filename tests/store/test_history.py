"""
Tests for histories of nights: lines in a chain, whole whatever happens.
"""

import errno
import os
import re
import subprocess
import sys

from pathlib import Path

import pytest

from harness.base.errors import DataError, EvidenceError, MachineError
from harness.nightly.history import History
from harness.nightly.records import Acceptance, Night, Point, Series

PROJECT = Path(__file__).parents[2]
SERIES = Series(machine="m", experiment="e", hadoop="3.5.0", workers="3")


def night(number=0, **entries):
    """
    A night with one number.
    """
    point = Point(kind="measured", workload="sort", cell="sort", quantity="job_s", raw=(1.5, 2.5))
    fields = {"time_s": 86400.0 * number, "run": f"run{number}", "series": SERIES}
    return Night.model_validate({**fields, "points": (point,), **entries})


@pytest.fixture
def history(tmp_path):
    """
    Three lines.
    """
    made = History(tmp_path / "nightly")
    made.append(night(0))
    made.append(night(1))
    made.append(Acceptance(time_s=2.0, alarm="1f2e3d4c", reason="new disks"))
    return made


def test_lines_come_back_in_their_order(history):
    """
    Each as it was added, with the hash of the line before.
    """
    entries = history.entries()
    bare = [entry.model_copy(update={"previous": ""}) for entry in entries]
    accepted = Acceptance(time_s=2.0, alarm="1f2e3d4c", reason="new disks")
    assert bare == [night(0), night(1), accepted]
    assert [bool(entry.previous) for entry in entries] == [False, True, True]
    assert History(history.folder.with_name("none")).entries() == []


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda text: text.replace(b"2.5", b"9.5", 1), EvidenceError, "line 2 does not follow"),
        (lambda text: text[text.index(b"\n") + 1 :], EvidenceError, "line 1 does not follow"),
        (lambda text: text[:-9], DataError, "cut within line 3"),
        (lambda text: re.sub(rb'("schema_version": )\d', rb"\g<1>99", text), DataError,
         "newer"),
        (lambda text: b"{\n" + text, DataError, "is not JSON"),
        (lambda text: text.replace(b'"run0"', b"7", 1), DataError, "run"),
    ],
)  # fmt: skip
def test_what_was_changed_is_named(history, change, error, words):
    """
    Edited, without a line, cut, of a newer harness, or no line at all: status 7.
    """
    history.path.write_bytes(change(history.path.read_bytes()))
    with pytest.raises(error, match=words) as caught:
        history.entries()
    assert caught.value.exit_status == 7


def test_a_cut_end_is_taken_off_by_the_next_line(history):
    """
    Whoever was killed while a line was written has lost that line, and none before.
    """
    history.path.write_bytes(history.path.read_bytes()[:-9])
    history.append(night(2))
    assert [getattr(entry, "run", "accepted") for entry in history.entries()] == [
        "run0", "run1", "run2",
    ]  # fmt: skip


def test_a_full_disk_leaves_the_history_whole(history, monkeypatch):
    """
    One clear error, and every line is as it was.
    """
    before = history.path.read_bytes()

    def fail(_handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(MachineError, match="no space left"):
        history.append(night(2))
    assert history.path.read_bytes() == before


ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from harness.base.errors import MachineError
from harness.nightly.history import History
from tests.store.test_history import night
history, count = History(Path(sys.argv[1])), 0
try:
    while count < 1000:
        history.append(night(count, lacks=("x" * 3000,)))
        count += 1
except MachineError as error:
    print(error.what.split(" (")[0], count > 9, len(history.entries()) == count)
"""


@pytest.mark.process
def test_half_a_line_is_taken_back(tmp_path):
    """
    Where the disk takes some of it: a real one that is full, on which every line before is whole.
    """
    mount = 'mount -t tmpfs -o size=64k none "$0" && exec "$@" "$0"'
    argv = ["unshare", "-rm", "sh", "-c", mount, tmp_path, sys.executable, "-c", ON_A_SMALL_DISK]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "no space left on device True True\n"


def test_a_link_is_not_followed(history, tmp_path):
    """
    Neither read nor written.
    """
    history.path.rename(tmp_path / "elsewhere")
    history.path.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(DataError, match="not a plain file"):
        history.entries()
    with pytest.raises((DataError, MachineError)):
        history.append(night(2))
    assert (tmp_path / "elsewhere").read_bytes() == before
