"""
Where a model's error of the job time comes from, phase by phase, and how much of it cancels.

A phase of a task enters the job time once per wave of its tasks, in each job of a trial that has
several.  So its error is worth *waves* x (predicted - measured) in the job time; what these do not
explain of the job's error is the *rest*: what the model says of overlap, start-up and waiting
against what really was.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from harness.records.prediction import Prediction
from harness.records.score import Decomposition, PhaseError, Score

MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
REST = "rest_s"


def decompose(
    scores: Sequence[Score], predictions: Iterable[Prediction]
) -> Iterator[Decomposition]:
    """
    Yield one decomposition for each job time in *scores* whose phases are scored, too.

    Models without phases or without waves have none.
    """
    asked = {(p.model, p.cell): p for p in predictions}
    rows: dict[tuple[str, str, str], dict[str, Score]] = defaultdict(dict)
    for s in scores:
        rows[s.model, s.cell, s.speed][s.quantity] = s
    for (model, cell, _), found in rows.items():
        prediction = asked.get((model, cell))
        if prediction is not None and "job_s" in found:
            phases = tuple(_phases(found, prediction))
            if phases:
                yield _decomposition(found["job_s"], phases)


def _phases(found: dict[str, Score], prediction: Prediction) -> Iterator[PhaseError]:
    for names, of_one_job in (
        (MAP_PHASES, prediction.map_waves),
        (REDUCE_PHASES, prediction.reduce_waves),
    ):
        waves = prediction.jobs * (of_one_job or 0.0)
        for name in names:
            if waves and name in found:
                error_s = waves * (found[name].predicted_s - found[name].measured_s)
                yield PhaseError(phase=name, waves=waves, error_s=error_s)


def _decomposition(job: Score, phases: tuple[PhaseError, ...]) -> Decomposition:
    error_s = job.predicted_s - job.measured_s
    rest_s = error_s - math.fsum(p.error_s for p in phases)
    parts = (*phases, PhaseError(phase=REST, waves=1.0, error_s=rest_s))
    gross_s = math.fsum(abs(p.error_s) for p in parts)
    return Decomposition(
        model=job.model,
        cell=job.cell,
        speed=job.speed,
        measured_s=job.measured_s,
        predicted_s=job.predicted_s,
        parts=parts,
        cancelled=1 - abs(error_s) / gross_s if gross_s > 0 else 0.0,
    )
