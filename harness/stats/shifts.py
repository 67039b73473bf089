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
MOST_NIGHTS = 365  # that a test looks back
CLIP, _CLIP_OF_MANY, _MANY, _FIRM_CLIP = 3.4, 5.0, 4, 12.0
HORIZON, FALSE_ALARMS = 90, 0.01  # nights, and the chance of any alarm in them where nothing moves
# An autocorrelation is drawn to that of so many nights, and counts as so many of its standard
# errors larger than it seems: one that is taken for too small raises false alarms.
_PRIOR_NIGHTS, _PRIOR, _CAUTION = 20.0, 0.3, 0.7
# What a stretch must show beyond the threshold if it is long, or nights are autocorrelated: the
# variance of its mean is then less well known.
_FOR_LENGTH, _FOR_AUTOCORRELATION, _FOR_FIRM = 0.4, 1.2, 0.5
_OF_QUARTILES, _AT_TWO_AND_A_HALF = 1.349, 0.98  # spreads of a normal distribution
# Chances of a quiet series to exceed a score within `HORIZON` nights, and the scores: simulated by
# these tests on 40,000 series (tests/stats/test_shifts.py).
_EXCEEDED = ((0.05, 3.154), (0.01, 3.586), (0.001, 4.187), (0.0001, 4.629))


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
    nights, width = values.shape
    lags = LAGS[nights >= LAGS + FEWEST_BEFORE]
    z = np.full((len(LAGS), width), np.nan)
    score = np.full(z.shape, -np.inf)
    if not len(lags):
        return Scan(z, score)
    known, ends = ~np.isnan(values), nights - lags
    is_firm = np.zeros_like(known) if firm is None else firm[-MOST_NIGHTS:] & known
    with np.errstate(invalid="ignore", divide="ignore"):
        bound = np.where(is_firm, _FIRM_CLIP, clip)
        scores = np.nan_to_num(_standardised(values, bound))
        counts, total = np.cumsum(known, axis=0), known.sum(axis=0).astype(float)
        before_count = counts[ends - 1].astype(float)
        after_count = total - before_count
        sums, squares = np.cumsum(scores, axis=0), np.cumsum(scores**2, axis=0)
        before, after = sums[ends - 1] / before_count, (sums[-1] - sums[ends - 1]) / after_count
        squares_within = squares[-1] - before_count * before**2 - after_count * after**2
        squares_within = np.maximum(squares_within, 1e-9)
        products = np.zeros_like(scores)  # of neighbours
        products[1:] = scores[1:] * scores[:-1]
        products = np.cumsum(products, axis=0)
        within = products[ends - 1] + products[-1] - products[ends]
        within -= before * (2 * sums[ends - 1] - scores[0] - scores[ends - 1])
        within -= after * (2 * (sums[-1] - sums[ends - 1]) - scores[ends] - scores[-1])
        within += (before_count - 1) * before**2 + (after_count - 1) * after**2
        phi = total * (total * within / squares_within + 1) / (total - 4)  # its bias taken off
        phi = (phi + _PRIOR_NIGHTS * _PRIOR) / (total + _PRIOR_NIGHTS) + _CAUTION / np.sqrt(total)
        phi = np.clip(np.nan_to_num(phi), 0.0, 0.8)
        freedom = total - 2.0
        variance = squares_within / freedom
        variance *= _of_mean(before_count, phi) + _of_mean(after_count, phi)
        t = (after - before) / np.sqrt(variance)
        # Wallace 1959: Student's t as a normal deviate.
        deviate = np.sign(t) * np.sqrt(freedom * np.log1p(t**2 / freedom))
        deviate *= (8 * freedom + 1) / (8 * freedom + 3)
        length = lags[:, None]
        demand = _FOR_LENGTH * np.maximum(0.0, 1 - SHORTEST / length) + _FOR_AUTOCORRELATION * phi
        demand += np.where(length < SHORTEST, _FOR_FIRM, 0.0)
        is_tested = known[-1] & (before_count >= FEWEST_BEFORE) & np.isfinite(deviate)
        may_raise = is_tested & ((length >= SHORTEST) | is_firm[-1])
    rows = np.isin(LAGS, lags)
    z[rows] = np.where(is_tested, deviate, np.nan)
    score[rows] = np.where(may_raise, np.abs(deviate) - demand, -np.inf)
    return Scan(z, score)


def estimate(column: Numbers, lag: int) -> tuple[float, float | None, float | None]:
    """
    By how much the last *lag* nights of a series lie above those before, and its 95 % interval.

    Values far from the others of their side count as at `CLIP`; the interval is `None` where fewer
    than four nights are known.
    """
    sides = [side[~np.isnan(side)] for side in (column[:-lag], column[-lag:])]
    if not min(map(len, sides)):
        return 0.0, None, None
    quarters = np.quantile(sides[0], (0.25, 0.75))
    reach = CLIP * max(float(np.ptp(quarters)), 1e-12) / _OF_QUARTILES
    middles = [float(np.median(side)) for side in sides]
    if len(sides[0]) > FEWEST_BEFORE:
        sides = [np.clip(side, middle - reach, middle + reach)
                 for side, middle in zip(sides, middles, strict=True)]  # fmt: skip
    means, freedom = [float(side.mean()) for side in sides], sum(map(len, sides)) - 2
    size = means[1] - means[0]
    if freedom < 2:
        return size, None, None
    rest = np.concatenate([side - mean for side, mean in zip(sides, means, strict=True)])
    squares = max(float(rest @ rest), 1e-24)
    phi = np.clip(rest[1:] @ rest[:-1] / squares, 0.0, 0.8)
    of_means = sum(_of_mean(np.asarray(float(len(side))), phi) for side in sides)
    half = float(special.stdtrit(freedom, 0.975) * np.sqrt(squares / freedom * of_means))
    return size, size - half, size + half


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
    of_one = max(float(-np.expm1(np.log1p(-chance) / count)), 1e-9)
    slope = (scores[-1] - scores[-2]) / np.log(chances[-2] / chances[-1])  # of what was not seen
    rarer = np.log(min(1.0, of_one / chances[-1]))
    known = np.interp(-np.log(of_one), -np.log(chances), scores)
    return float(known - slope * rarer)
