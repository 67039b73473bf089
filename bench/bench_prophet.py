"""
Prophet's Algorithm 1 over 10,000 segments, on one core, beside the obvious form of the tests.

The shuffle is that of a reduce whose 10,000 maps ran on so many machines in so many waves; the
finer the groups, the more often a copier goes to another host.  Both forms take turns and give the
same bits.  Seconds are those of the core, and in brackets of the clock.
"""

import os
import sys
import time

from pathlib import Path

import numpy as np

from harness.models.prophet.shuffle import Group, Segment, read_setting, run_shuffle

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.models.prophet.obvious import ObviousShuffle

SEGMENTS, REPEATS = 10_000, 15
KIB = 2**10
SIZE = 512 * KIB
COSTS = {
    "network_s_per_byte": 2e-8, "local_read_s_per_byte": 8e-9, "local_write_s_per_byte": 1.2e-8,
    "merge_cpu_s_per_record": 3e-7,
}  # fmt: skip


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    setting = read_setting({"reduce_heap_bytes": 800 * 2**20}, COSTS)
    for machines, waves in ((100, 25), (20, 500), (1000, 10), (10_000, 1)):
        compare(groups(machines, waves), setting, f"{machines:,} machines, {waves} waves")


def groups(machines: int, waves: int) -> list[Group]:
    """Outputs of 512 KiB; a wave every ten seconds, its machines a millisecond apart."""
    segment = Segment(SIZE, SIZE, SIZE / 100)
    count = SEGMENTS // (machines * waves)
    return [
        Group(f"node {m}", count, 10.0 * wave + 1e-3 * m, segment)
        for wave in range(waves)
        for m in range(machines)
    ]


def compare(groups: list[Group], setting: object, what: str) -> None:
    fast, slow = [], []
    for _ in range(REPEATS):
        started = clocks()
        one = run_shuffle(groups, setting)
        fast.append(clocks() - started)
        started = clocks()
        other = ObviousShuffle(groups, setting).run()
        slow.append(clocks() - started)
        assert one == other
    print(f"Algorithm 1, {SEGMENTS:,} segments of {what}, {one.rounds:,} rounds:")
    report("  product, ms", 1e3 * np.array(fast))
    report("  obvious form with its trace, ms", 1e3 * np.array(slow))
    report("  obvious to product", np.array(slow) / np.array(fast))


def clocks() -> np.ndarray:
    """Seconds of the core that this process had, and of the clock."""
    return np.array([time.process_time(), time.perf_counter()])


def report(what: str, values: np.ndarray) -> None:
    core, clock = (f"median {np.median(v):.1f}, {v.min():.1f} to {v.max():.1f}" for v in values.T)
    print(f"{what}: {core} of {len(values)} (clock: {clock})")


if __name__ == "__main__":
    main()
