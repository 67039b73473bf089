"""
Tests for `harness.core.run.execute`: plans on clusters in memory, results on disk.
"""

import json
import os
import shutil
import signal
import time

from itertools import count
from types import SimpleNamespace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError, JobError, MachineError
from harness.base.records.manifest import NodeRates
from harness.base.records.trial import MachineLoad
from harness.clusters import state
from harness.clusters.host import LocalHost
from harness.clusters.monitor import rates, watch
from harness.clusters.monitor.machine import MACHINE_LOG, PROBE_LOG, copy_tail
from harness.core.run import execute as module
from harness.core.run.estimate import Remaining
from harness.core.run.execute import cluster_name
from harness.core.store import Run
from harness.observe.storage import files
from tests.run import fakes
from tests.run.fakes import Fault, terasort

RATES = NodeRates(
    disk_read_bps=(10**8,), disk_write_bps=(10**8,), mem_read_bps=(10**8,),
    mem_write_bps=(10**8,), how="direct",
)  # fmt: skip

BROKEN = Fault(status=1, says="Error: java.io.IOException: bad codec")
SLOW = Fault(hangs=True)
DEAD = Fault(kills="datanode on worker2", status=1)


def plan(count=3):
    """
    Repetitions of one cell.
    """
    return [terasort(n) for n in range(count)]


def states(run, trials):
    """
    How the planned trials ended, in their order; ``-`` for one that did not run.
    """
    records = run.trials()
    return [records[t.id].state if t.id in records else "-" for t in trials]


def kept(run, kind):
    """
    Folders of what was set aside.
    """
    folder = run.path / kind
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def rated(monkeypatch, execution, measure):
    """
    An execution that measures rates, by *measure*.
    """
    names = ("master", "worker1", "worker2")
    nodes = [LocalHost(name, "127.0.0.1", "/nodes", list, {}) for name in names]
    monkeypatch.setattr(fakes.FakeCluster, "hosts", nodes)
    monkeypatch.setattr(rates, "measure_rates", measure)
    return execution(needs_rates=True)


