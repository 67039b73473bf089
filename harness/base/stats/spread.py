"""How far values lie apart, and how well that is known."""

from __future__ import annotations

import math
import statistics

from collections.abc import Sequence
from itertools import chain

# Median absolute deviation of a normal distribution whose standard deviation is 1.
NORMAL_MAD = 0.6744897501960817

ENOUGH_REPEATS = 6  # whose spread a cell need not share with others


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


def mean_floors(
    cells: Sequence[Sequence[float]], others: Sequence[Sequence[float]] = ()
) -> list[float | None]:
    """
    Noise floor of the mean of each cell's repeats: its standard deviation as a share of it.

    The spread of a few repeats is itself hardly known, so that cells with fewer than six share one
    (`shared_spread`).  Where no cell has two repeats it is that of *others*, which are repeats of
    other cells like these; `None` where these have none either.
    """
    shared = shared_spread(cells)
    if shared is None:
        shared = shared_spread(others)
    floors = list[float | None]()
    for values in cells:
        own = coefficient_of_variation(values)
        used = own if len(values) >= ENOUGH_REPEATS else shared
        floors.append(None if used is None else used / math.sqrt(len(values)))
    return floors


def shared_spread(cells: Sequence[Sequence[float]]) -> float | None:
    """
    Standard deviation of the repeats of *cells*, as a share of their mean.

    It is the root of the mean of the cells' squares, weighted by degrees of freedom; `None` where
    no cell has two repeats.
    """
    freedom = 0
    weighted_squares = list[float]()
    for values in cells:
        spread = coefficient_of_variation(values)
        if spread is not None:
            freedom += len(values) - 1
            weighted_squares.append((len(values) - 1) * spread**2)
    return math.sqrt(math.fsum(weighted_squares) / freedom) if freedom else None


def split_by_start(cells: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float] | None:
    """
    Standard deviations from repeat to repeat and from start to start, as shares of a cell's mean.

    *cells* hold the values of each start of the cluster.  One-way components of variance, over the
    cells with two starts that have two values each; `None` where there is none.
    """
    within = between = size = 0.0
    repeats = starts = 0  # degrees of freedom
    for values_by_start in cells:
        starts_of_cell = [values for values in values_by_start if len(values) >= 2]
        cell_values = list(chain(*starts_of_cell))
        if len(starts_of_cell) < 2 or (mean := statistics.fmean(cell_values)) <= 0:
            continue
        count = len(cell_values)
        squares_within = math.fsum(
            statistics.variance(values) * (len(values) - 1) for values in starts_of_cell
        )
        squares = statistics.variance(cell_values) * (count - 1)
        within += squares_within / mean**2
        between += (squares - squares_within) / mean**2
        size += count - sum(len(values) ** 2 for values in starts_of_cell) / count
        repeats += count - len(starts_of_cell)
        starts += len(starts_of_cell) - 1
    if not starts:
        return None
    start_variance = (between - starts * within / repeats) / size
    return math.sqrt(within / repeats), math.sqrt(max(0.0, start_variance))


def spread_interval(spread: float, freedom: int) -> tuple[float, float]:
    """Interval (low, high) at 95 % of a standard deviation with its degrees of freedom."""
    from scipy.special import chdtri

    low, high = (math.sqrt(freedom / chdtri(freedom, tail)) for tail in (0.025, 0.975))
    return spread * low, spread * high
