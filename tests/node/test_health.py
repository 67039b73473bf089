"""
Tests for `harness.node.health` and the health check that uses it.
"""

import io
import json
import sys

from types import SimpleNamespace

import pytest

from harness.errors import ClusterError
from harness.node import health
from harness.providers import gate

COUNTS = [
    "appsRunning", "appsPending", "containersAllocated", "containersPending", "containersReserved",
]  # fmt: skip


WORKERS = {n: {"datanode": n, "nodemanager": n} for n in ("worker1", "worker2")}


class FakeHadoop:
    """
    The answers of a cluster's daemons; *alive* are those that answer.
    """

    def __init__(self, datanodes=("worker1",), nodemanagers=("worker1",), silent=()):
        self.datanodes, self.nodemanagers, self.silent = datanodes, nodemanagers, set(silent)
        self.metrics, self.asked = dict.fromkeys(COUNTS, 0), []

    def fetch(self, where, path):
        self.asked.append(where)
        kind = {"m:1": "namenode", "m:2": "resourcemanager", "m:3": "historyserver"}[where]
        if kind in self.silent:
            return {}
        if path == "/ws/v1/cluster/metrics":
            return {"clusterMetrics": self.metrics}
        return {"beans": [self.beans(path.rpartition(":")[2])]}

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
def ask(monkeypatch):
    """
    A function that lets a waiter look at a fake cluster, without a pause, for *looks* looks.
    """

    def ask(hadoop, looks=3, until="healthy", workers=WORKERS, **more):
        seconds = iter(range(1000))
        monkeypatch.setattr(health, "fetch_object", hadoop.fetch)
        monkeypatch.setattr(health.time, "monotonic", lambda: float(next(seconds)))
        monkeypatch.setattr(health.time, "sleep", lambda s: None)
        question = {
            "until": until, "master": "master", "workers": workers,
            "services": {"nn": "m:1", "rm": "m:2", "jhs": "m:3"}, "limit_s": looks, **more,
        }  # fmt: skip
        output = io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question)))
        monkeypatch.setattr(sys, "stdout", output)
        health.main([])
        return json.loads(output.getvalue())

    return ask


BOTH = ("worker1", "worker2")


