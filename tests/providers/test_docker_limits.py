"""
Tests for `harness.clusters.docker.nodes`, on an engine that records its requests.
"""

import os

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.base.errors import ClusterError, MachineError
from harness.base.records.trial import (
    CORES,
    DISK_READ,
    DISK_WRITE,
    NETWORK_IN,
    NETWORK_OUT,
    ClusterSpec,
    NodeSpec,
)
from harness.clusters.docker.nodes import DockerLimiter, host_options, require
from harness.clusters.node.facts import block_device

LINKS = "1: lo: <LOOPBACK> mtu 1\n7: veth12ab@if6: <UP> mtu 1500\n"


class FakeEngine:
    """
    An engine with the nodes' links, which records commands, updates, and its helpers.
    """

    address = "unix:///fake"

    def __init__(self, status=0, stderr=b"", **facts):
        self.facts = facts
        self.status = status
        self.stderr = stderr
        self.commands = []
        self.updates = []
        self.helpers = []
        self.client = SimpleNamespace(api=self)

    def labels(self, cluster):
        return {"cluster": cluster}

    def translate_errors(self, subject=""):
        return nullcontext()

    def create_host_config(self, **how):
        return how

    def create_container(self, image, command, *, host_config, user, labels):
        self.helpers.append(host_config["network_mode"])
        return {"Id": host_config["network_mode"]}

    def start(self, container):
        pass

    def remove_container(self, container, **how):
        self.helpers.remove(container)

    def update_container(self, container, **how):
        self.updates.append((container, how))

    def exec_create(self, container, argv, user):
        self.commands.append((container, " ".join(argv)))
        return {"Id": argv[0]}

    def exec_start(self, made, demux):
        return (LINKS.encode(), self.stderr)

    def exec_inspect(self, made):
        return {"ExitCode": self.status}


class FakeHost:
    """
    A node whose link ends at number 7 of the machine.
    """

    name = "worker1"
    container = "c1"
    folder = "/cluster/nodes/worker1"

    def __init__(self, iflink="7"):
        self.iflink = iflink

    def run(self, argv):
        return SimpleNamespace(out=f"{self.iflink}\n")


def limited(engine, host=None):
    """
    A limiter of worker1 on *engine*, and what was made again.
    """
    remade = []
    remake = lambda node, rates, device: remade.append((node, dict(rates)))  # noqa: E731
    maker = SimpleNamespace(engine=engine, cluster="c", image="image", remake=remake)
    host = host or FakeHost()
    return DockerLimiter(maker, {"worker1": host}), remade


def test_a_processor_limit_is_set_on_a_running_container():
    """
    A share is a quota of each period; no new container for that.
    """
    engine = FakeEngine()
    limiter, remade = limited(engine)

    limiter.set({"worker1": {CORES: 0.5}})
    limiter.set({"worker1": {CORES: 0.5}})

    assert engine.updates == [("c1", {"cpu_period": 20_000, "cpu_quota": 10_000})]
    assert remade == []


def test_a_new_rate_of_a_disk_is_a_new_container():
    """
    With all that the node had before; an unchanged rate is none.
    """
    limiter, remade = limited(FakeEngine())
    disk = {DISK_READ: 10.0, DISK_WRITE: 20.0}

    limiter.set({"worker1": {CORES: 0.5}})
    limiter.set({"worker1": disk})
    limiter.set({"worker1": disk})

    assert remade == [("worker1", {CORES: 0.5, **disk})]
    assert host_options(remade[0][1], "/dev/sda") == {
        "cpu_period": 20_000,
        "cpu_quota": 10_000,
        "device_read_bps": [{"Path": "/dev/sda", "Rate": 10}],
        "device_write_bps": [{"Path": "/dev/sda", "Rate": 20}],
    }


def test_both_ends_of_a_link_are_shaped_and_no_helper_stays():
    """
    What leaves in the node's network, what comes at its other end on the machine.
    """
    engine = FakeEngine()
    limiter, _ = limited(engine)

    with limiter:
        limiter.set({"worker1": {NETWORK_OUT: 10**6, NETWORK_IN: 2 * 10**6}})
        helpers_within = list(engine.helpers)

    shaped = [(where, c.split(" root ")[0]) for where, c in engine.commands if c.startswith("tc")]
    assert shaped == [
        ("container:c1", "tc qdisc replace dev eth0"),
        ("host", "tc qdisc replace dev veth12ab"),
    ]
    assert (sorted(helpers_within), engine.helpers) == (["container:c1", "host"], [])


def test_a_link_that_the_engine_hides_is_an_error():
    """
    An engine whose machine does not show the nodes' links cannot limit what they receive.
    """
    limiter, _ = limited(FakeEngine(), FakeHost(iflink="99"))

    with pytest.raises(ClusterError, match="the other end of the link of worker1"), limiter:
        limiter.set({"worker1": {NETWORK_OUT: 1.0, NETWORK_IN: 1.0}})


def test_a_kernel_without_the_queue_is_an_error():
    """
    In its own words, safe to print, with the module to load; the helper is gone.
    """
    engine = FakeEngine(status=2, stderr=b"Specified qdisc kind is \x1b[2Junknown")
    limiter, _ = limited(engine)

    with pytest.raises(ClusterError, match=r"kind is \\x1b") as caught, limiter:
        limiter.set({"worker1": {NETWORK_OUT: 1.0, NETWORK_IN: 1.0}})
    assert "modprobe sch_tbf" in caught.value.fix
    assert engine.helpers == []


@pytest.mark.parametrize(
    ("limits", "facts", "is_refused"),
    [
        ({"cores": 0.5}, {"CgroupDriver": "none"}, True),
        ({"network_bytes_per_s": 10**6}, {"CgroupDriver": "none"}, False),
        ({"cores": 0.5}, {"CgroupDriver": "cgroupfs", "CpuCfsQuota": False}, True),
        ({"disk_bytes_per_s": 10**6}, {"CgroupDriver": "systemd", "CpuCfsQuota": True}, False),
    ],
)
def test_an_engine_without_control_groups_limits_no_processor(limits, facts, is_refused):
    """
    Refused before anything is made; the network needs none.
    """
    engine = FakeEngine(**facts)

    with pytest.raises(MachineError, match="no control groups") if is_refused else nullcontext():
        require(engine, ClusterSpec(workers=1, node=NodeSpec(**limits)))


class TestDevice:
    def test_the_device_of_a_partition_is_its_disk(self, tmp_path):
        """
        The kernel limits whole disks alone.
        """
        (tmp_path / "devices" / "nvme0n1" / "nvme0n1p2").mkdir(parents=True)
        (tmp_path / "devices" / "nvme0n1" / "nvme0n1p2" / "partition").write_text("2")
        (tmp_path / "block").mkdir()
        (tmp_path / "block" / "259:2").symlink_to(tmp_path / "devices" / "nvme0n1" / "nvme0n1p2")
        (tmp_path / "block" / "259:0").symlink_to(tmp_path / "devices" / "nvme0n1")

        assert block_device(os.makedev(259, 2), tmp_path / "block") == "/dev/nvme0n1"
        assert block_device(os.makedev(259, 0), tmp_path / "block") == "/dev/nvme0n1"

    def test_a_file_system_without_a_device_has_none(self, tmp_path):
        """
        Memory and file systems over several disks have none.
        """
        assert block_device(os.makedev(0, 45), tmp_path) == ""
