"""Predictions and traces to scores: `measured` times, `score`, and the metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.scoring.accuracy import (
    calibration,
    i_accu,
    mape,
    relative_error,
    signed_error,
    variation,
)
from harness.scoring.measured import measured
from harness.scoring.score import score


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: how it is computed, and what a good value is."""

    function: Callable[..., Any]
    description: str


METRICS: dict[str, Metric] = {
    "relative_error": Metric(
        relative_error,
        "|predicted - measured| / measured; 0 is perfect, within the noise floor is as good",
    ),
    "signed_error": Metric(
        signed_error,
        "(predicted - measured) / measured; near 0, and without one sign over all cells",
    ),
    "mape": Metric(mape, "mean relative error over cells; 0.1 is good for a model of task phases"),
    "i_accu": Metric(
        i_accu,
        "What-If's relative error less the model's, in percent; above 0 is better than What-If",
    ),
    "calibration": Metric(
        calibration,
        "measured = intercept + slope x predicted; good is slope 1, intercept 0 s, R2 near 1",
    ),
    "noise_floor": Metric(
        variation,
        "coefficient of variation of a cell's repeats; the smaller, the finer models can be told"
        " apart",
    ),
}

__all__ = [
    "METRICS",
    "Metric",
    "calibration",
    "i_accu",
    "mape",
    "measured",
    "relative_error",
    "score",
    "signed_error",
    "variation",
]
