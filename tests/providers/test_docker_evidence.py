"""
Tests for `harness.clusters.docker`: what the kernel counts in nodes, and what they leave.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.base.errors import ClusterError
from harness.clusters.docker.engine import DeathLog
from harness.clusters.docker.host import memory_kills
from harness.clusters.host import Completed

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
V2 = "low 0\nhigh 0\nmax 120\noom 5\noom_kill 3\noom_group_kill 0\n"
RUNNING = {"OOMKilled": False, "Running": True}


class FakeHost:
    """
    A node in a container with a state.
    """

    name = "worker1"
    folder = "/cluster/nodes/worker1"
    container = "c"

    def __init__(self, state=RUNNING, events=None):
        self.state = state
        self.events = events
        self.engine = self
        self.client = self
        self.api = self

    def translate_errors(self, subject=""):
        return nullcontext()

    def inspect_container(self, container):
        return {"State": self.state}

    def run(self, argv, timeout=60.0):
        if self.events is None:
            raise ClusterError("worker1 does not run")
        return Completed(tuple(argv), 0, self.events, "cat: no such file")


@pytest.mark.parametrize(("events", "kills"), [(V1, 3), (V2, 3), ("", 0)], ids=["1", "2", "none"])
def test_kills_are_counted_in_both_versions_of_control_groups(events, kills):
    """
    Processes that were killed count, not the times that memory was short.
    """
    assert memory_kills(FakeHost(events=events)) == kills


@pytest.mark.parametrize("oom", [True, False])
def test_a_node_that_has_ended_counts_as_one_kill_at_most(oom):
    """
    Its first process may have been the one that was killed; its count is gone with it.
    """
    host = FakeHost(state={"OOMKilled": oom, "Running": False, "ExitCode": 137})

    assert memory_kills(host) == int(oom)


@pytest.mark.parametrize(
    ("line", "how"),
    [
        (b'{"key": "datanode-w", "status": 3}', "has ended with status 3"),
        (
            b'{"key": "datanode-w", "status": -9, "oom": true}',
            "has ended with signal 9: its node ran out of the",
        ),
        (b'{"key": "datanode-w", "unanswered_s": 15}', "has not answered for 15 s"),
    ],
)
def test_a_death_says_how_the_daemon_has_ended(line, how):
    """
    By which status, or signal, and whether its node ran out of memory, or that it hangs; other
    lines are skipped.
    """
    api = SimpleNamespace(
        logs=lambda *_, stream=False, **__: iter([]) if stream else b"noise\n[1]\n" + line,
        inspect_container=lambda _: {"State": {"Running": False}},
    )
    engine = SimpleNamespace(
        client=SimpleNamespace(api=api), translate_errors=lambda _: nullcontext()
    )
    log = DeathLog(engine, {"w": "container"})
    log.close()

    assert list(log.deaths()) == ["datanode-w"]
    assert log.deaths()["datanode-w"].startswith(how)
    assert log.ended_nodes() <= {"w"}
