"""
Errors of one prediction, and of several: relative error, accuracy indicator, MAPE, calibration.

    [Lv] H. Lv, L. Sun, C. Wang, S. Liu. "MR. Prophet", Eq. (6): the accuracy indicator.

``docs/models/prophet.md``, section 7; errors are shares of the measured time, the indicator and
its two parts are percent.
"""

from __future__ import annotations

import math

from collections.abc import Sequence

from harness.errors import ModelError
from harness.records.jsontext import LARGEST
from harness.records.score import Calibration


def signed_error(predicted_s: float, measured_s: float) -> float:
    """Prediction less measurement as a share of the measurement; above 0 is too slow."""
    _check(measured_s, predicted_s)
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


def mape(predicted_s: Sequence[float], measured_s: Sequence[float]) -> float:
    """Mean absolute percentage error as a share: the mean of the relative errors."""
    errors = [relative_error(p, m) for p, m in zip(predicted_s, measured_s, strict=True)]
    if not errors:
        raise ModelError("no predictions to take the mean error of")
    return math.fsum(errors) / len(errors)


def calibration(predicted_s: Sequence[float], measured_s: Sequence[float]) -> Calibration | None:
    """
    Least squares of measured on predicted times; perfect is slope 1, intercept 0, R2 1.

    `None` where a line says nothing: fewer than three points, or all with one predicted or one
    measured time.
    """
    points = list(zip(predicted_s, measured_s, strict=True))
    n = len(points)
    if n < 3 or len(set(predicted_s)) < 2 or len(set(measured_s)) < 2:
        return None
    mean_x, mean_y = math.fsum(predicted_s) / n, math.fsum(measured_s) / n
    sxx = math.fsum((x - mean_x) ** 2 for x in predicted_s)
    sxy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    syy = math.fsum((y - mean_y) ** 2 for y in measured_s)
    if not sxx or not syy:  # times apart by less than a float can square
        return None
    slope = sxy / sxx
    intercept = mean_y - slope * mean_x
    rest = math.fsum((y - intercept - slope * x) ** 2 for x, y in points)
    return Calibration(slope=slope, intercept_s=intercept, r2=1 - rest / syy, count=n)


def variation(values: Sequence[float]) -> float | None:
    """
    Coefficient of variation (sample deviation / mean): the noise floor of a cell's repeats.

    `None` for fewer than two values or a mean that is not above 0.
    """
    n = len(values)
    mean = math.fsum(values) / n if n else 0.0
    if n < 2 or mean <= 0:
        return None
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1)) / mean


def _check(measured_s: float, predicted_s: float) -> None:
    if not all(
        isinstance(t, int | float) and not isinstance(t, bool) and abs(t) <= LARGEST
        for t in (measured_s, predicted_s)
    ):
        what = f"times {predicted_s!r:.80} and {measured_s!r:.80} are not both finite numbers"
        raise ModelError(f"{what} up to {LARGEST:g}")
    if measured_s <= 0:
        raise ModelError(f"actual_s = {measured_s!r} is not above 0", where="relative error")
