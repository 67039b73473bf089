"""
Several runs of one experiment: how far models are off over all of them.

Within a run all errors share its profiles, and what the machine was like that day; how much that is
worth is seen over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.base.records.score import Ranking
from harness.scoring.answers import share

FEWEST_RUNS = 3  # for an interval over runs
_LEVEL = 0.95


class ModelOverRuns(NamedTuple):
    """
    Mean relative errors of a *model* by run, their mean, and its 95 % interval.

    The interval is Student's t over runs, from three on; `None` below.
    """

    model: str
    errors: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None


def models_over_runs(rankings: Sequence[Ranking]) -> list[ModelOverRuns]:
    """The models that stand in all *rankings*, one of each run, the smallest mean error first."""
    errors_of_runs = [
        dict(zip(ranking.models, ranking.errors, strict=True)) for ranking in rankings
    ]
    shared = [
        model
        for model in (rankings[0].models if rankings else ())
        if all(model in errors for errors in errors_of_runs)
    ]
    rows = [
        model_over_runs(model, [errors[model] for errors in errors_of_runs]) for model in shared
    ]
    return sorted(rows, key=lambda row: (row.mean, row.model))


def model_over_runs(model: str, errors: Sequence[float]) -> ModelOverRuns:
    """The mean of the *errors* of a *model*, one of each run, and its interval."""
    import numpy as np

    from scipy.special import stdtrit

    mean = float(np.mean(errors))
    interval = None
    if len(errors) >= FEWEST_RUNS:
        freedom = len(errors) - 1
        spread = float(np.std(errors, ddof=1)) / len(errors) ** 0.5
        half = float(stdtrit(freedom, (1 + _LEVEL) / 2)) * spread
        interval = (max(0.0, mean - half), mean + half)
    return ModelOverRuns(model, tuple(errors), mean, interval)


def best_over_runs(rows: Sequence[ModelOverRuns]) -> str:
    """Say how far the first of *rows* is off; `verify.py` makes the sentence again."""
    best = rows[0]
    first = best.model if len(rows) == 1 else f"of {len(rows)} models {best.model}"
    text = f"{first} {'is' if len(rows) == 1 else 'errs least:'} off by {share(best.mean)}"
    if best.interval is None:
        return f"{text} on average; an interval over runs takes {FEWEST_RUNS} of them."
    low, high = map(share, best.interval)
    return f"{text} on average, between {low} and {high} over such runs (95 %)."
