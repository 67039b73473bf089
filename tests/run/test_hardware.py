"""
Tests for hardware made on purpose, as runs know it: what is refused, and what is written down.
"""

from types import SimpleNamespace

import pytest

from harness.errors import MachineError, SpecError
from harness.hadoop_home.home import HadoopHome
from harness.providers.local.cluster import LocalCluster
from harness.records.hardware import ENTRY, Limit, LimitedCluster
from harness.records.trial import ClusterSpec, Hardware, NodeSpec
from harness.run import hardware
from harness.run import preflight as fitness
from harness.run.hardware import keep_limits, refused_limits
from harness.run.session import Session
from tests.run.fakes import VERSIONS, Heard, terasort

MIB = 2**20
FELT = Limit(requested=MIB, setting=MIB, measured=1.01 * MIB, buffered_write=1.2 * MIB)
UNFELT = Limit(requested=MIB, setting=MIB, measured=0.99 * MIB, buffered_write=1000 * MIB)
SPEC = ClusterSpec(workers=1, node=NodeSpec(disk_bytes_per_s=MIB))


TEXT = """
schema: 1
name: small
question: q?
workloads: [{name: terasort, input: 6 MB}]
"""


@pytest.fixture
def session_of(tmp_path, clusters, monkeypatch):
    """
    Makes a session of an experiment with one override.
    """
    home = SimpleNamespace(versions=lambda: VERSIONS, path=tmp_path, trace_path_jar=tmp_path)
    monkeypatch.setattr(HadoopHome, "find", staticmethod(lambda: home))
    assert clusters.running == 0

    return lambda override: Session(TEXT, "small.yaml", tmp_path / "r", (override,), Heard())


class TestRefused:
    def test_what_a_provider_sets_is_not(self, monkeypatch):
        """
        Of two limits only the one that it cannot set, by its place in the file.
        """
        can = type("Provider", (), {"limitable": frozenset({"cores"})})
        monkeypatch.setitem(hardware.PROVIDERS, "local", can)
        own = {"worker1": Hardware(cores=1, network_bytes_per_s=10**6)}

        assert refused_limits(ClusterSpec(node=NodeSpec(cores=1), nodes=own)) == [
            "cluster.nodes: provider local cannot limit the network of its nodes"
        ]
        assert refused_limits(SPEC) == [
            "cluster.node.disk: provider local cannot limit the disk of its nodes"
        ]

    def test_before_a_run_is_opened(self, session_of, monkeypatch):
        """
        An experiment whose provider cannot do it points at the limit.
        """
        monkeypatch.setitem(hardware.PROVIDERS, "local", type("P", (), {"limitable": frozenset()}))

        with pytest.raises(SpecError, match=r"cannot limit the disk") as caught:
            session_of("cluster.node.disk=5 MiB/s").measure()
        assert "cluster.node.disk" in str(caught.value)

    def test_what_this_user_cannot_do_is_told_by_a_plan(self, session_of, monkeypatch):
        """
        A plan may be for another machine; a run is not begun.
        """

        class Denied(LocalCluster):
            @classmethod
            def require_limits(cls, spec):
                raise MachineError(f"no disk of {spec.node.disk_bytes_per_s} here")

        monkeypatch.setattr(fitness, "PROVIDERS", {"local": Denied})
        s = session_of("cluster.node.disk=5 MiB/s")

        s.plan()
        with pytest.raises(MachineError, match="no disk of 5242880 here"):
            s.measure()
        assert any("no disk of 5242880 here: this machine" in line for line in s.talk.lines)


class TestKept:
    def test_each_start_is_written_down(self, run):
        """
        What nodes became differs from start to start, and the manifest has all of it.
        """
        for now in (1.0, 2.0):
            keep_limits(run, SPEC, {"worker1": {"disk_write": FELT}}, now)

        assert [LimitedCluster.model_validate(e) for e in run.manifest()[ENTRY]] == [
            LimitedCluster(cluster=SPEC.id, measured_s=now, nodes={"worker1": {"disk_write": FELT}})
            for now in (1.0, 2.0)
        ]

    def test_a_cluster_without_limits_leaves_no_word(self, run):
        """
        As all clusters did before there were limits.
        """
        assert keep_limits(run, ClusterSpec(), {}, 1.0) == []
        assert ENTRY not in run.manifest()

    def test_what_is_not_felt_is_told(self, execution, run, clusters):
        """
        At each start, with both rates; the trials go on.
        """
        clusters.limits = {"worker1": {"disk_write": UNFELT}, "worker2": {"disk_write": FELT}}
        e = execution()

        e.execute([terasort()], set())

        (told,) = [line for line in e.talk.lines if "not felt" in line]
        assert told.startswith("warning: the limit of worker1's disk is not felt")
        assert told.endswith("written at 1000 MiB/s, where 1 MiB/s was asked")
        assert len(run.manifest()[ENTRY]) == 1


class TestDisks:
    def test_a_trial_begins_with_nothing_in_memory(self, execution, clusters):
        """
        Once its input is there, and before its first job.
        """
        execution().execute([terasort(0), terasort(1)], set())

        assert (clusters.jobs, clusters.forgotten) == (["teragen", "terasort", "terasort"], [1, 2])

    def test_what_went_through_them_stands_in_the_trial(self, execution, run, clusters):
        """
        While its own jobs ran; without limited disks there is nothing to tell.
        """
        execution().execute([terasort(0)], set())
        clusters.limits = {"worker1": {"disk_write": FELT}}
        execution().execute([terasort(1)], set())

        found = {r.trial.repetition: r for r in run.trials().values()}
        assert found[1].disk_bytes == {"worker1": {"read": 10, "written": 1}}
        assert "disk_bytes" not in found[0].model_dump()
