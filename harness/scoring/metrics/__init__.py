"""Metrics by name: summaries, tables, the JSON report and `harness list metrics` follow."""

from __future__ import annotations

from harness.records.score import Metric
from harness.scoring.metrics.calibration import INTERCEPT, R2, SLOPE
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
}

__all__ = ["METRICS"]
