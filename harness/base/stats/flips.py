"""
Which of two predictors is nearer: how often chance alone gives as large a difference as theirs.

If two predictors are equal, the difference of their errors might in each unit as well have the
other sign.  So signs are flipped, in all ways or in many, and what is seen is compared with that.
All pairs of a family are flipped together, by the same signs: what they share is then counted once
(step-down max-t: Westfall and Young, 1993).  Nothing is drawn by a generator of a library:
docs/scores.md states the signs, so that another program gets the same digits.
"""

from __future__ import annotations

import hashlib
import math

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from harness.base.stats.resampling import Numbers

Side = Literal["first", "either"]

FEWEST_UNITS = 6  # five can be flipped in 32 ways: the rarest is no rarer than 1 in 20
ALL_FLIPS_TO = 12  # units: so many have 4,096 flips
FLIPS = 4096
DRAWS = 200  # of a control
_NEAR = 1e-9  # sums of the same numbers in another order differ by less
_CANCELLED = 1e-14  # of a square: what is left of the same number less itself


@dataclass(frozen=True, slots=True)
class FlipTests:
    """
    Tests of pairs, which lie along the first axis: one family.

    *difference* is the mean gap of each pair, from *low* to *high*: all values that the test does
    not contradict, infinite where it contradicts none.  *chance* is how often equal predictors
    would give as large a difference in this family.
    """

    difference: Numbers
    low: Numbers
    high: Numbers
    chance: Numbers


