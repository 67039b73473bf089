"""
Tests for `harness.clusters.local.limits` without a cluster: what it asks of the machine.
"""

import os

from types import SimpleNamespace

import pytest

from harness.base.errors import ClusterError, MachineError
from harness.base.records.trial import ClusterSpec, Hardware, NodeSpec
from harness.clusters import kernel
from harness.clusters.host import Completed
from harness.clusters.local import limits as nodes

MIB = 2**20
CORES = {"cores": 0.5}
DISK = {"disk_bytes_per_s": 5 * MIB}
NETWORK = {"network_bytes_per_s": 10**6}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """
    A machine on which all can be limited: its control groups are a folder, its disks are names.
    """
    root = tmp_path / "cgroup"
    for controller in ("cpu", "blkio"):
        (root / controller).mkdir(parents=True)
        (root / controller / "cgroup.procs").touch()
    monkeypatch.setattr(kernel.Groups, "__init__", lambda self, name: _init(self, name, root))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(kernel, "disks_refusal", lambda: "")
    disks = []
    monkeypatch.setattr(
        kernel, "make_disk", lambda image, size: disks.append((image, size)) or _disk(image)
    )
    monkeypatch.setattr(kernel, "find_disks", lambda folder: [_disk(image) for image, _ in disks])
    monkeypatch.setattr("harness.clusters.local.namespace.find_tool", lambda tool: f"/sbin/{tool}")
    return SimpleNamespace(root=root, disks=disks)


def _init(self, name, root):
    object.__setattr__(self, "name", name)
    object.__setattr__(self, "root", root)


def _make(made, image, size):
    made.append((image, size))
    return _disk(image)


def _disk(image):
    return kernel.Disk("/dev/loop200", "7:200", str(image))


def spec(limits, **nodes):
    """
    A cluster of two workers, limited so.
    """
    limited = {name: Hardware(**limited_fields) for name, limited_fields in nodes.items()}
    return ClusterSpec(workers=2, node=NodeSpec(**limits), nodes=limited)


class TestRequire:
    def test_lets_pass_what_can_be_had(self, machine, tmp_path):
        """
        All limits, and none at all.
        """
        nodes.require(spec(CORES | DISK | NETWORK), tmp_path)
        nodes.require(spec({}), tmp_path, flat="as asked")

    @pytest.mark.parametrize(
        ("limits", "named"),
        [(CORES, "cores"), (DISK, "disk"), (CORES | DISK | NETWORK, "cores and disk")],
    )
    def test_tells_an_ordinary_user_what_takes_root(
        self, machine, tmp_path, monkeypatch, limits, named
    ):
        """
        It may shape its own network, and nothing else.
        """
        monkeypatch.setattr("os.geteuid", lambda: 1000)
        nodes.require(spec(NETWORK), tmp_path)

        with pytest.raises(MachineError) as caught:
            nodes.require(spec({}, worker2=limits), tmp_path)

        message = f"the {named} of nodes cannot be limited here: an ordinary user can"
        assert caught.value.what.startswith(message)

    def test_refuses_all_without_namespaces(self, machine, tmp_path):
        """
        Nodes that are all one machine have nothing of their own to limit.
        """
        with pytest.raises(MachineError, match="no namespaces: the kernel says no"):
            nodes.require(spec(NETWORK), tmp_path, flat="the kernel says no")

    @pytest.mark.parametrize(
        ("user", "flat", "fix"),
        [
            (0, "HARNESS_LOCAL_NETWORK=ports", "network, or unset HARNESS_LOCAL_NETWORK"),
            (0, "no", "network; harness doctor shows the reason"),
            (1000, "no", "network, or be root"),
        ],
    )
    def test_the_fix_is_one_for_this_user(self, tmp_path, monkeypatch, user, flat, fix):
        """
        Root is not advised to be root, and a user of ports is reminded of them.
        """
        monkeypatch.setattr(os, "geteuid", lambda: user)

        with pytest.raises(MachineError) as caught:
            nodes.require(spec(NETWORK), tmp_path, flat=flat)

        assert caught.value.fix == f"leave out cluster.node.{fix}"

    def test_names_commands_and_their_packages(self, machine, tmp_path, monkeypatch):
        """
        The fix is the command that brings them.
        """
        monkeypatch.setattr("harness.clusters.local.namespace.find_tool", lambda tool: None)

        with pytest.raises(MachineError) as caught:
            nodes.require(spec(DISK), tmp_path)

        assert "missing commands: mkfs.ext4, losetup" in caught.value.what
        assert caught.value.fix == "apt-get install -y e2fsprogs mount"

    def test_says_why_there_are_no_control_groups(self, machine, tmp_path):
        """
        As in a container that has none.
        """
        for controller in ("cpu", "blkio"):
            (machine.root / controller / "cgroup.procs").unlink()
            (machine.root / controller).rmdir()

        with pytest.raises(MachineError, match="no control groups"):
            nodes.require(spec(CORES), tmp_path)


