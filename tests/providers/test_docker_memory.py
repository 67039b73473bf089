"""
Tests for `harness.providers.docker.memory`: what the kernel counts, in both of its versions.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.errors import ClusterError
from harness.providers.docker.memory import kills_of
from harness.providers.host import Completed

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
V2 = "low 0\nhigh 0\nmax 120\noom 5\noom_kill 3\noom_group_kill 0\n"


@pytest.mark.parametrize(("told", "kills"), [(V1, 3), (V2, 3), ("", 0)], ids=["1", "2", "none"])
def test_the_kernels_count(told, kills):
    """
    Of processes that were ended, not of the times that memory was short.
    """
    host = SimpleNamespace(run=lambda argv: Completed(tuple(argv), 1, told, "cat: no such file"))

    assert kills_of(host) == kills


@pytest.mark.parametrize("oom", [True, False])
def test_a_node_that_has_ended(oom):
    """
    Its first process may have been the one; its count is gone with it.
    """
    state = {"OOMKilled": oom, "Running": False, "ExitCode": 137}

    def run(argv):
        raise ClusterError("worker1 does not run")

    host = SimpleNamespace(run=run, engine=Engine(state), container="c")

    assert kills_of(host) == int(oom)


class Engine:
    """
    Knows one container.
    """

    def __init__(self, state):
        api = SimpleNamespace(inspect_container=lambda _: {"State": state})
        self.client = SimpleNamespace(api=api)

    def asked(self, what):
        return nullcontext()
