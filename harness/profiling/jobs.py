"""The jobs of the profiling trials as wholes: what was asked of each, and its times."""

from __future__ import annotations

import math

from collections.abc import Sequence

from harness.profiling.observation import Observation
from harness.records.profile import ProfiledJob, SpeedCorrection
from harness.records.trace import TASK_COUNTER, JobTrace, TaskAttempt, TaskKind


def profiled_jobs(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> tuple[ProfiledJob, ...]:
    """Jobs of *observations* in the order of their trials' names, times at reference speed."""
    jobs = (_job(o, speed) for o in observations)
    return tuple(sorted(jobs, key=lambda job: (job.trial, job.number)))


def _job(observation: Observation, speed: SpeedCorrection) -> ProfiledJob:
    trace, rate = observation.trace, observation.rate

    def at_reference(seconds: float | None) -> float | None:
        return speed.at_reference(seconds, rate) if rate and seconds is not None else seconds

    return ProfiledJob(
        trial=observation.trial.id,
        cell=observation.trial.cell.id,
        number=observation.number,
        input_bytes=observation.job_input.input_bytes,
        num_splits=observation.job_input.num_splits,
        num_nodes=observation.cluster.num_nodes,
        map_slots=observation.cluster.map_slots,
        reduce_slots=observation.cluster.reduce_slots,
        configuration=observation.config,
        job_s=at_reference(trace.job_s) or 0.0,
        map_task_s=at_reference(_mean(trace, "map")),
        reduce_task_s=at_reference(_mean(trace, "reduce")),
        map_slowdown_s=at_reference(map_slowdown(trace, observation.cluster.map_slots)),
        shuffle_bytes_total=math.fsum(
            a.counters.get(f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES", 0)
            for a in trace.succeeded("reduce")
        ),
    )


def map_slowdown(trace: JobTrace, map_slots: int) -> float | None:
    """
    Seconds by which maps took longer beside reduces than in the first wave, as measured.

    Mean duration of the maps behind the first wave that started no earlier than a reduce, less that
    of the first wave's maps that were done by then; of all of the first wave if none was.  It is
    negative where the first wave is slower for other reasons.  `None` where either is empty.
    """
    maps, reduces = trace.succeeded("map"), trace.succeeded("reduce")
    if not reduces:
        return None
    begin = reduces[0].start_s
    first = maps[:map_slots]
    undisturbed = [a for a in first if a.finish_s <= begin] or first
    beside = [a for a in maps[map_slots:] if a.start_s >= begin]
    return _duration(beside) - _duration(undisturbed) if beside and undisturbed else None


def _mean(trace: JobTrace, kind: TaskKind) -> float | None:
    done = trace.succeeded(kind)
    return _duration(done) if done else None


def _duration(attempts: Sequence[TaskAttempt]) -> float:
    return math.fsum(a.duration_s for a in attempts) / len(attempts)
