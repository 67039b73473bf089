"""
Which experiment to run next: the one that narrows the intervals most for each second it takes.

Greedy D-optimal design (Fedorov 1972; Atkinson, Donev, Tobias, Optimum Experimental Designs, 2007,
chapter 12): what is known of p coefficients is their information matrix, the inverse of their
covariance; an experiment adds its own, X'X over the squares of its rows' errors, whatever comes out
of it.  So a whole programme can be chosen before anything is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def information(design: Numbers, errors: Numbers) -> Numbers:
    """Information of rows of *design* whose values are known to within their *errors*."""
    weighted: Numbers = design / errors[:, None]
    return weighted.T @ weighted


def choose(
    gathered: Numbers, offered: Numbers, seconds: Numbers, budget_s: float
) -> Iterator[tuple[int, float]]:
    """
    Yield the next experiment of those *offered*, and its gain, until none fits the *budget_s*.

    *gathered* is the information so far (p x p, positive definite), *offered* that of each
    experiment (n x p x p), *seconds* what each takes.  The gain is by how much the logarithm of the
    volume of the confidence region falls, half that of the determinant.  One may be chosen several
    times.
    """
    import numpy as np

    while (fits := np.flatnonzero(seconds <= budget_s)).size:
        _, log_gathered = np.linalg.slogdet(gathered)
        _, log_with_each = np.linalg.slogdet(gathered + offered[fits])
        volumes = log_with_each - log_gathered
        best = int(np.argmax(volumes / seconds[fits]))
        place = int(fits[best])
        yield place, float(volumes[best]) / 2
        gathered = gathered + offered[place]
        budget_s -= float(seconds[place])
