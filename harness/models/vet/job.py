"""Vet of a job: (6), and what section 3.5 compares jobs with."""

from __future__ import annotations

import math
import warnings

from collections.abc import Iterable, Sequence
from statistics import fmean, quantiles, stdev
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_number, range_error
from harness.models.vet.inputs import WHERE
from harness.models.vet.task import OMEGA, vet_task
from harness.records.vet import KsTest, VetJob, VetTask

_FEWEST_FOR_PEARSON = 3
_MOST_PATHS = 1_000_000  # that are counted one by one


def vet_job(tasks: Any, task_seconds: Any = None, omega: int = OMEGA) -> VetJob:
    """
    Vet of a job from the unit times of each of its *tasks*, and the whole times of these.

    ``ModelError`` where a task's times are bad, or *task_seconds* is not one time for each task.
    """
    if not isinstance(tasks, Sequence) or isinstance(tasks, str):
        raise range_error("tasks", tasks, "a list of tasks", WHERE)
    return of_tasks([vet_task(unit_seconds, omega) for unit_seconds in tasks], task_seconds)


def of_tasks(tasks: Sequence[VetTask], task_seconds: Any = None) -> VetJob:
    """`vet_job` of tasks that are measured already; those without a vet are skipped."""
    took = None if task_seconds is None else _seconds(task_seconds, len(tasks))
    used = [place for place, task in enumerate(tasks) if task.vet is not None]
    values = [v for task in tasks if (v := task.vet) is not None]
    pr = [tasks[place].profiled_real_s for place in used]
    ei = [tasks[place].estimated_ideal_s or 0.0 for place in used]
    first, middle, third = _quartiles(values)
    pr_mean, ei_mean = _mean(pr), _mean(ei)
    return VetJob(
        vet_tasks=tuple(task.vet for task in tasks),
        tasks_used=len(used),
        tasks_skipped=len(tasks) - len(used),
        vet_job=mean_vet(values),
        vet_quartile_1=first,
        vet_median=middle,
        vet_quartile_3=third,
        pr_mean_s=pr_mean,
        pr_std_s=_deviation(pr),
        ei_mean_s=ei_mean,
        ei_std_s=_deviation(ei),
        oc_mean_s=_mean([tasks[place].overhead_s or 0.0 for place in used]),
        ratio_of_means=pr_mean / ei_mean if pr_mean is not None and ei_mean else None,
        pearson_vet_vs_task_seconds=pearson(values, [took[n] for n in used]) if took else None,
    )


def mean_vet(values: Sequence[float]) -> float | None:
    """(6): vet_job, the mean of vet_task over the used tasks."""
    return _mean(values)


def pearson(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's correlation; `None` of fewer than three pairs, or where one side never differs."""
    x, y = _numbers("a", a), _numbers("b", b)
    if len(x) != len(y):
        raise ModelError(f"a has {len(x)} values and b has {len(y)}", where=WHERE)
    if len(x) < _FEWEST_FOR_PEARSON or min(x) == max(x) or min(y) == max(y):
        return None
    x, y = _unit(x), _unit(y)
    return max(-1.0, min(1.0, math.fsum(v * w for v, w in zip(x, y, strict=True))))


def ks_two_sample(sample_a: Sequence[float], sample_b: Sequence[float]) -> KsTest:
    """
    D = max |F1 - F2| and its two-sided p-value, exact for small samples.

    ``ModelError`` for an empty sample, or a value that is no finite number.
    """
    a, b = _numbers("sample_a", sample_a), _numbers("sample_b", sample_b)
    for name, sample in (("sample_a", a), ("sample_b", b)):
        if not sample:
            raise range_error(name, sample, "a list with a value", WHERE)
    from scipy.stats import ks_2samp

    with warnings.catch_warnings(record=True) as failed:
        warnings.simplefilter("always", RuntimeWarning)
        found = ks_2samp(a, b)
    distance, p = float(found.statistic), float(found.pvalue)
    if failed and len(a) * len(b) <= _MOST_PATHS:  # rounding took its exact p out of [0, 1]
        p = _exact_p(len(a), len(b), distance)
    return KsTest(distance, p)


def _exact_p(m: int, n: int, distance: float) -> float:
    """Share of the orders of m and n values whose distribution functions are as far apart."""
    far = round(distance * m * n)
    paths = [0] * (n + 1)  # of orders that end here, and were never as far apart
    for i in range(m + 1):
        for j in range(n + 1):
            before = 1 if i == j == 0 else paths[j] + (paths[j - 1] if j else 0)
            paths[j] = before if abs(i * n - j * m) < far else 0
    total = math.comb(m + n, n)
    return (total - paths[n]) / total


def _unit(values: Sequence[float]) -> list[float]:
    """Deviations from the mean, as a vector of length 1; scaled, so that no square vanishes."""
    mean = fmean(values)
    largest = max(abs(v - mean) for v in values)
    rest = [(v - mean) / largest for v in values]
    length = math.hypot(*rest)
    return [v / length for v in rest]


def _numbers(name: str, values: Iterable[Any]) -> list[float]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise range_error(name, values, "a list of numbers", WHERE)
    return [
        check_number(f"{name}[{n}]", v, where=WHERE, low=-math.inf) for n, v in enumerate(values)
    ]


def _seconds(task_seconds: Any, tasks: int) -> list[float]:
    found = _numbers("task_seconds", task_seconds)
    if len(found) != tasks:
        wanted = f"task_seconds has {len(found)} times for {tasks} tasks"
        raise ModelError(wanted, where=WHERE)
    return [check_number(f"task_seconds[{n}]", s, where=WHERE) for n, s in enumerate(found)]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation."""
    return stdev(values) if len(values) > 1 else None


def _quartiles(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Quartiles by linear interpolation, as most tools have them."""
    if not values:
        return None, None, None
    if len(values) == 1:
        return values[0], values[0], values[0]
    first, middle, third = quantiles(values, n=4, method="inclusive")
    return first, middle, third
