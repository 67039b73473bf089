"""
How much slower a machine was later than before, by what was measured at both times.

Logarithms of times are explained by least squares: one number for each thing that was measured, and
one shift of all that was measured later.
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

# Of the two-sided interval of a ratio.  A verdict has to hold at both of its ends: with that of
# 95 % it would be wrong in far fewer than 5 % of cases (bench/bench_drift.py).
LEVEL = 0.7


class Ratio(NamedTuple):
    """The factor by which times were longer later, its interval, and from how many times."""

    value: float
    low: float
    high: float
    later_count: int


def ratio_of(
    before_s: Mapping[str, Sequence[float]], later_s: Mapping[str, Sequence[float]]
) -> Ratio | None:
    """
    The ratio of *later_s* to *before_s*, which have times by what was measured.

    `None` where nothing was measured at both times, or where no spread is known.
    """
    from scipy.special import stdtrit

    shared = [name for name in sorted(later_s) if later_s[name] and before_s.get(name)]
    if not shared:
        return None
    before = {name: [math.log(time_s) for time_s in times] for name, times in before_s.items()}
    later = {name: [math.log(time_s) for time_s in later_s[name]] for name in shared}
    weights = {
        name: len(before[name]) * len(later[name]) / (len(before[name]) + len(later[name]))
        for name in shared
    }
    total_weight = math.fsum(weights.values())
    shift = (
        math.fsum(weights[name] * (fmean(later[name]) - fmean(before[name])) for name in shared)
        / total_weight
    )
    squares = 0.0
    freedom = -1  # of the shift
    for name, logarithms in before.items():
        values = [*logarithms, *(value - shift for value in later.get(name, ()))]
        centre = fmean(values)
        squares += math.fsum((value - centre) ** 2 for value in values)
        freedom += len(values) - 1
    if freedom < 1:
        return None
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(squares / freedom / total_weight)
    later_count = sum(map(len, later.values()))
    return Ratio(math.exp(shift), math.exp(shift - half), math.exp(shift + half), later_count)
