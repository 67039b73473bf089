"""
Tests for `harness.tracer.overhead`: which core a task runs on.
"""

import os
import subprocess

from contextlib import ExitStack

import pytest

from harness.tracer.overhead import tied

CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture
def daemons():
    """
    Process ids by name: a ResourceManager and two NodeManagers, played by sleeping processes.
    """
    names = ("resourcemanager", "nodemanager on worker1", "nodemanager on worker2")
    with ExitStack() as stack:
        started = {}
        for name in names:
            process = subprocess.Popen(["sleep", "60"])
            stack.callback(process.wait)
            stack.callback(process.kill)
            started[name] = process.pid
        yield started


def test_nodes_are_tied_and_let_go(daemons):
    """
    Each node has the core that its place names, the rest the first one; afterwards all have all.
    """
    with tied(daemons) as places:
        cores = {name: os.sched_getaffinity(pid) for name, pid in daemons.items()}

    assert cores == {
        "resourcemanager": {CORES[0]},
        **{f"nodemanager on {host}": {CORES[place]} for host, place in places.items()},
    }
    assert [os.sched_getaffinity(pid) for pid in daemons.values()] == [set(CORES)] * 3


@pytest.mark.skipif(len(CORES) < 3, reason="two nodes want two cores beside the first")
def test_nodes_do_not_share_a_core(daemons):
    """
    With enough cores, no node has the daemons' core or another node's.
    """
    with tied(daemons) as places:
        assert sorted(places.values()) == [1, 2]


def test_a_daemon_that_has_ended_is_left_out(daemons):
    """
    Its process id is nobody's.
    """
    gone = subprocess.Popen(["true"])
    gone.wait()

    with tied({**daemons, "datanode on worker1": gone.pid}) as places:
        assert set(places) == {"worker1", "worker2"}
