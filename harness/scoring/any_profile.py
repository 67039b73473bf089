"""
With any profile of this kind: how far a difference of two models rests on the trials profiled.

A verdict is one on predictions by one profile, whose numbers vary as the trials vary that it was
fitted to.  How much that is worth is seen by leaving out one trial of each of some cells, whose
other trials stay: so no range and no regime is lost.  A fit learns from all trials together, and so
they are one sample (the jackknife): with weights of each cell's own trials it would vary too little
(bench/bench_size.py).  Of profiles whose cells ran once each it is
not known.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.base.records.score import Score
from harness.scoring.weights import relative_weights

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers


class Anew(NamedTuple):
    """Job times of a model in a cell by profiles without some trials, all of one *profile*."""

    profile: str
    times_s: Sequence[float | None]


# By model and cell.
AnewByCell = Mapping[tuple[str, str], Anew]


class ProfileSpread(NamedTuple):
    """The standard deviation of a difference over profiles, and its degrees of freedom."""

    deviation: float
    freedom: float


def profile_spread(
    first: Sequence[Score], second: Sequence[Score], anew: AnewByCell
) -> ProfileSpread | None:
    """
    How far the mean difference of the errors of two models varies with the profiles.

    Both are scored in the same cells.  `None` where that is not known: where trials of a profile
    were not repeated, or a model has no answer by one of those without them.
    """
    cells = (score.cell for score in first)
    weight_of_cell = dict(zip(cells, relative_weights(first).tolist(), strict=True))
    by_profile = defaultdict[str, list[tuple[Score, Score]]](list)
    for pair in zip(first, second, strict=True):
        known = [anew.get((score.model, score.cell)) for score in pair]
        if None in known or not all(found.times_s for found in known if found is not None):
            return None
        by_profile[known[0].profile if known[0] else ""].append(pair)
    variances = list[float]()
    freedoms = list[float]()
    for pairs in by_profile.values():
        moved = _moved_gaps(pairs, anew, weight_of_cell)
        if moved is None or len(moved) < 2:
            return None
        count = len(moved)
        squares = math.fsum(each**2 for each in moved)
        variances.append((1 - 1 / count) * squares / len(first) ** 2)
        freedoms.append(count - 1.0)
    total = math.fsum(variances)
    if not total:
        return ProfileSpread(0.0, math.fsum(freedoms))
    parts = zip(variances, freedoms, strict=True)
    freedom = total**2 / math.fsum(variance**2 / own for variance, own in parts)
    return ProfileSpread(math.sqrt(total), freedom)


def _moved_gaps(
    pairs: Sequence[tuple[Score, Score]], anew: AnewByCell, weight_of_cell: Mapping[str, float]
) -> list[float] | None:
    """By how much the weighted sum of the gaps of *pairs* moves with each other profile."""
    import numpy as np

    errors: list[Numbers] = []
    for place in (0, 1):
        row = [pair[place] for pair in pairs]
        times_s = [anew[score.model, score.cell].times_s for score in row]
        if len({len(of_cell) for of_cell in times_s}) > 1:
            return None
        # `None`, a profile without an answer, becomes NaN.
        shares = np.array(times_s, dtype=float).T / [score.measured_s for score in row]
        errors.append(np.abs(shares - 1) - [score.relative_error for score in row])
    weights = [weight_of_cell[score.cell] for score, _ in pairs]
    moved = ((errors[0] - errors[1]) * weights).sum(axis=1)
    return None if np.isnan(moved).any() else [float(each) for each in moved]


def widened(
    ends: tuple[float, float], difference: float, spread: ProfileSpread, error: float
) -> tuple[float, float]:
    """
    The *ends* of a *difference* as tested, with what profiles add at a one-sided *error*.

    Both vary on their own: their distances add as squares do.
    """
    from scipy.special import stdtrit

    reach = float(stdtrit(spread.freedom, 1 - error)) * spread.deviation
    low, high = ends
    return (
        difference - math.hypot(difference - low, reach),
        difference + math.hypot(high - difference, reach),
    )
