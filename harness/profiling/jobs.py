"""The profiling trials' jobs as measured, and what they show as wholes: times and overheads."""

from __future__ import annotations

import math
import statistics

from collections.abc import Sequence
from dataclasses import dataclass

from harness.records.prediction import Cluster, JobConfig, JobInput
from harness.records.profile import ProfiledJob, SpeedCorrection, Statistic
from harness.records.tasks import MapTimes, ReduceTimes
from harness.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.records.trial import Trial
from harness.stats.spread import median_absolute_deviation


@dataclass(frozen=True, slots=True)
class Observation:
    """
    One job of a profiling trial.

    *rate* is the speed probe's mean rate during the job, in units of work per CPU second.
    *task_times* come from spans and from logs; one attempt may stand there from both.
    *number* counts the jobs of the trial from 0; *planned_jobs* is how many its workload promises,
    `None`: as many as it takes.
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

    def at_reference(self, seconds: float, speed: SpeedCorrection) -> float:
        """*seconds* of this job at reference speed; as measured where there is no probe."""
        return speed.at_reference(seconds, self.rate) if self.rate else seconds


def profiled_jobs(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> tuple[ProfiledJob, ...]:
    """Jobs of *observations* in the order of their trials' names, times at reference speed."""
    jobs = []
    for observation in observations:
        job_trace, cluster = observation.trace, observation.cluster
        maps, reduces = job_trace.succeeded("map"), job_trace.succeeded("reduce")
        map_s, reduce_s, slowdown_s = (
            None if seconds is None else observation.at_reference(seconds, speed)
            for seconds in (
                _mean_duration(maps),
                _mean_duration(reduces),
                map_slowdown(job_trace, cluster.map_slots),
            )
        )
        jobs.append(
            ProfiledJob(
                trial=observation.trial.id,
                cell=observation.trial.cell.id,
                number=observation.number,
                input_bytes=observation.job_input.input_bytes,
                num_splits=observation.job_input.num_splits,
                num_nodes=cluster.num_nodes,
                map_slots=cluster.map_slots,
                reduce_slots=cluster.reduce_slots,
                configuration=observation.config,
                job_s=observation.at_reference(job_trace.job_s, speed),
                map_task_s=map_s,
                reduce_task_s=reduce_s,
                map_slowdown_s=slowdown_s,
                shuffle_bytes_total=math.fsum(
                    attempt.counters.get(f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES", 0)
                    for attempt in reduces
                ),
            )
        )
    return tuple(sorted(jobs, key=lambda job: (job.trial, job.number)))


def map_slowdown(job_trace: JobTrace, map_slots: int) -> float | None:
    """
    Seconds by which maps took longer beside reduces than in the first wave, as measured.

    Mean duration of the maps behind the first wave that started no earlier than a reduce, less that
    of the first wave's maps that were done by then; of all of the first wave if none was.  It is
    negative where the first wave is slower for other reasons.  `None` where either is empty.
    """
    maps, reduces = job_trace.succeeded("map"), job_trace.succeeded("reduce")
    if not reduces:
        return None
    reduces_start = reduces[0].start_s
    first_wave = maps[:map_slots]
    undisturbed = [task for task in first_wave if task.finish_s <= reduces_start] or first_wave
    beside = [task for task in maps[map_slots:] if task.start_s >= reduces_start]
    beside_s, undisturbed_s = _mean_duration(beside), _mean_duration(undisturbed)
    return None if beside_s is None or undisturbed_s is None else beside_s - undisturbed_s


def _mean_duration(attempts: Sequence[TaskAttempt]) -> float | None:
    if not attempts:
        return None
    return math.fsum(attempt.duration_s for attempt in attempts) / len(attempts)


def overheads(observations: Sequence[Observation], speed: SpeedCorrection) -> dict[str, Statistic]:
    """
    `task_overhead_s` and `job_overhead_s` at reference speed, each where jobs show it.

    The first is what passes on a slot between one task's end and the next one's start; only jobs
    with more tasks than slots have it.  The second is the time from submission to the first task's
    start plus that from the last task's end to the job's.  Neither is given where it is negative,
    for then more ran at once than slots exist.
    """
    idle_s: list[float] = []
    around_s: list[float] = []
    for observation in observations:
        job_trace, cluster = observation.trace, observation.cluster
        for kind, slots in (("map", cluster.map_slots), ("reduce", cluster.reduce_slots)):
            attempts = [attempt for attempt in job_trace.attempts if attempt.kind == kind]
            # From each end to the start it made room for: the slot that is free first is filled
            # first.
            starts = sorted(attempt.start_s for attempt in attempts)[slots:] if slots else []
            ends = sorted(attempt.finish_s for attempt in attempts)
            idle_s += [
                observation.at_reference(start - end, speed)
                for start, end in zip(starts, ends, strict=False)
            ]
        if job_trace.attempts:
            first = min(attempt.start_s for attempt in job_trace.attempts)
            last = max(attempt.finish_s for attempt in job_trace.attempts)
            outside_s = max(0.0, first - job_trace.submit_s) + max(0.0, job_trace.finish_s - last)
            around_s.append(observation.at_reference(outside_s, speed))
    measured = {
        "task_overhead_s": (idle_s, "slots idle between two tasks"),
        "job_overhead_s": (around_s, "before the first task and after the last"),
    }
    return {
        name: Statistic(
            value=median,
            count=len(values),
            spread=median_absolute_deviation(values),
            source=f"median of {what}, job history",
        )
        for name, (values, what) in measured.items()
        if values and (median := statistics.median(values)) >= 0
    }