@cache
def flip_signs(unit_count: int) -> Numbers:
    """
    Signs of the units in each flip: flips x units, the first flip has none.

    To 12 units all flips, the n-th by the binary digits of n, the last unit by the last digit; of
    more units 4,096, the n-th by the bits of SHAKE-256 of the text n.  1 is a minus.
    """
    import numpy as np

    if unit_count <= ALL_FLIPS_TO:
        numbers = np.arange(2**unit_count)[:, None]
        is_minus = numbers >> np.arange(unit_count)[::-1] & 1 == 1
    else:
        length = -(-unit_count // 8)
        digests = [hashlib.shake_256(b"%d" % number).digest(length) for number in range(1, FLIPS)]
        packed = np.frombuffer(bytes(length) + b"".join(digests), dtype=np.uint8)
        bits = np.unpackbits(packed.reshape(FLIPS, length), axis=1)[:, :unit_count]
        is_minus = bits == 1
    signs: Numbers = np.where(is_minus, -1.0, 1.0)
    signs.setflags(write=False)
    return signs


def unit_sums(
    gaps: Numbers, units: Sequence[str], weights: Numbers | None = None
) -> tuple[Numbers, Numbers]:
    """
    What each unit adds to the mean of *gaps* (pairs x cells), and its share of the cells.

    Cells of one name in *units* are one unit; units are in the order of their names.  *weights* say
    how much each cell counts, 1 on average; without them all count alike.
    """
    import numpy as np

    names, places = np.unique(np.asarray(units), return_inverse=True)
    belongs = (places[:, None] == np.arange(len(names))).astype(float)
    if weights is not None:
        belongs *= weights[:, None]
    shares: Numbers = belongs.mean(axis=0)
    sums: Numbers = gaps @ belongs / gaps.shape[-1]
    return sums, shares


def flip_tests(
    gaps: Numbers,
    units: Sequence[str],
    *,
    side: Side,
    error: float,
    weights: Numbers | None = None,
) -> FlipTests:
    """
    Test each pair of the family *gaps*: pairs x cells, the first's error less the second's.

    *side*: whether the first is nearer (below 0), or either one is.  At *error* the family is wrong
    in so many cases at most; `chance` is corrected for that, step by step from the clearest pair.
    Cells of one name in *units* are flipped together: six units at least.  *weights* are those of
    `unit_sums`.
    """
    import numpy as np

    sums, shares = unit_sums(gaps, units, weights)
    lengths = np.sqrt((sums**2).sum(axis=-1))
    lengths[lengths == 0] = 1.0  # no gap anywhere: its distance is 0
    scaled = sums / lengths[:, None]
    distances = -scaled.sum(axis=-1)
    flipped = -flip_signs(sums.shape[-1]) @ scaled.T
    if side == "either":
        distances = np.abs(distances)
        flipped = np.abs(flipped)
    chance, limits = _step_down(distances, flipped, error)
    weighted_gaps = gaps if weights is None else gaps * weights
    difference = weighted_gaps.mean(axis=-1)
    low, high = _ends(sums, shares, limits)
    return FlipTests(difference, low, high, chance)


def held_at_all(tests: Sequence[FlipTests]) -> FlipTests:
    """
    What holds in all *tests*, which are of the same pairs: with the first one's differences.

    The interval of each pair covers all of its intervals, and its chance is the largest.
    """
    import numpy as np

    first = tests[0]
    low = np.min([found.low for found in tests], axis=0)
    high = np.max([found.high for found in tests], axis=0)
    chance = np.max([found.chance for found in tests], axis=0)
    return FlipTests(first.difference, low, high, chance)


def flip_chances(gaps: Numbers, units: Sequence[str], weights: Numbers | None = None) -> Numbers:
    """
    Chance of each pair asked alone whether the first is nearer: families of one pair each.

    *weights* are those of `unit_sums`.
    """
    import numpy as np

    sums, _ = unit_sums(gaps, units, weights)
    lengths = np.sqrt((sums**2).sum(axis=-1, keepdims=True))
    lengths[lengths == 0] = 1.0
    scaled = sums / lengths
    least = -scaled.sum(axis=-1)
    flipped = -flip_signs(sums.shape[-1]) @ scaled.T
    chances: Numbers = (flipped >= least - _NEAR * np.abs(least)).mean(axis=0)
    return chances


def _step_down(distances: Numbers, flipped: Numbers, error: float) -> tuple[Numbers, Numbers]:
    """
    Chance of each distance in the family, and the limit that it is compared with.

    From the largest distance on: chance gives as much where the largest of this and all smaller
    ones does in a flip.  Once a chance is above *error*, no later limit is lower.
    """
    import numpy as np

    order = np.argsort(-distances, kind="stable")
    chance = np.empty_like(distances)
    limits = np.empty_like(distances)
    allowed = math.floor(error * len(flipped) + _NEAR)
    so_far = 0.0
    stopped_at = -math.inf
    # The largest of a flip over the pairs from each step on.
    largest = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
    for step, place in enumerate(order):
        reached = largest[:, step] >= distances[place] - _NEAR * abs(distances[place])
        so_far = max(so_far, float(reached.mean()))
        chance[place] = so_far
        limit = float(np.partition(largest[:, step], -1 - allowed)[-1 - allowed])
        limits[place] = max(limit, stopped_at)
        if so_far > error:
            stopped_at = max(stopped_at, limits[place])
    return chance, limits


def _ends(sums: Numbers, shares: Numbers, limits: Numbers) -> tuple[Numbers, Numbers]:
    """
    Ends of the differences that are not farther from what is seen than *limits*.

    A difference d leaves the units *sums* - d *shares*; its distance is their sum over the root of
    the sum of their squares.  That it is the limit is a quadratic equation.
    """
    import numpy as np

    seen = sums.sum(axis=-1)
    squares = (sums**2).sum(axis=-1)
    mixed = sums @ shares
    limited = limits**2
    first = 1 - limited * (shares**2).sum()
    second = seen - limited * mixed
    third = seen**2 - limited * squares
    inner = second**2 - first * third
    inner[np.abs(inner) <= _CANCELLED * second**2] = 0.0  # all units alike: two roots in one
    root = np.sqrt(np.maximum(0.0, inner))
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = (second - root) / first
        upper = (second + root) / first
    # Units that differ in size may leave one end open: the roots then have changed places.
    is_open = (first < -_NEAR) & (inner > 0)
    low = np.where(first > _NEAR, lower, np.where(is_open & (seen >= lower), lower, -np.inf))
    high = np.where(first > _NEAR, upper, np.where(is_open & (seen <= upper), upper, np.inf))
    return low, high


@cache
def normal_draws(name: str, cell_count: int) -> Numbers:
    """
    Draws of the standard normal distribution: draws x cells, the same wherever they are made.

    Two numbers of 53 bits for each, from SHAKE-256 of *name*, draw by draw and cell by cell, are
    made normal as Box and Muller (1958) do.
    """
    import numpy as np

    digest = hashlib.shake_256(name.encode()).digest(16 * DRAWS * cell_count)
    integers = np.frombuffer(digest, dtype=">u8").reshape(DRAWS, cell_count, 2)
    uniform = ((integers >> np.uint64(11)) + 0.5) / 2.0**53
    radius = np.sqrt(-2 * np.log(uniform[..., 0]))
    drawn: Numbers = radius * np.cos(2 * np.pi * uniform[..., 1])
    drawn.setflags(write=False)
    return drawn
