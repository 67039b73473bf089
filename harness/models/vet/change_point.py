"""
Change point (1): where two lines fit the ordered unit times best.

Both lines are free: four coefficients, no continuity.  Prefix sums give the squared error of every
split in O(n); `change_point_obvious` fits two lines at every split, in O(n^2), and is what tests
compare with.

The left line's error grows with every unit it gets, the right one's falls with every unit it loses.
So the errors at two places far apart bound all between them from below, and most rows of units need
no look at each split.

Rounding decides nothing here: a side's sums start at its own end, so a short side's are short, and
they are taken in rows, so a long side's error does not grow with it.  What is left is some 1e-15 of
the total sum of squares, and splits within 1e-12 of it tie.
"""

from __future__ import annotations

import math

from collections.abc import Sequence

import numpy as np

from numpy.typing import NDArray

from harness.models.vet.inputs import Times

TIE = 1e-12  # of the total sum of squares (V08)

_ROW = 256  # units whose splits are looked at together, or not at all
_AT_ONCE = 64  # rows whose sums fit into a core's cache


def change_point(ordered: Times, omega: int) -> int:
    """
    (1): t, the number of units on the left; *ordered* holds 2*omega units at least.

    The smallest split whose squared error is within `TIE` of the least; omega where all are equal.
    """
    return SplitErrors(ordered).best(omega)