class TestGoodRun:
    def test_commits_every_trial(self, execution, run):
        """
        Each with its logs, those of machine and probe among them, its trace and its input's size.
        """
        (trial,) = trials = plan(1)
        execution().execute(trials, set())

        record = run.trials()[trial.id]
        (trace,) = run.read_trace(trial.id)
        assert (record.state, record.input_bytes, record.num_splits) == ("done", 6_000_000, 3)
        assert record.job_ids == (trace.job_id,)
        assert {
            "client-0.log",
            "job-0-history.jhist",
            "job-0-conf.xml",
            MACHINE_LOG,
            PROBE_LOG,
        } <= set(run.raw(trial.id).names())
        assert record.started_s < record.finished_s

    def test_shares_cluster_and_input(self, execution, run, clusters):
        """
        Trials of one cluster run on one start of it, over an input made once.
        """
        trials = plan()
        execution().execute(trials, set())

        assert states(run, trials) == ["done"] * 3
        assert (len(clusters.started), clusters.running) == (1, 0)
        assert clusters.jobs == ["teragen", *["terasort"] * 3]

    @pytest.mark.process
    def test_rates_a_worker_once_in_a_run(self, execution, run, monkeypatch):
        """
        Where models ask for rates: the manifest has them, and no other cluster measures again.
        """
        rating = rated(monkeypatch, execution, lambda *_: RATES)
        rating.execute([terasort(0), terasort(0, workers=3)], set())

        assert run.read_manifest().rates == {"worker1": RATES}

    def test_limitations_of_a_cluster_are_reported_and_written_down(self, execution, run, clusters):
        """
        Once in a run, whatever the number of its clusters.
        """
        clusters.limitations = ("no network",)
        e = execution()
        e.execute([terasort(0), terasort(0, workers=3)], set())

        assert run.read_manifest().limitations == ("no network",)
        assert e.console.lines.count("warning: no network") == 1

    @pytest.mark.process
    def test_goes_on_without_rates(self, execution, run, monkeypatch):
        """
        A measurement that fails is told; trials are worth more.
        """

        def fail(*_):
            raise MachineError("the rates of worker1 cannot be measured")

        rating = rated(monkeypatch, execution, fail)
        rating.execute(trials := plan(1), set())

        assert states(run, trials) == ["done"]
        assert run.read_manifest().rates == {}
        assert "warning: the rates of worker1 cannot be measured" in rating.console.lines

    def test_starts_one_cluster_for_each_kind(self, execution, clusters):
        """
        Trials are grouped by cluster; the one before is down when the next comes up.
        """
        execution().execute([terasort(0), terasort(1), terasort(0, workers=3)], set())

        assert (len(clusters.started), clusters.running) == (2, 0)

    def test_runs_all_trials_of_every_kind(self, execution, run, clusters):
        """
        However many trials there are on each of several clusters, none is left out.
        """
        trials = [terasort(n, workers=w) for w in (2, 3, 4) for n in range(3)]
        e = execution()
        e.execute(trials, set())

        assert states(run, trials) == ["done"] * 9
        assert len(clusters.started) == 3
        assert e.console.steps[-1][:2] == (9, 9)

    def test_gives_each_trial_its_own_samples(self, execution, run):
        """
        The probe runs all the time; a trial keeps what was sampled during it.
        """
        trials = plan()
        execution().execute(trials, set())

        units = []
        for trial in trials:
            with run.raw(trial.id).open(PROBE_LOG) as lines:
                units.append([int(s.split()[2]) for s in lines if not s.startswith(b"#")])
        assert units == [[1, 2], [3], [4]]

    def test_starts_a_probe_again_that_has_ended(self, execution, run, clusters):
        """
        The memory killer may take the probe: the next trial has samples all the same.
        """
        trials = plan()

        def kill_probe(number):
            if number == 2:
                clusters.probe.pid = None

        clusters.on_job = kill_probe
        e = execution()
        e.execute(trials, set())

        assert e.console.lines.count("the speed probe has ended: starting it again") == 1
        with run.raw(trials[2].id).open(PROBE_LOG) as lines:
            assert b" 4 " in lines.read()

    def test_warm_up_lies_outside_the_trials(self, execution, run, clusters):
        """
        It is run, kept, and never counted.
        """
        trials = plan(1)
        execution(warmup=2).execute(trials, set())

        assert kept(run, "warmup") == [f"{trials[0].id}-1", f"{trials[0].id}-2"]
        assert list(run.trials()) == [trials[0].id]
        assert clusters.jobs.count("terasort") == 3

    def test_adds_trials_on_the_cluster_that_is_there(self, execution, run, clusters):
        """
        What is asked for once all are done runs on the same cluster, until nothing is.
        """
        later = [terasort(1), terasort(2)]
        execution(more_here=lambda: [later.pop(0)] if later else []).execute([terasort()], set())

        assert set(run.trials()) == {terasort(number).id for number in range(3)}
        assert len(clusters.started) == 1

    def test_skips_what_is_done(self, execution, run, clusters):
        """
        A second call runs the rest, and a third one starts no cluster.
        """
        trials = plan()
        execution().execute(trials[:1], set())
        execution().execute(trials, set(run.trials()))
        assert clusters.jobs.count("terasort") == 3

        execution().execute(trials, set(run.trials()))
        assert (len(clusters.started), states(run, trials)) == (2, ["done"] * 3)

    def test_reports_how_far_it_is(self, execution):
        """
        Done of total after each trial, and no time left at the end.
        """
        e = execution()
        e.execute(plan(), {plan()[0].id})

        assert [step[:2] for step in e.console.steps] == [(1, 3), (2, 3), (3, 3)]
        assert [step[2] is None for step in e.console.steps] == [True, False, False]
        assert e.console.steps[-1][2] == 0

    def test_each_step_is_told_the_time_left(self, execution):
        """
        What was measured is counted with all that came before it.
        """
        first, second, third = (trial.id for trial in plan())
        e = execution(remaining=Remaining({first: 10.0, second: 40.0, third: 60.0}, 5.0))
        e.execute(plan(), set())

        assert e.console.steps[0][2] == 115.0
        assert [*e.remaining.measured_s] == [first, second, third]
        assert 5 < e.console.steps[2][2] < e.console.steps[1][2] < 110
        assert e.console.steps[3][2] == 0


