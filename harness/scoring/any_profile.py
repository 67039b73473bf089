"""
With any profile of this kind: how far a difference of two models rests on the trials profiled.

A verdict is one on predictions by one profile, whose numbers vary as the trials vary that it was
fitted to.  How much that is worth is seen by leaving out one trial of each of some cells, whose
other trials stay: so no range and no regime is lost.  A fit learns from all trials together, and so
they are one sample (the jackknife): with weights of each cell's own trials it would vary too little
(bench/bench_size.py).  Of profiles whose cells ran once each it is
not known.

A trial moves a profile little, and other profiles lie farther off.  Errors bend where a prediction
is right, so that a small move shows less than a large one: each is stretched to the size of what
separates two profiles, to both sides, and the side counts on which the difference moves more.
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
    weights = relative_weights(first)
    spreads = list[ProfileSpread]()
    for places in _places_by_profile(first, anew).values():
        first_moves = _moved_errors([first[place] for place in places], anew)
        second_moves = _moved_errors([second[place] for place in places], anew)
        if first_moves is None or second_moves is None or len(first_moves) != len(second_moves):
            return None
        moved_gaps = ((first_moves - second_moves) * weights[places]).sum(axis=-1) / len(first)
        spreads.append(stretched_spread(moved_gaps))
    return added_spreads(spreads)


def stretched_spread(moves: Numbers) -> ProfileSpread:
    """
    The spread of a number that moves by so much with each trial (2 sides x trials).

    Moves are those of `stretched_shares`.  Of a number that follows a profile in a straight line it
    is the jackknife's.
    """
    trial_count = moves.shape[1]
    variance = float((moves**2).max(axis=0).sum()) / trial_count
    return ProfileSpread(math.sqrt(variance), trial_count - 1.0)


def stretched_shares(share: Numbers, without: Numbers) -> Numbers:
    """
    *share* (of cells) moved as each of the shares *without* a trial lies off, stretched.

    By the root of the trials less one (K x cells) a move is as large as a profile is off; to both
    sides: 2 x K x cells.
    """
    import numpy as np

    reach = math.sqrt(len(without) - 1) * (without - share)
    moved: Numbers = np.stack([share + reach, share - reach])
    return moved


def added_spreads(spreads: Sequence[ProfileSpread]) -> ProfileSpread:
    """
    The spread of a sum of parts that vary on their own.

    Its degrees of freedom are those of Welch and Satterthwaite; of parts that never vary, their
    sum.
    """
    variance = math.fsum(spread.deviation**2 for spread in spreads)
    if not variance:
        return ProfileSpread(0.0, math.fsum(spread.freedom for spread in spreads))
    shares = math.fsum(spread.deviation**4 / spread.freedom for spread in spreads)
    return ProfileSpread(math.sqrt(variance), variance**2 / shares)


def _places_by_profile(row: Sequence[Score], anew: AnewByCell) -> Mapping[str, list[int]]:
    """The places of the cells of *row* by the profile that they are predicted from."""
    places_by_profile = defaultdict[str, list[int]](list)
    for place, score in enumerate(row):
        answers = anew.get((score.model, score.cell))
        places_by_profile[answers.profile if answers else ""].append(place)
    return places_by_profile


def _moved_errors(row: Sequence[Score], anew: AnewByCell) -> Numbers | None:
    """By how much the errors of *row* move with each other profile: 2 sides x profiles x cells."""
    import numpy as np

    answers = [anew.get((score.model, score.cell)) for score in row]
    times_s = [answer.times_s if answer else () for answer in answers]
    counts = {len(cell_times) for cell_times in times_s}
    if len(counts) > 1 or min(counts) < 2:
        return None
    # `None`, a profile without an answer, becomes NaN.
    measured_s = np.array([score.measured_s for score in row])
    share = np.array([score.predicted_s for score in row]) / measured_s
    moved = stretched_shares(share, np.array(times_s, dtype=float).T / measured_s)
    moves: Numbers = np.abs(moved - 1) - np.abs(share - 1)
    return None if np.isnan(moves).any() else moves


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
