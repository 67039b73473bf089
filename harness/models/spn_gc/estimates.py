"""
Job times of the net, section 4: simulated, expected, and with slots.

    shared_read      T = X1 + X2 + max_j (X3j + .. + X7j) + max_i (X8i + X9i)
    shared_shuffle   T = X1 + max_j (X2j + .. + X6j) + X7 + max_i (X8i + X9i)

Two ways to draw T, of the same distribution.  `tasks` draws every delay of every task: the obvious
form, needed where tasks wait for slots.  `maxima` draws each maximum at once, as the quantile at u
of the distribution of M independent sums: P(max <= t) = F(t)^M, with F exact
(`harness.models.sim.phasetype`).  It costs the same for a hundred thousand maps as for one; with
the same seed it never falls when a mean or the number of tasks grows.

A reduce starts when all maps, and the shared shuffle, have ended.  With slots (4.2, ours) tasks go
to the slot that is free first, in order.
"""

from __future__ import annotations

import heapq
import math

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from numpy.typing import NDArray

from harness.base.errors import ModelError
from harness.models.sim.phasetype import Quantiles, maximum
from harness.models.spn_gc.phases import PHASES, WHERE

REPLICATIONS = 2000  # of the paper
MOST_DRAWS = 1_000_000_000
_BLOCK = 1 << 15  # delays drawn at once: what fits into a core's cache

# Variant -> phases that are once per job, per map, per reduce.
SHARED = {"shared_read": PHASES[:2], "shared_shuffle": (PHASES[0], PHASES[6])}
MAP = {"shared_read": PHASES[2:7], "shared_shuffle": PHASES[1:6]}
REDUCE = PHASES[7:]

Floats = NDArray[np.float64]
Means = tuple[float, ...]

# Both nets need the same table and the same moments for the same reduces.
_quantiles = lru_cache(maxsize=8)(Quantiles)
_maximum = lru_cache(maxsize=8)(maximum)


def simulate_net(
    phases: Mapping[str, float],
    num_maps: int,
    num_reduces: int,
    *,
    replications: int = REPLICATIONS,
    seed: int = 0,
    variant: str = "shared_read",
    map_slots: int | None = None,
    reduce_slots: int | None = None,
    method: str = "maxima",
) -> dict[str, float]:
    """
    Mean of so many drawn job times, its standard error, quantiles, and means of the stages, in s.

    *phases* hold the mean of each, 0 behind the maps of a job without reduces.  All randomness
    comes from *seed*.  Where tasks wait for slots the *method* is `tasks`, whatever is given.
    """
    shared_means, stages = _means_of(phases, variant)
    generator = np.random.default_rng(seed)
    draws = generator.standard_exponential((len(shared_means), replications))
    shared = np.array(shared_means) @ draws
    task_counts = (num_maps, num_reduces)
    slot_counts = (map_slots or num_maps, reduce_slots or num_reduces)
    if any(count > slots for count, slots in zip(task_counts, slot_counts, strict=True)):
        method = "tasks"
    ends = []
    for means, tasks, slots in zip(stages, task_counts, slot_counts, strict=True):
        if method == "maxima":  # the quantile at u, with -log u exponential
            minus_log_u = generator.standard_exponential(replications)
            ends.append(_quantiles(means).of_maximum(minus_log_u, tasks))
        else:
            ends.append(stage_ends(means, tasks, slots, replications, generator))
    map_stage, reduce_stage = ends
    times = shared + map_stage + reduce_stage
    low, median, high = np.quantile(times, [0.05, 0.5, 0.95])
    return {
        "simulated_s": float(times.mean()),
        "standard_error_s": float(times.std(ddof=1) / math.sqrt(replications)),
        "quantile_05_s": float(low),
        "quantile_50_s": float(median),
        "quantile_95_s": float(high),
        "shared_stage_s": float(shared.mean()),
        "map_stage_s": float(map_stage.mean()),
        "reduce_stage_s": float(reduce_stage.mean()),
    }


def expected_net_time(
    phases: Mapping[str, float], num_maps: int, num_reduces: int, variant: str = "shared_read"
) -> dict[str, float]:
    """Exact mean and standard deviation of T, and the means of its two maxima, in s."""
    shared, (map_means, reduce_means) = _means_of(phases, variant)
    map_stage = _maximum(map_means, num_maps)
    reduce_stage = _maximum(reduce_means, num_reduces)
    return {
        "map_stage_expected_s": map_stage.mean,
        "reduce_stage_expected_s": reduce_stage.mean,
        "expected_s": sum(shared) + map_stage.mean + reduce_stage.mean,
        "std_s": math.sqrt(sum(std**2 for std in (*shared, map_stage.std, reduce_stage.std))),
    }


def expectations(phases: Mapping[str, float], num_maps: int, num_reduces: int) -> dict[str, float]:
    """Exact expectations of both variants, by the names of section 1."""
    shared_read = expected_net_time(phases, num_maps, num_reduces, "shared_read")
    shared_shuffle = expected_net_time(phases, num_maps, num_reduces, "shared_shuffle")
    # The reduces of both are the same.
    varying = ("map_stage_expected_s", "expected_s", "std_s")
    return shared_read | {f"shared_shuffle_{name}": shared_shuffle[name] for name in varying}


def _means_of(phases: Mapping[str, float], variant: str) -> tuple[Means, tuple[Means, Means]]:
    """Means of the phases that are once per job; of those of a map, and of a reduce."""
    shared, maps, reduces = (
        tuple(phases[name] for name in names) for names in (SHARED[variant], MAP[variant], REDUCE)
    )
    return shared, (maps, reduces)


def stage_ends(
    means: Means, tasks: int, slots: int, runs: int, generator: np.random.Generator
) -> Floats:
    """End of a stage's last task in each run [s]; every delay of every task is drawn."""
    if tasks * runs * len(means) > MOST_DRAWS:
        what = f"{tasks} tasks in {runs} replications"
        raise ModelError(f"{what} are too many to draw one by one", where=WHERE)
    ends = np.zeros(runs)
    block_runs = max(1, _BLOCK // tasks) if tasks else runs
    for start in range(0, runs if tasks else 0, block_runs):
        block = ends[start : start + block_runs]
        durations = np.zeros((len(block), tasks))
        delays = np.empty((len(block), tasks))
        for phase_mean in means:
            if phase_mean:
                generator.standard_exponential(out=delays)
                delays *= phase_mean
                durations += delays
        block[:] = makespans(durations, slots)
    return ends


def makespans(durations: Floats, slots: int) -> Floats:
    """End of the last task of each run (row) [s]; each goes to the slot that is free first."""
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
