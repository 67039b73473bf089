"""
Unit times in their order, and change point (1): where two lines fit them best.

Both lines are free: four coefficients, no continuity.  Prefix sums give the squared error of every
split in O(n), where fitting two lines at every split takes O(n^2).

Rounding decides nothing here: a side's sums start at its own end, so a short side's are short, and
they are taken in chunks, so a long side's error hardly grows with it.  What remains is some 1e-14
of the total sum of squares, and splits within 1e-12 of it are equally good.
"""

from __future__ import annotations

import math

from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.models.checks import check_number, range_error

WHERE = "vet"
Times = NDArray[np.float64]  # s

TOLERANCE = 1e-12  # of the total sum of squares (V08)

_LONGEST_S = 1e100  # the square of a sum of such times is still a finite number
_CHUNK = 4096  # units whose sums are in a core's cache together


def order_units(unit_seconds: Any) -> Times:
    """Y: the times of units, the shortest first [s]."""
    is_sequence = isinstance(unit_seconds, Sequence) and not isinstance(unit_seconds, str | bytes)
    if not is_sequence and not isinstance(unit_seconds, np.ndarray):
        raise range_error("unit_seconds", unit_seconds, "a list of times", WHERE)
    # Floats, as nearly all are, are looked at together; anything else one by one.
    if not is_sequence or {type(seconds) for seconds in unit_seconds} <= {float}:
        times = np.asarray(unit_seconds, dtype=np.float64)
        if _are_times(times):
            return np.sort(times)
    values = unit_seconds if is_sequence else unit_seconds.tolist()
    checked = [
        check_number(f"unit_seconds[{place}]", value, where=WHERE, high=_LONGEST_S)
        for place, value in enumerate(values)
    ]
    return np.sort(np.array(checked, dtype=np.float64))


def _are_times(values: Times) -> bool:
    """Whether all *values* lie in the range of a unit's time."""
    if values.ndim != 1:
        return False
    # A comparison with NaN is false, so this refuses it, too.
    return not len(values) or bool(0 <= values.min() <= values.max() <= _LONGEST_S)


def change_point(errors: Times, omega: int) -> int:
    """
    (1): t, the number of units on the left, with at least *omega* units on each side.

    The smallest split whose *errors* (`split_errors`) are within `TOLERANCE` of the least; omega
    where all units are equal.
    """
    window = errors[omega - 1 : len(errors) + 1 - omega]
    return omega + int(np.argmax(window <= window.min() + TOLERANCE))


def split_errors(ordered: Times) -> Times:
    """Squared errors of the splits after 1, 2, ... n - 1 units, as shares of the sum of squares."""
    # About the mean, in units of about the range: nothing overflows or vanishes.  The smallest is
    # subtracted first, which for times close to each other is exact.
    unit_times: Times = ordered - ordered[0]
    _, exponent = math.frexp(unit_times[-1])
    unit_times *= math.ldexp(1.0, min(-exponent, 1000))
    if unit_times[-1] > 0:
        unit_times -= unit_times.mean()
    errors = _line_errors(unit_times)[:-1] + _line_errors(unit_times[::-1])[-2::-1]
    total = float(np.dot(unit_times, unit_times))
    return errors / total if total > 0 else errors


def _line_errors(unit_times: Times) -> Times:
    """Section 3.2: Syy - Sxy^2/Sxx of the first 1, 2, ... units at x = 1, 2, ...; of one 0."""
    errors = np.empty_like(unit_times)
    before = np.zeros((3, 1))
    for start in range(0, len(unit_times), _CHUNK):
        chunk = unit_times[start : start + _CHUNK]
        count = np.arange(start + 1.0, start + len(chunk) + 1)
        sums = before + np.cumsum(np.stack([chunk, count * chunk, chunk * chunk]), axis=1)
        sum_y, sum_xy, sum_yy = sums
        sxy = sum_xy - 0.5 * (count + 1) * sum_y
        sxx = np.maximum(count * (count * count - 1) / 12, 0.5)  # 0.5: of one unit, whose Sxy is 0
        line_errors = sum_yy - sum_y * sum_y / count - sxy * sxy / sxx
        errors[start : start + len(chunk)] = np.maximum(line_errors, 0.0)
        before = sums[:, -1:]
    return errors


def line_error(unit_times: Times) -> float:
    """Squared error of the least-squares line through *unit_times* at x = 1, 2, ... in s^2."""
    positions = np.arange(len(unit_times)) - (len(unit_times) - 1) / 2
    deviations = unit_times - unit_times[0]
    deviations = deviations - deviations.mean()
    sxx = float(np.dot(positions, positions))
    if sxx > 0:
        # Of what the line leaves: the same as Syy - Sxy^2/Sxx, without their difference.
        deviations -= float(np.dot(positions, deviations)) / sxx * positions
    return float(np.dot(deviations, deviations))
