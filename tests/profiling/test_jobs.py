"""Jobs of the profiling trials as a profile keeps them, and the rate of a node's network."""

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.prediction import JobConfig
from harness.base.records.profile import Profile, SpeedCorrection, Statistic
from harness.base.records.tasks import ReduceTimes, SegmentTimes
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.observe.profiling import fit_profile
from harness.observe.profiling.frame import profiled_jobs
from harness.observe.profiling.jobs import map_slowdown
from harness.observe.profiling.task_statistics import network_statistics
from tests.profiling.jobs import SLOTS, observation

STEADY = SpeedCorrection(reference_rate=100.0, coefficient=0.0, gain=0.0, count=0)
FAST = SpeedCorrection(reference_rate=100.0, coefficient=1.0, gain=0.5, count=9)

FRAME = {
    name: Statistic(value=1.0 if "start" in name else 0.5, count=1, spread=0.0, source="test")
    for name in ("map_start_s", "map_end_s", "reduce_start_s", "reduce_end_s")
}


def maps_end(made):
    """When the last map of an observation ends."""
    return max(a.finish_s for a in made.trace.succeeded("map"))


def task(kind, number, start, finish, state="succeeded"):
    """One attempt."""
    name = f"1_0001_{kind[0]}_{number:06}"
    return TaskAttempt(f"attempt_{name}_0", f"task_{name}", kind, state, start, finish, "w1")


def trace(maps, reduces=()):
    """A job of tasks, each as its begin and end."""
    attempts = [task("map", i, *t) for i, t in enumerate(maps)]
    attempts += [task("reduce", i, *t) for i, t in enumerate(reduces)]
    return JobTrace(
        job_id="job_1_0001", name="w", user="u", state="SUCCEEDED", submit_s=0.0, launch_s=0.0,
        finish_s=99.0, num_maps=len(maps), num_reduces=len(reduces), attempts=tuple(attempts),
    )  # fmt: skip


def copies(number, *segments, host="w1", source="spans"):
    """A reduce that copied *segments*, each as begin, end and bytes."""
    made = tuple(SegmentTimes("m0", "w2", n, 2 * n, "memory", s, f) for s, f, n in segments)
    return ReduceTimes(f"attempt_1_0001_r_{number:06}_0", source, host, 1, made, ())


def rate(*task_times, speed=STEADY, **options):
    """Statistic of the network from one job."""
    made = observation(**options)
    return network_statistics([replace(made, task_times=task_times)], speed).get("network_bps")