class TestHealthy:
    @pytest.mark.parametrize(
        ("hadoop", "silent"),
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
    def test_names_who_is_silent(self, ask, hadoop, silent):
        """
        Live DataNodes, active NodeManagers and workers must be the same, and the masters answer.
        """
        answer = ask(hadoop)

        assert (answer["ok"], answer["missing"]) == (not silent, silent)

    def test_workers_of_one_host_are_told_apart_by_their_ports(self, ask):
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

        assert ask(hadoop, workers=ports)["missing"] == ["nodemanager on worker1"]

    def test_history_server_is_started_once_hdfs_answers(self, ask, tmp_path):
        """
        One line goes to the control file, and not before the NameNode is out of safe mode.
        """
        control = tmp_path / "control"
        control.touch()
        more = {"control": str(control), "start": "historyserver-master"}
        ask(FakeHadoop(BOTH, BOTH, {"namenode"}), **more)
        before = control.read_text()
        ask(FakeHadoop(BOTH, BOTH), **more)

        assert (before, control.read_text()) == ("", "start historyserver-master\n")

    def test_a_death_ends_the_waiting(self, ask, tmp_path):
        """
        Nobody waits for a daemon that has died.
        """
        (tmp_path / "deaths").write_text('{"key": "datanode-worker1", "status": 1}\n')
        hadoop = FakeHadoop([], BOTH)
        answer = ask(hadoop, looks=1000, deaths=str(tmp_path / "deaths"))

        assert (answer["ok"], answer["died"]) == (False, ["datanode-worker1"])
        assert len(hadoop.asked) < 10


class TestIdle:
    def test_a_lingering_master_is_waited_for(self, ask):
        """
        An application without tasks still holds a container.
        """
        hadoop = FakeHadoop()
        hadoop.metrics["containersAllocated"] = 1
        answer = ask(hadoop, until="idle")

        assert (answer["ok"], answer["missing"]) == (False, ["1 containersAllocated"])

    def test_nothing_runs(self, ask):
        """
        All counts are zero.
        """
        assert ask(FakeHadoop(), until="idle")["ok"]

    def test_silence_is_not_idleness(self, ask):
        """
        A ResourceManager that does not answer may run anything.
        """
        answer = ask(FakeHadoop(silent={"resourcemanager"}), until="idle")

        assert answer["missing"] == ["resourcemanager on master"]


def gated(answer):
    """
    The error of a health gate that got *answer*.
    """
    logs = {"datanode on worker1": "the last line", "namenode on master": "another line"}
    with pytest.raises(ClusterError) as raised:
        gate.await_healthy(
            lambda question: answer, {"limit_s": 180.0}, where="cluster 'c'", log=logs.__getitem__
        )
    return str(raised.value)


class TestGate:
    def test_healthy_returns_the_seconds(self):
        """
        The time that it took, for people.
        """
        seconds = gate.await_healthy(
            lambda question: {"ok": True, "seconds": 4.5}, {"limit_s": 1}, where="", log=str
        )

        assert seconds == 4.5

    def test_silence_is_told_with_the_log(self):
        """
        Who, how long, where, and the last lines of the first of them.
        """
        told = gated({"ok": False, "missing": ["datanode on worker1", "namenode on master"]})

        assert "no datanode on worker1, namenode on master after 180 s" in told
        assert "the last line" in told
        assert "cluster 'c'" in told

    def test_death_is_told_before_silence(self):
        """
        The dead daemon is the reason, whoever else is silent because of it.
        """
        told = gated({"died": ["datanode-worker1"], "missing": ["namenode on master"]})

        assert told.startswith("datanode on worker1 died at start\nthe last line")

    def test_many_silent_ones_are_counted(self):
        """
        A message stays readable with two hundred workers.
        """
        told = gated({"missing": ["datanode on worker1", *[f"d{i}" for i in range(9)]]})

        assert "d0, d1, d2 and 6 more" in told

    def test_a_cluster_that_is_gone_gives_no_answer(self):
        """
        The waiter died with the cluster; nobody has waited for it to the end.
        """
        assert gated({}).startswith("the cluster was gone after 0 s")

    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            ({"missing": "datanode"}, "no answer after 180 s"),
            ({"missing": ["\x1b[2Jx", 7, {}]}, "no \ufffd[2Jx, 7, {} after 180 s"),
            ({"died": [["a-b"]], "ok": "yes"}, "['a on b'] died at start"),
            ({"missing": ["x" * 10**6] * 5000}, f"no {'x' * 80}, {'x' * 80}"),
        ],
    )
    def test_a_host_that_makes_answers_up(self, answer, told):
        """
        What it names is shown short and safe; its log is asked for by our own names.
        """
        with pytest.raises(ClusterError) as raised:
            gate.await_healthy(
                lambda question: answer, {"limit_s": 180.0}, where="c", log=lambda name: ""
            )

        assert raised.value.what.startswith(told)
        assert len(raised.value.what) < 1000

    @pytest.mark.parametrize("seconds", ["4", None, float("nan"), -1, 10**400])
    def test_a_time_that_is_none(self, seconds):
        """
        Our own clock says how long it took.
        """
        answer = {"ok": True, "seconds": seconds}

        took = gate.await_healthy(lambda question: answer, {"limit_s": 1}, where="", log=str)

        assert 0 <= took < 60

    def test_a_waiter_that_is_stuck(self, monkeypatch):
        """
        The time is over, and nothing came back.
        """
        times = iter((0.0, 240.0))
        monkeypatch.setattr(gate, "time", SimpleNamespace(monotonic=lambda: next(times)))

        assert gated({}).startswith("no answer after 180 s")

    def test_not_idle(self):
        """
        What still runs is told.
        """
        answer = {"ok": False, "missing": ["1 appsRunning"], "died": ["nodemanager-worker2"]}
        with pytest.raises(
            ClusterError,
            match=r"not idle after 60 s: nodemanager on worker2 died, 1 appsRunning",
        ):
            gate.await_idle(lambda question: answer, {"limit_s": 60.0}, where="c")
