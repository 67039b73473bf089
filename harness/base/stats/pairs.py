"""
Which of two predictors is nearer to the measured values: tests of every pair at once.

Everything is an array whose last axes are rows of predictors and cells; axes before them are
further families, each judged on its own, so that a simulation is one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.base.stats.resampling import FEWEST_CELLS, LEVEL, jackknife_variance, mean_variance

if TYPE_CHECKING:
    from harness.base.stats.resampling import Masks, Numbers

# The spread of a few cells may by chance be far smaller than their noise; less than half of what
# the floors give is not believed (simulated: equal models then stay equal, and gains are found).
_LEAST_NOISE = 0.5
_POWER = 0.8  # "would tell" and "would show" mean in four cases of five
POWER_QUANTILE = 0.8416  # of the normal distribution at that power


@dataclass(frozen=True, slots=True)
class PairTests:
    """
    Tests of the pairs (0, 1), (0, 2), ... along the last axis.

    *difference* is the first's mean error less the second's, from *low* to *high* at 95 % (of fewer
    cells than six: the range of the cells).  *variance* is that of the difference, *noise* the part
    that repeats explain, *profile* the one of the profile (NaN where that counts as given); *units*
    and *refits* are how many were left out for both.  *distinct* and *equal* are probabilities by
    Holm's method: of so large a difference between equals, and of so small a one between predictors
    that lie the margin apart.
    """

    difference: Numbers
    low: Numbers
    high: Numbers
    variance: Numbers
    noise: Numbers
    profile: Numbers
    units: int
    refits: int
    distinct: Numbers
    equal: Numbers


def holm(probabilities: Numbers) -> Numbers:
    """Correct the probabilities along the last axis, one family, for their number."""
    import numpy as np

    order = np.argsort(probabilities, axis=-1)
    factors = np.arange(probabilities.shape[-1], 0, -1)
    ranked = np.take_along_axis(probabilities, order, -1) * factors
    corrected = np.empty_like(probabilities)
    np.put_along_axis(corrected, order, np.minimum(np.maximum.accumulate(ranked, -1), 1.0), -1)
    return corrected


def pair_tests(
    shares: Numbers,
    floors: Numbers,
    kept: Masks,
    *,
    margin: float,
    freedom: int = 1,
    refits: Numbers | None = None,
) -> PairTests:
    """
    Test each pair of predictors.

    *shares* (predictors x cells) are predicted over measured values, *floors* the noise of each
    cell's mean as a share of it.  With several cells the test is Student's t over the units of
    *kept* (`kept_cells`), and no variance is smaller than half of what the floors alone give.
    With one cell it is Student's t of the measured mean against the middle of the two predictions,
    with *freedom* that of its floor: all that varies is the repeats.

    *refits* (refits x predictors x cells) are *shares* by profiles that were fitted without some of
    their cells, NaN where a predictor then has no answer.  Their jackknife variance is added;
    without them, or with an answer missing, the profile of a pair counts as given.
    """
    import numpy as np

    from scipy.special import stdtr, stdtrit

    cells = shares.shape[-1]
    first, second = np.triu_indices(shares.shape[-2], 1)
    errors = np.abs(shares - 1)
    gaps = errors[..., first, :] - errors[..., second, :]
    lower = np.minimum(shares[..., first, :], shares[..., second, :])
    upper = np.maximum(shares[..., first, :], shares[..., second, :])
    noise_of_cells = gap_noise(lower, upper, floors[..., None, :])
    noise = (noise_of_cells**2).sum(axis=-1) / cells**2
    difference = gaps.mean(axis=-1)
    low = gaps.min(axis=-1)
    high = gaps.max(axis=-1)
    variance = unit_variance = noise
    if cells > 1:
        freedom = len(kept) - 1
        unit_variance = mean_variance(gaps, kept)
        variance = np.maximum(unit_variance, _LEAST_NOISE * noise)
    profile = np.full(difference.shape, np.nan)
    profile_freedom = 1
    if refits is not None:
        refit_errors = np.abs(refits - 1)
        refit_gaps = refit_errors[..., first, :] - refit_errors[..., second, :]
        refit_differences = refit_gaps.mean(axis=-1)
        profile = jackknife_variance(np.moveaxis(refit_differences, 0, -1))
        profile_freedom = len(refits) - 1
    added = np.nan_to_num(profile)
    if cells > 1:
        share = variance / np.maximum(variance + added, np.finfo(float).tiny)
        share[added == 0] = 1.0
        # Welch and Satterthwaite's, but a profile that varies makes no verdict more certain.
        welch = 1 / (share**2 / freedom + (1 - share) ** 2 / profile_freedom)
        freedoms = np.minimum(freedom, welch)
        if cells >= FEWEST_CELLS:
            half = stdtrit(freedoms, (1 + LEVEL) / 2) * np.sqrt(unit_variance + added)
            low = difference - half
            high = difference + half
        scale = np.sqrt(variance + added)
        scale[scale == 0] = np.finfo(float).tiny
        distance = np.abs(difference) / scale
        inner = (margin - np.abs(difference)) / scale
    else:
        # Around the middle, the errors differ by twice what the measured mean lies from it.
        freedoms = np.where(added > 0, min(freedom, profile_freedom), freedom)
        noise_of_middle = np.sqrt(floors**2 + added / 4)
        distance, inner = _one_cell(lower[..., 0], upper[..., 0], noise_of_middle, margin)
    same = (lower == upper).all(axis=-1)
    return PairTests(
        difference=difference,
        low=low,
        high=high,
        variance=variance + added,
        noise=noise,
        profile=profile,
        units=freedom + 1,
        refits=profile_freedom + 1,
        distinct=holm(np.where(same, 1.0, 2 * stdtr(freedoms, -distance))),
        equal=holm(np.where(same, 0.0, stdtr(freedoms, -inner))),
    )


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


def _one_cell(
    lower: Numbers, upper: Numbers, floors: Numbers, margin: float
) -> tuple[Numbers, Numbers]:
    """
    Distances, in units of the noise, of the measured mean of one cell from where verdicts change.

    From the middle of the two predictions, where their errors are equal, and from the nearer of the
    two values at which the errors differ by the margin (below 0 beyond it).
    """
    import numpy as np

    distance = np.abs(1 - (lower + upper) / 2) / floors
    apart = upper - lower
    shortest = np.where(apart < margin * lower, apart / margin, (lower + upper) / (2 + margin))
    longest = np.where(apart < margin * upper, np.inf, (lower + upper) / (2 - margin))
    return distance, np.minimum(1 - shortest, longest - 1) / floors


def fewest(
    difference: float, variances: Numbers, freedoms: Numbers, *, margin: float, error: float
) -> int | None:
    """
    Index of the first variance at which a difference of that size gets a verdict; `None` of no one.

    That is: in four cases of five it is proved to differ from 0, or to be smaller than the margin.
    """
    import numpy as np

    from scipy.special import stdtrit

    scales = np.sqrt(variances)
    size = abs(difference)
    proved = size >= (stdtrit(freedoms, 1 - error / 2) + POWER_QUANTILE) * scales
    proved |= margin - size >= (stdtrit(freedoms, 1 - error) + POWER_QUANTILE) * scales
    return int(np.argmax(proved)) if proved.any() else None


def change_tests(
    gaps: Numbers, variances: Numbers, freedoms: Numbers, *, margin: float
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """
    Welch's test of *gaps* between two estimates, which lie along the last axis: one family.

    The first axis of *variances* and of their *freedoms* are the two estimates.  Returned are the
    ends of the 95 % interval of each gap, and `distinct` and `equal` of `PairTests`.
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
