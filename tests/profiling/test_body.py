"""The body of a job as measured: when its tasks were at work."""

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.tasks import MergeTimes, ReduceTimes, SegmentTimes
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.observe.profiling.body import copies_of, working_s
from tests.profiling.jobs import observation

JOB_S = 100.0


def attempt(kind, number, start_s, finish_s, *, shuffled_s=None, state="succeeded", again=0):
    """One attempt, the *again*-th of its task."""
    name = f"{kind[0]}_{number}"
    return TaskAttempt(
        f"{name}_{again}", name, kind, state, start_s, finish_s, "w1", shuffle_finish_s=shuffled_s
    )


def job(*attempts):
    """A job from second 0 to second 100."""
    return JobTrace(
        job_id="job_1", name="j", user="u", state="SUCCEEDED", submit_s=0.0, launch_s=1.0,
        finish_s=JOB_S, num_maps=1, num_reduces=1, attempts=attempts,
    )  # fmt: skip


def at_work(*attempts, ends=(0.0, 0.0), copies=None):
    """Seconds in which *attempts* were at work, each with the same start and end of its JVM."""
    return working_s(job(*attempts), {one.attempt_id: ends for one in attempts}, copies)


class TestUnion:
    """Seconds in which at least one task was at work, however many were."""

    def test_tasks_that_overlap_count_once(self):
        """
        10 to 30 and 20 to 40 s, a pause, and 50 to 60 s.
        """
        maps = (attempt("map", 0, 10, 30), attempt("map", 1, 20, 40), attempt("map", 2, 50, 60))

        assert at_work(*maps) == 40.0

    def test_a_start_beside_other_work_costs_nothing(self):
        """
        Waves that are out of step hide the starts of JVMs: a formula of waves subtracts them.
        """
        apart = (attempt("map", 0, 10, 20), attempt("map", 1, 20, 30))
        beside = (*apart, attempt("map", 2, 15, 25))

        assert at_work(*apart, ends=(2.0, 1.0)) == 14.0
        assert at_work(*beside, ends=(2.0, 1.0)) == 17.0

    def test_an_attempt_that_is_all_start_is_not_at_work(self):
        """
        Borrowed starts may be longer than it was.
        """
        assert at_work(attempt("map", 0, 10, 12), ends=(5.0, 1.0)) == 0.0

    def test_an_attempt_whose_ends_are_unknown_counts_as_a_whole(self):
        """
        As in a history that came without logs.
        """
        assert working_s(job(attempt("map", 0, 10, 30)), {}) == 20.0

    def test_nothing_ran(self):
        """
        A job without tasks did no work.
        """
        assert at_work() == 0.0


class TestLostAttempts:
    """Attempts that brought nothing, but took time."""

    def test_failed_ones_count(self):
        """
        The job waited for them.
        """
        failed = attempt("map", 0, 10, 30, state="failed")

        assert at_work(failed, attempt("map", 0, 40, 50, again=1)) == 30.0

    def test_killed_ones_count_until_their_task_is_done(self):
        """
        Of two speculative attempts, one is killed some time after the other has succeeded.
        """
        killed = attempt("map", 0, 5, 60, state="killed", again=1)

        assert at_work(attempt("map", 0, 10, 30), killed) == 25.0


class TestWaiting:
    """A reduce in its shuffle, beside which no map runs."""

    MAPS = (attempt("map", 0, 10, 20), attempt("map", 1, 30, 40))

    def test_between_two_maps_is_no_work(self):
        """
        The reduce of 12 to 60 s waits from 20 to 30 s for a map that does not run yet.
        """
        assert at_work(*self.MAPS, attempt("reduce", 0, 12, 60, shuffled_s=45)) == 40.0

    def test_start_of_the_next_maps_jvm_is_waiting_too(self):
        """
        And so is the end of the one before: 4 s of work of each map, then the reduce from 40 s.
        """
        reduce = attempt("reduce", 0, 12, 60, shuffled_s=45)

        assert at_work(*self.MAPS, reduce, ends=(4.0, 2.0)) == 4.0 + 4.0 + 18.0

    def test_copying_is_work(self):
        """
        4 s of the 10 s, where recordings show them; what lies outside the attempt does not count.
        """
        reduce = attempt("reduce", 0, 12, 60, shuffled_s=45)
        copies = {"r_0_0": [(0, 5), (18, 22), (21, 24)]}

        assert at_work(*self.MAPS, reduce, copies=copies) == 44.0

    def test_once_all_maps_have_ended_it_is_work(self):
        """
        The last copies, and the questions that it asks until it knows of them.
        """
        late = attempt("reduce", 0, 50, 60, shuffled_s=58)

        assert at_work(*self.MAPS, late) == 30.0

    def test_the_reduce_function_is_work_whatever_maps_do(self):
        """
        A map that ran again for another reduce leaves this one at work.
        """
        again = (*self.MAPS, attempt("map", 0, 70, 80, again=1))

        assert at_work(*again, attempt("reduce", 0, 12, 60, shuffled_s=45)) == 20.0 + 15.0 + 10.0

    def test_another_reduce_at_work_counts(self):
        """
        Only where every running task waits is there no work.
        """
        copied = attempt("reduce", 1, 12, 60, shuffled_s=22)

        assert at_work(*self.MAPS, attempt("reduce", 0, 12, 60, shuffled_s=45), copied) == 48.0

    def test_a_reduce_that_failed_in_its_shuffle_waited(self):
        """
        Its shuffle has no end: it waits until the last map has ended.
        """
        failed = attempt("reduce", 0, 12, 35, state="failed")

        assert at_work(*self.MAPS, failed, attempt("reduce", 0, 40, 60, again=1)) == 40.0

    def test_without_maps_nothing_is_waited_for(self):
        """
        No map is outstanding.
        """
        assert at_work(attempt("reduce", 0, 12, 60, shuffled_s=45)) == 48.0


