"""
Predictions against the measured times of trials: every model, cell, quantity, both speeds.

A cell is predicted once and measured several times; what is scored is the distance from the mean
of its trials, beside the spread of them.  Nothing depends on the order of trials or predictions.
"""

from __future__ import annotations

import math

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import fmean

from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Answer, Asked, Question, Scope
from harness.base.records.score import (
    COMPARED,
    Comparison,
    Control,
    Decomposition,
    Drift,
    Level,
    Measurement,
    Ranking,
    Score,
    ScoreBook,
    Speed,
    Summary,
)
from harness.base.stats.spread import mean_floors
from harness.observe.profiling.measured import MAP_PHASES, REDUCE_PHASES
from harness.scoring.answers import Scored, answer, cells_text
from harness.scoring.any_profile import Anew
from harness.scoring.comparisons import FAMILY_ERROR, compare
from harness.scoring.controls import controls
from harness.scoring.metrics import METRICS
from harness.scoring.metrics.errors import mean_error, relative_error, signed_error
from harness.scoring.speeds import ReadAt
from harness.scoring.tallies import (
    PlannedTrial,
    as_planned,
    refuted_quantities,
    tallies,
)

BASELINE = "whatif"
ALL_WORKLOADS = "*"
SPEEDS: tuple[Speed, ...] = ("raw", "reference")
REST = "rest_s"

LEVELS: dict[str, Level] = {
    "body_s": "job",
    "job_s": "job",
    "published_s": "job",
    "frame_s": "job",
    "each_job_s": "job",
    "makespan_s": "job",
    "map_task_s": "task",
    "reduce_task_s": "task",
    "map_main_s": "phase",
    "map_tail_s": "phase",
    "shuffle_s": "phase",
    "sort_s": "phase",
    "reduce_rest_s": "phase",
}
# Quantities that are measured by others: what the paper's formula says is compared with the job.
MEASURED_AS = {"published_s": "job_s"}
OF_ONE_JOB = ("body_s", "published_s", "frame_s")  # as predicted; measured are those of a trial

# Workload, quantity and speed: cells that have these in common share the spread of their trials.
_Kind = tuple[str, str, Speed]
_TimesByCell = dict[_Kind, dict[str, list[float]]]


def score(
    predictions: Sequence[Prediction],
    measurements: Sequence[Measurement],
    *,
    error: float = FAMILY_ERROR,
    planned: Sequence[PlannedTrial] | None = None,
    question: Question | None = None,
    asked: Asked = "afterwards",
    earlier: Sequence[Prediction] = (),
    drift: Drift | None = None,
    profiling: Sequence[Measurement] = (),
) -> ScoreBook:
    """
    All scores, their summaries per workload and overall (``*``), comparisons, and the answer.

    A quantity that the model does not give, or that is refuted (`refuted_quantities`), has no row;
    a model without an answer for a measured cell is counted as not applicable there.  The tallies
    count all of it, of the *planned* trials: those that were measured, unless they are given.
    *error* is the level of the comparisons: 5 %, or that of one of several looks.  The *question*
    (how far the best model is off, unless it is given) was *asked* when `Asked` says; *earlier* are
    predictions that had been asked for before, which count where models are explored.  Times at
    reference speed are without the *drift*; verdicts hold at both of its ends.  By the repeats of
    *profiling* trials the noise is known where no scored cell was repeated.
    """
    read_at = ReadAt.of(measurements, drift)
    ordered = sorted(measurements, key=lambda measurement: measurement.trial)
    trials: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in ordered:
        trials[measurement.cell].append(measurement)
    scorable = sorted(
        (prediction for prediction in predictions if prediction.cell in trials),
        key=lambda prediction: (prediction.model, prediction.cell),
    )
    scores = list(cell_scores(scorable, trials, profiling))
    asks = question or Question(how_far=BEST)
    rankings, comparisons = compare(
        [*compared_scores(scores, asks)],
        models=sorted({prediction.model for prediction in scorable}),
        question=asks,
        asked=asked,
        error=error,
        anew=times_anew(scorable, trials),
        earlier=[*earlier_scores(earlier, trials, asks, read_at.speed)],
        read_at=read_at,
    )
    control_rows, found = _concluded(asks, asked, scores, (rankings, comparisons), read_at)
    return ScoreBook(
        measurements=tuple(ordered),
        profiling=tuple(sorted(profiling, key=lambda measurement: measurement.trial)),
        scores=tuple(scores),
        summaries=tuple(
            summarise(
                [row for row in scores if asks.is_about(row.range)], scorable, trials, asks.scope
            )
        ),
        comparisons=tuple(comparisons),
        rankings=tuple(rankings),
        decompositions=tuple(decompose(scores, scorable)),
        tallies=tuple(
            tallies(
                as_planned(measurements, predictions) if planned is None else planned,
                ordered,
                predictions,
                scores,
                compared_quantity,
            )
        ),
        controls=tuple(control_rows),
        answer=found,
        drift=drift,
        speed=read_at.speed,
    )


