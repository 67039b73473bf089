"""
What processes cost beside the work of tasks: their starts, their helpers, and all that is no task.

A task's process is seen by its recording: Hadoop's counter of processor time begins only when the
task is initialised, one or two seconds of a processor after its launch.  What else a cluster uses
is the load of its processes, which is sampled each second, without that of its tasks.
"""

from __future__ import annotations

import math
import statistics

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from harness.base.records.profile import SpeedCorrection, StartsAtOnce, Statistic
from harness.base.records.tasks import Interval
from harness.base.records.trace import MachineSample, SpeedSample, TaskKind
from harness.base.stats.spread import median_absolute_deviation, standard_deviation
from harness.observe.profiling.body import task_ends
from harness.observe.profiling.dataflow import pooled
from harness.observe.profiling.jobs import Observation

# Of each kind of task, the statistic of each field of `ProcessCpu`.
_OF_PROCESS: Mapping[TaskKind, Mapping[str, str]] = {
    "map": {
        "map_boot_cpu_s": "boot_s",
        "map_process_cpu_s": "total_s",
        "map_helper_cpu_s": "helpers_s",
    },
    "reduce": {
        "reduce_boot_cpu_s": "boot_s",
        "reduce_process_cpu_s": "total_s",
        "reduce_helper_cpu_s": "helpers_s",
    },
}
_SAMPLE_S = 1.0  # what the first sample of a trial covers
_LEAST_COVERED = 0.9  # of a job, by the samples that are there


def sampled_cpu_s(samples: Sequence[MachineSample], cores: float, within: Interval) -> float | None:
    """
    Processor seconds of our processes on a machine with so many *cores*, *within* two moments.

    `None` where samples do not say it, or cover less than nine tenths of the time between.
    """
    known_samples = [(sample.at_s, sample.own) for sample in samples if sample.own is not None]
    if not known_samples or len(known_samples) < len(samples):
        return None
    ends, shares = np.array(known_samples, dtype=float).T
    starts = np.concatenate(([ends[0] - _SAMPLE_S], ends[:-1]))
    covered_s = np.clip(np.minimum(ends, within[1]) - np.maximum(starts, within[0]), 0.0, None)
    if covered_s.sum() < _LEAST_COVERED * (within[1] - within[0]):
        return None
    return float(cores * (shares * covered_s).sum())


def probe_cpu_s(samples: Iterable[SpeedSample], within: Interval) -> float:
    """Processor seconds of the speed probe *within* two moments."""
    return math.fsum(
        sample.cpu_s for sample in samples if within[0] <= sample.at_s - _SAMPLE_S / 2 <= within[1]
    )


def task_cpu_s(observation: Observation) -> float | None:
    """
    Processor seconds of the tasks' processes of one job, as they were recorded.

    `None` where one that succeeded was not.  Of others that were not, it is what Hadoop counted.
    """
    recorded_s = {
        times.attempt_id: times.process.total_s
        for times in observation.task_times
        if times.process is not None
    }
    seconds = []
    for attempt in observation.trace.attempts:
        if attempt.attempt_id in recorded_s:
            seconds.append(recorded_s[attempt.attempt_id])
        elif attempt.state == "succeeded":
            return None
        else:
            seconds.append(attempt.count("CPU_MILLISECONDS") / 1e3)
    return math.fsum(seconds) if seconds else None


def outside_cpu_s(observation: Observation) -> float | None:
    """
    Processor seconds of one job outside of its tasks' processes; `None` where they are not known.

    Daemons, the application master and the client, and what samples them.
    """
    tasks_s = task_cpu_s(observation)
    if tasks_s is None or observation.cluster_cpu_s is None:
        return None
    return max(0.0, observation.cluster_cpu_s - tasks_s)