@st.composite
def attempts_of_a_job(draw):
    """Attempts of several maps and reduces within the job, of any state."""
    seconds = st.floats(0, JOB_S)
    attempts = []
    for place in range(draw(st.integers(0, 8))):
        start_s, shuffled_s, finish_s = sorted(draw(st.tuples(seconds, seconds, seconds)))
        kind = draw(st.sampled_from(["map", "reduce"]))
        attempts.append(
            attempt(
                kind,
                draw(st.integers(0, 3)),
                start_s,
                finish_s,
                shuffled_s=shuffled_s if kind == "reduce" else None,
                state=draw(st.sampled_from(["succeeded", "succeeded", "failed", "killed"])),
                again=place,
            )
        )
    return attempts


ENDS = st.tuples(st.floats(0, 9), st.floats(0, 9))


class TestLaws:
    """What holds whatever ran."""

    @given(attempts_of_a_job(), ENDS)
    def test_no_longer_than_from_the_first_start_to_the_last_end(self, attempts, ends):
        """
        And so never longer than the job.
        """
        span_s = 0.0
        if attempts:
            last_s = max(one.finish_s for one in attempts)
            span_s = last_s - min(one.start_s for one in attempts)

        assert 0.0 <= at_work(*attempts, ends=ends) <= span_s + 1e-9

    @given(attempts_of_a_job(), ENDS, st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, attempts, ends, random):
        """
        A history lists attempts as it likes.
        """
        listed_s = at_work(*attempts, ends=ends)
        random.shuffle(attempts)

        assert at_work(*attempts, ends=ends) == pytest.approx(listed_s, abs=1e-9)

    @given(attempts_of_a_job(), attempts_of_a_job(), ENDS)
    def test_a_task_more_never_shortens_it(self, attempts, others, ends):
        """
        But for a map beside reduces, which may wait for it.
        """
        kinds = {"map"} if all(one.kind == "map" for one in attempts) else {"reduce"}
        more = [
            replace(one, task_id=f"more {one.task_id}", attempt_id=f"more {one.attempt_id}")
            for one in others
            if one.kind in kinds
        ]

        assert at_work(*attempts, *more, ends=ends) >= at_work(*attempts, ends=ends) - 1e-9

    @given(attempts_of_a_job(), st.floats(0, 50), ENDS)
    def test_a_job_ends_it(self, attempts, moved_s, ends):
        """
        Clocks that differ put no work outside the job.
        """
        early = [replace(one, start_s=one.start_s - moved_s) for one in attempts]
        late = [replace(one, finish_s=one.finish_s + moved_s) for one in early]

        assert at_work(*late, ends=ends) <= JOB_S + 1e-9

    @given(attempts_of_a_job(), ENDS)
    def test_is_what_a_count_of_small_steps_finds(self, attempts, ends):
        """
        The rule, moment by moment: some map is at work, or some reduce that does not only wait.
        """
        maps_end_s = max(
            (a.finish_s for a in attempts if (a.kind, a.state) == ("map", "succeeded")), default=-1
        )
        done_s = {}
        for one in attempts:
            if one.state == "succeeded":
                done_s[one.task_id] = min(done_s.get(one.task_id, JOB_S), one.finish_s)
        step_s = 0.05
        steps = 0
        for step in range(int(JOB_S / step_s)):
            moment_s = (step + 0.5) * step_s
            running = [
                a
                for a in attempts
                if a.start_s + ends[0] < moment_s < a.finish_s - ends[1]
                and (a.state == "succeeded" or moment_s < done_s.get(a.task_id, JOB_S))
            ]
            only_waiting = all(
                a.kind == "reduce" and moment_s < min(a.shuffle_finish_s, maps_end_s)
                for a in running
            )
            steps += not only_waiting

        assert steps * step_s == pytest.approx(
            at_work(*attempts, ends=ends), abs=2 * step_s * (len(attempts) + 1)
        )


def test_copies_and_merges_are_those_of_spans_before_logs():
    """
    A reduce that both show counts by its recording.
    """
    made = observation()
    segment = SegmentTimes("m0", "w2", 1, 2, "memory", 3.0, 4.0)
    logged = ReduceTimes("r_0_0", "logs", "w1", 1, (segment,), ())
    merge = MergeTimes("memory", 5.0, 6.0)
    recorded = ReduceTimes("r_0_0", "spans", "w1", 1, (segment,), (merge,))

    both = copies_of(replace(made, task_times=(recorded, logged)))

    assert both == {"r_0_0": [(3.0, 4.0), (5.0, 6.0)]}
