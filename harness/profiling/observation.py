"""What the profile is made from: one profiling trial's job, as measured."""

from __future__ import annotations

from dataclasses import dataclass

from harness.records.prediction import Cluster, JobConfig, JobInput
from harness.records.profile import SpeedCorrection
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import JobTrace, Spill
from harness.records.trial import Trial


@dataclass(frozen=True, slots=True)
class Observation:
    """
    One job of a profiling trial.

    *spills* maps attempt ids to the spills that the container logs show (may be empty).  *rate* is
    the speed probe's mean rate during the job, in units of work per CPU second, or `None`.
    *task_times* come from spans and from logs; one attempt may stand there from both.
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
    task_times: tuple[MapTimes | ReduceTimes, ...] = ()
    number: int = 0
    planned_jobs: int | None = 1

    def at_reference(self, seconds: float, speed: SpeedCorrection) -> float:
        """*seconds* of this job at reference speed; as measured where there is no probe."""
        return speed.at_reference(seconds, self.rate) if self.rate else seconds
