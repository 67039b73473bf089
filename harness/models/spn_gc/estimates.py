"""
Job times of the net, section 4: simulated, expected, and with slots.

    shared_read      T = X1 + X2 + max_j (X3j + .. + X7j) + max_i (X8i + X9i)
    shared_shuffle   T = X1 + max_j (X2j + .. + X6j) + X7 + max_i (X8i + X9i)

Two ways to draw T, of the same distribution.  `tasks` draws every delay of every task: the obvious
form, needed where tasks differ or wait for slots.  `maxima` draws each maximum at once, as the
quantile at u of the distribution of M independent sums: P(max <= t) = F(t)^M, with F exact
(`harness.sim.phasetype`).  It costs the same for a hundred thousand maps as for one; with the same
seed it never falls when a mean or the number of tasks grows.

A reduce starts when all maps, and the shared shuffle, have ended.  With slots (4.2, ours) tasks go
to the slot that is free first, in order.
"""

from __future__ import annotations

import heapq
import math

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from numpy.typing import NDArray

from harness.errors import ModelError
from harness.models.checks import check_count, check_number, range_error
from harness.models.spn_gc.inputs import WHERE
from harness.models.spn_gc.net import VARIANTS
from harness.models.spn_gc.phases import PHASES
from harness.sim.phasetype import Moments, Quantiles, maximum

REPLICATIONS = 2000  # of the paper
METHODS = ("maxima", "tasks")
MOST_DRAWS = 1_000_000_000
_BLOCK = 1 << 15  # delays drawn at once: what fits into a core's cache
_FEW_RUNS, _MANY_SLOTS = 16, 256  # beyond these a heap is faster

# Variant -> phases that are once per job, per map, per reduce.
SHARED = {"shared_read": PHASES[:2], "shared_shuffle": (PHASES[0], PHASES[6])}
MAP = {"shared_read": PHASES[2:7], "shared_shuffle": PHASES[1:6]}
REDUCE = PHASES[7:]

Floats = NDArray[np.float64]
Phases = Mapping[str, float | Sequence[float]]


def simulate_net(
    phases: Phases,
    num_maps: int,
    num_reduces: int,
    *,
    replications: int = REPLICATIONS,
    seed: int = 0,
    variant: str = "shared_read",
    map_slots: int | None = None,
    reduce_slots: int | None = None,
    method: str | None = None,
) -> dict[str, float]:
    """
    Mean of so many drawn job times, its standard error, quantiles, and means of the stages, in s.

    *phases* hold a mean per phase, or one per map (of phases 3 to 7; 2 to 6 in `shared_shuffle`)
    or per reduce (8 and 9).  All randomness comes from *seed*.  *method* is `maxima` where that can
    be, unless told.  ``ModelError`` for a number, mean, slot count, variant or method that is none,
    and for `maxima` where tasks differ or wait for slots.
    """
    job = _Job(phases, num_maps, num_reduces, variant)
    number = check_count("replications", replications, where=WHERE, low=1)
    slots = (
        _slots("map_slots", map_slots, job.maps),
        _slots("reduce_slots", reduce_slots, job.reduces),
    )
    alike = job.equal_tasks and slots == (job.maps, job.reduces)
    chosen = method or ("maxima" if alike else "tasks")
    if chosen not in METHODS or (chosen == "maxima" and not alike):
        wanted = "maxima or tasks" if alike else "tasks, as tasks differ or wait for slots"
        raise range_error("method", chosen, wanted, WHERE)
    rng = np.random.default_rng(check_count("seed", seed, where=WHERE))
    shared = job.shared @ rng.standard_exponential((len(job.shared), number))
    draw = _draw_maximum if chosen == "maxima" else _draw_tasks
    maps = draw(job.map_means, job.maps, slots[0], number, rng)
    reduces = draw(job.reduce_means, job.reduces, slots[1], number, rng)
    return _summary(shared, maps, reduces)


