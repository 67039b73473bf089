"""
A whole experiment on a cluster that runs already: one of our own in its place.
"""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from harness.base.errors import ClusterError
from harness.base.records.trial import ClusterSpec
from harness.catalog.catalog import Catalog
from harness.clusters.existing.cluster import ExistingCluster
from harness.clusters.hadoop_home.home import HadoopHome
from harness.core.evaluate.laws import broken_laws
from harness.core.store import Store
from harness.hardware.transfer import read_hardware
from tests.catalog.test_places import assert_equal
from tests.live.foreign import another_hadoop, client_environment, foreign_cluster, state_of
from tests.live.runs import (
    PROGRAM,
    PROJECT,
    clusters,
    command,
    mapping,
    output,
    settings,
    start,
    wait_for,
)

pytestmark = pytest.mark.live
long = pytest.mark.long
LIMIT_S = 1200
PATIENCE_S = 90.0
OLDER = "3.4.3"


@pytest.fixture(params=["on its nodes", "in HDFS"])
def foreign(request, tmp_path, monkeypatch):
    """
    A cluster that keeps the logs of its containers here or there.
    """
    gathered = {"yarn.log-aggregation-enable": str(request.param == "in HDFS").lower()}
    with foreign_cluster(monkeypatch, 2, **gathered) as cluster:
        before = state_of(cluster)
        yield cluster
        assert state_of(cluster) == before


