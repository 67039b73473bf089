"""
Tests for `harness.core.run.anchors`: commands of the user's that are told of a seal.
"""

import os
import sys
import time

from pathlib import Path

import pytest

from harness.base.errors import SpecError
from harness.core.run import anchors
from harness.core.run.anchors import ask, words_of

DIGEST = "ab" * 32
pytestmark = pytest.mark.process


@pytest.fixture
def script(tmp_path):
    """
    Writes a script of the shell, and answers the command that runs it.
    """

    def write(text):
        path = tmp_path / "anchor.sh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


def test_is_told_the_digits(script, tmp_path):
    """
    As its last word; what it prints is the answer.
    """
    answer = ask("seal", DIGEST, script(f'echo "$@" > {tmp_path}/told; echo noted') + " first")

    assert (tmp_path / "told").read_text() == f"first {DIGEST}\n"
    assert (answer.answer, answer.error) == ("bm90ZWQK", "")


def test_one_that_prints_nothing_has_answered(script):
    """
    Mail, a quiet push and a line in a file say nothing where all is well.
    """
    answer = ask("seal", DIGEST, script("exit 0"))

    assert (answer.answer, answer.error) == ("", "")


def test_one_that_fails_is_told_by_its_last_words(script):
    """
    With its status.
    """
    answer = ask("seal", DIGEST, script("echo no network >&2; exit 3"))

    assert answer.error.endswith("anchor.sh: status 3: no network")


def test_one_that_hangs_ends_with_what_it_has_started(script, tmp_path, monkeypatch):
    """
    Nothing of it lives on beside the measurement.
    """
    monkeypatch.setattr(anchors, "LIMIT_S", 0.5)
    answer = ask("seal", DIGEST, script(f"sleep 300 & echo $! > {tmp_path}/child; wait"))
    child = Path("/proc", (tmp_path / "child").read_text().strip())

    assert answer.error.endswith("no answer within 0 s")
    deadline = time.monotonic() + 5
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)


def is_running(process):
    """
    Whether a process, a folder of the kernel's, has not ended.
    """
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_one_that_prints_without_end_is_ended(script, monkeypatch):
    """
    It fills no disk.
    """
    monkeypatch.setattr(anchors, "_MOST_WRITTEN", 2**20)
    answer = ask("seal", DIGEST, script("exec yes"))

    assert answer.error
    assert answer.answer == ""


def test_a_program_that_is_not_there_is_refused():
    """
    Before anything is measured.
    """
    with pytest.raises(SpecError, match="there is no program 'no-such-program'"):
        words_of("no-such-program x")


def test_harness_is_the_one_that_runs(monkeypatch):
    """
    Also for who has it in no folder of his PATH.
    """
    monkeypatch.setenv("PATH", os.devnull)

    own = Path(sys.executable).with_name("harness")
    assert words_of("harness anchor tsa http://127.0.0.1:1/") == [
        str(own), "anchor", "tsa", "http://127.0.0.1:1/",
    ]  # fmt: skip
