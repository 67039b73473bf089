"""
Tests for `harness.core.run.jobs`: real processes as clients, no Hadoop.
"""

import time

from pathlib import Path
from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError, JobError, MachineError
from harness.clusters.hadoop_home.home import JARS
from harness.clusters.host import Group
from harness.clusters.workloads.base import JOBS, JobCommand
from harness.core.run import jobs
from harness.core.run.jobs import (
    JobRunner,
    TimeLimitError,
    fetch_history,
    find_files,
    job_ids,
    job_progress,
    last_line,
)
from tests.run.fakes import CONF, FakeHdfs, recorded_history

COMMAND = JobCommand("Main", ("in", "out"), program="sort")


class ShellCluster:
    """
    A cluster whose clients are shell scripts; it keeps how they were called.
    """

    def __init__(self, script, dead=()):
        self.script, self.dead, self.calls, self.clients = script, list(dead), [], []

    def client(self, main_class, args, *, log, jars=()):
        self.calls.append((main_class, tuple(args), list(jars)))
        with log.open("wb") as out:
            self.clients.append(
                Group(["sh", "-c", self.script], stdout=out, stderr=out, start_new_session=True)
            )
        return self.clients[-1]

    def dead_daemons(self):
        return dict.fromkeys(self.dead, "died")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """
    Clients are processes here, and run while they are waited for.
    """
    monkeypatch.setattr(jobs, "_POLL_S", 0.002)


@pytest.fixture
def log(tmp_path):
    """
    Where a client writes.
    """
    return tmp_path / "client-0.log"


@pytest.mark.process
class TestRun:
    def test_names_the_job_that_the_client_ran(self, log):
        """
        The id comes from the client's log; the configuration went onto its command line.
        """
        cluster = ShellCluster("echo 'Running job: job_17_0004'; echo 'Job job_17_0004 completed'")

        assert JobRunner(cluster, 10.0).run(COMMAND, {"a": "1"}, log) == ("job_17_0004",)
        assert cluster.calls == [("Main", ("sort", "-Da=1", "in", "out"), [])]

    def test_names_every_job_of_its_client(self, log):
        """
        One client may run several jobs, one after the other.
        """
        script = "".join(f"echo 'Running job: job_17_{n:04}';" for n in (4, 5, 7))

        ids = JobRunner(ShellCluster(script), 10.0).run(COMMAND, {}, log)

        assert ids == ("job_17_0004", "job_17_0005", "job_17_0007")

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

        assert cluster.calls == [("Main", (), [Path(__file__)])]

    def test_a_jar_that_is_not_built_is_an_error(self, log, monkeypatch):
        """
        No client is started without its job's classes.
        """
        monkeypatch.setitem(JARS, JOBS, Path("nowhere.jar"))
        cluster = ShellCluster("exit 0")

        with pytest.raises(MachineError, match=r"harness-jobs\.jar is missing") as caught:
            JobRunner(cluster, 10.0).run(JobCommand("Main", (), jar=JOBS), {}, log)
        assert (caught.value.fix, cluster.calls) == ("make setup", [])

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

        with pytest.raises(ClusterError, match="datanode on worker2 died during the trial"):
            JobRunner(cluster, 60.0).run(COMMAND, {}, log)
        assert cluster.clients[0].returncode is not None

    def test_a_client_that_fails_of_a_dead_daemon_is_not_blamed(self, log):
        """
        However fast the client gives up, the reason is the daemon.
        """
        cluster = ShellCluster("exit 1", dead=["resourcemanager on master"])

        with pytest.raises(ClusterError, match="resourcemanager on master died"):
            JobRunner(cluster, 10.0).run(COMMAND, {}, log)

    def test_the_caller_gets_each_tick(self, log):
        """
        And may end the job there.
        """
        ticks = []
        runner = JobRunner(ShellCluster("sleep 0.12"), 10.0, on_tick=lambda: ticks.append(1))

        runner.run(COMMAND, {}, log)

        assert ticks


