"""
Tests for trials on disk: whole or not there, whatever ends the harness.
"""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

from pathlib import Path

import pytest

from harness.base.errors import DataError, MachineError
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.core.store import Run, trials


def trace(job="job_1_0001"):
    """
    A trace with a map, a failed map and a reduce, and counters everywhere.
    """
    attempts = (
        TaskAttempt("a_m_0", "t_m_0", "map", "succeeded", 1.5, 2.5, "w1", map_finish_s=2.25,
                    container_id="c_1", locality="NODE_LOCAL", counters={"T.B": 2, "T.A": 2**62}),
        TaskAttempt("a_m_1", "t_m_0", "map", "failed", 1.0, 2.0, "w2", error="é\n"),
        TaskAttempt("a_r_0", "t_r_0", "reduce", "succeeded", 3.0, 4.0, "w1",
                    shuffle_finish_s=3.25, sort_finish_s=3.5, counters={"T.A": 0}),
    )  # fmt: skip
    return JobTrace(
        job, "word count", "me", "SUCCEEDED", 0.5, 0.75, 5.0, 1, 1, attempts,
        counters={"J.X": 1}, map_counters={"T.A": 5}, reduce_counters={}, diagnostics="",
    )  # fmt: skip


class TestCommit:
    def test_puts_record_and_logs_in_place(self, run, make):
        """
        A committed trial has its record, and its logs as they were.
        """
        trial = make.trials()[0]

        make.commit(run, trial)

        assert run.trials() == {trial.id: make.record(trial)}
        assert run.raw(trial.id).names() == ("containers/c_1/syslog",)
        with run.raw(trial.id).open("containers/c_1/syslog") as log:
            assert log.read() == b"a line\n" * 100

    def test_compresses_every_log(self, run, make):
        """
        Names that end in .gz already keep apart from those that get it.
        """
        trial = make.trials()[0]
        folder = run.start_trial(trial)
        (folder.raw / "d").mkdir()
        for name in ("a", "a.gz", "a.gz.gz", "d/a"):
            (folder.raw / name).write_text(name)

        folder.commit(make.record(trial))

        raw = run.raw(trial.id)
        assert {n: raw.open(n).read().decode() for n in raw.names()} == {
            n: n for n in ("a", "a.gz", "a.gz.gz", "d/a")
        }

    def test_leaves_out_what_is_no_file(self, run, make, tmp_path):
        """
        A link among a task's logs does not bring the file it points to into the results.
        """
        (tmp_path / "secret").write_text("secret")
        trial = make.trials()[0]
        folder = run.start_trial(trial)
        (folder.raw / "link").symlink_to(tmp_path / "secret")
        (folder.raw / "there").symlink_to(tmp_path)
        os.mkfifo(folder.raw / "pipe")

        folder.commit(make.record(trial))

        assert run.raw(trial.id).names() == ()
        assert (tmp_path / "secret").exists()

    def test_never_replaces_a_done_trial(self, run, make):
        """
        A measurement that counts stays.
        """
        trial = make.trials()[0]
        make.commit(run, trial)

        with pytest.raises(DataError, match="is done already"):
            make.commit(run, trial, state="failed")

        assert run.trials()[trial.id].state == "done"

    def test_a_failed_trial_gives_way_and_is_kept(self, run, make):
        """
        Measured again, the failed attempt lies outside the trials, with its logs.
        """
        trial = make.trials()[0]
        for reason in ("one", "two"):
            make.commit(run, trial, state="failed", reason=reason)
        make.commit(run, trial)

        kept = [
            trials.read_trial(run.opener, p, trial.id) for p in named(run.path / "retried", trial)
        ]
        assert [r.reason for r in kept] == ["one", "two"]
        assert run.trials()[trial.id].state == "done"

    def test_all_attempts_are_there_by_their_start(self, run, make):
        """
        Those that do not count, too: how long work takes is seen in each.
        """
        trial = make.trials()[0]
        for kind, started_s in (("warmup", 5.0), ("retried", 3.0), ("disturbed", 1.0)):
            started = make.record(trial).model_copy(update={"started_s": started_s})
            run.start_trial(trial).discard(kind, started)

        assert [each.started_s for each in run.attempts()] == [1.0, 3.0, 5.0]

    @pytest.mark.parametrize("kind", ["warmup", "retried"])
    def test_discarded_trials_do_not_count(self, run, make, kind):
        """
        Warm-up trials and failed attempts are kept outside the trials, each of them.
        """
        trial = make.trials()[0]
        for _ in range(2):
            run.start_trial(trial).discard(kind, make.record(trial))

        assert run.trials() == {}
        assert len(list((run.path / kind).iterdir())) == 2

    @pytest.mark.parametrize("name", ["../trial.json", "nothing", "/etc/passwd", ""])
    def test_only_logs_of_the_trial_can_be_read(self, run, make, name):
        """
        Reading takes the names that the trial has, and no other.
        """
        trial = make.trials()[0]
        make.commit(run, trial)

        with pytest.raises(DataError, match="no log"):
            run.raw(trial.id).open(name)

    def test_a_cut_log_is_said_to_be_damaged(self, run, make):
        """
        Damage is found while reading, and the error names the file.
        """
        trial = make.trials()[0]
        path = make.commit(run, trial) / "raw/containers/c_1/syslog.gz"
        path.write_bytes(path.read_bytes()[:-9])

        with pytest.raises(DataError, match="damaged") as caught:
            run.raw(trial.id).open("containers/c_1/syslog").read()

        assert caught.value.where == str(path)

    @pytest.mark.parametrize("trial_id", ["../small", "0123456789abcdef", ""])
    def test_unknown_trials_are_refused(self, run, trial_id):
        """
        An id that is not in the run is an error with its name.
        """
        with pytest.raises(DataError):
            run.trial_dir(trial_id)

    def test_a_damaged_record_is_named(self, run, make):
        """
        One bad record is an error with its path and its field.
        """
        path = make.commit(run, make.trials()[0]) / "trial.json"
        path.write_text(path.read_text().replace('"done"', '"fine"'))

        with pytest.raises(DataError, match="state") as caught:
            run.trials()

        assert caught.value.where == str(path)


