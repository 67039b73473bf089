"""
Tests for regimes, and for the ranges of what was profiled.
"""

from collections import Counter

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.ranges import axis_numbers, range_of, ranges_of
from harness.base.records.regimes import REGIMES, in_order, regimes_of
from harness.base.records.trial import Cell, ClusterSpec, Hardware, WorkloadSpec

MIB = 2**20


def inputs(*, splits=4, slots=4, nodes=2, cores=(), split_mib=16, **configuration):
    """
    What a model is given of a job: so many splits, slots, nodes and limits of cores.
    """
    limits = tuple(Hardware(cores=number) for number in cores)
    cluster = Cluster(
        num_nodes=nodes, map_slots_per_node=-(-slots // nodes), reduce_slots_per_node=1,
        map_slots=slots, reduce_slots=nodes, nodes=limits,
    )  # fmt: skip
    size = splits * split_mib * MIB
    job_input = JobInput(
        input_bytes=size, num_files=splits, num_splits=splits, split_bytes=split_mib * MIB
    )
    return JobConfig(**configuration), cluster, job_input


JOBS = st.fixed_dictionaries(
    {
        "splits": st.integers(1, 50), "slots": st.integers(1, 20), "nodes": st.integers(1, 5),
        "split_mib": st.integers(1, 200), "num_reduces": st.integers(0, 9),
        "reduce_slowstart": st.floats(0, 1), "use_combiner": st.booleans(),
        "output_compressed": st.booleans(),
    }
)  # fmt: skip


@given(JOBS)
def test_a_job_is_in_one_regime_of_each_aspect(job):
    """
    Whatever it is.
    """
    names = regimes_of(*inputs(**job))
    aspects = Counter(regime.aspect for regime in REGIMES if regime.name in names)

    assert aspects == dict.fromkeys({regime.aspect for regime in REGIMES}, 1)
    assert in_order(names) == [regime.name for regime in REGIMES if regime.name in names]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"splits": 4}, "one wave of maps"), ({"splits": 5}, "several waves of maps"),
        ({"splits": 2, "slots": 2}, "one task a core"),
        ({"splits": 3, "slots": 3}, "several tasks a core"),
        ({"splits": 4, "cores": (2.0, 4.0)}, "one task a core"),
        ({"splits": 4, "cores": (1.5, 4.0)}, "several tasks a core"),
        ({"splits": 3, "slots": 2, "reduce_slowstart": 0.5}, "several tasks a core"),
        ({"num_reduces": 0}, "no reduces"), ({"reduce_slowstart": 0.05}, "reduces behind maps"),
        ({"splits": 5, "reduce_slowstart": 0.05}, "reduces beside maps"),
        ({"splits": 5, "reduce_slowstart": 1.0}, "reduces behind maps"),
        ({"num_reduces": 2}, "one wave of reduces"),
        ({"num_reduces": 3}, "several waves of reduces"),
        ({"split_mib": 80}, "one spill"), ({"split_mib": 81}, "several spills"),
        ({"split_mib": 81, "sort_buffer_mb": 200}, "one spill"),
        ({"use_combiner": True}, "combiner"), ({}, "no combiner"),
        ({"map_output_compressed": True}, "codec"), ({"input_compressed": True}, "codec"),
        ({"output_compressed": True}, "codec"), ({}, "no codec"),
    ],
)  # fmt: skip
def test_a_regime_begins_where_its_sentence_says(changes, name):
    """
    At each border, on both sides.
    """
    assert name in regimes_of(*inputs(**changes))


def cell(size=10, **rest):
    """
    A cell that reads so many bytes.
    """
    spec = WorkloadSpec(name="w", input_bytes=size, parameters=rest.pop("parameters", {}))
    return Cell(cluster=ClusterSpec(**rest), workload=spec, configuration={"a.b": "3", "c": "x"})


def test_numbers_are_of_the_input_the_cluster_and_each_setting():
    """
    A text is none, and a job's property hides the cluster's.
    """
    _, _, job_input = inputs(splits=7)
    settings = {"dfs.blocksize": "64", "a.b": "9", "d": "text"}
    numbers = axis_numbers(cell(site=settings, workers=2, parameters={"k": 5}), job_input)

    assert numbers == {
        "input_bytes": 10, "num_splits": 7, "workers": 2, "map_slots": 1, "reduce_slots": 1,
        "dfs.blocksize": 64, "a.b": 3, "k": 5,
    }  # fmt: skip


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), min_size=1))
def test_what_was_profiled_is_never_outside(rows):
    """
    Each row lies within the ranges of all.
    """
    ranges = ranges_of(rows)

    assert all(range_of(row, ranges) != "outside" for row in rows)
