"""Looks at data that go on growing: at which level each may decide, and where more is measured."""

from __future__ import annotations

import math

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

LOOKS = 8  # at most
# Pocock (1977): tests at this level at each of eight looks are wrong in 5 of 100 families at most.
LOOK_ERROR = 0.0120
_PRIOR_REPEATS = 2  # as many degrees of freedom as the variance of all cells has in that of each


def shrunk_spreads(spreads: Numbers, repeats: Numbers) -> Numbers:
    """Standard deviations of cells, those of few repeats drawn to that of all."""
    import numpy as np

    freedoms = np.asarray(repeats) - 1.0
    pooled = (freedoms * spreads**2).sum() / max(1.0, freedoms.sum())
    shrunk: Numbers = np.sqrt(
        (_PRIOR_REPEATS * pooled + freedoms * spreads**2) / (_PRIOR_REPEATS + freedoms)
    )
    return shrunk


def most_useful(noise: Numbers, repeats: Numbers, number: int) -> list[int]:
    """
    Choose *number* cells, one after the other, in which one more repeat narrows a mean most.

    *noise* is the standard deviation of one repeat's part in each cell, *repeats* how many there
    are; a cell may be chosen more than once.
    """
    import numpy as np

    counts = np.array(repeats, dtype=float)
    chosen = []
    for _ in range(number):
        gains = noise**2 / (counts * (counts + 1))
        chosen.append(int(np.argmax(gains)))
        counts[chosen[-1]] += 1
    return chosen


def may_tell(gaps: Numbers, noise: Numbers, repeats: Numbers, *, margin: float) -> bool:
    """
    Whether more repeats of the same cells may tell the mean of *gaps* from 0, or equal ones apart.

    *noise* is the standard deviation of one repeat's part in each cell's gap.  More repeats take it
    away, and move the mean by twice its noise at most; what cells differ by otherwise they leave.
    Where even that is too much for one look, no repeat tells, but other cells may.
    """
    import numpy as np

    from scipy.special import stdtrit

    count = len(gaps)
    if count < 2:
        return False
    variances = noise**2 / repeats
    left = max(0.0, float(gaps.var(ddof=1) - variances.mean()))
    moves = 2 * math.sqrt(float(variances.sum())) / count
    reach = float(stdtrit(count - 1, 1 - LOOK_ERROR)) * math.sqrt(left / count)
    size = abs(float(np.mean(gaps)))
    # Of few cells even the rarest flip of signs is no rarer than a look allows.
    tells_nearer = 0.5**count <= LOOK_ERROR and size + moves >= reach
    return tells_nearer or margin - size + moves >= reach
