"""Tail of the distribution of unit times: (7), (8), and the views of section 3.4."""

from __future__ import annotations

import math

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.models.checks import check_count, range_error
from harness.models.vet.inputs import WHERE, Times, ordered
from harness.records.vet import Emplot, HillPoint

_FEWEST_FOR_INDEX = 200
_FEWEST_FOR_LINE = 3
_MOST_BUCKETS = 1000


def hill(unit_seconds: Any, k: Any) -> HillPoint:
    """
    (8): H(k), the mean log excess of the *k* largest units, and alpha = 1/H (V01).

    ``ModelError`` for a k outside 1..n-1, or a unit of no time in the place n-k.
    """
    return _hill(ordered(unit_seconds), k)


def hills(unit_seconds: Any, k_values: Any) -> tuple[HillPoint, ...]:
    """`hill` for each of *k_values*."""
    if not isinstance(k_values, Sequence) or isinstance(k_values, str):
        raise range_error("k_values", k_values, "a list of whole numbers", WHERE)
    y = ordered(unit_seconds)
    return tuple(_hill(y, k) for k in k_values)


def _hill(y: Times, k: Any) -> HillPoint:
    n, k = len(y), check_count("k", k, where=WHERE, low=1)
    if k > n - 1:
        raise ModelError(f"k = {k} is above n - 1 = {n - 1}", where=WHERE)
    if y[n - k - 1] <= 0:
        raise ModelError(f"k = {k}: the unit before the largest {k} took no time", where=WHERE)
    excess = float(np.mean(np.log(y[n - k :]) - np.log(y[n - k - 1])))
    return HillPoint(k, excess, _reciprocal(excess))


def hill_plot(unit_seconds: Any) -> tuple[HillPoint, ...]:
    """Alpha over k = 1 to a tenth of the units, without the k that `hill` refuses."""
    return _hill_plot(ordered(unit_seconds))


def _hill_plot(y: Times) -> tuple[HillPoint, ...]:
    excesses = _excesses(y).tolist()
    return tuple(HillPoint(k, h, _reciprocal(h)) for k, h in enumerate(excesses, start=1))


def _excesses(y: Times) -> Times:
    """H(1), H(2), ... to a tenth of the units, as far as they took any time."""
    n = len(y)
    largest = y[::-1][: min(n, max(1, n // 10) + 1)]
    logs = np.log(largest[largest > 0])
    # Depths below the largest: their sums are short.
    depth = logs[:1] - logs
    excess = depth[1:] - np.cumsum(depth)[:-1] / np.arange(1, max(1, len(logs)))
    return np.maximum(excess, 0.0)


def tail_index(unit_seconds: Any) -> float | None:
    """
    Index alpha of (7): the median of the Hill plot from 1 % of the units on, ten at least.

    `None` with fewer than 200 units, or where too many of them took no time.
    """
    return tail_index_ordered(ordered(unit_seconds))


def tail_index_ordered(y: Times) -> float | None:
    """`tail_index` of times that are in order already."""
    first = max(10, -(-len(y) // 100))
    if len(y) < _FEWEST_FOR_INDEX:
        return None
    excesses = _excesses(y)[first - 1 :]
    if not len(excesses):
        return None
    with np.errstate(divide="ignore"):
        return float(np.median(1 / excesses))


def emplot(unit_seconds: Any) -> Emplot:
    """Points (log Y_i, log((n - i + 0.5)/n)) of (7), and the line through the last tenth."""
    y = ordered(unit_seconds)
    n = len(y)
    taken = np.flatnonzero(y > 0)
    x, share = np.log(y[taken]), np.log((n - (taken + 1) + 0.5) / n) if n else y
    last = len(x) - -(-len(x) // 10)
    slope, r2 = _line(x[last:], share[last:])
    return Emplot(tuple(zip(x.tolist(), share.tolist(), strict=True)), slope, r2)


def _line(x: Times, y: Times) -> tuple[float | None, float | None]:
    """Slope and R^2 of a least-squares line; `None` of few points, or all at one x."""
    if len(x) < _FEWEST_FOR_LINE or x[0] == x[-1]:
        return None, None
    x, y = x - x.mean(), y - y.mean()
    sxx, sxy, syy = float(x @ x), float(x @ y), float(y @ y)
    return sxy / sxx, min(1.0, sxy * sxy / (sxx * syy))


def bucket_view(unit_seconds: Any) -> tuple[float, ...]:
    """
    Sums of the ordered units in a thousand buckets, or as many as there are units.

    Their counts differ by one at most: not the option `buckets`, which needs equal ones.  The
    paper's second plot leaves out the last hundredth of them.
    """
    y = ordered(unit_seconds)
    b = min(_MOST_BUCKETS, len(y))
    ends = [j * len(y) // b for j in range(b + 1)] if b else [0]
    return tuple(float(y[s:e].sum()) for s, e in pairwise(ends))


def _reciprocal(excess: float) -> float:
    return 1 / excess if excess > 0 else math.inf
