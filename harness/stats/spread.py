"""
How far values lie apart, and how far a mean would move had other values been drawn.

The intervals are percentiles of seeded resampling (bootstrap), so that the same values and seed
always give the same interval.
"""

from __future__ import annotations

import statistics

from collections.abc import Sequence

# Median absolute deviation of a normal distribution whose standard deviation is 1.
NORMAL_MAD = 0.6744897501960817

_RESAMPLES = 2000
_LEVEL = 0.95
_BLOCK = 2_000_000  # resampled values held in memory at once (8 bytes each)


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


def mean_interval(values: Sequence[float], *, seed: int) -> tuple[float, float]:
    """
    Interval (low, high) that holds the mean of *values* at a confidence of 95 %.

    One value gives an interval of no width: nothing is known of its spread.  The interval always
    holds the mean of *values* itself.  ``ValueError`` for no values, or one that is not finite.
    """
    import numpy as np

    sample = np.asarray(values, dtype=float)
    if sample.size == 0 or not np.isfinite(sample).all():
        raise ValueError("a mean needs at least one value, and finite ones alone")
    generator = np.random.default_rng(seed)
    block_rows = max(1, _BLOCK // sample.size)
    means = []
    for first_row in range(0, _RESAMPLES, block_rows):
        block_shape = (min(block_rows, _RESAMPLES - first_row), sample.size)
        means.append(sample[generator.integers(0, sample.size, size=block_shape)].mean(axis=1))
    lower, upper = np.quantile(np.concatenate(means), [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    mean = float(sample.mean())
    return min(float(lower), mean), max(float(upper), mean)


def paired_difference(
    first: Sequence[float], second: Sequence[float], *, seed: int
) -> tuple[float, float, float]:
    """
    Mean of first minus second, pair by pair, with its interval: (mean, low, high).

    The pairs are resampled, not the two rows on their own, so what both share (an easy cell, a
    slow machine) cancels.  ``ValueError`` for rows of unequal length, else as `mean_interval`.
    """
    import numpy as np

    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values do not make pairs")
    differences = [one - other for one, other in zip(first, second, strict=True)]
    return float(np.mean(differences)), *mean_interval(differences, seed=seed)
