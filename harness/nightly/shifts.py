"""
Shifts in the level of series of nights, and in their spread, found night by night.

A series is a column of logarithms, a night a row, NaN where nothing is known.  Each night every
recent stretch of nights is tested against all nights before it, by generalised least squares: the
night of a step says most where nights are autocorrelated.  Values far from the others count as if
they lay nearer, and no stretch is shorter than `SHORTEST` nights, so that two bad nights are no
shift; a night that is `firm`, as it was measured again at once, counts in full.
"""

from __future__ import annotations

import math

from collections.abc import Sequence
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
# Alarms a year of so many series and more where nights are normal and nothing moves; fewer series
# have fewer.
FALSE_ALARMS = 0.4
FACTORS = 50
# Bounds of a value in standard deviations: of a night before the last three, and, as chances of a
# normal deviate beyond which Student's t may go as far as few nights let it, of the last three.
_CLIP_BEFORE = 2.5
CLIP = 3.6
_CLIP_OF_MANY = 5.0
_MANY = 4
_FIRM_CLIP = 12.0
# An autocorrelation is drawn towards that of all series, and this to none, as if so many more
# nights had it; and counts as so many of its standard errors larger.
_PRIOR_NIGHTS = 30.0
_CAUTION = 0.2
_MOST = 0.7
# What a stretch must show beyond the threshold: more with each doubling of the nights, as there are
# more of them in which chance may do it; for a share of nights far off; for one night alone.
_FOR_DOUBLING = 0.45
_NIGHTS_FREE = 13.0
_MOST_FOR_NIGHTS = 1.5
_FAR = 3.4
_USUAL_SHARE = 0.01
_FOR_FAR = 8.0
_PRIOR_FAR = 20.0
_MOST_FOR_FAR = 0.8
_FOR_FIRM = 0.7
# A wider spread is asked of stretches of so many nights, with so many before, and shows more beyond
# the threshold with each doubling of the nights.  The kurtosis is that of cut normal nights.
_SHORTEST_SPREAD = 8
_FEWEST_BEFORE_SPREAD = 10
_FOR_SPREAD = 0.2
_KURTOSIS = 2.6
_TINY = 1e-24
_OF_QUARTILES = 1.349
_AT_TWO_AND_A_HALF = 0.98  # spreads of a normal distribution
# How often a quiet series exceeds a score, times a year, and the scores: simulated by these tests
# (bench/bench_nightly_steps.py --calibrate); the last one goes on as a line.
_EXCEEDED = (
    (1.0, 2.14),
    (0.3, 2.59),
    (0.1, 2.94),
    (0.03, 3.30),
    (0.01, 3.63),
    (0.003, 3.87),
    (1e-8, 6.40),
)


class Scan(NamedTuple):
    """
    Tests of the stretches that end with the last night: a row per lag, a column per series.

    *deviates* are normal where nothing moved; *scores* their sizes less what the stretch must show
    beyond the threshold, -infinity where it may raise nothing.
    """

    deviates: Numbers
    scores: Numbers


def clip_of(columns: int) -> float:
    """Bound of a value in standard deviations, where it is the mean of so many columns."""
    return _CLIP_OF_MANY if columns >= _MANY else CLIP


def scan(
    values: Numbers, clip: Numbers, firm: Flags | None = None, weights: Numbers | None = None
) -> Scan:
    """
    Test the stretches that end with the last night of *values*, (nights, series), within *clip*.

    *weights* are what nights count, 1 where nobody disturbed them.
    """
    values = values[-MOST_NIGHTS:]
    is_known = ~np.isnan(values)
    is_firm = np.zeros_like(is_known) if firm is None else firm[-MOST_NIGHTS:] & is_known
    result = Scan(
        np.full((len(LAGS), values.shape[1]), np.nan),
        np.full((len(LAGS), values.shape[1]), -np.inf),
    )
    rows = np.flatnonzero(len(values) >= LAGS + FEWEST_BEFORE)
    if not len(rows):
        return result
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = standardised(values)
        is_known &= ~np.isnan(distances)
        share_far = _share_far(distances[:-SHORTEST])
        bounded = np.where(is_known, _bounded(distances, clip, is_firm), 0.0)
        counted = is_known * (1.0 if weights is None else weights[-MOST_NIGHTS:])
        step = _step(bounded, counted, LAGS[rows])
        deviates = _normal(step.shift / step.error, step.freedom)
        nights = step.freedom + 2
        demand = _FOR_DOUBLING * np.log2(nights / _NIGHTS_FREE)
        demand = np.clip(demand, 0.0, _MOST_FOR_NIGHTS)
        demand += np.clip(_FOR_FAR * (share_far - _USUAL_SHARE), 0.0, _MOST_FOR_FAR)
        lags = LAGS[rows, None]
        demand += np.where(lags < SHORTEST, _FOR_FIRM, 0.0)
        is_tested = is_known[-1] & (step.before >= FEWEST_BEFORE) & np.isfinite(deviates)
        may_raise = is_tested & ((lags >= SHORTEST) | is_firm[-1])
    result.deviates[rows] = np.where(is_tested, deviates, np.nan)
    result.scores[rows] = np.where(may_raise, np.abs(deviates) - demand, -np.inf)
    return result


