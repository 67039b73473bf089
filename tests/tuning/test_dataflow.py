"""
What settings do in one job: each reason is a count of what goes through that job.
"""

import pytest

from harness.base.units import MIB
from harness.models import MODELS
from harness.tuning.dataflow import REASONS, Flow, reasons_of
from harness.tuning.settings import SETTINGS, SPLIT, SWITCH
from tests.tuning.test_choices import profile_with
from tests.tuning.test_optimizers import PROFILE, job

ONE_TO_ONE = profile_with(
    input_record_bytes=100.0, map_bytes_selectivity=1.0, map_records_selectivity=1.0
)


def reason(name, profile=ONE_TO_ONE, of=None, **values):
    """
    What is said of one of *values*, by its name.
    """
    return reasons_of(profile, of or job(files=(128,) * 4, reduces=1), values)[name]


@pytest.mark.parametrize(
    ("buffer_mb", "percent", "said"),
    [(22, 0.5, "14 spills"), (200, 0.8, "one spill"), (100, 0.8, "2 spills")],
)
def test_a_buffer_says_how_often_it_spills(buffer_mb, percent, said):
    """
    What a map writes, with 16 bytes a record, over what is full: never a constant.
    """
    text = reason("sort_buffer_mb", sort_buffer_mb=buffer_mb, sort_spill_percent=percent)
    share = reason("sort_spill_percent", sort_buffer_mb=buffer_mb, sort_spill_percent=percent)

    assert text == f"a map writes 128 MiB and 1342177 records: {said}, full to {percent:g}"
    assert share == f"of {buffer_mb} MiB, for 128 MiB that a map writes: {said}"


@pytest.mark.parametrize("buffer_mb", [5, 22, 60, 150])
def test_spills_are_those_of_what_if(buffer_mb):
    """
    Its equation (16) under the rules of Hadoop 3 counts as many.
    """
    of = job(files=(128,) * 4, sort_buffer_mb=buffer_mb)
    answer = MODELS["whatif-mr2"].predict(PROFILE, of.configuration, of.cluster, of.job_input)

    assert Flow(PROFILE, of, {}).spills == answer.dataflow["num_spills"]


def test_each_reason_is_of_this_job():
    """
    512 MiB in four maps on four slots, two reduces with a heap of 819 MiB.
    """
    values = {
        SPLIT: 128.0 * MIB,
        "num_reduces": 2.0,
        "merge_factor": 10.0,
        "parallel_copies": 5.0,
        "shuffle_buffer_percent": 0.7,
        "shuffle_merge_percent": 0.1,
        "shuffle_segment_limit_percent": 0.25,
        "inmem_merge_segments": 1000.0,
        "reduce_buffer_percent": 0.0,
        "reduce_slowstart": 0.5,
        SWITCH: 0.0,
        "sort_buffer_mb": 22.0,
        "sort_spill_percent": 0.5,
    }
    reasons = reasons_of(ONE_TO_ONE, job(files=(128,) * 4), values)

    assert reasons[SPLIT] == "4 maps of 128 MiB, 1 wave on 4 slots"
    assert reasons["num_reduces"] == "1 wave on 4 slots, each copies 256 MiB"
    assert reasons["merge_factor"] == (
        "14 spills of a map merged in 2 passes, 4 outputs of maps in 1 at most by a reduce"
    )
    assert reasons["parallel_copies"] == "a reduce copies 4 outputs of maps, of 64 MiB each"
    assert reasons["shuffle_buffer_percent"] == "a reduce copies 256 MiB, its heap has 819 MiB"
    assert reasons["shuffle_merge_percent"] == (
        "merged to disk from 57.3 MiB on: 4 times of 256 MiB"
    )
    assert reasons["shuffle_segment_limit_percent"] == (
        "an output of 64 MiB stays in memory: up to 143 MiB may stay"
    )
    assert (
        reasons["inmem_merge_segments"] == "a reduce copies 4 outputs: bytes decide when to merge"
    )
    assert reasons["reduce_buffer_percent"] == (
        "all 256 MiB of a reduce are on disk before its function begins"
    )
    assert reasons["reduce_slowstart"] == "reduces start when 2 of 4 maps have ended, in 1 wave"
    assert reasons[SWITCH] == "a reduce copies 64 MiB of each map, and nothing is compressed"
    assert reasons.keys() == REASONS.keys()


def test_other_values_have_other_reasons():
    """
    Where something binds that did not before.
    """
    assert reason("shuffle_segment_limit_percent", shuffle_segment_limit_percent=0.1) == (
        "an output of 128 MiB goes to disk at once: up to 57.3 MiB may stay"
    )
    assert reason("inmem_merge_segments", inmem_merge_segments=2.0) == (
        "a reduce copies 4 outputs: merged 2 times by their number"
    )
    assert reason("inmem_merge_segments", inmem_merge_segments=0.0).startswith("bytes alone")
    assert reason("shuffle_merge_percent", shuffle_merge_percent=0.95) == (
        "merged to disk from 545 MiB on: 512 MiB stay below it"
    )
    assert reason("reduce_buffer_percent", reduce_buffer_percent=0.7).startswith("all 512 MiB")
    assert reason("reduce_buffer_percent", reduce_buffer_percent=0.1).startswith("81.9 MiB of a")
    assert reason("reduce_slowstart", reduce_slowstart=1.0) == (
        "reduces start when all 4 maps have ended: nothing overlaps"
    )


def test_without_the_statistics_it_says_why_a_setting_is_tuned():
    """
    Nothing is counted of what is not known.
    """
    unknown = profile_with(input_record_bytes=None)

    assert reason("sort_buffer_mb", profile=unknown, sort_buffer_mb=22.0) == (
        SETTINGS["sort_buffer_mb"].meaning
    )
