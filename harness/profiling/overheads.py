"""Time that no phase of a task holds: before tasks, between those of a slot, and after them."""

from __future__ import annotations

import statistics

from collections.abc import Sequence

from harness.profiling.observation import Observation
from harness.records.profile import SpeedCorrection, Statistic
from harness.records.trace import TaskAttempt
from harness.stats.spread import median_absolute_deviation


def overheads(observations: Sequence[Observation], speed: SpeedCorrection) -> dict[str, Statistic]:
    """
    `task_overhead_s` and `job_overhead_s` at reference speed, each where jobs show it.

    The first is what passes on a slot between one task's end and the next one's start; only jobs
    with more tasks than slots have it.  The second is the time from submission to the first task's
    start plus that from the last task's end to the job's.
    """
    between = [_at_reference(s, o, speed) for o in observations for s in _idle(o)]
    around = [_at_reference(_around(o), o, speed) for o in observations if o.trace.attempts]
    found = {
        "task_overhead_s": _median(between, "slots idle between two tasks"),
        "job_overhead_s": _median(around, "before the first task and after the last"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _around(observation: Observation) -> float:
    trace = observation.trace
    first = min(a.start_s for a in trace.attempts)
    last = max(a.finish_s for a in trace.attempts)
    return max(0.0, first - trace.submit_s) + max(0.0, trace.finish_s - last)


def _idle(observation: Observation) -> list[float]:
    cluster, attempts = observation.cluster, observation.trace.attempts
    maps = [a for a in attempts if a.kind == "map"]
    reduces = [a for a in attempts if a.kind == "reduce"]
    return [*_gaps(maps, cluster.map_slots), *_gaps(reduces, cluster.reduce_slots)]


def _gaps(attempts: Sequence[TaskAttempt], slots: int) -> list[float]:
    """From each end to the start it made room for: the slot that is free first is filled first."""
    starts = sorted(a.start_s for a in attempts)[slots:]
    ends = sorted(a.finish_s for a in attempts)
    return [start - end for start, end in zip(starts, ends, strict=False)] if slots else []


def _at_reference(seconds: float, observation: Observation, speed: SpeedCorrection) -> float:
    return speed.at_reference(seconds, observation.rate) if observation.rate else seconds


def _median(values: Sequence[float], what: str) -> Statistic | None:
    """Median of *values*; none where it is negative, for then more ran at once than slots exist."""
    if not values or (median := statistics.median(values)) < 0:
        return None
    return Statistic(
        value=median,
        count=len(values),
        spread=median_absolute_deviation(values),
        source=f"median of {what}, job history",
    )
