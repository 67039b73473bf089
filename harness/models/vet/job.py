"""Vet of a job: (6), and what section 3.5 compares jobs with."""

from __future__ import annotations

import math
import warnings

from collections.abc import Iterable, Sequence
from statistics import fmean, quantiles, stdev
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_number, range_error
from harness.models.vet.change_point import WHERE
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
    return vet_of_tasks([vet_task(unit_seconds, omega) for unit_seconds in tasks], task_seconds)


def vet_of_tasks(tasks: Sequence[VetTask], task_seconds: Any = None) -> VetJob:
    """`vet_job` of tasks that are measured already; those without a vet are skipped."""
    used = [place for place, task_vet in enumerate(tasks) if task_vet.vet is not None]
    vets = [task_vet.vet for task_vet in tasks if task_vet.vet is not None]
    correlation = None
    if task_seconds is not None:
        whole_times = _read_numbers("task_seconds", task_seconds, low=0.0)
        if len(whole_times) != len(tasks):
            message = f"task_seconds has {len(whole_times)} times for {len(tasks)} tasks"
            raise ModelError(message, where=WHERE)
        correlation = pearson(vets, [whole_times[place] for place in used])
    real_times = [tasks[place].profiled_real_s for place in used]
    ideal_times = [tasks[place].estimated_ideal_s or 0.0 for place in used]
    quartiles: Sequence[float | None] = [None, None, None]
    if vets:  # by linear interpolation, as most tools have them
        one = len(vets) == 1
        quartiles = vets * 3 if one else quantiles(vets, n=4, method="inclusive")
    real_mean_s, ideal_mean_s = _mean(real_times), _mean(ideal_times)
    return VetJob(
        vet_tasks=tuple(task_vet.vet for task_vet in tasks),
        tasks_used=len(used),
        tasks_skipped=len(tasks) - len(used),
        vet_job=mean_vet(vets),
        vet_quartile_1=quartiles[0],
        vet_median=quartiles[1],
        vet_quartile_3=quartiles[2],
        pr_mean_s=real_mean_s,
        pr_std_s=_deviation(real_times),
        ei_mean_s=ideal_mean_s,
        ei_std_s=_deviation(ideal_times),
        oc_mean_s=_mean([tasks[place].overhead_s or 0.0 for place in used]),
        ratio_of_means=(
            real_mean_s / ideal_mean_s if real_mean_s is not None and ideal_mean_s else None
        ),
        pearson_vet_vs_task_seconds=correlation,
    )


def mean_vet(vets: Sequence[float]) -> float | None:
    """(6): vet_job, the mean of vet_task over the used tasks."""
    return _mean(vets)


def pearson(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Pearson's correlation; `None` of fewer than three pairs, or where one side never differs."""
    samples = [_read_numbers("a", a), _read_numbers("b", b)]
    if len(samples[0]) != len(samples[1]):
        raise ModelError(f"a has {len(samples[0])} values and b has {len(samples[1])}", where=WHERE)
    if len(samples[0]) < _FEWEST_FOR_PEARSON or any(
        min(numbers) == max(numbers) for numbers in samples
    ):
        return None
    # Deviations from the mean, as a vector of length 1; scaled, so that no square vanishes.
    vectors = []
    for numbers in samples:
        mean = fmean(numbers)
        largest = max(abs(value - mean) for value in numbers)
        deviations = [(value - mean) / largest for value in numbers]
        length = math.hypot(*deviations)
        vectors.append([deviation / length for deviation in deviations])
    cosine = math.fsum(first * second for first, second in zip(*vectors, strict=True))
    return max(-1.0, min(1.0, cosine))


def ks_two_sample(sample_a: Sequence[float], sample_b: Sequence[float]) -> KsTest:
    """
    D = max |F1 - F2| and its two-sided p-value, exact for small samples.

    ``ModelError`` for an empty sample, or a value that is not a finite number.
    """
    first, second = _read_numbers("sample_a", sample_a), _read_numbers("sample_b", sample_b)
    for name, sample in (("sample_a", first), ("sample_b", second)):
        if not sample:
            raise range_error(name, sample, "a list with a value", WHERE)
    from scipy.stats import ks_2samp

    with warnings.catch_warnings(record=True) as failures:
        warnings.simplefilter("always", RuntimeWarning)
        result = ks_2samp(first, second)
    distance, p_value = float(result.statistic), float(result.pvalue)
    first_count, second_count = len(first), len(second)
    if failures and first_count * second_count <= _MOST_PATHS:
        # Rounding took SciPy's exact p out of [0, 1].  It is the share of the orders of both
        # samples' values whose distribution functions are as far apart.
        limit = round(distance * first_count * second_count)
        paths = [0] * (second_count + 1)  # of orders that end here, and were never as far apart
        for i in range(first_count + 1):
            for j in range(second_count + 1):
                before = 1 if i == j == 0 else paths[j] + (paths[j - 1] if j else 0)
                paths[j] = before if abs(i * second_count - j * first_count) < limit else 0
        order_count = math.comb(first_count + second_count, second_count)
        p_value = (order_count - paths[second_count]) / order_count
    return KsTest(distance, p_value)


def _read_numbers(name: str, values: Iterable[Any], low: float = -math.inf) -> list[float]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise range_error(name, values, "a list of numbers", WHERE)
    return [
        check_number(f"{name}[{place}]", value, where=WHERE, low=low)
        for place, value in enumerate(values)
    ]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation."""
    return stdev(values) if len(values) > 1 else None
