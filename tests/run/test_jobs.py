"""
Tests for `harness.run.jobs`: real processes as clients, no Hadoop.
"""

import time

from pathlib import Path

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ClusterError, JobError, MachineError
from harness.hadoop_home.home import JARS
from harness.providers.host import Group
from harness.run import jobs
from harness.run.jobs import JobRunner, TimeLimitError, job_ids, last_line
from harness.workloads.base import JOBS, JobCommand

COMMAND = JobCommand("Main", ("in", "out"), program="sort")


class ShellCluster:
    """
    A cluster whose clients are shell scripts; it keeps what they were asked.
    """

    def __init__(self, script, dead=()):
        self.script, self.dead, self.asked, self.clients = script, list(dead), [], []

    def client(self, main_class, args, *, log, jars=()):
        self.asked.append((main_class, tuple(args), list(jars)))
        with log.open("wb") as out:
            self.clients.append(
                Group(["sh", "-c", self.script], stdout=out, stderr=out, start_new_session=True)
            )
        return self.clients[-1]

    def dead_daemons(self):
        return self.dead


@pytest.fixture
def log(tmp_path):
    """
    Where a client writes.
    """
    return tmp_path / "client-0.log"


class TestRun:
    def test_names_the_job_that_the_client_ran(self, log):
        """
        The id comes from the client's log; the configuration went onto its command line.
        """
        cluster = ShellCluster("echo 'Running job: job_17_0004'; echo 'Job job_17_0004 completed'")

        assert JobRunner(cluster, 10.0).run(COMMAND, {"a": "1"}, log) == ("job_17_0004",)
        assert cluster.asked == [("Main", ("sort", "-Da=1", "in", "out"), [])]

    def test_names_every_job_of_its_client(self, log):
        """
        One client may run several jobs, one after the other.
        """
        said = "".join(f"echo 'Running job: job_17_{n:04}';" for n in (4, 5, 7))

        found = JobRunner(ShellCluster(said), 10.0).run(COMMAND, {}, log)

        assert found == ("job_17_0004", "job_17_0005", "job_17_0007")

    def test_a_client_that_fails_on_the_way_says_how_far_it_came(self, log):
        """
        The reason names the last job that it had submitted.
        """
        script = "echo 'Running job: job_17_0004'; echo 'Running job: job_17_0005'; exit 1"

        with pytest.raises(JobError, match=r"status 1 after it had submitted job 2, job_17_0005:"):
            JobRunner(ShellCluster(script), 10.0).run(COMMAND, {}, log)

    def test_the_command_names_its_jar(self, log, monkeypatch):
        """
        The jar of one of our own jobs is on the class path of its client.
        """
        monkeypatch.setitem(JARS, JOBS, Path(__file__))
        cluster = ShellCluster("echo job_17_0004")

        JobRunner(cluster, 10.0).run(JobCommand("Main", (), jar=JOBS), {}, log)

        assert cluster.asked == [("Main", (), [Path(__file__)])]

    def test_a_jar_that_is_not_built_is_told(self, log, monkeypatch):
        """
        No client is started without its job's classes.
        """
        monkeypatch.setitem(JARS, JOBS, Path("nowhere.jar"))
        cluster = ShellCluster("exit 0")

        with pytest.raises(MachineError, match=r"harness-jobs\.jar is missing") as caught:
            JobRunner(cluster, 10.0).run(JobCommand("Main", (), jar=JOBS), {}, log)
        assert (caught.value.fix, cluster.asked) == ("make setup", [])

    def test_a_client_that_fails_says_why(self, log):
        """
        The exception, not the stack below it, is the reason.
        """
        script = "echo 'java.io.IOException: no space'; echo '\tat a.B.c(B.java:1)'; exit 3"

        with pytest.raises(JobError, match=r"status 3: java\.io\.IOException: no space") as caught:
            JobRunner(ShellCluster(script), 10.0).run(COMMAND, {}, log)
        assert caught.value.where == "client-0.log"

    def test_the_time_limit_ends_client_and_children(self, log):
        """
        What the client started ends with it: the pipe that both hold is closed.
        """
        cluster = ShellCluster("sleep 60 & echo $!; wait")

        with pytest.raises(TimeLimitError, match="time limit"):
            JobRunner(cluster, 0.5).run(COMMAND, {}, log)

        assert cluster.clients[0].returncode is not None
        assert _ended(int(log.read_text()))

    def test_the_earlier_limit_counts(self, log):
        """
        The jobs of one trial share its deadline.
        """
        runner = JobRunner(ShellCluster("sleep 60"), 60.0, deadline=time.monotonic())

        with pytest.raises(TimeLimitError):
            runner.run(COMMAND, {}, log)

    def test_a_dead_daemon_ends_the_wait(self, log, monkeypatch):
        """
        The job is not waited for once a daemon has died.
        """
        monkeypatch.setattr(jobs, "_HEALTH_S", 0.0)
        cluster = ShellCluster("sleep 60", dead=["datanode on worker2"])

        with pytest.raises(ClusterError, match="datanode on worker2 died during the job"):
            JobRunner(cluster, 60.0).run(COMMAND, {}, log)
        assert cluster.clients[0].returncode is not None

    def test_a_client_that_fails_of_a_dead_daemon_is_not_blamed(self, log):
        """
        However fast the client gives up, the reason is the daemon.
        """
        cluster = ShellCluster("exit 1", dead=["resourcemanager on master"])

        with pytest.raises(ClusterError, match="resourcemanager on master died"):
            JobRunner(cluster, 10.0).run(COMMAND, {}, log)

    def test_others_are_let_in_while_it_waits(self, log):
        """
        The caller is told of every tick.
        """
        ticks = []
        runner = JobRunner(ShellCluster("sleep 0.12"), 10.0, on_tick=lambda: ticks.append(1))

        runner.run(COMMAND, {}, log)

        assert ticks


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (
            (
                "Submitted application application_1_0001\nRunning job: job_1_0001\n"
                "Job job_1_0001 completed\nSubmitted application application_1_0002\n"
            ),
            ("job_1_0001", "job_1_0002"),
        ),
        ("Cleaning up the staging area /tmp/root/.staging/job_1_0001\n", ()),
        ("application_1_0001 task_1_0001_m_1\n", ()),
        ("Running job: job_1_x\n", ()),
        ("", ()),
    ],
)
def test_job_ids(log, said, found):
    """
    Jobs that were submitted, each once; one that was refused, or another word, is none.
    """
    log.write_text(said)

    assert job_ids(log) == found


