"""
Tests for `harness.core.run.anchors`: commands of the user's that are told of a seal.
"""

import os
import sys
import time

from pathlib import Path

import pytest

from harness.base.errors import SpecError
from harness.cli import main
from harness.core.run import anchors
from harness.core.run.anchors import Notary, ask, require_nonce, unclear_name, words_of

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
    command = script(f'echo "$@" > {tmp_path}/told; echo noted')
    answer = ask("seal", DIGEST, Notary(f"{command} first"))

    assert (tmp_path / "told").read_text() == f"first {DIGEST}\n"
    assert (answer.answer, answer.error) == ("bm90ZWQK", "")


def test_one_that_prints_nothing_has_answered(script):
    """
    Mail, a quiet push and a line in a file say nothing where all is well.
    """
    answer = ask("seal", DIGEST, Notary(script("exit 0")))

    assert (answer.answer, answer.error) == ("", "")


def test_one_that_fails_is_told_by_its_last_words(script):
    """
    With its status.
    """
    answer = ask("seal", DIGEST, Notary(script("echo no network >&2; exit 3")))

    assert answer.error.endswith("anchor.sh: status 3: no network")


def test_one_that_hangs_ends_with_what_it_has_started(script, tmp_path, monkeypatch):
    """
    Nothing of it lives on beside the measurement.
    """
    monkeypatch.setattr(anchors, "LIMIT_S", 0.5)
    answer = ask("seal", DIGEST, Notary(script(f"sleep 300 & echo $! > {tmp_path}/child; wait")))
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
    answer = ask("seal", DIGEST, Notary(script("exec yes")))

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


def test_who_was_told_has_a_name(script):
    """
    That of the user, else the program's without its folder, also where it failed.
    """
    assert ask("seal", DIGEST, Notary(script("exit 0"), "Example Notary")).name == "Example Notary"
    assert ask("seal", DIGEST, Notary(script("exit 0"))).name == "anchor.sh"
    assert ask("seal", DIGEST, Notary(script("exit 3"))).name == "anchor.sh"


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("harness anchor tsa http://127.0.0.1:318/tsr", "127.0.0.1"),
        ("harness anchor tsa http://[::1]/tsr", "[::1]"),
        ("harness anchor tsa http://tsa.localhost/", "tsa.localhost"),
        ("/srv/bin/notary", "notary"),
        ("./notary now", "notary"),
        ("notary.sh", "notary.sh"),
        ("python3 -m notary", "python3"),
    ],
)
def test_a_name_that_no_reader_can_judge_is_told_before(command, seen):
    """
    Unless another is given.
    """
    assert unclear_name(Notary(command)) == seen
    assert unclear_name(Notary(command, "Example Notary")) == ""


@pytest.mark.parametrize(
    "command",
    [
        "",
        "git -C /srv/notary commit -m",
        "harness anchor tsa https://tsa.example/tsr",
        "bash post.sh https://log.example/add",
    ],
)
def test_a_name_that_readers_know(command):
    """
    Nothing is said.
    """
    assert unclear_name(Notary(command)) == ""


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--anchor-name", "x" * 101),
        ("--anchor-name", "a\x1b[31m"),
        ("--anchor-name", "two\nlines"),
        ("--anchor-name", " "),
        ("--anchor-name", "/srv/notary"),
        ("--not-before", "x" * 201),
        ("--not-before", "two\nlines"),
        ("--not-before", "a\u202eb"),
    ],
)
def test_what_no_line_can_show_is_refused(option, text, tmp_path, capsys):
    """
    Before anything is measured.
    """
    path = tmp_path / "x.yaml"
    path.write_text("schema: 1\n")
    assert main(["run", str(path), option, text]) == 2
    printed = capsys.readouterr().err
    assert option in printed
    assert "\x1b" not in printed


def test_a_headline_is_taken():
    """
    Also in other letters.
    """
    require_nonce("2026-11-30: ordinary news, \u00fcber alles")
