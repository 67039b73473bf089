"""Processor time of processes and of machines, and starts of JVMs by how many ran at once."""

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.profile import SpeedCorrection
from harness.base.records.tasks import (
    MapTimes,
    ProcessCpu,
    RecordLoop,
    ReduceTimes,
    Span,
    TaskSpans,
)
from harness.base.records.trace import TASK_COUNTER, MachineSample, SpeedSample
from harness.observe.profiling.jobs import Machine
from harness.observe.profiling.processes import (
    outside_cpu_s,
    probe_cpu_s,
    process_statistics,
    sampled_cpu_s,
    starts_at_once,
    task_cpu_s,
)
from harness.observe.profiling.task_times import process_cpu
from tests.profiling.jobs import observation

STEADY = SpeedCorrection(reference_rate=100.0, coefficient=0.0, gain=0.0, count=0)
FAST = SpeedCorrection(reference_rate=100.0, coefficient=1.0, gain=0.5, count=9)


def sample(at_s, own):
    """A machine of which our processes had a share *own* in the second before *at_s*."""
    return MachineSample(at_s, 0.5, 0.0, 0.0, 1, 2**30, own=own)


def recorded(made, process, start_up_s=2.0, kinds=("map",)):
    """A job of which every task of these *kinds* has a recording with this *process*."""
    times = []
    for one in made.trace.attempts:
        of = (one.attempt_id, "spans", one.host, 0, ())
        ends = {"start_up_s": start_up_s, "end_s": 0.1, "process": process}
        if one.kind in kinds:
            times.append(
                MapTimes(*of, **ends) if one.kind == "map" else ReduceTimes(*of, (), **ends)
            )
    return replace(made, task_times=tuple(times))


def used(made, seconds):
    """A job each of whose tasks has used so many processor seconds."""
    return recorded(made, ProcessCpu(0.5, seconds, None), kinds=("map", "reduce"))


class TestSamples:
    """The load of a machine's processes as processor seconds."""

    def test_count_as_far_as_they_lie_within(self):
        """
        Half a core of four for 2 s, a whole one for a second, of which half lies behind the end.
        """
        samples = [sample(10, 0.125), sample(11, 0.125), sample(12, 0.25), sample(13, 1.0)]

        assert sampled_cpu_s(samples, 4, (9.0, 11.5)) == pytest.approx(0.5 + 0.5 + 0.5)

    @pytest.mark.parametrize(
        "samples", [[], [sample(10, 0.1), sample(11, None)], [sample(10, 0.1)]]
    )
    def test_that_do_not_say_it_give_nothing(self, samples):
        """
        None at all, one that nobody knows, or the smaller part of a job.
        """
        assert sampled_cpu_s(samples, 4, (9.0, 11.0)) is None

    @given(st.lists(st.floats(0, 1), min_size=4, max_size=12), st.integers(1, 64))
    def test_are_never_more_than_the_machine_has(self, shares, cores):
        """
        Nor less than none.
        """
        samples = [sample(float(second), share) for second, share in enumerate(shares)]

        used_s = sampled_cpu_s(samples, cores, (0.0, float(len(shares) - 1)))

        assert 0 <= used_s <= cores * (len(shares) - 1) + 1e-9

    def test_of_the_probe_are_its_own_clock(self):
        """
        Its sample stands for the second before it.
        """
        samples = [SpeedSample(at_s, 0, 1, 0.01) for at_s in (10.2, 11.2, 12.2, 13.2)]

        assert probe_cpu_s(samples, (10.0, 12.0)) == pytest.approx(0.02)


class TestProcess:
    """A task's process, as its recording has it."""

    def recording(self, *cpu_s, end_s=4.0):
        """A task of which each thread has one span, and the process 1 s before main."""
        spans = tuple(
            Span("main", f"thread {place}", 0.0, 5.0, each_s, -1)
            for place, each_s in enumerate(cpu_s)
        )
        loop = RecordLoop(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ())
        return TaskSpans("a", "closed", 0.0, None, 0.0, 0, 5, loop, spans, 1.0, end_s)

    def test_helpers_are_what_no_thread_with_spans_has_used(self):
        """
        Of 4 s, 1 before main, 1.5 and 0.25 in threads of the task.
        """
        assert process_cpu(self.recording(1.5, 0.25)) == ProcessCpu(1.0, 4.0, 1.25)

    def test_helpers_are_never_less_than_none(self):
        """
        The kernel counts a process in ticks.
        """
        assert process_cpu(self.recording(3.005)).helpers_s == 0.0

    def test_helpers_are_unknown_where_a_threads_clock_was_not_read(self):
        """
        What is left would hold its work.
        """
        assert process_cpu(self.recording(1.5, None)).helpers_s is None

    def test_that_was_killed_has_none(self):
        """
        Nobody read it at its end.
        """
        assert process_cpu(self.recording(1.5, end_s=None)) is None


