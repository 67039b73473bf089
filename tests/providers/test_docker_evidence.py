"""
Tests for `harness.providers.docker`: what the kernel counts in nodes, and what they leave.
"""

import io
import tarfile

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.errors import ClusterError
from harness.providers.docker import host as hosts
from harness.providers.docker.engine import DeathLog, EngineError
from harness.providers.docker.host import memory_kills
from harness.providers.host import Completed

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
V2 = "low 0\nhigh 0\nmax 120\noom 5\noom_kill 3\noom_group_kill 0\n"
APPLICATION = "application_1700000000000_0001"
CONTAINER = "container_1700000000000_0001_01_000002"
RUNNING = {"OOMKilled": False, "Running": True}


class FakeHost:
    """
    A node in a container with a state, whose engine gives one archive for every path.
    """

    name, folder, container = "worker1", "/cluster/nodes/worker1", "c"

    def __init__(self, *entries, state=RUNNING, events=None):
        self.entries, self.state, self.events = entries, state, events
        self.engine, self.client, self.api = self, self, self

    def translate_errors(self, subject=""):
        return nullcontext()

    def inspect_container(self, container):
        return {"State": self.state}

    def get_archive(self, container, path):
        if not self.entries:
            raise EngineError("Could not find the file", status=404)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, content in self.entries:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return [buffer.getvalue()], {}

    def run(self, argv, timeout=60.0):
        if self.events is None:
            raise ClusterError("worker1 does not run")
        return Completed(tuple(argv), 0, self.events, "cat: no such file")


@pytest.mark.parametrize(("events", "kills"), [(V1, 3), (V2, 3), ("", 0)], ids=["1", "2", "none"])
def test_kills_are_counted_in_both_versions_of_control_groups(events, kills):
    """
    Processes that were killed count, not the times that memory was short.
    """
    assert memory_kills(FakeHost(events=events)) == kills


@pytest.mark.parametrize("oom", [True, False])
def test_a_node_that_has_ended_counts_as_one_kill_at_most(oom):
    """
    Its first process may have been the one that was killed; its count is gone with it.
    """
    host = FakeHost(state={"OOMKilled": oom, "Running": False, "ExitCode": 137})

    assert memory_kills(host) == int(oom)


class TestLogTails:
    def test_the_last_lines_are_safe_to_print(self):
        """
        The end of each log, by its name; nothing in it moves a cursor.
        """
        text = "".join(f"line {n}\n" for n in range(1000)) + "\x1b[2Jend\n"

        tails = hosts.log_tails(FakeHost(("logs/a.log", text.encode())), 2)

        assert tails == {"a.log": r"line 999" + "\n" + r"\x1b[2Jend"}

    def test_a_line_without_an_end_is_cut(self):
        """
        A log is foreign: little of it is kept, whatever is in it.
        """
        tails = hosts.log_tails(FakeHost(("logs/a.log", b"x" * 10**7)), 2)

        assert tails == {"a.log": "x" * 800}

    def test_the_state_of_an_ended_node_stands_below(self):
        """
        Its logs are read after its end.
        """
        state = {"OOMKilled": False, "Running": False, "ExitCode": 3}

        tails = hosts.log_tails(FakeHost(("logs/a.log", b"end"), state=state), 2)

        assert tails == {"a.log": "end\n[worker1: its container has ended with status 3]"}

    def test_a_node_without_logs_has_none(self):
        """
        That the engine does not find the folder is no error.
        """
        assert hosts.log_tails(FakeHost(), 2) == {}


def test_container_logs_are_plain_files_of_the_application(tmp_path):
    """
    Files of other applications, names that climb and deeper folders are left behind.
    """
    host = FakeHost(
        (f"{APPLICATION}/{CONTAINER}/syslog", b"1"),
        (f"{APPLICATION}/{CONTAINER}/.hidden", b"x"),
        (f"{APPLICATION}/{CONTAINER}/../../out", b"x"),
        (f"{APPLICATION}/{CONTAINER}/deep/file", b"x"),
        (f"{APPLICATION}/elsewhere/syslog", b"x"),
        (f"application_1_2/{CONTAINER}/syslog", b"x"),
    )

    written = hosts.copy_container_logs(host, APPLICATION, tmp_path)

    assert written == [tmp_path / CONTAINER / "syslog"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == written
    assert hosts.copy_container_logs(FakeHost(), APPLICATION, tmp_path) == []


def test_thread_dumps_are_texts_of_one_folder(tmp_path):
    """
    Other names and deeper folders are left behind.
    """
    host = FakeHost(
        ("threads/datanode-worker1.txt", b"dump"),
        ("threads/../out.txt", b"x"),
        ("threads/program", b"x"),
        ("threads/deep/a.txt", b"x"),
        events="",
    )

    written = hosts.copy_thread_dumps(host, tmp_path)

    assert written == [tmp_path / "datanode-worker1.txt"]


@pytest.mark.parametrize(
    ("line", "how"),
    [
        (b'{"key": "datanode-w", "status": 3}', "has ended with status 3"),
        (
            b'{"key": "datanode-w", "status": -9, "oom": true}',
            "has ended with signal 9: its node ran out of the",
        ),
        (b'{"key": "datanode-w", "unanswered_s": 15}', "has not answered for 15 s"),
    ],
)
def test_a_death_says_how_the_daemon_has_ended(line, how):
    """
    By which status, or signal, and whether its node ran out of memory, or that it hangs; other
    lines are skipped.
    """
    api = SimpleNamespace(
        logs=lambda *_, stream=False, **__: iter([]) if stream else b"noise\n[1]\n" + line,
        inspect_container=lambda _: {"State": {"Running": False}},
    )
    engine = SimpleNamespace(
        client=SimpleNamespace(api=api), translate_errors=lambda _: nullcontext()
    )
    log = DeathLog(engine, {"w": "container"})
    log.close()

    assert list(log.deaths()) == ["datanode-w"]
    assert log.deaths()["datanode-w"].startswith(how)
    assert log.ended_nodes() <= {"w"}
