"""
The nearest profiled job, scaled: the obvious first guess.

A baseline without a paper.  Of the jobs that were profiled, the cell nearest to the predicted one
is taken, and its body is multiplied by how much more input each slot has:

    body_s = body_s' x (input_bytes / slots) / (input_bytes' / slots')

with slots = min(map_slots, num_splits), those that the job can use, and ' what was profiled; it is
the median over the repeats of the cell.  What is published is the whole job time, scaled with what
does not grow with the input; it stands for the job where no job's frame is known.  A map's time is
scaled by the bytes of a split, a reduce's by the input per reduce.

The distance of two cells is Euclidean over the logarithms of the input size and of each numeric
job property (`NUMERIC`), so a factor of two counts the same everywhere.  A zero beside another
number counts as a factor of `ZERO_FACTOR`.  Equal distances are decided by the distance of the
slots, then by the switches that differ (`SWITCHES`: combiner, compression), then by the name.
"""

from __future__ import annotations

import math
import statistics

from collections.abc import Iterable, Sequence

from harness.base.errors import MissingStatistic
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, ProfiledJob
from harness.models.checks import check_count, check_number
from harness.models.frame import jobs_beside_frame, whole_job
from harness.models.vectors import Evaluator

SWITCHES = tuple(name for name, field in JobConfig.model_fields.items() if field.annotation is bool)
NUMERIC = tuple(name for name in JobConfig.model_fields if name not in SWITCHES)
ZERO_FACTOR = 1000.0

_WHERE = "job, predicted or profiled"


class Scaling:
    """The job time of the nearest profiled cell, by the input per slot."""

    name = "scaling"
    description = "the nearest profiled cell's times, scaled by the input per slot"
    required = frozenset({"jobs"})
    evaluators: tuple[Evaluator, ...] = ()

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """Times for one cell."""
        jobs = require_jobs(profile, self.name)
        per_slot = input_per_slot(job_input.input_bytes, cluster.map_slots, job_input.num_splits)
        cell, distance = nearest_cell(jobs, configuration, cluster, job_input)
        repeats = [job for job in jobs if job.cell == cell]
        like = repeats[0]
        per_slot_factor = per_slot / input_per_slot(
            like.input_bytes, like.map_slots, like.num_splits
        )
        per_map = job_input.input_bytes / job_input.num_splits
        per_map_factor = per_map / (like.input_bytes / like.num_splits)
        growth = job_input.input_bytes / like.input_bytes
        per_reduce_factor = None
        if num_reduces := configuration.num_reduces:
            per_reduce_factor = growth * like.configuration.num_reduces / num_reduces
        body_s = _scaled(measured_times(repeats, "body_s"), per_slot_factor)
        published_s = _scaled(measured_times(repeats, "job_s"), per_slot_factor)
        inputs = (configuration, cluster, job_input)
        job_s, warnings = whole_job(published_s, body_s, profile, inputs)
        return Prediction(
            model=self.name,
            body_s=body_s,
            job_s=job_s,
            published_s=published_s,
            map_task_s=_scaled([job.map_task_s for job in repeats], per_map_factor),
            reduce_task_s=_scaled([job.reduce_task_s for job in repeats], per_reduce_factor),
            dataflow={"input_per_slot_factor": per_slot_factor, "distance": distance},
            warnings=(f"scaled from cell {cell}", *warnings),
        )


def require_jobs(profile: Profile, model: str) -> list[ProfiledJob]:
    """
    Jobs of the profile whose body is known, or all where no body is; none: ``MissingStatistic``.

    A body is unknown where nothing shows how long the frame of a job is: its time is known still.
    """
    jobs = jobs_beside_frame(profile)
    if not jobs:
        raise MissingStatistic("jobs", model=model, workload=profile.workload)
    return [job for job in jobs if job.body_s is not None] or [*jobs]


def measured_times(jobs: Iterable[ProfiledJob], name: str) -> list[float]:
    """The time of that *name* of each job that has one, s; ``ModelError`` for what is no time."""
    times = (getattr(job, name) for job in jobs)
    return [check_number(name, time_s, where=_WHERE) for time_s in times if time_s is not None]


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
    """Name of the cell of *jobs* (one at least) nearest to the one given, and its distance."""

    def order(job: ProfiledJob) -> tuple[float, float, int, str]:
        slots = [(cluster.map_slots, job.map_slots), (cluster.reduce_slots, job.reduce_slots)]
        switched = sum(
            getattr(configuration, name) != getattr(job.configuration, name) for name in SWITCHES
        )
        return cell_distance(job, configuration, job_input), _length(slots), switched, job.cell

    nearest = min(jobs, key=order)
    return nearest.cell, cell_distance(nearest, configuration, job_input)


def cell_distance(job: ProfiledJob, configuration: JobConfig, job_input: JobInput) -> float:
    """Log distance of a profiled job from a cell, over the input and all `NUMERIC`."""
    pairs = [(getattr(configuration, name), getattr(job.configuration, name)) for name in NUMERIC]
    return _length([(job_input.input_bytes, job.input_bytes), *pairs])


def _length(pairs: Iterable[tuple[float, float]]) -> float:
    """Euclidean length of the logarithms of the ratios of *pairs*."""
    logarithms = []
    for first, second in pairs:
        ratio = first / second if first > 0 and second > 0 else ZERO_FACTOR
        logarithms.append(0.0 if first == second else math.log(ratio))
    return math.hypot(*logarithms)


def _scaled(times: Iterable[float | None], factor: float | None) -> float | None:
    """Median of the *times* that are known, scaled; `None` where no time or no factor is known."""
    known_times = [time_s for time_s in times if time_s is not None]
    if not known_times or factor is None:
        return None
    return statistics.median(known_times) * factor
