"""
Tests for `harness.core.run.manifest`, and for limited hardware: what is refused, what is written
down.
"""

import hashlib

from importlib.metadata import distribution, version
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, MachineError, SpecError
from harness.base.records.trial import ClusterSpec, Limit, LimitedCluster, NodeSpec, trial_id
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.survey import RanOn
from harness.core.run import experiment_file, preflight
from harness.core.run.manifest import installed_packages, record_limits, record_systems
from harness.core.run.session import Session
from tests.run.fakes import VERSIONS, RecordingConsole, terasort

MIB = 2**20
ENFORCED = Limit(requested=MIB, setting=MIB, measured=1.01 * MIB, buffered_write=1.2 * MIB)
NOT_ENFORCED = Limit(requested=MIB, setting=MIB, measured=0.99 * MIB, buffered_write=1000 * MIB)
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

    def build(override):
        return Session(TEXT, "small.yaml", tmp_path / "r", (override,), RecordingConsole())

    return build


class TestRefused:
    def test_before_a_run_is_opened(self, session_of, monkeypatch):
        """
        An experiment whose provider cannot do it points at the limit.
        """
        monkeypatch.setitem(
            experiment_file.PROVIDERS,
            "local",
            type("P", (LocalCluster,), {"limitable": frozenset()}),
        )

        with pytest.raises(SpecError, match=r"cannot limit the disk") as caught:
            session_of("cluster.node.disk=5 MiB/s").measure()
        assert "cluster.node.disk" in str(caught.value)

    def test_what_this_user_cannot_do_is_reported_by_a_plan(self, session_of, monkeypatch):
        """
        A plan may be for another machine; a run is not started.
        """

        class Denied(LocalCluster):
            @classmethod
            def require_limits(cls, spec):
                raise MachineError(f"no disk of {spec.node.disk_bytes_per_s} here")

        monkeypatch.setattr(preflight, "PROVIDERS", {"local": Denied})
        s = session_of("cluster.node.disk=5 MiB/s")

        s.plan()
        with pytest.raises(MachineError, match="no disk of 5242880 here"):
            s.measure()
        assert any("will not run it: no disk of 5242880 here" in line for line in s.console.lines)


class TestLimits:
    def test_each_start_is_written_down(self, run):
        """
        What nodes became differs from start to start, and the manifest has all of it.
        """
        for now in (1.0, 2.0):
            record_limits(run, SPEC, {"worker1": {"disk_write": ENFORCED}}, now)

        assert list(run.read_manifest().limits) == [
            LimitedCluster(
                cluster=SPEC.id, measured_s=now, nodes={"worker1": {"disk_write": ENFORCED}}
            )
            for now in (1.0, 2.0)
        ]

    def test_a_cluster_without_limits_has_no_entry(self, run):
        """
        As all clusters did before there were limits.
        """
        assert record_limits(run, ClusterSpec(), {}, 1.0) == []
        assert run.read_manifest().limits == ()

    def test_what_is_not_enforced_is_reported(self, execution, run, clusters):
        """
        At each start, with both rates; the trials go on.
        """
        clusters.limits = {
            "worker1": {"disk_write": NOT_ENFORCED},
            "worker2": {"disk_write": ENFORCED},
        }
        e = execution()

        e.execute([terasort()], set())

        (warning,) = [line for line in e.console.lines if "not enforced" in line]
        assert warning.startswith("warning: the limit of worker1's disk is not enforced on")
        assert warning.endswith("written at 1000 MiB/s, and 1 MiB/s was requested")
        assert len(run.read_manifest().limits) == 1


class TestDisks:
    def test_a_trial_starts_with_nothing_in_memory(self, execution, clusters):
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
        clusters.limits = {"worker1": {"disk_write": ENFORCED}}
        execution().execute([terasort(1)], set())

        records = {r.trial.repetition: r for r in run.trials().values()}
        assert records[1].disk_bytes == {"worker1": {"read": 10, "written": 1}}
        assert records[0].disk_bytes == {}


SAME = RanOn("3.5.0", "17.0.19+10", "6.1.0")
OTHER = RanOn("3.5.0", "17.0.15+6", "6.1.0")


def trials(count):
    """
    Repetitions of one cell.
    """
    return [terasort(n) for n in range(count)]


def recorded(run):
    """
    Versions of Java and the kernels in the trials of a run.
    """
    return {(r.versions.java, r.kernel) for r in run.trials().values()}


