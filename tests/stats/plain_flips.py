"""
The test of pairs by sign flips once more: slow, obvious, and in plain Python.

Written from the definition alone; `harness.base.stats.flips` has to give the same numbers.
"""

import hashlib
import math

from fractions import Fraction
from itertools import product
from operator import mul

NEAR = 1e-9
FARTHEST = 1e6  # differences beyond that count as infinite


def signs_of_flips(unit_count):
    """
    1 or -1 for each unit, flip by flip.
    """
    if unit_count <= 12:
        return list(product((1, -1), repeat=unit_count))
    flips = [(1,) * unit_count]
    for number in range(1, 4096):
        digest = hashlib.shake_256(str(number).encode()).digest((unit_count + 7) // 8)
        bits = "".join(f"{byte:08b}" for byte in digest)
        flips.append(tuple(-1 if bit == "1" else 1 for bit in bits[:unit_count]))
    return flips


def sums_by_unit(gaps, units, weights=None):
    """
    What the cells of each unit add to the mean, by the names of the units, and its cells' share.
    """
    weights = weights or [1] * len(units)
    total = math.fsum(weights)
    sums = []
    shares = []
    for name in sorted(set(units)):
        of_unit = [place for place, unit in enumerate(units) if unit == name]
        sums.append(math.fsum(weights[place] * gaps[place] for place in of_unit) / total)
        shares.append(math.fsum(weights[place] for place in of_unit) / total)
    return sums, shares


def distance(sums, side):
    """
    How clear it is that the first is nearer (or either one).
    """
    length = math.sqrt(math.fsum(value * value for value in sums))
    clear = -math.fsum(sums) / length if length else 0.0
    return clear if side == "first" else abs(clear)


def family(pairs, units, side, level, weights=None):
    """
    Difference, low, high and chance of each of *pairs*, which are lists of gaps by cell.
    """
    all_sums = [sums_by_unit(gaps, units, weights)[0] for gaps in pairs]
    shares = sums_by_unit(pairs[0], units, weights)[1]
    seen = [distance(sums, side) for sums in all_sums]
    lengths = [math.hypot(*sums) or 1.0 for sums in all_sums]  # the same in each flip
    flipped = []
    for signs in signs_of_flips(len(shares)):
        clear = [
            -sum(map(mul, signs, sums)) / length
            for sums, length in zip(all_sums, lengths, strict=True)
        ]
        flipped.append(clear if side == "first" else [abs(value) for value in clear])
    tested = {}
    remaining = sorted(range(len(pairs)), key=lambda place: -seen[place])
    chance = 0.0
    limit_of_the_first_open = -math.inf
    while remaining:
        place = remaining[0]
        largest = sorted(max(flip[other] for other in remaining) for flip in flipped)
        least = seen[place] - NEAR * abs(seen[place])
        chance = max(chance, sum(value >= least for value in largest) / len(largest))
        allowed = math.floor(Fraction(str(level)) * len(largest))
        limit = max(largest[len(largest) - 1 - allowed], limit_of_the_first_open)
        if chance > level and limit_of_the_first_open == -math.inf:
            limit_of_the_first_open = limit
        low, high = interval(all_sums[place], shares, limit)
        tested[place] = (math.fsum(all_sums[place]), low, high, chance)
        remaining = remaining[1:]
    return [tested[place] for place in range(len(pairs))]


def interval(sums, shares, limit):
    """
    From where on to where a difference is no farther from what is seen than *limit*: by halving.
    """

    def is_contradicted(difference):
        left = [value - difference * share for value, share in zip(sums, shares, strict=True)]
        return distance(left, "either") > limit

    middle = math.fsum(sums)
    ends = []
    for direction in (-1, 1):
        inside = 0.0
        outside = 1e-6
        while outside < FARTHEST and not is_contradicted(middle + direction * outside):
            inside = outside
            outside *= 1.1
        if outside >= FARTHEST:
            ends.append(direction * math.inf)
            continue
        for _ in range(100):
            between = (inside + outside) / 2
            if is_contradicted(middle + direction * between):
                outside = between
            else:
                inside = between
        ends.append(middle + direction * inside)
    return ends[0], ends[1]