BUSY_MACHINE = MachineLoad(busy=1.0, steal=0.0, others=0.4, swap_bytes_per_s=0.0)


def disturb(monkeypatch, *numbers):
    """
    Others use the machine during these of the trials that are run, counted from 0.
    """
    counted = count()

    def loads(*_):
        return {"this machine": BUSY_MACHINE} if next(counted) in numbers else {}

    monkeypatch.setattr(watch.LocalMonitor, "loads", loads)


class TestDisturbedTrial:
    RULE = "this machine: others used 40.0% of the processors, above 3%"

    def test_is_kept_with_its_mark(self, execution, run, monkeypatch):
        """
        Unless asked otherwise: the figures and the rule stand in its record.
        """
        disturb(monkeypatch, 0)
        execution().execute(trials := plan(1), set())

        record = run.trials()[trials[0].id]
        assert (record.disturbed, record.loads) == (self.RULE, {"this machine": BUSY_MACHINE})

    def test_is_repeated_at_the_end(self, execution, run, clusters, monkeypatch):
        """
        Once, on the same cluster; the first one's evidence stays outside the trials.
        """
        disturb(monkeypatch, 0)
        e = execution(on_disturbed="repeat")
        e.execute(trials := plan(), set())

        order = sorted(run.trials().values(), key=lambda record: record.started_s)
        assert [record.trial.id for record in order] == [trials[n].id for n in (1, 2, 0)]
        assert [record.disturbed for record in order] == [""] * 3
        assert kept(run, "disturbed") == [f"{trials[0].id}-1"]
        assert (run.path / "disturbed" / f"{trials[0].id}-1" / "raw" / f"{MACHINE_LOG}.gz").exists()
        assert len(clusters.started) == 1
        assert f"trial {trials[0].id} is repeated at the end: {self.RULE}" in e.console.lines
        assert [step[:2] for step in e.console.steps] == [(0, 3), (1, 3), (2, 3), (3, 3)]

    def test_that_profiles_is_repeated_before_any_is_scored(self, execution, run, monkeypatch):
        """
        Profiles, and what is predicted from them, are complete when the first scored trial starts.
        """
        disturb(monkeypatch, 0)
        trials = [terasort(n, profiling=n < 2) for n in range(3)]
        execution(on_disturbed="repeat").execute(trials, set())

        order = sorted(run.trials().values(), key=lambda record: record.started_s)
        assert [record.trial.id for record in order] == [trials[n].id for n in (1, 0, 2)]

    def test_that_is_disturbed_again_counts(self, execution, run, monkeypatch):
        """
        A machine that others always use is measured as it is, and the trial is marked.
        """
        disturb(monkeypatch, 0, 1)
        execution(on_disturbed="repeat").execute(trials := plan(1), set())

        assert run.trials()[trials[0].id].disturbed == self.RULE
        assert kept(run, "disturbed") == [f"{trials[0].id}-1"]

    def test_that_failed_is_no_repeat(self, execution, run, clusters, monkeypatch):
        """
        A failure is the failure's matter, and a warm-up is not counted anyway.
        """
        disturb(monkeypatch, 0, 1)
        clusters.faults["terasort"] = [None, BROKEN]
        execution(on_disturbed="repeat", warmup=1).execute(trials := plan(1), set())

        assert (states(run, trials), kept(run, "disturbed")) == (["failed"], [])


