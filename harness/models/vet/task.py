"""
One task: ideal, overhead and vet, (2) to (5), the option `buckets` of section 3.6, and its tail.

The tail of the distribution of unit times is (7) and (8), with the views of section 3.4.
"""

from __future__ import annotations

import math

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, range_error
from harness.models.vet.change_point import WHERE, SplitErrors, Times, line_error, order_units
from harness.records.vet import NEGATIVE_OVERHEAD, OMEGA_SENSITIVE, Emplot, HillPoint, VetTask

OMEGA = 3
UNITS_OF_BUCKET = 10  # with fewer units to a bucket its sum says little

_SENSITIVE = 0.2  # vet of another window differs by more than this share
_ROUNDING = 1e-12  # of PR; an overhead below zero by less is rounding
_FEWEST_FOR_INDEX = 200  # units
_FEWEST_FOR_LINE = 3  # points
_MOST_BUCKETS = 1000  # of the bucket view


def vet_task(
    unit_seconds: Any,
    omega: int = OMEGA,
    cap_at_observed: bool = False,  # noqa: FBT001, FBT002 - the signature of the specification
    buckets: int | None = None,
) -> VetTask:
    """
    Vet of a task from the seconds of its units, in any order.

    ``ModelError`` (a ``ValueError``) for an omega below 2, a negative, infinite or NaN time, fewer
    buckets than 2*omega.
    """
    return vet_ordered(order_units(unit_seconds), omega, cap_at_observed, buckets)


