"""What the profile is made from: one profiling trial's job, as measured."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records.prediction import Cluster, JobConfig, JobInput
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import JobTrace, Spill
from harness.records.trial import Trial


@dataclass(frozen=True, slots=True)
class Observation:
    """
    One job of a profiling trial.

    *spills* maps attempt ids to the spills that the container logs show (may be empty).  *rate* is
    the speed probe's mean rate during the job, in units of work per CPU second, or `None`.
    *inside* is what spans and logs tell of the tasks; one attempt may stand there from both.
    *number* counts the jobs of the trial from 0; *planned_jobs* is how many its workload promises,
    `None`: as many as it takes.
    """

    trial: Trial
    trace: JobTrace
    config: JobConfig
    cluster: Cluster
    job_input: JobInput
    spills: dict[str, tuple[Spill, ...]]
    rate: float | None
    inside: tuple[MapTimes | ReduceTimes, ...] = ()
    number: int = 0
    planned_jobs: int | None = 1