def scan_spread(values: Numbers) -> Scan:
    """
    Test whether nights of the stretches that end with the last one lie farther apart than before.

    By the logarithm of the ratio of mean squares about the median, whose error the fourth moment
    and the autocorrelation of nights say.  Scores are of wider stretches alone.
    """
    values = values[-MOST_NIGHTS:]
    shape = len(LAGS), values.shape[1]
    result = Scan(np.full(shape, np.nan), np.full(shape, -np.inf))
    rows = np.flatnonzero(
        (LAGS >= _SHORTEST_SPREAD) & (len(values) >= LAGS + _FEWEST_BEFORE_SPREAD)
    )
    if not len(rows):
        return result
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = np.clip(standardised(values), -_CLIP_BEFORE, _CLIP_BEFORE)
        is_known = ~np.isnan(distances)
        squares = np.where(is_known, distances, 0.0) ** 2
        moments = np.stack([is_known, squares, squares**2])
        moments_since = np.cumsum(moments[:, ::-1], axis=1)[:, LAGS[rows] - 1]
        since, squares_since, _ = moments_since
        before, squares_before, fourth_before = moments.sum(axis=1)[:, None] - moments_since
        variance = squares_before / before
        kurtosis = fourth_before / before / variance**2
        kurtosis = (kurtosis * before + _KURTOSIS * _PRIOR_FAR) / (before + _PRIOR_FAR)
        are_both_known = is_known[1:] & is_known[:-1]
        products = np.where(are_both_known, distances[1:] * distances[:-1], 0.0).sum(axis=0)
        phi = np.clip(products / squares.sum(axis=0), 0.0, _MOST)
        inflation = (1 + phi**2) / (1 - phi**2)
        error = np.sqrt((kurtosis - 1) * (1 / before + 1 / since) * inflation)
        deviates = np.log(squares_since / since / variance) / error
        demand = _FOR_SPREAD * (1 + np.log2((before + since) / _NIGHTS_FREE))
        is_tested = is_known[-1] & (before >= _FEWEST_BEFORE_SPREAD) & np.isfinite(deviates)
        may_raise = is_tested & (2 * since >= LAGS[rows, None])
    result.deviates[rows] = np.where(is_tested, deviates, np.nan)
    result.scores[rows] = np.where(may_raise, deviates - demand, -np.inf)
    return result


def wider_since(column: Numbers, lag: int) -> int:
    """
    Nights since which a wider spread explains *column* better than a step *lag* nights ago; or 0.

    Both are compared by the likelihood of normal nights.
    """
    distances = standardised(column[-MOST_NIGHTS:, None])
    is_firm = np.zeros(distances.shape, bool)
    bounded = _bounded(distances, np.asarray([CLIP]), is_firm, recent=len(distances))
    nights = bounded[:, 0]
    before = nights[:-lag][~np.isnan(nights[:-lag])]
    since = nights[-lag:][~np.isnan(nights[-lag:])]
    count = len(before) + len(since)
    squares = before.var() * len(before) + since.var() * len(since)
    least = count * math.log(max(squares / count, _TINY))
    widest = 0
    for stretch in LAGS[(LAGS >= SHORTEST) & (len(nights) - LAGS >= FEWEST_BEFORE)]:
        narrow = nights[:-stretch][~np.isnan(nights[:-stretch])]
        wide = nights[-stretch:][~np.isnan(nights[-stretch:])]
        if len(narrow) < FEWEST_BEFORE or not len(wide):
            continue
        wide_variance = np.mean((wide - narrow.mean()) ** 2)
        misfit = len(narrow) * math.log(max(narrow.var(), _TINY))
        misfit += len(wide) * math.log(max(wide_variance, _TINY))
        if misfit < least and wide_variance > narrow.var():
            least = misfit
            widest = int(stretch)
    return widest


