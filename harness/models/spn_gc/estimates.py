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
from harness.models.spn_gc.net import VARIANTS, check_tasks
from harness.models.spn_gc.phases import PHASES, WHERE
from harness.sim.phasetype import Quantiles, maximum

REPLICATIONS = 2000  # of the paper
METHODS = ("maxima", "tasks")
MOST_DRAWS = 1_000_000_000
_BLOCK = 1 << 15  # delays drawn at once: what fits into a core's cache

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
    be, unless given: not where tasks differ or wait for slots.
    """
    net_job = _Job(phases, num_maps, num_reduces, variant)
    runs = check_count("replications", replications, where=WHERE, low=1)
    map_slots, reduce_slots = (
        tasks
        if slots is None or not tasks
        else min(tasks, check_count(name, slots, where=WHERE, low=1))
        for name, slots, tasks in (
            ("map_slots", map_slots, net_job.maps),
            ("reduce_slots", reduce_slots, net_job.reduces),
        )
    )
    has_slots_for_all = (map_slots, reduce_slots) == (net_job.maps, net_job.reduces)
    has_equal_tasks = len(net_job.map_means) == len(net_job.reduce_means) == 1
    is_closed_form = has_equal_tasks and has_slots_for_all
    method = method or ("maxima" if is_closed_form else "tasks")
    if method not in METHODS or (method == "maxima" and not is_closed_form):
        wanted = "maxima or tasks" if is_closed_form else "tasks, as tasks differ or wait for slots"
        raise range_error("method", method, wanted, WHERE)

    generator = np.random.default_rng(check_count("seed", seed, where=WHERE))
    shared = net_job.shared @ generator.standard_exponential((len(net_job.shared), runs))
    stages = []
    for means, tasks, slots in (
        (net_job.map_means, net_job.maps, map_slots),
        (net_job.reduce_means, net_job.reduces, reduce_slots),
    ):
        if method == "maxima":  # the quantile at u, with -log u exponential
            quantiles = _quantiles(tuple(means[0].tolist()))
            stages.append(quantiles.of_maximum(generator.standard_exponential(runs), tasks))
        else:
            stages.append(stage_ends(means, tasks, slots, runs, generator))
    times = shared + stages[0] + stages[1]
    low, median, high = np.quantile(times, [0.05, 0.5, 0.95])
    return {
        "simulated_s": float(times.mean()),
        "standard_error_s": float(times.std(ddof=1) / math.sqrt(runs)) if runs > 1 else 0.0,
        "quantile_05_s": float(low),
        "quantile_50_s": float(median),
        "quantile_95_s": float(high),
        "shared_stage_s": float(shared.mean()),
        "map_stage_s": float(stages[0].mean()),
        "reduce_stage_s": float(stages[1].mean()),
    }


def expected_net_time(
    phases: Phases, num_maps: int, num_reduces: int, variant: str = "shared_read"
) -> dict[str, float]:
    """
    Exact mean and standard deviation of T, and the means of its two maxima, in s.

    Of tasks that differ, F^n is the product of their distributions.
    """
    net_job = _Job(phases, num_maps, num_reduces, variant)
    map_stage = _maximum(_groups(net_job.map_means, net_job.maps))
    reduce_stage = _maximum(_groups(net_job.reduce_means, net_job.reduces))
    variances = [*(net_job.shared**2), map_stage.std**2, reduce_stage.std**2]
    return {
        "map_stage_expected_s": map_stage.mean,
        "reduce_stage_expected_s": reduce_stage.mean,
        "expected_s": float(net_job.shared.sum()) + map_stage.mean + reduce_stage.mean,
        "std_s": math.sqrt(sum(variances)),
    }


def time_cost_ratio(model_seconds: float, job_seconds: float) -> float:
    """Time that the model takes, in percent of the job's, section 4.3."""
    model_time = check_number("model_seconds", model_seconds, where=WHERE)
    return 100 * model_time / check_number("job_seconds", job_seconds, where=WHERE, above=True)


