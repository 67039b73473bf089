"""From a real job's history to a profile."""

from pathlib import Path

import pytest

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.trial import Cell, ClusterSpec, Trial, WorkloadSpec
from harness.observe.parsing.history import read_history
from harness.observe.profiling import fit_profile
from harness.observe.profiling.jobs import Observation

DATA = Path(__file__).parent.parent / "parsing" / "data"


def profile(name, size, *, combine):
    """Profile of one recorded job (``tests/parsing/data/README.md``)."""
    trace = read_history((DATA / f"{name}.jhist").read_bytes().splitlines(keepends=True), name)
    cell = Cell(cluster=ClusterSpec(workers=2), workload=WorkloadSpec(name=name, input_bytes=size))
    observation = Observation(
        trial=Trial(id="t", cell=cell, repetition=0, profiling=True),
        trace=trace,
        config=JobConfig(
            num_reduces=2, sort_buffer_mb=1, merge_factor=3, use_combiner=combine,
            reduce_heap_bytes=387 * 2**20,
        ),
        cluster=Cluster(
            num_nodes=2, map_slots_per_node=2, reduce_slots_per_node=1,
            map_slots=4, reduce_slots=2,
        ),
        job_input=JobInput(input_bytes=size, num_files=1, num_splits=3, split_bytes=size / 3),
        rate=None,
    )  # fmt: skip
    return fit_profile(name, [observation])


def test_terasort():
    """
    Rows of 100 bytes go through maps and reduces one for one, each a group of its own.
    """
    result = {
        n: s.value for n, s in profile("terasort", 6_000_000, combine=False).statistics.items()
    }

    assert result == {
        "input_record_bytes": 100.0,
        "map_bytes_selectivity": 1.02,
        "map_records_selectivity": 1.0,
        "records_per_reduce_group": 1.0,
        "reduce_bytes_selectivity": pytest.approx(100 / 104, rel=1e-4),
        "reduce_records_selectivity": 1.0,
        "input_compression_ratio": 1.0,
        "map_output_compression_ratio": 1.0,
        "output_compression_ratio": 1.0,
    }


def test_wordcount():
    """
    The combiner ran in spills and merges; costs explain each phase of the few tasks there are.
    """
    result = profile("wordcount", 6_000_000, combine=True)

    values = {n: s.value for n, s in result.statistics.items()}
    assert values["map_records_selectivity"] == pytest.approx(12, rel=1e-3)  # words of a line
    assert 0.2 < values["combine_records_selectivity"] < 0.3
    assert 0.2 < values["combine_bytes_selectivity"] < 0.3
    assert {f.phase: f.count for f in result.fit} == {
        "map_main_s": 3, "map_tail_s": 3, "shuffle_s": 2, "sort_s": 2, "reduce_rest_s": 2,
    }  # fmt: skip
    assert result.costs["setup_cpu_s"].value > 0
    around = result.frame["job_start_s"].value + result.frame["job_end_s"].value
    assert around == pytest.approx(10.637, abs=1e-3)