class SplitErrors:
    """
    Squared errors of all splits of *ordered* units, in squares of some time of its own.

    They are the same for every window, so a second search costs little.
    """

    def __init__(self, ordered: Times) -> None:
        y = _centred(ordered)
        self._n, self._total = len(y), float(np.dot(y, y))
        # What is added at the end counts in no sum, for it is zero.
        self._rows = np.pad(y, (0, -len(y) % _ROW)).reshape(-1, _ROW)
        self._left, self._right = _sums_at_edges(self._rows, self._n)
        edges = np.arange(len(self._rows) + 1.0) * _ROW
        self._left_error = _line_errors(edges, *self._left)
        self._right_error = _line_errors(self._n - edges, *self._right)
        self._least = self._left_error[:-1] + self._right_error[1:]  # of all splits in a row

    def best(self, omega: int) -> int:
        """(1) with at least *omega* units on each side."""
        if self._total == 0:  # all equal: what differs is rounding
            return omega
        rows = self._promising(omega)
        k, errors = self._tried(rows[:_AT_ONCE], omega)
        if len(rows) > _AT_ONCE:
            # None of the rest has less; where that decides, as on a straight line, it is the end.
            rest = float(self._least[rows[_AT_ONCE:]].min())
            surely, perhaps = (self._first(k, errors, least) for least in (rest, math.inf))
            if surely == perhaps:
                return surely
            k, errors = self._tried(rows, omega)
        return self._first(k, errors, math.inf)

    def _first(self, k: NDArray[np.int64], errors: Times, least: float) -> int:
        """First split that ties with the best, if that has *least* or what is here; 0: none is."""
        tied = errors <= min(least, float(errors.min())) + TIE * self._total
        return int(k[np.argmax(tied)]) if tied.any() else 0

    def _promising(self, omega: int) -> NDArray[np.int64]:
        """Rows that may hold the best split, or one that ties with it."""
        edges = np.arange(len(self._left_error)) * _ROW
        tried = (self._left_error + self._right_error)[
            (edges >= omega) & (edges <= self._n - omega)
        ]
        return np.flatnonzero(self._least <= tried.min(initial=math.inf) + 2 * TIE * self._total)

    def _tried(self, rows: NDArray[np.int64], omega: int) -> tuple[NDArray[np.int64], Times]:
        """Splits after each unit of *rows*, and their errors; infinite outside the window."""
        k = (rows[:, None] * _ROW + np.arange(1, _ROW + 1)).ravel()
        parts = np.array_split(rows, -(-len(rows) // _AT_ONCE))
        errors = np.concatenate([self._within(part).ravel() for part in parts])
        errors[(k < omega) | (k > self._n - omega)] = math.inf
        return k, errors

    def _within(self, rows: NDArray[np.int64]) -> Times:
        """Errors of the splits after each unit of *rows*, a row for each."""
        y = self._rows[rows]
        x = rows[:, None] * _ROW + np.arange(1.0, _ROW + 1)
        left = self._left[:, rows, None] + np.cumsum(_products(x, y), axis=2)
        from_end = self._n + 1 - x
        right = np.repeat(self._right[:, rows + 1, None], _ROW, axis=2)
        # A split after a unit leaves it on the left.
        right[:, :, :-1] += np.cumsum(_products(from_end, y)[:, :, :0:-1], axis=2)[:, :, ::-1]
        errors: Times = _line_errors(x, *left) + _line_errors(self._n - x, *right)
        return errors


def _centred(ordered: Times) -> Times:
    """
    *ordered* about its mean, in units of about its range: nothing of it overflows or vanishes.

    The smallest is taken off first, which for times close to each other is exact.
    """
    y: Times = ordered - ordered[0]
    _, exponent = math.frexp(y[-1])
    y *= math.ldexp(1.0, min(-exponent, 1000))
    if y[-1] > 0:
        y -= y.mean()
    return y


def _products(x: Times, y: Times) -> Times:
    """What is summed up for a line: y, x*y and y^2."""
    return np.stack([y, x * y, y * y])


def _sums_at_edges(rows: Times, n: int) -> tuple[Times, Times]:
    """Sums of `_products` over all units before each edge of a row, and over all behind it."""
    start, within = np.arange(len(rows)) * float(_ROW), np.arange(1.0, _ROW + 1)
    y, jy, yy = rows.sum(axis=1), rows @ within, np.einsum("ij,ij->i", rows, rows)
    left = np.stack([y, start * y + jy, yy])
    right = np.stack([y, (n + 1 - start) * y - jy, yy])
    return _summed(left), _summed(right[:, ::-1])[:, ::-1]


def _summed(values: Times) -> Times:
    """Sums of the first 0, 1, 2, ... of the *values*, with as many digits as there are."""
    sums = np.cumsum(values, axis=1, dtype=np.longdouble).astype(np.float64)
    return np.pad(sums, ((0, 0), (1, 0)))


def _line_errors(m: Times, sum_y: Times, sum_xy: Times, sum_yy: Times) -> Times:
    """Section 3.2: Syy - Sxy^2/Sxx of m points at x = 1..m; of none and of one it is 0."""
    m = np.maximum(m, 1.0)
    sxy = sum_xy - 0.5 * (m + 1) * sum_y
    sxx = np.maximum(m * (m * m - 1) / 12, 0.5)  # 0.5 is that of two points; of one, Sxy is 0
    return np.maximum(sum_yy - sum_y * sum_y / m - sxy * sxy / sxx, 0.0)


def line_error(y: Times) -> float:
    """Squared error of the least-squares line through *y* at x = 1, 2, ... in s^2."""
    x = np.arange(len(y)) - (len(y) - 1) / 2
    rest = y - y[0]
    rest = rest - rest.mean()
    sxx = float(np.dot(x, x))
    if sxx > 0:
        # Of what the line leaves: the same as Syy - Sxy^2/Sxx, without their difference.
        rest -= float(np.dot(x, rest)) / sxx * x
    return float(np.dot(rest, rest))


def change_point_obvious(ordered: Sequence[float], omega: int) -> int:
    """(1) as it is printed, two lines fitted at each split."""
    n, mean = len(ordered), math.fsum(ordered) / len(ordered)
    if ordered[-1] == ordered[0]:
        return omega
    errors = {
        k: _line_error_obvious(ordered[:k]) + _line_error_obvious(ordered[k:])
        for k in range(omega, n - omega + 1)
    }
    limit = min(errors.values()) + TIE * math.fsum((y - mean) ** 2 for y in ordered)
    return min(k for k, error in errors.items() if error <= limit)


def _line_error_obvious(y: Sequence[float]) -> float:
    m = len(y)
    mean_x, mean_y = (m + 1) / 2, math.fsum(y) / m
    sxx = math.fsum((i - mean_x) ** 2 for i in range(1, m + 1))
    sxy = math.fsum((i - mean_x) * (v - mean_y) for i, v in enumerate(y, start=1))
    syy = math.fsum((v - mean_y) ** 2 for v in y)
    return max(0.0, syy - sxy**2 / sxx) if sxx else 0.0
