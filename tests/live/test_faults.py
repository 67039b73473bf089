"""
What `docs/faults.md` promises, each fault done to a real cluster or to the harness itself.

Every test ends with the same look: no cluster, no process, and no half-done trial is left.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from pathlib import Path

import pytest

from harness.clusters.local.cluster import LocalCluster
from harness.core.store import Store
from tests.live import bare_hosts, engine
from tests.live.endurance import kernel_objects, kills, seconds_until_nothing_is_left
from tests.live.open_clone import skip_where_closed
from tests.live.runs import (
    LIMIT_S,
    MIXED,
    PROGRAM,
    SMOKE,
    TWO_TRIALS,
    clusters,
    command,
    mapping,
    output,
    processes,
    settings,
    start,
    wait_for,
)

pytestmark = pytest.mark.live
long = pytest.mark.long

HERE = Path(__file__).parent


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """
    Settings of the harness under test, and of this process: both see the same clusters.
    """
    made = settings(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", made["XDG_STATE_HOME"])
    yield made
    assert clusters(made) == []
    assert processes(made) == []


@pytest.fixture
def results(tmp_path):
    """
    The results folder; nothing half-done lies in it at the end.
    """
    yield tmp_path / "results"
    assert list(tmp_path.glob("results/*/*/incoming/*")) == []


@pytest.fixture
def log(tmp_path):
    """
    Where a harness in the background talks.
    """
    return tmp_path / "log"


def the_cluster():
    """
    The one cluster that is up.
    """
    return LocalCluster.attach(LocalCluster.names()[0])


def contained(cluster, word, program=b""):
    """
    Process ids here of the cluster's processes whose command line holds *word*; its first part,
    with the zero behind it, ends with *program*.
    """
    observed = []
    for pid in cluster._state.processes():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            if word in line and line[: line.index(b"\0") + 1].endswith(program):
                observed.append(pid)
        except OSError:
            continue
    return observed


def of_node(cluster, number):
    """
    Process ids here of everything that runs on one node: daemons, masters, tasks.
    """
    first = cluster._state.supervisor()
    network = Path(f"/proc/{first.pid}/fd/{cluster._state.namespaces[number]['net']}").readlink()
    observed = []
    for pid in cluster._state.processes():
        try:
            if Path(f"/proc/{pid}/ns/net").readlink() == network:
                observed.append(pid)
        except OSError:
            continue
    return observed


def victims(cluster, fault):
    """
    Whom a fault kills: a daemon by its name, or all of a node.
    """
    return of_node(cluster, 1) if fault == "worker1" else [cluster.daemon_pids()[fault]]


def kill(pids):
    """
    End processes as the kernel's memory killer does.
    """
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def kept(results):
    """
    The trials of the newest run.
    """
    return Store(results).latest("smoke").trials().values()


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        pytest.param(
            "resourcemanager on master", ["resourcemanager on master"], id="resourcemanager"
        ),
        pytest.param(
            "nodemanager on worker1", ["nodemanager on worker1"], id="nodemanager", marks=long
        ),
        pytest.param("namenode on master", ["namenode on master"], id="namenode", marks=long),
        pytest.param(
            "worker1",
            ["datanode on worker1", "nodemanager on worker1"],
            id="whole-node",
            marks=long,
        ),
    ],
)
def test_a_killed_daemon_fails_its_trial_within_seconds(results, log, environment, fault, named):
    """
    Whatever Hadoop would make of it: the trial fails by name, a client that waits for the dead is
    ended, logs of daemon and containers are kept, and the other trials run on a new cluster.
    """
    process = start(log, environment, *command("run", results, *TWO_TRIALS, *MIXED))
    wait_for(lambda: mapping(results), process, log)

    kill(victims(the_cluster(), fault))
    killed_s = time.time()

    assert process.wait(timeout=LIMIT_S) == 6, log.read_text()
    (failed,) = [r for r in kept(results) if r.state != "done"]
    raw = Store(results).latest("smoke").raw(failed.trial.id)
    assert len(kept(results)) == 2
    assert all(name in failed.reason for name in named)
    assert "died" in failed.reason
    assert failed.finished_s - killed_s < 5.0
    assert {f"daemon-{name.replace(' ', '-')}.log" for name in named} <= set(raw.names())
    assert [n for n in raw.names() if n.startswith("containers/")]


@long
def test_a_daemon_that_hangs_fails_its_trial(results, log, environment):
    """
    Its process lives and answers nobody: within 20 s it is the reason, by its name; the cluster
    goes with it, and the other trial runs on a new one.
    """
    process = start(log, environment, *command("run", results, *TWO_TRIALS, *MIXED))
    wait_for(lambda: mapping(results), process, log)

    os.kill(the_cluster().daemon_pids()["namenode on master"], signal.SIGSTOP)
    stopped_s = time.time()

    assert process.wait(timeout=LIMIT_S) == 6, log.read_text()
    (failed,) = [r for r in kept(results) if r.state != "done"]
    assert len(kept(results)) == 2
    assert failed.reason == "namenode on master has not answered for 15 s during the trial"
    assert 10.0 < failed.finished_s - stopped_s < 23.0  # logs are saved until then


@long
def test_a_node_whose_network_is_lost(results, log, environment):
    """
    Its processes live and nobody hears them: the trial fails in bounded time, by the name of the
    node, and the other trials run on a new cluster.
    """
    process = start(log, environment, *command("run", results, "--set", "trial_limit=5 min"))
    wait_for(lambda: mapping(results), process, log)
    cluster = the_cluster()
    cut = cluster.hosts[1].run(["ip", "link", "set", "eth0", "down"])
    lost_s = time.time()

    assert (cluster.hosts[1].name, cut.status) == ("worker1", 0)
    assert process.wait(timeout=LIMIT_S) == 6, log.read_text()
    (failed,) = [r for r in kept(results) if r.state != "done"]
    assert len(kept(results)) == 3
    assert "nodemanager on worker1 was lost" in failed.reason
    assert failed.finished_s - lost_s < 300.0
    assert log.read_text().count("cluster: starting") == 2


@long
def test_ctrl_c_once_and_twice(results, log, environment):
    """
    Once: the job is ended, its logs are kept outside the trials, the cluster is down.  Twice: at
    once.  Pressed as on a terminal: all of the foreground gets it.
    """
    run = command("run", results, *TWO_TRIALS, "--on-error", "stop")
    process = start(log, environment, *run, start_new_session=True)
    wait_for(lambda: mapping(results), process, log)
    os.killpg(process.pid, signal.SIGINT)
    pressed_s = time.monotonic()

    assert process.wait(timeout=30) == 130
    assert time.monotonic() - pressed_s < 10
    (left,) = results.glob("smoke/*/retried/*")
    assert json.loads((left / "trial.json").read_text())["reason"] == "interrupted by the user"
    assert (left / "raw" / "client-0.log.gz").exists()
    assert list(left.glob("raw/containers/*/*/syslog.gz"))
    assert "Ctrl-C again stops at once" in log.read_text()
    assert "the same command resumes from there" in log.read_text()
    assert clusters(environment) == []

    process = start(log, environment, *run, start_new_session=True)
    wait_for(lambda: mapping(results), process, log)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    pressed_s = time.monotonic()

    assert process.wait(timeout=30) == 130
    assert time.monotonic() - pressed_s < 5
    assert len(kept(results)) == 0
    assert clusters(environment) == []


@long
def test_a_killed_task_is_no_clean_measurement(results, log, environment):
    """
    Hadoop runs a task again that the memory killer took, and its job is done: the trial fails all
    the same, with Hadoop's words; the cluster serves the next one.
    """
    process = start(log, environment, *command("run", results))
    tasks = wait_for(
        lambda: mapping(results) and contained(the_cluster(), b"YarnChild"), process, log
    )
    kill(tasks)

    assert process.wait(timeout=LIMIT_S) == 6, log.read_text()
    (failed,) = [r for r in kept(results) if r.state != "done"]
    assert "failed and was repeated" in failed.reason
    assert "137" in failed.reason
    assert log.read_text().count("cluster: starting") == 1


@long
def test_a_stuck_job_tells_its_threads(results, log, environment):
    """
    At its time limit a job's JVMs are asked what they do: daemons, application master, client.
    """
    run = command("run", results, "--on-error", "stop", "--set", "trial_limit=30 s")
    process = start(log, environment, *run)
    # The shell that starts a task has its words in its command line, too: stopped, it harms nobody.
    jvm = b"/java\0"
    observed = lambda: mapping(results) and contained(the_cluster(), b"YarnChild", jvm)  # noqa: E731
    tasks = wait_for(observed, process, log)
    for pid in tasks:
        os.kill(pid, signal.SIGSTOP)

    assert process.wait(timeout=LIMIT_S) == 5, log.read_text()
    (record,) = kept(results)
    raw = Store(results).latest("smoke").raw(record.trial.id)
    dumps = {n.removeprefix("threads/") for n in raw.names() if n.startswith("threads/")}
    assert record.state == "timed_out"
    assert "thread dumps of" in record.reason
    assert "raw/threads" in log.read_text()
    assert {
        "client.txt", "namenode-master.txt", "resourcemanager-master.txt",
        "historyserver-master.txt", "datanode-worker1.txt", "nodemanager-worker2.txt",
    } <= dumps  # fmt: skip
    assert [n for n in dumps if n.startswith("container_")]
    with raw.open("threads/client.txt") as lines:
        text = lines.read().decode()
    assert "Full thread dump" in text
    assert "waitForCompletion" in text or "monitorAndPrintJob" in text


@long
def test_a_full_file_system_fails_its_trials_and_the_run_goes_on(
    tmp_path, results, log, environment
):
    """
    DataNodes without room refuse the input in Hadoop's own words; the other cluster's trials are
    all measured.
    """
    full = tmp_path / "full.yaml"
    text = SMOKE.read_text().replace(
        "site: {dfs.blocksize: 4 MiB}",
        'site: {dfs.blocksize: 4 MiB, dfs.datanode.du.reserved: ["0", "1000 TiB"]}',
    )
    full.write_text(text.replace("../harness", str(HERE.parents[1] / "harness")))

    process = start(log, environment, *command("run", results, *MIXED, experiment=full))

    assert process.wait(timeout=LIMIT_S) == 6, log.read_text()
    by_room = {True: [], False: []}
    for record in kept(results):
        reserved = record.trial.cell.cluster.site["dfs.datanode.du.reserved"]
        by_room[reserved == "0"].append(record)
    assert [r.state for r in by_room[True]] == ["done"] * 3
    assert [r.state for r in by_room[False]] == ["failed"] * 3
    # The first is that of an input, the second of a job's jar, whichever is written first.
    refused = ("Failed to find datanode", "could only be written to 0 of the 1 minReplication")
    assert all(any(words in r.reason for words in refused) for r in by_room[False])
    assert log.read_text().count("cluster: starting") == 2


@long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_results_disk_ends_the_run_and_it_goes_on(tmp_path, environment):
    """
    Filled while a trial is measured: status 3, how much is free and what to do; nothing half is
    left, no trial is blamed; with room again the same command measures all.
    """
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", sys.executable, HERE / "full_disk.py", mount],
        env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)

    console = facts.pop("talk")
    assert facts == {
        "status": 3, "states": [], "incoming": [], "clusters": [],
        "status then": 0, "states then": ["done"] * 3,
    }  # fmt: skip
    assert "free" in console
    assert "fix: free some space there, and start the same command again" in console


@long
def test_two_harnesses_in_two_folders(tmp_path, environment):
    """
    They run at the same time, on clusters with other names, and do not touch each other.
    """
    logs = [tmp_path / f"log{n}" for n in range(2)]
    folders = [tmp_path / f"results{n}" for n in range(2)]
    both = [
        start(log, environment, *command("run", folder))
        for log, folder in zip(logs, folders, strict=True)
    ]
    wait_for(lambda: len(clusters(environment)) == 2, both[0], logs[0])

    assert [p.wait(timeout=LIMIT_S) for p in both] == [0, 0], [log.read_text() for log in logs]
    for folder in folders:
        assert [r.state for r in kept(folder)] == ["done"] * 3
        assert list(folder.glob("smoke/*/incoming")) == []


KILLED = """
import os, signal, sys
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.base.records.trial import ClusterSpec
LocalCluster("killed", ClusterSpec(workers=1), HadoopHome.find()).up()
if sys.argv[1] == "both":
    from harness.clusters.state import Owner
    os.kill(Owner.of("killed").watchdog.pid, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.alone  # it counts what the kernel has, of whomever
@pytest.mark.parametrize("network", ["namespaces", pytest.param("ports", marks=long)])
def test_nothing_is_left_of_a_killed_harness(network):
    """
    Nobody starts a command: processes, files, mounts and links of its cluster go by themselves.
    """
    if network == "ports":
        skip_where_closed()
    folder = Path(tempfile.mkdtemp(prefix="harness-live-"))
    folder.chmod(0o755)  # pytest's are closed to the account of daemons, without namespaces
    before, environment = kernel_objects(), settings(folder)
    if network == "ports":
        environment["HARNESS_LOCAL_NETWORK"] = "ports"
    done = subprocess.run([sys.executable, "-c", KILLED, "one"], env=environment, check=False)

    assert done.returncode == -signal.SIGKILL
    assert seconds_until_nothing_is_left(environment) < 90
    kinds, end = ("mounts", "links", "loop devices", "control groups"), time.monotonic() + 60
    # Somebody else's cluster may come and go meanwhile; what ours leaves would stay.
    while time.monotonic() < end:
        after = kernel_objects()
        if more := {kind: after[kind] for kind in kinds if after[kind] > before[kind]}:
            time.sleep(1)
        else:
            break
    shutil.rmtree(folder)
    assert not more


@long
@pytest.mark.parametrize(
    ("provider", "lacking"), [("docker", engine.missing), ("ansible", bare_hosts.lacking)]
)
def test_runs_that_are_killed_elsewhere(provider, lacking):
    """
    While the cluster starts, and in a trial: within 90 s nothing of it is left here, on the engine
    or on the hosts; started again the run ends as planned.
    """
    if reason := lacking():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="harness-live-") as folder:
        facts = kills(2, 4, Path(folder), provider)

    assert facts["kills"] == 2
    assert facts["left longer than 90 s"] == facts["done trials that were lost or changed"] == 0
    assert facts["trials as planned"]
    assert facts["trials done"] == facts["trials planned"]


