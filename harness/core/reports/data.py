"""
What a report is made from: records only, gathered by the caller.

Nothing is read from disk here, so the same numbers give the same report on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.question import Question
from harness.base.records.score import Measurement, Metric, Score, ScoreBook, Speed, Summary
from harness.base.records.tasks import Source, SourceComparison
from harness.base.records.trace import JobTrace, TaskKind
from harness.base.records.trial import Cell, TrialRecord
from harness.base.records.vet import VetBook
from harness.core.experiment.model import Experiment
from harness.observe.pieces import TaskPieces


@dataclass(frozen=True, slots=True)
class TaskParts:
    """
    Seconds of each part of a task: means over *tasks* of one kind on *host*, empty for all nodes.

    *estimated* names the parts that are no measurement.
    """

    kind: TaskKind
    host: str
    tasks: int
    source: Source
    seconds: Mapping[str, float]
    estimated: frozenset[str]

    @property
    def total_s(self) -> float:
        """Seconds of all parts."""
        return sum(self.seconds.values())


@dataclass(frozen=True, slots=True)
class JobTaskTimes:
    """
    Where the time of the tasks of one job went.

    *parts* are those of every task that succeeded and of which anything is known; *pieces* are of
    the attempts that are drawn, by their ids.
    """

    parts: Sequence[TaskParts] = ()
    pieces: Mapping[str, TaskPieces] = field(default_factory=dict)
    differences: Sequence[SourceComparison] = ()


@dataclass(frozen=True)
class ReportData:
    """
    Everything a report shows; all but the experiment may be empty.

    What all sections ask for (scores in their order, models, speeds) is found once.

    *cells* have the label people see.  *timelines* hold one representative job per workload; where
    its trial has several, they are joined in it, and *jobs* has each, by the trial.  *rates* are
    those of the speed probe during each trial, units per CPU second.  *evidence* is the place of a
    trial's logs, as the reader would type it.  *task_times* is what is known of the tasks of a
    timeline, by its trial.  *seal* says why the run is `not_blind` (empty: it is).  *planned*
    counts the trials of the plan, run or not.  *unpublished_code* names the owner's models and
    workloads whose sources do not travel with this published run.
    """

    experiment: Experiment
    cells: Mapping[str, tuple[Cell, str]] = field(default_factory=dict)
    trials: Sequence[TrialRecord] = ()
    measurements: Sequence[Measurement] = ()
    predictions: Sequence[Prediction] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    score_book: ScoreBook = field(default_factory=ScoreBook)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    timelines: Sequence[tuple[TrialRecord, JobTrace]] = ()
    jobs: Mapping[str, Sequence[JobTrace]] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    task_times: Mapping[str, JobTaskTimes] = field(default_factory=dict)
    vet: VetBook = field(default_factory=VetBook)
    seal: Mapping[str, Any] = field(default_factory=dict)
    planned: int = 0
    unpublished_code: Sequence[str] = ()

    def label(self, cell_id: str) -> str:
        """Label of the cell with this id; the id itself where there is none."""
        return self.cells[cell_id][1] if cell_id in self.cells else cell_id

    def workload_of(self, cell_id: str) -> str:
        """Name of the workload of the cell with this id, or nothing where it is not known."""
        return self.cells[cell_id][0].workload.name if cell_id in self.cells else ""

    @property
    def speed(self) -> Speed:
        """The speed at which models are compared."""
        return self.score_book.speed

    def speeds(self, workload: str = "*") -> tuple[Speed, ...]:
        """Raw, and reference speed where any time of *workload* (``*``: all) differs at it."""
        times = (
            measurement
            for measurement in self.measurements
            if workload in ("*", measurement.workload)
        )
        is_corrected = any(time.raw_s != time.reference_s for time in times)
        return ("raw", "reference") if is_corrected else ("raw",)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Models that predicted or were scored: the experiment's order first, then by name."""
        seen_names = {prediction.model for prediction in self.predictions}
        seen_names |= {summary.model for summary in self.score_book.summaries}
        seen_names |= {score.model for score in self.score_book.scores}
        return _in_order(self.experiment.predict.models, seen_names)

    @cached_property
    def scored_models(self) -> tuple[str, ...]:
        """Models with a score, in the order of `models`: those that had an answer."""
        scored = {score.model for score in self.score_book.scores}
        return tuple(model for model in self.models if model in scored)

    @cached_property
    def workloads(self) -> tuple[str, ...]:
        """Workloads that were run, profiled or scored, in the experiment's order, then by name."""
        seen_names = {record.trial.cell.workload.name for record in self.trials}
        seen_names |= {*self.profiles, *(measured.workload for measured in self.measurements)}
        return _in_order((workload.name for workload in self.experiment.workloads), seen_names)

    @cached_property
    def ordered_trials(self) -> tuple[TrialRecord, ...]:
        """Trials in the order in which they ran."""
        return tuple(sorted(self.trials, key=lambda record: (record.started_s, record.trial.id)))

    @cached_property
    def failed_trials(self) -> tuple[TrialRecord, ...]:
        """Trials that are not done, in the order in which they ran."""
        return tuple(record for record in self.ordered_trials if record.state != "done")

    @cached_property
    def disturbed_trials(self) -> dict[str, str]:
        """Ids of the disturbed trials, each with the rule that marked it, in order of running."""
        by_trial = {measurement.trial: measurement.disturbed for measurement in self.measurements}
        rules = {
            record.trial.id: record.disturbed or by_trial.get(record.trial.id, "")
            for record in self.ordered_trials
        }
        return {trial: rule for trial, rule in rules.items() if rule}

    @cached_property
    def answered(self) -> str:
        """What the verdict is on: `job_s`, or `body_s` where the frame is most of the jobs."""
        ranking = self.score_book.ranking()
        return ranking.quantity if ranking else "job_s"

    @property
    def asked(self) -> Question:
        """The question that was answered; where nothing was scored, that of the experiment."""
        found = self.score_book.answer
        return self.experiment.question if found is None else found.question

    @property
    def is_answered(self) -> bool:
        """Whether one model at least is scored on the times of jobs."""
        ranking = self.score_book.ranking()
        return ranking is not None and bool(ranking.models)

    def scores(self, quantity: str, speed: Speed, workload: str = "*") -> Sequence[Score]:
        """Scores of one quantity at one speed, by cell and model; *workload* ``*`` is all."""
        return self._scores.get((quantity, speed, workload), ())

    @cached_property
    def _scores(self) -> dict[tuple[str, Speed, str], list[Score]]:
        place = {model: index for index, model in enumerate(self.models)}
        scores = self.score_book.scores
        cells = self.cell_places({score.cell for score in scores})
        groups: dict[tuple[str, Speed, str], list[Score]] = {}
        for score in sorted(scores, key=lambda score: (cells[score.cell], place[score.model])):
            for workload in dict.fromkeys((self.workload_of(score.cell), "*")):
                groups.setdefault((score.quantity, score.speed, workload), []).append(score)
        return groups

    def cell_places(self, cells: Iterable[str]) -> dict[str, tuple[int, int, str, str]]:
        """Keys that sort *cells* by workload, input size, label, then id."""
        workload_rank = {name: index for index, name in enumerate(self.workloads)}
        return {
            cell_id: (
                workload_rank.get(self.workload_of(cell_id), len(workload_rank)),
                self.cells[cell_id][0].workload.input_bytes if cell_id in self.cells else 0,
                self.label(cell_id),
                cell_id,
            )
            for cell_id in cells
        }

    def summary(
        self, model: str, speed: Speed, workload: str = "*", quantity: str = "job_s"
    ) -> Summary | None:
        """Find the summary of one model with a scored cell; `None` where there is none."""
        return self._summaries.get((model, workload, quantity, speed))

    @cached_property
    def _summaries(self) -> dict[tuple[str, str, str, Speed], Summary]:
        return {
            (summary.model, summary.workload, summary.quantity, summary.speed): summary
            for summary in self.score_book.summaries
            if summary.cells
        }

    @cached_property
    def relative_rates(self) -> dict[str, float]:
        """Probe rate of each trial as a share of reference speed (of the median without one)."""
        rates = {trial: rate for trial, rate in self.rates.items() if rate > 0}
        references = {
            workload_name: profile.speed.reference_rate
            for workload_name, profile in sorted(self.profiles.items())
            if profile.speed is not None and profile.speed.reference_rate > 0
        }
        usual = next(iter(references.values()), median(rates.values()) if rates else 1.0)
        workload = {record.trial.id: record.trial.cell.workload.name for record in self.trials}
        return {
            trial: rate / references.get(workload.get(trial, ""), usual)
            for trial, rate in rates.items()
        }


def noise_s(score: Score) -> float | None:
    """Spread of the repeats of the score's cell in seconds; `None` where it is not known, or 0."""
    return score.measured_s * score.floor if score.floor else None


def _in_order(first: Iterable[str], seen_names: set[str]) -> tuple[str, ...]:
    """*seen_names*: those of *first* in its order, then the rest by name."""
    ordered = dict.fromkeys(name for name in first if name in seen_names)
    return (*ordered, *sorted(seen_names - set(ordered)))
