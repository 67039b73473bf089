"""A profile from the jobs of the profiling trials, and the correction for the machine's speed."""

from __future__ import annotations

import math

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median

import numpy as np

from harness.base.errors import DataError
from harness.base.records.profile import (
    FRAME,
    FRAME_OF_REDUCES,
    Profile,
    SpeedCorrection,
    Statistic,
)
from harness.base.records.ranges import axis_numbers, ranges_of
from harness.base.stats.spread import standard_deviation
from harness.observe.profiling.costs import fit_costs
from harness.observe.profiling.dataflow import (
    Ratios,
    Task,
    compression_ratios,
    dataflow_statistics,
    ratios_of,
    tasks,
)
from harness.observe.profiling.fixed import fixed_seconds
from harness.observe.profiling.frame import measure_frame, profiled_jobs
from harness.observe.profiling.gpu import gpu_statistics
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.phases import PhaseRow, phase_rows
from harness.observe.profiling.processes import process_statistics, starts_at_once
from harness.observe.profiling.task_statistics import network_statistics, task_statistics

JOBS_PER_TRIAL = "jobs_per_trial"
Point = tuple[float, float]
_SHUFFLES = frozenset({"shuffle_s", "copy_s"})

# What slows the machine may slow a job more than the probe: 1.9 was seen for TeraSort.  A larger
# slope comes from few repeats at nearly equal rates.
_LARGEST_SLOPE = 3.0
# A correction is used where rates that have nothing to do with the times would do as well in no
# more of the cases than this.
_LEVEL = 0.05
_PERMUTATIONS = 1999


