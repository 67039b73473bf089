"""
Vet of measured jobs: the units that the tracer recorded, read as a stream.

A job is read twice: once for its numbers, once more for the units of its typical tasks, which are
known only then and are all that is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from harness.models.vet import assess, ks_two_sample, vet_curve
from harness.records.prediction import JobConfig
from harness.records.trace import JobTrace
from harness.records.trial import TrialRecord
from harness.records.vet import SUBPHASES, JobVet, RepeatsTest, TaskUnits, VetBook
from harness.store import Run

FEWEST_TO_COMPARE = 2  # tasks of a repeat


def job_vet(run: Run, record: TrialRecord, trace: JobTrace, config: JobConfig) -> JobVet | None:
    """Vet of the job of one trial; `None` where no unit was recorded."""
    trial_id = record.trial.id
    if record.trial.cell.tracing.mode != "units":
        return None
    # Records of each task, and the seconds in which its spills ran.
    totals = {
        recording.attempt_id: (
            recording.loop.records,
            sum(span.wall_s for span in recording.named("spill")),
        )
        for recording in run.read_recordings(trial_id)
    }
    attempts = {
        attempt.attempt_id: attempt for attempt in trace.attempts if attempt.state == "succeeded"
    }

    def read_units() -> Iterator[TaskUnits]:
        """Units of each attempt that succeeded, one attempt in memory at a time."""
        for task_units in run.read_units(trial_id):
            if (attempt := attempts.get(task_units.attempt_id)) is not None:
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

    report = assess(read_units(), config)
    if not report.kinds:
        return None
    not_drawn = {kind.typical for kind in report.kinds if kind.typical}
    curves = []
    for recording in read_units() if not_drawn else ():
        if recording.attempt_id in not_drawn:
            not_drawn.remove(recording.attempt_id)
            if (drawn_curve := vet_curve(recording, config)) is not None:
                curves.append(drawn_curve)
        if not not_drawn:
            break
    return JobVet(
        trial=trial_id,
        cell=record.trial.cell.id,
        repetition=record.trial.repetition,
        report=report,
        curves=tuple(sorted(curves, key=lambda drawn_curve: drawn_curve.kind)),  # maps first
    )


def collect_vets(jobs: Iterable[JobVet]) -> VetBook:
    """All jobs, and the repeats of each cell compared pair by pair."""
    all_vets = tuple(jobs)
    by_cell: dict[str, list[JobVet]] = {}
    for job in sorted(all_vets, key=lambda job: job.repetition):
        by_cell.setdefault(job.cell, []).append(job)
    tests = []
    for cell in dict.fromkeys(job.cell for job in all_vets):
        for kind in SUBPHASES:
            repeats = []
            for job in by_cell[cell]:
                for kind_vet in job.report.kinds:
                    vets = [vet for vet in kind_vet.job.vet_tasks if vet is not None]
                    if kind_vet.kind == kind and len(vets) >= FEWEST_TO_COMPARE:
                        repeats.append((job.repetition, vets))
            for (first, first_vets), (second, second_vets) in combinations(repeats, 2):
                distance = ks_two_sample(first_vets, second_vets)
                tests.append(RepeatsTest(cell, kind, (first, second), distance))
    return VetBook(all_vets, tuple(tests))