class TestTrace:
    def test_is_read_as_it_was_written(self, run, make):
        """
        Every field and counter survives, in order.
        """
        trial = make.trials()[0]
        make.commit(run, trial)

        run.write_trace(trial.id, [trace(), trace("job_1_0002")])

        assert run.read_trace(trial.id) == (trace(), trace("job_1_0002"))

    def test_jobs_are_read_without_their_tasks(self, run, make):
        """
        Their times are known without a look into the tables.
        """
        trial = make.trials()[0]
        make.commit(run, trial)
        run.write_trace(trial.id, [trace(), trace("job_1_0002")])
        for table in ("attempts.parquet", "counters.parquet"):
            (run.trial_dir(trial.id) / "trace" / table).unlink()

        first, second = run.read_trace(trial.id, whole=False)

        assert (first.submit_s, first.finish_s) == (trace().submit_s, trace().finish_s)
        assert (second.job_id, second.attempts) == ("job_1_0002", ())

    def test_can_be_made_again(self, run, make):
        """
        A later trace takes the place of an earlier one.
        """
        trial = make.trials()[0]
        make.commit(run, trial)
        run.write_trace(trial.id, [trace()])

        run.write_trace(trial.id, [])

        assert run.read_trace(trial.id) == ()

    @pytest.mark.parametrize("name", ["job.json", "attempts.parquet", "counters.parquet"])
    def test_damage_is_named(self, run, make, name):
        """
        A cut, foreign or missing file is an error with its path.
        """
        trial = make.trials()[0]
        make.commit(run, trial)
        run.write_trace(trial.id, [trace()])
        path = run.trial_dir(trial.id) / "trace" / name

        for damage in (lambda: path.write_bytes(path.read_bytes()[:40]), path.unlink):
            damage()
            with pytest.raises(DataError) as caught:
                run.read_trace(trial.id)
            assert name in caught.value.where

    def test_a_number_beyond_hadoops_is_refused(self, run, make):
        """
        A counter that does not fit its column is an error, and the older trace stays.
        """
        trial = make.trials()[0]
        make.commit(run, trial)
        run.write_trace(trial.id, [trace()])
        attempt = TaskAttempt("a", "t", "map", "succeeded", 0, 1, "w", counters={"x": 2**70})

        with pytest.raises(DataError, match="does not fit"):
            run.write_trace(trial.id, [JobTrace("j", "", "", "", 0, 0, 1, 1, 0, (attempt,))])

        assert run.read_trace(trial.id) == (trace(),)


class Killed(BaseException):
    """
    Stands for the end of the process.
    """


