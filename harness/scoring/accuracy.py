"""
Errors of one prediction: signed, relative, and the accuracy indicator.

    [Lv] H. Lv, L. Sun, C. Wang, S. Liu. "MR. Prophet", Eq. (6): the accuracy indicator.

``docs/models/prophet.md``, section 7; errors are shares of the measured time, the indicator and
its two parts are percent.
"""

from __future__ import annotations

from harness.errors import ModelError

LARGEST = 1e100  # seconds: sums and products of a few of them are still finite


def signed_error(predicted_s: float, measured_s: float) -> float:
    """Prediction less measurement as a share of the measurement; above 0 is too long."""
    times = (predicted_s, measured_s)
    if not all(
        isinstance(seconds, int | float)
        and not isinstance(seconds, bool)
        and abs(seconds) <= LARGEST
        for seconds in times
    ):
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
