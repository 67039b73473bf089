"""
Vet of measured jobs: the units that the tracer recorded, read as a stream.

A job is read twice: once for its numbers, once more for the units of its typical tasks, which are
known only then and are all that is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from harness.models.vet import assess, ks_two_sample
from harness.models.vet.curve import curve
from harness.records.prediction import JobConfig
from harness.records.spans import TaskSpans
from harness.records.trace import JobTrace
from harness.records.trial import TrialRecord
from harness.records.vet import SUBPHASES, JobVet, RepeatsTest, TaskUnits, VetBook, VetCurve
from harness.store import Run

FEWEST_TO_COMPARE = 2  # tasks of a repeat


def job_vet(run: Run, record: TrialRecord, trace: JobTrace, config: JobConfig) -> JobVet | None:
    """Vet of the job of one trial; `None` where no unit was recorded."""
    if record.trial.cell.tracing.mode != "units":
        return None
    told = {task.attempt_id: _told(task) for task in run.read_recordings(record.trial.id)}
    report = assess(_units(run, record, trace, told), config)
    if not report.kinds:
        return None
    typical = {kind.typical for kind in report.kinds if kind.typical}
    curves = _curves(_units(run, record, trace, told), typical, config)
    return JobVet(
        trial=record.trial.id,
        cell=record.trial.cell.id,
        repetition=record.trial.repetition,
        report=report,
        curves=tuple(sorted(curves, key=lambda drawn: drawn.kind)),  # maps first
    )


def vet_book(jobs: Iterable[JobVet]) -> VetBook:
    """All jobs, and the repeats of each cell compared pair by pair."""
    every = tuple(jobs)
    cells: dict[str, list[JobVet]] = {}
    for job in every:
        cells.setdefault(job.cell, []).append(job)
    return VetBook(every, tuple(t for same in cells.values() for t in _tests(same)))


def _told(task: TaskSpans) -> tuple[int, float]:
    """Records of a task, and the seconds in which its spills ran."""
    return task.loop.records, sum(span.wall_s for span in task.named("spill"))


def _units(
    run: Run, record: TrialRecord, trace: JobTrace, told: dict[str, tuple[int, float]]
) -> Iterator[TaskUnits]:
    """Units of each attempt that succeeded, one attempt in memory at a time."""
    attempts = {a.attempt_id: a for a in trace.attempts if a.state == "succeeded"}
    for units in run.read_units(record.trial.id):
        if (attempt := attempts.get(units.attempt_id)) is not None:
            records, spill_s = told.get(units.attempt_id, (None, None))
            yield TaskUnits(
                attempt_id=units.attempt_id,
                kind=attempt.kind,
                unit_records=units.unit_records,
                unit_seconds=units.seconds,
                task_s=attempt.duration_s,
                records=records,
                spill_s=spill_s,
                counters=attempt.counters,
            )


def _curves(tasks: Iterable[TaskUnits], typical: set[str], config: JobConfig) -> Iterator[VetCurve]:
    waiting = set(typical)
    for task in tasks:
        if task.attempt_id in waiting:
            waiting.discard(task.attempt_id)
            if (drawn := curve(task, config)) is not None:
                yield drawn
        if not waiting:
            return


def _tests(repeats: Iterable[JobVet]) -> Iterator[RepeatsTest]:
    ordered = sorted(repeats, key=lambda job: job.repetition)
    for kind in SUBPHASES:
        known = [
            (job.repetition, values)
            for job in ordered
            for each in job.report.kinds
            if each.kind == kind
            and len(values := [v for v in each.job.vet_tasks if v is not None]) >= FEWEST_TO_COMPARE
        ]
        for (first, a), (second, b) in combinations(known, 2):
            cell = ordered[0].cell
            yield RepeatsTest(cell, kind, (first, second), ks_two_sample(a, b))
