"""The jobs of the profiling trials as measured, and how maps slowed down beside reduces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import SpeedCorrection
from harness.base.records.tasks import MapTimes, ReduceTimes, Source
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import Trial


class Machine(NamedTuple):
    """A machine with *workers*, its *cores* and names of *nodes*; without names it has all."""

    nodes: tuple[str, ...]
    cores: float
    workers: int


@dataclass(frozen=True, slots=True)
class Observation:
    """
    One job of a profiling trial.

    *rate* is the speed probe's mean rate during the job, in units of work per CPU second.
    *task_times* come from spans and from logs; one attempt may stand there from both.
    *number* counts the jobs of the trial from 0; *planned_jobs* is how many its workload promises,
    `None`: as many as it takes.  HDFS keeps so many *output_copies* of what the job writes.
    *machines* are those that were sampled meanwhile, and *cluster_cpu_s* the processor seconds of
    all processes of the cluster and of its client there, `None` where one of them is not known.
    """

    trial: Trial
    trace: JobTrace
    config: JobConfig
    cluster: Cluster
    job_input: JobInput
    rate: float | None
    task_times: tuple[MapTimes | ReduceTimes, ...] = ()
    number: int = 0
    planned_jobs: int | None = 1
    output_copies: int = 1
    machines: tuple[Machine, ...] = ()
    cluster_cpu_s: float | None = None

    def machine_of(self, host: str) -> str:
        """Name of the machine of a *host*: that of one of its nodes, or the host itself."""
        for machine in self.machines:
            if host in machine.nodes or not machine.nodes:
                return machine.nodes[0] if machine.nodes else ""
        return host

    def at_reference(self, seconds: float, speed: SpeedCorrection) -> float:
        """*seconds* of this job at reference speed; as measured where there is no probe."""
        return speed.at_reference(seconds, self.rate) if self.rate else seconds

    def succeeded_times(
        self, source: Source | None = None
    ) -> Iterator[tuple[MapTimes | ReduceTimes, TaskAttempt]]:
        """
        Yield the times of each task that succeeded, and its attempt.

        As *source* has them; without one, as each source has them.
        """
        attempts = {attempt.attempt_id: attempt for attempt in self.trace.attempts}
        for times in self.task_times:
            attempt = attempts.get(times.attempt_id)
            if attempt is None or attempt.state != "succeeded":
                continue
            if source in (None, times.source):
                yield times, attempt


def map_slowdown(job_trace: JobTrace, map_slots: int) -> float | None:
    """
    Seconds by which maps took longer beside reduces than in the first wave, as measured.

    Mean duration of the maps behind the first wave that started no earlier than a reduce, less that
    of the first wave's maps that were done by then; of all of the first wave if none was.  It is
    negative where the first wave is slower for other reasons.  `None` where either is empty.
    """
    maps = job_trace.succeeded("map")
    reduces = job_trace.succeeded("reduce")
    if not reduces:
        return None
    reduces_start = reduces[0].start_s
    first_wave = maps[:map_slots]
    beside_s = [task.duration_s for task in maps[map_slots:] if task.start_s >= reduces_start]
    undisturbed_s = [task.duration_s for task in first_wave if task.finish_s <= reduces_start]
    if not undisturbed_s:
        undisturbed_s = [task.duration_s for task in first_wave]
    if not beside_s or not undisturbed_s:
        return None
    return fmean(beside_s) - fmean(undisturbed_s)
