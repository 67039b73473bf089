"""
Unit times in their order, and change point (1): where two lines fit them best.

Both lines are free: four coefficients, no continuity.  Prefix sums give the squared error of every
split in O(n), where fitting two lines at every split takes O(n^2).

The left line's error grows with every unit it gains, the right one's falls with every unit it
loses.  So the errors at two places far apart bound all between them from below, and most rows of
units need no look at each split.

Rounding decides nothing here: a side's sums start at its own end, so a short side's are short, and
they are taken in rows, so a long side's error does not grow with it.  What remains is some 1e-15 of
the total sum of squares, and splits within 1e-12 of it are equally good.
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
_ROW = 256  # units whose splits are looked at together, or not at all
_ROWS_AT_ONCE = 64  # their sums fit into a core's cache


def order_units(unit_seconds: Any) -> Times:
    """Y: the times of units, the shortest first [s]."""
    is_sequence = isinstance(unit_seconds, Sequence) and not isinstance(unit_seconds, str | bytes)
    if not is_sequence and not isinstance(unit_seconds, np.ndarray):
        raise range_error("unit_seconds", unit_seconds, "a list of times", WHERE)
    is_of_floats = not is_sequence or {type(seconds) for seconds in unit_seconds} <= {float}
    if is_of_floats:
        times = np.asarray(unit_seconds, dtype=np.float64)
        # A comparison with NaN is false, so this refuses it, too.
        if times.ndim == 1 and (
            not len(times) or 0 <= times.min() <= times.max() <= _LONGEST_S
        ):  # fmt: skip
            return np.sort(times)
    values = unit_seconds if is_sequence else unit_seconds.tolist()
    checked = [
        check_number(f"unit_seconds[{place}]", value, where=WHERE, high=_LONGEST_S)
        for place, value in enumerate(values)
    ]
    return np.sort(np.array(checked, dtype=np.float64))


def change_point(ordered: Times, omega: int) -> int:
    """
    (1): t, the number of units on the left; *ordered* has 2*omega units at least.

    The smallest split whose squared error is within `TOLERANCE` of the least; omega where all
    units are equal.
    """
    return SplitErrors(ordered).best_split(omega)


class SplitErrors:
    """
    Squared errors of all splits of *ordered* units, in the square of an arbitrary unit of time.

    They are the same for every window, so a second search costs little.
    """

    def __init__(self, ordered: Times) -> None:
        # About the mean, in units of about the range: nothing overflows or vanishes.  The smallest
        # is subtracted first, which for times close to each other is exact.
        unit_times: Times = ordered - ordered[0]
        _, exponent = math.frexp(unit_times[-1])
        unit_times *= math.ldexp(1.0, min(-exponent, 1000))
        if unit_times[-1] > 0:
            unit_times -= unit_times.mean()
        self._count, self._total = unit_count, total = (
            len(unit_times),
            float(np.dot(unit_times, unit_times)),
        )
        # What is added at the end changes no sum, for it is zero.
        self._rows = unit_rows = np.pad(unit_times, (0, -unit_count % _ROW)).reshape(-1, _ROW)
        # Sums of `_products` over all units before each edge of a row, and over all after it.
        starts, within = np.arange(len(unit_rows)) * float(_ROW), np.arange(1.0, _ROW + 1)
        sum_y, sum_jy = unit_rows.sum(axis=1), unit_rows @ within
        sum_yy = np.einsum("ij,ij->i", unit_rows, unit_rows)
        self._left = _summed(np.stack([sum_y, starts * sum_y + sum_jy, sum_yy]))
        from_end = np.stack([sum_y, (unit_count + 1 - starts) * sum_y - sum_jy, sum_yy])
        self._right = _summed(from_end[:, ::-1])[:, ::-1]
        edges = np.arange(len(unit_rows) + 1.0) * _ROW
        self._left_error = _line_errors(edges, *self._left)
        self._right_error = _line_errors(unit_count - edges, *self._right)
        # The least that any split within a row can have.
        self._row_bounds = self._left_error[:-1] + self._right_error[1:]
        self._tolerance = TOLERANCE * total

    def best_split(self, omega: int) -> int:
        """(1) with at least *omega* units on each side."""
        if self._total == 0:  # all equal: any difference between splits is rounding
            return omega
        # Rows that may contain the best split, or one that is as good.
        edges = np.arange(len(self._left_error)) * _ROW
        edge_errors = (self._left_error + self._right_error)[
            (edges >= omega) & (edges <= self._count - omega)
        ]
        limit = edge_errors.min(initial=math.inf) + 2 * self._tolerance
        unit_rows = np.flatnonzero(self._row_bounds <= limit)
        splits, errors = self._split_errors(unit_rows[:_ROWS_AT_ONCE], omega)
        if len(unit_rows) > _ROWS_AT_ONCE:
            # No other row goes below this bound; on a straight line that settles it at once.
            bound = float(self._row_bounds[unit_rows[_ROWS_AT_ONCE:]].min())
            pessimistic = self._first_best(splits, errors, bound)
            optimistic = self._first_best(splits, errors, math.inf)
            if pessimistic == optimistic:
                return pessimistic
            splits, errors = self._split_errors(unit_rows, omega)
        return self._first_best(splits, errors, math.inf)

    def _first_best(self, splits: NDArray[np.int64], errors: Times, least: float) -> int:
        """First split as good as the best, whose error is *least* or one of these; 0 if none is."""
        is_best = errors <= min(least, float(errors.min())) + self._tolerance
        return int(splits[np.argmax(is_best)]) if is_best.any() else 0

    def _split_errors(
        self, unit_rows: NDArray[np.int64], omega: int
    ) -> tuple[NDArray[np.int64], Times]:
        """Splits after each unit of *unit_rows*, and their errors; infinite outside the window."""
        splits = (unit_rows[:, None] * _ROW + np.arange(1, _ROW + 1)).ravel()
        parts = []
        for row_part in np.array_split(unit_rows, -(-len(unit_rows) // _ROWS_AT_ONCE)):
            unit_times = self._rows[row_part]
            positions = row_part[:, None] * _ROW + np.arange(1.0, _ROW + 1)
            left = self._left[:, row_part, None] + np.cumsum(
                _products(positions, unit_times), axis=2
            )
            right = np.repeat(self._right[:, row_part + 1, None], _ROW, axis=2)
            # A split after a unit leaves it on the left.
            from_end = _products(self._count + 1 - positions, unit_times)[:, :, :0:-1]
            right[:, :, :-1] += np.cumsum(from_end, axis=2)[:, :, ::-1]
            part_errors = _line_errors(positions, *left) + _line_errors(
                self._count - positions, *right
            )
            parts.append(part_errors.ravel())
        errors = np.concatenate(parts)
        errors[(splits < omega) | (splits > self._count - omega)] = math.inf
        return splits, errors


def _products(positions: Times, unit_times: Times) -> Times:
    """What is summed up for a line: y, x*y and y^2."""
    return np.stack([unit_times, positions * unit_times, unit_times * unit_times])


def _summed(values: Times) -> Times:
    """Sums of the first 0, 1, 2, ... of the *values*, with as many digits as there are."""
    sums = np.cumsum(values, axis=1, dtype=np.longdouble).astype(np.float64)
    return np.pad(sums, ((0, 0), (1, 0)))


def _line_errors(unit_count: Times, sum_y: Times, sum_xy: Times, sum_yy: Times) -> Times:
    """Section 3.2: Syy - Sxy^2/Sxx of n points at x = 1..n; of none and of one it is 0."""
    unit_count = np.maximum(unit_count, 1.0)
    sxy = sum_xy - 0.5 * (unit_count + 1) * sum_y
    sxx = np.maximum(
        unit_count * (unit_count * unit_count - 1) / 12, 0.5
    )  # 0.5: two points; of one, Sxy is 0
    return np.maximum(sum_yy - sum_y * sum_y / unit_count - sxy * sxy / sxx, 0.0)


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
