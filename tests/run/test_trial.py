"""
Tests for `harness.core.run.trial`: a recorded TeraSort on a cluster in memory.
"""

import re

from dataclasses import replace

import pytest

from harness.base.errors import ClusterError, JobError
from harness.base.records.trace import TASK_COUNTER
from harness.clusters.masters import RefusedError
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run import jobs
from harness.core.run import trial as module
from harness.core.run.jobs import Inputs, JobRunner, StoppedError
from harness.core.run.trial import TrialRunner
from tests.run.fakes import BLOCK, Clusters, FakeCluster, Fault, Rounds, terasort


class Bench:
    """
    A runner on a cluster on which some jobs go wrong, and the folder of a trial's logs.
    """

    def __init__(self, folder, limit_s=10.0, **faults):
        self.raw, logs = folder / "raw", folder / "logs"
        self.raw.mkdir()
        logs.mkdir()
        self.cluster = FakeCluster(Clusters(**faults))
        inputs = Inputs(JobRunner(self.cluster, 10.0), logs, lambda _: None)
        self.runner = TrialRunner(self.cluster, inputs, BLOCK, limit_s)

    def run(self, trial=None):
        trial = trial or terasort()
        return self.runner.run(trial, resolve_cell(trial.cell), self.raw)

    @property
    def logs(self):
        return sorted(
            p.relative_to(self.raw).as_posix() for p in self.raw.rglob("*") if p.is_file()
        )


@pytest.fixture
def bench(tmp_path):
    """
    Makes the bench of a test.
    """
    return lambda **rest: Bench(tmp_path, **rest)


class TestGoodTrial:
    def test_leaves_all_its_logs(self, bench):
        """
        Client, history, configuration, containers: unedited, under the job's own number.
        """
        b = bench()
        outcome = b.run()

        (job,) = outcome.job_ids
        container = f"{job.replace('job', 'container')}_01_000002"
        assert (outcome.state, outcome.reason, outcome.is_cluster_lost) == ("done", "", False)
        assert b.logs == [
            "client-0.log", f"containers/worker1/{container}/syslog",
            "job-0-conf.xml", "job-0-history.jhist",
        ]  # fmt: skip

    def test_gives_what_was_measured(self, bench):
        """
        The trace is that of the job's history, the input that of the plan; its output is gone.
        """
        b = bench()
        outcome = b.run()

        assert [t.job_id for t in outcome.traces] == outcome.job_ids
        assert (outcome.input_bytes, outcome.num_splits) == (6_000_000, 3)
        assert set(outcome.seconds) >= {"client_s", "verify_s", "am_exit_s", "logs_s"}
        assert not [p for p in b.cluster.hdfs.files if p.startswith("/harness/output")]

    def test_shows_each_of_its_steps(self, bench):
        """
        What is going on, and of which trial.
        """
        b, notes = bench(), []
        b.runner.note = notes.append
        b.run()

        assert [note.partition(": ")[2] for note in notes if " of " not in note] == [
            "starting the job", "checking the output", "waiting until its containers are gone",
            "collecting logs", "storing what was collected",
        ]  # fmt: skip
        assert {note.partition(":")[0] for note in notes} == {"terasort 5.72 MiB"}

    def test_waits_until_the_cluster_is_idle(self, bench):
        """
        No trial shares the cluster with the application master of its input, or of another trial.
        """
        b = bench()
        b.run()

        assert b.cluster.idle_calls == 2

    def test_passes_the_configuration_on(self, bench):
        """
        What the experiment sets stands on the client's command line.
        """
        b = bench()
        b.run(terasort(**{"mapreduce.job.reduces": "2"}))

        assert "-Dmapreduce.job.reduces=2" in b.cluster.arguments[-1]


