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

    before = _logarithms(before_s)
    later = _logarithms({name: later_s[name] for name in sorted(later_s) if before_s.get(name)})
    if not later:
        return None
    weights = {name: _weight(before[name], values) for name, values in later.items()}
    total_weight = math.fsum(weights.values())
    shifts = (
        weights[name] * (fmean(values) - fmean(before[name])) for name, values in later.items()
    )
    shift = math.fsum(shifts) / total_weight
    squares = 0.0
    freedom = -1  # of the shift
    for name, values in before.items():
        unshifted = [*values, *(value - shift for value in later.get(name, ()))]
        squares += _squares(unshifted)
        freedom += len(unshifted) - 1
    if freedom < 1:
        return None
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(squares / freedom / total_weight)
    later_count = sum(map(len, later.values()))
    return Ratio(math.exp(shift), math.exp(shift - half), math.exp(shift + half), later_count)


def _logarithms(times_s: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Logarithms of the times of each thing that has some."""
    return {
        name: [math.log(time_s) for time_s in times] for name, times in times_s.items() if times
    }


def _weight(before: Sequence[float], later: Sequence[float]) -> float:
    """One over the variance of a difference of two means, in that of one value."""
    return len(before) * len(later) / (len(before) + len(later))


def _squares(values: Sequence[float]) -> float:
    """Sum of the squared distances of *values* from their mean."""
    centre = fmean(values)
    return math.fsum((value - centre) ** 2 for value in values)