def expected_net_time(
    phases: Phases, num_maps: int, num_reduces: int, variant: str = "shared_read"
) -> dict[str, float]:
    """
    Exact mean and standard deviation of T, and the means of its two maxima, in s.

    Of tasks that differ, F^n is the product of their distributions.  ``ModelError`` as from
    `simulate_net`.
    """
    job = _Job(phases, num_maps, num_reduces, variant)
    maps = _maximum(_groups(job.map_means, job.maps))
    reduces = _maximum(_groups(job.reduce_means, job.reduces))
    variances = [*(job.shared**2), maps.std**2, reduces.std**2]
    return {
        "map_stage_expected_s": maps.mean,
        "reduce_stage_expected_s": reduces.mean,
        "expected_s": float(job.shared.sum()) + maps.mean + reduces.mean,
        "std_s": math.sqrt(sum(variances)),
    }


def time_cost_ratio(model_seconds: float, job_seconds: float) -> float:
    """Time that the model takes, in percent of the job's, section 4.3."""
    model = check_number("model_seconds", model_seconds, where=WHERE)
    return 100 * model / check_number("job_seconds", job_seconds, where=WHERE, above=True)


def expectations(phases: Phases, num_maps: int, num_reduces: int) -> dict[str, float]:
    """Exact expectations of both variants, by the names of section 1."""
    read, shuffle = (expected_net_time(phases, num_maps, num_reduces, v) for v in VARIANTS)
    other = ("map_stage_expected_s", "expected_s", "std_s")
    return read | {f"shared_shuffle_{name}": shuffle[name] for name in other}


class _Job:
    """Tasks and means, checked: a column per phase, a row per task or one for all."""

    def __init__(self, phases: Phases, num_maps: int, num_reduces: int, variant: str) -> None:
        if variant not in VARIANTS:
            raise range_error("variant", variant, "shared_read or shared_shuffle", WHERE)
        self.maps = check_count("num_maps", num_maps, where=WHERE, low=1)
        self.reduces = check_count("num_reduces", num_reduces, where=WHERE)
        if not self.reduces:  # no shuffle, and nothing that follows
            phases = {**phases, **dict.fromkeys(PHASES[6:], 0.0)}
        self.shared = np.array([_mean(phases, name) for name in SHARED[variant]])
        self.map_means = _means(phases, MAP[variant], self.maps)
        self.reduce_means = _means(phases, REDUCE, self.reduces)

    @property
    def equal_tasks(self) -> bool:
        """Whether one row of means stands for all tasks of a kind."""
        return len(self.map_means) == 1 and len(self.reduce_means) == 1


def _mean(phases: Phases, name: str) -> float:
    if name not in phases:
        raise ModelError(f"{name} is missing", where=WHERE)
    return check_number(name, phases[name], where=WHERE)


