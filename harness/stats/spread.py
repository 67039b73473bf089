"""How far values lie apart, and how well that is known."""

from __future__ import annotations

import math
import statistics

from collections.abc import Sequence

# Median absolute deviation of a normal distribution whose standard deviation is 1.
NORMAL_MAD = 0.6744897501960817

_ENOUGH_REPEATS = 6  # whose spread a cell need not share with others


def standard_deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (divisor n - 1); 0 for less than two values."""
    return statistics.stdev(values) if len(values) >= 2 else 0.0


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """
    Standard deviation as a share of the mean.

    `None` for less than two values, which have no spread, and for a mean that is not positive.
    """
    if len(values) < 2 or (mean := statistics.fmean(values)) <= 0:
        return None
    return statistics.stdev(values) / mean


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Median distance from the median, scaled to be the standard deviation of normal values."""
    centre = statistics.median(values)
    return statistics.median(abs(value - centre) for value in values) / NORMAL_MAD


def mean_floors(cells: Sequence[Sequence[float]]) -> list[float | None]:
    """
    Noise floor of the mean of each cell's repeats: its standard deviation as a share of it.

    The spread of a few repeats is itself hardly known, so that cells with fewer than six share one:
    the root of the mean of their squares, weighted by degrees of freedom.  `None` where no cell has
    two repeats.
    """
    spreads = [coefficient_of_variation(values) for values in cells]
    known = [
        (len(values) - 1, spread)
        for values, spread in zip(cells, spreads, strict=True)
        if spread is not None
    ]
    freedom = sum(weight for weight, _ in known)
    shared = None
    if freedom:
        shared = math.sqrt(math.fsum(weight * spread**2 for weight, spread in known) / freedom)
    floors = []
    for values, spread in zip(cells, spreads, strict=True):
        own = spread if len(values) >= _ENOUGH_REPEATS else shared
        floors.append(None if own is None else own / math.sqrt(len(values)))
    return floors


def spread_interval(spread: float, freedom: int) -> tuple[float, float]:
    """Interval (low, high) at 95 % of a standard deviation with its degrees of freedom."""
    from scipy.special import chdtri

    low, high = (math.sqrt(freedom / chdtri(freedom, tail)) for tail in (0.025, 0.975))
    return spread * low, spread * high
