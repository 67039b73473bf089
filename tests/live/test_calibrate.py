"""
A calibration on a real cluster: what it measures without a job, and what its jobs say.

Nothing here is compared with a clock alone: a busy machine is slower.
"""

import json

import pytest

from harness.base.units import MIB
from harness.cli import main
from harness.core.run.session import Session
from harness.hardware.calibrate import TEXT, Calibration
from tests.run.fakes import RecordingConsole

pytestmark = [pytest.mark.live]
CLUSTER = "{provider: local, workers: 2, site: {dfs.blocksize: 32 MiB}}"
RATES = {"local_write_s_per_byte", "hdfs_write_s_per_byte", "hdfs_copy_s_per_byte"}
RATES |= {"network_s_per_byte"}


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """
    A state folder of the test's own.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_a_budget_that_is_spent_gives_what_is_measured_without_a_job(tmp_path):
    """
    Rates of all nodes, and start-up by the two jobs that only start: no other one fits.
    """
    session = Session(
        TEXT.format(cluster=CLUSTER), "calibrate", tmp_path / "results", (), RecordingConsole()
    )

    run, hardware = Calibration(session, budget_s=1.0).measure()

    assert {record.trial.cell.workload.name for record in run.trials().values()} == {"sleep"}
    assert run.read_manifest().micro.keys() == {"worker1", "worker2"}
    assert {name for name, cost in hardware.costs.items() if cost.micro} == RATES
    assert hardware.frame["job_start_s"].value > 0
    assert hardware.conditions["cluster.workers"] == 2


@pytest.mark.long
@pytest.mark.alone
def test_a_slow_disk_is_what_it_was_limited_to_and_not_this_machine(tmp_path, capsys, monkeypatch):
    """
    In three minutes; its file holds on a disk of that kind, and has moved on another.
    """
    monkeypatch.chdir(tmp_path)
    slow = ["--set", "cluster.node.disk=10 MiB/s"]

    assert main(["calibrate", *slow, "--budget", "3m", "-o", "slow.json"]) == 0
    costs = json.loads((tmp_path / "slow.json").read_text())["costs"]
    capsys.readouterr()

    assert costs["local_write_s_per_byte"]["micro"] == pytest.approx(1 / (10 * MIB), rel=0.15)
    assert costs["local_write_s_per_byte"]["value"] > 0.5 / (10 * MIB)
    assert main(["calibrate", "--check", "slow.json", *slow, "--json"]) == 0
    there = json.loads(capsys.readouterr().out)["costs"]
    assert main(["calibrate", "--check", "slow.json", "--json"]) == 1
    here = json.loads(capsys.readouterr().out)["costs"]
    assert "moved" not in {each["verdict"] for each in there}
    assert "moved" in {each["verdict"] for each in here}
