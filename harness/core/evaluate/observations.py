"""
What stored trials show of their tasks, from the containers' logs and the tracer's recordings.

Profiles are fitted to it (observations), and reports show it: where the time of tasks went, and the
vet of jobs.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, timedelta, timezone, tzinfo
from itertools import combinations
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from harness.base.errors import DataError
from harness.base.records.prediction import JobInput
from harness.base.records.tasks import MapTimes, ReduceTimes, TaskSpans, UnitTimes
from harness.base.records.trace import JobTrace, TaskAttempt, TaskKind, joined
from harness.base.records.trial import Trial, TrialRecord
from harness.base.records.vet import SUBPHASES, JobVet, RepeatsTest, TaskUnits, VetBook
from harness.base.text import excerpt
from harness.clusters.workloads.base import INPUT_TOLERANCE
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.reports.data import JobTaskTimes
from harness.core.reports.sections.task_times import task_parts
from harness.core.store import RawLogs, Run
from harness.models.vet.assessment import assess, vet_curve
from harness.models.vet.equations import ks_two_sample
from harness.observe.parsing.task_log import (
    first_moment,
    read_shuffle_log,
    read_task_log,
    read_zone,
)
from harness.observe.pieces import TaskPieces, is_detailed, logged_pieces, recorded_pieces
from harness.observe.profiling.jobs import Observation
from harness.observe.profiling.task_statistics import compare_sources
from harness.observe.profiling.task_times import (
    logged_map_times,
    logged_reduce_times,
    recorded_times,
)

TASK_LOG = "syslog"
SHUFFLE_LOG = "syslog.shuffle"
FEWEST_TO_COMPARE = 2  # tasks of a repeat
_QUARTER_S = 900
_MOST_QUARTERS = 56
_OFFSET = re.compile(r"GMT([+-])([01]\d|2[0-3]):([0-5]\d)")


def logged_times(
    raw: RawLogs, trace: JobTrace, *, is_compressed: bool
) -> Iterator[MapTimes | ReduceTimes]:
    """
    Task times of each attempt of *trace* that succeeded and has a log in *raw*.

    *is_compressed*: map outputs are.  Moments lie within the attempt, and are read in the zone that
    the task's log names, or where it names none in that which puts them there.  An uberized job has
    no times: all its attempts ran in its application master, whose log mixes them.
    """
    names = () if trace.uberized else raw.names()
    folders = {
        name.split("/")[-2]: name[: -len(TASK_LOG)]
        for name in names
        if name.endswith(f"/{TASK_LOG}")
    }  # by container
    for attempt in trace.attempts:
        folder = folders.get(attempt.container_id)
        if folder is None or attempt.state != "succeeded":
            continue
        zone = zone_of_log(raw, folder + TASK_LOG, attempt)
        with raw.open(folder + TASK_LOG) as lines:
            task_log = read_task_log(lines, folder + TASK_LOG, zone, attempt.window)
        if attempt.kind == "map":
            yield logged_map_times(task_log, attempt, is_compressed=is_compressed)
            continue
        # Hadoop may be set to write one log for both.
        log_name = folder + (SHUFFLE_LOG if folder + SHUFFLE_LOG in names else TASK_LOG)
        with raw.open(log_name) as lines:
            shuffle_log = read_shuffle_log(lines, log_name, zone, attempt.window)
        yield logged_reduce_times(task_log, shuffle_log, attempt)


def zone_of_log(raw: RawLogs, log_name: str, attempt: TaskAttempt) -> tzinfo:
    """The zone in which the log of *attempt* has its moments."""
    with raw.open(log_name) as lines:
        zone_name = read_zone(lines)
    if zone_name:
        return named_zone(zone_name, attempt.host, log_name)
    with raw.open(log_name) as lines:
        local_s = first_moment(lines, log_name)
    return zone_of_start(local_s, attempt.start_s)


def zone_of_start(local_s: float | None, start_s: float) -> timezone:
    """
    The zone in which *local_s*, a moment read as UTC, is nearest to the start of its attempt.

    Zones are quarters of an hour apart, and a task writes its first lines within minutes.
    """
    quarters = 0 if local_s is None else round((local_s - start_s) / _QUARTER_S)
    if abs(quarters) > _MOST_QUARTERS:
        return UTC  # no zone of this world: the reader says so
    return timezone(timedelta(seconds=quarters * _QUARTER_S))


def named_zone(name: str, host: str, source: str) -> tzinfo:
    """The zone of a task on *host*, which its log *source* calls *name* as Java does."""
    if offset := _OFFSET.fullmatch(name):  # of a zone that has no name
        minutes = int(offset[2]) * 60 + int(offset[3])
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        what = f"{host} is in the zone '{excerpt(name)}', which this machine does not know"
        fix = "apt-get install tzdata here, or run Java there in a zone that is in it (TZ)"
        raise DataError(what, where=source, fix=fix) from error


def observe(
    run: Run,
    record: TrialRecord,
    cell: ResolvedCell,
    jobs: Sequence[JobTrace],
    rate: float | None,
) -> list[Observation]:
    """
    One observation for each of the *jobs* of a trial of *cell*.

    *rate* is the mean rate of the speed probe meanwhile.
    """
    config, _, _ = cell.model_inputs
    task_times = task_times_of(run, record, jobs, is_compressed=config.map_output_compressed)
    return observe_jobs(record.trial, cell, jobs, rate, task_times)


def observe_jobs(
    trial: Trial,
    cell: ResolvedCell,
    jobs: Sequence[JobTrace],
    rate: float | None = None,
    task_times: Sequence[MapTimes | ReduceTimes] = (),
) -> list[Observation]:
    """One observation for each of the *jobs* of a *trial* of *cell*, with their *task_times*."""
    config, cluster, planned_input = cell.model_inputs
    observations = []
    for number, trace in enumerate(jobs):
        attempt_ids = {attempt.attempt_id for attempt in trace.attempts}
        observations.append(
            Observation(
                trial=trial,
                trace=trace,
                config=config,
                cluster=cluster,
                job_input=input_read(trace, planned_input),
                rate=rate,
                task_times=tuple(
                    task_time for task_time in task_times if task_time.attempt_id in attempt_ids
                ),
                number=number,
                planned_jobs=cell.planned_jobs,
                output_copies=cell.output_copies,
            )
        )
    return observations


def task_times_of(
    run: Run, record: TrialRecord, jobs: Sequence[JobTrace], *, is_compressed: bool
) -> list[MapTimes | ReduceTimes]:
    """What recordings and logs of a trial show of its tasks; *is_compressed*: map outputs are."""
    if record.trial.cell.tracing.mode == "off":
        return []
    trial_id = record.trial.id
    joined_trace = joined(jobs)
    attempts = _succeeded(joined_trace)
    task_times: list[MapTimes | ReduceTimes] = []
    for recording in run.read_recordings(trial_id):
        attempt = attempts.get(recording.attempt_id)
        if attempt is not None:
            task_times.append(recorded_times(recording, attempt))
    # A profile has more from logs; other trials need them only for what was not recorded.
    if record.trial.profiling or not task_times:
        task_times += logged_times(run.raw(trial_id), joined_trace, is_compressed=is_compressed)
    return task_times


def _succeeded(trace: JobTrace) -> dict[str, TaskAttempt]:
    return {
        attempt.attempt_id: attempt for attempt in trace.attempts if attempt.state == "succeeded"
    }


def input_read(trace: JobTrace, planned: JobInput) -> JobInput:
    """Input of one job: as *planned*, or what its counters say where an earlier job wrote it."""
    input_bytes = trace.input_bytes
    map_count = trace.num_maps
    is_same_size = abs(input_bytes - planned.input_bytes) <= INPUT_TOLERANCE * planned.input_bytes
    if input_bytes == 0 or (is_same_size and map_count == planned.num_splits):
        return planned
    changes = {"input_bytes": input_bytes, "num_files": map_count, "num_splits": map_count}
    return planned.model_copy(update={**changes, "split_bytes": input_bytes / map_count})


def job_task_times(
    trace: JobTrace, logged: Iterable[MapTimes | ReduceTimes], recordings: Iterable[TaskSpans]
) -> JobTaskTimes:
    """
    Where the time of a job's tasks went, from what their logs say and what was recorded of them.

    Attempts that did not succeed count in no mean.
    """
    succeeded = _succeeded(trace)
    drawn = {attempt.attempt_id: attempt for attempt in trace.attempts}
    if not is_detailed(trace):
        drawn = {}
    pieces = dict[str, TaskPieces]()
    recorded: list[MapTimes | ReduceTimes] = []
    parts_by_attempt = {}
    for recording in recordings:
        attempt_id = recording.attempt_id
        if attempt_id in drawn and recording.spans:
            pieces[attempt_id] = recorded_pieces(drawn[attempt_id], recording)
        attempt = succeeded.get(attempt_id)
        if attempt is not None:
            recorded.append(recorded_times(recording, attempt))
            parts_by_attempt[attempt_id] = task_parts(recorded[-1], attempt, recording)
    logged = [task_times for task_times in logged if task_times.attempt_id in succeeded]
    for task_times in logged:
        attempt_id = task_times.attempt_id
        parts_by_attempt.setdefault(attempt_id, task_parts(task_times, succeeded[attempt_id]))
        if attempt_id in drawn and attempt_id not in pieces:
            pieces[attempt_id] = logged_pieces(drawn[attempt_id], task_times)
    counters = {attempt_id: attempt.counters for attempt_id, attempt in succeeded.items()}
    return JobTaskTimes(
        parts=tuple(parts_by_attempt.values()),
        pieces=pieces,
        differences=compare_sources(recorded, logged, counters),
    )


def job_vet(run: Run, record: TrialRecord, cell: ResolvedCell, trace: JobTrace) -> JobVet | None:
    """Vet of the job of one trial of *cell*; `None` where no unit was recorded."""
    trial_id = record.trial.id
    config, _, _ = cell.model_inputs
    attempts = _succeeded(trace)
    # Records of each task, and the seconds in which its spills ran.
    totals = {
        recording.attempt_id: (
            recording.loop.records,
            sum(span.wall_s for span in recording.named("spill")),
        )
        for recording in run.read_recordings(trial_id)
    }
    kinds = assess(_task_units(run.read_units(trial_id), attempts, totals), config)
    if not kinds:
        return None
    typical = {kind.typical for kind in kinds if kind.typical}
    curves = []
    if typical:
        # Read once more, as a stream: which tasks are typical, and drawn, is known only now.
        for units in _task_units(run.read_units(trial_id), attempts, totals):
            curve = vet_curve(units, config) if units.attempt_id in typical else None
            if curve is not None:
                curves.append(curve)
    return JobVet(
        trial=trial_id,
        cell=cell.id,
        repetition=record.trial.repetition,
        kinds=kinds,
        curves=tuple(sorted(curves, key=lambda curve: curve.kind)),  # maps first
    )


def _task_units(
    recorded: Iterable[UnitTimes],
    attempts: Mapping[str, TaskAttempt],
    totals: Mapping[str, tuple[int, float]],
) -> Iterator[TaskUnits]:
    """
    Join units that were *recorded* with their *attempts*, which succeeded: one at a time.

    *totals* are records of a task, and the seconds in which its spills ran.
    """
    for task_units in recorded:
        attempt = attempts.get(task_units.attempt_id)
        if attempt is None:
            continue
        records, spill_s = totals.get(task_units.attempt_id, (None, None))
        yield TaskUnits(
            attempt_id=task_units.attempt_id,
            kind=attempt.kind,
            unit_records=task_units.unit_records,
            unit_seconds=task_units.seconds,
            task_s=attempt.duration_s,
            records=records,
            spill_s=spill_s,
            counters=attempt.counters,
        )


def collect_vets(jobs: Iterable[JobVet]) -> VetBook:
    """All jobs, and the repeats of each cell compared pair by pair."""
    all_vets = tuple(jobs)
    by_cell: dict[str, list[JobVet]] = {}
    for job in all_vets:
        by_cell.setdefault(job.cell, []).append(job)
    tests = []
    for cell, repeats in by_cell.items():
        repeats.sort(key=lambda job: job.repetition)
        for kind in SUBPHASES:
            tests += compare_repeats(cell, kind, repeats)
    return VetBook(all_vets, tuple(tests))


def compare_repeats(cell: str, kind: TaskKind, repeats: Iterable[JobVet]) -> list[RepeatsTest]:
    """Compare the vets of the tasks of one *kind* in all pairs of *repeats* of a *cell*."""
    vets_by_repeat = list[tuple[int, list[float]]]()
    for job in repeats:
        for kind_vet in job.kinds:
            if kind_vet.kind != kind:
                continue
            vets = [vet for vet in kind_vet.job.vet_tasks if vet is not None]
            if len(vets) >= FEWEST_TO_COMPARE:
                vets_by_repeat.append((job.repetition, vets))
    return [
        RepeatsTest(cell, kind, (first, second), ks_two_sample(first_vets, second_vets))
        for (first, first_vets), (second, second_vets) in combinations(vets_by_repeat, 2)
    ]