@pytest.mark.parametrize(
    ("said", "telling"),
    [
        ("first\nlast\n\n", "last"),
        ("Error: a codec\n\tat x.Y\n\t... 5 more\nbye\n", "Error: a codec"),
        (
            "E1 Exception\nCaused by: E2 Exception: why\nJob failed\n",
            "Caused by: E2 Exception: why",
        ),
        (
            "12:00:00 INFO mapreduce.Job: Job job_1_1 failed with state FAILED due to: why\nbye\n",
            "Job job_1_1 failed with state FAILED due to: why",
        ),
        ("\tat x.Y\n", "it said nothing"),
        ("", "it said nothing"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_last_line(log, said, telling):
    """
    The last error, else why the job failed, else the last line; neither frames nor a flood.
    """
    log.write_text(said)

    assert last_line(log) == telling


@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_any_log_has_a_last_line(tmp_path_factory, data):
    """
    Whatever a client writes, there is one line to show.
    """
    log = tmp_path_factory.getbasetemp() / "any.log"
    log.write_bytes(data)

    line = last_line(log)

    assert line
    assert len(line.splitlines()) == 1


def _ended(pid, within_s=5.0):
    """
    Whether a process is gone, or will be soon; one that nobody collects is a zombie.
    """
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            with Path(f"/proc/{pid}/stat").open() as stat:
                if stat.read().rpartition(") ")[2].startswith("Z"):
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False
