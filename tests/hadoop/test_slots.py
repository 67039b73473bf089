"""
Tests for `harness.base.hadoop.slots`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.hadoop.slots import effective, refusals
from harness.base.records.trial import ClusterSpec, NodeSpec

specs = st.builds(
    ClusterSpec,
    workers=st.integers(1, 40),
    node=st.builds(
        NodeSpec,
        map_slots=st.integers(1, 16),
        reduce_slots=st.integers(1, 16),
        task_memory_bytes=st.integers(256, 4096).map(lambda mb: mb * 2**20),
    ),
)
limits = st.integers(0, 100)


MAP_GPU = "mapreduce.map.resource.yarn.io/gpu"
REDUCE_GPU = "mapreduce.reduce.resource.yarn.io/gpu"


def spec(workers=3, map_slots=2, reduce_slots=1, task_mb=512, gpus=0, **site):
    """
    A cluster with *site* properties, underscores standing for dots.
    """
    node = NodeSpec(
        map_slots=map_slots, reduce_slots=reduce_slots, task_memory_bytes=task_mb << 20, gpus=gpus
    )
    return ClusterSpec(workers=workers, node=node, site=site)


def slots(cluster, **configuration):
    """
    Effective slots: of maps and reduces, in the cluster and on a node.
    """
    result = effective(cluster, configuration)
    return (
        result.map_slots, result.reduce_slots,
        result.map_slots_per_node, result.reduce_slots_per_node,
    )  # fmt: skip


class TestEffective:
    def test_all_slots_of_all_nodes(self):
        """
        Without limits a job has what the nodes have.
        """
        assert slots(spec()) == (6, 3, 2, 1)

    @pytest.mark.parametrize(
        ("gpus", "requested", "maps"),
        [(1, "1", 1), (4, "1", 2), (4, "2", 2), (3, "2", 1), (0, "0", 2)],
    )
    def test_gpus_cut_the_maps_that_ask_for_them(self, gpus, requested, maps):
        """
        A node runs no more maps than it has GPUs for; reduces that ask for none keep their slots.
        """
        assert slots(spec(gpus=gpus), **{MAP_GPU: requested}) == (3 * maps, 3, maps, 1)

    def test_limit_of_the_job_cuts(self):
        """
        A limit is cluster-wide; a node's share of it is rounded up.
        """
        assert slots(spec(), **{"mapreduce.job.running.map.limit": "4"}) == (4, 3, 2, 1)

    def test_limit_of_the_cluster_cuts(self):
        """
        A limit in the site files counts, until the job sets its own; 0 is no limit.
        """
        cluster = spec(**{"mapreduce.job.running.map.limit": "2"})

        assert [
            slots(cluster)[0],
            slots(cluster, **{"mapreduce.job.running.map.limit": "5"})[0],
            slots(cluster, **{"mapreduce.job.running.map.limit": "0"})[0],
        ] == [2, 5, 6]

    def test_large_containers_leave_slots_empty(self):
        """
        A node of 2048 MiB holds one map of 1500 MiB, and none beside the application master
        where only 1536 MiB are left of which 1536 are asked.
        """
        cluster = spec(workers=2)

        assert slots(cluster, **{"mapreduce.map.memory.mb": "1500"})[0] == 2
        assert slots(cluster, **{"mapreduce.map.memory.mb": "1600"})[0] == 1

    @given(specs, limits, limits)
    def test_laws(self, cluster, maps, reduces):
        """
        A node's slots are at most its own, and enough for the cluster's.
        """
        result = effective(
            cluster,
            {
                "mapreduce.job.running.map.limit": str(maps),
                "mapreduce.job.running.reduce.limit": str(reduces),
            },
        )

        assert result.map_slots <= result.num_nodes * result.map_slots_per_node
        assert result.reduce_slots <= result.num_nodes * result.reduce_slots_per_node
        assert result.map_slots_per_node <= cluster.node.map_slots
        assert result.reduce_slots_per_node <= cluster.node.reduce_slots
        assert maps == 0 or result.map_slots <= maps


class TestRefusals:
    @given(specs.filter(lambda s: s.node.task_memory_bytes >= 300 * 2**20))
    def test_a_cluster_holds_what_it_is_made_for(self, cluster):
        """
        Hadoop's defaults run on every cluster whose tasks have room for its sort buffer.
        """
        assert refusals(cluster, {}) == []

    @pytest.mark.parametrize(
        ("configuration", "reported"),
        [
            ({"mapreduce.map.memory.mb": "4096"}, ["mapreduce.map.memory.mb", "4096", "2048"]),
            ({"mapreduce.reduce.memory.mb": "2049"}, ["mapreduce.reduce.memory.mb", "2112"]),
            ({"mapreduce.task.io.sort.mb": "300"}, ["mapreduce.task.io.sort.mb = 300", "273"]),
            ({"mapreduce.task.io.sort.mb": "4000"}, ["4000", "2047"]),
            ({"mapreduce.map.java.opts": "-Xmx1g"}, ["mapreduce.map.java.opts", "1024", "512"]),
            ({"mapreduce.map.cpu.vcores": "65"}, ["mapreduce.map.cpu.vcores = 65", "64"]),
            ({"yarn.app.mapreduce.am.resource.mb": "9000"}, ["am.resource.mb", "2048"]),
            ({"mapreduce.map.memory.mb": "much"}, ["mapreduce.map.memory.mb", "'much'"]),
        ],
    )
    def test_names_value_and_limit(self, configuration, reported):
        """
        One reason, with the property, its value and what there is.
        """
        reasons = refusals(spec(), configuration)

        assert len(reasons) == 1
        assert [t for t in reported if t not in reasons[0]] == []

    def test_reduces_that_do_not_exist_are_not_looked_at(self):
        """
        A job of maps only may say anything of its reduces.
        """
        configuration = {"mapreduce.job.reduces": "0", "mapreduce.reduce.memory.mb": "99999"}

        assert refusals(spec(), configuration) == []

    def test_one_node_shares_with_the_master(self):
        """
        On a single worker the application master takes its part before any task.
        """
        configuration = {"mapreduce.map.memory.mb": "1600"}

        assert [bool(refusals(spec(workers=n), configuration)) for n in (1, 2)] == [True, False]

    def test_sort_buffer_in_another_heap(self):
        """
        Other collectors have room for larger arrays.
        """
        configuration = {
            "mapreduce.task.io.sort.mb": "300",
            "mapreduce.map.java.opts": "-Xmx400m -XX:+UseParallelGC",
        }

        assert refusals(spec(), configuration) == []

    def test_all_reasons_at_once(self):
        """
        Whoever corrects a file wants to hear everything.
        """
        cluster = spec(**{"fs.defaultFS": "file:///", "dfs.blocksize": "32 MiB"})
        configuration = {"mapreduce.task.io.sort.mb": "0", "mapreduce.map.memory.mb": "4096"}

        assert len(refusals(cluster, configuration)) == 3


def test_more_workers_than_a_machine_starts_are_refused():
    """
    The number and the most that there may be stand in the refusal.
    """
    assert refusals(spec(workers=100_000), {}) == [
        "cluster.workers = 100000 is more than 200: lower it"
    ]


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("mapreduce.job.reduces", "-1", "a whole number from 0"),
        ("mapreduce.job.reduce.slowstart.completedmaps", "1.5", "a share from 0 to 1"),
        ("mapreduce.map.output.compress", "yes", "true or false"),
    ],
)
def test_what_models_cannot_read_is_refused_before_it_is_measured(name, value, reported):
    """
    It would be found out by the prediction, when all trials are done.
    """
    (reason,) = refusals(spec(), {name: value})

    assert name in reason
    assert reported in reason


class TestGpus:
    @pytest.mark.parametrize(
        ("gpus", "name", "requested", "message"),
        [
            (0, MAP_GPU, "1", "= 1, and a node has none: set cluster.node.gpus to 1"),
            (1, MAP_GPU, "2", "= 2, and a node has 1: set cluster.node.gpus to 2"),
            (1, MAP_GPU, "-1", "= -1 is below 0"),
            (1, MAP_GPU, "one", "= 'one' is not a whole number"),
            (1, REDUCE_GPU, "1", "set mapreduce.job.reduce.slowstart.completedmaps to 1.0"),
        ],
    )
    def test_what_yarn_would_let_wait_for_ever(self, gpus, name, requested, message):
        """
        A task that asks for more than a node has is refused, and a reduce that may keep maps out.
        """
        (reason,) = refusals(spec(gpus=gpus), {name: requested})

        assert reason.startswith(name)
        assert message in reason

    @pytest.mark.parametrize(
        "job",
        [
            {MAP_GPU: "1"},
            {MAP_GPU: "0"},
            {REDUCE_GPU: "1", "mapreduce.job.reduce.slowstart.completedmaps": "1.0"},
            {REDUCE_GPU: "9", "mapreduce.job.reduces": "0"},
        ],
    )
    def test_what_a_node_holds(self, job):
        """
        As many as there are may be asked for; reduces that do not exist ask for nothing.
        """
        assert refusals(spec(gpus=1), job) == []
