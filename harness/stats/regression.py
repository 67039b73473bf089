"""A straight line through points, by ordinary least squares."""

from __future__ import annotations

import math

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """
    y = intercept + slope x, from *count* points.

    *r2* is the share of the variance of y that the line explains, and 1 where y does not vary.
    """

    slope: float
    intercept: float
    r2: float
    count: int


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line | None:
    """
    Fit the line of least squares; `None` where there is none (less than two different x).

    ``ValueError`` for rows of unequal length or values that are not finite.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} values make no points")
    if not all(map(math.isfinite, [*x, *y])):
        raise ValueError("a value is not finite")
    if len(x) < 2 or min(x) == max(x):
        return None
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    dx, dy = [v - mean_x for v in x], [v - mean_y for v in y]
    xx, yy = math.fsum(d * d for d in dx), math.fsum(d * d for d in dy)
    xy = math.fsum(a * b for a, b in zip(dx, dy, strict=True))
    if xx == 0:  # Values so close that their differences vanish.
        return None
    slope = xy / xx
    r2 = min(1.0, slope * xy / yy) if yy > 0 else 1.0
    return Line(slope=slope, intercept=mean_y - slope * mean_x, r2=r2, count=len(x))