def compared_scores(scores: Iterable[Score], question: Question) -> Iterator[Score]:
    """
    Yield those of *scores* by which models are ranked.

    Equations and estimates are no models, and the frame is the same for most of them.  Who asks
    about extrapolation asks about the cells outside of what was profiled alone, and who leaves it
    out about none of them.
    """
    for row in scores:
        if question.is_about(row.range) and row.quantity in LEVELS and row.quantity != "frame_s":
            yield row


def earlier_scores(
    predictions: Iterable[Prediction],
    trials: Mapping[str, Sequence[Measurement]],
    question: Question,
    speed: Speed,
) -> Iterator[Score]:
    """Yield the scores of job times at *speed* of *predictions* that were asked for before."""
    measured_predictions = [prediction for prediction in predictions if prediction.cell in trials]
    for row in compared_scores(cell_scores(measured_predictions, trials), question):
        if (row.quantity, row.speed) == (COMPARED, speed):
            yield row


def _concluded(
    question: Question,
    asked: Asked,
    scores: Sequence[Score],
    compared: tuple[Sequence[Ranking], Sequence[Comparison]],
    read_at: ReadAt,
) -> tuple[list[Control], Answer | None]:
    """The controls, and the answer to *question*; none where no job time is *compared*."""
    rankings, comparisons = compared
    for ranking in rankings:
        if (ranking.quantity, ranking.speed) == (COMPARED, read_at.speed):
            subject = compared_scores(scores, question)
            scored = Scored.of(subject, ranking, comparisons, asked, read_at.stretches)
            rows = {model: scored.common_row(model) for model in ranking.models}
            control_rows = controls(rows, question.scope, read_at.stretches)
            return control_rows, with_left_out(answer(question, scored), scores)
    return [], None


def with_left_out(found: Answer, scores: Iterable[Score]) -> Answer:
    """Say in the answer *found* how many extrapolated cells of *scores* its question leaves out."""
    left_out = {row.cell for row in scores if not found.question.is_about(row.range)}
    if found.question.extrapolate != "out" or not left_out:
        return found
    verb = "is" if len(left_out) == 1 else "are"
    note = f"Extrapolated, and left out, {verb} {cells_text(len(left_out))}."
    return found.model_copy(update={"sentence": f"{found.sentence} {note}"})


def compared_quantity(score: Score) -> str:
    """The measured quantity that *score* is about."""
    return _compared_with(score.level, score.quantity)


def _compared_with(level: Level, quantity: str) -> str:
    """The measured quantity that a predicted one of that *level* is compared with."""
    return "body_s" if level == "estimate" else MEASURED_AS.get(quantity, quantity)


def times_anew(
    predictions: Sequence[Prediction], trials: Mapping[str, Sequence[Measurement]]
) -> dict[tuple[str, str], Anew] | None:
    """
    Job times of each model and cell by the repeats of the cell's profile.

    `None` of predictions that came of no profile, such as numbers of a table.
    """
    if not any(prediction.profile for prediction in predictions):
        return None
    return {
        (prediction.model, prediction.cell): Anew(
            profile=trials[prediction.cell][0].workload,
            times_s=prediction.repeats_s,
        )
        for prediction in predictions
    }


