"""
The contract of every model of `MODELS`.
"""

import math
import random

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import MissingStatistic
from harness.models import MODELS
from harness.models.whatif.inputs import COSTS
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile, ProfiledJob, Statistic

MIB = 2**20
FLOW = {
    "input_record_bytes": 100.0,
    "map_bytes_selectivity": 1.02,
    "map_records_selectivity": 1.0,
    "records_per_reduce_group": 1.0,
    "reduce_bytes_selectivity": 0.96,
    "reduce_records_selectivity": 1.0,
}
# What the net of GPU jobs needs of its test job, and rates that are as good as the costs are low.
TEST_JOB = {
    "test_input_bytes": 512.0 * MIB, "test_num_maps": 4.0, "gpu_block_bytes": 8.0 * MIB,
    "load_s": 3.0, "map_s": 4.0, "map_gpu_s": 20.0, "reduce_s": 5.0, "test_map_bytes": 256.0 * MIB,
    "test_map_output_bytes": 256.0 * MIB, "test_reduce_bytes": 64.0 * MIB,
    "test_map_spilled_records": 1e6,
}  # fmt: skip
RATES = (
    "disk_read_bps", "disk_write_bps", "mem_read_bps", "mem_write_bps", "network_bps",
    "gpu_h2d_bps", "gpu_mem_read_bps", "gpu_d2h_bps",
)  # fmt: skip
# What a byte costs between tasks.
COPY = ("copy_s_per_byte",)
# What a record or a byte costs in the map function and in its spills.
SPILLS = ("map_s_per_record", "sort_s_per_record", "spill_write_s_per_byte")
costs = st.floats(1e-10, 1e-6)
pytestmark = pytest.mark.parametrize("name", MODELS)


def stat(value):
    """
    A statistic of which only the value matters.
    """
    return Statistic(value=value, count=1, spread=0.0, source="test")


def profile_of(cost=1e-8, without=()):
    """
    A profile with all that any model needs, but the statistics *without*.
    """
    return Profile(
        workload="w",
        statistics={
            n: stat(v)
            for n, v in {
                **FLOW,
                **TEST_JOB,
                **dict.fromkeys(RATES, 1 / cost),
                **dict.fromkeys((*SPILLS, *COPY), cost),
            }.items()
            if n not in without
        },
        costs={n: stat(cost) for n in COSTS if n not in without},
        frame={"task_gap_s": stat(0.7), "job_start_s": stat(5.0)},
        jobs=() if "jobs" in without else [job_of(cost, splits) for splits in (2, 8)],
    )


def job_of(cost, splits):
    """
    A profiled job on four slots that took time for its input alone.
    """
    return ProfiledJob(
        trial=f"t{splits}", cell=f"c{splits}", input_bytes=splits * 16 * MIB, num_splits=splits,
        num_nodes=2, map_slots=4, reduce_slots=4, configuration=JobConfig(),
        job_s=5.0 + cost * splits / min(splits, 4) * 16 * MIB, map_task_s=cost * 16 * MIB,
        body_s=cost * splits / min(splits, 4) * 16 * MIB,
    )  # fmt: skip


@st.composite
def cells(draw):
    """
    Cells of an experiment: configuration, cluster, input.
    """
    slots, nodes = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    maps, split = draw(st.integers(1, 200)), draw(st.integers(MIB, 256 * MIB))
    config = JobConfig(
        num_reduces=draw(st.integers(1, 40)),
        sort_buffer_mb=draw(st.sampled_from([1, 16, 100, 512])),
        merge_factor=draw(st.integers(2, 100)),
        reduce_slowstart=draw(st.floats(0, 1)),
    )
    cluster = Cluster(
        num_nodes=nodes, map_slots_per_node=slots, reduce_slots_per_node=slots,
        map_slots=nodes * slots, reduce_slots=nodes * slots,
    )  # fmt: skip
    size = JobInput(input_bytes=maps * split, num_files=maps, num_splits=maps, split_bytes=split)
    return config, cluster, size


def seconds(answer):
    """
    Every time that a prediction holds.
    """
    single = (answer.body_s, answer.published_s, answer.map_task_s, answer.reduce_task_s)
    spans = (t for span in answer.timeline for t in (span.start_s, span.end_s))
    several = (answer.phases, answer.measurable, answer.estimates)
    return [*single, *spans, *(t for times in several for t in times.values())]


def _random_state():
    legacy = np.random.get_state()  # noqa: NPY002 - the state that libraries share
    return random.getstate(), legacy[1].tolist(), legacy[2]


@given(cost=costs, cell=cells())
def test_times_are_finite_and_not_negative(name, cost, cell):
    """
    An answer is a time; what is no time is not an answer.
    """
    answer = MODELS[name].predict(profile_of(cost), *cell)

    assert answer.body_s > 0
    assert answer.published_s > 0
    assert all(math.isfinite(s) and s >= 0 for s in seconds(answer) if s is not None)


@settings(max_examples=15)
@given(first=cells(), second=cells())
def test_order_of_calls_does_not_matter(name, first, second):
    """
    A model keeps nothing from one call to the next.
    """
    profile = profile_of()
    one = [MODELS[name].predict(profile, *q) for q in (first, second)]
    other = [MODELS[name].predict(profile, *q) for q in (second, first)]

    assert one == other[::-1]


@settings(max_examples=10)
@given(cell=cells())
def test_nothing_is_changed(name, cell):
    """
    Neither what it was given nor the random numbers of others.
    """
    profile = profile_of()
    before = profile.model_dump_json(), _random_state()

    MODELS[name].predict(profile, *cell)

    assert (profile.model_dump_json(), _random_state()) == before


@given(cell=cells())
def test_more_input_takes_no_less_time(name, cell):
    """
    Twice the splits of the same size.
    """
    config, cluster, size = cell
    twice = JobInput(
        input_bytes=2 * size.input_bytes, num_files=2 * size.num_files,
        num_splits=2 * size.num_splits, split_bytes=size.split_bytes,
    )  # fmt: skip

    small, large = (
        MODELS[name].predict(profile_of(), config, cluster, s).body_s for s in (size, twice)
    )

    assert large >= small * (1 - 1e-9)


@settings(max_examples=15)
@given(cell=cells(), cost=costs, factor=st.floats(1.0, 10.0))
def test_a_slower_machine_takes_no_less_time(name, cell, cost, factor):
    """
    All costs of all phases grow.
    """
    fast, slow = (MODELS[name].predict(profile_of(c), *cell) for c in (cost, cost * factor))

    assert slow.body_s >= fast.body_s * (1 - 1e-9)


@settings(max_examples=10)
@given(cell=cells())
def test_is_a_record(name, cell):
    """
    A prediction that was written down and read again is the same.
    """
    answer = MODELS[name].predict(profile_of(), *cell)

    assert (answer.model, answer.cell) == (name, "")
    assert Prediction.model_validate_json(answer.model_dump_json()) == answer


@settings(max_examples=5)
@given(cell=cells())
def test_names_every_statistic_that_it_requires(name, cell):
    """
    Without one of `required` there is no answer but its name; all else may be missing.
    """
    required = MODELS[name].required
    for missing in sorted(required):
        with pytest.raises(MissingStatistic) as refused:
            MODELS[name].predict(profile_of(without={missing}), *cell)
        assert refused.value.names == (missing,)

    others = {*FLOW, *TEST_JOB, *RATES, *SPILLS, *COSTS, *COPY, "jobs"} - required
    assert MODELS[name].predict(profile_of(without=others), *cell).body_s > 0