def fit_profile(
    workload: str,
    observations: Sequence[Observation],
    speed: SpeedCorrection | None = None,
    machine: Mapping[str, Statistic] | None = None,
) -> Profile:
    """
    Statistics, costs and frame of *workload*, each with its count, its spread and its source.

    *speed* is the correction of the whole run; without it, one is fitted on *observations*.
    *machine* are rates of the nodes' disks and memory, where they were measured.
    What cannot be had from them is absent, and `warnings` says why.  ``DataError`` when no job
    succeeded.
    """
    succeeded = [
        job for job in observations if job.trace.state == "SUCCEEDED" and job.trace.succeeded("map")
    ]
    if not succeeded:
        raise DataError(
            f"no profiling job of {workload!r} has succeeded",
            where="profiling trials",
            fix="read the failed trials' reasons, or profile other cells (predict.profile_on)",
        )
    warnings = [*partly_observed(succeeded)]
    speed = speed or fit_speed(succeeded)
    codecs = compression_ratios(succeeded)
    readable = _readable(succeeded, codecs, warnings)
    rows = list[PhaseRow]()
    readable_tasks = list[Task]()
    for job, ratios in readable:
        rows += phase_rows(job, ratios, speed, warnings)
        readable_tasks += tasks(job, ratios)
    costs, groups, diagnostics = fit_costs(_without_hidden(rows, warnings))
    frame = measure_frame(succeeded, speed, costs)
    absent = _absent(frame, succeeded)
    warnings += [f"{name} is absent: no job shows it" for name in absent]
    jobs = profiled_jobs(succeeded, speed, frame)
    without_body = sum(job.body_s is None for job in jobs)
    if without_body and not absent:
        warnings.append(
            f"{without_body} of {len(jobs)} jobs have no task that is longer than start and end of"
            " its JVM: they have no body, and models that learn from bodies do not learn from them"
        )
    fixed = fixed_seconds(succeeded, speed)
    if not fixed:
        warnings.append("no recording shows the fixed seconds of tasks: they count as 0")
    return Profile(
        workload=workload,
        statistics=dataflow_statistics(readable_tasks)
        | codecs
        | jobs_per_trial(observations)
        | task_statistics(succeeded, speed)
        | network_statistics(succeeded, speed)
        | fixed
        | process_statistics(succeeded, speed)
        | gpu_statistics(succeeded, speed, warnings)
        | dict(machine or {}),
        costs=costs,
        frame=frame,
        groups=groups,
        fit=diagnostics,
        ranges=ranges_of(axis_numbers(job.trial.cell, job.job_input) for job in succeeded),
        speed=speed,
        trials=tuple(dict.fromkeys(job.trial.id for job in succeeded)),
        jobs=jobs,
        starts=starts_at_once(succeeded, speed),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def partly_observed(observations: Sequence[Observation]) -> Iterator[str]:
    """
    Say of how many tasks there was no whole log, where logs are all that shows what is in them.

    These count by their histories alone: a log that lacks its begin or its end shows a part of a
    task, which looks like a task with less work.
    """
    tasks_asked = 0
    tasks_shown = 0
    for job in observations:
        if job.trial.cell.tracing.mode == "logs" and not job.trace.uberized:
            tasks_asked += sum(attempt.state == "succeeded" for attempt in job.trace.attempts)
            tasks_shown += len({task_times.attempt_id for task_times in job.task_times})
    if tasks_shown < tasks_asked:
        yield (
            f"{tasks_asked - tasks_shown} of {tasks_asked} tasks have no whole log (there is none,"
            " or a part of it is cut off or rolled over and lost): their histories alone count"
        )


def _readable(
    jobs: Sequence[Observation], codecs: dict[str, Statistic], warnings: list[str]
) -> list[tuple[Observation, Ratios]]:
    """Jobs whose counters can be read, for each compression that they use has a known ratio."""
    readable = []
    for job in jobs:
        ratios = ratios_of(job, codecs)
        if ratios is not None:
            readable.append((job, ratios))
    if unread := len(jobs) - len(readable):
        warnings.append(
            f"{unread} of {len(jobs)} jobs use a compression whose ratio is not known:"
            " profile cells with and without it"
        )
    return readable


def _without_hidden(rows: list[PhaseRow], warnings: list[str]) -> list[PhaseRow]:
    """*rows* without shuffles that waited for maps, which is no cost, as long as others remain."""
    unhidden = [row for row in rows if not row.waited]
    if len(unhidden) == len(rows) or _SHUFFLES & {row.phase for row in unhidden}:
        return unhidden
    warnings.append(
        "every shuffle started before the last map's end: its costs hold what was not hidden;"
        " profile with mapreduce.job.reduce.slowstart.completedmaps=1.0"
    )
    return rows


def _absent(frame: Mapping[str, Statistic], jobs: Sequence[Observation]) -> list[str]:
    """Parts of the frame that no job shows, but those of reduces where no job has any."""
    is_map_only = not any(job.trace.num_reduces for job in jobs)
    unneeded = FRAME_OF_REDUCES if is_map_only else ()
    return [name for name in FRAME if name not in frame and name not in unneeded]


def jobs_per_trial(observations: Iterable[Observation]) -> dict[str, Statistic]:
    """`JOBS_PER_TRIAL`, where a trial has as many jobs as it takes: mean over the trials."""
    open_ended = [job.trial.id for job in observations if job.planned_jobs is None]
    counts = [float(jobs) for jobs in Counter(open_ended).values()]
    if not counts:
        return {}
    spread = standard_deviation(counts)
    source = "jobs of each profiling trial"
    mean = Statistic(value=fmean(counts), count=len(counts), spread=spread, source=source)
    return {JOBS_PER_TRIAL: mean}


def fit_speed(observations: Sequence[Observation]) -> SpeedCorrection:
    """
    How much of a trial's time follows the machine's speed, fitted on cells that were repeated.

    Within a cell, log(job time) = constant + coefficient x log(reference rate / rate).  Each trial
    is predicted from the others with and without the coefficient; where that shows no gain, where
    rates permuted within the cells give such a coefficient in more than 5 % of the cases, where
    there are no rates or too few repeats, it is 0 and `note` says why.  Give it the observations of
    one workload, or of all workloads of a run for one correction.
    """
    rated = [(job, job.rate) for job in observations if job.rate and job.trace.job_s > 0]
    if not rated:
        return _no_correction(1.0, "no trial has a speed probe: times are left as measured")
    reference = median(rate for _, rate in rated)
    cells = _repeated_cells(rated, reference)
    count = sum(map(len, cells))
    if count - len(cells) < 2:
        note = f"{count} trials in repeated cells are too few for a correction"
        return _no_correction(reference, note)
    plain, corrected = _left_out_spreads(cells)
    coefficient = _slope(cells)
    gain = 1 - corrected / plain if plain > 0 else 0.0
    note = f"leave-one-out over {count} trials of {len(cells)} cells: spread "
    note += f"{plain:.1%} as measured, {corrected:.1%} corrected"
    if coefficient <= 0 or gain <= 0:
        return _no_correction(reference, f"{note}; no gain, times are left as measured", count)
    probability = _chance(rated)
    note += f"; permuted rates do as well in {probability:.1%} of the cases"
    if probability > _LEVEL:
        note += f", more than {_LEVEL:.0%}: times are left as measured"
        return _no_correction(reference, note, count)
    return SpeedCorrection(
        reference_rate=reference, coefficient=coefficient, gain=gain, count=count, note=note
    )


def _repeated_cells(
    rated: Sequence[tuple[Observation, float]], reference: float
) -> list[list[Point]]:
    """Points of each cell that was repeated: logarithms of its slowness and of the job's time."""
    points_by_cell = defaultdict[tuple[str, int], list[Point]](list)
    for job, rate in rated:
        point = (math.log(reference / rate), math.log(job.trace.job_s))
        # The jobs of one trial are no repeats of each other; the same job of the next trial is.
        points_by_cell[job.trial.cell.id, job.number].append(point)
    return [points for points in points_by_cell.values() if len(points) >= 2]


def _left_out_spreads(cells: Sequence[Sequence[Point]]) -> tuple[float, float]:
    """Spread of each trial about the others of its cell, as measured and corrected without it."""
    squares = []
    corrected_squares = []
    for index, points in enumerate(cells):
        for place, (x, y) in enumerate(points):
            rest = [*points[:place], *points[place + 1 :]]
            slope = _slope([*cells[:index], rest, *cells[index + 1 :]])
            error_x = x - fmean(rest_x for rest_x, _ in rest)
            error_y = y - fmean(rest_y for _, rest_y in rest)
            squares.append(error_y**2)
            corrected_squares.append((error_y - slope * error_x) ** 2)
    return math.sqrt(fmean(squares)), math.sqrt(fmean(corrected_squares))


def _chance(rated: Sequence[tuple[Observation, float]]) -> float:
    """
    Share of the permutations of rates within cells that follow the times as much as they do.

    The jobs of a trial share its rate: rates change places between whole trials.  As measured is
    one of the permutations, so that few trials never give a small share.
    """
    by_job = defaultdict[tuple[str, int], list[float]](list)
    for job, _ in rated:
        by_job[job.trial.cell.id, job.number].append(math.log(job.trace.job_s))
    cells = defaultdict[str, dict[str, list[float]]](dict)
    for job, rate in rated:
        mean_log_s = fmean(by_job[job.trial.cell.id, job.number])
        trial_sums = cells[job.trial.cell.id].setdefault(job.trial.id, [-math.log(rate), 0.0])
        trial_sums[1] += math.log(job.trace.job_s) - mean_log_s
    generator = np.random.default_rng(_PERMUTATIONS)
    products = np.zeros(1 + _PERMUTATIONS)
    for trials in cells.values():
        slowness, log_s = np.array(list(trials.values())).T
        orders = np.tile(slowness, (len(products), 1))
        orders[1:] = generator.permuted(orders[1:], axis=1)
        products += orders @ log_s
    return float(np.mean(products >= products[0] - 1e-9 * abs(products[0])))


def _no_correction(reference: float, note: str, count: int = 0) -> SpeedCorrection:
    return SpeedCorrection(
        reference_rate=reference, coefficient=0.0, gain=0.0, count=count, note=note
    )


def _slope(cells: Iterable[Sequence[Point]]) -> float:
    """Common slope within cells, no less than 0 and no more than 3; 0 where rates are equal."""
    xx = xy = 0.0
    for points in cells:
        mean_x = fmean(x for x, _ in points)
        mean_y = fmean(y for _, y in points)
        xx += math.fsum((x - mean_x) ** 2 for x, _ in points)
        xy += math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    return min(max(xy / xx, 0.0), _LARGEST_SLOPE) if xx > 0 else 0.0
