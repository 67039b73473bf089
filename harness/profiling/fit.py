"""A profile from the jobs of the profiling trials."""

from __future__ import annotations

import math

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from statistics import fmean

from harness.errors import DataError
from harness.profiling.compression import compression_ratios, ratios_of
from harness.profiling.costs import fit_costs
from harness.profiling.dataflow import dataflow_statistics, tasks
from harness.profiling.gpu import gpu_statistics
from harness.profiling.jobs import overheads, profiled_jobs
from harness.profiling.observation import Observation
from harness.profiling.phases import PhaseRow, phase_rows
from harness.profiling.speed import fit_speed
from harness.profiling.task_statistics import network_statistics, task_statistics
from harness.records.profile import Profile, SpeedCorrection, Statistic
from harness.stats.spread import standard_deviation

JOBS_PER_TRIAL = "jobs_per_trial"


def fit_profile(
    workload: str,
    observations: Sequence[Observation],
    speed: SpeedCorrection | None = None,
    machine: Mapping[str, Statistic] | None = None,
) -> Profile:
    """
    Statistics, costs and overheads of *workload*, each with its count, its spread and its source.

    *speed* is the correction of the whole run; without it, one is fitted on *observations*.
    *machine* are rates of the nodes' disks and memory, where they were measured.
    What cannot be had from them is absent, and `warnings` says why.  ``DataError`` when no job
    succeeded.
    """
    succeeded = [
        observation
        for observation in observations
        if observation.trace.state == "SUCCEEDED" and observation.trace.succeeded("map")
    ]
    if not succeeded:
        raise DataError(
            f"no profiling job of {workload!r} has succeeded",
            where="profiling trials",
            fix="read the failed trials' reasons, or profile other cells (predict.profile_on)",
        )
    warnings: list[str] = []
    speed = speed or fit_speed(succeeded)
    codecs = compression_ratios(succeeded)
    # Counters can be read where each compression that a job uses has a known ratio.
    readable = [
        (observation, ratios)
        for observation in succeeded
        if (ratios := ratios_of(observation, codecs)) is not None
    ]
    if len(readable) < len(succeeded):
        warnings.append(
            f"{len(succeeded) - len(readable)} of {len(succeeded)} jobs use a compression whose"
            " ratio is not known: profile cells with and without it"
        )
    rows = [
        row
        for observation, ratios in readable
        for row in phase_rows(observation, ratios, speed, warnings)
    ]
    fit = fit_costs(_without_waiting(rows, warnings))
    job_overheads = overheads(succeeded, speed)
    if "task_overhead_s" not in job_overheads:
        warnings.append("no job has tasks that wait for a slot: task_overhead_s is absent")
    return Profile(
        workload=workload,
        statistics=dataflow_statistics(
            task for observation, ratios in readable for task in tasks(observation, ratios)
        )
        | codecs
        | jobs_per_trial(observations)
        | task_statistics(succeeded, speed)
        | network_statistics(succeeded, speed)
        | gpu_statistics(succeeded, speed, warnings)
        | dict(machine or {}),
        costs=fit.costs,
        overheads=job_overheads,
        groups=fit.groups,
        fit=fit.diagnostics,
        ranges=ranges(succeeded),
        speed=speed,
        trials=tuple(dict.fromkeys(observation.trial.id for observation in succeeded)),
        jobs=profiled_jobs(succeeded, speed),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def jobs_per_trial(observations: Iterable[Observation]) -> dict[str, Statistic]:
    """`JOBS_PER_TRIAL`, where a trial has as many jobs as it takes: mean over the trials."""
    counts = Counter(
        observation.trial.id for observation in observations if observation.planned_jobs is None
    )
    if not counts:
        return {}
    return {
        JOBS_PER_TRIAL: Statistic(
            value=fmean(counts.values()),
            count=len(counts),
            spread=standard_deviation([float(count) for count in counts.values()]),
            source="jobs of each profiling trial",
        )
    }


def ranges(observations: Iterable[Observation]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of the input's size and of every numeric job property."""
    values: dict[str, list[float]] = {}
    for observation in observations:
        cell = observation.trial.cell
        values.setdefault("input_bytes", []).append(float(cell.workload.input_bytes))
        for name, text in cell.configuration.items():
            with suppress(ValueError):
                if math.isfinite(value := float(text)):
                    values.setdefault(name, []).append(value)
    return {name: (min(numbers), max(numbers)) for name, numbers in values.items()}


def _without_waiting(rows: Sequence[PhaseRow], warnings: list[str]) -> list[PhaseRow]:
    """Leave out shuffles that waited for maps, for waiting is no cost, as long as others remain."""
    kept = [row for row in rows if not row.waited]
    if len(kept) < len(rows) and not any(row.phase in {"shuffle_s", "copy_s"} for row in kept):
        warnings.append(
            "every shuffle started before the last map's end: its costs hold what was not hidden;"
            " profile with mapreduce.job.reduce.slowstart.completedmaps=1.0"
        )
        return list(rows)
    return kept
