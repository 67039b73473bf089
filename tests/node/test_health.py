"""
Tests for `harness.clusters.node.health`.
"""

import io
import json
import sys

import pytest

from harness.clusters.node import health

COUNTS = [
    "appsRunning", "appsPending", "containersAllocated", "containersPending", "containersReserved",
]  # fmt: skip


WORKERS = {n: {"datanode": n, "nodemanager": n} for n in ("worker1", "worker2")}


class FakeHadoop:
    """
    The answers of a cluster's daemons; *alive* are those that answer.
    """

    def __init__(self, datanodes=("worker1",), nodemanagers=("worker1",), missing=()):
        self.datanodes, self.nodemanagers, self.missing = datanodes, nodemanagers, set(missing)
        self.metrics, self.requested = dict.fromkeys(COUNTS, 0), []
        self.states, self.posted, self.is_refusing = iter(()), [], False

    def fetch(self, where, path, secret):
        self.requested.append(where)
        kind = {"m:1": "namenode", "m:2": "resourcemanager", "m:3": "historyserver"}[where]
        if kind in self.missing:
            return {}
        if path == "/ws/v1/cluster/metrics":
            return {"clusterMetrics": self.metrics}
        if path.startswith("/ws/v1/cluster/apps/"):
            return {"app": {"state": next(self.states)}}
        return {"beans": [self.beans(path.rpartition(":")[2])]}

    def send(self, address, method, path, *_, **__):
        self.posted.append((method, path))
        if self.is_refusing:
            raise health.WebError("no such container", 400)
        return io.BytesIO()

    def beans(self, query):
        live = json.dumps({f"{name}:9866": {} for name in self.datanodes})
        nodes = json.dumps([{"NodeId": f"{n}:8041", "State": "RUNNING"} for n in self.nodemanagers])
        return {
            "service=NameNode,name=FSNamesystemState": {"FSState": "Operational"},
            "service=NameNode,name=NameNodeStatus": {"State": "active"},
            "service=NameNode,name=NameNodeInfo": {"LiveNodes": live},
            "service=ResourceManager,name=ClusterMetrics": {"NumActiveNMs": len(self.nodemanagers)},
            "service=ResourceManager,name=RMNMInfo": {"LiveNodeManagers": nodes},
            "service=JobHistoryServer,name=JvmMetrics": {"GcCount": 0},
        }[query]


@pytest.fixture
def check(monkeypatch):
    """
    A function that lets a waiter look at a fake cluster, without a pause, for *looks* looks.
    """

    def check(hadoop, looks=3, until="healthy", workers=WORKERS, **more):
        seconds = iter(range(1000))
        monkeypatch.setattr(health, "fetch_object", hadoop.fetch)
        monkeypatch.setattr(health, "send", hadoop.send)
        monkeypatch.setattr(health.time, "monotonic", lambda: float(next(seconds)))
        monkeypatch.setattr(health.time, "sleep", lambda s: None)
        request = {
            "until": until, "master": "master", "workers": workers,
            "services": {"nn": "m:1", "rm": "m:2", "jhs": "m:3"}, "limit_s": looks,
            "ended": [], "user": "me", **more,
        }  # fmt: skip
        output = io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request)))
        monkeypatch.setattr(sys, "stdout", output)
        health.main([])
        return json.loads(output.getvalue())

    return check


BOTH = ("worker1", "worker2")


