"""Looks at data that go on growing: at which level each may decide, and where more is measured."""

from __future__ import annotations

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
