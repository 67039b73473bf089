"""
Measured times of trials, and predictions against them: every model, cell, quantity, both speeds.

A cell is predicted once and measured several times; what is scored is the distance from the mean
of its trials, beside the spread of them.  Nothing depends on the order of trials or predictions.
"""

from __future__ import annotations

import math

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from statistics import fmean
from typing import NamedTuple

from harness.base.records.prediction import Prediction
from harness.base.records.score import (
    Decomposition,
    Level,
    Measurement,
    Score,
    ScoreBook,
    Speed,
    Summary,
)
from harness.base.records.trace import JobTrace, TaskAttempt, TaskKind
from harness.base.stats.spread import mean_floors
from harness.core.scoring.comparisons import FAMILY_ERROR, compare
from harness.core.scoring.metrics import METRICS
from harness.core.scoring.metrics.errors import i_accu, relative_error, signed_error

BASELINE = "whatif"
ALL_WORKLOADS = "*"
SPEEDS: tuple[Speed, ...] = ("raw", "reference")
MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
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


class Span(NamedTuple):
    """
    A part of a task that is measured as *quantity*, from one phase's end to that of another.

    *begin* and *end* are fields of `TaskAttempt`; without them the span begins and ends with the
    work of the task itself.
    """

    kind: TaskKind
    quantity: str
    begin: str = ""
    end: str = ""

    def measure(
        self, attempts: Iterable[TaskAttempt], ends: Mapping[str, tuple[float, float]]
    ) -> list[float]:
        """
        Seconds of the span in each of *attempts* for which the history shows both its ends.

        *ends* are the seconds that the JVM of an attempt needs to start and to end; attempts
        without them are left out.
        """
        begin_field = self.begin
        end_field = self.end
        measured_s = []
        for attempt in attempts:
            if attempt.attempt_id not in ends:
                continue
            start_s, end_s = ends[attempt.attempt_id]
            begin = getattr(attempt, begin_field) if begin_field else attempt.start_s + start_s
            finish = getattr(attempt, end_field) if end_field else attempt.finish_s - end_s
            if begin is not None and finish is not None:
                # A usual start may be longer than one task's own.
                measured_s.append(max(0.0, finish - begin))
        return measured_s


SPANS = (
    Span("map", "map_task_s"),
    Span("map", "map_main_s", end="map_finish_s"),
    Span("map", "map_tail_s", begin="map_finish_s"),
    Span("reduce", "reduce_task_s"),
    Span("reduce", "shuffle_s", end="shuffle_finish_s"),
    Span("reduce", "sort_s", begin="shuffle_finish_s", end="sort_finish_s"),
    Span("reduce", "reduce_rest_s", begin="sort_finish_s"),
)


# Measured times of a trial


def measured(
    jobs: Sequence[JobTrace],
    frames: Sequence[float | None],
    ends: Mapping[str, tuple[float, float]],
) -> dict[str, float]:
    """
    Quantities of a trial in seconds: those of tasks are means over all that succeeded.

    *frames* are the seconds around the tasks of each job, *ends* those of the start and of the end
    of each task's JVM, by attempt.  Bodies and tasks are without them; what no frame or no end is
    known of is absent, and so is a body of which nothing would be left.

    The times of jobs are their sums; `each_job_s`, which a single job lacks, is their mean.  What
    passes between two jobs counts in none.  Reduce quantities are absent from map-only jobs, and
    every quantity whose times the history lacks.  `makespan_s` is the first task's start to the
    last task's end.
    """
    job_s = math.fsum(job.job_s for job in jobs)
    quantities = {"job_s": job_s}
    known_frames = [frame_s for frame_s in frames if frame_s is not None]
    if known_frames and len(known_frames) == len(jobs):
        frame_s = math.fsum(known_frames)
        quantities["frame_s"] = frame_s
        if job_s > frame_s:
            quantities["body_s"] = job_s - frame_s
    makespans = [makespan for job in jobs if (makespan := job_makespan_s(job)) is not None]
    if makespans:
        quantities["makespan_s"] = math.fsum(makespans)
    if len(jobs) > 1:
        quantities["each_job_s"] = job_s / len(jobs)
    return quantities | task_means_s(jobs, ends)


def job_makespan_s(job: JobTrace) -> float | None:
    """Start of the first task of *job* to the end of the last one; `None` where none succeeded."""
    attempts = (*job.succeeded("map"), *job.succeeded("reduce"))
    if not attempts:
        return None
    first_s = min(attempt.start_s for attempt in attempts)
    last_s = max(attempt.finish_s for attempt in attempts)
    return last_s - first_s


