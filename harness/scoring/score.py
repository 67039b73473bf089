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

from harness.records.prediction import Prediction
from harness.records.score import (
    Decomposition,
    Level,
    Measurement,
    Score,
    ScoreBook,
    Speed,
    Summary,
)
from harness.records.trace import JobTrace, TaskKind
from harness.scoring.comparisons import FAMILY_ERROR, compare
from harness.scoring.metrics import METRICS
from harness.scoring.metrics.errors import i_accu, relative_error, signed_error
from harness.stats.spread import mean_floors

BASELINE = "whatif"
SPEEDS: tuple[Speed, ...] = ("raw", "reference")
MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
_OF_LEVEL: dict[Level, tuple[str, ...]] = {
    "job": ("body_s", "job_s", "published_s", "frame_s", "each_job_s", "makespan_s"),
    "task": ("map_task_s", "reduce_task_s"),
    "phase": (*MAP_PHASES, *REDUCE_PHASES),
}
LEVELS = {name: level for level, names in _OF_LEVEL.items() for name in names}
# What is measured of tasks: from which end of their phases (nothing: the task's own) to which.
SPANS: tuple[tuple[TaskKind, str, str, str], ...] = (
    ("map", "map_task_s", "", ""),
    ("map", "map_main_s", "", "map_finish_s"),
    ("map", "map_tail_s", "map_finish_s", ""),
    ("reduce", "reduce_task_s", "", ""),
    ("reduce", "shuffle_s", "", "shuffle_finish_s"),
    ("reduce", "sort_s", "shuffle_finish_s", "sort_finish_s"),
    ("reduce", "reduce_rest_s", "sort_finish_s", ""),
)
REST = "rest_s"
# Quantities that are measured by others: what the paper's formula says is compared with the job.
MEASURED_AS = {"published_s": "job_s"}
OF_ONE_JOB = ("body_s", "published_s", "frame_s")  # as predicted; measured are those of a trial


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
    tasks_s = defaultdict[str, list[float]](list)
    for job, (kind, quantity, first, last) in product(jobs, SPANS):
        for attempt in job.succeeded(kind):
            if attempt.attempt_id in ends:
                start_s, end_s = ends[attempt.attempt_id]
                begin = getattr(attempt, first) if first else attempt.start_s + start_s
                finish = getattr(attempt, last) if last else attempt.finish_s - end_s
                if begin is not None and finish is not None:
                    # A usual start may be longer than one task's own.
                    tasks_s[quantity].append(max(0.0, finish - begin))
    quantities = {"job_s": math.fsum(job.job_s for job in jobs)}
    known_frames = [frame_s for frame_s in frames if frame_s is not None]
    if known_frames and len(known_frames) == len(jobs):
        quantities["frame_s"] = math.fsum(known_frames)
        if (body_s := quantities["job_s"] - quantities["frame_s"]) > 0:
            quantities["body_s"] = body_s
    makespans = []
    for job in jobs:
        if attempts := (*job.succeeded("map"), *job.succeeded("reduce")):
            last_s = max(attempt.finish_s for attempt in attempts)
            makespans.append(last_s - min(attempt.start_s for attempt in attempts))
    if makespans:
        quantities["makespan_s"] = math.fsum(makespans)
    if len(jobs) > 1:
        quantities["each_job_s"] = quantities["job_s"] / len(jobs)
    return quantities | {quantity: fmean(several) for quantity, several in tasks_s.items()}


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
    trials: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in sorted(measurements, key=lambda measurement: measurement.trial):
        trials[measurement.cell].append(measurement)
    known = sorted(
        (prediction for prediction in predictions if prediction.cell in trials),
        key=lambda prediction: (prediction.model, prediction.cell),
    )
    scores = _scores(known, trials)
    workloads = {cell: repeats[0].workload for cell, repeats in trials.items()}
    unanswered = Counter(
        (each.model, workload)
        for each in known
        if each.job_s is None
        for workload in (workloads[each.cell], "*")
    )
    groups: dict[tuple[str, str, str, Speed], list[Score]] = defaultdict(list)
    for each in scores:
        for workload in (workloads[each.cell], "*"):
            groups[each.model, workload, each.quantity, each.speed].append(each)
    summaries = []
    for (model, workload, quantity, speed), group in groups.items():
        values = {name: metric.compute(group) for name, metric in METRICS.items()}
        summaries.append(
            Summary(
                model=model,
                workload=workload,
                level=group[0].level,
                quantity=quantity,
                speed=speed,
                cells=len(group),
                metrics={name: value for name, value in values.items() if value is not None},
                not_applicable=unanswered[model, workload],
            )
        )
    models = sorted({each.model for each in known})
    # All models have one frame; equations and estimates are no models.
    compared = [each for each in scores if each.quantity in LEVELS and each.quantity != "frame_s"]
    refits = {
        (prediction.model, prediction.cell, quantity): times_s
        for prediction in known
        for quantity, times_s in prediction.refits.items()
    }
    rankings, comparisons = compare(
        compared, frame_shares(measurements), models=models, error=error, refits=refits
    )
    return ScoreBook(
        measurements=tuple(sorted(measurements, key=lambda measurement: measurement.trial)),
        scores=tuple(scores),
        summaries=tuple(summaries),
        comparisons=tuple(comparisons),
        rankings=tuple(rankings),
        decompositions=tuple(decompose(scores, known)),
    )