class TestFailedTrial:
    def test_is_kept_and_the_run_goes_on(self, execution, run, clusters):
        """
        It counts as failed, with reason and logs; the cluster serves the other trials.
        """
        clusters.faults["terasort"] = [None, BROKEN]
        trials = plan()
        execution().execute(trials, set())

        record = run.trials()[trials[1].id]
        assert states(run, trials) == ["done", "failed", "done"]
        assert record.reason.endswith("Error: java.io.IOException: bad codec")
        assert "client-0.log" in run.raw(trials[1].id).names()
        assert len(clusters.started) == 1

    def test_of_wrong_output(self, execution, run, clusters):
        """
        Its times are those of a job that did something else.
        """
        clusters.faults["terasort"] = [Fault(swaps=True)]
        trials = plan(2)
        execution().execute(trials, set())

        assert states(run, trials) == ["failed", "done"]

    def test_stops_the_run_where_asked(self, execution, run, clusters):
        """
        With on_error stop the trial is kept, the cluster is down, the rest waits.
        """
        clusters.faults["terasort"] = [None, BROKEN]
        trials = plan()

        with pytest.raises(JobError, match=rf"trial {trials[1].id} failed: .* bad codec"):
            execution(on_error="stop").execute(trials, set())
        assert states(run, trials) == ["done", "failed", "-"]
        assert clusters.running == 0

    @pytest.mark.parametrize(
        ("failures", "state", "set_aside"), [(1, "done", 1), (2, "done", 2), (3, "failed", 2)]
    )
    def test_is_run_again(  # noqa: PLR0917 - three of them are fixtures
        self, execution, run, clusters, failures, state, set_aside
    ):
        """
        The last attempt counts, those before lie in retried/.
        """
        clusters.faults["terasort"] = [BROKEN] * failures
        (trial,) = trials = plan(1)
        execution(retries=2).execute(trials, set())

        assert states(run, trials) == [state]
        assert kept(run, "retried") == [f"{trial.id}-{n + 1}" for n in range(set_aside)]


class TestLostCluster:
    def test_by_the_time_limit(self, execution, run, clusters):
        """
        The trial is timed_out; the next one runs on a new cluster, with its input made anew.
        """
        clusters.faults["terasort"] = [SLOW]
        trials = plan(2)
        execution(limit_s=2.0).execute(trials, set())

        assert states(run, trials) == ["timed_out", "done"]
        assert (len(clusters.started), clusters.running) == (2, 0)
        assert clusters.jobs.count("teragen") == 2
        assert clusters.started[1].hdfs.list("/harness/input")

    def test_by_a_daemon(self, execution, run, clusters):
        """
        The trial fails with the daemon's name and last words, and the run goes on.
        """
        clusters.faults["terasort"] = [None, DEAD]
        trials = plan()
        execution().execute(trials, set())

        record = run.trials()[trials[1].id]
        assert states(run, trials) == ["done", "failed", "done"]
        assert record.reason == "datanode on worker2 died during the trial"
        assert "daemon-datanode-on-worker2.log" in run.raw(trials[1].id).names()
        assert len(clusters.started) == 2

    def test_is_made_anew_for_a_retry(self, execution, run, clusters):
        """
        With retries left, the trial that lost its cluster is run again on the next one.
        """
        clusters.faults["terasort"] = [None, DEAD, DEAD]
        trials = plan()
        execution(retries=2).execute(trials, set())

        assert states(run, trials) == ["done"] * 3
        assert kept(run, "retried") == [f"{trials[1].id}-{n}" for n in (1, 2)]
        assert (len(clusters.started), clusters.running) == (3, 0)

    def test_retries_end_with_the_clusters(self, execution, run, clusters):
        """
        However many retries are left: after three clusters without a trial done the run ends.
        """
        clusters.faults["terasort"] = [DEAD] * 9
        trials = plan(2)

        with pytest.raises(ClusterError, match="3 clusters were lost"):
            execution(retries=9).execute(trials, set())
        assert (states(run, trials), len(kept(run, "retried"))) == (["-", "-"], 3)

    def test_by_the_warm_up(self, execution, run, clusters):
        """
        No trial is measured on what the warm-up left; none is lost by it either.
        """
        clusters.faults["terasort"] = [DEAD]
        trials = plan(2)
        execution(warmup=1).execute(trials, set())

        assert states(run, trials) == ["done", "done"]
        assert (len(clusters.started), len(kept(run, "warmup"))) == (2, 2)

    def test_three_in_a_row_end_the_run(self, execution, run, clusters):
        """
        A machine that loses every cluster is not worn out; what was not run can still be.
        """
        clusters.faults["terasort"] = [DEAD] * 4
        trials = plan(5)

        with pytest.raises(ClusterError, match="3 clusters were lost, and no trial was done"):
            execution().execute(trials, set())
        assert states(run, trials) == ["failed"] * 3 + ["-"] * 2
        assert clusters.running == 0

    def test_three_among_good_trials_do_not(self, execution, run, clusters):
        """
        Some cells lose their cluster; the others are measured all the same.
        """
        clusters.faults["terasort"] = [DEAD, DEAD, None, DEAD]
        trials = plan(5)
        execution().execute(trials, set())

        assert states(run, trials) == ["failed", "failed", "done", "failed", "done"]

    def test_that_does_not_come_up(self, execution, run, monkeypatch):
        """
        Nothing was measured, so nothing is recorded: the error is the cluster's.
        """

        def no_cluster(*_):
            raise ClusterError("no NodeManager on worker1 after 180 s")

        monkeypatch.setattr(module, "PROVIDERS", {"local": no_cluster})

        with pytest.raises(ClusterError, match="no NodeManager on worker1"):
            execution().execute(plan(), set())
        assert run.trials() == {}

    @pytest.mark.parametrize(("on_error", "starts"), [("skip", 2), ("stop", 1)])
    def test_that_comes_up_the_second_time(self, execution, run, clusters, on_error, starts):
        """
        A busy machine gets a second try, unless failures are to stop the run.
        """
        clusters.refusals = 1
        trials = plan(1)
        e = execution(on_error=on_error)

        if starts == 1:
            with pytest.raises(ClusterError, match="no NodeManager on worker1"):
                e.execute(trials, set())
        else:
            e.execute(trials, set())
            assert "cluster: no NodeManager on worker1 after 180 s; starting it again" in (
                e.console.lines
            )
        assert clusters.attempts == starts
        assert states(run, trials) == (["done"] if starts == 2 else ["-"])