def vet_ordered(
    ordered: Times,
    omega: int = OMEGA,
    cap_at_observed: bool = False,  # noqa: FBT001, FBT002 - as above
    buckets: int | None = None,
) -> VetTask:
    """`vet_task` of times that are in order already."""
    # Below 2 there is no line through the last two units on the left.
    omega = check_count("omega", omega, where=WHERE, low=2)
    capped = check_flag("cap_at_observed", cap_at_observed, where=WHERE)
    shape: dict[str, Any] = {}
    if buckets is None:
        is_enough, set_aside_s, unit_times = len(ordered) >= 2 * omega, 0.0, ordered
    else:
        bucket_count = check_count("buckets", buckets, where=WHERE, low=1)
        if bucket_count < 2 * omega:
            message = f"buckets = {bucket_count} is below 2*omega = {2 * omega}"
            raise ModelError(message, where=WHERE)
        bucket_units, set_aside = divmod(len(ordered), bucket_count)
        is_enough = len(ordered) >= UNITS_OF_BUCKET * bucket_count
        set_aside_s, unit_times = float(ordered[:set_aside].sum()), ordered[:0]
        if is_enough:
            unit_times = ordered[set_aside:].reshape(bucket_count, bucket_units).sum(axis=1)
        shape = {"buckets": bucket_count, "set_aside": set_aside, "bucket_units": bucket_units}
    if not is_enough:
        return VetTask(len(ordered), "too_few_units", float(ordered.sum()), **shape)
    errors = SplitErrors(unit_times)
    split = errors.best_split(omega)
    # Units set aside count as observed, and as ideal.
    real_s = profiled_real(unit_times) + set_aside_s
    ideal_s = estimated_ideal(unit_times, split, capped=capped) + set_aside_s
    overhead_s = overhead(unit_times, split, capped=capped)
    vet_value = vet_ratio(real_s, ideal_s)
    flags = []
    # Section 4: does a window of 1 % of the units give another vet than one of three?
    if (wide := max(OMEGA, len(unit_times) // 100)) != OMEGA:
        narrow_vet, wide_vet = (
            vet_ratio(
                real_s,
                estimated_ideal(unit_times, errors.best_split(window), capped=capped) + set_aside_s,
            )
            for window in (OMEGA, wide)
        )
        if narrow_vet is None or wide_vet is None:
            differs = narrow_vet is not wide_vet
        else:
            differs = abs(wide_vet - narrow_vet) > _SENSITIVE * narrow_vet
        flags += [OMEGA_SENSITIVE] if differs else []
    if overhead_s < -_ROUNDING * real_s:
        flags.append(NEGATIVE_OVERHEAD)
    return VetTask(
        n=len(ordered),
        status="zero_ideal" if vet_value is None else "ok",
        profiled_real_s=real_s,
        change_point=split,
        sse=line_error(unit_times[:split]) + line_error(unit_times[split:]),
        slope_s=slope(unit_times, split),
        estimated_ideal_s=ideal_s,
        overhead_s=overhead_s,
        vet=vet_value,
        flags=tuple(flags),
        **shape,
    )


def slope(unit_times: Times, split: int) -> float:
    """Step of the ideal line: d = Y_t - Y_{t-1}, in seconds."""
    return float(unit_times[split - 1] - unit_times[split - 2])


def ideal_after(unit_times: Times, split: int, *, capped: bool = False) -> Times:
    """(2): g_hat(t + j) = Y_t + j*d for j = 1..n-t; *capped*, never above what was observed [s]."""
    steps = np.arange(1.0, len(unit_times) - split + 1)
    ideal: Times = unit_times[split - 1] + steps * slope(unit_times, split)
    return np.minimum(ideal, unit_times[split:]) if capped else ideal


def profiled_real(unit_times: Times) -> float:
    """PR: sum of all units [s]."""
    return float(unit_times.sum())


def estimated_ideal(unit_times: Times, split: int, *, capped: bool = False) -> float:
    """(3): EI, the sum of the ideal [s]."""
    if capped:
        return float(unit_times[:split].sum() + ideal_after(unit_times, split, capped=True).sum())
    after = len(unit_times) - split
    rise = slope(unit_times, split) * after * (after + 1) / 2
    return float(unit_times[:split].sum() + after * unit_times[split - 1] + rise)


def overhead(unit_times: Times, split: int, *, capped: bool = False) -> float:
    """(4): OC, what the units after the change point have above the ideal [s]."""
    return float((unit_times[split:] - ideal_after(unit_times, split, capped=capped)).sum())


def vet_ratio(real_s: float, ideal_s: float) -> float | None:
    """(5): PR/EI; `None` where the ideal is 0, or next to it."""
    vet = real_s / ideal_s if ideal_s > 0 else math.inf
    return vet if math.isfinite(vet) else None


# Tail of the distribution


def hill(unit_seconds: Any, k: Any) -> HillPoint:
    """
    (8): H(k), the mean log excess of the *k* largest units, and alpha = 1/H (V01).

    ``ModelError`` for a k outside 1..n-1, or where the unit at place n-k took no time.
    """
    return hill_points(unit_seconds, [k])[0]


def hill_points(unit_seconds: Any, k_values: Any) -> tuple[HillPoint, ...]:
    """`hill` for each of *k_values*."""
    if not isinstance(k_values, Sequence) or isinstance(k_values, str):
        raise range_error("k_values", k_values, "a list of whole numbers", WHERE)
    ordered, points = order_units(unit_seconds), []
    unit_count = len(ordered)
    for value in k_values:
        k = check_count("k", value, where=WHERE, low=1)
        if k > unit_count - 1:
            raise ModelError(f"k = {k} is above n - 1 = {unit_count - 1}", where=WHERE)
        if ordered[unit_count - k - 1] <= 0:
            raise ModelError(f"k = {k}: the unit before the largest {k} took no time", where=WHERE)
        excesses = np.log(ordered[unit_count - k :]) - np.log(ordered[unit_count - k - 1])
        mean_excess = float(np.mean(excesses))
        points.append(HillPoint(k, mean_excess, _tail_index(mean_excess)))
    return tuple(points)


def hill_plot(unit_seconds: Any) -> tuple[HillPoint, ...]:
    """Alpha over k = 1 to a tenth of the units, without the k that `hill` refuses."""
    excesses = _mean_excesses(order_units(unit_seconds)).tolist()
    return tuple(
        HillPoint(k, excess, _tail_index(excess)) for k, excess in enumerate(excesses, start=1)
    )


def tail_index(unit_seconds: Any) -> float | None:
    """
    Index alpha of (7): the median of the Hill plot from 1 % of the units on, ten at least.

    `None` with fewer than 200 units, or where too many of them took no time.
    """
    return tail_index_ordered(order_units(unit_seconds))


def tail_index_ordered(ordered: Times) -> float | None:
    """`tail_index` of times that are in order already."""
    if len(ordered) < _FEWEST_FOR_INDEX:
        return None
    first = max(10, -(-len(ordered) // 100))
    excesses = _mean_excesses(ordered)[first - 1 :]
    if not len(excesses):
        return None
    with np.errstate(divide="ignore"):
        return float(np.median(1 / excesses))


def _mean_excesses(ordered: Times) -> Times:
    """H(1), H(2), ... to a tenth of the units, as far as they took any time."""
    unit_count = len(ordered)
    largest = ordered[::-1][: min(unit_count, max(1, unit_count // 10) + 1)]
    log_times = np.log(largest[largest > 0])
    # Depths below the largest: their sums are short.
    depths = log_times[:1] - log_times
    excesses = depths[1:] - np.cumsum(depths)[:-1] / np.arange(1, max(1, len(log_times)))
    return np.maximum(excesses, 0.0)


def _tail_index(mean_excess: float) -> float:
    """Alpha = 1/H; infinite where the largest units are equal."""
    return 1 / mean_excess if mean_excess > 0 else math.inf


def emplot(unit_seconds: Any) -> Emplot:
    """
    Points (log Y_i, log((n - i + 0.5)/n)) of (7), slope and R^2 of the line through the last tenth.

    The line is `None` with fewer than three points, or where all have one x.
    """
    ordered = order_units(unit_seconds)
    unit_count = len(ordered)
    places = np.flatnonzero(ordered > 0)
    log_times = np.log(ordered[places])
    shares = np.log((unit_count - (places + 1) + 0.5) / unit_count) if unit_count else ordered
    points = tuple(zip(log_times.tolist(), shares.tolist(), strict=True))
    first = len(log_times) - -(-len(log_times) // 10)
    last_logs, last_shares = log_times[first:], shares[first:]
    if len(last_logs) < _FEWEST_FOR_LINE or last_logs[0] == last_logs[-1]:
        return Emplot(points, None, None)
    x, y = last_logs - last_logs.mean(), last_shares - last_shares.mean()
    sxx, sxy, syy = float(x @ x), float(x @ y), float(y @ y)
    return Emplot(points, sxy / sxx, min(1.0, sxy * sxy / (sxx * syy)))


def bucket_view(unit_seconds: Any) -> tuple[float, ...]:
    """
    Sums of the ordered units in a thousand buckets, or as many as there are units [s].

    Their counts differ by one at most: not the option `buckets`, which needs equal ones.  The
    paper's second plot leaves out the last hundredth of them.
    """
    ordered = order_units(unit_seconds)
    bucket_count = min(_MOST_BUCKETS, len(ordered))
    edges = (
        [bucket * len(ordered) // bucket_count for bucket in range(bucket_count + 1)]
        if bucket_count
        else [0]
    )
    return tuple(float(ordered[first:end].sum()) for first, end in pairwise(edges))
