"""
Cells that are drawn by how far models disagree, and how much each then counts.

    [HH] M. Hansen, W. Hurwitz.  "On the Theory of Sampling from Finite Populations", Annals of
    Mathematical Statistics 14, 1943: draws with replacement, with chances that differ.

Where models predict the same, their errors are the same, and nothing is learnt of who is nearer.
So cells are drawn where they differ; a weight of 1 over the chance keeps means what they were.
"""

from __future__ import annotations

import hashlib
import math

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from numpy.typing import NDArray

    from harness.base.stats.resampling import Numbers

EVEN_SHARE = 0.5  # of the chances that all cells have alike


def disagreement(times_s: Iterable[float]) -> float:
    """
    How far models differ in a cell: the logarithm of their largest over their smallest time.

    0 of fewer than two times.
    """
    logarithms = [math.log(time_s) for time_s in times_s]
    return max(logarithms) - min(logarithms) if logarithms else 0.0


def draw_chances(disagreements: Numbers) -> Numbers:
    """
    Chance of each cell in one draw: p = 1/2 1/M + 1/2 d / sum of d, of M cells.

    The half that is even keeps weights bounded, whatever models say: no chance is below 1 / (2 M),
    so that no cell counts more than twice what it would in an even draw, and the variance of a mean
    is at most twice that of one.  Models that agree where they are wrong cost that factor, and bias
    nothing.  The *disagreements* are not all 0.
    """
    chances: Numbers = EVEN_SHARE / len(disagreements) + (1 - EVEN_SHARE) * (
        disagreements / disagreements.sum()
    )
    return chances


def draw_counts(chances: Numbers, draws: int, seed: int) -> NDArray[np.int64]:
    """
    How often each cell is drawn in so many *draws* with replacement, by its *chances*.

    Draw n takes the first cell up to which the chances add up to more than u(n) of their sum, with
    u = (b + 0.5) / 2^53 and b the highest 53 bits of the n-th eight bytes of SHAKE-256 of the text
    ``drawn SEED``: so another program draws the same cells.
    """
    import numpy as np

    digest = hashlib.shake_256(b"drawn %d" % seed).digest(8 * draws)
    integers = np.frombuffer(digest, dtype=">u8") >> np.uint64(11)
    uniform = (integers + 0.5) / 2.0**53
    ends = np.cumsum(chances)
    places = np.searchsorted(ends, uniform * ends[-1], side="right")
    counts: NDArray[np.int64] = np.bincount(places, minlength=len(chances))
    return counts


def drawn_weights(chances: Numbers, counts: NDArray[np.int64]) -> Numbers:
    """
    Share of each cell in a mean over the drawn ones: w = k / (N M p), [HH], made to add up to 1.

    k is how often it was drawn.  As the sum of k / (N M p) is 1 on average and not each time, means
    are ratios, whose bias is of the order of 1 / N; in return what is the same in all cells has no
    variance, and weights of a subset are made to add up to 1 in the same way.
    """
    inflated = counts / chances
    weights: Numbers = inflated / inflated.sum()
    return weights


def different_cells(candidates: int, draws: int) -> int:
    """
    How many of the *candidates* so many *draws* with replacement give, at least on average.

    As many as with equal chances, rounded down; chances that differ give fewer.

    >>> different_cells(47, 6), different_cells(47, 12), different_cells(6, 6)
    (5, 10, 3)
    """
    if not candidates:
        return 0
    return int(candidates * (1 - (1 - 1 / candidates) ** draws) + 1e-9)
