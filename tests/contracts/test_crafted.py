"""
Whoever may write raw packets beside a cluster: what he makes by hand, what he reads, and what not.
"""

import base64
import os
import random
import re
import sys

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from harness import clusters as providers
from harness.clusters.node import fence
from tests.contracts import outside
from tests.contracts.cases import FILE, Ansible, Docker, apps, of_members, start_job
from tests.contracts.owner import Owner, slower

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else"),
]

DOCKERS_RIGHTS = "00000000a80425fb"
OLD_MARK = 0x4D52  # what all clusters had
URGENT, CONGESTION = 0x20, 0xC0  # flags of a first packet
PROOF = "X-Harness-Proof: "
RELAYED = 21_000  # ports of the container from here on
OK, FORBIDDEN = 200, 403
SILENT = 0  # it waits for what a head announces


@pytest.fixture
def started(folder, monkeypatch):
    """
    A function that gives a case and its cluster.
    """
    with ExitStack() as stack:

        def start(case):
            made = case(stack, monkeypatch)
            kind = providers.PROVIDERS[made.spec.provider]
            return made, stack.enter_context(kind("crafted", made.spec, made.home))

        yield start


def test_no_mark_of_a_container_behind_a_host_opens_a_port(started):
    """
    It may have the mark of this very cluster.  Without the rule for what is forwarded it gets in.
    """
    made, cluster = started(Ansible)
    worker = made.bare[1]
    status = made.container(["cat", "/proc/self/status"])
    file = cluster.layout.secret(cluster.layout.workers[0])
    nonce = fence.nonce_of(outside.secret_line(outside.on(cluster.hosts[1]), file)[1])
    places = made.places(cluster)
    marks = [0, 1, OLD_MARK, nonce - 1, nonce, nonce + 1, 2**16 - 1]
    marks = sorted({mark % 2**16 for mark in [*marks, *random.sample(range(2**16), 30)]})
    flags = [0, URGENT, CONGESTION]
    tried = made.crafted(cluster, do="open", ports=places, marks=marks, flags=flags)
    worker.execute("nft", "flush", "chain", "inet", f"{fence.ACCOUNT}-crafted", "passing")
    control = made.crafted(cluster, do="open", ports=places, marks=[0, OLD_MARK, nonce], flags=[0])
    sys.stdout.write(f"{tried['tries']} tries, {len(tried['answered'])} answered\n")

    assert re.search(r"CapEff:\s*(\w+)", status)[1] == DOCKERS_RIGHTS
    assert tried["answered"] == []
    # no paper tiger: of its own host alone it gets no answer, whose address is not hidden there
    others = [[*place, nonce] for place in places if place[0] != worker.address]
    assert sorted(control["answered"]) == sorted(others)


@dataclass(frozen=True)
class Seen:
    """
    What somebody has read on the bridge while the cluster worked, and what there is to attack.
    """

    made: Docker
    cluster: providers.Cluster
    application: str
    traffic: dict


@pytest.fixture
def seen(started, folder):
    """
    A job, a file that is written and read, and pages of the master for the worker.
    """
    made, cluster = started(Docker)
    near, on_worker = made.containers[0], outside.on(cluster.hosts[1])
    layout = cluster.layout
    _, secret = outside.secret_line(on_worker, layout.secret(layout.workers[0]))
    files = {"ready": "/tmp/ready", "until": "/tmp/end"}
    with ThreadPoolExecutor() as pool:
        watching = pool.submit(made.crafted, cluster, do="sniff", word=secret, seconds=300, **files)
        try:
            near(["sh", "-c", "until [ -e /tmp/ready ]; do sleep 0.1; done"])
            cluster.hdfs.put(FILE, [b"ours"])
            client, application = start_job(cluster, folder)
            assert b"".join(cluster.hdfs.open(FILE)) == b"ours"
            services = ("namenode_http", "resourcemanager_http", "historyserver_http")
            places = [(layout.master.address, layout.master.port(each)) for each in services]
            pages = [(*place, "/jmx", {}, secret) for place in places]
            answers = outside.statuses(pages, on_worker, cluster.python_on(cluster.hosts[1]))
            assert answers == [OK] * len(pages)
        finally:
            near(["touch", "/tmp/end"])
    yield Seen(made, cluster, application, watching.result())
    client.kill()
    client.wait(60)


