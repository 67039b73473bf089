"""
Shifts in the level of series of nights, found night by night.

A series is a column of logarithms, a night a row, NaN where nothing is known.  Each night every
recent stretch of nights is tested against all nights before it.  Values beyond `CLIP` standard
deviations count as if they lay there, and no stretch is shorter than `SHORTEST` nights, so that two
bad nights are no shift; the mean of many columns, which one of them does not carry far, is let go
farther, and a night that is `firm`, as it was measured again at once, counts in full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
CLIP = 3.4
_CLIP_OF_MANY = 5.0
_MANY = 4
_FIRM_CLIP = 12.0
HORIZON = 90
FALSE_ALARMS = 0.007  # nights, and the chance of any alarm in them where nothing moves
# An autocorrelation is drawn to none as if so many nights more had none, and counts as so many of
# its standard errors larger: one that is taken for too small raises false alarms.
_PRIOR_NIGHTS = 50.0
_CAUTION = 2.7
_MOST = 0.6
# What a stretch must show beyond the threshold if nights are autocorrelated, or it is longer than
# so many nights, as there is much to be seen then, or if one night that was measured again is it.
_FOR_AUTOCORRELATION = 1.5
_FOR_LENGTH = 0.4
_LONG = 12
_FOR_FIRM = 0.7
_OF_QUARTILES = 1.349
_AT_TWO_AND_A_HALF = 0.98  # spreads of a normal distribution
# Chances of a quiet series to exceed a score within `HORIZON` nights, and the scores: simulated by
# these tests on 200,000 series (tests/stats/test_shifts.py); the last one goes on as a line.
_EXCEEDED = ((0.05, 2.470), (0.01, 2.875), (0.001, 3.405), (0.0001, 3.848), (1e-8, 5.620))


def clip_of(columns: int) -> float:
    """Bound of a value in standard deviations, where it is the mean of so many columns."""
    return _CLIP_OF_MANY if columns >= _MANY else CLIP


def scan(values: Numbers, clip: Numbers, firm: Flags | None = None) -> tuple[Numbers, Numbers]:
    """
    Test the stretches that end with the last night of *values*, (nights, series), within *clip*.

    Returns a row per lag, a column per series: normal deviates where nothing moved, and scores:
    their sizes less what the stretch must show beyond the threshold, -infinity where it may raise
    nothing.  The mean of a stretch has the variance of an autocorrelated one, of first order.
    """
    values = values[-MOST_NIGHTS:]
    is_known = ~np.isnan(values)
    is_firm = np.zeros_like(is_known) if firm is None else firm[-MOST_NIGHTS:] & is_known
    deviates = np.full((len(LAGS), values.shape[1]), np.nan)
    scores = np.full(deviates.shape, -np.inf)
    rows = np.flatnonzero(len(values) >= LAGS + FEWEST_BEFORE)
    if not len(rows):
        return deviates, scores
    with np.errstate(invalid="ignore", divide="ignore"):
        standardised = _standardised(values, np.where(is_firm, _FIRM_CLIP, clip))
        is_known &= ~np.isnan(standardised)
        standardised = np.where(is_known, standardised, 0.0)
        sides = _sides(standardised, is_known.astype(float), LAGS[rows])
        total = sides.before + sides.since
        lags = LAGS[rows, None]
        phi = sides.phi * total / (total + _PRIOR_NIGHTS) + _CAUTION / np.sqrt(total)
        phi = np.clip(np.nan_to_num(phi), 0.0, _MOST)
        mean_variances = _variance_of_mean(sides.before, phi) + _variance_of_mean(sides.since, phi)
        student = sides.shift / np.sqrt(sides.variance * mean_variances)
        # Wallace 1959: Student's t as a normal deviate.
        freedom = total - 2
        deviate = np.sign(student) * np.sqrt(freedom * np.log1p(student**2 / freedom))
        deviate *= (8 * freedom + 1) / (8 * freedom + 3)
        demand = _FOR_AUTOCORRELATION * phi + _FOR_LENGTH * np.maximum(0.0, 1 - _LONG / lags)
        demand += np.where(lags < SHORTEST, _FOR_FIRM, 0.0)
        is_tested = is_known[-1] & (sides.before >= FEWEST_BEFORE) & np.isfinite(deviate)
        may_raise = is_tested & ((lags >= SHORTEST) | is_firm[-1])
    deviates[rows] = np.where(is_tested, deviate, np.nan)
    scores[rows] = np.where(may_raise, np.abs(deviate) - demand, -np.inf)
    return deviates, scores


def estimate(column: Numbers, lag: int) -> tuple[float, float | None, float | None]:
    """
    By how much the last *lag* nights of a series lie above those before, and its 95 % interval.

    Values far from the others of their side count as at `CLIP`; the interval is `None` where fewer
    than four nights are known.
    """
    is_known = ~np.isnan(column)
    values = column[:, None].copy()
    if not (is_known[:-lag].any() and is_known[-lag:].any()):
        return 0.0, None, None
    if is_known[:-lag].sum() > FEWEST_BEFORE:
        reach = np.ptp(np.nanquantile(values[:-lag], (0.25, 0.75))) / _OF_QUARTILES * CLIP
        for side in (values[:-lag], values[-lag:]):
            middle = np.nanmedian(side)
            np.clip(side, middle - reach, middle + reach, out=side)
    values = np.nan_to_num(values - np.nanmedian(values))
    sides = _sides(values, is_known[:, None].astype(float), np.asarray([lag]))
    shift, variance, phi, before, since = (float(number.item()) for number in sides)
    freedom = before + since - 2
    if freedom < 2:
        return shift, None, None
    phi = np.clip(phi, 0.0, _MOST)
    mean_variances = _variance_of_mean(before, phi) + _variance_of_mean(since, phi)
    half = float(special.stdtrit(freedom, 0.975) * np.sqrt(variance * mean_variances))
    return shift, shift - half, shift + half


class _Sides(NamedTuple):
    """
    Nights since a moment against those before it: a row per lag, a column per series.

    By how much their mean lies higher; variance and autocorrelation of nights within both sides;
    how many nights are known before and since.
    """

    shift: Numbers
    variance: Numbers
    phi: Numbers
    before: Numbers
    since: Numbers


def _sides(values: Numbers, weights: Numbers, lags: NDArray[np.int_]) -> _Sides:
    """
    Compare the last *lags* nights of each series with those before.

    *weights* are 1 where a night is known; elsewhere they and the *values* are 0.
    """
    is_since = np.arange(len(values)) >= len(values) - lags[:, None]
    neighbour_weights = weights[1:] * weights[:-1]
    products = values[1:] * values[:-1]
    ends = values[1:] * weights[:-1] + values[:-1] * weights[1:]
    sides = []
    for nights, pairs in ((~is_since, ~is_since[:, 1:]), (is_since, is_since[:, :-1])):
        side = nights.astype(float)
        inner = pairs.astype(float)
        count = side @ weights
        mean = side @ values / count
        squares_within = side @ values**2 - count * mean**2
        products_within = (
            inner @ products - mean * (inner @ ends) + mean**2 * (inner @ neighbour_weights)
        )
        sides.append((count, mean, squares_within, products_within))
    (before, since), (level, later), squares_of_sides, products_of_sides = zip(*sides, strict=True)
    total = before + since
    squares = np.maximum(sum(squares_of_sides), 1e-24)
    # The bias of the autocorrelation is taken off.
    phi = (total * sum(products_of_sides) / squares + 1) / np.maximum(total - 4, 1)
    return _Sides(later - level, squares / np.maximum(total - 2, 1), phi, before, since)


def _standardised(values: Numbers, bound: Numbers) -> Numbers:
    """Distances from each series' median in its robust standard deviations, within *bound*."""
    ordered = np.sort(values, axis=0)
    count = (~np.isnan(values)).sum(axis=0)  # NaN last
    columns = np.arange(values.shape[1])
    last = np.maximum(count - 1, 0)
    lower, middle, upper = (
        (ordered[last * part // 4, columns] + ordered[-(-last * part // 4), columns]) / 2
        for part in (1, 2, 3)
    )
    scores = (values - middle) * (_OF_QUARTILES / (upper - lower))
    inner = np.clip(scores, -2.5, 2.5)
    deviations = inner - np.nansum(inner, axis=0) / count
    spread = np.sqrt(np.nansum(deviations**2, axis=0) / (count - 1)) / _AT_TWO_AND_A_HALF
    clipped: Numbers = np.clip(scores / spread, -bound, bound)
    return clipped


def _variance_of_mean(count: Any, phi: Any) -> Any:
    """Variance of the mean of *count* nights of unit variance and autocorrelation *phi*."""
    effective = (1 + phi) / (1 - phi) - 2 * phi * (1 - phi**count) / (count * (1 - phi) ** 2)
    return effective / count


def threshold(count: int, chance: float) -> float:
    """
    Score that one of *count* series exceeds within `HORIZON` quiet nights with that *chance*.

    Series that vary together exceed it less often than these, which are independent.
    """
    chances, scores = np.asarray(_EXCEEDED).T
    chance_of_one = -np.expm1(np.log1p(-chance) / count)
    return float(np.interp(-np.log(chance_of_one), -np.log(chances), scores))