STEPS = ("compress_tree", "json_bytes", "sync_tree", "rename_durably")


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_whole_trials_only(run, make, monkeypatch, step, before):
    """
    The trial is there with all that belongs to it, or it is not there.
    """
    trial = make.trials()[0]
    real = getattr(trials, step)

    def deadly(*args):
        if not before:
            real(*args)
        raise Killed

    monkeypatch.setattr(trials, step, deadly)
    with pytest.raises(Killed):
        make.commit(run, trial)
    monkeypatch.undo()

    with run.lock():
        assert bool(run.trials()) == (step == "rename_durably" and not before)
        assert not (run.path / "incoming").exists()
        if not run.trials():
            make.commit(run, trial)
    assert run.raw(trial.id).names() == ("containers/c_1/syslog",)


PROGRAM = """
    import sys
    from pathlib import Path
    from harness.base.records.trace import JobTrace
    from harness.base.records.trial import Trial, TrialRecord, Versions
    from harness.core.store import Run
    import pyarrow.parquet  # or most kills would fall into its import

    run = Run(Path(sys.argv[1]))
    print("ready", flush=True)
    with run.lock():
        done = run.trials()
        for trial in run.read_plan():
            if trial.id not in done:
                folder = run.start_trial(trial)
                for n in range(20):
                    (folder.raw / f"c_{n}").mkdir()
                    (folder.raw / f"c_{n}/syslog").write_text(f"{trial.id} {n}\\n" * 2000)
                record = TrialRecord(trial=trial, state="done", started_s=0, finished_s=1,
                                     versions=Versions(hadoop="3", java="17"))
                folder.commit(record)
            if not run.has_trace(trial.id):
                run.write_trace(trial.id, [JobTrace(trial.id, "", "", "", 0, 0, 1, 0, 0, ())])
    run.finish()
"""


def harness(path):
    """
    Another process that measures what is missing in the run at *path*.
    """
    argv = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(path)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    process.stdout.readline()
    return process


def named(folder, trial):
    """
    Folders of the attempts of *trial*, in their order.
    """
    return sorted(folder.glob(f"{trial.id}-*"))


@pytest.mark.process
def test_kills_at_random_moments_lose_no_trial_and_make_none_twice(run, make):
    """
    Killed again and again and started again each time, a run ends with each trial once and whole.
    """
    plan = make.trials(repeat=5)
    run.write_plan(plan)
    moments = random.Random(7)
    kills = 0

    while not run.finished:
        process = harness(run.path)
        if kills < 5:
            time.sleep(moments.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
        for trial_id in run.trials():
            assert len(run.raw(trial_id).names()) == 20

    assert sorted(run.trials()) == sorted(t.id for t in plan)
    for trial in plan:
        with run.raw(trial.id).open("c_19/syslog") as log:
            assert log.read() == f"{trial.id} 19\n".encode() * 2000
        assert [t.job_id for t in run.read_trace(trial.id)] == [trial.id]


class TestLock:
    def test_sweeps_what_is_half_done(self, run, make):
        """
        Before, what a killed harness left; after, what an error left.
        """
        run.start_trial(make.trials()[0])
        with pytest.raises(ValueError, match="why"), run.lock():  # noqa: PT012
            assert not (run.path / "incoming").exists()
            run.start_trial(make.trials()[0])
            raise ValueError("why")

        assert not (run.path / "incoming").exists()

    def test_second_harness_is_told_who_has_the_run(self, run):
        """
        The error names the process and the time, and how to end it.
        """
        with (
            run.lock(),
            pytest.raises(MachineError, match=f"in use by process {os.getpid()}") as caught,
        ):
            Run(run.path).lock().__enter__()

        assert f"end it: kill {os.getpid()} " in caught.value.fix

    @pytest.mark.process
    def test_ends_with_its_process(self, run, make):
        """
        A killed harness holds nothing, and neither does a child that it left.
        """
        code = (
            "import subprocess, sys, time; from pathlib import Path\n"
            "from harness.core.store import Run\n"
            "with Run(Path(sys.argv[1])).lock():\n"
            "    child = subprocess.Popen(['sleep', '60'])\n"
            "    print(child.pid, flush=True); time.sleep(60)"
        )
        argv = [sys.executable, "-c", code, str(run.path)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        child = int(process.stdout.readline())
        try:
            with pytest.raises(MachineError, match=f"process {process.pid}"), run.lock():
                pytest.fail("the lock is held by the other process")
            process.kill()
            process.wait()

            with run.lock():
                assert run.trials() == {}
        finally:
            os.kill(child, signal.SIGKILL)
            process.stdout.close()

    def test_an_unsigned_lock_is_a_lock(self, run):
        """
        Between locking and signing the holder has no name yet.
        """
        with run.lock():
            (run.path / "lock").write_text("")
            with pytest.raises(MachineError, match="another harness"), run.lock():
                pytest.fail("the lock is held")
