"""
Nobody but its user reaches a cluster: every listening port is tried from outside.

The same tries from inside, with the secret, succeed: the attacker is no paper tiger.
"""

import os
import shutil
import tempfile
import time

from pathlib import Path

import pytest

from harness import providers
from harness.hadoop_home.home import HadoopHome
from harness.records.trial import ClusterSpec
from tests.contracts import outside

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="root alone can be somebody else"),
]

FILE = "/harness/outside/file"


@pytest.fixture
def folder(monkeypatch):
    """
    A state folder that the daemons' account may enter.
    """
    made = tempfile.mkdtemp(prefix="harness-outside-")
    Path(made).chmod(0o755)
    monkeypatch.setenv("XDG_STATE_HOME", made)
    yield Path(made)
    shutil.rmtree(made)


def start_job(cluster, folder):
    """
    A job that lasts, and its application.
    """
    arguments = ["pi", "1", "20000000000"]
    log = folder / "client.log"
    client = cluster.client("org.apache.hadoop.examples.ExampleDriver", arguments, log=log)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        apps = cluster.http_json("/ws/v1/cluster/apps?states=RUNNING")["apps"] or {}
        for app in apps.get("app", []):
            if app["amHostHttpAddress"] and app["runningContainers"] > 1:
                return client, app["id"]
        time.sleep(0.5)
    raise AssertionError(log.read_text()[-3000:])


def test_nobody_outside_submits_reads_writes_or_kills(folder, monkeypatch):
    """
    Another user of this machine, and another host; the job goes on, and we can end it.
    """
    is_fenced(folder, monkeypatch, "")


@pytest.mark.long
def test_nobody_outside_a_cluster_on_ports_does(folder, monkeypatch):
    """
    The same without namespaces: all daemons are on the loopback address.
    """
    is_fenced(folder, monkeypatch, "ports")


def is_fenced(folder, monkeypatch, network):
    """
    Whether nobody but us succeeds, while a job of ours runs.
    """
    monkeypatch.setenv("HARNESS_LOCAL_NETWORK", network)
    home = HadoopHome.find()
    spec = ClusterSpec(workers=1)
    with providers.PROVIDERS["local"]("outside", spec, home) as cluster, outside.third_host() as (
        third, machine,
    ):  # fmt: skip
        layout = cluster.layout
        cluster.hdfs.put(FILE, [b"ours"])
        client, application = start_job(cluster, folder)
        worker = layout.workers[0]
        master = layout.master
        known = outside.Knowledge(
            application, FILE,
            outside.block_below(Path(layout.data(worker), "data")), master.at("namenode"),
        )  # fmt: skip
        java = [home.java.launcher, "-XX:TieredStopAtLevel=1", "-cp", str(home.path_jar)]
        processes = [*cluster._running.processes()]
        places = outside.listening(processes)
        own_addresses = {member.address for member in layout.members}
        local = [(a, port) for _, port in places for a in sorted({"127.0.0.1", *own_addresses})]
        # also as the machine itself, where the third host's way ends
        remote = [(a, port) for _, port in places for a in sorted({machine, *own_addresses})]
        if network:
            remote = [(machine, port) for _, port in places]
        needed = [Path(p) for p in (outside.HERE.parents[1], home.path, home.java.home)]
        stranger = outside.stranger(needed)
        by_whom = {
            "another user": outside.attack(local, stranger, known, java),
            "another host": outside.attack(remote, third, known, java),
        }
        by_us = outside.attack(
            [(member.address, port) for member in layout.members for _, port in places],
            lambda argv: cluster.gateway.wrap(list(argv)),
            outside.with_secret(known, Path(layout.secret(master))), java,
        )  # fmt: skip
        state = cluster.http_json(f"/ws/v1/cluster/apps/{application}/state")["state"]
        names = [name for name, _, _ in cluster.hdfs.list("/")]
        cluster.kill_application(application)
        client.wait(60)
        ended = cluster.http_json(f"/ws/v1/cluster/apps/{application}/state")["state"]

    assert {whom: outside.succeeded(by_port) for whom, by_port in by_whom.items()} == {
        "another user": {}, "another host": {},
    }  # fmt: skip
    assert len(places) >= 18
    what = {each for tries in by_us.values() for each in tries}
    assert {
        "http: read /jmx", "http: read /conf", "http: read /ws/v1/cluster/apps", "http: write",
        f"http: read /webhdfs/v1{FILE}?op=OPEN&user.name=hadoop",
        "rpc: list /", "rpc: read a file", "rpc: write", "rpc: submit", "rpc: list jobs",
        "rpc: read a job",
    } <= what  # fmt: skip
    # what nobody can, not even with the secret
    assert what.isdisjoint({"http: submit", "http: new application", "data port: read a block"})
    assert {"stolen-by-http", "stolen-by-rpc"} <= set(names)  # by us, from inside
    assert (state, ended) == ("RUNNING", "KILLED")