class TestHealthy:
    @pytest.mark.parametrize(
        ("hadoop", "missing"),
        [
            (FakeHadoop(BOTH, BOTH), []),
            (FakeHadoop(["worker2"], BOTH), ["datanode on worker1"]),
            (FakeHadoop(BOTH, ["worker1"]), ["nodemanager on worker2"]),
            (
                FakeHadoop(BOTH, []),
                ["nodemanager on worker1", "nodemanager on worker2"],
            ),
            (
                FakeHadoop(BOTH, BOTH, {"namenode"}),
                [
                    "namenode on master",
                    "datanode on worker1",
                    "datanode on worker2",
                    "historyserver on master",
                ],
            ),
            (FakeHadoop(BOTH, BOTH, {"historyserver"}), ["historyserver on master"]),
        ],
    )
    def test_names_who_is_silent(self, check, hadoop, missing):
        """
        Live DataNodes, active NodeManagers and workers must be the same, and the masters answer.
        """
        answer = check(hadoop)

        assert (answer["ok"], answer["missing"]) == (not missing, missing)

    def test_workers_of_one_host_are_told_apart_by_their_ports(self, check):
        """
        Where all are called the same.
        """
        ports = {"worker1": {"datanode": "localhost:1", "nodemanager": "localhost:2"}}
        hadoop = FakeHadoop()
        hadoop.beans = lambda query: {
            "FSState": "Operational", "State": "active", "NumActiveNMs": 1, "GcCount": 0,
            "LiveNodes": json.dumps({"localhost:1": {}}),
            "LiveNodeManagers": json.dumps([{"NodeId": "localhost:8041", "State": "RUNNING"}]),
        }  # fmt: skip

        assert check(hadoop, workers=ports)["missing"] == ["nodemanager on worker1"]

    def test_history_server_is_started_once_hdfs_answers(self, check, tmp_path):
        """
        One line goes to the control file, and not before the NameNode is out of safe mode.
        """
        control = tmp_path / "control"
        control.touch()
        more = {"control": str(control), "start": "historyserver-master"}
        check(FakeHadoop(BOTH, BOTH, {"namenode"}), **more)
        before = control.read_text()
        check(FakeHadoop(BOTH, BOTH), **more)

        assert (before, control.read_text()) == ("", "start historyserver-master\n")

    def test_a_death_ends_the_waiting(self, check, tmp_path):
        """
        Nobody waits for a daemon that has died.
        """
        (tmp_path / "deaths").write_text('{"key": "datanode-worker1", "status": 1}\n')
        hadoop = FakeHadoop([], BOTH)
        answer = check(hadoop, looks=1000, deaths=str(tmp_path / "deaths"))

        assert (answer["ok"], answer["died"]) == (False, {"datanode-worker1": "died"})
        assert len(hadoop.requested) < 10


class TestIdle:
    def test_a_lingering_master_is_waited_for(self, check):
        """
        An application without tasks still holds a container.
        """
        hadoop = FakeHadoop()
        hadoop.metrics["containersAllocated"] = 1
        answer = check(hadoop, until="idle")

        assert (answer["ok"], answer["missing"]) == (False, ["1 containersAllocated"])

    def test_nothing_runs(self, check):
        """
        All counts are zero.
        """
        assert check(FakeHadoop(), until="idle")["ok"]

    def test_silence_is_not_idleness(self, check):
        """
        A ResourceManager that does not answer may run anything.
        """
        answer = check(FakeHadoop(missing={"resourcemanager"}), until="idle")

        assert answer["missing"] == ["resourcemanager on master"]


class TestMastersOfEndedJobs:
    @pytest.mark.parametrize("is_refusing", [False, True])
    def test_one_is_sent_away_once(self, check, is_refusing):
        """
        Its container gets one signal, once the job has ended for the ResourceManager.
        """
        hadoop = FakeHadoop()
        hadoop.metrics["containersAllocated"] = 1
        hadoop.states = iter(("RUNNING", "FINISHED"))
        hadoop.is_refusing = is_refusing

        answer = check(hadoop, until="idle", ended=["job_12_0003"])

        container = "/ws/v1/cluster/containers/container_12_0003_01_000001"
        assert hadoop.posted == [("POST", f"{container}/signal/GRACEFUL_SHUTDOWN?user.name=me")]
        assert answer["missing"] == ["1 containersAllocated"]

    def test_one_that_runs_is_left_alone(self, check):
        """
        Before the ResourceManager has its end, a signal would make a failure of it.
        """
        hadoop = FakeHadoop()
        hadoop.metrics["appsRunning"] = 1
        hadoop.states = iter(["RUNNING"] * 9)

        check(hadoop, until="idle", ended=["job_12_0003"])

        assert not hadoop.posted