@long
def test_an_experiment_from_end_to_end(foreign, tmp_path):
    """
    With one line changed: a report, all logs, all limitations, and nothing left there.
    """
    environment = {**settings(tmp_path), **client_environment(foreign)}
    more = ["--set", "cluster.provider=existing", "--set", "trial_limit=10 min"]
    results = tmp_path / "results"
    done = subprocess.run(
        command("all", results, *more), env=environment, cwd=PROJECT, timeout=LIMIT_S,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    run = Store(results).latest("smoke")
    assert broken_laws(run) == []
    for trial in run.trials():
        names = run.raw(trial).names()
        assert "job-0-history.jhist" in names
        assert sum(name.endswith("/syslog") for name in names) >= 3, names
        assert sum(name.endswith("/syslog.shuffle") for name in names) == 1
    limitations = json.loads((run.path / "manifest.json").read_text())["limitations"]
    assert any("tasks are not traced" in text for text in limitations)
    assert "tasks are not traced" in (run.path / "report.html").read_text()
    assert clusters(environment) == []
    compare_histories(foreign, environment, tmp_path)


@long
def test_a_calibration_by_logs(tmp_path, monkeypatch):
    """
    What jobs and their logs tell of a cluster on whose nodes there is nothing of ours: start-up,
    HDFS by files, and nothing that needs a recording or a connection.
    """
    with foreign_cluster(monkeypatch, 3) as foreign:
        before = state_of(foreign)
        environment = {**settings(tmp_path), **client_environment(foreign)}
        file = tmp_path / "hardware.json"
        output(environment, *PROGRAM, "calibrate", "--provider", "existing", "--budget", "3m",
               "--results-dir", str(tmp_path / "results"), "-o", str(file))  # fmt: skip
        assert state_of(foreign) == before

    hardware = read_hardware(file)
    assert hardware.conditions["tracing"] == "logs"
    assert hardware.spent_s < 220
    assert hardware.frame["job_start_s"].value > 0
    assert {cost.micro for cost in hardware.costs.values()} == {None}
    assert hardware.costs.keys() & {"network_s_per_byte", "hdfs_write_s_per_file"}
    assert hardware.costs.keys().isdisjoint({"hdfs_read_s_per_record", "serde_s_per_byte"})


def compare_histories(foreign, environment, folder):
    """
    The catalog has the same of its jobs by HDFS and by its history server, but for what that does
    not say.
    """
    rows = []
    for place in ("hdfs:/history", foreign.endpoints["historyserver"]):
        catalog = folder / place.partition(":")[0]
        output(environment, *PROGRAM, "catalog", "add", place, "--catalog", str(catalog))
        ids = Catalog(catalog).table()["job_id"].to_pylist()
        rows.append({job_id: Catalog(catalog).read_job(job_id) for job_id in ids})

    by_files, by_server = rows
    assert by_files.keys() == by_server.keys()
    for job_id, row in by_files.items():
        assert_equal(by_server[job_id], row)


@long
def test_a_cluster_of_another_hadoop(tmp_path, monkeypatch):
    """
    Its daemons and tasks are an older release: all trials are done by a client of own_version, and
    manifest and report name that release and the limitations of such a cluster.
    """
    home, own_version = another_hadoop(OLDER), HadoopHome.find().versions().hadoop
    results = tmp_path / "results"
    with foreign_cluster(monkeypatch, 2, home) as foreign:
        before = state_of(foreign)
        environment = {**settings(tmp_path), **client_environment(foreign)}
        more = ["--set", "cluster.provider=existing", "--set", "trial_limit=10 min"]
        done = subprocess.run(
            command("all", results, *more, "--set", "trace=logs"), env=environment, cwd=PROJECT,
            timeout=LIMIT_S, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert state_of(foreign) == before

    assert done.returncode == 0, done.stderr
    run = Store(results).latest("smoke")
    assert broken_laws(run) == []
    manifest = json.loads((run.path / "manifest.json").read_text())
    lost, report = " | ".join(manifest["limitations"]), (run.path / "report.md").read_text()
    assert [(r.state, r.versions.hadoop) for r in run.trials().values()] == [("done", OLDER)] * 3
    assert manifest["nodes"]["hadoop"] == manifest["versions"]["hadoop"] == OLDER
    assert f"Hadoop {OLDER} runs there, as trials say; the client is {own_version}" in lost
    assert "tasks are not traced" in lost
    assert class_paths(run) == {f"{home.path_jar}"}
    assert [text for text in manifest["limitations"] if text not in report] == []


def class_paths(run):
    """
    The jars from which tasks and masters of a run loaded Hadoop's classes.
    """
    jars = set()
    for trial in run.trials():
        raw = run.raw(trial)
        for name in raw.names():
            if name.endswith("/syslog"):
                with raw.open(name) as lines:
                    jars |= set(re.findall(rb"[^: ]*/path[^/:]*[.]jar", lines.read()))
    return {path.decode() for path in jars}


@long
@pytest.mark.parametrize(
    ("daemon", "died", "end", "left"),
    [
        ("nodemanager on worker1", r"nodemanager on localhost:\d+ died", "1 nodes run there", 0),
        (
            "resourcemanager on master",
            "resourcemanager on localhost died",
            "are still there: no ans",
            1,
        ),
    ],
)
def test_a_daemon_that_is_lost_in_a_trial(  # noqa: PLR0917 - two of them are fixtures
    tmp_path, monkeypatch, daemon, died, end, left
):
    """
    A trial fails with the daemon's name; as nobody here can start it again, the run ends.
    What cannot be cleaned up, because nobody answers, is left for the next command.
    """
    results, log = tmp_path / "results", tmp_path / "log"
    with foreign_cluster(monkeypatch, 2) as foreign:
        environment = {**settings(tmp_path), **client_environment(foreign)}
        more = ["--set", "cluster.provider=existing", "--set", "trial_limit=10 min"]
        process = start(log, environment, *command("run", results, *more))
        wait_for(lambda: mapping(results), process, log)
        os.kill(foreign.daemon_pids()[daemon], signal.SIGKILL)

        assert process.wait(timeout=LIMIT_S) == 4, log.read_text()
        records = list(Store(results).latest("smoke").trials().values())
        # a short job may be over, an attempt made up for, before the cluster misses the daemon
        assert {r.state for r in records} == {"failed"}
        assert any(re.match(died, r.reason) for r in records)
        assert end in log.read_text()
        assert len(clusters(environment)) == left


def test_daemons_that_are_lost_are_named(tmp_path, monkeypatch):
    """
    A NodeManager once Hadoop gives it up, the ResourceManager at once; what is left there, because
    nobody answers, is named with the command that takes it away later.
    """
    named = []
    with foreign_cluster(monkeypatch, 1) as foreign:
        for variable, value in client_environment(foreign).items():
            monkeypatch.setenv(variable, value)
        cluster = ExistingCluster(
            "lost", ClusterSpec(provider="existing", workers=1), HadoopHome.find()
        )
        cluster.up()
        pids, deadline = foreign.daemon_pids(), time.monotonic() + PATIENCE_S
        for daemon in ("nodemanager on worker1", "resourcemanager on master"):
            before = cluster.dead_daemons()
            os.kill(pids[daemon], signal.SIGKILL)
            while (lost := cluster.dead_daemons()) == before and time.monotonic() < deadline:
                time.sleep(0.2)
            named += [re.sub(r":\d+", "", name) for name in lost]

        with pytest.raises(ClusterError, match="are still there") as left:
            cluster.down()
    assert named == ["nodemanager on localhost", "resourcemanager on localhost"]
    assert "harness cluster down --name lost, when the cluster answers again" in left.value.fix