def test_whoever_reads_a_bridge_can_use_nothing_that_he_sees(seen):
    """
    No secret passes; a proof that passed is good for nothing, at any web service of its node.
    """
    made, cluster = seen.made, seen.cluster
    heads = [head for head in seen.traffic["heads"] if PROOF in head[2]]
    ports = {
        member.address: [member.port(each) for each in services if each.endswith("_http")]
        for member, services in of_members(cluster.layout)
    }
    elsewhere = [[a, p, text] for a, port, text in heads for p in ports[a] if p != port]
    again = made.crafted(cluster, do="replay", heads=heads)
    others = made.crafted(cluster, do="replay", heads=elsewhere)
    size = f"{seen.traffic['frames']} frames, {seen.traffic['bytes']} bytes"
    sys.stdout.write(f"{size}, {len(heads)} proofs: {again}, elsewhere {others}\n")

    assert seen.traffic["seen"] == 0
    assert {text.split(" ")[0] for _, _, text in heads} >= {"GET", "PUT"}
    assert again == [FORBIDDEN] * len(heads)
    assert set(others) <= {FORBIDDEN, SILENT}


def test_crafted_connections_open_and_nothing_they_ask_is_done(seen):
    """
    From an address that is none of the cluster's; whoever takes that of a node is inside.
    """
    made, cluster = seen.made, seen.cluster
    layout, worker = cluster.layout, cluster.layout.workers[0]
    block = outside.block_on(outside.on(cluster.hosts[1]), layout.data(worker))
    places = made.places(cluster)
    relayed = [RELAYED + number for number in range(len(places))]
    namenode = relayed[places.index((layout.master.address, layout.master.port("namenode")))]
    known = outside.Knowledge(seen.application, FILE, block, f"127.0.0.1:{namenode}")
    counts = []

    def by_hand(argv):
        done = made.crafted(cluster, do="relay", ports=places, relayed=relayed, argv=argv)
        counts.append(done["opened"])
        return done["output"]

    here = [("127.0.0.1", port) for port in relayed]
    outcome = outside.attack(here, by_hand, known, made.brought)
    names = [name for name, _, _ in cluster.hdfs.list("/")]
    states = [(app["id"], app["state"]) for app in apps(cluster)]
    sys.stdout.write(
        f"{outcome.tries} tries, {counts[0]} opened, {len(outcome.answered)} ports answer\n"
    )

    assert outcome.succeeded == {}
    assert counts[0] > len(places)
    assert states == [(seen.application, "RUNNING")]
    assert not [name for name in names if name.startswith("stolen")]


def test_what_is_no_request_stalls_no_owner(started, folder):
    """
    A wrong header of RPC has the address looked up that it comes from, in the only thread that
    reads: names are those of a file, or each would take ten seconds.
    """
    made, cluster = started(Docker)
    layout = cluster.layout
    services = ("namenode", "resourcemanager", "namenode_http", "resourcemanager_http")
    ports = [(layout.master.address, layout.master.port(service)) for service in services]
    junk = base64.b64encode(b"\r\n\r\nHELP\r\n" + b"x" * 64).decode()
    with ThreadPoolExecutor() as pool:
        owner = Owner(cluster, folder)
        before = owner.ask()
        holding = pool.submit(
            made.crafted, cluster, do="hold", ports=ports, count=40, say=junk, seconds=20
        )
        meanwhile = owner.ask_until(holding)
        held = holding.result()
    sys.stdout.write(f"{held}, before {before}, meanwhile {meanwhile}\n")

    assert held["held"] == 40
    assert slower(before, meanwhile) == []
    assert cluster.dead_daemons() == {}
