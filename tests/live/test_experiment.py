"""
An experiment on a real cluster: killed and continued, with a daemon lost, from file to report.
"""

import hashlib
import json
import os
import signal
import subprocess
import tempfile

from pathlib import Path

import pytest

from harness.clusters.local.cluster import LocalCluster
from harness.core.store import Store
from tests.live.open_clone import skip_where_closed
from tests.live.runs import (
    LIMIT_S,
    PROGRAM,
    TWO_TRIALS,
    clusters,
    command,
    mapping,
    output,
    settings,
    start,
    wait_for,
)

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """
    Settings under which a harness keeps its clusters apart from all others.
    """
    return settings(tmp_path_factory.mktemp("harness"))


@pytest.fixture(scope="module")
def killed(environment, tmp_path_factory):
    """
    Where results are of a run that was killed while its cluster started, within a trial, and
    between trials, and started again each time.
    """
    folder = tmp_path_factory.mktemp("killed")
    results, log = folder / "results", folder / "log"
    run = command("all", results, *TWO_TRIALS)
    starts = (
        lambda: clusters(environment),
        lambda: list(results.glob("smoke/*/incoming/*/raw/client-0.log")),
        lambda: list(results.glob("smoke/*/trials/*/trial.json")),
    )
    for when in starts:
        kill_when(when, log, environment, *run)
    output(environment, *run)
    return results


@pytest.fixture
def open_environment():
    """
    The same, in a folder that the account of daemons may enter: pytest's are closed to it.
    """
    with tempfile.TemporaryDirectory(prefix="harness-live-") as folder:
        Path(folder).chmod(0o755)
        yield settings(Path(folder))


def kill_when(what, log, environment, *arguments):
    """
    Start a harness and kill it, and nothing else, as soon as *what* is true.
    """
    process = start(log, environment, *arguments)
    wait_for(what, process, log)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_run_killed_three_times_ends_with_the_planned_trials(killed, environment):
    """
    It holds every planned trial once, its report, and no cluster; it is blind, as Hadoop's own
    files say, and comes out the same once more; its seal is checked.
    """
    results = killed
    plan = command("plan", results, *TWO_TRIALS, "--json")
    planned = json.loads(output(environment, *plan))["trials"]

    runs = Store(results).runs("smoke")
    kept = runs[-1].trials()
    assert len(runs) == 1
    assert sorted(kept) == sorted(t["id"] for t in planned)
    assert {r.state for r in kept.values()} == {"done"}
    assert all(runs[0].has_trace(i) for i in kept)
    assert (runs[0].path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert clusters(environment) == []

    output(environment, *command("score", results, *TWO_TRIALS, "--strict"))
    output(environment, *PROGRAM, "reproduce", str(runs[0].path))
    (scored,) = (i for i, record in kept.items() if not record.trial.profiling)
    seal = hashlib.sha256((runs[0].path / "predictions/sealed.json").read_bytes()).hexdigest()
    conf = runs[0].raw(scored).open("job-0-conf.xml").read().decode()
    assert f"<name>harness.seal</name><value>{seal}</value>" in conf

    sealed = runs[0].path / "predictions" / "whatif.jsonl"
    whole = sealed.read_bytes()
    sealed.write_bytes(whole + b"\n")
    refused = subprocess.run(
        command("score", results, *TWO_TRIALS),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert refused.returncode == 7
    assert "whatif.jsonl" in refused.stderr
    sealed.write_bytes(whole)


def test_a_proposal_is_tried_beside_the_cell_that_it_should_beat(killed, environment):
    """
    The closed loop of tuning: one step, its prediction sealed before its six trials, which are
    blind; its maps and reduces are as many as the proposal says.
    """
    (run,) = Store(killed).runs("smoke")
    tune = [*PROGRAM, "tune", str(run.path), "--results-dir", str(killed), "--try", "1"]
    answer = json.loads(output(environment, *tune, "--json"))

    (step,) = answer["steps"]
    tried = Store(killed).latest("tune-wordcount")
    assert str(tried.path) == step["run"]
    output(environment, *PROGRAM, "score", str(tried.path), "--strict")
    records = tried.trials().values()
    assert {record.state for record in records} == {"done"}
    cells = {record.trial.cell.id for record in records}
    assert len(records) == 2 * len(cells)
    assert len(cells) == 3  # its own, the proposal, Hadoop's defaults
    assert answer["speed_up"]["low"] <= answer["speed_up"]["value"] <= answer["speed_up"]["high"]
    for record in records:
        (job,) = tried.read_trace(record.trial.id)
        assert str(job.num_reduces) == record.trial.cell.configuration["mapreduce.job.reduces"]
    assert clusters(environment) == []


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
    assert [r.reason for r in failed] == ["datanode on worker1 died during the trial"]
    assert clusters(environment) == []


# A container without rights has it so: its root may make no namespaces.
REFUSED = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
TINY = """\
schema: 1
name: smoke
question: What does a cluster without namespaces say?
cluster:
  workers: 1
  node: {map_slots: 1, reduce_slots: 1, task_memory: 512 MiB}
workloads: [{name: wordcount, input: [1 MiB, 2 MiB]}]
configuration: {mapreduce.job.reduces: 1}
repeat: 1
warmup: 0
predict: {models: [whatif], profile_on: {input: 1 MiB}}
"""


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up a right of its own")
def test_a_machine_that_refuses_namespaces(tmp_path, open_environment):
    """
    The experiment runs on ports of the loopback address, and run, manifest and both reports say
    why, and what such a cluster cannot show: locality, and what a network costs.
    """
    skip_where_closed()
    experiment, results = tmp_path / "smoke.yaml", tmp_path / "results"
    experiment.write_text(TINY)
    argv = [*REFUSED, *command("all", results, experiment=experiment)]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=open_environment, timeout=LIMIT_S, check=False
    )

    assert done.returncode == 0, done.stderr
    run = Store(results).latest("smoke")
    limitations = json.loads((run.path / "manifest.json").read_text())["limitations"]
    written = (run.path / "report.md").read_text()
    reported = json.loads((run.path / "report.json").read_text())
    assert [r.state for r in run.trials().values()] == ["done"] * 2
    assert limitations[0].startswith("no namespaces: this machine refuses namespaces")
    assert any("locality means nothing" in limitation for limitation in limitations)
    assert any("no byte crosses a network" in limitation for limitation in limitations)
    assert [
        limitation for limitation in limitations if f"warning: {limitation}" not in done.stderr
    ] == []
    assert [limitation for limitation in limitations if limitation not in written] == []
    assert reported["manifest"]["limitations"] == limitations
    assert {f"The cluster: {limitation}." for limitation in limitations} <= set(
        reported["answer"]["caveats"]
    )
    assert clusters(open_environment) == []
