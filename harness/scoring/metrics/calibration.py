"""
Metrics of what stands between predicted and measured times: lines, their recalibration, the order.

    measured = intercept + slope x predicted             by least squares; Theil-Sen beside it
    measured = factor x predicted ^ exponent             the same line through the logarithms
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum
from typing import NamedTuple

from harness.records.score import Metric, MetricValue, Score
from harness.scoring.metrics.errors import mean

_LARGEST_LOGARITHM = 700.0
_WITHIN_NOISE = 1.96  # standard deviations that two times lie apart at most, 95 % of the time


class Line(NamedTuple):
    """A fitted line; perfect is slope 1, intercept 0, R2 1."""

    slope: float
    intercept: float
    r2: float


def calibration(predicted_s: Sequence[float], measured_s: Sequence[float]) -> Line | None:
    """
    Least squares of measured on predicted times.

    `None` where a line says nothing: fewer than three points, or all with one predicted or one
    measured time.
    """
    points = list(zip(predicted_s, measured_s, strict=True))
    if len(points) < 3 or len(set(predicted_s)) < 2 or len(set(measured_s)) < 2:
        return None
    mean_x, mean_y = mean(predicted_s), mean(measured_s)
    sxx = fsum((x - mean_x) ** 2 for x in predicted_s)
    sxy = fsum((x - mean_x) * (y - mean_y) for x, y in points)
    syy = fsum((y - mean_y) ** 2 for y in measured_s)
    if not sxx or not syy:  # times apart by less than a float can square
        return None
    slope = sxy / sxx
    intercept = mean_y - slope * mean_x
    residual = fsum((y - intercept - slope * x) ** 2 for x, y in points)
    return Line(slope, intercept, 1 - residual / syy)


def number_of_line(
    scores: Sequence[Score], name: str, *, logarithmic: bool = False
) -> MetricValue | None:
    """
    The number of that *name* of the line through all cells, with its 95 % interval from six on.

    With *logarithmic* the line goes through the logarithms of the times, and the intercept is given
    as the factor that it means.
    """
    import numpy as np

    from harness.stats.resampling import FEWEST_CELLS, jackknife_interval, kept_cells

    predicted = np.asarray([score.predicted_s for score in scores])
    measured = np.asarray([score.measured_s for score in scores])
    if logarithmic:
        if predicted.min() <= 0:
            return None
        predicted, measured = np.log(predicted), np.log(measured)
    line = calibration(predicted.tolist(), measured.tolist())
    if line is None:
        return None
    finish = exp if logarithmic and name == "intercept" else float
    value = float(getattr(line, name))
    if len(scores) >= FEWEST_CELLS and name != "r2":
        # The line without each unit, from sums over centred times, in which little cancels.
        kept = kept_cells([score.input for score in scores]).astype(float)
        kept /= kept.sum(axis=1, keepdims=True)
        x, y = predicted - predicted.mean(), measured - measured.mean()
        variances = kept @ x**2 - (kept @ x) ** 2
        if variances.min() > 1e-12 * (x**2).max():
            slopes = (kept @ (x * y) - (kept @ x) * (kept @ y)) / variances
            intercepts = kept @ y + measured.mean() - slopes * (kept @ x + predicted.mean())
            replicates = slopes if name == "slope" else intercepts
            low, high = jackknife_interval(value, replicates)
            if finish is float or max(-low, high) < _LARGEST_LOGARITHM:
                return MetricValue(value=finish(value), low=finish(low), high=finish(high))
    return MetricValue(value=finish(value))


def robust_number(scores: Sequence[Score], name: str) -> MetricValue | None:
    """
    Slope or intercept by Theil and Sen: medians, which a few odd cells do not move.

    Of job times alone, as the recalibrated error: for every phase they would take a while.
    """
    import numpy as np

    from scipy.stats import theilslopes

    predicted_s = [score.predicted_s for score in scores]
    if scores[0].level != "job" or len(scores) < 3 or len(set(predicted_s)) < 2:
        return None
    with np.errstate(invalid="ignore"):  # the spread of few slopes, which is not used
        line = theilslopes([score.measured_s for score in scores], predicted_s)
    return MetricValue(value=float(getattr(line, name)))


def recalibrated_error(scores: Sequence[Score]) -> MetricValue | None:
    """
    Mean relative error after each prediction is corrected by the line of the others.

    The line that corrects a cell is fitted without the cells of its own input; `None` where what
    stays has no line.
    """
    from sklearn.model_selection import LeaveOneGroupOut

    from harness.stats.resampling import mean_interval

    predicted_s = [score.predicted_s for score in scores]
    measured_s = [score.measured_s for score in scores]
    inputs = [score.input or score.cell for score in scores]
    if scores[0].level != "job" or len(set(inputs)) < 2:
        return None
    errors = [0.0] * len(scores)
    for others, group in LeaveOneGroupOut().split(predicted_s, groups=inputs):
        line = calibration(
            [predicted_s[cell] for cell in others], [measured_s[cell] for cell in others]
        )
        if line is None:
            return None
        for cell in group:
            corrected_s = line.intercept + line.slope * predicted_s[cell]
            errors[cell] = abs(corrected_s - measured_s[cell]) / measured_s[cell]
    low, high = mean_interval(errors, [score.input for score in scores])
    return MetricValue(value=mean(errors), low=max(0.0, low), high=high)


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
    one, other = np.triu_indices(len(scores), 1)
    one, other = (side[inputs[one] == inputs[other]] for side in (one, other))
    apart_s = measured_s[one] - measured_s[other]
    tied = np.abs(apart_s) <= _WITHIN_NOISE * np.hypot(noise_s[one], noise_s[other])
    measured_signs = np.where(tied, 0.0, np.sign(apart_s))
    predicted_signs = np.sign(predicted_s[one] - predicted_s[other])
    counts = np.abs(measured_signs).sum() * np.abs(predicted_signs).sum()
    if not counts:
        return None
    return MetricValue(value=float((measured_signs * predicted_signs).sum() / np.sqrt(counts)))


SLOPE = Metric(
    title="slope",
    description="slope of measured over predicted times; 1 means no proportional error",
    unit="number",
    best="nearest to 1",
    compute=lambda scores: number_of_line(scores, "slope"),
)
INTERCEPT = Metric(
    title="intercept",
    description="measured time where the predicted one is 0; 0 s means no constant error",
    unit="seconds",
    best="nearest to 0",
    compute=lambda scores: number_of_line(scores, "intercept"),
)
R2 = Metric(
    title="R\u00b2",
    description="share of the variance of measured times that the line of predicted ones explains",
    unit="number",
    best="nearest to 1",
    compute=lambda scores: number_of_line(scores, "r2"),
)
EXPONENT = Metric(
    title="exponent",
    description="slope between the logarithms of both times; 1 means that errors do not grow with"
    " the size of a job",
    unit="number",
    best="nearest to 1",
    compute=lambda scores: number_of_line(scores, "slope", logarithmic=True),
)
FACTOR = Metric(
    title="factor",
    description="measured time of a job that is predicted to take 1 s, by the line between the"
    " logarithms; 1 s with exponent 1 means no proportional error",
    unit="seconds",
    best="nearest to 1",
    compute=lambda scores: number_of_line(scores, "intercept", logarithmic=True),
)
ROBUST_SLOPE = Metric(
    title="robust slope",
    description="slope of measured over predicted times by Theil and Sen: a median over all pairs"
    " of cells, which a few odd cells do not move",
    unit="number",
    best="nearest to 1",
    compute=lambda scores: robust_number(scores, "slope"),
)
ROBUST_INTERCEPT = Metric(
    title="robust intercept",
    description="measured time where the predicted one is 0, by Theil and Sen",
    unit="seconds",
    best="nearest to 0",
    compute=lambda scores: robust_number(scores, "intercept"),
)
RECALIBRATED = Metric(
    title="recalibrated",
    description="mean error once each prediction is corrected by the calibration line of the cells"
    " of all other inputs: what is left when constant and proportional errors are gone",
    unit="share",
    best="lowest",
    compute=recalibrated_error,
)
TAU = Metric(
    title="tau",
    description="Kendall's tau-b over the configurations of one input: 1 where the model has their"
    " order, 0 where it says nothing of it; times apart by less than their noise are ties",
    unit="number",
    best="highest",
    compute=order_of_configurations,
)