@pytest.mark.parametrize(
    ("text", "ids"),
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
def test_job_ids(log, text, ids):
    """
    Jobs that were submitted, each once; one that was refused, or another word, is none.
    """
    log.write_text(text)

    assert job_ids(log) == ids


@pytest.mark.parametrize(
    ("text", "expected"),
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
        ("\tat x.Y\n", "its log is empty"),
        ("", "its log is empty"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_last_line(log, text, expected):
    """
    The last error, else why the job failed, else the last line; neither frames nor a flood.
    """
    log.write_text(text)

    assert last_line(log) == expected


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


def test_find_files_looks_into_folders():
    """
    The history server sorts histories by day; other jobs' files are no answer.
    """
    hdfs = FakeHdfs()
    for name in ("/h/a/job_1.jhist", "/h/b/2026/11/21/job_1_conf.xml", "/h/a/job_2.jhist"):
        hdfs.put(name, [b""])

    assert sorted(find_files(hdfs, "/h", "job_1")) == [
        "/h/a/job_1.jhist",
        "/h/b/2026/11/21/job_1_conf.xml",
    ]
    assert list(find_files(hdfs, "/nowhere", "job_1")) == []


def test_a_folder_that_has_both_is_enough(tmp_path):
    """
    A look costs a command on the cluster's host: folders behind that one are not looked into.
    """
    hdfs, (history, job) = FakeHdfs(), recorded_history(7)
    hdfs.put(f"/near/root/{job}-1-root.jhist", [history])
    hdfs.put(f"/near/root/{job}_conf.xml", [CONF])
    looked, plain = [], hdfs.list
    hdfs.list = lambda path: looked.append(path) or plain(path)
    cluster = SimpleNamespace(hdfs=hdfs, history_folders=lambda job: ["/near", "/far"])
    trace = fetch_history(cluster, job, tmp_path, 0, wait_s=0)

    assert (trace.job_id, looked) == (job, ["/near", "/near/root"])
    assert (tmp_path / "job-0-conf.xml").read_bytes() == CONF


def test_a_history_without_end(tmp_path, monkeypatch):
    """
    What a cluster sends is no longer than any job's history is: it does not fill the disk.
    """
    hdfs, job = FakeHdfs(), "job_1_0001"
    hdfs.put(f"/done/{job}.jhist", [bytes(1000)])
    hdfs.put(f"/done/{job}_conf.xml", [CONF])
    monkeypatch.setattr(jobs, "MOST_BYTES", 999)
    cluster = SimpleNamespace(hdfs=hdfs, history_folders=lambda job: ["/done"])

    with pytest.raises(JobError, match="larger than 999"):
        fetch_history(cluster, job, tmp_path, 0, wait_s=0)
    assert (tmp_path / "job-0-history.jhist").stat().st_size < 1000


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


_FIRST = "number of splits:3\nRunning job: job_1_0001\n"
_SECOND = "number of splits:4\nRunning job: job_1_0002\n"


@pytest.mark.parametrize(
    ("log", "progress"),
    [
        ("", "starting the job's client"),
        ("number of splits:3\n", "starting the job's client"),
        (_FIRST, "0 % of 3 maps, 0 % of 2 reduces"),
        (
            f"{_FIRST} map 67% reduce 0%\n map 100% reduce 44%\n",
            "100 % of 3 maps, 44 % of 2 reduces",
        ),
        (f"{_FIRST} map 100% reduce 100%\n{_SECOND}", "job 2, 0 % of 4 maps, 0 % of 2 reduces"),
    ],
)
def test_progress_is_what_the_client_says(tmp_path, log, progress):
    """
    Of the last job that it runs; nobody else is asked.
    """
    path = tmp_path / "client.log"
    path.write_text(log)

    assert job_progress(path, {"mapreduce.job.reduces": "2"}) == progress