class _Repeats:
    """Measured times of all trials, by kind and cell, and the noise floor of each cell's mean."""

    def __init__(
        self, measurements: Sequence[Measurement], profiling: Sequence[Measurement]
    ) -> None:
        refuted = refuted_quantities(measurements)
        self.times_s = _times_by_kind(measurements, refuted)
        others = _times_by_kind(profiling, refuted)
        self.floors: dict[_Kind, dict[str, float | None]] = {}
        for kind, times_by_cell in self.times_s.items():
            other_times = list(others.get(kind, {}).values())
            floors = mean_floors(list(times_by_cell.values()), other_times)
            self.floors[kind] = dict(zip(times_by_cell, floors, strict=True))

    def of_cell(self, kind: _Kind, cell: str) -> list[float]:
        """Times of the trials of *cell*; none where nothing of the *kind* was measured."""
        return self.times_s.get(kind, {}).get(cell, [])


def _times_by_kind(
    measurements: Iterable[Measurement], refuted: Collection[tuple[str, str]]
) -> _TimesByCell:
    """Times of *measurements* by kind and cell, without the *refuted* quantities of workloads."""
    times_s: _TimesByCell = defaultdict(dict)
    for repeat, speed in product(measurements, SPEEDS):
        trial_times = repeat.raw_s if speed == "raw" else repeat.reference_s
        for quantity, seconds in trial_times.items():
            if (repeat.workload, quantity) not in refuted:
                times_by_cell = times_s[repeat.workload, quantity, speed]
                times_by_cell.setdefault(repeat.cell, []).append(seconds)
    return times_s


def cell_scores(
    predictions: Sequence[Prediction],
    trials: Mapping[str, Sequence[Measurement]],
    profiling: Sequence[Measurement] = (),
) -> Iterator[Score]:
    """Yield a score for each quantity that was predicted and measured, with noise (`score`)."""
    repeats = _Repeats([*chain.from_iterable(trials.values())], profiling)
    baseline_s = {
        prediction.cell: predicted_times(prediction)
        for prediction in predictions
        if prediction.model == BASELINE
    }
    for prediction, speed in product(predictions, SPEEDS):
        cell = prediction.cell
        first_trial = trials[cell][0]
        for quantity, (level, predicted_s) in predicted_times(prediction).items():
            kind = (first_trial.workload, _compared_with(level, quantity), speed)
            repeats_s = repeats.of_cell(kind, cell)
            if predicted_s is None or not repeats_s:
                continue
            measured_s = fmean(repeats_s)
            error = signed_error(predicted_s, measured_s)
            _, whatif_s = baseline_s.get(cell, {}).get(quantity, (level, None))
            accuracy = None
            if whatif_s is not None:  # [Lv] Eq. (6)
                accuracy = 100 * (relative_error(whatif_s, measured_s) - abs(error))
            yield Score(
                model=prediction.model,
                cell=cell,
                level=level,
                quantity=quantity,
                speed=speed,
                predicted_s=predicted_s,
                measured_s=measured_s,
                trials=len(repeats_s),
                floor=repeats.floors[kind][cell],
                signed_error=error,
                relative_error=abs(error),
                i_accu_percent=accuracy,
                range=first_trial.range,
                input=first_trial.input,
                weight=first_trial.weight,
                **_covered(prediction, quantity, measured_s),
                **_levelled(prediction, quantity, measured_s),
            )


def _covered(prediction: Prediction, quantity: str, measured_s: float) -> dict[str, bool | None]:
    """Fields of `Score` that say whether *measured_s* lies in the predicted intervals."""
    covered: dict[str, bool | None] = {}
    for percent, ends in prediction.intervals.get(quantity, {}).items():
        covered[f"covered_{percent}"] = None if ends is None else ends[0] <= measured_s <= ends[1]
    return covered


def _levelled(prediction: Prediction, quantity: str, measured_s: float) -> dict[str, float]:
    """Fields of `Score` that say what the model's in-sample miss is, and the error without it."""
    miss = prediction.in_sample_miss
    if quantity != COMPARED or miss is None or prediction.job_s is None:
        return {}
    levelled_s = prediction.job_s / (1 + miss)
    return {"in_sample_miss": miss, "levelled_error": relative_error(levelled_s, measured_s)}


