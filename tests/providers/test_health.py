"""
Tests for `harness.clusters.masters`: missing daemons, as far as masters know them.
"""

from types import SimpleNamespace

import pytest

from harness.base.errors import ClusterError
from harness.clusters import masters

NN = "namenode on m"
DN = "datanode on w"
RM = "resourcemanager on m"
NM = "nodemanager on w"


@pytest.mark.parametrize(
    ("missing", "reported"),
    [
        ([], []),
        ([NM], [NM]),
        ([DN, NM], [DN, NM]),
        ([NN, DN, "historyserver on m"], [NN]),
        ([RM, NM, DN], [RM, DN]),
    ],
)
def test_missing_daemons(missing, reported):
    """
    While a master does not answer, nothing is known of the daemons that only it knows.
    """
    requests = []

    def check(request):
        requests.append(request)
        return {"ok": not missing, "missing": missing, "died": []}

    assert masters.missing_daemons(check, {"services": {}}) == reported
    assert requests == [{"until": "healthy", "services": {}, "limit_s": 0.0}]


def test_a_cluster_that_is_gone_has_no_missing_daemons():
    """
    That it is gone is reported elsewhere.
    """
    assert masters.missing_daemons(lambda _: {}, {}) == []


def health_error(answer):
    """
    The error of a health check for *answer*.
    """
    logs = {"datanode on worker1": "the last line", "namenode on master": "another line"}
    with pytest.raises(ClusterError) as raised:
        masters.await_healthy(
            lambda request: answer, {"limit_s": 180.0}, where="cluster 'c'", log=logs.__getitem__
        )
    return str(raised.value)


class TestAwait:
    def test_a_daemon_that_does_not_answer_is_named_with_its_log(self):
        """
        Who, how long, where, and the last lines of the first of them.
        """
        message = health_error(
            {"ok": False, "missing": ["datanode on worker1", "namenode on master"]}
        )

        assert "no datanode on worker1, namenode on master after 180 s" in message
        assert "the last line" in message
        assert "cluster 'c'" in message

    def test_dead_daemons_are_named_first(self):
        """
        The dead daemon is the reason, whoever else is silent because of it.
        """
        died = {"datanode-worker1": "died", "datanode-worker2": "has not answered for 15 s"}
        message = health_error({"died": died, "missing": ["namenode on master"]})

        assert message.startswith(
            "datanode on worker1 died, datanode on worker2 has not answered for 15 s at start\n"
            "the last line"
        )

    def test_many_missing_daemons_are_counted(self):
        """
        A message stays readable with two hundred workers.
        """
        message = health_error({"missing": ["datanode on worker1", *[f"d{i}" for i in range(9)]]})

        assert "d0, d1, d2 and 6 more" in message

    def test_a_cluster_that_is_gone_gives_no_answer(self):
        """
        The waiter died with the cluster; nobody has waited for it to the end.
        """
        assert health_error({}).startswith("the cluster was gone after 0 s")

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            ({"missing": "datanode"}, "no answer after 180 s"),
            ({"missing": ["\x1b[2Jx", 7, {}]}, r"no \x1b[2Jx, 7, {} after 180 s"),
            ({"died": {"a-b": ["x\n"]}, "ok": "yes"}, r"a on b ['x\n'] at start"),
            ({"died": ["a-b"], "ok": "yes"}, "no answer after 180 s"),
            ({"missing": ["x" * 10**6] * 5000}, f"no {'x' * 77}..., {'x' * 77}"),
        ],
    )
    def test_invalid_answers_are_errors(self, answer, message):
        """
        What it names is shown short and safe; its log is asked for by our own names.
        """
        with pytest.raises(ClusterError) as raised:
            masters.await_healthy(
                lambda request: answer, {"limit_s": 180.0}, where="c", log=lambda name: ""
            )

        assert raised.value.what.startswith(message)
        assert len(raised.value.what) < 1000

    def test_a_check_that_does_not_end_is_an_error(self, monkeypatch):
        """
        The time is over, and nothing came back.
        """
        times = iter((0.0, 240.0))
        monkeypatch.setattr(masters, "time", SimpleNamespace(monotonic=lambda: next(times)))

        assert health_error({}).startswith("no answer after 180 s")

    def test_not_idle(self):
        """
        What still runs is named, after as long as was waited.
        """
        died = {"nodemanager-worker2": "died"}
        answer = {"ok": False, "missing": ["1 appsRunning"], "died": died}
        with pytest.raises(
            ClusterError,
            match=r"not idle after 0 s: nodemanager on worker2 died, 1 appsRunning",
        ):
            masters.await_idle(lambda request: answer, {"limit_s": 60.0}, where="c")
