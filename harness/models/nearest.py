"""
The nearest profiled job, scaled: what anybody would try first.

A baseline without a paper.  Of the jobs that were profiled, the cell nearest to the asked one is
taken, and its job time is multiplied by how much more input each slot has:

    job_s = job_s' x (input_bytes / slots) / (input_bytes' / slots')

with slots = min(map_slots, num_splits), those that the job can use, and ' what was profiled; job_s'
is the median over the repeats of the cell.  The whole job time is scaled, with what does not grow
with the input.  A map's time is scaled by the bytes of a split, a reduce's by the input per reduce.

The distance of two cells is Euclidean over the logarithms of the input size and of each numeric
job property (`NUMERIC`), so a factor of two counts the same everywhere.  A zero beside a number
that is none counts as a factor of `ZERO_FACTOR`.  Ties are decided by the slots (same distance),
then by the switches that differ (`SWITCHES`: combiner, compression), then by the cell's name.

    needs   `Profile.jobs`
    gives   job time, mean map and reduce time; no phases
"""

from __future__ import annotations

import math
import statistics

from collections.abc import Iterable, Sequence

from harness.errors import MissingStatistic
from harness.models.checks import check_count, check_number
from harness.models.vectors import Evaluator
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile, ProfiledJob

SWITCHES = tuple(n for n, f in JobConfig.model_fields.items() if f.annotation is bool)
NUMERIC = tuple(n for n in JobConfig.model_fields if n not in SWITCHES)
ZERO_FACTOR = 1000.0

_WHERE = "job, asked or profiled"


class Nearest:
    """The job time of the nearest profiled cell, by the input per slot."""

    name = "nearest"
    description = "the nearest profiled cell's times, scaled by the input per slot"
    required = frozenset({"jobs"})
    evaluators: tuple[Evaluator, ...] = ()

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell.

        ``MissingStatistic`` where the profile has no jobs, ``ModelError`` for a size out of range.
        """
        demand_jobs(profile, self.name)
        size = input_per_slot(job_input.input_bytes, cluster.map_slots, job_input.num_splits)
        key, distance = nearest_cell(profile.jobs, configuration, cluster, job_input)
        same = [job for job in profile.jobs if job.cell == key]
        like = same[0]
        known = input_per_slot(like.input_bytes, like.map_slots, like.num_splits)
        factor = size / known
        reduces, had = configuration.num_reduces, like.configuration.num_reduces
        per_map = (
            job_input.input_bytes / job_input.num_splits / (like.input_bytes / like.num_splits)
        )
        of_reduces = job_input.input_bytes / like.input_bytes * had / reduces if reduces else None
        return Prediction(
            model=self.name,
            cell="",
            job_s=statistics.median(check_number("job_s", j.job_s, where=_WHERE) for j in same)
            * factor,
            map_task_s=_scaled((job.map_task_s for job in same), per_map),
            reduce_task_s=_scaled((job.reduce_task_s for job in same), of_reduces),
            dataflow={"input_per_slot_factor": factor, "distance": distance},
            warnings=(f"scaled from cell {key}",),
        )


def demand_jobs(profile: Profile, model: str) -> None:
    """``MissingStatistic`` where the profile does not hold its jobs."""
    if not profile.jobs:
        raise MissingStatistic("jobs", model=model, workload=profile.workload)


def input_per_slot(input_bytes: float, map_slots: int, num_splits: int) -> float:
    """Bytes for each slot that a job can use; ``ModelError`` where there is no input."""
    size = check_number("input_bytes", input_bytes, where=_WHERE, above=True)
    return size / slots_in_use(map_slots, num_splits)


def slots_in_use(map_slots: int, num_splits: int) -> int:
    """Map slots that a job can use: no more than it has splits."""
    return min(
        check_count("map_slots", map_slots, where=_WHERE, low=1),
        check_count("num_splits", num_splits, where=_WHERE, low=1),
    )


def nearest_cell(
    jobs: Sequence[ProfiledJob], configuration: JobConfig, cluster: Cluster, job_input: JobInput
) -> tuple[str, float]:
    """Name of the cell of *jobs* (one at least) that is nearest to the asked one; its distance."""

    def order(job: ProfiledJob) -> tuple[float, float, int, str]:
        slots = [(cluster.map_slots, job.map_slots), (cluster.reduce_slots, job.reduce_slots)]
        switched = sum(getattr(configuration, n) != getattr(job.configuration, n) for n in SWITCHES)
        return distance(job, configuration, job_input), _length(slots), switched, job.cell

    first = min(jobs, key=order)
    return first.cell, distance(first, configuration, job_input)


def distance(job: ProfiledJob, configuration: JobConfig, job_input: JobInput) -> float:
    """Log distance of a profiled job from the asked one, over the input and all `NUMERIC`."""
    pairs = [(getattr(configuration, n), getattr(job.configuration, n)) for n in NUMERIC]
    return _length([(job_input.input_bytes, job.input_bytes), *pairs])


def _length(pairs: Iterable[tuple[float, float]]) -> float:
    return math.hypot(*(_log_ratio(a, b) for a, b in pairs))


def _log_ratio(a: float, b: float) -> float:
    if a == b:
        return 0.0
    return math.log(a / b) if a > 0 and b > 0 else math.log(ZERO_FACTOR)


def _scaled(times: Iterable[float | None], factor: float | None) -> float | None:
    """Median of the known *times*, scaled; `None` where none is known or the factor is not."""
    known = [t for t in times if t is not None]
    return statistics.median(known) * factor if known and factor is not None else None
