"""
Change point of vet: ten million units on one core, and beside ruptures at ten thousand.

Units are nearly equal but for some whose times have a heavy tail, as those of real tasks are.  The
search wants them in order, so it is timed without sorting and with it.  ruptures looks for the same
split by exact search (`Dynp` over its cost of a linear regression); both run in turn, and their
splits must be the same.  It is in the group "bench": without it only the first part runs.
"""

import os
import time

import numpy as np

from harness.models.vet.change_point import change_point, split_errors

MANY, FEW, REPEATS, PEER_REPEATS, OMEGA, SEED = 10_000_000, 10_000, 7, 3, 3, 7


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    alone()
    try:
        import ruptures
    except ImportError:
        print("ruptures is not installed: no comparison (requirements/bench.txt has it)")
    else:
        beside(ruptures)


def units(number: int) -> np.ndarray:
    """Times around 0.1 ms, one of a hundred with a tail of index 1.3, in the order of a task."""
    random = np.random.default_rng(SEED)
    times = random.lognormal(-9.2, 0.2, number)
    outliers = number // 100
    times[:outliers] += 0.01 * (1 + random.pareto(1.3, outliers))
    return random.permutation(times)


def alone() -> None:
    times = units(MANY)
    ordered = np.sort(times)
    taken: dict[str, list[tuple[float, float]]] = {}
    for _ in range(REPEATS):
        for name, work in (
            ("search", lambda: change_point(split_errors(ordered), OMEGA)),
            ("sort and search", lambda: change_point(split_errors(np.sort(times)), OMEGA)),
        ):
            taken.setdefault(name, []).append(timed(work)[0])
    for name, seconds in taken.items():
        show(f"{MANY:,} units, {name}", seconds)


def beside(ruptures: object) -> None:
    ordered = np.sort(units(FEW))
    search_times: list[tuple[float, float]] = []
    ruptures_times: list[tuple[float, float]] = []
    for _ in range(PEER_REPEATS):
        took, split = timed(lambda: change_point(split_errors(ordered), OMEGA))
        search_times.append(took)
        took, other = timed(lambda: peer(ruptures, ordered))
        ruptures_times.append(took)
        if split != other:
            print(f"the splits differ: {split} and {other}")
    show(f"{FEW:,} units, search", search_times)
    show(f"{FEW:,} units, ruptures", ruptures_times)
    ratios = [b[1] / a[1] for a, b in zip(search_times, ruptures_times, strict=True)]
    print(f"ruptures to the product: {np.median(ratios):,.0f} times ({min(ratios):,.0f} to"
          f" {max(ratios):,.0f}, {len(ratios)} pairs in turn), split {split} in both")  # fmt: skip


def peer(ruptures: object, ordered: np.ndarray) -> int:
    """The same two free lines: each segment a regression on 1 and i."""
    places = np.arange(1.0, len(ordered) + 1)
    signal = np.column_stack([ordered, places, np.ones_like(places)])
    search = ruptures.Dynp(model="linear", min_size=OMEGA, jump=1).fit(signal)
    return search.predict(n_bkps=1)[0]


def timed(work) -> tuple[tuple[float, float], int]:
    """Seconds of the clock and of the core that *work* took, and its answer."""
    clock, core = time.perf_counter(), time.process_time()
    answer = work()
    return (time.perf_counter() - clock, time.process_time() - core), answer


def show(what: str, taken: list[tuple[float, float]]) -> None:
    clock, core = np.array(taken).T
    print(f"{what}: median {np.median(core):.4g} s of the core ({core.min():.4g} to"
          f" {core.max():.4g}, {len(core)} times; clock {np.median(clock):.4g})")  # fmt: skip


if __name__ == "__main__":
    main()