class TestInterrupted:
    def test_within_a_job(self, execution, run, clusters):
        """
        Ctrl-C ends the job; what it left is kept outside the trials, and the cluster is down.
        """
        clusters.faults["terasort"] = [None, SLOW]
        trials = plan()
        e = execution(limit_s=60.0)
        clusters.on_job = interrupt_at(3)

        with pytest.raises(KeyboardInterrupt):
            e.execute(trials, set())

        (left,) = kept(run, "retried")
        record = json.loads((run.path / "retried" / left / "trial.json").read_text())
        assert states(run, trials) == ["done", "-", "-"]
        assert (left, record["reason"]) == (f"{trials[1].id}-1", "interrupted by the user")
        assert (run.path / "retried" / left / "raw" / "client-0.log.gz").exists()
        assert clusters.running == 0
        assert [x for x in e.console.lines if "Ctrl-C again stops at once" in x]

    def test_after_its_job(self, execution, run, clusters, monkeypatch):
        """
        A trial that is measured already is collected to its end, and counts.
        """
        trials = plan()
        e = execution()
        plain = fakes.FakeCluster.container_logs

        def logs(*args):
            os.kill(os.getpid(), signal.SIGINT)
            return plain(*args)

        monkeypatch.setattr(fakes.FakeCluster, "container_logs", logs)

        with pytest.raises(KeyboardInterrupt):
            e.execute(trials, set())

        assert states(run, trials) == ["done", "-", "-"]
        assert run.read_trace(trials[0].id)
        assert (kept(run, "retried"), clusters.running) == ([], 0)

    def test_twice(self, execution, run, clusters, monkeypatch):
        """
        The second Ctrl-C does not wait for the logs: the trial is gone, the cluster is down.
        """
        trials = plan()

        def logs(*_):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("the second one did not cut this")

        monkeypatch.setattr(fakes.FakeCluster, "container_logs", logs)

        with pytest.raises(KeyboardInterrupt):
            execution().execute(trials, set())

        assert states(run, trials) == ["-"] * 3
        assert (kept(run, "retried"), clusters.running) == ([], 0)

    def test_goes_on_where_it_was(self, execution, run, clusters):
        """
        What was interrupted is measured by the next call; nothing is measured twice.
        """
        clusters.faults["terasort"] = [None, SLOW]
        trials = plan()
        clusters.on_job = interrupt_at(3)
        with pytest.raises(KeyboardInterrupt):
            execution(limit_s=60.0).execute(trials, set())
        clusters.on_job = lambda _: None

        execution().execute(trials, set(run.trials()))

        assert states(run, trials) == ["done"] * 3


