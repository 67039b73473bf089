"""
Jobs of a trial of which each reads what the one before wrote, as those of PageRank.

The first reads the cell's input, the others a file of each reduce: so many splits, and so many
bytes as the profiling trials show.  What is predicted of one job of the trial is the mean over all.
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.clusters.workloads.resolved import ModelInputs, ResolvedCell
from harness.observe.profiling.fit import JOBS_PER_TRIAL

_NOT_KNOWN = (
    "no profiling trial shows what its later jobs read: they are asked with the input of the first"
)
# What was sealed by earlier profiles is made again as it was: asked with the input of the first.
_CHAINED_FROM = 10
# Times per reduce; all other phases and parts are per map.
_OF_REDUCES = ("reduce_", "shuffle_", "sort_s", "copy_", "inmem_", "ondisk_")
_OF_JOBS = ("body_s", "job_s", "published_s", "map_waves", "reduce_waves")
_OF_TASKS = ("map_task_s", "reduce_task_s")
_OF_PARTS = ("phases", "measurable", "parts")


class AskedJobs(NamedTuple):
    """Jobs of a trial that are asked alike: their *share* of its jobs, and their *inputs*."""

    share: float
    inputs: ModelInputs


def asked_jobs(cell: ResolvedCell, profile: Profile) -> tuple[list[AskedJobs], tuple[str, ...]]:
    """What a model is asked about the jobs of *cell*, the first of them first; and warnings."""
    job_count = float(cell.planned_jobs or 1)
    if cell.planned_jobs is None and JOBS_PER_TRIAL in profile.statistics:
        job_count = max(1.0, profile.statistics[JOBS_PER_TRIAL].value)
    are_alike = not cell.workload.jobs_chained or job_count == 1
    if are_alike or profile.schema_version < _CHAINED_FROM:
        return [AskedJobs(1.0, cell.model_inputs)], ()
    size_ratio = later_size_ratio(profile)
    if size_ratio is None:
        return [AskedJobs(1.0, cell.model_inputs)], (_NOT_KNOWN,)
    later_inputs = cell.later_inputs(size_ratio)
    if later_inputs == cell.model_inputs:
        return [AskedJobs(1.0, cell.model_inputs)], ()
    first_share = 1 / job_count
    return [
        AskedJobs(first_share, cell.model_inputs),
        AskedJobs(1 - first_share, later_inputs),
    ], ()


def later_size_ratio(profile: Profile) -> float | None:
    """Bytes that a later job reads over those of its trial's first; `None`: none was profiled."""
    first_bytes = {job.trial: job.input_bytes for job in profile.jobs if job.number == 0}
    later_jobs = [job for job in profile.jobs if job.number and first_bytes.get(job.trial)]
    if not later_jobs:
        return None
    read_bytes = math.fsum(job.input_bytes for job in later_jobs)
    return read_bytes / math.fsum(first_bytes[job.trial] for job in later_jobs)


class Weights(NamedTuple):
    """How much each kind of job counts: by *jobs*, and by *maps* for what is said of one map."""

    jobs: Sequence[float]
    maps: Sequence[float]

    @classmethod
    def of(cls, asked: Sequence[AskedJobs]) -> Weights:
        """Of the jobs as they were *asked*."""
        shares = [job.share for job in asked]
        maps = [job.share * job.inputs[2].num_splits for job in asked]
        return cls(shares, maps)

    def of_part(self, name: str) -> Sequence[float]:
        """Those of a part of a task: all jobs have as many reduces."""
        return self.jobs if name.startswith(_OF_REDUCES) else self.maps


def mean_job(predictions: Sequence[Prediction], jobs: Sequence[AskedJobs]) -> Prediction:
    """
    Prediction of one of all *jobs*: times of jobs are means over jobs, those of tasks over tasks.

    Timeline and dataflow are those of the first job.  What one of them lacks, the mean lacks.
    """
    first = predictions[0]
    if len(predictions) == 1:
        return first
    weights = Weights.of(jobs)
    changes: dict[str, Any] = {}
    for name in (*_OF_JOBS, *_OF_TASKS):
        counted = weights.jobs if name in _OF_JOBS else weights.of_part(name)
        changes[name] = _mean([getattr(prediction, name) for prediction in predictions], counted)
    for name in _OF_PARTS:
        rows = [getattr(prediction, name) for prediction in predictions]
        changes[name] = _mean_parts(rows, weights)
    estimates = [prediction.estimates for prediction in predictions]
    changes["estimates"] = _mean_parts(estimates, Weights(weights.jobs, weights.jobs))
    for name in ("warnings", "not_applicable"):
        texts = [text for prediction in predictions for text in getattr(prediction, name)]
        changes[name] = tuple(dict.fromkeys(texts))
    return first.model_copy(update=changes)


def _mean_parts(rows: Sequence[Mapping[str, float]], weights: Weights) -> dict[str, float | None]:
    """The mean of each part that all *rows* have."""
    shared = [part for part in rows[0] if all(part in row for row in rows)]
    return {part: _mean([row[part] for row in rows], weights.of_part(part)) for part in shared}


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known_values = [value for value in values if value is not None]
    if len(known_values) < len(values):
        return None
    products = [value * weight for value, weight in zip(known_values, weights, strict=True)]
    return math.fsum(products) / math.fsum(weights)