def expectations(phases: Phases, num_maps: int, num_reduces: int) -> dict[str, float]:
    """Exact expectations of both variants, by the names of section 1."""
    read, shuffle = (
        expected_net_time(phases, num_maps, num_reduces, variant_name) for variant_name in VARIANTS
    )
    other = ("map_stage_expected_s", "expected_s", "std_s")
    return read | {f"shared_shuffle_{name}": shuffle[name] for name in other}


class _Job:
    """Tasks and means, checked: a column per phase, a row per task or one for all."""

    def __init__(self, phases: Phases, num_maps: int, num_reduces: int, variant: str) -> None:
        self.maps, self.reduces = check_tasks(num_maps, num_reduces, variant)
        if not self.reduces:  # no shuffle, and nothing that follows
            phases = {**phases, **dict.fromkeys(PHASES[6:], 0.0)}
        self.shared = _means(phases, SHARED[variant], 0)[0]
        self.map_means = _means(phases, MAP[variant], self.maps)
        self.reduce_means = _means(phases, REDUCE, self.reduces)


def _means(phases: Phases, phase_names: Sequence[str], tasks: int) -> Floats:
    """Means of the *phase_names*: one row where all are single numbers, else a row per task."""
    columns = []
    for name in phase_names:
        if name not in phases:
            raise ModelError(f"{name} is missing", where=WHERE)
        values = phases[name]
        if isinstance(values, list | tuple) and tasks and len(values) != tasks:
            raise range_error(name, list(values), f"a list of {tasks} means", WHERE)
        per_task = values if isinstance(values, list | tuple) and tasks else [values]
        columns.append([check_number(name, value, where=WHERE) for value in per_task])
    rows = max(map(len, columns))
    return np.array([column * (rows // len(column)) for column in columns]).T


def _groups(means: Floats, tasks: int) -> tuple[tuple[tuple[float, ...], int], ...]:
    """Tasks of equal means, and how many there are of each."""
    if len(means) == 1:
        return ((tuple(means[0].tolist()), tasks),)
    return tuple(Counter(map(tuple, means.tolist())).items())


# Both nets need the same table and the same moments for the same reduces.
_quantiles = lru_cache(maxsize=8)(Quantiles)
_maximum = lru_cache(maxsize=8)(maximum)


def stage_ends(
    means: Floats, tasks: int, slots: int, runs: int, generator: np.random.Generator
) -> Floats:
    """When the last task of a stage ends in each run [s], from every delay of every task."""
    if tasks * runs * means.shape[1] > MOST_DRAWS:
        what = f"{tasks} tasks in {runs} replications"
        raise ModelError(f"{what} are too many to draw one by one", where=WHERE)
    ends = np.zeros(runs)
    block_runs = max(1, _BLOCK // tasks) if tasks else runs
    for start in range(0, runs if tasks else 0, block_runs):
        block = ends[start : start + block_runs]
        durations, delays = np.zeros((len(block), tasks)), np.empty((len(block), tasks))
        for phase_mean in means.T:
            if phase_mean.any():
                generator.standard_exponential(out=delays)
                delays *= phase_mean
                durations += delays
        block[:] = makespans(durations, slots)
    return ends


def makespans(durations: Floats, slots: int) -> Floats:
    """When the last task of each run (row) ends; tasks go, in order, to the slot that is free."""
    ends = np.zeros(len(durations))
    if slots >= durations.shape[1]:
        ends[:] = durations.max(axis=1)
        return ends
    for index, run_durations in enumerate(durations.tolist()):
        free_at = run_durations[:slots]  # the first wave: task i on slot i
        heapq.heapify(free_at)
        for duration in run_durations[slots:]:
            heapq.heapreplace(free_at, free_at[0] + duration)
        ends[index] = max(free_at)
    return ends
