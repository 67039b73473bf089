"""
Tests for `harness.observe.profiling.measured`: times of a trial.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trace import JobTrace, TaskAttempt
from harness.observe.profiling import measured as module


def attempt(kind, start, *ends, state="succeeded"):
    """
    An attempt with the ends of its phases; the last one is its own.
    """
    names = {"map": ["map_finish_s"], "reduce": ["shuffle_finish_s", "sort_finish_s"]}[kind]
    phases = dict(zip(names, ends[:-1], strict=True))
    return TaskAttempt(
        attempt_id=f"{kind}{start}", task_id=kind, kind=kind, state=state,
        start_s=start, finish_s=ends[-1], host="w0", **phases,
    )  # fmt: skip


def trace(*attempts):
    """
    A job from second 0 to second 100.
    """
    return JobTrace(
        job_id="job_1", name="j", user="u", state="SUCCEEDED", submit_s=0.0, launch_s=1.0,
        finish_s=100.0, num_maps=2, num_reduces=1, attempts=attempts,
    )  # fmt: skip


def measured(jobs, ends=None):
    """
    Times of a trial whose tasks have no start and no end to lose, but those of *ends*.
    """
    none = {a.attempt_id: (0.0, 0.0) for job in jobs for a in job.attempts}
    return module.measured(jobs, none if ends is None else ends)


MAPS = (attempt("map", 10.0, 14.0, 16.0), attempt("map", 12.0, 20.0, 26.0))


def test_means_over_attempts():
    """
    Each quantity is a mean over the tasks of its kind; the makespan spans all of them.
    """
    result = measured([trace(*MAPS, attempt("reduce", 30.0, 35.0, 36.0, 40.0))])

    assert result == {
        "job_s": 100.0, "frame_s": 74.0, "body_s": 26.0, "makespan_s": 30.0,
        "map_task_s": 10.0, "map_main_s": 6.0, "map_tail_s": 4.0,
        "reduce_task_s": 10.0, "shuffle_s": 5.0, "sort_s": 1.0, "reduce_rest_s": 4.0,
    }  # fmt: skip


def test_map_only_job_has_no_reduce_quantities():
    """
    What did not happen is absent, not 0.
    """
    assert set(measured([trace(*MAPS)])) == {
        "job_s", "frame_s", "body_s", "makespan_s", "map_task_s", "map_main_s", "map_tail_s",
    }  # fmt: skip


@pytest.mark.parametrize("state", ["failed", "killed"])
def test_only_successful_attempts_count_as_tasks(state):
    """
    An attempt that failed or was killed has no say, but in what the job waited for.
    """
    lost = attempt("map", 5.0, 50.0, 90.0, state=state)
    of_job = {"body_s", "frame_s"}

    with_lost, without = measured([trace(*MAPS, lost)]), measured([trace(*MAPS)])

    assert {*with_lost.items()} ^ {*without.items()} <= {
        (name, times[name]) for name in of_job for times in (with_lost, without)
    }


def test_job_without_tasks_has_its_job_time():
    """
    Nothing but the job was seen.
    """
    assert measured([trace()]) == {"job_s": 100.0}


def test_times_that_the_history_lacks_are_left_out():
    """
    A mean is over the tasks whose times are known; where none is known there is no quantity.
    """
    unknown = attempt("map", 40.0, None, 50.0)

    result = measured([trace(*MAPS, unknown)])

    assert (result["map_task_s"], result["map_main_s"], result["map_tail_s"]) == (10.0, 6.0, 4.0)
    assert "map_main_s" not in measured([trace(unknown)])
    assert measured([trace(unknown)])["makespan_s"] == 10.0


def test_makespan_is_from_the_first_start_to_the_last_end():
    """
    Whichever task that is; a job without tasks adds nothing to it.
    """
    reduce = attempt("reduce", 2.0, 5.0, 6.0, 90.0)

    assert measured([trace(*MAPS, reduce), trace()])["makespan_s"] == 88.0


@given(st.permutations([*MAPS, attempt("reduce", 30.0, 35.0, 36.0, 40.0)]))
def test_order_of_attempts_does_not_matter(attempts):
    """
    The history lists them as it likes.
    """
    ordered = sorted(attempts, key=lambda a: a.start_s)

    assert measured([trace(*attempts)]) == measured([trace(*ordered)])


def test_several_jobs_add_up():
    """
    Times of jobs are sums, and their mean; times of tasks are means over the tasks of all jobs.
    """
    second = attempt("map", 10.0, 18.0, 40.0)

    result = measured([trace(*MAPS), trace(second)])

    assert (result["job_s"], result["each_job_s"], result["makespan_s"]) == (200.0, 100.0, 46.0)
    assert (result["map_task_s"], result["map_main_s"]) == (50.0 / 3, 20.0 / 3)


class TestFrame:
    """What passes around tasks is in no body, no task and no phase."""

    def test_tasks_lose_start_and_end(self):
        """
        2 and 1 s of each map, 3 and 4 s of the reduce, in their first and in their last phase.

        At work are the maps from 12 to 25 s, the reduce from 33 to 38 s.
        """
        reduce = attempt("reduce", 30.0, 35.0, 36.0, 42.0)
        ends = {"map10.0": (2.0, 1.0), "map12.0": (2.0, 1.0), "reduce30.0": (3.0, 4.0)}

        result = measured([trace(*MAPS, reduce)], ends)

        assert result == {
            "job_s": 100.0, "frame_s": 82.0, "body_s": 18.0, "makespan_s": 32.0,
            "map_task_s": 7.0, "map_main_s": 4.0, "map_tail_s": 3.0,
            "reduce_task_s": 5.0, "shuffle_s": 2.0, "sort_s": 1.0, "reduce_rest_s": 2.0,
        }  # fmt: skip

    def test_a_phase_may_be_negative(self):
        """
        A usual start that is longer than this task's own shows that it is another task's.
        """
        result = measured([trace(MAPS[0])], {"map10.0": (5.0, 0.5)})

        assert (result["map_main_s"], result["map_tail_s"]) == (-1.0, 1.5)

    def test_whole_attempts_have_a_name_of_their_own(self):
        """
        Where one start is known nowhere there is no body, and what there is holds every start.
        """
        times_s = measured([trace(*MAPS)], {"map10.0": (1.0, 1.0)})

        assert times_s["map_task_s"] == 4.0
        assert times_s["attempts_s"] == 16.0
        assert not {"body_s", "frame_s"} & times_s.keys()

    def test_spans_between_two_moments_of_the_history_need_no_ends(self):
        """
        The merge of a reduce lies between two moments that the history has.
        """
        reduce = attempt("reduce", 30.0, 35.0, 36.0, 42.0)

        assert measured([trace(*MAPS, reduce)], {}) == {
            "job_s": 100.0, "attempts_s": 28.0, "makespan_s": 32.0, "sort_s": 1.0,
        }  # fmt: skip

    def test_bodies_of_several_jobs_add_up(self):
        """
        A job in which no task ran has none to add.
        """
        times_s = measured([trace(*MAPS), trace(MAPS[0]), trace()])

        assert (times_s["body_s"], times_s["frame_s"]) == (16.0 + 6.0, 300.0 - 22.0)
