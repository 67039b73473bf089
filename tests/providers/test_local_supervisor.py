"""
Tests for `harness.clusters.local.supervisor`, and for the supervisor of a cluster without
namespaces.

Its daemons are shells whose children run away from them, as containers do.
"""

import json
import os
import signal
import subprocess
import time

from contextlib import suppress
from pathlib import Path

import pytest

from harness.clusters import state
from harness.clusters.node.processes import descendants_of, parents
from tests.node_agent import node_agent

pytestmark = pytest.mark.process

PATIENCE_S = 60.0
# A child, one that has left its session, and one whose parent has ended.
DAEMON = 'sleep 600 & setsid sleep 600 & (sleep 600 &); touch "$1"; wait'


@pytest.fixture
def guard_process(tmp_path):
    """
    A holder without namespaces and with two daemons, which run; whatever it left is ended.
    """
    os.mkfifo(tmp_path / "control")
    (tmp_path / "daemons").mkdir()
    (tmp_path / "conf" / "x").mkdir(parents=True)
    marked = {"PATH": os.environ["PATH"], "HADOOP_CONF_DIR": f"{tmp_path}/conf/x"}
    daemons = [
        {
            "key": key, "node": 0, "argv": ["/bin/sh", "-c", DAEMON, "sh", str(tmp_path / key)],
            "env": marked, "cwd": str(tmp_path), "log": str(tmp_path / f"{key}.log"),
            "at_once": True,
        }
        for key in ("one", "two")
    ]  # fmt: skip
    plan = {
        "flat": True, "nodes": [{"name": "x"}], "daemons": daemons,
        "control": str(tmp_path / "control"),
        "deaths": str(tmp_path / "deaths"), "daemons_folder": str(tmp_path / "daemons"),
    }  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    argv = node_agent("supervise-cluster", tmp_path / "plan.json")
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as guard:
        try:
            guard.stdin.write(b"go\n")
            guard.stdin.close()
            assert json.loads(guard.stdout.readline()) == []
            assert until(lambda: all((tmp_path / key).exists() for key in ("one", "two")))
            yield guard
        finally:
            for pid in [guard.pid, *sleepers(tmp_path)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def sleepers(folder):
    """
    Processes of the daemons that run.
    """
    return [process.pid for process in state.stray_processes(folder)]


def pid_files(folder):
    """
    What the supervisor has written of its daemons' numbers.
    """
    return [file.read_text() for file in (folder / "daemons").glob("[a-z]*")]


def children(pid):
    """
    Processes whose parent is *pid*.
    """
    return [child for child, parent in parents().items() if parent == pid]


def until(condition):
    """
    The condition's first true value.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


class TestHolder:
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    @pytest.mark.parametrize("victim", ["guard", "supervisor"])
    def test_whoever_of_the_two_ends_nothing_is_left(self, guard_process, tmp_path, victim, number):
        """
        Children, those that left their session, orphans: the other of the two ends them all.
        """
        assert until(lambda: len(sleepers(tmp_path)) == 8)
        (supervisor_id,) = children(guard_process.pid)
        os.kill(guard_process.pid if victim == "guard" else supervisor_id, number)

        assert until(lambda: not sleepers(tmp_path))
        assert until(lambda: guard_process.poll() is not None)
        assert until(lambda: not Path(f"/proc/{supervisor_id}").exists())

    def test_nobody_answers_for_a_supervisor_that_is_gone(self, guard_process, tmp_path):
        """
        Both killed at once, nobody is left to end what asks the kernel about connections.
        """
        (supervisor_id,) = children(guard_process.pid)
        known = {*sleepers(tmp_path), *map(int, pid_files(tmp_path))}
        assert until((tmp_path / "conf" / "x" / "peers").exists)
        answering = [child for child in children(supervisor_id) if child not in known]
        os.kill(guard_process.pid, signal.SIGSTOP)
        os.kill(supervisor_id, signal.SIGKILL)
        os.kill(guard_process.pid, signal.SIGKILL)

        assert len(answering) == 1
        assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in answering))

    def test_orphans_belong_to_the_cluster(self, guard_process, tmp_path):
        """
        They are below the supervisor, wherever their parents have gone.
        """
        assert set(sleepers(tmp_path)) <= set(descendants_of(*children(guard_process.pid)))

    def test_a_death_is_written_down(self, guard_process, tmp_path):
        """
        As in a cluster with namespaces; it lives on though nobody reads its standard output.
        """
        guard_process.stdout.close()
        first_file = tmp_path / "daemons" / "one"
        second_file = tmp_path / "daemons" / "two"
        assert until(lambda: first_file.exists() and second_file.exists())
        os.kill(int(second_file.read_text()), signal.SIGKILL)

        assert until((tmp_path / "deaths").exists)
        assert json.loads((tmp_path / "deaths").read_text()) == {"key": "two", "status": -9}
        assert guard_process.poll() is None
        os.kill(int(first_file.read_text()), signal.SIGKILL)
        assert until(lambda: len((tmp_path / "deaths").read_text().splitlines()) == 2)


class TestStrays:
    def test_are_known_by_their_configuration(self, tmp_path):
        """
        A reader of a cluster's logs is none.
        """
        (tmp_path / "log").touch()
        own_environment = {"HADOOP_CONF_DIR": f"{tmp_path}/conf/worker1"}
        similar_environment = {"HADOOP_CONF_DIR": f"{tmp_path}-2/conf/worker1"}
        with (
            subprocess.Popen(["/bin/sleep", "600"], env=own_environment) as stray,
            subprocess.Popen(["/bin/sleep", "600"], env=similar_environment) as stranger,
            subprocess.Popen(["/usr/bin/tail", "-f", str(tmp_path / "log")], env={}) as reader,
        ):
            processes = until(lambda: [p.pid for p in state.stray_processes(tmp_path)])
            for process in (stray, stranger, reader):
                process.kill()

        assert processes == [stray.pid]
