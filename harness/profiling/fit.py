"""A profile from the jobs of the profiling trials."""

from __future__ import annotations

import math

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from harness.errors import DataError
from harness.profiling.compression import compression_ratios, ratios_of
from harness.profiling.costs import fit_costs
from harness.profiling.dataflow import Ratios, statistics, tasks
from harness.profiling.gpu import gpu_statistics
from harness.profiling.inside import inside_statistics
from harness.profiling.jobs import profiled_jobs
from harness.profiling.network import network_statistics
from harness.profiling.observation import Observation
from harness.profiling.overheads import overheads
from harness.profiling.phases import PhaseRow, rows
from harness.profiling.speed import fit_speed
from harness.records.profile import Profile, SpeedCorrection, Statistic
from harness.stats.spread import standard_deviation

JOBS_PER_TRIAL = "jobs_per_trial"

Readable = list[tuple[Observation, Ratios]]


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
        o for o in observations if o.trace.state == "SUCCEEDED" and o.trace.succeeded("map")
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
    readable = _readable(succeeded, codecs, warnings)
    found = [row for o, ratios in readable for row in rows(o, ratios, speed, warnings)]
    fit = fit_costs(_without_waiting(found, warnings))
    around = overheads(succeeded, speed)
    if "task_overhead_s" not in around:
        warnings.append("no job has tasks that wait for a slot: task_overhead_s is absent")
    return Profile(
        workload=workload,
        statistics=statistics(t for o, ratios in readable for t in tasks(o, ratios))
        | codecs
        | jobs_per_trial(observations)
        | inside_statistics(succeeded, speed)
        | network_statistics(succeeded, speed)
        | gpu_statistics(succeeded, speed, warnings)
        | dict(machine or {}),
        costs=fit.costs,
        overheads=around,
        groups=fit.groups,
        fit=fit.diagnostics,
        ranges=ranges(succeeded),
        speed=speed,
        trials=tuple(dict.fromkeys(o.trial.id for o in succeeded)),
        jobs=profiled_jobs(succeeded, speed),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def jobs_per_trial(observations: Iterable[Observation]) -> dict[str, Statistic]:
    """`JOBS_PER_TRIAL`, where a trial has as many jobs as it takes: mean over the trials."""
    counts = Counter(o.trial.id for o in observations if o.planned_jobs is None)
    if not counts:
        return {}
    return {
        JOBS_PER_TRIAL: Statistic(
            value=fmean(counts.values()),
            count=len(counts),
            spread=standard_deviation([float(n) for n in counts.values()]),
            source="jobs of each profiling trial",
        )
    }


def ranges(observations: Iterable[Observation]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of the input's size and of every numeric job property."""
    seen: dict[str, list[float]] = {}
    for observation in observations:
        cell = observation.trial.cell
        seen.setdefault("input_bytes", []).append(float(cell.workload.input_bytes))
        for name, text in cell.configuration.items():
            if (value := _number(text)) is not None:
                seen.setdefault(name, []).append(value)
    return {name: (min(values), max(values)) for name, values in seen.items()}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _readable(
    observations: Sequence[Observation], codecs: dict[str, Statistic], warnings: list[str]
) -> Readable:
    """Observations whose counters can be read: each compression they use has a known ratio."""
    found = [(o, r) for o in observations if (r := ratios_of(o, codecs)) is not None]
    if len(found) < len(observations):
        warnings.append(
            f"{len(observations) - len(found)} of {len(observations)} jobs use a compression whose"
            " ratio is not known: profile cells with and without it"
        )
    return found


def _without_waiting(found: Sequence[PhaseRow], warnings: list[str]) -> list[PhaseRow]:
    """Leave out shuffles that waited for maps, for waiting is no cost, as long as others remain."""
    kept = [row for row in found if not row.waited]
    if len(kept) < len(found) and not any(row.phase in {"shuffle_s", "copy_s"} for row in kept):
        warnings.append(
            "every shuffle began before the last map's end: its costs hold what was not hidden;"
            " profile with mapreduce.job.reduce.slowstart.completedmaps=1.0"
        )
        return list(found)
    return kept
