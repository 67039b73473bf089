"""Predictions and traces to scores: `measured` times, `score`, and the metrics by name."""

from __future__ import annotations

from harness.scoring.accuracy import i_accu, relative_error, signed_error
from harness.scoring.measured import measured
from harness.scoring.metrics import METRICS
from harness.scoring.score import score

__all__ = ["METRICS", "i_accu", "measured", "relative_error", "score", "signed_error"]
