"""
Tests for `harness.clusters.kernel` on trees of files as kernels have them.

The trees are those of Linux 6.18 with version 1, and of version 2 as its documentation has it
(Documentation/admin-guide/cgroup-v2.rst): files that the kernel would make with a folder are there
from the start.
"""

import pytest

from harness.clusters.kernel import PARENT, PERIOD_US, Groups

DEVICE = "7:200"


@pytest.fixture
def v1(tmp_path):
    """
    Version 1: a tree for each controller.
    """
    for controller in ("cpu", "blkio", "memory"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").write_text("1\n")
    (tmp_path / "cpu" / "cpu.shares").write_text("1024\n")
    for verb in ("read", "write"):
        (tmp_path / "blkio" / f"blkio.throttle.{verb}_bps_device").touch()
    return Groups("c-1", tmp_path)


@pytest.fixture
def v2(tmp_path):
    """
    Version 2: one tree, in which controllers are handed down.
    """
    for folder in (tmp_path, tmp_path / PARENT, tmp_path / PARENT / "c-1"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
        (folder / "cgroup.subtree_control").touch()
    return Groups("c-1", tmp_path)


def content(groups, *names):
    """
    Content of a file of the tree.
    """
    return groups.root.joinpath(*names).read_text()


class TestVersion1:
    def test_cores_are_a_part_of_each_period(self, v1):
        """
        Half a core is half of a period's time, in the group of the node.
        """
        v1.make("worker1")
        v1.set_cores("worker1", 0.5)

        node = ("cpu", PARENT, "c-1", "worker1")
        assert content(v1, *node, "cpu.cfs_period_us") == str(PERIOD_US)
        assert content(v1, *node, "cpu.cfs_quota_us") == str(PERIOD_US // 2)

    def test_a_device_is_limited_for_all_processes(self, v1):
        """
        What the kernel writes later is in no node's group: the limit stands at the top, and the
        node's processes go there.
        """
        v1.make("worker1")
        v1.set_device("worker1", DEVICE, read=1e6, write=2e6)

        assert content(v1, "blkio", "blkio.throttle.read_bps_device") == "7:200 1000000"
        assert content(v1, "blkio", "blkio.throttle.write_bps_device") == "7:200 2000000"
        assert [str(v1.root / "blkio" / "cgroup.procs")] == v1.joins("worker1")[1:]

    def test_a_limit_is_lifted(self, v1):
        """
        Zero is no limit.
        """
        v1.lift_device(DEVICE)

        assert content(v1, "blkio", "blkio.throttle.write_bps_device") == "7:200 0"

    def test_nothing_is_left_when_it_is_removed(self, v1):
        """
        Groups of all nodes go, and what holds them, as often as one asks.
        """
        for node in ("worker1", "worker2"):
            v1.make(node)

        v1.remove()
        v1.remove()

        assert not (v1.root / "cpu" / PARENT).exists()

    def test_groups_of_other_clusters_stay(self, v1):
        """
        Each cluster removes its own.
        """
        second_cluster = Groups("c-2", v1.root)
        for groups in (v1, second_cluster):
            groups.make("worker1")

        v1.remove()

        assert [p.name for p in (v1.root / "cpu" / PARENT).iterdir()] == ["c-2"]


class TestVersion2:
    def test_limits_stand_in_the_group_of_the_node(self, v2):
        """
        There the kernel knows which group has written the pages that it writes later.
        """
        v2.make("worker1")
        v2.set_cores("worker1", 1.5)
        v2.set_device("worker1", DEVICE, read=1e6, write=2e6)

        node = (PARENT, "c-1", "worker1")
        assert content(v2, *node, "cpu.max") == f"{PERIOD_US * 3 // 2} {PERIOD_US}"
        assert content(v2, *node, "io.max") == "7:200 rbps=1000000 wbps=2000000"
        assert v2.joins("worker1") == [str(v2.root.joinpath(*node, "cgroup.procs"))]

    def test_controllers_are_handed_down(self, v2):
        """
        A controller works in a group only where all above it pass it on.
        """
        v2.make("worker1")

        above = [(), (PARENT,), (PARENT, "c-1")]
        assert {content(v2, *f, "cgroup.subtree_control") for f in above} == {"+cpu +io +memory"}

    def test_a_limit_is_lifted(self, v2):
        """
        In the group in which it was set.
        """
        v2.make("worker1")
        v2.set_device("worker1", DEVICE, read=1e6, write=2e6)

        v2.lift_device(DEVICE)

        assert content(v2, PARENT, "c-1", "worker1", "io.max") == "7:200 rbps=max wbps=max"

    @pytest.mark.parametrize(
        ("is_topmost", "processes", "reason"),
        [(True, "1\n", ""), (False, "", ""), (False, "1\n", "is a container's own group, and pro")],
    )
    def test_a_group_in_which_processes_run(self, v2, is_topmost, processes, reason):
        """
        Only the topmost of all may pass controllers on beside them: in a container that sees its
        own group alone, a limit is refused before anything is made.
        """
        (v2.root / "cgroup.procs").write_text(processes)
        if not is_topmost:
            (v2.root / "cgroup.type").write_text("domain\n")

        assert reason in (refusal := v2.refusal(cores=True, disk=True))
        assert bool(reason) == bool(refusal)


class TestRefusal:
    def test_is_empty_where_all_can_be_limited(self, v1):
        """
        Controllers that are there and writable take any limit.
        """
        assert v1.refusal(cores=True, disk=True) == ""

    def test_names_the_controller_that_is_not_there(self, tmp_path):
        """
        Of what is needed alone.
        """
        (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
        (tmp_path / "cgroup.subtree_control").touch()
        groups = Groups("c", tmp_path)

        assert groups.refusal(cores=True, disk=False) == ""
        assert groups.refusal(cores=True, disk=True) == "the kernel's control groups lack io"

    def test_names_missing_control_groups(self, tmp_path):
        """
        As in a container without them.
        """
        refusal = Groups("c", tmp_path).refusal(cores=True, disk=True)

        assert refusal == f"there are no control groups in {tmp_path}"

    def test_names_the_file_that_cannot_be_written(self, v1, monkeypatch):
        """
        As for an ordinary user, and in containers with a tree for reading.
        """
        monkeypatch.setattr("os.access", lambda file, mode: "blkio" not in str(file))

        assert v1.refusal(cores=True, disk=False) == ""
        assert v1.refusal(cores=True, disk=True).endswith("blkio/cgroup.procs cannot be written")
