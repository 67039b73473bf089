"""
Shifts in the level of series of nights, found night by night.

A series is a column of logarithms, a night a row, NaN where nothing is known.  Each night every
recent stretch of nights is tested against all nights before it.  Values beyond `CLIP` standard
deviations count as if they lay there, and no stretch is shorter than `SHORTEST` nights, so that two
bad nights are no shift; the mean of many columns, which one of them does not carry far, is let go
farther, and a night that is `firm`, as it was measured again at once, counts in full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numpy.typing import NDArray
from scipy import special

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

LAGS = np.asarray((1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 26, 30, 40, 60))  # nights
SHORTEST = 3
FEWEST_BEFORE = 5  # nights before a stretch
FEWEST_NIGHTS = FEWEST_BEFORE + SHORTEST
MOST_NIGHTS = 365  # that a test looks back
CLIP, _CLIP_OF_MANY, _MANY, _FIRM_CLIP = 3.4, 5.0, 4, 12.0
HORIZON, FALSE_ALARMS = 90, 0.007  # nights, and the chance of any alarm in them where nothing moves
# An autocorrelation is drawn to none as if so many nights more had none, and counts as so many of
# its standard errors larger: one that is taken for too small raises false alarms.
_PRIOR_NIGHTS, _CAUTION, _MOST = 50.0, 2.7, 0.6
# What a stretch must show beyond the threshold if nights are autocorrelated, or it is longer than
# so many nights, as there is much to be seen then, or if one night that was measured again is it.
_FOR_AUTOCORRELATION, _FOR_LENGTH, _LONG, _FOR_FIRM = 1.5, 0.4, 12, 0.7
_OF_QUARTILES, _AT_TWO_AND_A_HALF = 1.349, 0.98  # spreads of a normal distribution
# Chances of a quiet series to exceed a score within `HORIZON` nights, and the scores: simulated by
# these tests on 200,000 series (tests/stats/test_shifts.py); the last one goes on as a line.
_EXCEEDED = ((0.05, 2.474), (0.01, 2.878), (0.001, 3.404), (0.0001, 3.848), (1e-8, 5.624))


class Scan(NamedTuple):
    """
    Tests of the stretches that end with the last night: a row per lag, a column per series.

    *z* is a normal deviate where nothing moved; *score* its size less what the stretch must show
    beyond the threshold, -infinity where it may raise nothing.
    """

    z: Numbers
    score: Numbers


def clip_of(columns: int) -> float:
    """Standard deviations beyond which the mean of so many columns does not count."""
    return _CLIP_OF_MANY if columns >= _MANY else CLIP


def scan(values: Numbers, clip: Numbers, firm: Flags | None = None) -> Scan:
    """
    Test *values*, (nights, series), each clipped at its *clip*.

    The mean of a stretch has the variance of an autocorrelated one, of first order.
    """
    values = values[-MOST_NIGHTS:]
    known = ~np.isnan(values)
    is_firm = np.zeros_like(known) if firm is None else firm[-MOST_NIGHTS:] & known
    z = np.full((len(LAGS), values.shape[1]), np.nan)
    score = np.full(z.shape, -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = _standardised(values, np.where(is_firm, _FIRM_CLIP, clip))
        for row in np.flatnonzero(len(values) >= LAGS + FEWEST_BEFORE):
            lag = int(LAGS[row])
            size, variance, phi, counts = _sides(scores, lag)
            total = counts.sum(axis=0)
            phi = phi * total / (total + _PRIOR_NIGHTS) + _CAUTION / np.sqrt(total)
            phi = np.clip(np.nan_to_num(phi), 0.0, _MOST)
            t = size / np.sqrt(variance * _of_mean(counts, phi).sum(axis=0))
            # Wallace 1959: Student's t as a normal deviate.
            freedom = total - 2
            deviate = np.sign(t) * np.sqrt(freedom * np.log1p(t**2 / freedom))
            deviate *= (8 * freedom + 1) / (8 * freedom + 3)
            demand = _FOR_AUTOCORRELATION * phi + _FOR_LENGTH * max(0.0, 1 - _LONG / lag)
            demand += _FOR_FIRM if lag < SHORTEST else 0.0
            is_tested = known[-1] & (counts[0] >= FEWEST_BEFORE) & np.isfinite(deviate)
            may_raise = is_tested & (lag >= SHORTEST or is_firm[-1])
            z[row] = np.where(is_tested, deviate, np.nan)
            score[row] = np.where(may_raise, np.abs(deviate) - demand, -np.inf)
    return Scan(z, score)


def estimate(column: Numbers, lag: int) -> tuple[float, float | None, float | None]:
    """
    By how much the last *lag* nights of a series lie above those before, and its 95 % interval.

    Values far from the others of their side count as at `CLIP`; the interval is `None` where fewer
    than four nights are known.
    """
    known, sides = ~np.isnan(column), column[:, None].copy()
    if not (known[:-lag].any() and known[-lag:].any()):
        return 0.0, None, None
    if known[:-lag].sum() > FEWEST_BEFORE:
        reach = np.ptp(np.nanquantile(sides[:-lag], (0.25, 0.75))) / _OF_QUARTILES * CLIP
        for side in (sides[:-lag], sides[-lag:]):
            middle = np.nanmedian(side)
            np.clip(side, middle - reach, middle + reach, out=side)
    (size,), variance, phi, counts = _sides(sides, lag)
    freedom = known.sum() - 2
    if freedom < 2:
        return float(size), None, None
    of_means = _of_mean(counts, np.clip(phi, 0.0, _MOST)).sum(axis=0)
    (half,) = special.stdtrit(freedom, 0.975) * np.sqrt(variance * of_means)
    return float(size), float(size - half), float(size + half)


def _sides(values: Numbers, lag: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """
    Compare the last *lag* nights of each series with those before.

    Returns by how much their mean lies higher, variance and autocorrelation within both, and how
    many nights are known before and since.
    """
    rest, known = np.nan_to_num(values), ~np.isnan(values)
    parts = (slice(0, -lag), slice(-lag, None))
    counts = np.asarray([known[part].sum(axis=0) for part in parts], float)
    means = [rest[part].sum(axis=0) / count for part, count in zip(parts, counts, strict=True)]
    for part, mean in zip(parts, means, strict=True):
        rest[part] -= mean
    rest *= known
    total = counts.sum(axis=0)
    squares = np.maximum(np.einsum("ij,ij->j", rest, rest), 1e-24)
    neighbours = np.einsum("ij,ij->j", rest[1:], rest[:-1])
    phi = (total * neighbours / squares + 1) / np.maximum(total - 4, 1)  # its bias taken off
    return means[1] - means[0], squares / np.maximum(total - 2, 1), phi, counts


def _standardised(values: Numbers, bound: Numbers) -> Numbers:
    """Distances from each series' median in its robust standard deviations, within *bound*."""
    ordered, number = np.sort(values, axis=0), (~np.isnan(values)).sum(axis=0)  # NaN last
    columns, last = np.arange(values.shape[1]), np.maximum(number - 1, 0)
    lower, middle, upper = (
        (ordered[last * part // 4, columns] + ordered[-(-last * part // 4), columns]) / 2
        for part in (1, 2, 3)
    )
    scores = (values - middle) * (_OF_QUARTILES / (upper - lower))
    inner = np.clip(scores, -2.5, 2.5)
    deviations = inner - np.nansum(inner, axis=0) / number
    spread = np.sqrt(np.nansum(deviations**2, axis=0) / (number - 1)) / _AT_TWO_AND_A_HALF
    clipped: Numbers = np.clip(scores / spread, -bound, bound)
    return clipped


def _of_mean(count: Numbers, phi: Numbers) -> Numbers:
    """Variance of the mean of *count* nights of unit variance and autocorrelation *phi*."""
    effective = (1 + phi) / (1 - phi) - 2 * phi * (1 - phi**count) / (count * (1 - phi) ** 2)
    result: Numbers = effective / count
    return result


def threshold(count: int, chance: float) -> float:
    """
    Score that one of *count* series exceeds within `HORIZON` quiet nights with that *chance*.

    Series that vary together exceed it less often than these, which are independent.
    """
    chances, scores = np.asarray(_EXCEEDED).T
    of_one = -np.expm1(np.log1p(-chance) / count)
    return float(np.interp(-np.log(of_one), -np.log(chances), scores))
