"""
Hardware made on purpose, on a real kernel: nodes are what was asked, tasks feel it, nothing stays.

Figures are compared with what was asked, or with each other, never with a clock's alone: a busy
machine is slower than its limits, and never faster.
"""

import os
import signal
import time

from pathlib import Path

import pytest

from harness.errors import MachineError
from harness.hadoop_home.home import HadoopHome
from harness.providers.host import LocalHost
from harness.providers.limits import disks
from harness.providers.limits.cgroups import ROOT
from harness.providers.limits.correct import correct
from harness.providers.limits.gauge import Gauge
from harness.providers.local.cluster import LocalCluster
from harness.providers.local.limits import NodeLimiter, groups_of, require
from harness.records.trial import ClusterSpec, Hardware, NodeSpec
from tests.node_agent import node_agent

pytestmark = pytest.mark.live

MIB = 2**20
FAST, SLOW = 8 * MIB, 2 * MIB
SPEC = ClusterSpec(
    workers=2,
    node=NodeSpec(disk_bytes_per_s=FAST, network_bytes_per_s=50_000_000 // 8),
    nodes={"worker2": Hardware(disk_bytes_per_s=SLOW)},
    site={"dfs.replication": "1"},
)


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """
    A state folder of the test's own, on a machine that can limit all.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    try:
        require(ClusterSpec(node=NodeSpec(**SPEC.node.limits() | {"cores": 1})), tmp_path)
    except MachineError as error:
        pytest.skip(error.what)


def left(folder):
    """
    What there still is of the cluster in *folder*.
    """
    groups = [g for tree in (ROOT, ROOT / "cpu") for g in tree.glob(f"*/{groups_of(folder).name}")]
    return [folder] * folder.exists() + disks.find(folder) + groups


def put(cluster, path, size):
    """
    Seconds that it takes to write a file of *size* bytes into HDFS.
    """
    begun = time.monotonic()
    cluster.hdfs.put(path, [bytes(MIB)] * (size // MIB))
    return time.monotonic() - begun


def test_nodes_are_what_was_asked_and_tasks_feel_it():
    """
    A mixed cluster: each figure is near what was asked of its node; DataNodes, which wait for
    nothing, write and read at the disks' rates; whoever ends it, and however, nothing stays.
    """
    with LocalCluster("limits", SPEC, HadoopHome.find()) as cluster:
        limits = LocalCluster.attach("limits").limits
        asked = {name: dials["disk_write"].requested for name, dials in limits.items()}
        assert asked == {"worker1": FAST, "worker2": SLOW}
        assert all(
            limit.is_met and limit.is_enforced for of in limits.values() for limit in of.values()
        )

        size = 64 * MIB
        seconds = put(cluster, "/file", size)
        waiting = 2 * (disks.WAITING_BYTES + 8 * MIB)  # in memory, on both nodes, and in transit
        assert seconds > (size - waiting) / (1.15 * (FAST + SLOW))

        before = cluster.disk_bytes()
        assert cluster.forget() == ["worker1", "worker2"]
        assert sum(map(len, cluster.hdfs.open("/file"))) == size
        after = cluster.disk_bytes()
        read = sum(after[node]["read"] - before[node]["read"] for node in after)
        assert read >= size

        known = cluster._state
        for process in (known.inner, known.outer):
            os.kill(process.pid, signal.SIGKILL)
        LocalCluster.remove("limits")
        assert left(cluster.folder) == []


def test_a_share_of_the_processors_is_what_was_asked(tmp_path):
    """
    Processes that join a node's group have its share together, however many they are.
    """
    if os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0)):
        pytest.skip("others leave no share of a processor to speak of on this machine now")
    groups = groups_of(tmp_path)
    groups.make("worker1")
    joins = node_agent("join", *groups.joins("worker1"), "--")
    host = LocalHost("worker1", "", str(tmp_path), lambda argv: [*joins, *argv], dict(os.environ))
    gauge = Gauge([host], lambda _: node_agent("load"))
    try:
        limiter = NodeLimiter(tmp_path, gauge, None, {})
        limits = correct({"worker1": {"cores": 0.1}}, limiter, where="here")
    finally:
        groups.remove()

    assert limits["worker1"]["cores"].met
    assert left(Path(tmp_path / "none")) == []
