"""
Measured times of trials, and predictions against them: every model, cell, quantity, both speeds.

A cell is predicted once and measured several times; what is scored is the distance from the mean
of its trials, beside the spread of them.  Nothing depends on the order of trials or predictions.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.records.prediction import Prediction
from harness.records.score import (
    Decomposition,
    Level,
    Measurement,
    PhaseError,
    Score,
    ScoreBook,
    Speed,
    Summary,
)
from harness.records.trace import JobTrace, TaskKind
from harness.scoring.comparisons import FAMILY_ERROR, compare
from harness.scoring.metrics import METRICS
from harness.scoring.metrics.errors import i_accu, mean, relative_error, signed_error
from harness.stats.spread import mean_floors

BASELINE = "whatif"
SPEEDS: tuple[Speed, ...] = ("raw", "reference")
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
KINDS: tuple[TaskKind, ...] = ("map", "reduce")
MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
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
    maps, reduces = (
        [
            (attempt, attempt.start_s + ends[name][0], attempt.finish_s - ends[name][1])
            for job in jobs
            for attempt in job.succeeded(kind)
            if (name := attempt.attempt_id) in ends
        ]
        for kind in KINDS
    )
    intervals: dict[str, list[tuple[float | None, float | None]]] = {
        "map_task_s": [(begin, end) for _, begin, end in maps],
        "map_main_s": [(begin, attempt.map_finish_s) for attempt, begin, _ in maps],
        "map_tail_s": [(attempt.map_finish_s, end) for attempt, _, end in maps],
        "reduce_task_s": [(begin, end) for _, begin, end in reduces],
        "shuffle_s": [(begin, attempt.shuffle_finish_s) for attempt, begin, _ in reduces],
        "sort_s": [(each.shuffle_finish_s, each.sort_finish_s) for each, _, _ in reduces],
        "reduce_rest_s": [(attempt.sort_finish_s, end) for attempt, _, end in reduces],
    }
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
    for quantity, several in intervals.items():
        # A usual start may be longer than one task's own.
        known = [
            max(0.0, end - start) for start, end in several if start is not None and end is not None
        ]
        if known:
            quantities[quantity] = mean(known)
    return quantities


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
    unanswered = [(each.model, workloads[each.cell]) for each in known if each.job_s is None]
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
                not_applicable=sum(
                    other == model and workload in (silent_on, "*")
                    for other, silent_on in unanswered
                ),
            )
        )
    raw_s: dict[str, dict[str, float]] = defaultdict(dict)
    for each in scores:
        if each.speed == "raw":
            raw_s[each.quantity][each.cell] = each.measured_s
    frame_shares = {
        cell: frame_s / raw_s["job_s"][cell]
        for cell, frame_s in raw_s["frame_s"].items()
        if cell in raw_s["job_s"]
    }
    models = sorted({each.model for each in known})
    # All models have one frame; equations and estimates are no models.
    compared = [each for each in scores if each.quantity in LEVELS and each.quantity != "frame_s"]
    rankings, comparisons = compare(compared, frame_shares, models=models, error=error)
    return ScoreBook(
        measurements=tuple(sorted(measurements, key=lambda measurement: measurement.trial)),
        scores=tuple(scores),
        summaries=tuple(summaries),
        comparisons=tuple(comparisons),
        rankings=tuple(rankings),
        decompositions=tuple(decompose(scores, known)),
        not_applicable={
            model: sum(other == model for other, _ in unanswered) for model, _ in unanswered
        },
    )


def _scores(
    predictions: Iterable[Prediction], trials: Mapping[str, Sequence[Measurement]]
) -> list[Score]:
    """One score for each quantity that was predicted and measured, with its accuracy indicator."""
    scores, floors = [], _floors(trials)
    for prediction in predictions:
        repeats = trials[prediction.cell]
        for speed in SPEEDS:
            for quantity, (level, predicted_s) in _predicted(prediction).items():
                shown_as = "body_s" if level == "estimate" else MEASURED_AS.get(quantity, quantity)
                times = [trial.raw_s if speed == "raw" else trial.reference_s for trial in repeats]
                # The same sum whatever the order of the trials: sorted, and added exactly.
                seconds = sorted(time[shown_as] for time in times if shown_as in time)
                if predicted_s is None or not seconds or (measured_s := mean(seconds)) <= 0:
                    continue
                scores.append(
                    Score(
                        model=prediction.model,
                        cell=prediction.cell,
                        level=level,
                        quantity=quantity,
                        speed=speed,
                        predicted_s=predicted_s,
                        measured_s=measured_s,
                        trials=len(seconds),
                        floor=floors.get((prediction.cell, shown_as, speed)),
                        signed_error=signed_error(predicted_s, measured_s),
                        relative_error=relative_error(predicted_s, measured_s),
                        range=repeats[0].range,
                        input=repeats[0].input,
                    )
                )
    whatif_s = {
        (each.cell, each.quantity, each.speed): each.predicted_s
        for each in scores
        if each.model == BASELINE
    }
    for place, each in enumerate(scores):
        other_s = whatif_s.get((each.cell, each.quantity, each.speed))
        if other_s is not None:
            indicator = i_accu(each.measured_s, each.predicted_s, other_s)["i_accu_percent"]
            scores[place] = each.model_copy(update={"i_accu_percent": indicator})
    return scores


def _predicted(prediction: Prediction) -> dict[str, tuple[Level, float | None]]:
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


def _floors(
    trials: Mapping[str, Sequence[Measurement]],
) -> dict[tuple[str, str, Speed], float | None]:
    """Noise floors by cell, quantity and speed; cells of one workload share their spread."""
    groups: dict[tuple[str, str, Speed], dict[str, list[float]]] = defaultdict(dict)
    for cell, repeats in trials.items():
        for repeat in repeats:
            for speed in SPEEDS:
                times_s = repeat.raw_s if speed == "raw" else repeat.reference_s
                for quantity, seconds in times_s.items():
                    group = groups[repeat.workload, quantity, speed]
                    group.setdefault(cell, []).append(seconds)
    floors: dict[tuple[str, str, Speed], float | None] = {}
    for (_, quantity, speed), cells in groups.items():
        for cell, floor in zip(cells, mean_floors(list(map(sorted, cells.values()))), strict=True):
            floors[cell, quantity, speed] = floor
    return floors


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
    predicted = {(prediction.model, prediction.cell): prediction for prediction in predictions}
    quantities: dict[tuple[str, str, Speed], dict[str, Score]] = defaultdict(dict)
    for each in scores:
        quantities[each.model, each.cell, each.speed][each.quantity] = each
    for (model, cell, speed), rows in quantities.items():
        prediction, job = predicted.get((model, cell)), rows.get("body_s")
        if prediction is None or job is None:
            continue
        map_waves = prediction.jobs * (prediction.map_waves or 0.0)
        reduce_waves = prediction.jobs * (prediction.reduce_waves or 0.0)
        waves = dict.fromkeys(MAP_PHASES, map_waves) | dict.fromkeys(REDUCE_PHASES, reduce_waves)
        errors_s = {name: row.predicted_s - row.measured_s for name, row in rows.items()}
        parts = [
            PhaseError(phase=phase, waves=times, error_s=times * errors_s[phase])
            for phase, times in waves.items()
            if times and phase in rows
        ]
        if not parts:
            continue
        error_s = errors_s["body_s"]
        rest_s = error_s - math.fsum(part.error_s for part in parts)
        parts.append(PhaseError(phase=REST, waves=1.0, error_s=rest_s))
        gross_s = math.fsum(abs(part.error_s) for part in parts)
        yield Decomposition(
            model=model,
            cell=cell,
            speed=speed,
            measured_s=job.measured_s,
            predicted_s=job.predicted_s,
            parts=tuple(parts),
            cancelled=1 - abs(error_s) / gross_s if gross_s > 0 else 0.0,
        )
