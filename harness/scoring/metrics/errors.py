"""
Errors of one prediction, and the metrics over those of all cells.

    [Lv] H. Lv, L. Sun, C. Wang, S. Liu. "MR. Prophet", Eq. (6): the accuracy indicator.

``docs/models/prophet.md``, section 7; errors are shares of the measured time, the indicator and
its two parts are percent.
"""

from __future__ import annotations

import math

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from harness.errors import ModelError
from harness.records.score import Metric, MetricValue, Score

LARGEST = 1e100  # seconds: sums and products of a few of them are still finite


def signed_error(predicted_s: float, measured_s: float) -> float:
    """Prediction less measurement as a share of the measurement; above 0 is too long."""
    for seconds in (predicted_s, measured_s):
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not is_number or not abs(seconds) <= LARGEST:
            what = f"times {predicted_s!r:.80} and {measured_s!r:.80} are not both finite numbers"
            raise ModelError(f"{what} up to {LARGEST:g}")
    if measured_s <= 0:
        raise ModelError(f"actual_s = {measured_s!r} is not above 0", where="relative error")
    return (predicted_s - measured_s) / measured_s


def relative_error(predicted_s: float, measured_s: float) -> float:
    """Distance of a prediction from the measurement, |T - T_a| / T_a; 0 is perfect."""
    return abs(signed_error(predicted_s, measured_s))


def i_accu(actual_s: float, model_s: float, whatif_s: float) -> dict[str, float]:
    """
    Accuracy indicator, [Lv] Eq. (6), and the two relative errors in it, all in percent.

    `i_accu_percent` is What-If's error less the model's: above 0 the model is the better one.
    ``ModelError`` (a ``ValueError``) for an actual time that is not above 0, or a number that is
    not finite.

    >>> round(i_accu(actual_s=70, model_s=67, whatif_s=75)["i_accu_percent"], 2)
    2.86
    """
    model, whatif = relative_error(model_s, actual_s), relative_error(whatif_s, actual_s)
    return {
        "i_accu_percent": 100 * (whatif - model),
        "prophet_error_percent": 100 * model,
        "whatif_error_percent": 100 * whatif,
    }


def mean(values: Sequence[float]) -> float:
    """Mean of at least one value: the same in whatever order they stand."""
    return math.fsum(values) / len(values)


def mean_error(scores: Sequence[Score]) -> MetricValue:
    """Mean relative error over the cells (MAPE), with its 95 % interval (range below six cells)."""
    from harness.stats.resampling import mean_interval

    errors = [score.relative_error for score in scores]
    low, high = mean_interval(errors, [score.input for score in scores])
    return MetricValue(value=mean(errors), low=max(0.0, low), high=high)


def noise_floor(scores: Sequence[Score]) -> MetricValue | None:
    """Median floor of the cells, with its 95 % interval by the repeats that it comes from."""
    from harness.stats.spread import spread_interval

    floor = value_of((score.floor for score in scores), median)
    freedom = sum(score.trials - 1 for score in scores)
    if floor is None or not freedom:
        return floor
    low, high = spread_interval(floor.value, freedom)
    return MetricValue(value=floor.value, low=low, high=high)


def value_of(
    numbers: Iterable[float | None], summarise: Callable[[Sequence[float]], float] = mean
) -> MetricValue | None:
    """*numbers* of the cells that have one, summarised; `None` where no cell has one."""
    known = [number for number in numbers if number is not None]
    return MetricValue(value=summarise(known)) if known else None


MEAN_ERROR = Metric(
    title="mean error",
    description="|predicted - measured| / measured, mean over the cells (MAPE) with its 95 %"
    " interval, or the range of fewer than six cells; 10 % is good for a model of task phases",
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
    compute=lambda scores: value_of(score.signed_error for score in scores),
    columns=("raw", "reference"),
)
WORST_ERROR = Metric(
    title="worst",
    description="largest relative error of a cell",
    unit="share",
    best="lowest",
    compute=lambda scores: value_of((score.relative_error for score in scores), max),
)
NOISE_FLOOR = Metric(
    title="noise floor",
    description="standard deviation of the mean of a cell's repeats as a share of it, median over"
    " the cells; errors below it cannot be distinguished from zero",
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
    compute=lambda scores: value_of(
        None if score.floor is None else score.relative_error <= score.floor for score in scores
    ),
    columns=("raw",),
)
I_ACCU = Metric(
    title="I_accu",
    description="error of whatif minus error of the model, mean over the cells, in percentage"
    " points; positive means more accurate than whatif",
    unit="points",
    best="highest",
    compute=lambda scores: value_of(score.i_accu_percent for score in scores),
    columns=("raw",),
    brief=("raw",),
)