@long
def test_supervisors_end_what_nobody_renews(environment):
    """
    Harness and watchdog killed: the processes end with the lease, the files by the next command.
    """
    subprocess.run([sys.executable, "-c", KILLED, "both"], env=environment, check=False)
    began, alive = time.monotonic(), len(processes(environment))
    while processes(environment) and time.monotonic() - began < 90:
        time.sleep(0.5)

    assert (alive > 0, processes(environment), clusters(environment)) == (True, [], ["killed"])
    output(environment, *PROGRAM, "cluster", "down", "--all")


@long
def test_killed_at_ten_random_moments(results, log, environment):
    """
    Started again each time, a run holds each planned trial once and whole; a trial that is done
    stays as it is; the run ends with its report.
    """
    run = command("all", results, "--set", "repeat=4")
    planned = json.loads(
        output(environment, *command("plan", results, "--set", "repeat=4", "--json"))
    )["trials"]
    moments, known = random.Random(4), {}

    for _ in range(10):
        process = start(log, environment, *run)
        time.sleep(moments.uniform(0.0, 18.0))
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGKILL)
        process.wait()
        files = {p.parent.name: p.read_bytes() for p in results.glob("smoke/*/trials/*/trial.json")}
        assert known.items() <= files.items()
        known = files
    output(environment, *run, limit_s=4 * LIMIT_S)

    (last,) = Store(results).runs("smoke")
    assert (
        known.items()
        <= {p.parent.name: p.read_bytes() for p in last.path.glob("trials/*/trial.json")}.items()
    )
    assert sorted(last.trials()) == sorted(t["id"] for t in planned)
    assert {r.state for r in last.trials().values()} == {"done"}
    assert all(last.has_trace(i) for i in last.trials())
    assert (last.path / "report.html").read_text().startswith("<!DOCTYPE html>")