def test_trials_say_what_their_nodes_have(run, clusters, execution):
    """
    One value where all agree; in the manifest, too.
    """
    clusters.ran_on = {"worker1": SAME, "worker2": SAME}
    execution().execute(trials(2), set())

    manifest = run.read_manifest()
    assert recorded(run) == {("17.0.19+10", "6.1.0")}
    assert manifest.nodes == {"hadoop": "3.5.0", "java": "17.0.19+10", "kernel": "6.1.0"}
    assert manifest.versions == VERSIONS.model_copy(update={"java": "17.0.19+10"})


@pytest.mark.process
def test_what_nodes_are_is_asked_once(run, clusters, execution):
    """
    After the first start of a cluster, with the options of its daemons; a later one with more nodes
    adds those.
    """
    clusters.answers = {"master": '{"os": "A"}', "worker1": '{"os": "A"}', "worker2": "?"}
    execution().execute(trials(1), set())
    first, requests = run.read_manifest(), list(clusters.requests)
    execution().execute(trials(2)[1:], set())
    clusters.answers = {"master": '{"os": "B"}', "worker3": '{"os": "B"}'}
    run.update_manifest(systems={"master": {"os": "A"}})
    execution().execute([terasort(2)], set())

    assert requests[0] == ("master", "facts", "system", "hdfs=//data", "local=//local")
    assert [name for name, *_ in clusters.requests] == [
        "master", "worker1", "worker2", "worker3",
    ]  # fmt: skip
    assert (first.systems["master"], first.systems["worker1"]) == ({"os": "A"}, "master")
    assert first.systems["worker2"].startswith("not known: Expecting value")
    assert run.read_manifest().systems == {"master": {"os": "A"}, "worker3": {"os": "B"}}
    assert first.daemon_options["datanode"].startswith("-XX:+IgnoreUnrecognizedVMOptions -XX:+Use")
    assert "-Xmx256m" in first.daemon_options["namenode"].split()


def test_nodes_without_a_connection_say_so(run):
    """
    Those of a cluster that is not ours: nothing is run there.
    """
    record_systems(run, SimpleNamespace(sets_site=False), {"worker1": SAME})

    assert run.read_manifest().systems == {
        "worker1": "not known: the nodes of an existing cluster have no connection"
    }


def test_every_installed_package_has_its_hash():
    """
    That of the list of its files, which has theirs.
    """
    packages = installed_packages()
    (pydantic,) = [name for name in packages if name.startswith("pydantic ")]

    assert pydantic == f"pydantic {version('pydantic')}"
    assert set(map(len, packages.values())) <= {0, 64}
    record = Path(distribution("pydantic").locate_file("")).glob("pydantic-*.dist-info/RECORD")
    assert packages[pydantic] == hashlib.sha256(next(record).read_bytes()).hexdigest()


def test_nodes_that_differ_are_named(run, clusters, execution):
    """
    Each with its own; one that says nothing is unknown.
    """
    clusters.ran_on = {"worker1": SAME, "worker2": OTHER, "worker3": RanOn("3.5.0", "", "")}
    execution().execute(trials(1), set())

    assert recorded(run) == {(
        "worker1: 17.0.19+10, worker2: 17.0.15+6, worker3: unknown",
        "worker1: 6.1.0, worker2: 6.1.0, worker3: unknown",
    )}  # fmt: skip
    assert run.read_manifest().nodes["java"] == {
        "worker1": "17.0.19+10", "worker2": "17.0.15+6", "worker3": "",
    }  # fmt: skip


def test_a_run_is_not_continued_on_another_java(run, clusters, execution):
    """
    Its trials could not be compared; nothing more is run, and the fix is a new run.
    """
    planned = trials(2)
    clusters.ran_on = {"worker1": OTHER}
    execution().execute(planned[:1], set())
    clusters.ran_on = {"worker1": SAME}

    with pytest.raises(DataError, match=r"worker1 has Java 17\.0\.19\+10 now, .* ran on") as caught:
        execution().execute(planned, {planned[0].id})
    assert "--new" in caught.value.fix
    assert (len(run.trials()), clusters.running) == (1, 0)


def test_trials_of_other_versions_do_not_count(run, clusters, execution):
    """
    They are none of the plan's: all of that is run anew.
    """
    clusters.ran_on = {"worker1": OTHER}
    execution().execute(trials(1), set())
    clusters.ran_on = {"worker1": SAME}
    newer = VERSIONS.model_copy(update={"java": "17.0.19+10"})
    later = terasort(1)
    later = later.model_copy(update={"id": trial_id(later.cell, 1, newer)})
    execution(versions=newer).execute([later], set())

    assert {java for java, _ in recorded(run)} == {"17.0.15+6", "17.0.19+10"}