def process_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    Processor time of processes and the machines that it was used on; what nothing shows is absent.

    Seconds are at reference speed, means over tasks.
    """
    found = dict[str, Statistic]()
    for kind, names in _OF_PROCESS.items():
        for name, field in names.items():
            seconds = [*_of_processes(observations, speed, kind, field)]
            if seconds:
                text = f"spans and /proc: mean over {len(seconds)} {kind} tasks"
                found[name] = pooled([(host, (each_s, 1.0)) for host, each_s in seconds], text)
    return found | _outside(observations, speed) | _machines(observations)


def _of_processes(
    observations: Sequence[Observation], speed: SpeedCorrection, kind: TaskKind, field: str
) -> Iterator[tuple[str, float]]:
    """Yield host and seconds, at reference speed, of each recorded task of a *kind*."""
    for observation in observations:
        for times, attempt in observation.succeeded_times("spans"):
            if attempt.kind == kind and times.process is not None:
                seconds = getattr(times.process, field)
                if seconds is not None:
                    yield times.host, observation.at_reference(seconds, speed)


def _outside(observations: Sequence[Observation], speed: SpeedCorrection) -> dict[str, Statistic]:
    """Processor seconds outside of tasks, of a job and of each container: by least squares."""
    from scipy.optimize import nnls

    known_trials = [
        (len(observation.trace.attempts), observation.at_reference(outside_s, speed))
        for observation in observations
        if (outside_s := outside_cpu_s(observation)) is not None
    ]
    if not known_trials:
        return {}
    containers, seconds = np.array(known_trials, dtype=float).T
    text = f"samples of each second without the tasks' own time, {len(known_trials)} jobs"
    if len(set(containers)) == 1:
        pairs = [("", (outside_s, count)) for count, outside_s in known_trials]
        alike = f"{text}: all have {known_trials[0][0]} containers, so what is the job's is in it"
        return {"outside_cpu_s_per_container": pooled(pairs, alike)}
    design = np.column_stack((np.ones_like(containers), containers))
    parts, _ = nnls(design, seconds)
    freedom = len(known_trials) - 2
    spreads = [0.0, 0.0]
    if freedom > 0:
        variance = float(((seconds - design @ parts) ** 2).sum()) / freedom
        spreads = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design))).tolist()
    return {
        name: Statistic(value=float(value), count=len(known_trials), spread=spread, source=text)
        for name, value, spread in zip(
            ("outside_cpu_s_per_job", "outside_cpu_s_per_container"), parts, spreads, strict=True
        )
    }


def _machines(observations: Sequence[Observation]) -> dict[str, Statistic]:
    """Cores of the machines that were sampled, and how many workers share one; medians."""
    machines = {machine for observation in observations for machine in observation.machines}
    numbers = {
        "machine_cores": [machine.cores for machine in machines],
        "machine_nodes": [float(machine.workers) for machine in machines],
    }
    return {
        name: Statistic(
            value=statistics.median(values),
            count=len(values),
            spread=standard_deviation(values),
            source="the machines that were sampled: median",
        )
        for name, values in numbers.items()
        if values
    }


def starts_at_once(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> tuple[StartsAtOnce, ...]:
    """
    Starts of JVMs by how many tasks ran at once on their machine, at reference *speed*.

    That number is the mean over the start itself, rounded; the task that starts counts.
    """
    seconds = defaultdict[tuple[TaskKind, int], list[tuple[float, float | None]]](list)
    for observation in observations:
        ends = task_ends(observation)
        boots_s = {
            times.attempt_id: times.process.boot_s
            for times in observation.task_times
            if times.process is not None
        }
        attempts = observation.trace.attempts
        machines = np.array([observation.machine_of(attempt.host) for attempt in attempts])
        begins = np.array([attempt.start_s for attempt in attempts])
        finishes = np.array([attempt.finish_s for attempt in attempts])
        for place, attempt in enumerate(attempts):
            start_s = ends[attempt.attempt_id][0] if attempt.attempt_id in ends else 0.0
            if start_s <= 0:
                continue
            started = attempt.start_s + start_s
            beside_s = np.minimum(finishes, started) - np.maximum(begins, attempt.start_s)
            beside_s = np.clip(beside_s, 0.0, None)[machines == machines[place]]
            boot_s = boots_s.get(attempt.attempt_id)
            key = attempt.kind, max(1, round(float(beside_s.sum()) / start_s))
            seconds[key].append(
                (
                    observation.at_reference(start_s, speed),
                    None if boot_s is None else observation.at_reference(boot_s, speed),
                )
            )
    return tuple(_starts(kind, count, seconds[kind, count]) for kind, count in sorted(seconds))


def _starts(
    kind: TaskKind, at_once: int, seconds: Sequence[tuple[float, float | None]]
) -> StartsAtOnce:
    """One row of starts, from wall and processor seconds of each."""
    starts_s = [start_s for start_s, _ in seconds]
    boots_s = [boot_s for _, boot_s in seconds if boot_s is not None]
    return StartsAtOnce(
        kind=kind,
        at_once=at_once,
        start_s=statistics.median(starts_s),
        count=len(starts_s),
        spread=median_absolute_deviation(starts_s),
        boot_cpu_s=statistics.median(boots_s) if boots_s else None,
    )
