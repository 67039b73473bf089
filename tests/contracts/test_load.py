"""
Whoever gets no answer from a cluster can still connect to it: its owner is answered all the same.
"""

import os
import sys

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from harness import clusters as providers
from tests.contracts import outside
from tests.contracts.cases import Ansible, Docker, OnPorts
from tests.contracts.owner import Owner, slower

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else"),
]

# Longer than a daemon may be silent.
LOAD = {"count": 4000, "at_once": 100, "seconds": 25}
BY = {
    OnPorts: ["another user"],
    Docker: ["another host", "a container in the machine's network"],
    Ansible: ["another host beside them", "another user of master", "a container behind worker1"],
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(OnPorts, id="local on ports"),
        pytest.param(Docker, id="docker", marks=pytest.mark.long),
        pytest.param(Ansible, id="ansible", marks=pytest.mark.long),
    ],
)
def test_thousands_of_connections_keep_no_owner_waiting(case, folder, monkeypatch):
    """
    Not one of them is answered, each answer to the owner comes in time, and no daemon is named as
    hanging.
    """
    with ExitStack() as stack:
        made = case(stack, monkeypatch)
        kind = providers.PROVIDERS[made.spec.provider]
        cluster = stack.enter_context(kind("load", made.spec, made.home))
        others = made.outsiders(made.places(cluster))
        owner = Owner(cluster, folder)
        before = owner.ask()
        with ThreadPoolExecutor() as pool:
            floods = {
                name: pool.submit(
                    outside.told, "flood.py", {**LOAD, "ports": others[name].places},
                    others[name].vantage, others[name].tools.python,
                )
                for name in BY[case]
            }  # fmt: skip
            meanwhile = owner.ask_until(floods[BY[case][0]])
            done = {name: flood.result() for name, flood in floods.items()}
        dead = cluster.dead_daemons()
    sys.stdout.write(f"{done}, before {before}, meanwhile {meanwhile}\n")

    assert min(each["tries"] for each in done.values()) >= LOAD["count"]
    assert {name: each["bytes"] for name, each in done.items()} == dict.fromkeys(done, 0)
    assert slower(before, meanwhile) == []
    assert dead == {}
