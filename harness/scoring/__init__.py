"""Predictions and measured times to scores: `score`, and the metrics by name."""

from harness.scoring.metrics import METRICS
from harness.scoring.metrics.errors import i_accu, relative_error, signed_error
from harness.scoring.score import score

__all__ = ["METRICS", "i_accu", "relative_error", "score", "signed_error"]
