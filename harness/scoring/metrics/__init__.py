"""Metrics by name: summaries, tables, the JSON report and `harness list metrics` follow."""

from __future__ import annotations

from harness.records.score import Metric
from harness.scoring.metrics.calibration import (
    EXPONENT,
    FACTOR,
    INTERCEPT,
    R2,
    RECALIBRATED,
    ROBUST_INTERCEPT,
    ROBUST_SLOPE,
    SLOPE,
    TAU,
)
from harness.scoring.metrics.errors import (
    I_ACCU,
    MEAN_ERROR,
    NOISE_FLOOR,
    SIGNED_ERROR,
    WITHIN_NOISE,
    WORST_ERROR,
)

METRICS: dict[str, Metric] = {
    "mape": MEAN_ERROR,
    "signed_error": SIGNED_ERROR,
    "worst_error": WORST_ERROR,
    "noise_floor": NOISE_FLOOR,
    "within_noise": WITHIN_NOISE,
    "i_accu": I_ACCU,
    "calibration_slope": SLOPE,
    "calibration_intercept_s": INTERCEPT,
    "calibration_r2": R2,
    "calibration_exponent": EXPONENT,
    "calibration_factor": FACTOR,
    "robust_slope": ROBUST_SLOPE,
    "robust_intercept_s": ROBUST_INTERCEPT,
    "recalibrated_error": RECALIBRATED,
    "tau": TAU,
}

__all__ = ["METRICS"]
