"""
What a report is made from: records only, gathered by the caller.

Nothing is read from disk here, so the same numbers give the same report on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.experiment.model import Experiment
from harness.records.prediction import Prediction
from harness.records.profile import Profile
from harness.records.score import Measurement, Score, ScoreBook, Speed, Summary
from harness.records.spans import TaskSpans
from harness.records.task_times import MapTimes, ReduceTimes
from harness.records.trace import JobTrace
from harness.records.trial import Cell, TrialRecord
from harness.records.vet import VetBook
from harness.reports.inside.parts import TaskParts


@dataclass(frozen=True, slots=True)
class Difference:
    """
    A statistic that logs tell, too, beside the one from spans; *ratio* is logs over spans.

    *text* says what it is, *spread* is the standard deviation of the *count* tasks' own ratios.
    """

    name: str
    text: str
    spans: float
    logs: float
    ratio: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class JobInside:
    """
    What is known of the inside of the tasks of one job.

    *parts* are those of every task that succeeded and of which anything is known; *recordings* and
    *told* (by logs) hold those that are drawn, by the attempts' ids.
    """

    parts: Sequence[TaskParts] = ()
    recordings: Mapping[str, TaskSpans] = field(default_factory=dict)
    told: Mapping[str, MapTimes | ReduceTimes] = field(default_factory=dict)
    differences: Sequence[Difference] = ()


@dataclass(frozen=True, slots=True)
class ReportData:
    """
    Everything a report shows; all but the experiment may be empty.

    *cells* maps a cell's id to the cell and the label people see.  *timelines* hold one
    representative job per workload.  *machine* maps a trial's id to means over the trial: `busy`
    and `steal` (shares of all cores) and `rate` (of the speed probe, units per CPU second).  *jobs*
    are those of a timeline, by its trial: where a trial has several, the timeline's trace holds
    them all, joined.  *order* lists trial ids as they ran; without it the trials' starts decide.
    *evidence* maps a trial's id to the place of its logs, as the reader would type it.  *inside*
    maps the trial of a timeline to what is known of the inside of its tasks.  *vet* is the overhead
    of the jobs whose tasks have times of units.
    """

    experiment: Experiment
    cells: Mapping[str, tuple[Cell, str]] = field(default_factory=dict)
    trials: Sequence[TrialRecord] = ()
    measurements: Sequence[Measurement] = ()
    predictions: Sequence[Prediction] = ()
    book: ScoreBook = field(default_factory=ScoreBook)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    timelines: Sequence[tuple[TrialRecord, JobTrace]] = ()
    jobs: Mapping[str, Sequence[JobTrace]] = field(default_factory=dict)
    machine: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    order: Sequence[str] = ()
    evidence: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, JobInside] = field(default_factory=dict)
    vet: VetBook = field(default_factory=VetBook)


def label(data: ReportData, cell: str) -> str:
    """Label of the cell with this id; the id itself where the report was not told one."""
    return data.cells[cell][1] if cell in data.cells else cell


def workload_of(data: ReportData, cell: str) -> str:
    """Name of the workload of the cell with this id, or nothing where it is not known."""
    return data.cells[cell][0].workload.name if cell in data.cells else ""


def models(data: ReportData) -> tuple[str, ...]:
    """Models that predicted or were scored: the experiment's order first, then by name."""
    seen = {p.model for p in data.predictions} | {s.model for s in data.book.summaries}
    return _in_order(data.experiment.predict.models, seen | {s.model for s in data.book.scores})


def scored_models(data: ReportData) -> tuple[str, ...]:
    """Models with a score, in the order of `models`: those that had an answer."""
    scored = {s.model for s in data.book.scores}
    return tuple(m for m in models(data) if m in scored)


def workloads(data: ReportData) -> tuple[str, ...]:
    """Workloads that were run, profiled or scored: the experiment's order first, then by name."""
    seen = {r.trial.cell.workload.name for r in data.trials} | set(data.profiles)
    seen |= {m.workload for m in data.measurements}
    seen |= {workload_of(data, s.cell) for s in data.book.scores} - {""}
    return _in_order((w.name for w in data.experiment.workloads), seen)


def _in_order(first: Any, seen: set[str]) -> tuple[str, ...]:
    known = dict.fromkeys(name for name in first if name in seen)
    return (*known, *sorted(seen - set(known)))


def in_order(data: ReportData) -> tuple[TrialRecord, ...]:
    """Trials in the order in which they ran; those that *order* does not name come last."""
    place = {trial: index for index, trial in enumerate(data.order)}
    last = len(place)
    return tuple(
        sorted(data.trials, key=lambda r: (place.get(r.trial.id, last), r.started_s, r.trial.id))
    )


def insides(data: ReportData) -> list[tuple[str, JobInside]]:
    """What is known of the inside of each timeline's job, with the name of its workload."""
    return [
        (record.trial.cell.workload.name, data.inside.get(record.trial.id, JobInside()))
        for record, _ in data.timelines
    ]


def failed(data: ReportData) -> tuple[TrialRecord, ...]:
    """Trials that are not done, in the order in which they ran."""
    return tuple(r for r in in_order(data) if r.state != "done")


def disturbed(data: ReportData) -> dict[str, str]:
    """Ids of the disturbed trials, each with the rule that marked it, in the order of running."""
    marks = {m.trial: m.disturbed for m in data.measurements if m.disturbed}
    found = {r.trial.id: r.disturbed or marks.get(r.trial.id, "") for r in in_order(data)}
    return {trial: rule for trial, rule in found.items() if rule}


def scores(data: ReportData, quantity: str, speed: Speed, *, workload: str = "*") -> list[Score]:
    """Scores of one quantity at one speed, sorted by label and model; *workload* ``*`` is all."""
    rank = {model: index for index, model in enumerate(models(data))}
    places = {name: index for index, name in enumerate(workloads(data))}
    found = [
        s
        for s in data.book.scores
        if s.quantity == quantity
        and s.speed == speed
        and workload in ("*", workload_of(data, s.cell))
    ]
    return sorted(
        found,
        key=lambda s: (
            places.get(workload_of(data, s.cell), len(places)),
            *cell_key(data, s.cell),
            rank[s.model],
        ),
    )


def cell_key(data: ReportData, cell: str) -> tuple[int, str, str]:
    """Sorts cells by input size, then label, then id."""
    size = data.cells[cell][0].workload.input_bytes if cell in data.cells else 0
    return size, label(data, cell), cell


def summary(
    data: ReportData, model: str, *, workload: str = "*", quantity: str = "job_s", speed: Speed
) -> Summary | None:
    """Find the summary of one model; `None` where it was not made."""
    for s in data.book.summaries:
        if (s.model, s.workload, s.quantity, s.speed) == (model, workload, quantity, speed):
            return s
    return None


def job_seconds(data: ReportData) -> dict[str, Measurement]:
    """Measurements by trial id."""
    return {m.trial: m for m in data.measurements}


def reference_rate(data: ReportData, workload: str) -> float | None:
    """Probe rate at reference speed of this workload's profile, else of any profile."""
    chosen = [data.profiles[workload]] if workload in data.profiles else []
    for profile in [*chosen, *(data.profiles[name] for name in sorted(data.profiles))]:
        if profile.speed is not None and profile.speed.reference_rate > 0:
            return profile.speed.reference_rate
    return None