class TestFullDisk:
    def test_before_a_trial(self, execution, run, clusters, monkeypatch):
        """
        None is started where its logs would find no room: the error says how much is free.
        """
        monkeypatch.setattr(files.shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 2**20))

        with pytest.raises(MachineError, match=r"5 MiB are free for results, .* needs 16 MiB"):
            execution().execute(plan(), set())
        assert (clusters.jobs, clusters.running) == ([], 0)

    @pytest.mark.parametrize(
        ("of", "where"), [(watch, "copy_tail"), (fakes.FakeCluster, "daemon_logs")]
    )
    def test_within_a_trial(  # noqa: PLR0917 - four of them are fixtures
        self, execution, run, clusters, monkeypatch, of, where
    ):
        """
        Whichever write finds no room: an unfit machine, no failed trial, and the run can go on.
        """

        def full(*_):
            raise OSError(28, "No space left on device", "/results/x")

        clusters.faults["terasort"] = [None, DEAD]
        trials = plan()
        monkeypatch.setattr(of, where, full)
        with pytest.raises(MachineError, match=r"no space left on device \(.* free\)") as caught:
            execution().execute(trials, set())
        assert caught.value.exit_status == 3
        assert "failed" not in states(run, trials)
        assert clusters.running == 0

    def test_a_failure_on_a_full_disk_does_not_count(self, execution, run, clusters, monkeypatch):
        """
        A job whose logs found no room may fail of that: nothing is recorded against its trial.
        """
        clusters.faults["terasort"] = [BROKEN]
        free = iter([2**40, 2**10, 2**10])
        monkeypatch.setattr(files.shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))

        with pytest.raises(MachineError, match="1 KiB are free"):
            execution().execute(plan(1), set())
        assert run.trials() == {}

    def test_other_errors_are_bugs(self, execution, monkeypatch):
        """
        A file that should be there and is not is nothing that a user could cure.
        """

        def lost(*_):
            raise FileNotFoundError(2, "No such file or directory", "/x")

        monkeypatch.setattr(watch, "copy_tail", lost)

        with pytest.raises(FileNotFoundError):
            execution().execute(plan(1), set())


class TestClockThatWasSet:
    @pytest.mark.parametrize("shift_s", [-3600.0, 3600.0])
    def test_fails_its_trial(self, execution, run, clusters, shift_s):
        """
        Hadoop's times are differences of two clocks then; the trials beside it count.
        """
        shift = [0.0]
        trials = plan()

        def set_clock(number):
            shift[0] = shift_s if number >= 3 else 0.0

        clusters.on_job = set_clock
        execution(wall=lambda: time.time() + shift[0]).execute(trials, set())

        records = [run.trials()[t.id] for t in trials]
        assert states(run, trials) == ["done", "failed", "done"]
        assert "clock was set 3600.0 s" in records[1].reason
        assert all(0 < r.finished_s - r.started_s < 60 for r in records)


def test_runs_never_share_a_name(run, tmp_path):
    """
    A copy of a results folder has the same run ids, and a cluster of its own all the same.
    """
    copy = shutil.copytree(run.path, tmp_path / "copy" / run.id)

    assert cluster_name(Run(copy)) != cluster_name(run)
    assert cluster_name(Run(run.path)) == cluster_name(run)
    assert state._NAME.fullmatch(cluster_name(run))


def interrupt_at(job):
    """
    Presses Ctrl-C when that job starts.
    """
    return lambda number: number == job and os.kill(os.getpid(), signal.SIGINT)


@given(st.lists(st.binary(max_size=6).filter(lambda s: b"\n" not in s), max_size=6), st.data())
def test_slice_begins_with_a_whole_line(tmp_path_factory, lines, data):
    """
    Every line belongs to one slice: that in which its first byte was written.
    """
    source, target = (tmp_path_factory.getbasetemp() / n for n in ("source", "target"))
    whole = b"".join(line + b"\n" for line in lines)
    source.write_bytes(whole)
    start = data.draw(st.integers(0, len(whole)))

    copy_tail(source, start, target)

    starts = [i for i in range(len(whole)) if i == 0 or whole[i - 1 : i] == b"\n"]
    first = min((i for i in starts if i >= start), default=len(whole))
    assert target.read_bytes() == whole[first:]
