"""
What a comparison of two runs could have shown: where nothing moved, whether it would have.

A change that is smaller than the noise of both runs is not seen.  From that noise and the numbers
of repeats follows the smallest change of a workload's job times that is shown in four cases of
five, and how many more jobs would show a change that somebody may care for.
"""

from __future__ import annotations

import math

from collections.abc import Sequence
from itertools import cycle
from statistics import fmean
from typing import NamedTuple

from harness.base.documents.wording import count
from harness.base.stats.gaps import shown_sizes
from harness.base.stats.spread import ENOUGH_REPEATS
from harness.scoring.comparisons import FAMILY_ERROR

WANTED = 0.1  # the share by which jobs change, of which anybody would like to hear
_MOST_REPEATS = 1000
_MOST_GAP = 99.0  # of logarithms: a factor beyond it is written no other way


class Repeats(NamedTuple):
    """
    How often each cell of a workload was repeated in one *run*, and its noise.

    *counts* and *floors* are of the cells that are compared: repeats, and the standard deviation of
    their mean as a share of it (NaN: not known).  *freedom* is of the deviation that cells with few
    repeats share.
    """

    run: str
    counts: Sequence[int]
    floors: Sequence[float]
    freedom: int


class Sensitivity(NamedTuple):
    """
    What would have shown of the job times of a *workload*.

    *factor* is the smallest change that is shown in four cases of five, as a factor of at least 1
    (`None`: the noise is not known, as *reason* says).  *repeats* more of each cell in both runs,
    *jobs* more in each of them, would show a change by the share *change*, or where that is `None`
    would tell the noise (`None`: no number of repeats that anybody would run).
    """

    workload: str
    factor: float | None
    change: float | None
    repeats: int | None
    jobs: int | None
    reason: str

    @property
    def is_blind(self) -> bool:
        """Whether a change of `WANTED` would not have shown."""
        return self.factor is None or self.factor > 1 + WANTED

    def words(self) -> str:
        """What would not have shown, and what would."""
        if self.factor is None:
            seen = f"{self.reason}, and no change would show"
        else:
            seen = f"less than a factor of {self.factor:.3g} would not show"
        shown = "tell the noise"
        if self.change is not None:
            shown = f"show a change by {100 * self.change:.2g} %"
        if self.repeats is None or self.jobs is None:
            return f"{seen}; {_MOST_REPEATS} more repeats would not {shown}"
        more = f"{count(self.jobs, 'more job')} in each run"
        return f"{seen}; {more}, {count(self.repeats, 'repeat')} of each cell, would {shown}"


def sensitivity_of(
    workload: str, sides: Sequence[Repeats], measured_gap: float, family_size: int
) -> Sensitivity:
    """
    What the two *sides* of a comparison would have shown of a *workload*.

    *measured_gap* is the difference of the logarithms of its times: so large a change is asked for,
    and `WANTED` at least.  The test is one of a family of *family_size*.
    """
    import numpy as np

    deviations = [_deviation(side) for side in sides]
    known = [deviation for deviation in deviations if not math.isnan(deviation)]
    cells = len(sides[0].counts)
    silent = [
        side.run for side, deviation in zip(sides, deviations, strict=True) if math.isnan(deviation)
    ]
    reason = f"nothing tells the noise of {' and '.join(silent)}" if silent else ""
    if not known:
        return Sensitivity(workload, None, None, 1, cells, reason)
    error = FAMILY_ERROR / family_size
    factor = None
    if not silent:
        now = [(_variance(side), side_freedom(side, 0)) for side in sides]
        variances, freedoms = np.asarray(now, dtype=float).T
        factor = math.exp(min(float(shown_sizes(variances, freedoms, error=error)), _MOST_GAP))
    wanted_gap = max(abs(measured_gap), math.log1p(WANTED))
    repeats = _repeats_that_show(sides, known, wanted_gap, error)
    jobs = None if repeats is None else cells * repeats
    return Sensitivity(workload, factor, math.expm1(wanted_gap), repeats, jobs, reason)


def _deviation(side: Repeats) -> float:
    """Standard deviation of one repeat as a share of its cell's mean; NaN: not known."""
    squares = [floor**2 * repeats for floor, repeats in zip(side.floors, side.counts, strict=True)]
    return math.sqrt(fmean(squares))


def _variance(side: Repeats) -> float:
    """Variance of the mean over the cells, of logarithms."""
    return sum(floor**2 for floor in side.floors) / len(side.floors) ** 2


def side_freedom(side: Repeats, more: int) -> int:
    """Degrees of freedom of a side's noise with so many *more* repeats, as tests count them."""
    shared = side.freedom + more * len(side.counts)
    counts = [repeats + more for repeats in side.counts]
    freedoms = [repeats - 1 if repeats >= ENOUGH_REPEATS else shared for repeats in counts]
    return max(1, *freedoms)


def _repeats_that_show(
    sides: Sequence[Repeats], deviations: Sequence[float], gap: float, error: float
) -> int | None:
    """
    Fewest further repeats of each cell, in both runs, that show a *gap*; `None`: too many.

    A run whose noise is not known is taken to have that of the other: *deviations* has one or two.
    """
    import numpy as np

    more = np.arange(1, _MOST_REPEATS + 1)
    variances = np.empty((2, len(more)))
    freedoms = np.empty((2, len(more)))
    for place, (side, deviation) in enumerate(zip(sides, cycle(deviations), strict=False)):
        counts = np.asarray(side.counts)[:, None] + more
        variances[place] = deviation**2 * (1 / counts).sum(axis=0) / len(side.counts) ** 2
        freedoms[place] = [side_freedom(side, int(repeats)) for repeats in more]
    is_shown = shown_sizes(variances, freedoms, error=error) <= gap
    return int(more[is_shown.argmax()]) if is_shown.any() else None