def predicted_times(prediction: Prediction) -> dict[str, tuple[Level, float | None]]:
    """Times of a trial that *prediction* has, each with its level; bodies are of all its jobs."""
    times_s: dict[str, tuple[Level, float | None]] = {
        name: (level, getattr(prediction, name, prediction.measurable.get(name)))
        for name, level in LEVELS.items()
    }
    times_s |= {name: ("equation", time_s) for name, time_s in prediction.parts.items()}
    bodies_s = {name: times_s[name] for name in OF_ONE_JOB}
    bodies_s |= {name: ("estimate", body_s) for name, body_s in prediction.estimates.items()}
    for name, (level, body_s) in bodies_s.items():
        times_s[name] = (level, None if body_s is None else prediction.jobs * body_s)
    return times_s


def summarise(
    scores: Sequence[Score],
    predictions: Sequence[Prediction],
    trials: Mapping[str, Sequence[Measurement]],
    scope: Scope = "jobs",
) -> Iterator[Summary]:
    """
    Yield all metrics of each model, quantity and speed: of each workload, and of all.

    The interval of a mean error is for the *scope* that is asked about.
    """
    workloads = {cell: (repeats[0].workload, ALL_WORKLOADS) for cell, repeats in trials.items()}
    unanswered = Counter[tuple[str, str]]()
    for prediction in predictions:
        if prediction.job_s is None:
            unanswered.update(product([prediction.model], workloads[prediction.cell]))
    groups: dict[tuple[str, str, str, Speed], list[Score]] = defaultdict(list)
    for row in scores:
        for workload in workloads[row.cell]:
            groups[row.model, workload, row.quantity, row.speed].append(row)
    for (model, workload, quantity, speed), rows in groups.items():
        values = {name: metric.compute(rows) for name, metric in METRICS.items()}
        if scope == "inputs":
            values["mape"] = mean_error(rows, scope)
        yield Summary(
            model=model,
            workload=workload,
            level=rows[0].level,
            quantity=quantity,
            speed=speed,
            cells=len(rows),
            metrics={name: value for name, value in values.items() if value is not None},
            not_applicable=unanswered[model, workload],
        )


# Where an error comes from


def decompose(
    scores: Sequence[Score], predictions: Iterable[Prediction]
) -> Iterator[Decomposition]:
    """
    Yield, for each body in *scores* whose phases are scored, too, where its error comes from.

    A phase of a task enters the body once per wave of its tasks, in each job of a trial that has
    several.  So its error is worth *waves* x (predicted - measured) in the body; what these do not
    explain of the body's error is the *rest*: what the model says of overlap and waiting against
    what really was.  Models without phases or without waves have none.
    """
    quantities: dict[tuple[str, str, Speed], dict[str, Score]] = defaultdict(dict)
    for row in scores:
        quantities[row.model, row.cell, row.speed][row.quantity] = row
    for prediction, speed in product(predictions, SPEEDS):
        rows = quantities[prediction.model, prediction.cell, speed]
        body = rows.get("body_s")
        parts = _phase_parts(prediction, rows)
        if body is None or not parts:
            continue
        error_s = body.predicted_s - body.measured_s
        parts[REST] = error_s - math.fsum(parts.values())
        gross_s = math.fsum(map(abs, parts.values()))
        yield Decomposition(
            model=prediction.model,
            cell=prediction.cell,
            speed=speed,
            measured_s=body.measured_s,
            predicted_s=body.predicted_s,
            parts=parts,
            cancelled=1 - abs(error_s) / gross_s if gross_s > 0 else 0.0,
        )


def _phase_parts(prediction: Prediction, rows: Mapping[str, Score]) -> dict[str, float]:
    """What the error of each scored phase is worth in the body, in seconds."""
    map_waves = prediction.jobs * (prediction.map_waves or 0.0)
    reduce_waves = prediction.jobs * (prediction.reduce_waves or 0.0)
    waves = dict.fromkeys(MAP_PHASES, map_waves) | dict.fromkeys(REDUCE_PHASES, reduce_waves)
    return {
        phase: times * (rows[phase].predicted_s - rows[phase].measured_s)
        for phase, times in waves.items()
        if times and phase in rows
    }
