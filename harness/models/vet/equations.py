"""
A task: ideal, overhead and vet, (2) to (5), buckets of section 3.6, its tail (7), (8); a job: (6).

What section 3.5 compares jobs with stands at the end.
"""

from __future__ import annotations

import math
import warnings

from collections.abc import Sequence
from statistics import correlation, fmean, quantiles, stdev
from typing import Any

import numpy as np

from harness.base.errors import ModelError
from harness.base.records.vet import (
    NEGATIVE_OVERHEAD,
    OMEGA_SENSITIVE,
    HillPoint,
    KsTest,
    VetJob,
    VetTask,
)
from harness.models.checks import check_count, check_flag, check_number, range_error
from harness.models.vet.change_point import (
    WHERE,
    Times,
    change_point,
    line_error,
    order_units,
    split_errors,
)

OMEGA = 3
UNITS_OF_BUCKET = 10  # with fewer units to a bucket its sum says little

_SENSITIVE = 0.2  # vet of another window differs by more than this share
_ROUNDING = 1e-12  # of PR; an overhead below zero by less is rounding
_FEWEST_FOR_INDEX = 200  # units
_FEWEST_FOR_PEARSON = 3


def vet_task(
    unit_seconds: Any,
    omega: int = OMEGA,
    cap_at_observed: bool = False,  # noqa: FBT001, FBT002 - the signature of the specification
    buckets: int | None = None,
) -> VetTask:
    """Vet of a task from the seconds of its units, in any order."""
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
    set_aside_s = 0.0
    unit_times = ordered
    if buckets is not None:
        unit_times, set_aside_s, shape = into_buckets(ordered, buckets, omega)
    if len(unit_times) < 2 * omega:
        return VetTask(len(ordered), "too_few_units", float(ordered.sum()), **shape)
    errors = split_errors(unit_times)
    split = change_point(errors, omega)
    # Units set aside count as observed, and as ideal.
    real_s = float(unit_times.sum()) + set_aside_s
    ideal_s = estimated_ideal(unit_times, split, capped=capped) + set_aside_s
    overhead_s = overhead(unit_times, split, capped=capped)
    vet_value = vet_ratio(real_s, ideal_s)

    def vet_of_window(window: int) -> float | None:
        window_split = change_point(errors, window)
        window_ideal_s = estimated_ideal(unit_times, window_split, capped=capped)
        return vet_ratio(real_s, window_ideal_s + set_aside_s)

    flags = []
    # Section 4: does a window of 1 % of the units give another vet than one of three?
    wide = max(OMEGA, len(unit_times) // 100)
    if wide != OMEGA and differ(vet_of_window(OMEGA), vet_of_window(wide)):
        flags.append(OMEGA_SENSITIVE)
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


def into_buckets(ordered: Times, buckets: int, omega: int) -> tuple[Times, float, dict[str, int]]:
    """
    Section 3.6: sums of equally many ordered units, one per bucket [s].

    With them the seconds of the smallest units, which belong to no bucket, and the numbers of
    `VetTask` that say so.  There is no sum where units are too few.
    """
    bucket_count = check_count("buckets", buckets, where=WHERE, low=1)
    if bucket_count < 2 * omega:
        message = f"buckets = {bucket_count} is below 2*omega = {2 * omega}"
        raise ModelError(message, where=WHERE)
    bucket_units, set_aside = divmod(len(ordered), bucket_count)
    shape = {"buckets": bucket_count, "set_aside": set_aside, "bucket_units": bucket_units}
    sums = ordered[:0]
    if len(ordered) >= UNITS_OF_BUCKET * bucket_count:
        sums = ordered[set_aside:].reshape(bucket_count, bucket_units).sum(axis=1)
    return sums, float(ordered[:set_aside].sum()), shape


def differ(narrow_vet: float | None, wide_vet: float | None) -> bool:
    """Whether two windows give vets that are far from each other, or only one gives any."""
    if narrow_vet is None or wide_vet is None:
        return narrow_vet is not wide_vet
    return abs(wide_vet - narrow_vet) > _SENSITIVE * narrow_vet


def slope(unit_times: Times, split: int) -> float:
    """Step of the ideal line: d = Y_t - Y_{t-1}, in seconds."""
    return float(unit_times[split - 1] - unit_times[split - 2])


def ideal_after(unit_times: Times, split: int, *, capped: bool = False) -> Times:
    """(2): g_hat(t + j) = Y_t + j*d for j = 1..n-t; *capped*, never above what was observed [s]."""
    steps = np.arange(1.0, len(unit_times) - split + 1)
    ideal: Times = unit_times[split - 1] + steps * slope(unit_times, split)
    return np.minimum(ideal, unit_times[split:]) if capped else ideal


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


def hill_points(unit_seconds: Any, k_values: Any) -> tuple[HillPoint, ...]:
    """(8): H(k), the mean log excess of the k largest units, and alpha = 1/H (V01), of each k."""
    if not isinstance(k_values, Sequence) or isinstance(k_values, str):
        raise range_error("k_values", k_values, "a list of whole numbers", WHERE)
    ordered = order_units(unit_seconds)
    points = []
    unit_count = len(ordered)
    for value in k_values:
        k = check_count("k", value, where=WHERE, low=1)
        if k > unit_count - 1:
            raise ModelError(f"k = {k} is above n - 1 = {unit_count - 1}", where=WHERE)
        if ordered[unit_count - k - 1] <= 0:
            raise ModelError(f"k = {k}: the unit before the largest {k} took no time", where=WHERE)
        excesses = np.log(ordered[unit_count - k :]) - np.log(ordered[unit_count - k - 1])
        mean_excess = float(np.mean(excesses))
        points.append(HillPoint(k, mean_excess, 1 / mean_excess if mean_excess > 0 else math.inf))
    return tuple(points)


def tail_index(ordered: Times) -> float | None:
    """
    Index alpha of (7): the median of the Hill plot from 1 % of the units on, ten at least.

    `None` with fewer than 200 units, or where too many of them took no time.
    """
    if len(ordered) < _FEWEST_FOR_INDEX:
        return None
    first = max(10, -(-len(ordered) // 100))
    # H(1), H(2), ... to a tenth of the units, as far as they took any time.  The depths are those
    # below the largest: their sums are short.
    largest = ordered[::-1][: len(ordered) // 10 + 1]
    log_times = np.log(largest[largest > 0])
    depths = log_times[:1] - log_times
    excesses = depths[1:] - np.cumsum(depths)[:-1] / np.arange(1, max(1, len(log_times)))
    excesses = np.maximum(excesses, 0.0)[first - 1 :]
    if not len(excesses):
        return None
    with np.errstate(divide="ignore"):
        return float(np.median(1 / excesses))


# Job


def vet_job(tasks: Any, task_seconds: Any = None, omega: int = OMEGA) -> VetJob:
    """Vet of a job from the unit times of each of its *tasks*, and the whole times of these."""
    if not isinstance(tasks, Sequence) or isinstance(tasks, str):
        raise range_error("tasks", tasks, "a list of tasks", WHERE)
    return vet_of_tasks([vet_task(unit_seconds, omega) for unit_seconds in tasks], task_seconds)


def vet_of_tasks(tasks: Sequence[VetTask], task_seconds: Any = None) -> VetJob:
    """`vet_job` of tasks that are measured already; those without a vet are skipped."""
    used = [task for task in tasks if task.vet is not None]
    vets = [task.vet for task in tasks if task.vet is not None]
    correlated = None
    if task_seconds is not None:
        correlated = pearson(vets, _seconds_with_vet(tasks, task_seconds))
    real_times = [task.profiled_real_s for task in used]
    ideal_times = [task.estimated_ideal_s or 0.0 for task in used]
    first_quartile, middle, third_quartile = _quartiles(vets)
    real_mean_s = _mean(real_times)
    ideal_mean_s = _mean(ideal_times)
    ratio_of_means = None
    if real_mean_s is not None and ideal_mean_s:  # both are known, or none is
        ratio_of_means = real_mean_s / ideal_mean_s
    return VetJob(
        vet_tasks=tuple(task.vet for task in tasks),
        tasks_used=len(used),
        tasks_skipped=len(tasks) - len(used),
        vet_job=_mean(vets),  # (6)
        vet_quartile_1=first_quartile,
        vet_median=middle,
        vet_quartile_3=third_quartile,
        pr_mean_s=real_mean_s,
        pr_std_s=_deviation(real_times),
        ei_mean_s=ideal_mean_s,
        ei_std_s=_deviation(ideal_times),
        oc_mean_s=_mean([task.overhead_s or 0.0 for task in used]),
        ratio_of_means=ratio_of_means,
        pearson_vet_vs_task_seconds=correlated,
    )


def _seconds_with_vet(tasks: Sequence[VetTask], task_seconds: Any) -> list[float]:
    """Whole times of the tasks that have a vet; ``ModelError`` unless every task has a time."""
    whole_times = _read_numbers("task_seconds", task_seconds, low=0.0)
    if len(whole_times) != len(tasks):
        message = f"task_seconds has {len(whole_times)} times for {len(tasks)} tasks"
        raise ModelError(message, where=WHERE)
    return [
        whole_s for whole_s, task in zip(whole_times, tasks, strict=True) if task.vet is not None
    ]


def pearson(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's correlation; `None` of fewer than three pairs, or where one side never differs."""
    if len(a) < _FEWEST_FOR_PEARSON or any(min(numbers) == max(numbers) for numbers in (a, b)):
        return None
    scaled = []  # deviations from the mean: no square of one vanishes
    for numbers in (a, b):
        deviations = np.array(numbers) - fmean(numbers)
        scaled.append((deviations / np.abs(deviations).max()).tolist())
    return max(-1.0, min(1.0, correlation(*scaled)))


def ks_two_sample(sample_a: Sequence[float], sample_b: Sequence[float]) -> KsTest:
    """D = max |F1 - F2| and its two-sided p-value, exact for small samples."""
    first = _read_numbers("sample_a", sample_a)
    second = _read_numbers("sample_b", sample_b)
    for name, sample in (("sample_a", first), ("sample_b", second)):
        if not sample:
            raise range_error(name, sample, "a list with a value", WHERE)
    from scipy.stats import ks_2samp

    with warnings.catch_warnings():  # where rounding spoils the exact p, SciPy takes another
        warnings.simplefilter("ignore", RuntimeWarning)
        result = ks_2samp(first, second)
    return KsTest(float(result.statistic), float(result.pvalue))


def _read_numbers(name: str, values: Any, low: float = -math.inf) -> list[float]:
    """*values*, if they are a list of finite numbers of at least *low*."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise range_error(name, values, "a list of numbers", WHERE)
    return [
        check_number(f"{name}[{place}]", value, where=WHERE, low=low)
        for place, value in enumerate(values)
    ]


def _quartiles(values: Sequence[float]) -> Sequence[float | None]:
    """Quartiles by linear interpolation, as most tools have them; none of no values."""
    if not values:
        return [None, None, None]
    if len(values) == 1:
        return [*values] * 3
    return quantiles(values, n=4, method="inclusive")


def _mean(values: Sequence[float]) -> float | None:
    """Their mean; `None` of no values."""
    return fmean(values) if values else None


def _deviation(values: Sequence[float]) -> float | None:
    """Their standard deviation (divisor n - 1); `None` of fewer than two values."""
    return stdev(values) if len(values) > 1 else None
