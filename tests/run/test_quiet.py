"""
Tests for `harness.core.run.quiet`.
"""

import json

from contextlib import contextmanager

import pytest

from harness.clusters.monitor.machine import MACHINE_LOG, machine_load, read_samples
from harness.core.run.quiet import QuietWait


class Machine:
    """
    A monitor of a machine of which others use these shares, one look after the other.
    """

    def __init__(self, *shares):
        self.shares = [*shares]

    @contextmanager
    def sample(self, raw):
        share = self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]
        line = {"at_s": 1.0, "busy": share + 0.1, "steal": 0.0, "iowait": 0.0, "own": 0.1}
        line |= {"available_bytes": 1, "swapped_bytes": 0, "memory_pressure": 0.0, "runnable": 1}
        (raw / MACHINE_LOG).write_text(json.dumps(line) + "\n")
        yield

    def loads(self, raw):
        load = machine_load(read_samples(raw / MACHINE_LOG))
        return {} if load is None else {"this machine": load}


@pytest.fixture
def waiting(tmp_path):
    """
    Make a wait of so many seconds, whose clock goes on by what is slept; with what was said.
    """

    def make(left_s):
        now, said = [0.0], []

        def sleep(seconds):
            now[0] += seconds

        clock = lambda: now[0]  # noqa: E731
        return QuietWait(left_s, tmp_path, said.append, clock, sleep), said, now

    return make


def test_a_quiet_machine_is_looked_at_once(waiting, tmp_path):
    """
    Nothing is said, nothing is left behind, and the time to wait stays.
    """
    quiet, said, now = waiting(60.0)
    quiet.wait(Machine(0.0))

    assert (said, now, quiet.left_s) == ([], [1.0], 60.0)
    assert [*tmp_path.iterdir()] == []


def test_who_uses_it_is_waited_for(waiting):
    """
    It is said what is waited for, and for how long at most.
    """
    quiet, said, now = waiting(60.0)
    quiet.wait(Machine(0.5, 0.5, 0.0))

    (line,) = said
    assert line.startswith("waiting for a quiet machine, 59.0 s at most: this machine: others used")
    assert "50.0% of the processors" in line
    assert (now, quiet.left_s) == ([3.0], 57.0)


def test_the_wait_is_bounded_over_all_trials(waiting):
    """
    It is measured then, as it is; later trials do not wait, nor is the machine looked at.
    """
    quiet, said, now = waiting(150.0)
    quiet.wait(Machine(0.5))

    assert [line.split(":")[0] for line in said] == [
        "waiting for a quiet machine, 2 min 29 s at most",
        "waiting for a quiet machine, 89.0 s at most",
        "waiting for a quiet machine, 29.0 s at most",
        "the machine does not become quiet, and is measured as it is",
    ]
    assert (now, quiet.left_s) == ([150.0], 0.0)
    quiet.wait(Machine(0.5))
    assert now == [150.0]


def test_who_asked_for_no_wait_gets_none(waiting):
    """
    Nor a look, which takes a second.
    """
    quiet, said, now = waiting(0.0)
    quiet.wait(Machine(0.9))

    assert (said, now) == ([], [0.0])


def test_ctrl_c_ends_the_wait_and_leaves_nothing_behind(tmp_path):
    """
    No trial is in flight: nothing is lost.
    """

    def interrupted(_seconds):
        raise KeyboardInterrupt

    quiet = QuietWait(60.0, tmp_path, [].append, lambda: 0.0, interrupted)
    with pytest.raises(KeyboardInterrupt):
        quiet.wait(Machine(0.5))

    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("left_s", [0.5, 1.0])
def test_less_than_a_look_is_waited_for_once(waiting, left_s):
    """
    The look itself is a wait, although nothing was said of one.
    """
    quiet, said, now = waiting(left_s)
    for _ in range(3):
        quiet.wait(Machine(0.5))

    assert (len(said), now, quiet.left_s) == (1, [1.0], 0.0)
