"""
How many trials and cells of what was planned are scored, and why the others are not.

Nothing leaves a score without being counted here.  What leaves it does so by a rule that does not
prefer one time to another: where a quantity is measured as 0 or less in one cell it has no relative
error there, and is scored in no cell of that workload; where a body is, the frame is refuted, and
no body of the run is scored.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from statistics import fmean
from typing import NamedTuple

from harness.base.records.prediction import Prediction
from harness.base.records.score import Measurement, Score, Tally, TallyUnit

# A body and its frame are one measurement in two parts: what refutes one refutes both.
BODIES = ("body_s", "frame_s")
NO_BODY = "what passes around tasks exceeds a job: no body of the run is scored"
NOT_POSITIVE = "it is measured as 0 s or less in a cell of the workload: scored in none of it"
NOT_SHOWN = "the trial does not show it"
NOT_MEASURED = "done, and not measured"
NO_ANSWER = "the model has no answer"
NO_MODEL = "no model has an answer"
CONTROL = "a control: no model is asked about it"
# By the state of a trial that is not done; nothing: it has not been run.
STATES = {"": "not run yet", "failed": "failed", "timed_out": "ran out of time"}

# Workload and quantity: what is refuted, and why.
Refuted = Mapping[tuple[str, str], str]


class PlannedTrial(NamedTuple):
    """
    A trial that was planned to be scored.

    *state* is that of its record, nothing where it has not been run; *is_asked* says whether models
    are asked about its cell.
    """

    id: str
    cell: str
    workload: str
    state: str
    is_asked: bool = True


class _Stage(IntEnum):
    """How far a trial or a cell came."""

    PLANNED = 0
    DONE = 1
    USABLE = 2
    SCORED = 3


class _Fate(NamedTuple):
    """What became of one trial or cell: how far it came, and why no farther."""

    stage: _Stage
    reason: str = ""


def refuted_quantities(measurements: Iterable[Measurement]) -> dict[tuple[str, str], str]:
    """
    Quantities that are scored in no cell of a workload, each with its reason.

    A share of 0 s is no number, and that of less than 0 s no error: such a quantity is one that
    borrowed parts refute, or that tasks do not have.  All cells of the workload leave with it, for
    errors of those that remain would be of survivors alone.
    """
    times_s = defaultdict[tuple[str, str], dict[str, list[float]]](dict)
    for measurement in measurements:
        for quantity, seconds in measurement.raw_s.items():
            times_by_cell = times_s[measurement.workload, quantity]
            times_by_cell.setdefault(measurement.cell, []).append(seconds)
    refuted = {
        key: NOT_POSITIVE
        for key, times_by_cell in times_s.items()
        if any(is_refuting(times) for times in times_by_cell.values())
    }
    if any(quantity == "body_s" for _, quantity in refuted):
        workloads = {workload for workload, _ in times_s}
        refuted |= {(workload, body): NO_BODY for workload in workloads for body in BODIES}
    return refuted


def is_refuting(times_s: Sequence[float]) -> bool:
    """Whether repeats of one cell show that a quantity is no time: negative once, or 0 always."""
    return min(times_s) < 0 or fmean(times_s) <= 0


def tallies(
    planned: Sequence[PlannedTrial],
    measurements: Sequence[Measurement],
    predictions: Sequence[Prediction],
    scores: Iterable[Score],
    measured_as: Callable[[Score], str],
) -> Iterator[Tally]:
    """
    Yield the counts of trials and cells, of all models together and of each, by quantity.

    *measured_as* names the measured quantity that a score is compared with.
    """
    outcome = _Outcome(planned, measurements, predictions)
    by_quantity = defaultdict[tuple[str, str], dict[str, set[str]]](lambda: defaultdict(set))
    for row in scores:
        if row.speed == "raw":
            by_quantity[row.quantity, measured_as(row)][row.model].add(row.cell)
    by_quantity.setdefault(("job_s", "job_s"), {})
    for (quantity, compared_with), cells_by_model in sorted(by_quantity.items()):
        scored_by_any = set().union(*cells_by_model.values())
        if quantity == "job_s":
            yield _tally("trial", "", quantity, outcome.of_trials(compared_with, scored_by_any))
        yield _tally("cell", "", quantity, outcome.of_cells(compared_with, scored_by_any))
        for model in outcome.models:
            fates = outcome.of_cells(compared_with, cells_by_model.get(model, set()), model)
            yield _tally("cell", model, quantity, fates)


def _tally(unit: TallyUnit, model: str, quantity: str, fates: Iterable[_Fate]) -> Tally:
    """Count what became of the trials or cells."""
    counted = list(fates)
    return Tally(
        unit=unit,
        model=model,
        quantity=quantity,
        planned=len(counted),
        done=sum(fate.stage >= _Stage.DONE for fate in counted),
        usable=sum(fate.stage >= _Stage.USABLE for fate in counted),
        scored=sum(fate.stage == _Stage.SCORED for fate in counted),
        left_out=dict(Counter(fate.reason for fate in counted if fate.reason)),
    )


class _Outcome:
    """What was planned, and what came of it."""

    def __init__(
        self,
        planned: Sequence[PlannedTrial],
        measurements: Sequence[Measurement],
        predictions: Sequence[Prediction],
    ) -> None:
        self.planned = planned
        self.trials_by_cell = defaultdict[str, list[PlannedTrial]](list)
        for trial in planned:
            self.trials_by_cell[trial.cell].append(trial)
        self.measured = {measurement.trial: measurement for measurement in measurements}
        self.refuted: Refuted = refuted_quantities(measurements)
        self.models = sorted({prediction.model for prediction in predictions})

    def of_trials(self, quantity: str, scored_cells: set[str]) -> Iterator[_Fate]:
        """What became of each trial, for a *quantity* that was scored in *scored_cells*."""
        for trial in self.planned:
            yield self._fate(trial, quantity, scored_cells)

    def of_cells(self, quantity: str, scored_cells: set[str], model: str = "") -> Iterator[_Fate]:
        """What became of each cell: as far as the one of its trials that came farthest."""
        for trials in self.trials_by_cell.values():
            yield max(self._fate(trial, quantity, scored_cells, model) for trial in trials)

    def _fate(
        self, trial: PlannedTrial, quantity: str, scored_cells: set[str], model: str = ""
    ) -> _Fate:
        """What became of one *trial* that was planned."""
        if trial.state != "done":
            return _Fate(_Stage.PLANNED, STATES.get(trial.state, trial.state))
        measurement = self.measured.get(trial.id)
        if measurement is None:
            return _Fate(_Stage.DONE, NOT_MEASURED)
        if quantity not in measurement.raw_s:
            return _Fate(_Stage.DONE, NOT_SHOWN)
        if reason := self.refuted.get((trial.workload, quantity)):
            return _Fate(_Stage.DONE, reason)
        if trial.cell in scored_cells:
            return _Fate(_Stage.SCORED)
        if not trial.is_asked:
            return _Fate(_Stage.USABLE, CONTROL)
        return _Fate(_Stage.USABLE, NO_ANSWER if model else NO_MODEL)


def as_planned(
    measurements: Iterable[Measurement], predictions: Iterable[Prediction]
) -> list[PlannedTrial]:
    """The trials that were measured, and one of each cell that was predicted and not measured."""
    trials = [
        PlannedTrial(measurement.trial, measurement.cell, measurement.workload, "done")
        for measurement in measurements
    ]
    measured_cells = {trial.cell for trial in trials}
    unmeasured = dict.fromkeys(
        prediction.cell for prediction in predictions if prediction.cell not in measured_cells
    )
    return [*trials, *(PlannedTrial("", cell, "", "") for cell in unmeasured)]
