"""How far values lie apart."""

from __future__ import annotations

import statistics

from collections.abc import Sequence

# Median absolute deviation of a normal distribution whose standard deviation is 1.
NORMAL_MAD = 0.6744897501960817


def standard_deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (divisor n - 1); 0 for less than two values."""
    return statistics.stdev(values) if len(values) >= 2 else 0.0


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """
    Standard deviation as a share of the mean: the noise floor of repeated measurements.

    `None` for less than two values, which have no spread, and for a mean that is not positive.
    """
    if len(values) < 2 or (mean := statistics.fmean(values)) <= 0:
        return None
    return statistics.stdev(values) / mean


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Median distance from the median, scaled to be the standard deviation of normal values."""
    centre = statistics.median(values)
    return statistics.median(abs(value - centre) for value in values) / NORMAL_MAD
