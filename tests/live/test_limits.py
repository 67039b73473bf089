"""
Limits on a real kernel: nodes achieve them, tasks are held to them, nothing stays.

Figures are compared with what was requested, or with each other, never with a clock's alone: a
busy machine is slower than its limits, and never faster.
"""

import os
import signal
import time

from functools import partial
from pathlib import Path

import pytest

from harness.base.errors import MachineError
from harness.base.records.trial import ClusterSpec, Hardware, NodeSpec
from harness.clusters import kernel
from harness.clusters.adjust import NodeLoad, adjust
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.host import LocalHost
from harness.clusters.kernel import ROOT
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.local.limits import groups_of, require, set_limits
from tests.node_agent import node_agent

pytestmark = [pytest.mark.live, pytest.mark.alone]

MIB = 2**20
FAST, SLOW = 16 * MIB, 4 * MIB
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
    return [folder] * folder.exists() + kernel.find_disks(folder) + groups


def put(cluster, path, size):
    """
    Seconds that it takes to write a file of *size* bytes into HDFS.
    """
    start_s = time.monotonic()
    cluster.hdfs.put(path, [bytes(MIB)] * (size // MIB))
    return time.monotonic() - start_s


def test_nodes_achieve_their_limits_and_tasks_are_held_to_them():
    """
    A mixed cluster: each figure is near what was requested of its node; DataNodes, which write into
    the page cache, write and read at the disks' rates; however it is ended, nothing stays.
    """
    with LocalCluster("limits", SPEC, HadoopHome.find()) as cluster:
        limits = LocalCluster.attach("limits").limits
        requested = {name: by_name["disk_write"].requested for name, by_name in limits.items()}
        assert requested == {"worker1": FAST, "worker2": SLOW}
        assert all(
            limit.is_met and limit.is_enforced
            for by_name in limits.values()
            for limit in by_name.values()
        )

        size = 64 * MIB
        seconds = put(cluster, "/file", size)
        waiting = 2 * (kernel.WAITING_BYTES + 8 * MIB)  # in memory, on both nodes, and in transit
        assert seconds > (size - waiting) / (1.15 * (FAST + SLOW))

        before = cluster.disk_bytes()
        assert cluster.drop_page_cache() == ["worker1", "worker2"]
        assert sum(map(len, cluster.hdfs.open("/file"))) == size
        after = cluster.disk_bytes()
        read = sum(after[node]["read"] - before[node]["read"] for node in after)
        assert read >= size

        known = cluster._state
        for process in (known.inner, known.outer):
            os.kill(process.pid, signal.SIGKILL)
        LocalCluster.remove("limits")
        assert left(cluster.folder) == []


def test_processes_of_a_node_share_its_cores(tmp_path):
    """
    Processes that join a node's group have its share together, however many they are.
    """
    if os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0)):
        pytest.skip("others leave no share of a processor to speak of on this machine now")
    groups = groups_of(tmp_path)
    groups.make("worker1")
    joins = node_agent("join", *groups.joins("worker1"), "--")
    host = LocalHost("worker1", "", str(tmp_path), lambda argv: [*joins, *argv], dict(os.environ))
    load = NodeLoad([host], lambda _: node_agent("load"))
    try:
        setter = partial(set_limits, tmp_path, None, {})
        limits = adjust({"worker1": {"cores": 0.1}}, setter, load, where="here")
    finally:
        groups.remove()

    assert limits["worker1"]["cores"].is_met
    assert left(Path(tmp_path / "none")) == []