def task_means_s(
    jobs: Sequence[JobTrace], ends: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Mean seconds of each of `SPANS` over all tasks that succeeded and have known *ends*."""
    tasks_s = defaultdict[str, list[float]](list)
    for job, span in product(jobs, SPANS):
        measured_s = span.measure(job.succeeded(span.kind), ends)
        if measured_s:
            tasks_s[span.quantity] += measured_s
    return {quantity: fmean(times_s) for quantity, times_s in tasks_s.items()}


# Scores


def score(
    predictions: Sequence[Prediction],
    measurements: Sequence[Measurement],
    *,
    error: float = FAMILY_ERROR,
) -> ScoreBook:
    """
    All scores, their summaries per workload and overall (``*``), and comparisons of models.

    A quantity that the model does not give, or that was measured as 0, has no row.  A model without
    an answer for a measured cell is counted as not applicable there; predictions of cells that were
    not measured are left out.  *error* is the level of the comparisons: 5 %, or that of one of
    several looks.
    """
    ordered = sorted(measurements, key=lambda measurement: measurement.trial)
    trials: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in ordered:
        trials[measurement.cell].append(measurement)
    scorable = sorted(
        (prediction for prediction in predictions if prediction.cell in trials),
        key=lambda prediction: (prediction.model, prediction.cell),
    )
    scores = list(cell_scores(scorable, trials))
    # All models have one frame; equations and estimates are no models.
    compared = [row for row in scores if row.quantity in LEVELS and row.quantity != "frame_s"]
    rankings, comparisons = compare(
        compared,
        frame_shares(measurements),
        models=sorted({prediction.model for prediction in scorable}),
        error=error,
        refits=_refitted_times(scorable),
    )
    return ScoreBook(
        measurements=tuple(ordered),
        scores=tuple(scores),
        summaries=tuple(summarise(scores, scorable, trials)),
        comparisons=tuple(comparisons),
        rankings=tuple(rankings),
        decompositions=tuple(decompose(scores, scorable)),
    )


def frame_shares(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Share of each cell's job time that passes around its tasks, where that is known."""
    trials_s = defaultdict[str, list[dict[str, float]]](list)
    for measurement in measurements:
        trials_s[measurement.cell].append(measurement.raw_s)
    shares = {}
    for cell, repeats in trials_s.items():
        frames_s = [raw_s["frame_s"] for raw_s in repeats if "frame_s" in raw_s]
        if frames_s:
            job_s = fmean(raw_s.get("job_s", 0) for raw_s in repeats)
            shares[cell] = fmean(frames_s) / (job_s or math.inf)
    return shares


def _refitted_times(
    predictions: Iterable[Prediction],
) -> dict[tuple[str, str, str], tuple[float | None, ...]]:
    """Times of each model, cell and quantity by the refits of the cell's profile."""
    refits = {}
    for prediction in predictions:
        for quantity, times_s in prediction.refits.items():
            refits[prediction.model, prediction.cell, quantity] = times_s
    return refits


class _Repeats:
    """Measured times of all trials, by kind and cell, and the noise floor of each cell's mean."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self.times_s: dict[_Kind, dict[str, list[float]]] = defaultdict(dict)
        for repeat, speed in product(measurements, SPEEDS):
            trial_times = repeat.raw_s if speed == "raw" else repeat.reference_s
            for quantity, seconds in trial_times.items():
                times_by_cell = self.times_s[repeat.workload, quantity, speed]
                times_by_cell.setdefault(repeat.cell, []).append(seconds)
        self.floors: dict[_Kind, dict[str, float | None]] = {}
        for kind, times_by_cell in self.times_s.items():
            floors = mean_floors(list(times_by_cell.values()))
            self.floors[kind] = dict(zip(times_by_cell, floors, strict=True))

    def of_cell(self, kind: _Kind, cell: str) -> list[float]:
        """Times of the trials of *cell*; none where nothing of the *kind* was measured."""
        return self.times_s.get(kind, {}).get(cell, [])


def cell_scores(
    predictions: Sequence[Prediction], trials: Mapping[str, Sequence[Measurement]]
) -> Iterator[Score]:
    """Yield a score for each quantity that was predicted and measured."""
    repeats = _Repeats(chain.from_iterable(trials.values()))
    baseline_s = {
        prediction.cell: predicted_times(prediction)
        for prediction in predictions
        if prediction.model == BASELINE
    }
    for prediction, speed in product(predictions, SPEEDS):
        cell = prediction.cell
        first_trial = trials[cell][0]
        for quantity, (level, predicted_s) in predicted_times(prediction).items():
            compared_with = "body_s" if level == "estimate" else MEASURED_AS.get(quantity, quantity)
            kind = (first_trial.workload, compared_with, speed)
            repeats_s = repeats.of_cell(kind, cell)
            if predicted_s is None or not repeats_s:
                continue
            measured_s = fmean(repeats_s)
            if measured_s <= 0:
                continue
            _, whatif_s = baseline_s.get(cell, {}).get(quantity, (level, None))
            accuracy = None
            if whatif_s is not None:
                accuracy = i_accu(measured_s, predicted_s, whatif_s)["i_accu_percent"]
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
                signed_error=signed_error(predicted_s, measured_s),
                relative_error=relative_error(predicted_s, measured_s),
                i_accu_percent=accuracy,
                range=first_trial.range,
                input=first_trial.input,
                **_covered(prediction, quantity, measured_s),
            )


def _covered(prediction: Prediction, quantity: str, measured_s: float) -> dict[str, bool | None]:
    """Fields of `Score` that say whether *measured_s* lies in the predicted intervals."""
    covered: dict[str, bool | None] = {}
    for percent, ends in prediction.intervals.get(quantity, {}).items():
        covered[f"covered_{percent}"] = None if ends is None else ends[0] <= measured_s <= ends[1]
    return covered


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
) -> Iterator[Summary]:
    """Yield all metrics of each model, quantity and speed: of each workload, and of all."""
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