def frame_shares(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Share of each cell's job time that passes around its tasks, where that is known."""
    trials_s = defaultdict[str, list[dict[str, float]]](list)
    for measurement in measurements:
        trials_s[measurement.cell].append(measurement.raw_s)
    return {
        cell: fmean(frames_s) / (fmean(raw_s.get("job_s", 0) for raw_s in repeats) or math.inf)
        for cell, repeats in trials_s.items()
        if (frames_s := [raw_s["frame_s"] for raw_s in repeats if "frame_s" in raw_s])
    }


def _scores(
    predictions: Sequence[Prediction], trials: Mapping[str, Sequence[Measurement]]
) -> list[Score]:
    """One score for each quantity that was predicted and measured, with its accuracy indicator."""
    times_s: dict[tuple[str, str, Speed], dict[str, list[float]]] = defaultdict(dict)
    for repeat in chain.from_iterable(trials.values()):
        for speed in SPEEDS:
            measured_times = repeat.raw_s if speed == "raw" else repeat.reference_s
            for quantity, seconds in measured_times.items():
                of_workload = times_s[repeat.workload, quantity, speed]
                of_workload.setdefault(repeat.cell, []).append(seconds)
    # Cells of one workload share their spread.
    floors = {
        kind: dict(zip(by_cell, mean_floors(list(by_cell.values())), strict=True))
        for kind, by_cell in times_s.items()
    }
    whatif_s = {
        prediction.cell: predicted_times(prediction)
        for prediction in predictions
        if prediction.model == BASELINE
    }
    scores = []
    for prediction, speed in product(predictions, SPEEDS):
        cell = prediction.cell
        first = trials[prediction.cell][0]
        for quantity, (level, predicted_s) in predicted_times(prediction).items():
            shown_as = "body_s" if level == "estimate" else MEASURED_AS.get(quantity, quantity)
            kind = (first.workload, shown_as, speed)
            repeats_s = times_s.get(kind, {}).get(cell)
            if predicted_s is None or not repeats_s or (measured_s := fmean(repeats_s)) <= 0:
                continue
            _, other_s = whatif_s.get(cell, {}).get(quantity, (level, None))
            covered = {
                f"covered_{percent}": ends and ends[0] <= measured_s <= ends[1]
                for percent, ends in prediction.intervals.get(quantity, {}).items()
            }
            scores.append(
                Score(
                    model=prediction.model,
                    cell=cell,
                    level=level,
                    quantity=quantity,
                    speed=speed,
                    predicted_s=predicted_s,
                    measured_s=measured_s,
                    trials=len(repeats_s),
                    floor=floors[kind][cell],
                    signed_error=signed_error(predicted_s, measured_s),
                    relative_error=relative_error(predicted_s, measured_s),
                    i_accu_percent=None
                    if other_s is None
                    else i_accu(measured_s, predicted_s, other_s)["i_accu_percent"],
                    range=first.range,
                    input=first.input,
                    **covered,
                )
            )
    return scores


def predicted_times(prediction: Prediction) -> dict[str, tuple[Level, float | None]]:
    """Times of a trial that *prediction* has, each with its level; bodies are of all its jobs."""
    times_s: dict[str, tuple[Level, float | None]] = {
        name: (level, getattr(prediction, name, prediction.measurable.get(name)))
        for name, level in LEVELS.items()
    }
    times_s |= {name: ("equation", time_s) for name, time_s in prediction.parts.items()}
    bodies_s = {name: times_s[name] for name in OF_ONE_JOB}
    bodies_s |= {name: ("estimate", body_s) for name, body_s in prediction.estimates.items()}
    return times_s | {
        name: (level, None if body_s is None else prediction.jobs * body_s)
        for name, (level, body_s) in bodies_s.items()
    }


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
    for each in scores:
        quantities[each.model, each.cell, each.speed][each.quantity] = each
    for prediction, speed in product(predictions, SPEEDS):
        rows = quantities[prediction.model, prediction.cell, speed]
        if (job := rows.get("body_s")) is None:
            continue
        map_waves = prediction.jobs * (prediction.map_waves or 0.0)
        reduce_waves = prediction.jobs * (prediction.reduce_waves or 0.0)
        waves = dict.fromkeys(MAP_PHASES, map_waves) | dict.fromkeys(REDUCE_PHASES, reduce_waves)
        errors_s = {name: row.predicted_s - row.measured_s for name, row in rows.items()}
        parts = {
            phase: times * errors_s[phase]
            for phase, times in waves.items()
            if times and phase in rows
        }
        if not parts:
            continue
        error_s = errors_s["body_s"]
        parts[REST] = error_s - math.fsum(parts.values())
        gross_s = math.fsum(map(abs, parts.values()))
        yield Decomposition(
            model=prediction.model,
            cell=prediction.cell,
            speed=speed,
            measured_s=job.measured_s,
            predicted_s=job.predicted_s,
            parts=parts,
            cancelled=1 - abs(error_s) / gross_s if gross_s > 0 else 0.0,
        )
