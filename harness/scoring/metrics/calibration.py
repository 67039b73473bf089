"""
Metrics of what stands between predicted and measured times: lines, their recalibration, the order.

    measured = intercept + slope x predicted             by least squares; Theil-Sen beside it
    measured = factor x predicted ^ exponent             the same line through the logarithms
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp
from typing import TYPE_CHECKING, NamedTuple

from harness.base.records.score import MetricValue, Score
from harness.scoring.weights import relative_weights, weighted_mean

if TYPE_CHECKING:
    from harness.base.stats.resampling import Masks, Numbers

_LARGEST_LOGARITHM = 700.0
_WITHIN_NOISE = 1.96  # standard deviations that two times lie apart at most, 95 % of the time
_VALUE_AND_ENDS = ("value", "low", "high")
_SMALLEST = 1e-12  # as a share of the largest square of a time: what rounding leaves
_ROUNDING = 1e-9  # as a share of the largest time: times that lie no farther apart are one


class Lines(NamedTuple):
    """Fitted lines; perfect is slope 1, intercept 0, R2 1."""

    slope: Numbers
    intercept: Numbers
    r2: Numbers


def calibration(predicted: Numbers, measured: Numbers, kept: Masks) -> Lines:
    """
    Least squares of measured on predicted times, one line through the cells of each row of *kept*.

    NaN where a line says nothing: fewer than three cells, or all with one predicted or one
    measured time.
    """
    import numpy as np

    # From sums over centred times, in which little cancels.
    x = predicted - predicted.mean()
    y = measured - measured.mean()
    weights = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
    mean_x = weights @ x
    mean_y = weights @ y
    xx = weights @ x**2 - mean_x**2
    xy = weights @ (x * y) - mean_x * mean_y
    yy = weights @ y**2
    yy -= mean_y**2
    is_line = (xx > _SMALLEST * (x**2).max()) & (yy > _SMALLEST * (y**2).max())
    xx = np.where(is_line & (kept.sum(axis=1) >= 3), xx, np.nan)
    slopes = xy / xx
    intercepts = mean_y + measured.mean() - slopes * (mean_x + predicted.mean())
    return Lines(slopes, intercepts, slopes * xy / np.where(is_line, yy, np.nan))


def _are_one_time(times_s: Numbers) -> bool:
    """Whether *times_s* differ by rounding alone: a line through them is none."""
    return bool(times_s.max() - times_s.min() <= _ROUNDING * abs(times_s).max())


def _without_rounding(times_s: Numbers) -> Numbers:
    """*times_s*, of which those that differ by rounding alone are the same number."""
    import numpy as np

    order = np.argsort(times_s)
    ascending_s = times_s[order]
    is_next = np.diff(ascending_s, prepend=-np.inf) > _ROUNDING * abs(times_s).max()
    one_time_each = times_s.copy()
    one_time_each[order] = ascending_s[is_next][np.cumsum(is_next) - 1]
    return one_time_each


def number_of_line(
    name: str, scores: Sequence[Score], *, logarithmic: bool = False
) -> MetricValue | None:
    """
    The number of that *name* of the line through all cells, with its 95 % interval from six on.

    With *logarithmic* the line goes through the logarithms of the times, and the intercept is given
    as the factor that it means.  `None` where predicted or measured times differ by rounding alone.
    """
    import numpy as np

    from harness.base.stats.resampling import FEWEST_CELLS, jackknife_interval

    # In one order, so that sums are the same whatever the order of the scores.
    cells = sorted((score.predicted_s, score.measured_s, score.input) for score in scores)
    lines = _lines_of_cells(tuple(cells), logarithmic=logarithmic)
    if lines is None:
        return None
    value, *replicates = getattr(lines, name).tolist()
    if not np.isfinite(value):
        return None
    # Value, low and high; the value alone where it has no interval.
    numbers = [value]
    if len(scores) >= FEWEST_CELLS and name != "r2" and np.isfinite(replicates).all():
        numbers += jackknife_interval(value, np.asarray(replicates))
    if logarithmic and name == "intercept":
        return _factor(numbers)
    return MetricValue(**dict(zip(_VALUE_AND_ENDS, numbers, strict=False)))


# Five metrics are of the same two lines, one after the other.
@lru_cache(maxsize=4)
def _lines_of_cells(
    cells: tuple[tuple[float, float, str], ...], *, logarithmic: bool
) -> Lines | None:
    """
    The line through all *cells*, and those without one unit each; `None` where there is none.

    A cell is its predicted and its measured time, and its input.
    """
    import numpy as np

    from harness.base.stats.resampling import kept_cells

    predicted = np.asarray([cell[0] for cell in cells])
    measured = np.asarray([cell[1] for cell in cells])
    if _are_one_time(predicted) or _are_one_time(measured):
        return None
    if logarithmic:
        if predicted.min() <= 0:
            return None
        predicted = np.log(predicted)
        measured = np.log(measured)
    kept = kept_cells([cell[2] for cell in cells])
    all_and_kept = np.vstack([np.ones((1, len(cells)), dtype=bool), kept])
    return calibration(predicted, measured, all_and_kept)


def _factor(logarithms: Sequence[float]) -> MetricValue | None:
    """
    The number with that logarithm, and its interval if all are given.

    `None` where the number is beyond all floats; where an end is, it has no interval.
    """
    if logarithms[0] > _LARGEST_LOGARITHM:
        return None
    if max(map(abs, logarithms)) >= _LARGEST_LOGARITHM:
        logarithms = logarithms[:1]
    numbers = map(exp, logarithms)
    return MetricValue(**dict(zip(_VALUE_AND_ENDS, numbers, strict=False)))


def robust_number(name: str, scores: Sequence[Score]) -> MetricValue | None:
    """
    Slope or intercept by Theil and Sen: medians, which a few odd cells do not move.

    Of job times alone, as the recalibrated error: for every phase they would take a while.
    """
    import numpy as np

    from scipy.stats import theilslopes

    predicted_s = np.asarray([score.predicted_s for score in scores])
    if scores[0].level != "job" or len(scores) < 3 or _are_one_time(predicted_s):
        return None
    with np.errstate(invalid="ignore"):  # the spread of few slopes, which is not used
        # Two cells of one predicted time have no slope between them.
        measured_s = [score.measured_s for score in scores]
        line = theilslopes(measured_s, _without_rounding(predicted_s))
    return MetricValue(value=float(getattr(line, name)))


def recalibrated_error(scores: Sequence[Score]) -> MetricValue | None:
    """
    Mean relative error after each prediction is corrected by the line of other inputs.

    The line that corrects a cell is fitted without the cells of its own input; `None` where what
    stays has no line.
    """
    import numpy as np

    from harness.base.stats.resampling import mean_interval

    scores = sorted(scores, key=lambda score: (score.predicted_s, score.measured_s))
    predicted = np.asarray([score.predicted_s for score in scores])
    measured = np.asarray([score.measured_s for score in scores])
    labels, groups = np.unique([score.input or score.cell for score in scores], return_inverse=True)
    if scores[0].level != "job" or _are_one_time(predicted):
        return None
    lines = calibration(predicted, measured, groups != np.arange(len(labels))[:, None])
    corrected = lines.intercept[groups] + lines.slope[groups] * predicted
    errors = (np.abs(corrected - measured) / measured).tolist()
    if not np.isfinite(errors).all():
        return None
    low, high = mean_interval(errors, weights=relative_weights(scores).tolist())
    return MetricValue(value=weighted_mean(errors, scores), low=max(0.0, low), high=high)


def order_of_configurations(scores: Sequence[Score]) -> MetricValue | None:
    """
    Kendall's tau-b between predicted and measured times of cells that share their input.

    Measured times that lie apart by no more than the noise of both are ties.  Such ties belong to
    pairs and not to values, which is why the pairs are counted here.  `None` where no two cells
    share an input, or one of both rows is ties alone.
    """
    import numpy as np

    predicted_s = np.asarray([score.predicted_s for score in scores])
    measured_s = np.asarray([score.measured_s for score in scores])
    noise_s = measured_s * np.asarray([score.floor or 0.0 for score in scores])
    inputs = np.asarray([score.input for score in scores])
    first, second = np.triu_indices(len(scores), 1)
    same_input = inputs[first] == inputs[second]
    first = first[same_input]
    second = second[same_input]
    apart_s = measured_s[first] - measured_s[second]
    tied = np.abs(apart_s) <= _WITHIN_NOISE * np.hypot(noise_s[first], noise_s[second])
    measured_signs = np.where(tied, 0.0, np.sign(apart_s))
    predicted_apart_s = predicted_s[first] - predicted_s[second]
    same = np.abs(predicted_apart_s) <= _ROUNDING * predicted_s.max(initial=0)
    predicted_signs = np.where(same, 0.0, np.sign(predicted_apart_s))
    counts = np.abs(measured_signs).sum() * np.abs(predicted_signs).sum()
    if not counts:
        return None
    return MetricValue(value=float((measured_signs * predicted_signs).sum() / np.sqrt(counts)))