class TestMake:
    def test_makes_what_each_worker_needs_and_no_more(self, machine, tmp_path):
        """
        A disk where disks are limited, groups where processes are; shaping needs neither.
        """
        data = {"worker1": "/w1", "worker2": "/w2"}

        hardware = nodes.make(tmp_path, spec(NETWORK, worker2=DISK), data)

        assert hardware["worker1"] == {}
        assert hardware["worker2"]["disk"] == {
            "device": "/dev/loop200",
            "options": kernel.MOUNT_OPTIONS,
            "at": "/w2/disk",
            "over": {"data": "/w2/data", "local": "/w2/local"},
        }
        assert [image.name for image, _ in machine.disks] == ["worker2.disk"]

    def test_a_process_of_a_worker_joins_its_groups(self, machine, tmp_path):
        """
        Later commands use what the first process was given.
        """
        limited = spec(CORES)

        hardware = nodes.make(tmp_path, limited, {})

        assert hardware["worker1"]["joins"] == nodes.group_files(tmp_path, limited, "worker1")
        assert hardware["worker1"]["joins"][0].endswith("/worker1/cgroup.procs")
        assert nodes.group_files(tmp_path, limited, "master") == []

    def test_disks_share_what_is_free(self, machine, tmp_path, monkeypatch):
        """
        So that none of them promises what another one takes.
        """
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))

        nodes.make(tmp_path, spec(DISK), {"worker1": "/w1", "worker2": "/w2"})

        assert [size for _, size in machine.disks] == [50, 50]

    def test_all_goes_again(self, machine, tmp_path, monkeypatch):
        """
        Groups are found by the cluster's folder, and nothing of them is left.
        """
        monkeypatch.setattr(kernel, "remove_disk", lambda disk: machine.disks.pop())
        nodes.make(tmp_path, spec(CORES | DISK), {"worker1": "/w1", "worker2": "/w2"})

        nodes.release(tmp_path)
        nodes.release(tmp_path)

        assert (machine.disks, list((machine.root / "cpu").glob("*"))) == (
            [],
            [machine.root / "cpu" / "cgroup.procs"],
        )


class TestLimiter:
    def test_shapes_both_ends_of_a_link(self, tmp_path):
        """
        What a node sends is held at its own end, what it receives at the bridge's.
        """
        ran = []

        def tc(node, argv):
            ran.append((node, argv[4], argv[argv.index("rate") + 1]))
            return Completed(tuple(argv), 0, "", "")

        rates = {"network_out": 1000.0, "network_in": 2000.0}
        nodes.set_limits(tmp_path, tc, {"worker1": "node1"}, {"worker1": rates})

        assert ran == [("worker1", "eth0", "8000bit"), ("", "node1", "16000bit")]

    def test_says_what_tc_says(self, tmp_path):
        """
        A kernel may lack what shaping needs.
        """
        rates = {"network_out": 1.0, "network_in": 1.0}

        def tc(_, argv):
            return Completed(tuple(argv), 2, "", "Unknown qdisc\n")

        with pytest.raises(ClusterError, match="worker1 cannot be limited: 'Unknown qdisc'"):
            nodes.set_limits(tmp_path, tc, {"worker1": "node1"}, {"worker1": rates})

    def test_sets_cores_and_the_disk_of_the_node(self, machine, tmp_path):
        """
        The device is the one behind which the node's file lies.
        """
        nodes.make(tmp_path, spec(CORES | DISK), {"worker1": "/w1", "worker2": "/w2"})
        rates = {"cores": 0.5, "disk_read": 7.0, "disk_write": 9.0}

        nodes.set_limits(tmp_path, None, {}, {"worker2": rates})

        quota = next((machine.root / "cpu").rglob("worker2/cpu.cfs_quota_us"))
        write = machine.root / "blkio" / "blkio.throttle.write_bps_device"
        assert (quota.read_text(), write.read_text()) == ("10000", "7:200 9")
