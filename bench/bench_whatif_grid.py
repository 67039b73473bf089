"""
What-If over a grid of 10^6 configurations, on one core, beside a loop over single configurations.

The grid is what a search would try of one job: 64 GiB of input in splits of many sizes, and the
settings of sort, merge, shuffle, combiner and codecs.  Both answer `job_s`; the loop takes a sample
of the grid, in turn with the whole grid.  Rates are configurations per second of the core, and in
brackets of the clock: they differ where other work wants the same core.
"""

import math
import os
import time

import numpy as np

from harness.models.whatif.evaluation import evaluate, evaluate_grid
from harness.models.whatif.inputs import COSTS

NUMBER, SAMPLE, REPEATS, SEED = 1_000_000, 500, 7, 7
MIB = 2**20
INPUT_BYTES = 64 * 1024 * MIB
CLUSTER = {"num_nodes": 16, "map_slots_per_node": 4, "reduce_slots_per_node": 2}
STATISTICS = {
    "input_record_bytes": 100.0,
    "map_bytes_selectivity": 1.2,
    "map_records_selectivity": 3.0,
    "combine_bytes_selectivity": 0.4,
    "combine_records_selectivity": 0.35,
    "reduce_bytes_selectivity": 0.5,
    "reduce_records_selectivity": 0.2,
    "map_output_compression_ratio": 0.3,
    "output_compression_ratio": 0.4,
}


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng = np.random.default_rng(SEED)
    grid = configurations(rng)
    costs = {name: 1e-6 if "record" in name else 1e-8 for name in COSTS}
    picked = rng.choice(NUMBER, SAMPLE, replace=False)
    sample = [{name: column[i].item() for name, column in grid.items()} for i in picked]
    for rules in ("paper", "mr2"):
        grid_rates, loop_rates = [], []
        for _ in range(REPEATS):
            started = clocks()
            job_s = evaluate_grid(STATISTICS, costs, grid, CLUSTER, rules)["job_s"]
            grid_rates.append(NUMBER / (clocks() - started))
            started = clocks()
            expected = [evaluate(STATISTICS, costs, c, CLUSTER, rules)["job_s"] for c in sample]
            loop_rates.append(SAMPLE / (clocks() - started))
        report(f"grid, {rules} rules", np.array(grid_rates))
        report(f"one by one, {rules} rules", np.array(loop_rates))
        report(f"grid to one by one, {rules} rules", np.array(grid_rates) / np.array(loop_rates))
        worst = max(abs(job_s[i] / each - 1) for i, each in zip(picked, expected, strict=True))
        print(f"largest difference, {rules} rules: {worst:.1e} of {SAMPLE} configurations")


def configurations(rng: np.random.Generator) -> dict[str, np.ndarray]:
    split_mib = rng.choice([32, 64, 96, 128, 192, 256, 384, 512], NUMBER)
    return {
        "split_bytes": split_mib * MIB,
        "num_maps": -(-INPUT_BYTES // (split_mib * MIB)),
        "num_reduces": rng.integers(1, 129, NUMBER),
        "sort_buffer_mb": rng.integers(16, 1025, NUMBER),
        "sort_spill_percent": rng.uniform(0.5, 0.95, NUMBER),
        "sort_record_percent": rng.uniform(0.01, 0.3, NUMBER),
        "merge_factor": rng.integers(5, 101, NUMBER),
        "combine_min_spills": rng.integers(1, 6, NUMBER),
        "inmem_merge_segments": rng.choice([0, 100, 1000], NUMBER),
        "shuffle_buffer_percent": rng.uniform(0.2, 0.9, NUMBER),
        "shuffle_merge_percent": rng.uniform(0.5, 0.9, NUMBER),
        "shuffle_segment_limit_percent": rng.uniform(0.05, 0.45, NUMBER),
        "reduce_buffer_percent": rng.choice([0.0, 0.3, 0.7], NUMBER),
        "reduce_heap_bytes": rng.integers(200, 2049, NUMBER) * MIB,
        "use_combiner": rng.random(NUMBER) < 0.5,
        "map_output_compressed": rng.random(NUMBER) < 0.5,
        "output_compressed": rng.random(NUMBER) < 0.5,
    }


def clocks() -> np.ndarray:
    """Seconds of the core that this process had, and of the clock."""
    return np.array([time.process_time(), time.perf_counter()])


def report(what: str, rates: np.ndarray) -> None:
    core, clock = (
        f"median {digits(np.median(r))}, {digits(r.min())} to {digits(r.max())}" for r in rates.T
    )
    print(f"{what}: {core} of {len(rates)} (clock: {clock})")


def digits(value: float) -> str:
    """Three digits, with thousands apart."""
    return f"{round(value, 2 - math.floor(math.log10(value))):,.10g}"


if __name__ == "__main__":
    main()
