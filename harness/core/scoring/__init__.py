"""Predictions and traces to scores: `measured` times, `score`, and the metrics by name."""

from harness.core.scoring.metrics import METRICS
from harness.core.scoring.metrics.errors import i_accu, relative_error, signed_error
from harness.core.scoring.score import measured, score

__all__ = ["METRICS", "i_accu", "measured", "relative_error", "score", "signed_error"]
