"""
Tests for `harness.clusters.node.evidence`: a small JVM that waits for ever.
"""

import os
import signal
import subprocess
import time

from pathlib import Path

import pytest

from harness.clusters.hadoop_home.home import find_java
from harness.clusters.node import evidence

pytestmark = pytest.mark.process

CONTAINER = "container_1700000000000_0001_01_000002"
STUCK = """
class Stuck {
    public static void main(String[] a) throws Exception {
        Thread.currentThread().setName("stuck-for-ever");
        System.out.println("ready");
        Thread.sleep(600_000);
    }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """
    The compiled class, in its folder.
    """
    folder = tmp_path_factory.mktemp("stuck")
    (folder / "Stuck.java").write_text(STUCK)
    compiler = find_java().home / "bin" / "javac"
    subprocess.run([compiler, "Stuck.java"], cwd=folder, check=True)
    return folder


@pytest.fixture
def start(program):
    """
    Starts JVMs, each with its output in a file.
    """
    started = []

    def start(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        argv = [find_java().launcher, "-Xmx16m", "-Xshare:auto", "-cp", str(program), "Stuck"]
        with output.open("wb") as out:
            started.append(subprocess.Popen(argv, stdout=out, stderr=out))
        deadline = time.monotonic() + 60
        while b"ready" not in output.read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def stop(pid):
    """
    Stop a process, and return when each of its threads stands.
    """
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 60
    tasks = Path(f"/proc/{pid}/task")
    while any(") T " not in (task / "stat").read_text() for task in tasks.iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_tells_what_each_thread_does(start, tmp_path):
    """
    The dump of a JVM that sleeps shows where, in a file of its own; the JVM lives on.
    """
    pid = start(tmp_path / "logs" / CONTAINER / "stdout")
    into = tmp_path / "threads"

    (dumped,) = evidence.dump_threads(evidence.find_jvms([pid], {}), into)

    text = dumped.read_text()
    assert dumped == into / f"{CONTAINER}.txt"
    assert text.startswith("2")
    assert '"stuck-for-ever"' in text
    assert "at Stuck.main" in text
    assert "ready" not in text
    os.kill(pid, 0)


def test_who_does_not_answer_is_not_waited_for(start, tmp_path):
    """
    A stopped JVM has no file, and costs the limit.
    """
    pid = start(tmp_path / "out")
    stop(pid)
    started_s = time.monotonic()

    assert evidence.dump_threads({"client": pid}, tmp_path / "threads", limit_s=0.3) == []

    assert 0.3 <= time.monotonic() - started_s < 60.0  # a loaded machine takes seconds


def test_who_has_ended_is_left_out(tmp_path):
    """
    A process may end between being found and being asked.
    """
    ended = subprocess.Popen(["true"])
    ended.wait()

    assert evidence.dump_threads({"client": ended.pid}, tmp_path, limit_s=1.0) == []


def test_names(start, tmp_path):
    """
    Daemons by their name, tasks by their container, clients by a number; others are no JVMs.
    """
    task = start(tmp_path / CONTAINER / "stdout")
    daemon, one, two = (start(tmp_path / f"{n}.log") for n in ("daemon", "one", "two"))
    other = subprocess.Popen(["sleep", "60"])
    try:
        pids = [task, daemon, one, two, other.pid]
        named = evidence.find_jvms(pids, {daemon: "datanode-worker1"})
    finally:
        other.kill()
        other.wait()

    assert set(named) == {CONTAINER, "datanode-worker1", "client", "client-2"}
    assert (named[CONTAINER], named["datanode-worker1"]) == (task, daemon)
    assert {named["client"], named["client-2"]} == {one, two}
