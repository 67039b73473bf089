"""
Files of the store: what a full disk does to a lock, and what is never replaced.
"""

import errno
import os

from pathlib import Path

import pytest

from harness.base.errors import MachineError, SpecError
from harness.observe.storage.files import exclusive_lock, is_path, replace_file, write_file


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


def fill_disk(path):
    """
    Write as much of a file as a full disk takes.
    """
    path.write_text("hal")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_keeps_the_older_file(tmp_path):
    """
    Of a new one no part is left, nor anything beside it; the error names the user's file.
    """
    older = tmp_path / "older.csv"
    older.write_text("older")

    for path in (older, tmp_path / "new.csv"):
        with pytest.raises(OSError, match="No space left on device") as caught:
            replace_file(path, fill_disk)
        assert caught.value.filename == str(path)
    assert [*tmp_path.iterdir()] == [older]
    assert older.read_text() == "older"


def test_a_file_is_replaced_behind_its_link(tmp_path):
    """
    The link stays one, the mode that of the older file; what writes sees the same name.
    """
    older = tmp_path / "older.json.gz"
    link = tmp_path / "link"
    older.write_text("older")
    older.chmod(0o640)
    link.symlink_to(older)

    replace_file(link, lambda file: file.write_text(file.name))

    assert (link.is_symlink(), older.read_text()) == (True, "older.json.gz")
    assert older.stat().st_mode & 0o777 == 0o640
    assert len([*tmp_path.iterdir()]) == 2


def test_a_device_or_a_pipe_is_written_to(tmp_path):
    """
    It is what the user named, and no file takes its place.
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    for path in (pipe, Path(os.devnull)):
        replace_file(path, lambda file: file.write_text("text"))

    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert pipe.is_fifo()
    assert Path(os.devnull).is_char_device()


def test_what_is_printed_to_is_written_where_it_is(tmp_path, monkeypatch):
    """
    As `/dev/stdout`, redirected to a file: another in its place would lose what is printed later.
    """
    printed_to = tmp_path / "out.txt"
    printed_to.touch()
    monkeypatch.setattr("os.fstat", lambda _stream: printed_to.stat())
    inode = printed_to.stat().st_ino

    replace_file(printed_to, lambda file: file.write_text("text"))

    assert (printed_to.stat().st_ino, printed_to.read_text()) == (inode, "text")


@pytest.mark.parametrize("text", ["x" * 5000, "x/" * 2045, "x\0"])
def test_what_the_system_cannot_look_at_is_no_path(text):
    """
    It is too long, itself or with a name below it, or has a character that no name has.
    """
    assert (is_path(text), is_path("none/x"), is_path("")) == (False, True, True)
