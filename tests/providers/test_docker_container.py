"""
Tests for `harness.clusters.docker.nodes`: options of containers, and what is refused.
"""

import pytest

from harness.base.errors import MachineError, SpecError
from harness.base.records.trial import ClusterSpec, Hardware, NodeSpec
from harness.base.units import MIB
from harness.clusters.docker.nodes import NodeMaker, make_layout, require, require_memory


class FakeEngine:
    """
    An engine with these facts.
    """

    address = "unix:///fake"

    def __init__(self, **facts):
        self.facts = facts

    def labels(self, cluster):
        return {"cluster": cluster}


def config_of(name, **spec):
    """
    Options of a node's container in a cluster of two workers.
    """
    cluster = ClusterSpec(provider="docker", workers=2, **spec)
    layout = make_layout(2, "198.18.64.0/24")
    maker = NodeMaker(FakeEngine(), "c", "image", cluster, layout, None)
    member = next(m for m in maker.layout.members if m.name == name)
    return maker.host_config(member)


def test_names_are_known_without_a_resolver():
    """
    Every node has all names and addresses in its own file: both ways, without a suffix.
    """
    assert config_of("worker1")["extra_hosts"] == {
        "master": "198.18.64.2", "worker1": "198.18.64.3", "worker2": "198.18.64.4",
    }  # fmt: skip


def test_a_container_gets_nothing_of_its_machine():
    """
    No right, no folder, no port; the data lies on a volume with the cluster's labels, and without a
    name: the engine removes both when the container ends.
    """
    host = config_of("master")

    assert (host["cap_drop"], host["security_opt"]) == (["ALL"], ["no-new-privileges"])
    assert [(m["Type"], m["Target"], m["Source"]) for m in host["mounts"]] == [
        ("volume", "/cluster", None)
    ]
    assert host["auto_remove"] is True
    assert host["mounts"][0]["VolumeOptions"]["Labels"] == {"cluster": "c"}
    assert not {"binds", "port_bindings", "privileged", "devices"} & set(host)


def test_each_worker_has_gpus_of_its_own():
    """
    Each worker has devices of its own; the master has none.
    """
    by_node = {
        node: [r["DeviceIDs"] for r in config_of(node, node=NodeSpec(gpus=2))["device_requests"]]
        for node in ("master", "worker1", "worker2")
    }

    assert by_node == {"master": [], "worker1": [["0", "1"]], "worker2": [["2", "3"]]}


def test_memory_is_the_workers_own():
    """
    Without swap; a value for one worker replaces the one for all.
    """
    more = {
        "node": NodeSpec(memory_bytes=2**32),
        "nodes": {"worker2": Hardware(memory_bytes=2**33)},
    }
    by_node = {node: config_of(node, **more).get("mem_limit") for node in ("master", "worker1")}

    assert by_node == {"master": None, "worker1": 2**32}
    assert config_of("worker2", **more)["memswap_limit"] == 2**33


class TestRequire:
    def test_memory_too_small_for_tasks_and_daemons_is_refused(self):
        """
        Two slots of 512 MiB, an application master, two daemons: the error has the size needed.
        """
        spec = ClusterSpec(workers=1, node=NodeSpec(memory_bytes=2048 * MIB))

        with pytest.raises(SpecError, match="worker1 has 2 GiB of memory"):
            require_memory(spec)
        require_memory(ClusterSpec(workers=1, node=NodeSpec(memory_bytes=2176 * MIB)))

    def test_a_memory_limit_needs_a_control_group(self):
        """
        Only a cluster with a limit is refused.
        """
        engine = FakeEngine(MemoryLimit=False)
        limited = {"worker1": Hardware(memory_bytes=2**32)}

        require(engine, ClusterSpec(workers=1))
        with pytest.raises(MachineError, match="cannot limit the memory of nodes"):
            require(engine, ClusterSpec(workers=1, nodes=limited))

    def test_gpus_need_the_nvidia_runtime(self):
        """
        With it they are given, without it the run does not start.
        """
        spec = ClusterSpec(workers=1, node=NodeSpec(gpus=1))

        require(FakeEngine(Runtimes={"runc": {}, "nvidia": {}}), spec)
        with pytest.raises(MachineError, match="no NVIDIA runtime"):
            require(FakeEngine(Runtimes={"runc": {}}), spec)

    def test_an_engine_without_linux_containers_is_refused(self):
        """
        The error names the cause.
        """
        with pytest.raises(MachineError, match="no Linux containers"):
            require(FakeEngine(OSType="windows"), ClusterSpec())