def spread_change(column: Numbers, lag: int) -> tuple[float, float | None, float | None]:
    """
    Logarithm of the spread of the last *lag* nights over that before, and its 95 % interval.

    By the F distribution; `None` where a side has fewer than three nights.
    """
    sides = [side[~np.isnan(side)] for side in (column[:-lag], column[-lag:])]
    if min(map(len, sides)) < SHORTEST:
        return 0.0, None, None
    variances = [max(float(np.var(side, ddof=1)), _TINY) for side in sides]
    ratio = math.log(variances[1] / variances[0]) / 2
    freedom = len(sides[1]) - 1, len(sides[0]) - 1
    low, high = (math.log(special.fdtri(*freedom, chance)) / 2 for chance in (0.025, 0.975))
    return ratio, ratio - high, ratio - low


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
    with np.errstate(invalid="ignore", divide="ignore"):
        step = _step(values, is_known[:, None].astype(float), np.asarray([lag]))
    shift, error, freedom = (float(number.item()) for number in step[:3])
    if freedom < 2:
        level = values[:-lag, 0][is_known[:-lag]].mean()
        return float(values[-lag:, 0][is_known[-lag:]].mean() - level), None, None
    half = float(special.stdtrit(freedom, 0.975)) * error
    return shift, shift - half, shift + half


class _Step(NamedTuple):
    """
    A step of each series some nights ago: a row per lag, a column per series.

    Its size and standard error; degrees of freedom; how many nights are known before and since.
    """

    shift: Numbers
    error: Numbers
    freedom: Numbers
    before: Numbers
    since: Numbers


class _Sums(NamedTuple):
    """
    Weighted sums over nights: of those whose night before is known, too, and of *single* ones.

    *previous* is the value of the night before.
    """

    linked: Numbers
    value: Numbers
    previous: Numbers
    square: Numbers
    product: Numbers
    previous_square: Numbers
    single: Numbers
    single_value: Numbers
    single_square: Numbers

    @property
    def weight(self) -> Numbers:
        """Weights of all nights."""
        return self.linked + self.single

    @property
    def mean(self) -> Numbers:
        """Of all nights."""
        return (self.value + self.single_value) / self.weight

    @property
    def squares_within(self) -> Numbers:
        """Squared distances from the mean."""
        return self.square + self.single_square - self.weight * self.mean**2


def _step(values: Numbers, weights: Numbers, lags: NDArray[np.int_]) -> _Step:
    """
    The step *lags* nights ago by generalised least squares, where nights are of first order.

    *weights* are above 0 where a night is known; elsewhere they and the *values* are 0.  A night
    less `phi` times the night before has nothing in common with others; a night whose night before
    is not known counts as the first one does (Prais and Winsten 1954).
    """
    is_known = (weights > 0).astype(float)
    known_since = np.cumsum(is_known[::-1], axis=0)[lags - 1]
    known_nights = is_known.sum(axis=0)
    stack = _terms(values, weights, is_known)
    all_sums = stack.sum(axis=1)[:, None]
    sums_since = np.cumsum(stack[:, ::-1], axis=1)[:, lags - 1]
    first_sums = stack[:, len(values) - lags]
    whole = _Sums(*all_sums)
    since = _Sums(*sums_since)
    first = _Sums(*first_sums)
    before = _Sums(*(all_sums - sums_since))
    phi = _autocorrelation(
        ((before, before), (since, _Sums(*(sums_since - first_sums)))), known_nights
    )
    rest = 1 - phi
    alone = 1 - phi**2
    # The regression of whitened nights on a level and a step.
    level_level = rest**2 * whole.linked + alone * whole.single
    level_step = rest**2 * (since.linked - first.linked) + rest * first.linked
    level_step += alone * since.single
    step_step = rest**2 * (since.linked - first.linked) + first.linked + alone * since.single
    level_value = rest * (whole.value - phi * whole.previous) + alone * whole.single_value
    step_value = rest * (since.value - phi * since.previous) + alone * since.single_value
    step_value += phi * (first.value - phi * first.previous)
    value_value = whole.square - 2 * phi * whole.product + phi**2 * whole.previous_square
    value_value += alone * whole.single_square
    information = step_step - level_step**2 / level_level
    shift = (step_value - level_step / level_level * level_value) / information
    squares = value_value - level_value**2 / level_level - shift**2 * information
    freedom = np.broadcast_to(known_nights - 2, shift.shape)
    variance = np.maximum(squares, _TINY) / np.maximum(freedom, 1)
    return _Step(
        shift, np.sqrt(variance / information), freedom, known_nights - known_since, known_since
    )


def _terms(values: Numbers, weights: Numbers, is_known: Numbers) -> Numbers:
    """What `_Sums` are the sums of: a layer for each of its fields, then (nights, series)."""
    previous = np.vstack([np.zeros_like(values[:1]), values[:-1]])
    has_previous = np.vstack([np.zeros_like(values[:1]), is_known[:-1]])
    linked = weights * has_previous
    single = weights - linked
    return np.stack(
        [
            linked,
            linked * values,
            linked * previous,
            linked * values**2,
            linked * values * previous,
            linked * previous**2,
            single,
            single * values,
            single * values**2,
        ]
    )


