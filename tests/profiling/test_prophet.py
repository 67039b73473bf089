"""
A profile has what Prophet asks for, whichever source it comes from.
"""

from dataclasses import replace
from statistics import fmean

import pytest

from harness.base.records.prediction import JobInput
from harness.base.records.trace import FILE_INPUT_COUNTER
from harness.models import MODELS
from harness.observe.profiling import fit_profile
from harness.observe.profiling.task_times import logged_map_times, logged_reduce_times
from tests.parsing.recorded import history, reported
from tests.profiling.jobs import observation


def observed(job, **config):
    """
    A recorded job with its own history, as far as its logs are here, and its configuration.
    """
    task_times = [
        logged_map_times(t.log, t.attempt)
        if t.attempt.kind == "map"
        else logged_reduce_times(t.log, t.shuffle, t.attempt)
        for t in reported(job)
    ]
    made = observation(**config)
    return replace(made, trace=history(job), task_times=tuple(task_times))


@pytest.fixture(scope="module")
def stalled():
    """
    TeraSort of 48 MiB in 12 maps and 4 reduces with a sort buffer of 2 MiB.
    """
    return observed("stalled", sort_mb=2, merge_factor=3, reduces=4)


def predict(job):
    """
    Prophet's answer for the job that it was profiled on.
    """
    maps = [a for a in job.trace.attempts if a.kind == "map"]
    size = fmean(a.counters[f"{FILE_INPUT_COUNTER}.BYTES_READ"] for a in maps)
    job_input = JobInput(input_bytes=round(size * len(maps)), num_files=1, num_splits=len(maps),
                         split_bytes=size)  # fmt: skip
    return MODELS["prophet"].predict(fit_profile("w", [job]), job.config, job.cluster, job_input)


def test_stock_logs_are_enough(stalled):
    """
    No tracer, no parts of spills: the answer says what stands for them.
    """
    p = predict(stalled)

    assert p.body_s > 0
    assert any("spill_s_per_record stands for all" in w for w in p.warnings)


def test_real_spills_are_counted(stalled):
    """
    (u5) is the number of spills that Hadoop logged.
    """
    spills = [len(t.log.spills) for t in reported("stalled") if t.attempt.kind == "map"]

    assert [predict(stalled).dataflow["num_spills"]] == spills


def test_real_map_lasts_as_long_as_it_did(stalled):
    """
    What is left to Prophet when its own statistics are given back to it.
    """
    (real,) = [t.attempt for t in reported("stalled") if t.attempt.kind == "map"]

    p, frame = predict(stalled), fit_profile("w", [stalled]).frame

    main_s = real.map_finish_s - real.start_s - frame["map_start_s"].value
    assert p.measurable["map_main_s"] == pytest.approx(main_s, rel=0.12)
