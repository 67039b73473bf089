"""Metrics over the errors of cells: mean, sign, the worst, and the noise beside them."""

from __future__ import annotations

import math

from collections.abc import Sequence
from statistics import median

from harness.records.score import Metric, MetricValue, ModelScores
from harness.scoring.accuracy import i_accu

SEED = 7  # of every bootstrap, so that one run always has one report


def mean(values: Sequence[float]) -> float:
    """Mean of at least one value: the same in whatever order they stand."""
    return math.fsum(values) / len(values)


def mean_error(model: ModelScores) -> MetricValue:
    """Mean relative error over the cells (MAPE), with its 95 % bootstrap interval."""
    from harness.stats.bootstrap import mean_interval

    errors = [score.relative_error for score in model.scores]
    low, high = mean_interval(errors, seed=SEED)
    return MetricValue(value=mean(errors), low=low, high=high)


def mean_signed_error(model: ModelScores) -> MetricValue:
    """Mean of the errors with their signs."""
    return MetricValue(value=mean([score.signed_error for score in model.scores]))


def worst_error(model: ModelScores) -> MetricValue:
    """Largest relative error of a cell."""
    return MetricValue(value=max(score.relative_error for score in model.scores))


def noise_floor(model: ModelScores) -> MetricValue | None:
    """Median noise floor of the cells that were measured more than once."""
    floors = [score.floor for score in model.scores if score.floor is not None]
    return MetricValue(value=median(floors)) if floors else None


def within_noise(model: ModelScores) -> MetricValue | None:
    """Share of the cells with a noise floor whose error lies inside it."""
    within = [
        score.relative_error <= score.floor for score in model.scores if score.floor is not None
    ]
    return MetricValue(value=mean(within)) if within else None


def mean_indicator(model: ModelScores) -> MetricValue | None:
    """Mean accuracy indicator over the cells that What-If answers, too, in percent."""
    indicators = [
        i_accu(score.measured_s, score.predicted_s, whatif.predicted_s)["i_accu_percent"]
        for score in model.scores
        if (whatif := model.baseline.get(score.cell)) is not None
    ]
    return MetricValue(value=mean(indicators)) if indicators else None


MEAN_ERROR = Metric(
    title="mean error",
    description="|predicted - measured| / measured, mean over the cells with its 95 % bootstrap"
    " interval (MAPE); 10 % is good for a model of task phases",
    unit="share",
    best="lowest",
    compute=mean_error,
    columns=("raw", "reference"),
    brief=("raw", "reference"),
)
SIGNED_ERROR = Metric(
    title="signed",
    description="mean of the errors with their signs, + where the prediction is too long; near 0"
    " the errors of the cells have no common direction",
    unit="signed share",
    best="nearest to 0",
    compute=mean_signed_error,
    columns=("raw", "reference"),
)
WORST_ERROR = Metric(
    title="worst",
    description="largest relative error of a cell",
    unit="share",
    best="lowest",
    compute=worst_error,
    columns=(),
)
NOISE_FLOOR = Metric(
    title="noise floor",
    description="median over the cells of the spread (coefficient of variation) of their repeats;"
    " errors below it cannot be distinguished from zero",
    unit="spread",
    best="lowest",
    compute=noise_floor,
    columns=("raw", "reference"),
    brief=("raw",),
)
WITHIN_NOISE = Metric(
    title="in noise",
    description="cells whose error is smaller than their own noise floor",
    unit="cells",
    best="highest",
    compute=within_noise,
)
I_ACCU = Metric(
    title="I_accu",
    description="error of whatif minus error of the model, mean over the cells, in percentage"
    " points; positive means more accurate than whatif",
    unit="points",
    best="highest",
    compute=mean_indicator,
    brief=("raw",),
)