def _means(phases: Phases, names: Sequence[str], tasks: int) -> Floats:
    """Means of the *names*: one row where all are single numbers, else a row per task."""
    columns = []
    for name in names:
        given = phases.get(name)
        if isinstance(given, list | tuple):
            if len(given) != tasks:
                raise range_error(name, list(given), f"a list of {tasks} means", WHERE)
            columns.append([check_number(name, value, where=WHERE) for value in given])
        else:
            columns.append([_mean(phases, name)])
    rows = max(map(len, columns))
    return np.array([column * (rows // len(column)) for column in columns]).T


def _groups(means: Floats, tasks: int) -> tuple[tuple[tuple[float, ...], int], ...]:
    """Tasks of equal means, and their number."""
    if len(means) == 1:
        return ((tuple(means[0].tolist()), tasks),)
    counted = Counter(map(tuple, means.tolist()))
    return tuple(counted.items())


def _slots(name: str, value: int | None, tasks: int) -> int:
    """Slots that matter: as many as tasks at most."""
    return (
        tasks
        if value is None or not tasks
        else min(tasks, check_count(name, value, where=WHERE, low=1))
    )


def _draw_maximum(
    means: Floats, tasks: int, slots: int, number: int, rng: np.random.Generator
) -> Floats:
    """The last of all tasks' ends: the quantile at u, with -log u exponential."""
    del slots  # as many as tasks
    return _quantiles(tuple(means[0].tolist())).of_maximum(rng.standard_exponential(number), tasks)


@lru_cache(maxsize=8)
def _quantiles(means: tuple[float, ...]) -> Quantiles:
    """Table of the inverse; both nets ask for that of the same reduces."""
    return Quantiles(means)


@lru_cache(maxsize=8)
def _maximum(groups: tuple[tuple[tuple[float, ...], int], ...]) -> Moments:
    """Moments of a stage; both nets ask for those of the same reduces."""
    return maximum(groups)


def _draw_tasks(
    means: Floats, tasks: int, slots: int, number: int, rng: np.random.Generator
) -> Floats:
    """The same, from every delay of every task."""
    if tasks * number * means.shape[1] > MOST_DRAWS:
        what = f"{tasks} tasks in {number} replications"
        raise ModelError(f"{what} are too many to draw one by one", where=WHERE)
    if not tasks:
        return np.zeros(number)
    if slots < tasks:
        return _makespan(means, tasks, slots, number, rng)
    last = np.empty(number)
    step = max(1, _BLOCK // tasks)
    for begin in range(0, number, step):
        part = last[begin : begin + step]
        part[:] = _durations(means, (len(part), tasks), rng).max(axis=1)
    return last


def _durations(means: Floats, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Sums of the delays of tasks; *shape* is (replications, tasks)."""
    total, delay = np.zeros(shape), np.empty(shape)
    for mean in means.T:
        if mean.any():
            rng.standard_exponential(out=delay)
            delay *= mean
            total += delay
    return total


def _makespan(
    means: Floats, tasks: int, slots: int, number: int, rng: np.random.Generator
) -> Floats:
    """End of the last of *tasks* that go, in order, to the slot that is free first."""
    ends = np.empty(number)
    step = max(1, _BLOCK // tasks)
    last = _ends_in_step if step >= _FEW_RUNS and slots <= _MANY_SLOTS else _ends_one_by_one
    for begin in range(0, number, step):
        part = ends[begin : begin + step]
        part[:] = last(_durations(means, (len(part), tasks), rng), slots)
    return ends


def _ends_in_step(durations: Floats, slots: int) -> Floats:
    """One task of all runs (rows) at a time: for many runs on few slots."""
    columns = durations.T.copy()
    free = columns[:slots].copy()  # the first wave: task i on slot i
    runs = np.arange(len(durations))
    for duration in columns[slots:]:
        free[free.argmin(axis=0), runs] += duration
    ends: Floats = free.max(axis=0)
    return ends


def _ends_one_by_one(durations: Floats, slots: int) -> Floats:
    """The same with a heap of the times at which slots are free."""
    ends = np.empty(len(durations))
    for run, row in enumerate(durations.tolist()):
        free = row[:slots]
        heapq.heapify(free)
        for duration in row[slots:]:
            heapq.heapreplace(free, free[0] + duration)
        ends[run] = max(free)
    return ends


def _summary(shared: Floats, maps: Floats, reduces: Floats) -> dict[str, float]:
    times = shared + maps + reduces
    number = len(times)
    low, middle, high = np.quantile(times, [0.05, 0.5, 0.95])
    return {
        "simulated_s": float(times.mean()),
        "standard_error_s": float(times.std(ddof=1) / math.sqrt(number)) if number > 1 else 0.0,
        "quantile_05_s": float(low),
        "quantile_50_s": float(middle),
        "quantile_95_s": float(high),
        "shared_stage_s": float(shared.mean()),
        "map_stage_s": float(maps.mean()),
        "reduce_stage_s": float(reduces.mean()),
    }
