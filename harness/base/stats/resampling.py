"""
How far a number of many cells would move had other cells been drawn: leaving one out at a time.

One resampling for everything, by levels: repeats vary within cells, and cells within inputs.  What
is left out, one unit after the other (the jackknife), is the highest level that varied often
enough: inputs, because cells of one input vary together; or cells, where fewer than three inputs
were measured, and then what is said holds for those inputs alone.  The levels below need nothing
of their own: the mean of a cell carries the noise of its repeats already.

Student's t, with one degree of freedom less than there are units, keeps its word at few cells.
Percentiles of bootstrap resamples do not: of their "95 %" intervals half hold at two cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Masks = NDArray[np.bool_]

_LEAST_BEND = 1e-6  # below it a root of 1 and a little loses its digits
FEWEST_CELLS = 6  # of which a mean has an interval; fewer have their range
LEVEL = 0.95
FEWEST_INPUTS = 3  # two say nothing of a third
FEWEST_REFITS = 4  # of a profile, for its variance to be known at all


def kept_cells(inputs: Sequence[str]) -> Masks:
    """
    Give a row for each unit: which cells stay where that unit is left out.

    *inputs* are those of the cells; a cell whose input is not known (``""``) stands for itself.
    """
    import numpy as np

    labels = [name or f"\0{place}" for place, name in enumerate(inputs)]
    names, units = np.unique(labels, return_inverse=True)
    if len(names) < FEWEST_INPUTS:
        units = np.arange(len(inputs))
    kept: Masks = units != np.arange(units.max() + 1)[:, None]
    return kept


def jackknife_variance(replicates: Numbers) -> Numbers:
    """
    Variance of a number whose values with one unit left out lie along the last axis.

    Equal values have none, where rounding would leave a little.
    """
    import numpy as np

    is_equal = np.ptp(replicates, axis=-1) == 0
    variance: Numbers = (replicates.shape[-1] - 1) * replicates.var(axis=-1)
    return np.where(is_equal, 0.0, variance)


def prediction_interval(
    logarithms: Numbers, residuals: Numbers, level: float
) -> tuple[float, float] | None:
    """
    Interval (low, high) of a new value by jackknife+; `None` where too few values were left out.

    [Ba] R. Barber, E. Candes, A. Ramdas, R. Tibshirani.  "Predictive inference with the
    jackknife+", Annals of Statistics, 2021.  *logarithms* are predictions of the new value by fits
    without one known value each (CV+: without a few), *residuals* by how much the logarithm of
    that known value was missed.  Where either is not finite, such a fit bounds nothing.  Whatever
    the model, a new value lies in the interval with a probability of twice *level* - 1 at least,
    usually of *level*.
    """
    import numpy as np

    bounded = np.isfinite(logarithms + residuals)
    rank = int((1 - level) * (len(residuals) + 1) + 1e-9) - int((~bounded).sum())
    if rank <= 0:
        return None
    centres = logarithms[bounded]
    reach = np.abs(residuals[bounded])
    low = np.sort(centres - reach)[rank - 1]
    high = np.sort(centres + reach)[-rank]
    return float(np.exp(low)), float(np.exp(high))


def drawn_interval(logarithms: Numbers, level: float) -> tuple[float, float] | None:
    """Interval (low, high) of a new value by draws of its logarithm; `None` if one is infinite."""
    import numpy as np

    if not np.isfinite(logarithms).all():
        return None
    low, high = np.exp(np.quantile(logarithms, [(1 - level) / 2, (1 + level) / 2]))
    return float(low), float(high)


def jackknife_interval(value: float, replicates: Numbers) -> tuple[float, float]:
    """
    Interval (low, high) at 95 % of a number with its values where one unit was left out.

    Where few units make most of the variance, there are as few degrees of freedom.
    """
    from scipy.special import stdtrit

    influences = replicates - replicates.mean()
    if not (squares := float((influences**2).sum())):
        return value, value
    weight = 3 * squares**2 / float((influences**4).sum())  # about how many units count
    freedom = min(len(replicates) - 1.0, max(1.0, weight - 1))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2) * jackknife_variance(replicates) ** 0.5)
    return value - half, value + half


def unit_count(values: Sequence[float], inputs: Sequence[str] = ()) -> int:
    """Number of units of *values*: cells, or *inputs*; one that is not known is its cell's own."""
    if not inputs:
        return len(values)
    return len({name or place for place, name in enumerate(inputs)})


def mean_interval(
    values: Sequence[float], inputs: Sequence[str] = (), weights: Sequence[float] = ()
) -> tuple[float, float]:
    """
    Interval (low, high) at 95 % of the mean of the population of *values*.

    Units are the cells, or the *inputs* of the cells, where these are given.  Of fewer than six
    units it is the range of the cells: smallest and largest value.  Errors are skew, more near 0
    than far from it: Hall's transformation of Student's t (1992) moves both ends to where the long
    tail is.  *weights* say how much each cell counts, 1 on average; without them all count alike.
    """
    import numpy as np

    from scipy.special import stdtrit

    # In one order, so that sums are the same whatever the order of the cells.
    count = len(values)
    cells = sorted(zip(values, inputs or [""] * count, weights or [1.0] * count, strict=True))
    sample = np.asarray([value for value, _, _ in cells], dtype=float)
    counts = np.asarray([weight for _, _, weight in cells])
    if unit_count(values, inputs) < FEWEST_CELLS:
        return float(sample.min()), float(sample.max())
    kept = kept_cells([name for _, name, _ in cells])
    replicates = kept @ (counts * sample) / (kept @ counts)
    mean = float((counts * sample).mean())
    influences = replicates.mean() - replicates
    units = len(kept)
    # As shares of the largest, so that no power of them is too large or too small for a number.
    largest = float(np.abs(influences).max())
    if not largest:
        return mean, mean
    shares = influences / largest
    variance = float((shares**2).mean())
    bend = float((shares**3).mean()) / variance**1.5 / (3 * units**0.5)
    if abs(bend) < _LEAST_BEND:
        bend = _LEAST_BEND
    student = stdtrit(units - 1, (1 + LEVEL) / 2)
    spread = ((units - 1) * variance) ** 0.5 * largest
    low, high = (
        float(mean - spread * (np.cbrt(1 + 3 * bend * (end - bend / 2)) - 1) / bend)
        for end in (student, -student)
    )
    return min(low, mean), max(high, mean)
