"""
What stored trials show of their tasks, from the containers' logs and the tracer's recordings.

Profiles are fitted to it (observations), and reports show it: where the time of tasks went, and the
vet of jobs.
"""

from __future__ import annotations

import re

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import combinations, takewhile
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from harness.base.errors import DataError, ParseError
from harness.base.records.prediction import JobInput
from harness.base.records.tasks import (
    MapTimes,
    ReduceTimes,
    ShuffleLog,
    TaskLog,
    TaskSpans,
    UnitTimes,
)
from harness.base.records.trace import (
    MOST_CLOCK_S,
    JobTrace,
    TaskAttempt,
    TaskKind,
    joined,
)
from harness.base.records.trial import Trial, TrialRecord
from harness.base.records.vet import SUBPHASES, JobVet, RepeatsTest, TaskUnits, VetBook
from harness.base.text import excerpt
from harness.clusters.workloads.base import INPUT_TOLERANCE
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.machines import sampled_machines
from harness.core.reports.data import JobTaskTimes
from harness.core.reports.sections.task_times import task_parts
from harness.core.store import RawLogs, Run
from harness.models.vet.assessment import assess, vet_curve
from harness.models.vet.equations import ks_two_sample
from harness.observe.parsing.task_log import (
    first_event,
    first_of_shuffle,
    moments_of,
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
_ROLLED = re.compile(r"\.[1-9]\d{0,3}", re.ASCII)
_OFFSET = re.compile(r"GMT([+-])([01]\d|2[0-3]):([0-5]\d)")


def logged_times(
    raw: RawLogs, trace: JobTrace, *, is_compressed: bool
) -> Iterator[MapTimes | ReduceTimes]:
    """
    Task times of each attempt of *trace* that succeeded and has a whole log in *raw*.

    *is_compressed*: map outputs are.  Moments lie within the attempt, and are read in the zone that
    the task's log names, or where it names none in that which puts them there.  An uberized job has
    no times: all its attempts ran in its application master, whose log mixes them.  A log that
    lacks its begin or its end has none: what it shows is a part, and looks like less work.
    """
    for attempt, logs in attempt_logs(raw, trace):
        if not logs.lacks:
            yield _times_of(logs, attempt, is_compressed=is_compressed)


Lack = Literal["", "begin", "shuffle", "end"]


class AttemptLogs(NamedTuple):
    """
    What the logs of an attempt say.

    *lacks* is the part that was not in what was read.  *clock* is by how much their node's clock is
    ahead, between two bounds in seconds, `None` where they agree with the attempt.
    """

    task: TaskLog
    shuffle: ShuffleLog | None
    lacks: Lack
    clock: tuple[float, float] | None


def attempt_logs(raw: RawLogs, trace: JobTrace) -> Iterator[tuple[TaskAttempt, AttemptLogs]]:
    """Each attempt of *trace* that succeeded and has a log in *raw*, with what that says."""
    names = () if trace.uberized else raw.names()
    files = defaultdict[str, list[str]](list)  # by container
    for name in names:
        if name.count("/"):
            files[name.split("/")[-2]].append(name)
    for attempt in trace.attempts:
        if attempt.state != "succeeded":
            continue
        main_files = rolled(files.get(attempt.container_id, ()), TASK_LOG)
        if main_files:
            # Hadoop may be set to write one log for both.
            shuffle_files = rolled(files[attempt.container_id], SHUFFLE_LOG) or main_files
            yield attempt, _read_logs(_Logs(raw, main_files), _Logs(raw, shuffle_files), attempt)


def rolled(names: Iterable[str], log_name: str) -> list[str]:
    """
    Those of *names*, which may have folders, that are one log *log_name*, the oldest first.

    A log that reaches its size goes on in a new file: ``syslog`` becomes ``syslog.1``, that one
    ``syslog.2``.  Where a number is missing, what is older does not join.

    >>> rolled(["a/syslog", "a/syslog.2", "a/syslog.1", "a/syslog.shuffle"], "syslog")
    ['a/syslog.2', 'a/syslog.1', 'a/syslog']
    """
    by_ending = {}
    for name in names:
        file_name = name.rpartition("/")[2]
        if file_name == log_name or _ROLLED.fullmatch(file_name.removeprefix(log_name)):
            by_ending[file_name.removeprefix(log_name)] = name
    endings = ["", *(f".{number}" for number in range(1, len(by_ending) + 1))]
    if "" not in by_ending:
        endings.pop(0)
    return [by_ending[ending] for ending in takewhile(by_ending.__contains__, endings)][::-1]


class _Logs(NamedTuple):
    """The *files* of one log, the oldest first."""

    raw: RawLogs
    files: Sequence[str]

    @property
    def source(self) -> str:
        """The file that was written last."""
        return self.files[-1]

    def lines(self) -> Iterator[bytes]:
        """All lines."""
        raw = self.raw
        for name in self.files:
            with raw.open(name) as lines:
                yield from lines


def _read_logs(main: _Logs, shuffle: _Logs, attempt: TaskAttempt) -> AttemptLogs:
    """Read the logs of *attempt* in their zone, and where that does not do by their clock."""
    if lack := _lack_at_start(main, shuffle, attempt):
        return AttemptLogs(TaskLog(), None, lack, None)
    zone = zone_of_log(main, attempt)
    try:
        return _logs_in(zone, None, main, shuffle, attempt)
    except ParseError:
        clock = _clock_of(main, zone, attempt)
        if clock is None:
            raise
        return _logs_in(_Ahead(zone, sum(clock) / 2), clock, main, shuffle, attempt)


def _logs_in(
    zone: tzinfo,
    clock: tuple[float, float] | None,
    main: _Logs,
    shuffle: _Logs,
    attempt: TaskAttempt,
) -> AttemptLogs:
    """What the logs say, in *zone*, and whether they reach the end."""
    task_log = read_task_log(main.lines(), main.source, zone, attempt.window)
    shuffle_log = None
    if attempt.kind == "reduce":
        shuffle_log = read_shuffle_log(shuffle.lines(), shuffle.source, zone, attempt.window)
    return AttemptLogs(task_log, shuffle_log, "end" if task_log.done_s is None else "", clock)


def _lack_at_start(main: _Logs, shuffle: _Logs, attempt: TaskAttempt) -> Lack:
    """Which part the logs of *attempt* lack, by their first events."""
    first = first_event(main.lines(), main.source)
    if first is None or first.name != ("split" if attempt.kind == "map" else "shuffle"):
        return "begin"
    if attempt.kind == "map":
        return ""
    first = first_of_shuffle(shuffle.lines(), shuffle.source)
    if first is None:
        return "shuffle"
    return "" if first.name == "start" else "begin"


def _clock_of(main: _Logs, zone: tzinfo, attempt: TaskAttempt) -> tuple[float, float] | None:
    """
    Bounds of how far ahead the clock is by which a log was written: it lies within its attempt.

    `None` where none puts it there, or it is so far that it may be a zone.
    """
    moments = moments_of(main.lines(), main.source, zone)
    if moments is None:
        return None
    least_s = moments[1] - attempt.finish_s
    most_s = moments[0] - attempt.start_s
    if least_s > most_s or abs(least_s + most_s) > _QUARTER_S:
        return None
    return least_s, most_s


class _Ahead(tzinfo):
    """Local time of *zone* by a clock that is ahead by so many seconds."""

    def __init__(self, zone: tzinfo, ahead_s: float) -> None:
        self._zone = zone
        self._ahead = timedelta(seconds=ahead_s)

    def utcoffset(self, moment: datetime | None, /) -> timedelta:
        """By how much the clock shows more than UTC at *moment*."""
        offset = self._zone.utcoffset(moment)
        return self._ahead + (offset or timedelta())

    def dst(self, moment: datetime | None, /) -> timedelta | None:
        """Give that of the zone."""
        return self._zone.dst(moment)

    def tzname(self, moment: datetime | None, /) -> str | None:
        """Give that of the zone."""
        return self._zone.tzname(moment)


def _times_of(
    logs: AttemptLogs, attempt: TaskAttempt, *, is_compressed: bool
) -> MapTimes | ReduceTimes:
    """
    Times of the parts of *attempt*.

    Where its node's clock is off, and the logs do not tell by how much to a second, what lies
    between their moments and the master's is not known.
    """
    times: MapTimes | ReduceTimes
    if logs.shuffle is None:
        times = logged_map_times(logs.task, attempt, is_compressed=is_compressed)
    else:
        times = logged_reduce_times(logs.task, logs.shuffle, attempt)
    if logs.clock is not None and logs.clock[1] - logs.clock[0] > MOST_CLOCK_S:
        times = replace(times, start_up_s=None, end_s=None)
    return times


def zone_of_log(log: _Logs, attempt: TaskAttempt) -> tzinfo:
    """The zone in which the *log* of *attempt* has its moments."""
    zone_name = read_zone(log.lines())
    if zone_name:
        return named_zone(zone_name, attempt.host, log.source)
    first = first_event(log.lines(), log.source)
    return zone_of_start(first.at_s if first else None, attempt.start_s)


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
    observations = observe_jobs(record.trial, cell, jobs, rate, task_times)
    if record.trial.is_scored:
        return observations
    raw = run.raw(record.trial.id)
    machines, used_s = sampled_machines(raw, run.read_manifest(), record, jobs)
    return [
        replace(observation, machines=machines, cluster_cpu_s=cluster_cpu_s)
        for observation, cluster_cpu_s in zip(observations, used_s, strict=True)
    ]


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
    if 0 in (input_bytes, map_count) or (is_same_size and map_count == planned.num_splits):
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
