"""
Bootstrap intervals: how far a mean would move had other values been drawn.

Percentile intervals, seeded, so that the same values and seed always give the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Resampled values held in memory at once (8 bytes each).
_BLOCK = 2_000_000


def mean_interval(
    values: Sequence[float], *, seed: int, level: float = 0.95, resamples: int = 2000
) -> tuple[float, float]:
    """
    Interval (low, high) that holds the mean of *values* at confidence *level*.

    One value gives an interval of no width: nothing is known of its spread.  The interval always
    holds the mean of *values* itself.  ``ValueError`` for no values, a value that is not finite,
    a level outside (0, 1), or less than one resample.
    """
    sample = np.asarray(values, dtype=float)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError("no values: a mean needs at least one")
    if not np.isfinite(sample).all():
        raise ValueError("a value is not finite")
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    if resamples < 1:
        raise ValueError(f"{resamples} resamples: at least one is needed")
    generator = np.random.default_rng(seed)
    block_rows = max(1, _BLOCK // sample.size)
    means = []
    for first_row in range(0, resamples, block_rows):
        block_shape = (min(block_rows, resamples - first_row), sample.size)
        means.append(sample[generator.integers(0, sample.size, size=block_shape)].mean(axis=1))
    lower, upper = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    mean = float(sample.mean())
    return min(float(lower), mean), max(float(upper), mean)


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    seed: int,
    level: float = 0.95,
    resamples: int = 2000,
) -> tuple[float, float, float]:
    """
    Mean of first minus second, pair by pair, with its interval: (mean, low, high).

    The pairs are resampled, not the two rows on their own, so what both share (an easy cell, a
    slow machine) cancels.  ``ValueError`` for rows of unequal length, else as `mean_interval`.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values do not make pairs")
    differences = [
        first_value - second_value for first_value, second_value in zip(first, second, strict=True)
    ]
    lower, upper = mean_interval(differences, seed=seed, level=level, resamples=resamples)
    return float(np.mean(differences)), lower, upper