class TestJobs:
    def test_hold_what_was_asked_and_measured(self):
        """
        Sizes, slots and configuration of the cell; times of its history.
        """
        made = observation(maps=5, reduces=3, reduce_slowstart=1.0)
        (job,) = profiled_jobs([made], STEADY, FRAME)
        tasks = made.trace.succeeded

        assert (job.trial, job.cell) == (made.trial.id, made.trial.cell.id)
        assert (job.num_splits, job.input_bytes) == (5, 5 * 20_000_000)
        assert (job.map_slots, job.reduce_slots, job.num_nodes) == (SLOTS, SLOTS, SLOTS)
        assert job.configuration == made.config
        assert job.job_s == made.trace.job_s
        # Equal tasks on two slots run in step: of three waves of maps and two of reduces nothing
        # hides the 1 + 0.5 s of each, nor the gaps of 0.5 s.
        around = 2.0 + 1.5 + 5 * 1.5 + 3 * 0.5 + (tasks("reduce")[0].start_s - maps_end(made))
        assert job.body_s == pytest.approx(made.trace.job_s - around)
        mean = {k: sum(a.duration_s for a in tasks(k)) / len(tasks(k)) for k in ("map", "reduce")}
        assert job.map_task_s == pytest.approx(mean["map"] - 1.5)
        assert job.reduce_task_s == pytest.approx(mean["reduce"] - 1.5)
        assert job.shuffle_bytes_total == sum(
            a.counters[f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES"] for a in tasks("reduce")
        )

    def test_times_are_at_reference_speed(self):
        """
        A job on half the speed counts with half its time.
        """
        made = observation(rate=50.0)

        (job,) = profiled_jobs([made], FAST, FRAME)

        assert job.job_s == pytest.approx(made.trace.job_s / 2)
        durations = [a.duration_s for a in made.trace.succeeded("map")]
        assert job.map_task_s == pytest.approx(sum(durations) / len(durations) / 2 - 1.5)

    def test_stand_in_the_profile_by_name(self):
        """
        Whatever the order of the trials, and as they were when the profile is read again.
        """
        made = [observation(repetition=k) for k in range(3)]

        one, other = fit_profile("w", made), fit_profile("w", made[::-1])

        assert [job.trial for job in one.jobs] == sorted(o.trial.id for o in made)
        assert one.jobs == other.jobs
        assert Profile.model_validate_json(one.model_dump_json()).jobs == one.jobs

    def test_older_profiles_have_none(self):
        """
        A profile without the field is read.
        """
        old = Profile(workload="w").model_dump(exclude={"jobs"})

        assert Profile.model_validate(old).jobs == ()

    def test_map_only(self):
        """
        What has no reduces says nothing of them.
        """
        made = observation()
        bare = replace(made, trace=trace([(0, 5)]), config=JobConfig(num_reduces=0))

        (job,) = profiled_jobs([bare], STEADY, FRAME)

        assert (job.reduce_task_s, job.map_slowdown_s, job.shuffle_bytes_total) == (None, None, 0)


class TestSlowdown:
    def test_is_what_maps_beside_reduces_take_longer(self):
        """
        Maps of 10 s, then of 13 s once a reduce runs.
        """
        result = trace([(0, 10), (0, 10), (11, 24), (11, 24)], [(10.5, 60)])

        assert map_slowdown(result, 2) == pytest.approx(3)

    def test_maps_that_ran_into_the_reduce_are_not_undisturbed(self):
        """
        Of the first wave, only what was done before a reduce started is compared with.
        """
        result = trace([(0, 10), (0, 16), (11, 24), (16, 29)], [(10.5, 60)])

        assert map_slowdown(result, 2) == pytest.approx(3)

    @pytest.mark.parametrize(
        "result",
        [
            trace([(0, 10), (11, 21)]),
            trace([(0, 10), (11, 21)], [(21, 30)]),
            trace([(0, 10)], [(2, 30)]),
        ],
        ids=["no reduces", "reduces behind all maps", "one wave"],
    )
    def test_is_not_known(self, result):
        """
        Without a later map beside a reduce nothing tells.
        """
        assert map_slowdown(result, 1) is None

    @given(st.floats(-5, 5))
    def test_may_be_negative(self, longer):
        """
        The first wave may be the slower one; what that means is not said here.
        """
        result = trace([(0, 10), (11, 21 + longer)], [(10, 60)])

        assert map_slowdown(result, 1) == pytest.approx(longer, abs=1e-9)


class TestNetwork:
    def test_counts_a_node_once(self):
        """
        Two reduces of a node copy 300 bytes in 3 s, of which one is shared and one is idle.
        """
        result = rate(copies(0, (1, 3, 100), (4, 4.5, 50)), copies(1, (2, 3.5, 150)))

        assert result.value == pytest.approx(300 / 3.0)
        assert (result.count, result.nodes) == (1, {"w1": pytest.approx(100.0)})

    def test_nodes_are_apart(self):
        """
        What another node takes in at the same time is its own.
        """
        result = rate(copies(0, (1, 2, 100)), copies(1, (1, 2, 300), host="w2"))

        assert result.nodes == {"w1": 100.0, "w2": 300.0}
        assert result.value == pytest.approx(200.0)

    def test_spans_before_logs(self):
        """
        One source for all.
        """
        result = rate(copies(0, (1, 2, 100)), copies(0, (1, 5, 100), source="logs"))

        assert (result.value, result.source[:6]) == (100.0, "spans:")

    def test_at_reference_speed(self):
        """
        A machine of half the speed takes twice as long.
        """
        assert rate(copies(0, (1, 2, 100)), speed=FAST, rate=50.0).value == pytest.approx(200.0)

    def test_nothing_copied(self):
        """
        No copies, copies in no time, and copies of a reduce that failed tell nothing.
        """
        assert rate() is None
        assert rate(copies(0), copies(1, (1, 1, 5)), copies(77, (1, 2, 100))) is None
