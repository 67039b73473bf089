"""
Errors of one prediction, and the metrics over those of all cells.

    [Lv] H. Lv, L. Sun, C. Wang, S. Liu. "MR. Prophet", Eq. (6): the accuracy indicator.

``docs/models/prophet.md``, section 7; errors are shares of the measured time, the indicator and
its two parts are percent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median

from harness.base.errors import ModelError
from harness.base.records.question import Scope
from harness.base.records.score import MetricValue, Score
from harness.scoring.weights import relative_weights, weighted_mean

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
    model = relative_error(model_s, actual_s)
    whatif = relative_error(whatif_s, actual_s)
    return {
        "i_accu_percent": 100 * (whatif - model),
        "prophet_error_percent": 100 * model,
        "whatif_error_percent": 100 * whatif,
    }


def mean_error(scores: Sequence[Score], scope: Scope = "jobs") -> MetricValue:
    """
    Mean relative error over the cells (MAPE), with its 95 % interval.

    Units are the cells, or of the *scope* of inputs these; below six units it is the range of the
    cells.
    """
    from harness.base.stats.resampling import mean_interval

    errors = [score.relative_error for score in scores]
    inputs = [score.input for score in scores] if scope == "inputs" else []
    low, high = mean_interval(errors, inputs, relative_weights(scores).tolist())
    return MetricValue(value=weighted_mean(errors, scores), low=max(0.0, low), high=high)


def levelled_error(scores: Sequence[Score]) -> MetricValue | None:
    """Mean error without the in-sample miss, with its interval; `None` unless all cells have it."""
    from harness.base.stats.resampling import mean_interval

    levelled = [score.levelled_error for score in scores if score.levelled_error is not None]
    if not levelled or len(levelled) < len(scores):
        return None
    low, high = mean_interval(levelled, weights=relative_weights(scores).tolist())
    return MetricValue(value=weighted_mean(levelled, scores), low=max(0.0, low), high=high)


def mean_of(name: str, scores: Sequence[Score]) -> MetricValue | None:
    """Mean of the field of that *name* over the cells that have it; `None` where none has."""
    known_scores = [score for score in scores if getattr(score, name) is not None]
    if not known_scores:
        return None
    return MetricValue(
        value=weighted_mean([getattr(score, name) for score in known_scores], known_scores)
    )


def summary_of(
    name: str, scores: Sequence[Score], summarise: Callable[[Sequence[float]], float]
) -> MetricValue | None:
    """The field of that *name* over the cells that have it, as *summarise* has it, unweighted."""
    numbers = [number for score in scores if (number := getattr(score, name)) is not None]
    return MetricValue(value=summarise(numbers)) if numbers else None


def noise_floor(scores: Sequence[Score]) -> MetricValue | None:
    """Median floor of the cells, with its 95 % interval by the repeats that it comes from."""
    from harness.base.stats.spread import spread_interval

    floor = summary_of("floor", scores, median)
    freedom = sum(score.trials - 1 for score in scores)
    if floor is None or not freedom:
        return floor
    low, high = spread_interval(floor.value, freedom)
    return MetricValue(value=floor.value, low=low, high=high)


def within_noise(scores: Sequence[Score]) -> MetricValue | None:
    """Share of the cells with a noise floor whose error does not exceed it."""
    is_within = [score.relative_error <= score.floor for score in scores if score.floor is not None]
    return MetricValue(value=fmean(is_within)) if is_within else None


def coverage(name: str, scores: Sequence[Score]) -> MetricValue | None:
    """Share of the cells that lie in their interval; `None` unless every cell has one."""
    has_all = all(getattr(score, name) is not None for score in scores)
    return summary_of(name, scores, fmean) if has_all else None  # shown as a number of cells
