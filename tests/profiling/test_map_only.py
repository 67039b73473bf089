"""Profiles of jobs without reduces, from a real history, and what models make of them."""

import gzip

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import MissingStatistic
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.trace import FILE_INPUT_COUNTER
from harness.base.records.trial import Cell, ClusterSpec, Trial, WorkloadSpec
from harness.models import MODELS
from harness.observe.parsing.history import read_history
from harness.observe.profiling import fit_profile
from harness.observe.profiling.jobs import Observation

HISTORY = Path(__file__).parents[1] / "parsing" / "data" / "maponly-binary.jhist.gz"
CONFIG = JobConfig(num_reduces=0)
CLUSTER = Cluster(
    num_nodes=2, map_slots_per_node=1, reduce_slots_per_node=1, map_slots=2, reduce_slots=2
)
READ = f"{FILE_INPUT_COUNTER}.BYTES_READ"


def size(total, splits=2):
    """An input of so many bytes."""
    return JobInput(
        input_bytes=total, num_files=splits, num_splits=splits, split_bytes=total / splits
    )


def profile(read=300_000):
    """The profile of the recorded job, run as if for three sizes; each map *read* so many bytes."""
    with gzip.open(HISTORY) as lines:
        job = read_history(lines, "maponly")
    attempts = tuple(replace(a, counters={**a.counters, READ: read}) for a in job.attempts)
    trace, observations = replace(job, attempts=attempts), []
    for total in (1_000_000, 2_000_000, 3_000_000):
        cell = Cell(
            cluster=ClusterSpec(workers=2), workload=WorkloadSpec(name="w", input_bytes=total)
        )
        trial = Trial(id=cell.id, cell=cell, repetition=0, profiling=True)
        observations.append(Observation(trial, trace, CONFIG, CLUSTER, size(total), None))
    return fit_profile("w", observations)


def test_what_did_not_happen_is_absent():
    """
    No statistic, no cost and no time of reduces or of their input; none of them is 0.
    """
    result = profile()

    assert set(result.statistics) == {
        "input_record_bytes", "map_bytes_selectivity", "map_records_selectivity",
        "input_compression_ratio", "map_output_compression_ratio", "output_compression_ratio",
    }  # fmt: skip
    assert set(result.costs) == {
        "hdfs_read_s_per_byte", "hdfs_write_s_per_byte", "map_cpu_s_per_record",
        "setup_cpu_s", "cleanup_cpu_s",
    }  # fmt: skip
    assert {(j.reduce_task_s, j.map_slowdown_s) for j in result.jobs} == {(None, None)}


def test_maps_that_read_no_file_have_no_size_of_a_record():
    """
    Records without bytes tell nothing, and it is said what that costs.
    """
    result = profile(read=0)

    assert "input_record_bytes" not in result.statistics
    assert any("input_record_bytes is missing" in warning for warning in result.warnings)


@pytest.mark.parametrize("name", list(MODELS))
def test_models_answer_or_say_what_they_lack(name):
    """
    A time of maps alone, or the names of the statistics that are missing.
    """
    wanted = profile(), CONFIG, CLUSTER, size(5_000_000, 4)
    if name.startswith("spn-gc"):  # a model of maps that compute on a device
        with pytest.raises(MissingStatistic, match="gpu"):
            MODELS[name].predict(*wanted)
        return
    answer = MODELS[name].predict(*wanted)

    assert answer.body_s > 0
    assert answer.reduce_task_s is None
    assert not {"shuffle_s", "sort_s", "reduce_rest_s"} & set(answer.measurable)