class TestFailure:
    def test_of_the_client(self, bench):
        """
        The telling line is the reason; history and container logs are kept all the same.
        """
        b = bench(
            terasort=[Fault(status=1, says="Error: java.io.IOException: bad codec\n\tat x.Y")]
        )
        outcome = b.run()

        assert outcome.state == "failed"
        assert (
            outcome.reason
            == "the client ended with status 1: Error: java.io.IOException: bad codec"
        )
        assert {"client-0.log", "job-0-history.jhist"} <= set(b.logs)
        assert any(name.startswith("containers/") for name in b.logs)
        assert not outcome.is_cluster_lost

    def test_of_disks_without_room(self, bench):
        """
        HDFS does not say so itself.
        """
        says = "Error: File /x could only be written to 0 of the 1 minReplication nodes. There"
        outcome = bench(terasort=[Fault(status=1, says=says)]).run()

        assert outcome.reason.endswith("There (the disks of the nodes may be full)")

    def test_of_a_job_that_was_refused(self, bench, monkeypatch):
        """
        Nothing ran, so nothing is left but the client's log; the cluster is as good as before.
        """
        monkeypatch.setattr(module, "_EVIDENCE_WAIT_S", 0.0)
        b = bench(terasort=[Fault(status=1, says="Exception: refused", history=False)])
        outcome = b.run()

        assert outcome.reason.startswith("the client ended with status 1: Exception: refused (evid")
        assert not outcome.is_cluster_lost

    def test_of_the_generator(self, bench):
        """
        Its log is kept with the trial that needed the input.
        """
        b = bench(teragen=[Fault(status=1, says="Exception: no space")])
        outcome = b.run()

        assert (outcome.state, outcome.job_ids) == ("failed", [])
        assert len(b.logs) == 1
        assert b.logs[0].startswith("generate-terarows-")

    def test_of_the_output(self, bench):
        """
        A fast wrong job is no measurement, even where all counters add up.
        """
        b = bench(terasort=[Fault(swaps=True)])
        outcome = b.run()

        assert outcome.state == "failed"
        assert outcome.reason.startswith("wrong output of terasort: part-r-00000: key")
        assert not outcome.is_cluster_lost

    def test_of_the_counters(self, bench):
        """
        An input of other size than the job says it read.
        """
        outcome = bench(teragen=[Fault(loses=10)]).run()

        assert outcome.state == "failed"
        assert "do not add up: MAP_INPUT_RECORDS is 60000, not 59990" in outcome.reason

    def test_of_the_history(self, bench, monkeypatch):
        """
        A history that is cut fails the trial with file and line, not the harness.
        """
        whole = jobs.read_history
        monkeypatch.setattr(
            jobs, "read_history", lambda lines, source: whole(list(lines)[:9], source)
        )
        b = bench()
        outcome = b.run()

        assert outcome.state == "failed"
        assert "job-0-history.jhist" in b.logs

    def test_of_a_client_that_names_no_job(self, bench, monkeypatch):
        """
        A client that ends well without a job has measured nothing.
        """
        monkeypatch.setattr(jobs, "job_ids", lambda _: ())
        outcome = bench().run()

        assert (outcome.state, outcome.reason[:29]) == ("failed", "the client's log names no job")


