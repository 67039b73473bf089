"""
Predictions against measurements: every model, every cell, every quantity, at both speeds.

A cell is predicted once and measured several times; what is scored is the distance from the mean
of its trials, beside the spread of them.  Nothing depends on the order of trials or predictions.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from statistics import median

from harness.records.prediction import Prediction
from harness.records.score import (
    Calibration,
    Comparison,
    Level,
    Measurement,
    Score,
    ScoreBook,
    Speed,
    Summary,
)
from harness.scoring.accuracy import calibration, i_accu, relative_error, signed_error, variation
from harness.scoring.decomposition import decompose

BASELINE = "whatif"
SPEEDS: tuple[Speed, ...] = ("raw", "reference")
LEVELS: dict[str, Level] = {
    "job_s": "job",
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

_SEED = 7  # of the bootstrap, so that one run always has one report


def score(predictions: Sequence[Prediction], measurements: Sequence[Measurement]) -> ScoreBook:
    """
    All scores, their summaries per workload and overall (``*``), and comparisons of models.

    A quantity that the model does not give, or that was measured as 0, has no row.  A model without
    an answer for a measured cell is counted as not applicable there; predictions of cells that were
    not measured are left out.
    """
    cells: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in sorted(measurements, key=lambda m: m.trial):
        cells[measurement.cell].append(measurement)
    known = sorted((p for p in predictions if p.cell in cells), key=lambda p: (p.model, p.cell))
    scores = _with_indicator([s for p in known for s in _scores(p, cells[p.cell])])
    unanswered = [(p.model, cells[p.cell][0].workload) for p in known if p.job_s is None]
    workload = {cell: trials[0].workload for cell, trials in cells.items()}
    return ScoreBook(
        scores=tuple(scores),
        summaries=tuple(_summaries(scores, workload, unanswered)),
        comparisons=tuple(_comparisons(scores)),
        decompositions=tuple(decompose(scores, known)),
        not_applicable={m: sum(u == m for u, _ in unanswered) for m, _ in unanswered},
    )


def predicted(prediction: Prediction) -> dict[str, float]:
    """Quantities that a prediction can be scored by; the job time stands for the makespan too."""
    tasks = {
        "job_s": prediction.job_s,
        "each_job_s": prediction.each_job_s,
        "makespan_s": prediction.job_s,
        "map_task_s": prediction.map_task_s,
        "reduce_task_s": prediction.reduce_task_s,
    }
    found = {name: time for name, time in tasks.items() if time is not None}
    return found | {k: v for k, v in prediction.measurable.items() if k in LEVELS}


def _scores(prediction: Prediction, trials: Sequence[Measurement]) -> Iterator[Score]:
    if prediction.job_s is None:
        return
    for speed in SPEEDS:
        for quantity, time in predicted(prediction).items():
            # The same sum whatever the order of the trials: sorted, and added exactly.
            values = sorted(_times(trials, speed, quantity))
            mean = math.fsum(values) / len(values) if values else 0.0
            if mean > 0:
                yield Score(
                    model=prediction.model,
                    cell=prediction.cell,
                    level=LEVELS[quantity],
                    quantity=quantity,
                    speed=speed,
                    predicted_s=time,
                    measured_s=mean,
                    trials=len(values),
                    floor=variation(values),
                    signed_error=signed_error(time, mean),
                    relative_error=relative_error(time, mean),
                    range=trials[0].range,
                )


def _times(trials: Iterable[Measurement], speed: Speed, quantity: str) -> Iterator[float]:
    for trial in trials:
        times = trial.raw_s if speed == "raw" else trial.reference_s
        if quantity in times:
            yield times[quantity]


def _with_indicator(scores: Sequence[Score]) -> list[Score]:
    """Add the accuracy indicator against What-If's prediction of the same cell and quantity."""
    base = {(s.cell, s.quantity, s.speed): s.predicted_s for s in scores if s.model == BASELINE}
    marked = []
    for s in scores:
        whatif_s = base.get((s.cell, s.quantity, s.speed))
        if whatif_s is not None:
            indicator = i_accu(s.measured_s, s.predicted_s, whatif_s)["i_accu_percent"]
            s = s.model_copy(update={"i_accu_percent": indicator})  # noqa: PLW2901
        marked.append(s)
    return marked


def _summaries(
    scores: Sequence[Score], workload: dict[str, str], unanswered: Sequence[tuple[str, str]]
) -> Iterator[Summary]:
    groups: dict[tuple[str, str, str, Speed], list[Score]] = defaultdict(list)
    for s in scores:
        for name in (workload[s.cell], "*"):
            groups[s.model, name, s.quantity, s.speed].append(s)
    for (model, name, _, _), group in groups.items():
        missing = sum(m == model and name in (w, "*") for m, w in unanswered)
        yield _summary(group, name, missing)


def _summary(group: Sequence[Score], workload: str, not_applicable: int) -> Summary:
    """Sum up rows of one model, quantity and speed; at least one."""
    from harness.stats.bootstrap import mean_interval

    errors = [s.relative_error for s in group]
    low, high = mean_interval(errors, seed=_SEED)
    floors = [(s.relative_error, s.floor) for s in group if s.floor is not None]
    first = group[0]
    return Summary(
        model=first.model,
        workload=workload,
        level=first.level,
        quantity=first.quantity,
        speed=first.speed,
        cells=len(group),
        mape=_mean(errors),
        mape_low=low,
        mape_high=high,
        mean_signed_error=_mean([s.signed_error for s in group]),
        worst_error=max(errors),
        median_floor=median(f for _, f in floors) if floors else None,
        within_floor=_mean([error <= floor for error, floor in floors]) if floors else None,
        mean_i_accu_percent=_mean_known([s.i_accu_percent for s in group]),
        calibration=_calibration(group),
        not_applicable=not_applicable,
    )


def _calibration(group: Sequence[Score]) -> Calibration | None:
    return calibration([s.predicted_s for s in group], [s.measured_s for s in group])


def _comparisons(scores: Sequence[Score]) -> Iterator[Comparison]:
    """Every pair of models, per quantity and speed, on the cells that both answer."""
    groups: dict[tuple[str, Speed], dict[str, dict[str, Score]]] = defaultdict(dict)
    for s in scores:
        groups[s.quantity, s.speed].setdefault(s.model, {})[s.cell] = s
    for (quantity, speed), models in groups.items():
        for one, two in combinations(models, 2):
            shared = sorted(models[one].keys() & models[two].keys())
            if shared:
                pairs = [(models[one][c], models[two][c]) for c in shared]
                yield _comparison(pairs, quantity, speed)


def _comparison(pairs: Sequence[tuple[Score, Score]], quantity: str, speed: Speed) -> Comparison:
    """
    Compare two models cell by cell.

    One is better outside the noise where the interval of the difference excludes 0 and the
    difference exceeds the median noise floor of the cells; never where no floor is known.
    """
    from harness.stats.bootstrap import paired_difference

    if _mean([a.relative_error - b.relative_error for a, b in pairs]) > 0:
        pairs = [(b, a) for a, b in pairs]
    difference, low, high = paired_difference(
        [a.relative_error for a, _ in pairs], [b.relative_error for _, b in pairs], seed=_SEED
    )
    floors = [a.floor for a, _ in pairs if a.floor is not None]
    return Comparison(
        better=pairs[0][0].model,
        worse=pairs[0][1].model,
        quantity=quantity,
        speed=speed,
        cells=len(pairs),
        difference=difference,
        low=low,
        high=high,
        outside_noise=bool(floors) and high < 0 and -difference > median(floors),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _mean_known(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return _mean(known) if known else None
