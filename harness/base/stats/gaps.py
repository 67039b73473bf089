"""
Gaps: the noise of that between two predictors in a cell, and tests of those between two estimates.

Everything is an array; axes before the last are further families, each judged on its own, so that a
simulation is one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.stats.resampling import LEVEL

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

_POWER = 0.8  # "would tell" and "would show" mean in four cases of five
POWER_QUANTILE = 0.8416  # of the normal distribution at that power


def holm(probabilities: Numbers) -> Numbers:
    """Correct the probabilities along the last axis, one family, for their number."""
    import numpy as np

    order = np.argsort(probabilities, axis=-1)
    factors = np.arange(probabilities.shape[-1], 0, -1)
    ranked = np.take_along_axis(probabilities, order, -1) * factors
    corrected = np.empty_like(probabilities)
    np.put_along_axis(corrected, order, np.minimum(np.maximum.accumulate(ranked, -1), 1.0), -1)
    return corrected


def gap_noise(lower: Numbers, upper: Numbers, floors: Numbers) -> Numbers:
    """
    Noise of the difference of two errors in a cell, by that of its measured mean, which is 1 here.

    Where the measured value lies between the predictions, a longer one is nearer to the upper and
    farther from the lower; beyond both, it changes their errors alike.  No noise makes the errors
    differ by more than the predictions do.
    """
    import numpy as np

    between = (lower - 2 * floors < 1) & (upper + 2 * floors > 1)
    apart = upper - lower
    noise: Numbers = np.where(
        between, np.minimum(apart, (lower + upper) * floors), apart * np.minimum(floors, 1.0)
    )
    return noise


def change_tests(
    gaps: Numbers, variances: Numbers, freedoms: Numbers, *, margin: float
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """
    Welch's test of *gaps* between two estimates, which lie along the last axis: one family.

    The first axis of *variances* and of their *freedoms* are the two estimates.  Returned are the
    ends of the 95 % interval of each gap, and two chances by Holm's method: that equal estimates
    differ by so much, and that two that lie the margin apart differ by so little.
    """
    import numpy as np

    from scipy.special import stdtr, stdtrit

    parts = np.maximum(variances, np.finfo(float).tiny ** 0.25)  # what never varies is certain
    scale = np.sqrt(parts.sum(axis=0))
    freedom = _welch(parts, freedoms)
    size = np.abs(gaps)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * scale
    distinct = 2 * stdtr(freedom, -size / scale)
    equal = stdtr(freedom, (size - margin) / scale)
    return gaps - half, gaps + half, holm(distinct), holm(equal)


def shown_sizes(variances: Numbers, freedoms: Numbers, *, error: float) -> Numbers:
    """
    The smallest gap between two estimates that `change_tests` would show, in four cases of five.

    The first axis of *variances* and of their *freedoms* are the two estimates; *error* is the
    chance of a false alarm that the test is left with: that of its family by its size.  The power
    is that of the noncentral t for the given spreads; a few repeats hardly tell these, and then
    it is up to a tenth less.
    """
    import numpy as np

    from scipy.special import nctdtrinc, stdtrit

    freedom = _welch(variances, freedoms)
    shown = np.asarray(nctdtrinc(freedom, 1 - _POWER, stdtrit(freedom, 1 - error / 2)))
    sizes: Numbers = shown * np.sqrt(variances.sum(axis=0))
    return sizes


def _welch(variances: Numbers, freedoms: Numbers) -> Numbers:
    """Welch and Satterthwaite's degrees of freedom of a gap between two estimates."""
    freedom: Numbers = variances.sum(axis=0) ** 2 / (variances**2 / freedoms).sum(axis=0)
    return freedom
