"""Metrics of the calibration line: measured = intercept + slope x predicted, by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

from harness.records.score import Metric, MetricValue, Score
from harness.scoring.metrics.errors import mean


class Line(NamedTuple):
    """A fitted line; perfect is slope 1, intercept 0, R2 1."""

    slope: float
    intercept_s: float
    r2: float


def calibration(predicted_s: Sequence[float], measured_s: Sequence[float]) -> Line | None:
    """
    Least squares of measured on predicted times.

    `None` where a line says nothing: fewer than three points, or all with one predicted or one
    measured time.
    """
    points = list(zip(predicted_s, measured_s, strict=True))
    if len(points) < 3 or len(set(predicted_s)) < 2 or len(set(measured_s)) < 2:
        return None
    mean_x, mean_y = mean(predicted_s), mean(measured_s)
    sxx = fsum((x - mean_x) ** 2 for x in predicted_s)
    sxy = fsum((x - mean_x) * (y - mean_y) for x, y in points)
    syy = fsum((y - mean_y) ** 2 for y in measured_s)
    if not sxx or not syy:  # times apart by less than a float can square
        return None
    slope = sxy / sxx
    intercept = mean_y - slope * mean_x
    residual = fsum((y - intercept - slope * x) ** 2 for x, y in points)
    return Line(slope, intercept, 1 - residual / syy)


def number_of_line(scores: Sequence[Score], name: str) -> MetricValue | None:
    """The number of that *name* of the line through all cells."""
    predicted_s = [score.predicted_s for score in scores]
    line = calibration(predicted_s, [score.measured_s for score in scores])
    return None if line is None else MetricValue(value=getattr(line, name))


SLOPE = Metric(
    title="slope",
    description="slope of measured over predicted times; 1 means no proportional error",
    unit="number",
    best="nearest to 1",
    compute=lambda scores: number_of_line(scores, "slope"),
    columns=(),
)
INTERCEPT = Metric(
    title="intercept",
    description="measured time where the predicted one is 0; 0 s means no constant error",
    unit="seconds",
    best="nearest to 0",
    compute=lambda scores: number_of_line(scores, "intercept_s"),
    columns=(),
)
R2 = Metric(
    title="R\u00b2",
    description="share of the variance of measured times that the line of predicted ones explains",
    unit="number",
    best="nearest to 1",
    compute=lambda scores: number_of_line(scores, "r2"),
    columns=(),
)
