"""
An experiment on a real cluster: killed and continued, with a daemon lost, from file to report.
"""

import json
import os
import signal
import subprocess

import pytest

from harness.clusters.local.cluster import LocalCluster
from harness.store import Store
from tests.live.runs import LIMIT_S, clusters, command, mapping, output, settings, start, wait_for

pytestmark = pytest.mark.live


@pytest.fixture
def environment(tmp_path):
    """
    Settings under which a harness keeps its clusters apart from all others.
    """
    return settings(tmp_path)


def kill_when(what, log, environment, *arguments):
    """
    Start a harness and kill it, and nothing else, as soon as *what* is true.
    """
    process = start(log, environment, *arguments)
    wait_for(what, process, log)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_run_killed_three_times_ends_with_the_planned_trials(tmp_path, environment):
    """
    Killed while the cluster starts, within a trial, and between trials, and started again each
    time, a run holds every planned trial once, its report, and no cluster; its seal is checked.
    """
    results, log = tmp_path / "results", tmp_path / "log"
    planned = json.loads(output(environment, *command("plan", results, "--json")))["trials"]
    run = command("all", results)

    kill_when(lambda: clusters(environment), log, environment, *run)
    kill_when(
        lambda: list(results.glob("smoke/*/incoming/*/raw/client-0.log")), log, environment, *run
    )
    kill_when(lambda: list(results.glob("smoke/*/trials/*/trial.json")), log, environment, *run)
    output(environment, *run)

    runs = Store(results).runs("smoke")
    held = runs[-1].trials()
    assert len(runs) == 1
    assert sorted(held) == sorted(t["id"] for t in planned)
    assert {r.state for r in held.values()} == {"done"}
    assert all(runs[0].has_trace(i) for i in held)
    assert (runs[0].path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert clusters(environment) == []

    sealed = runs[0].path / "predictions" / "whatif.jsonl"
    sealed.write_bytes(sealed.read_bytes() + b"\n")
    refused = subprocess.run(
        command("score", results), capture_output=True, text=True, env=environment, check=False
    )
    assert refused.returncode == 7
    assert "whatif.jsonl" in refused.stderr


@pytest.mark.long
def test_a_lost_daemon_fails_its_trial_and_the_run_goes_on(tmp_path, environment, monkeypatch):
    """
    A DataNode that is killed during a job fails that trial with its name as the reason; the
    cluster is made anew, the other trials end well, and the command says partial: status 6.
    """
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    results, log = tmp_path / "results", tmp_path / "log"
    process = start(log, environment, *command("run", results))

    wait_for(lambda: mapping(results), process, log)
    cluster = LocalCluster.attach(LocalCluster.names()[0])
    os.kill(cluster.daemon_pids()["datanode on worker1"], signal.SIGKILL)

    assert process.wait(timeout=LIMIT_S) == 6, log.read_text()
    records = Store(results).latest("smoke").trials().values()
    failed = [r for r in records if r.state != "done"]
    assert len(records) == 3
    assert [r.reason for r in failed] == ["datanode on worker1 died during the job"]
    assert clusters(environment) == []
