"""
Tests for `harness.core.run.rates`: what a run's manifest has of its nodes, measured once.
"""

from types import SimpleNamespace

import pytest

from harness.core.run.rates import record_rates
from tests.monitor.test_rates import PRINTED, READ, make_host


def make_cluster(worker, *, limited=()):
    """
    A cluster of that one worker, whose disk may be *limited*.
    """
    return SimpleNamespace(
        hosts=("master", worker) if worker else (), disk_bytes=lambda: dict.fromkeys(limited),
        java_on=lambda host: "java", host_path=lambda host, path: str(path),
    )  # fmt: skip


class TestRecord:
    @pytest.mark.process
    @pytest.mark.parametrize(("limited", "part"), [((), ""), (("worker1",), "/data")])
    def test_once_in_a_run_where_the_daemons_write(self, run, tmp_path, limited, part):
        """
        A limited disk is a part of the node's folder; what is known is not measured again.
        """
        report = f"printf '%s' \"$0 $*\" > {tmp_path}/argv; printf '{PRINTED}'"
        cluster = make_cluster(make_host(tmp_path, ["sh", "-c", report]), limited=limited)
        record_rates(run, cluster, pytest.fail)
        (tmp_path / "argv").rename(tmp_path / "first")
        record_rates(run, cluster, pytest.fail)

        assert run.read_manifest().rates == {"worker1": READ}
        assert (tmp_path / "first").read_text().endswith(f" {tmp_path}{part}")
        assert not (tmp_path / "argv").exists()

    @pytest.mark.process
    def test_a_failure_is_a_warning(self, run, tmp_path):
        """
        And a run without rates.
        """
        messages = []
        record_rates(run, make_cluster(make_host(tmp_path, ["false"])), messages.append)

        assert messages == ["warning: the rates of worker1 cannot be measured: it wrote nothing"]
        assert run.read_manifest().rates == {}

    def test_nodes_that_cannot_be_reached(self, run):
        """
        A warning, too.
        """
        messages = []
        record_rates(run, make_cluster(None), messages.append)

        assert messages == [
            "warning: rates are not measured: the cluster's nodes cannot be reached from here"
        ]
