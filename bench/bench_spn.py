"""
SPN-GC's net, simulated: 2,000 job times of 1,000 maps and 100 reduces on one core; beside SimPy.

Both ways to draw a job time are measured: `maxima` draws each maximum at once, by its distribution
(what a prediction does); `tasks` draws every delay of every task.  SimPy plays the same net as
processes, one per map and per reduce, at 64 maps and 8 reduces, in turn with both; it plays fewer
runs, and its time is per run.  The means of all three are compared with the exact expectation.

Rates are of the core's time, and in brackets of the clock: they part where other work wants the
same core.  SimPy is no part of the harness:
    .venv/bin/pip install --require-hashes -r requirements/bench.txt
"""

import math
import os
import random
import time

import numpy as np

from harness.models.spn_gc.estimates import REPLICATIONS, expected_net_time, simulate_net
from harness.models.spn_gc.phases import PHASES

REPEATS, SIMPY_RUNS, SEED = 7, 100, 7
LARGE, SMALL = (1000, 100), (64, 8)
MEANS = dict(zip(PHASES, (3.0, 0.5, 6.7, 0.6, 0.8, 1.1, 6.6, 23.7, 23.4), strict=True))
METHODS = ("maxima", "tasks")


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    large()
    try:
        import simpy
    except ModuleNotFoundError:
        print("SimPy is not installed: no comparison (requirements/bench.txt)")
        return
    beside(simpy)


def large() -> None:
    """The aim: 0.1 s."""
    times = {method: [] for method in METHODS}
    for repeat in range(REPEATS + 1):
        for method in METHODS:
            seconds, _ = measured(LARGE, method, SEED + repeat)
            times[method].append(seconds)
    for method in METHODS:  # the first is to warm up
        report(
            f"{REPLICATIONS} runs, M = 1,000, R = 100, {method}", np.array(times[method][1:]), "s"
        )


def beside(simpy) -> None:
    """The same net in SimPy, in turn; ratios of the times per run."""
    ratios = {method: [] for method in METHODS}
    means = {method: [] for method in (*METHODS, "SimPy")}
    for repeat in range(REPEATS):
        started = clocks()
        ends = [play(simpy, SMALL, random.Random(f"{repeat} {run}")) for run in range(SIMPY_RUNS)]
        per_run = (clocks() - started) / SIMPY_RUNS
        means["SimPy"].append(np.mean(ends))
        for method in METHODS:
            seconds, mean = measured(SMALL, method, SEED + repeat)
            ratios[method].append(per_run / (seconds / REPLICATIONS))
            means[method].append(mean)
    for method in METHODS:
        report(f"faster than SimPy, M = 64, R = 8, {method}", np.array(ratios[method]), "times")
    exact = expected_net_time(MEANS, *SMALL)
    for name, times in means.items():
        runs = REPEATS * (SIMPY_RUNS if name == "SimPy" else REPLICATIONS)
        errors = (np.mean(times) - exact["expected_s"]) / (exact["std_s"] / math.sqrt(runs))
        print(
            f"{name}: mean of {runs:,} runs {np.mean(times):.2f} s, {errors:+.1f} standard errors"
            f" from the exact {exact['expected_s']:.2f} s"
        )


def measured(size, method, seed):
    started = clocks()
    answer = simulate_net(MEANS, *size, method=method, seed=seed)
    return clocks() - started, answer["simulated_s"]


def play(simpy, size, rng) -> float:
    """One run of the net `shared_read`: the time at which the last reduce has ended."""
    maps, reduces = size
    world = simpy.Environment()

    def line(phases):
        for phase in phases:
            yield world.timeout(rng.expovariate(1 / MEANS[phase]))

    def job():
        yield world.process(line(PHASES[:2]))
        yield world.all_of([world.process(line(PHASES[2:7])) for _ in range(maps)])
        yield world.all_of([world.process(line(PHASES[7:])) for _ in range(reduces)])

    world.run(world.process(job()))
    return world.now


def clocks() -> np.ndarray:
    """Seconds of the core that this process had, and of the clock."""
    return np.array([time.process_time(), time.perf_counter()])


def report(what: str, values: np.ndarray, unit: str) -> None:
    core, clock = (f"median {np.median(v):.3g}, {v.min():.3g} to {v.max():.3g}" for v in values.T)
    print(f"{what}: {core} {unit} of {len(values)} (clock: {clock})")


if __name__ == "__main__":
    main()