class TestOutside:
    """Processor time of a job that is in no task's process."""

    def test_is_what_tasks_have_not_used(self):
        """
        Of 30 s, six tasks with 4 s each.
        """
        made = used(replace(observation(), cluster_cpu_s=30.0), 4.0)

        assert (task_cpu_s(made), outside_cpu_s(made)) == (24.0, 6.0)

    def test_of_a_task_that_failed_is_what_hadoop_counted(self):
        """
        It has no recording to its end.
        """
        made = used(observation(maps=2, reduces=1), 4.0)
        counter = {f"{TASK_COUNTER}.CPU_MILLISECONDS": 1_500}
        first, *others = made.trace.attempts
        failed = replace(first, attempt_id="failed", state="failed", counters=counter)
        attempts = (failed, first, *others)

        assert task_cpu_s(replace(made, trace=replace(made.trace, attempts=attempts))) == 13.5

    def test_is_unknown_where_a_task_was_not_recorded(self):
        """
        Hadoop's counter lacks its start; nor is it known where no machine was sampled.
        """
        made = replace(observation(), cluster_cpu_s=30.0)

        assert outside_cpu_s(recorded(made, ProcessCpu(0.5, 2.0, None))) is None
        assert outside_cpu_s(used(observation(), 4.0)) is None

    def test_is_split_into_the_jobs_and_each_containers(self):
        """
        3 s of a job and 2 s of a container, found again at reference speed.
        """
        jobs = []
        for maps in (2, 4, 8):
            made = used(observation(maps=maps, reduces=1, rate=50.0), 1.0)
            used_s = (maps + 1) + 3.0 + 2.0 * (maps + 1)
            jobs.append(replace(made, cluster_cpu_s=used_s))

        found = process_statistics(jobs, FAST)

        assert found["outside_cpu_s_per_job"].value == pytest.approx(1.5)
        assert found["outside_cpu_s_per_container"].value == pytest.approx(1.0)
        assert found["outside_cpu_s_per_container"].spread == pytest.approx(0.0, abs=1e-9)

    def test_is_all_of_containers_where_jobs_are_alike(self):
        """
        And says so.
        """
        made = used(replace(observation(maps=3, reduces=1), cluster_cpu_s=12.0), 1.0)

        found = process_statistics([made, made], STEADY)

        assert found["outside_cpu_s_per_container"].value == pytest.approx(2.0)
        assert "what is the job's is in it" in found["outside_cpu_s_per_container"].source
        assert "outside_cpu_s_per_job" not in found


class TestStatistics:
    """What a profile holds of processes and of the machine."""

    def test_of_tasks_are_means(self):
        """
        Of each kind, with their count; reduces without a recording have none.
        """
        fast = recorded(observation(maps=2), ProcessCpu(0.5, 2.0, 0.25))
        slow = recorded(observation(maps=2), ProcessCpu(1.5, 6.0, None))

        found = process_statistics([fast, slow], STEADY)

        assert {name: (found[name].value, found[name].count) for name in found} == {
            "map_boot_cpu_s": (1.0, 4), "map_process_cpu_s": (4.0, 4),
            "map_helper_cpu_s": (0.25, 2),
        }  # fmt: skip

    def test_of_the_machine_are_its_cores_and_the_workers_on_it(self):
        """
        Once for each machine, however many jobs ran there.
        """
        two = (Machine(("worker1", "worker2"), 8.0, 2), Machine(("worker3",), 16.0, 1))
        found = process_statistics([replace(observation(), machines=two)] * 3, STEADY)

        assert (found["machine_cores"].value, found["machine_cores"].count) == (12.0, 2)
        assert found["machine_nodes"].value == 1.5

    def test_of_nothing_are_absent(self):
        """
        A number from nothing would be one.
        """
        assert process_statistics([observation()], STEADY) == {}


class TestStarts:
    """Starts of JVMs by how many tasks ran at once on their machine."""

    def rows(self, made, speed=STEADY):
        """Kind, number at once, seconds, count of each row."""
        rows = starts_at_once([made], speed)
        return [(row.kind, row.at_once, row.start_s, row.count) for row in rows]

    def test_tasks_of_one_machine_count_together(self):
        """
        Two waves of two maps on two nodes of one machine, and a last one alone.
        """
        made = recorded(observation(maps=5), ProcessCpu(0.5, 2.0, None))
        here = replace(made, machines=(Machine((), 4.0, 2),))

        assert self.rows(here) == [("map", 1, 2.0, 1), ("map", 2, 2.0, 4)]
        assert {row.boot_cpu_s for row in starts_at_once([here], STEADY)} == {0.5}

    def test_tasks_of_another_machine_do_not_count(self):
        """
        A host of which nothing is known is a machine of its own.
        """
        made = recorded(observation(maps=2), ProcessCpu(0.5, 2.0, None))
        first, second, *others = made.trace.attempts
        apart = (replace(first, host="w1"), replace(second, host="w2"), *others)
        made = replace(made, trace=replace(made.trace, attempts=apart))

        assert self.rows(made) == [("map", 1, 2.0, 2)]

    def test_are_at_reference_speed(self):
        """
        A machine of half the speed takes twice as long.
        """
        made = recorded(observation(maps=2, rate=50.0), ProcessCpu(0.5, 2.0, None))

        assert self.rows(made, FAST) == [("map", 2, 1.0, 2)]

    def test_that_nothing_shows_have_no_row(self):
        """
        A history knows no start.
        """
        assert self.rows(observation()) == []
