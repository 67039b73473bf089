"""
Bars on a real terminal: what is said meanwhile has lines of its own, whoever says it.
"""

import os
import pty
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

BEGIN = """
import signal, sys, threading, time, warnings
import click
from harness.cli.console import talk
from harness.cli.console.command import command
talk.PATIENCE_S = 0.2
"""
COUNTING = """
progress = talk.Progress()
progress.step(0, 4, 400.0, "sort 1 GiB: 100 % of 12 maps, 50 % of 8 reduces, and far more of it")
time.sleep(0.3)
{}
time.sleep(0.3)
progress.step(4, 4, 0.0, "")
"""
SILENT = """
def wait():
    end_s = time.monotonic() + 30
    while not talk._waitings[-1]._bar and time.monotonic() < end_s:
        time.sleep(0.02)

@command("try")
def run():
    wait()
    {}
    wait()
run(standalone_mode=False, prog_name="try")
"""
OF_A_THREAD = (
    "thread = threading.Thread(target={}, args=('a message',)); thread.start(); thread.join()"
)
OF_A_SIGNAL = (
    "signal.signal(signal.SIGUSR1, lambda *_: {}('a message')); signal.raise_signal(signal.SIGUSR1)"
)


def shown(program):
    """
    Lines that a terminal of 80 columns has after this program: of each what was written last.
    """
    ours, theirs = pty.openpty()
    environ = os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    done = subprocess.Popen(
        [sys.executable, "-c", BEGIN + program], stdout=theirs, stderr=theirs, env=environ
    )
    os.close(theirs)
    written = b""
    try:
        while chunk := os.read(ours, 2**16):
            written += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert done.wait(30) == 0, written
    lines = []
    for line in written.decode().split("\n"):
        # A bar is drawn anew behind the code that erases its line.
        last = re.split(r"\r?\x1b\[2K", line)[-1]
        lines.append(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).strip("\r"))
    return lines, written.decode()


@pytest.mark.parametrize(
    "says",
    [
        "progress.say('a message')",
        "talk.show_text('a message')",
        OF_A_THREAD.format("progress.say"),
        "print('a message', file=sys.stderr)",
        OF_A_SIGNAL.format("progress.say"),
        "talk.print_text('a message')",
    ],
)
def test_a_message_is_not_glued_to_a_bar_that_counts(says):
    """
    Of this thread, of another, of a signal, of who writes to stderr; data, too.
    """
    lines, _ = shown(COUNTING.format(says))

    assert "a message" in lines


@pytest.mark.parametrize(
    "says",
    [
        "talk.show_text('a message')",
        OF_A_THREAD.format("talk.show_text"),
        "talk.print_text('a message')",
        "talk.print_json(['a message'])",
        OF_A_SIGNAL.format("talk.show_text"),
    ],
)
def test_a_message_is_not_glued_to_the_bar_of_a_silent_command(says):
    """
    The bar is taken away first, and comes again.
    """
    lines, written = shown(SILENT.format(says))

    assert any(line.strip(' "') == "a message" for line in lines)
    assert "try" in written.partition("a message")[0]
    assert "try" in written.partition("a message")[2]


def test_a_bar_fits_its_terminal():
    """
    How many are done and the time left are whole; what is under way is cut.
    """
    _, written = shown(COUNTING.format(""))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)

    assert re.search(r"trials \S+ 0/4 about 7 min left sort 1 GiB: 100 % of.*\.\.\.", plain)
    assert all(len(line) <= 80 for line in re.split(r"[\r\n]+", plain))
