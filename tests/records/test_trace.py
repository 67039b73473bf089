"""
Tests for `harness.base.records.trace`.
"""

from dataclasses import replace

from harness.base.records.trace import JobTrace, TaskAttempt, joined


def attempt(name):
    """
    An attempt of that name.
    """
    return TaskAttempt(name, name, "map", "succeeded", 1.0, 2.0, "w0")


def job(number, *, state="SUCCEEDED", **counters):
    """
    A job of 10 seconds, the n-th of its trial.
    """
    return JobTrace(
        job_id=f"job_1_{number}", name="j", user="u", state=state, submit_s=20.0 * number,
        launch_s=20.0 * number + 1, finish_s=20.0 * number + 10, num_maps=2, num_reduces=1,
        attempts=(attempt(f"a{number}"),), counters=counters, diagnostics=state,
    )  # fmt: skip


class TestJoined:
    def test_a_single_job_is_itself(self):
        """
        Nothing is copied.
        """
        one = job(0)

        assert joined([one]) is one

    def test_spans_all_jobs(self):
        """
        From the first submission to the last end; tasks and counters are those of all.
        """
        whole = joined([job(0, a=1), job(1, a=2, b=3), job(2)])

        assert (whole.submit_s, whole.finish_s, whole.job_s) == (0.0, 50.0, 50.0)
        assert (whole.num_maps, whole.num_reduces) == (6, 3)
        assert [a.attempt_id for a in whole.attempts] == ["a0", "a1", "a2"]
        assert whole.counters == {"a": 3, "b": 3}
        assert whole.job_id == "job_1_0 to job_1_2"

    def test_did_not_succeed_where_one_job_did_not(self):
        """
        Its state and what it said are the whole's.
        """
        whole = joined([job(0), job(1, state="FAILED"), job(2)])

        assert (whole.state, whole.diagnostics) == ("FAILED", "FAILED")


class TestSucceeded:
    def test_attempts_of_one_kind_by_their_start(self):
        """
        Failed attempts and those of the other kind are left out; equal starts go by name.
        """
        attempts = (
            TaskAttempt("m3", "t3", "map", "succeeded", 2.0, 3.0, "w0"),
            TaskAttempt("m2", "t2", "map", "succeeded", 1.0, 9.0, "w0"),
            TaskAttempt("m1", "t1", "map", "succeeded", 1.0, 2.0, "w0"),
            TaskAttempt("m0", "t0", "map", "failed", 0.0, 1.0, "w0"),
            TaskAttempt("r0", "t4", "reduce", "succeeded", 0.0, 1.0, "w0"),
        )
        trace = replace(job(0), attempts=attempts)

        assert [each.attempt_id for each in trace.succeeded("map")] == ["m1", "m2", "m3"]
        assert [each.attempt_id for each in trace.succeeded("reduce")] == ["r0"]