class TestSeveralJobs:
    @pytest.fixture
    def rounds(self, bench, monkeypatch):
        """
        Run one trial of a workload that promises so many jobs, and whose client runs others.
        """

        def run(promised, fault, **rest):
            monkeypatch.setattr(module, "_EVIDENCE_WAIT_S", 0.0)
            monkeypatch.setitem(WORKLOADS, "rounds", Rounds(promised))
            b = bench(terasort=[fault], **rest)
            return b, b.run(terasort(name="rounds"))

        return run

    @pytest.mark.parametrize("promised", [3, None])
    def test_are_all_collected(self, rounds, promised):
        """
        Each has its history, its configuration, its containers and its trace, in their order.
        """
        b, outcome = rounds(promised, Fault(jobs=3))

        names = [f"job-{n}-{what}" for n in range(3) for what in ("conf.xml", "history.jhist")]
        assert (outcome.state, outcome.reason) == ("done", "")
        assert [t.job_id for t in outcome.traces] == outcome.job_ids
        assert len(set(outcome.job_ids)) == 3
        assert [name for name in b.logs if name.startswith("job-")] == names
        assert sum(name.startswith("containers/") for name in b.logs) == 3

    @pytest.mark.parametrize(("ran", "reason"), [(2, "2 jobs ran"), (4, "4 jobs ran")])
    def test_must_be_as_many_as_promised(self, rounds, ran, reason):
        """
        A trial with another number of jobs is another trial.
        """
        _, outcome = rounds(3, Fault(jobs=ran))

        assert outcome.state == "failed"
        assert outcome.reason == f"{reason}, and a trial of rounds has 3"

    def test_that_a_client_gave_up_leave_their_evidence(self, rounds):
        """
        The reason says how far it came; every job that was submitted has its logs.
        """
        b, outcome = rounds(None, Fault(jobs=2, status=1, says="Error: NaN in record 7"))

        last = outcome.job_ids[1]
        assert outcome.reason == (
            f"the client ended with status 1 after it had submitted job 2, {last}:"
            " Error: NaN in record 7"
        )
        assert [t.job_id for t in outcome.traces] == outcome.job_ids
        assert {"client-0.log", "job-0-history.jhist", "job-1-history.jhist"} <= set(b.logs)
        assert sum(name.startswith("containers/") for name in b.logs) == 2

    def test_that_ran_out_of_time_keep_what_ended(self, rounds):
        """
        The last one may still run, and has no history; those before it have.
        """
        b, outcome = rounds(None, Fault(jobs=3, hangs=True), limit_s=1.0)

        assert (outcome.state, len(outcome.job_ids)) == ("timed_out", 3)
        assert [t.job_id for t in outcome.traces] == outcome.job_ids[:2]
        assert {"job-0-history.jhist", "job-1-history.jhist"} <= set(b.logs)
        assert "job-2-history.jhist" not in b.logs

    def test_whose_histories_are_lost_keep_the_others(self, rounds, monkeypatch):
        """
        One job without a history costs no other's evidence.
        """
        fetch = module.fetch_history

        def without_the_first(cluster, job, raw, number, wait_s):
            if number == 0:
                raise JobError(f"no history of {job}")
            return fetch(cluster, job, raw, number, wait_s)

        monkeypatch.setattr(module, "fetch_history", without_the_first)
        b, outcome = rounds(None, Fault(jobs=2, status=1, says="Error: gone"))

        assert f"(evidence is incomplete: no history of {outcome.job_ids[0]})" in outcome.reason
        assert [t.job_id for t in outcome.traces] == outcome.job_ids[1:]
        assert "job-1-history.jhist" in b.logs

    def test_one_of_which_failed_fail_the_trial(self, rounds, monkeypatch):
        """
        A client that hides the failure of its second job is found out by the history.
        """
        plain = jobs.read_history

        def second_failed(lines, source):
            trace = plain(lines, source)
            state = "FAILED" if source.startswith("job-1") else trace.state
            return replace(trace, state=state, diagnostics="Task failed")

        monkeypatch.setattr(jobs, "read_history", second_failed)
        b, outcome = rounds(3, Fault(jobs=3))

        assert outcome.reason == f"{outcome.job_ids[1]} ended as FAILED: Task failed"
        assert len([name for name in b.logs if name.endswith(".jhist")]) == 3

    def test_all_have_counters_that_add_up(self, rounds, monkeypatch):
        """
        Not only the first of them is checked.
        """
        plain = jobs.read_history

        def last_lost_a_record(lines, source):
            trace = plain(lines, source)
            lost = {f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS": 1} if source.startswith("job-2") else {}
            return replace(trace, counters={**trace.counters, **lost})

        monkeypatch.setattr(jobs, "read_history", last_lost_a_record)
        _, outcome = rounds(3, Fault(jobs=3))

        assert outcome.reason.startswith(f"the counters of {outcome.job_ids[2]} do not add up")


class TestLostCluster:
    def test_after_the_time_limit(self, bench):
        """
        The job may still run: nothing else may run beside it.
        """
        b = bench(limit_s=1.0, terasort=[Fault(hangs=True)])
        outcome = b.run()

        assert (outcome.state, outcome.is_cluster_lost) == ("timed_out", True)
        assert outcome.reason == "the job did not end within its time limit (1 s)"
        assert "client-0.log" in b.logs
        assert b.cluster.clients[-1].returncode is not None

    def test_with_a_dead_daemon(self, bench):
        """
        The reason is the daemon's name, whatever failed of it first.
        """
        outcome = bench(terasort=[Fault(kills="datanode on worker2", status=1)]).run()

        assert (outcome.state, outcome.is_cluster_lost) == ("failed", True)
        assert outcome.reason == "datanode on worker2 died during the trial"

    def test_is_said_before_its_logs_are_saved(self, bench):
        """
        Whoever waits is told at once by whom, not when all logs are here.
        """
        b = bench(terasort=[Fault(kills="datanode on worker2", status=1)])
        said = []
        b.runner.say = lambda text: said.append((text, "containers" in " ".join(b.logs)))
        b.run()

        text = "datanode on worker2 died during the trial: saving the logs"
        assert said == [(text, False)]

    def test_by_a_daemon_that_died_in_silence(self, bench):
        """
        A job may survive a daemon; its times are no measurement of the cluster asked for.
        """
        b = bench()
        b.cluster.dead = ["nodemanager on worker1"]
        outcome = b.run()

        assert (outcome.state, outcome.is_cluster_lost) == ("failed", True)
        assert outcome.reason == "nodemanager on worker1 died during the trial"

    def test_by_a_daemon_behind_another_failure(self, bench):
        """
        The file system says what it says; the dead daemon is named beside it.
        """
        b = bench(terasort=[Fault(swaps=True)])
        b.cluster.dead = ["datanode on worker2"]
        outcome = b.run()

        assert outcome.reason.startswith("wrong output of terasort")
        assert outcome.reason.endswith("(datanode on worker2 died)")
        assert outcome.is_cluster_lost

    @pytest.mark.parametrize(
        ("faults", "reason"),
        [
            ([], "nodemanager on worker1 was lost during the trial"),
            ([Fault(swaps=True)], " (nodemanager on worker1 was lost)"),
        ],
        ids=["done", "failed"],
    )
    def test_by_a_node_that_was_cut_off(self, bench, faults, reason):
        """
        All processes live, and the masters hear one of them no more: its job's time is none.
        """
        b = bench(terasort=faults)
        b.cluster.clusters.cut_off = ["nodemanager on worker1"]
        outcome = b.run()

        assert (outcome.state, outcome.is_cluster_lost) == ("failed", True)
        assert outcome.reason.endswith(reason)

    def test_by_a_node_that_ran_out_of_memory(self, bench):
        """
        Which node and which limit stand behind what failed by it; that is said once.
        """
        b = bench(terasort=[Fault(swaps=True), Fault(swaps=True)])
        b.cluster.clusters.starved = ["the kernel killed a process of worker1"]
        reasons = [b.run().reason for _ in range(2)]

        assert [r.endswith(" (the kernel killed a process of worker1)") for r in reasons] == [
            True, False,
        ]  # fmt: skip


def test_a_history_that_moves_away_is_followed(bench, monkeypatch):
    """
    The history server moves histories when it likes: between a look and the copy, too.
    """
    b = bench()
    hdfs, plain, moved = b.cluster.hdfs, b.cluster.hdfs.open, []

    def open_after_move(path):
        if path.endswith("_conf.xml") and not moved:
            moved.append(path)
            for name in [p for p in hdfs.files if p.startswith("/history/intermediate/")]:
                hdfs.files[name.replace("intermediate", "done/2026", 1)] = hdfs.files.pop(name)
        return plain(path)

    monkeypatch.setattr(hdfs, "open", open_after_move)
    outcome = b.run()

    assert len(moved) == 1
    assert (outcome.state, len(outcome.traces)) == ("done", 1)


class TestThreadDumps:
    def test_of_a_job_that_does_not_end(self, bench, monkeypatch):
        """
        At the limit every JVM is asked while the client still lives; the reason says where it is.
        """
        b = bench(limit_s=1.0, terasort=[Fault(hangs=True)])

        def dumps(into):
            assert b.cluster.clients[-1].poll() is None
            into.mkdir()
            for name in ("client", "datanode-worker1"):
                (into / f"{name}.txt").write_text("Full thread dump")

        monkeypatch.setattr(b.cluster, "dump_threads", dumps)
        outcome = b.run()

        assert outcome.state == "timed_out"
        assert outcome.reason.endswith("(1 s); thread dumps of 2 JVMs are in raw/threads")
        assert {"threads/client.txt", "threads/datanode-worker1.txt"} <= set(b.logs)

    def test_that_fail_hide_nothing(self, bench, monkeypatch):
        """
        The trial ran into its limit, whatever became of the dumps.
        """

        def refuse(into):
            raise ClusterError("it is not running")

        b = bench(limit_s=1.0, terasort=[Fault(hangs=True)])
        monkeypatch.setattr(b.cluster, "dump_threads", refuse)

        assert b.run().reason == "the job did not end within its time limit (1 s)"


class TestFailedAttempts:
    def test_are_no_clean_measurement(self, bench, monkeypatch):
        """
        A job that is done in spite of a task killed for its memory took longer than its work.
        """
        plain = jobs.read_history

        def with_a_failure(lines, source):
            trace = plain(lines, source)
            lost = replace(trace.attempts[0], attempt_id="attempt_1", state="failed", error=KILLED)
            return replace(trace, attempts=(*trace.attempts, lost))

        monkeypatch.setattr(jobs, "read_history", with_a_failure)
        outcome = bench().run()

        assert (outcome.state, outcome.is_cluster_lost) == ("failed", False)
        assert re.match(r"attempt_1 on \S+ failed and was repeated,", outcome.reason)
        assert outcome.reason.endswith("Container exited with a non-zero exit code 137.")

    def test_killed_ones_are_no_failure(self, bench, monkeypatch):
        """
        Hadoop kills what it does not need: the loser of a speculation, a reduce that made room.
        """
        plain = jobs.read_history

        def with_a_killed_one(lines, source):
            trace = plain(lines, source)
            spare = replace(trace.attempts[0], attempt_id="attempt_1", state="killed")
            return replace(trace, attempts=(*trace.attempts, spare))

        monkeypatch.setattr(jobs, "read_history", with_a_killed_one)

        assert bench().run().state == "done"


class TestRefusedByTheFileSystem:
    def test_a_full_one_fails_the_trial_only(self, bench, monkeypatch):
        """
        The file system's own words are the reason; what was half made goes, the cluster stays.
        """
        b = bench(teragen=[Fault(loses=6000)])
        removals = []
        monkeypatch.setattr(b.runner.inputs, "remove_partial", lambda: removals.append(1))
        monkeypatch.setattr(b.cluster.hdfs, "rename", refuse("no room on 2 datanodes"))
        monkeypatch.setattr("harness.core.run.jobs.INPUT_TOLERANCE", 1e9)
        outcome = b.run()

        assert (outcome.state, outcome.is_cluster_lost) == ("failed", False)
        assert outcome.reason.startswith("no room on 2 datanodes")
        assert removals == [1]

    def test_a_read_only_one_is_lost(self, bench, monkeypatch):
        """
        A file system that takes nothing any more would fail the next trial for no fault of it.
        """
        b = bench(terasort=[Fault(swaps=True)])
        monkeypatch.setattr(b.cluster.hdfs, "make", refuse("Name node is in safe mode"))
        outcome = b.run()

        assert outcome.is_cluster_lost
        assert "wrong output" in outcome.reason
        assert "safe mode" in outcome.reason


def test_a_user_who_wants_no_more_ends_the_job(bench):
    """
    The client is ended; its log and those of its containers are kept.
    """
    b = bench(terasort=[Fault(hangs=True)])
    jobs = []

    def stop():
        log = b.raw / "client-0.log"
        if log.exists() and b"job_" in log.read_bytes():  # it has said which job is its own
            jobs.append(1)
            raise StoppedError("interrupted by the user")

    b.runner.on_tick = stop
    outcome = b.run()

    assert (outcome.state, outcome.is_interrupted) == ("failed", True)
    assert outcome.reason == "interrupted by the user"
    assert b.cluster.clients[-1].returncode is not None
    assert "client-0.log" in b.logs
    assert any(name.startswith("containers/") for name in b.logs)
    assert jobs == [1]


KILLED = "\n\nContainer exited with a non-zero exit code 137.\n"


def refuse(what):
    """
    A file system that says no.
    """

    def operation(*_):
        raise RefusedError(what, where="HDFS")

    return operation
