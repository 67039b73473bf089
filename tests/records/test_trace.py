"""
Tests for `harness.base.records.trace`.
"""

from dataclasses import replace

import pytest

from harness.base.records.trace import (
    BYTES_READ,
    FILE_SYSTEM_COUNTER,
    TASK_COUNTER,
    JobTrace,
    TaskAttempt,
    bytes_read,
    joined,
)


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


def read(**counts):
    """
    Counters of maps by short names: of the format, of records, of splits, else of a file system.
    """
    names = {
        "format": BYTES_READ,
        "records": f"{TASK_COUNTER}.MAP_INPUT_RECORDS",
        "splits": f"{TASK_COUNTER}.SPLIT_RAW_BYTES",
    }
    return {
        names.get(name, f"{FILE_SYSTEM_COUNTER}.{name}_BYTES_READ"): count
        for name, count in counts.items()
    }


class TestBytesRead:
    """What maps read, by Hadoop's counters of formats or of file systems."""

    @pytest.mark.parametrize(
        ("counters", "maps", "expected"),
        [
            (read(format=118, HDFS=268, records=1), 1, 118),
            (read(format=0, HDFS=5135, splits=135, records=50), 1, 5000),
            (read(format=0, HDFS=5135, records=50), 1, 5135),
            (read(S3A=7000, FILE=90000, records=50), 2, 7000),
            (read(format=0, WASB=6000, ABFS=5000, GS=4000, VIEWFS=3000, records=9), 1, 18000),
            # TeraGen, a sleeping job and an import of a database read their splits alone.
            (read(format=0, HDFS=158, splits=158, records=100), 2, 0),
            (read(format=0, HDFS=247, records=60_000), 3, 0),
            (read(format=0, HDFS=480, records=10), 10, 0),
            (read(format=0, HDFS=348, splits=348, records=99), 4, 0),
            # A few short records of a real file.
            (read(format=0, HDFS=800, records=20), 1, 800),
            (read(format=0, FILE=900000, records=9), 1, 0),
            (read(FILE=900000, records=9), 1, None),
            (read(records=9), 1, None),
        ],
    )
    def test_by_counters(self, counters, maps, expected):
        """
        The local file system holds spills; a split is described in less than a KiB.
        """
        assert bytes_read(counters, maps) == expected

    def test_of_a_job_are_those_of_its_maps(self):
        """
        Of totals where there are some, else of the tasks, each once, else of all there is.
        """
        one = replace(job(0), attempts=(replace(attempt("a"), counters=read(format=0, HDFS=3000)),))
        twice = replace(one, attempts=(*one.attempts, *one.attempts))

        assert one.attempts[0].input_bytes == one.input_bytes == twice.input_bytes == 3000
        assert replace(one, map_counters=read(format=5000)).input_bytes == 5000
        assert replace(job(0), counters=read(format=7000)).input_bytes == 7000
        assert job(0).input_bytes == attempt("a").input_bytes == 0


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
