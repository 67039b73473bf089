"""
Tests for `harness.core.run.secrets`: variables, files and the key of the digests.
"""

import os
import stat

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.base.errors import SpecError
from harness.core.run.secrets import digest_key, read_secret


@pytest.fixture
def token(tmp_path):
    """
    A file that holds a secret, for its owner alone.
    """
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text("tökén \n")
    return path


class TestRead:
    def test_a_variable(self, monkeypatch):
        """
        As it is, empty ones included.
        """
        monkeypatch.setenv("SOME_TOKEN", " x ")
        monkeypatch.setenv("NO_TOKEN", "")

        assert [read_secret("env", name) for name in ("SOME_TOKEN", "NO_TOKEN")] == [" x ", ""]

    def test_a_file(self, token):
        """
        Without the line's end that editors put there.
        """
        assert read_secret("file", str(token)) == "tökén "

    def test_of_the_home_folder(self, token, monkeypatch):
        """
        As in a shell.
        """
        monkeypatch.setenv("HOME", str(token.parent))

        assert read_secret("file", "~/token") == "tökén "


def replaced(make):
    """
    What puts something else in the place of a file.
    """
    return lambda path: (path.unlink(), make(path))


@pytest.mark.parametrize(
    ("change", "what", "fix"),
    [
        (lambda path: path.chmod(0o644), r"others may read .*token \(mode 0644\)", "chmod o-r "),
        (lambda path: path.write_bytes(b"\xff"), "it is not UTF-8 text", "check"),
        (lambda path: path.write_text("x" * 70_000), "has more than 65536 characters", "check"),
        (lambda path: path.unlink(), "cannot be read: No such file", "check"),
        (replaced(lambda path: path.mkdir()), "is no plain file", "name a file"),
        (replaced(lambda path: os.mkfifo(path, 0o600)), "is no plain file", "name a file"),
    ],
)
def test_a_file_that_holds_no_secret_is_refused(token, change, what, fix):
    """
    Above all one that others may read: who put it there believes it safe.
    """
    change(token)

    with pytest.raises(SpecError, match=what) as refused:
        read_secret("file", str(token))
    assert refused.value.fix.startswith(fix)


def test_a_variable_that_is_not_set_is_refused(monkeypatch):
    """
    With the command that sets it.
    """
    monkeypatch.delenv("SOME_TOKEN", raising=False)

    with pytest.raises(SpecError, match="SOME_TOKEN is not set") as refused:
        read_secret("env", "SOME_TOKEN")
    assert refused.value.fix == "export SOME_TOKEN=..."


def test_the_key_is_made_once(tmp_path, monkeypatch):
    """
    Two harnesses that start at once have the same; nobody else reads it.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: digest_key(), range(64)))

    (file,) = (tmp_path / "mapreduce-harness").iterdir()
    assert keys == {file.read_bytes()}
    assert (len(file.read_bytes()), stat.S_IMODE(file.stat().st_mode)) == (32, 0o600)
