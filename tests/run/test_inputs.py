"""
Tests for `harness.core.run.jobs`, on a file system in memory.
"""

import pytest

from harness.base.errors import JobError
from harness.base.hadoop.site import client_properties
from harness.base.records.trial import ClusterSpec, WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.core.run.jobs import MAP_OPTIONS, Inputs, JobRunner, generator_properties
from tests.run.fakes import BLOCK, Clusters, FakeCluster, Fault

TERASORT = WORKLOADS["terasort"]


def rows(size=6_000_000, **rest):
    """
    TeraGen's rows.
    """
    return WorkloadSpec(name="terasort", input_bytes=size, **rest)


@pytest.fixture
def make(tmp_path):
    """
    Inputs of a new cluster, on which some jobs go wrong.
    """

    def build(**faults):
        cluster = FakeCluster(Clusters(**faults))
        return Inputs(JobRunner(cluster, 10.0), tmp_path, messages.append), cluster

    messages = []
    return build


def folders(cluster):
    """
    Names of the inputs that lie in the file system.
    """
    return {n for n, _, _ in cluster.hdfs.list("/harness/input")}


class TestEnsure:
    def test_a_job_makes_the_input(self, make):
        """
        The files are those of the plan, under its key, and the sample was taken from them.
        """
        inputs, cluster = make()

        ready = inputs.ensure(TERASORT, rows(), BLOCK)

        entries = cluster.hdfs.list(ready.uri)
        planned = [(file.name, file.bytes) for file in ready.plan.files]
        assert [(name, size) for name, size, _ in entries] == planned
        assert folders(cluster) == {ready.plan.key}
        assert ready.sample["records"] == 60_000
        assert cluster.idle_calls == 1

    def test_the_generator_runs_with_the_properties_of_generators(self, make):
        """
        Its client has them among its options.
        """
        inputs, cluster = make()
        options = "-Xmx1g -XX:TieredStopAtLevel=1"
        cluster.site_properties = lambda: {"mapreduce.map.java.opts": options}

        inputs.ensure(TERASORT, rows(), BLOCK)

        expected = f"-Dmapreduce.map.java.opts={options} -XX:TieredStopAtLevel=4"
        assert expected in cluster.arguments[0]

    def test_is_made_once_per_content(self, make):
        """
        TeraGen's rows do not depend on the seed: one input; another size is another.
        """
        inputs, cluster = make()

        same = [inputs.ensure(TERASORT, rows(seed=s), BLOCK) for s in (1, 2)]
        other = inputs.ensure(TERASORT, rows(5_900_000), BLOCK)

        assert same[0] is same[1]
        assert other.uri != same[0].uri
        assert cluster.clusters.jobs == ["teragen", "teragen"]

    def test_nothing_half_made_lies_under_the_key(self, make):
        """
        A generator that fails leaves no input; the next attempt makes it.
        """
        inputs, cluster = make(teragen=[Fault(status=1, says="java.io.IOException: full")])

        with pytest.raises(JobError, match=r"java\.io\.IOException: full"):
            inputs.ensure(TERASORT, rows(), BLOCK)
        assert not inputs.ready

        assert inputs.ensure(TERASORT, rows(), BLOCK).plan.key in folders(cluster)

    def test_what_another_left_is_replaced(self, make):
        """
        An input of unknown origin is not trusted.
        """
        inputs, cluster = make()
        key = TERASORT.plan_input(rows(), BLOCK).key
        cluster.hdfs.put(f"/harness/input/{key}/part-m-00009", [b"foreign"])

        ready = inputs.ensure(TERASORT, rows(), BLOCK)

        assert "part-m-00009" not in {n for n, _, _ in cluster.hdfs.list(ready.uri)}

    @pytest.mark.parametrize(("lost", "refused"), [(599, False), (601, True)])
    def test_size_within_one_percent(self, make, lost, refused):
        """
        A generator that writes less than was asked makes no input.
        """
        inputs, cluster = make(teragen=[Fault(loses=lost)])

        if refused:
            with pytest.raises(JobError, match="has 5939900 bytes, and its plan has 6000000"):
                inputs.ensure(TERASORT, rows(), BLOCK)
        else:
            inputs.ensure(TERASORT, rows(), BLOCK)

        assert len(folders(cluster) - {TERASORT.plan_input(rows(), BLOCK).key}) == refused


class TestGeneratorProperties:
    def test_generators_have_both_compilers(self):
        """
        The last of two options counts; whatever else the cluster's tasks get stays.
        """
        properties = client_properties(ClusterSpec())

        options = generator_properties(properties)[MAP_OPTIONS].split()

        assert options[:-1] == properties[MAP_OPTIONS].split()
        assert options[-1] == "-XX:TieredStopAtLevel=4"

    def test_foreign_options_stay(self):
        """
        A cluster whose tasks are not limited to one compiler keeps its options.
        """
        assert generator_properties({MAP_OPTIONS: "-Xmx1g"}) == {}
        assert generator_properties({}) == {}