def _autocorrelation(sides: Sequence[tuple[_Sums, _Sums]], known_nights: Numbers) -> Numbers:
    """
    Autocorrelation of first order of each series, on the safe side.

    Of *sides*, each as sums over its nights and over its links to nights of the same side.  Series
    of one table share the cluster: what few nights of one leave open, all together tell.
    """
    squares = sum(side.squares_within for side, _ in sides)
    products = sum(
        links.product - side.mean * (links.value + links.previous) + side.mean**2 * links.linked
        for side, links in sides
    )
    # The bias of both means is taken off.
    ratio = products / np.maximum(squares, _TINY)
    phi = np.nan_to_num((known_nights * ratio + 2) / np.maximum(known_nights - 6, 2))
    # Of few nights of one factor hardly anything follows.
    counted = np.maximum(known_nights - FEWEST_NIGHTS + 1, 0)
    common = (phi * counted).sum(axis=1, keepdims=True) / max(counted.sum(), 1)
    common_nights = known_nights * np.minimum((counted > 0).sum(), np.maximum(known_nights - 1, 1))
    common = common * common_nights / (common_nights + _PRIOR_NIGHTS)
    drawn = (phi * known_nights + common * _PRIOR_NIGHTS) / (known_nights + _PRIOR_NIGHTS)
    cautious = drawn + _CAUTION / np.sqrt(known_nights + _PRIOR_NIGHTS)
    bounded: Numbers = np.clip(cautious, 0.0, _MOST)
    return bounded


def _normal(student: Numbers, freedom: Numbers) -> Numbers:
    """Student's t with so many degrees of freedom as a normal deviate (Wallace 1959)."""
    deviate = np.sign(student) * np.sqrt(freedom * np.log1p(student**2 / freedom))
    normal: Numbers = deviate * (8 * freedom + 1) / (8 * freedom + 3)
    return normal


def _quartiles(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Lower quartile, median and upper quartile of what is known of each series."""
    ordered = np.sort(values, axis=0)  # NaN last
    last = np.maximum((~np.isnan(values)).sum(axis=0) - 1, 0)
    columns = np.arange(values.shape[1])
    lower, middle, upper = (
        (ordered[last * part // 4, columns] + ordered[-(-last * part // 4), columns]) / 2
        for part in (1, 2, 3)
    )
    return lower, middle, upper


def standardised(values: Numbers) -> Numbers:
    """
    Distances from each series' median in its robust standard deviations.

    Both are of the nights before the last three, where five of them are known: a step that has just
    begun does not count among what it is compared with.
    """
    reference = values.copy()
    has_enough = (~np.isnan(values[:-SHORTEST])).sum(axis=0) >= FEWEST_BEFORE
    reference[-SHORTEST:, has_enough] = np.nan
    lower, middle, upper = _quartiles(reference)
    count = (~np.isnan(reference)).sum(axis=0)
    unit = (upper - lower) / _OF_QUARTILES
    inner = np.clip((reference - middle) / unit, -2.5, 2.5)
    deviations = inner - np.nansum(inner, axis=0) / count
    spread = np.sqrt(np.nansum(deviations**2, axis=0) / (count - 1)) / _AT_TWO_AND_A_HALF
    distances: Numbers = (values - middle) / (unit * spread)
    return distances


def _bounded(distances: Numbers, clip: Numbers, is_firm: Flags, recent: int = SHORTEST) -> Numbers:
    """
    *distances* within their bounds: those of the *recent* nights as wide as few nights make them.

    Earlier nights say what is usual, and a few that were not must not make the spread larger.
    """
    count = (~np.isnan(distances)).sum(axis=0)
    freedom = np.maximum(count - SHORTEST - 1, FEWEST_BEFORE - 1)
    bound = np.full(distances.shape, _CLIP_BEFORE)
    bound[-recent:] = special.stdtrit(freedom, special.ndtr(clip))
    bound = np.where(is_firm, _FIRM_CLIP, bound)
    bounded: Numbers = np.clip(distances, -bound, bound)
    return bounded


def _share_far(distances: Numbers) -> Numbers:
    """Share of nights that lie far off, drawn to that of all series as by twenty nights more."""
    known_nights = (~np.isnan(distances)).sum(axis=0)
    far = (np.abs(distances) > _FAR).sum(axis=0)
    common = far.sum() / max(known_nights.sum(), 1)
    share: Numbers = (far + _PRIOR_FAR * common) / (known_nights + _PRIOR_FAR)
    return share


def threshold(rate: float) -> float:
    """Score that a quiet series exceeds so often a year: *rate* times."""
    rates, scores = np.asarray(_EXCEEDED).T
    return float(np.interp(-np.log(rate), -np.log(rates), scores))
