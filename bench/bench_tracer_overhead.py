"""
What tracing costs a map: measured in tasks mixed within the same jobs, and hooks x cost per hook.

``bench_tracer_overhead.py [MINUTES]`` (10 by default) runs WordCount and TeraSort on a cluster of
its own, whose maps are drawn by chance to be stock, to record spans, or to record units.  What was
measured before of the same tracer on the same machine counts, too; 0 only shows that.
"""

import statistics
import sys
import tempfile

from pathlib import Path

import bench_ltrace

from harness.cli.console import Progress, table
from harness.clusters.home import HadoopHome
from harness.running.selftest import cluster_for
from harness.running.selftest_effects import Effect, Sample, effects, rows
from harness.running.selftest_overhead import SPEC, known, measure

MINUTES = 10.0
HEAD = ("workload", "mode", "CPU time", "start-up", "tasks", "hooks x cost")


def main() -> None:
    """Measure, then print both."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    home = HadoopHome.find()
    if minutes > 0:
        talk = Progress("jobs")
        with cluster_for(SPEC, home, talk) as cluster, tempfile.TemporaryDirectory() as folder:
            measure(cluster, Path(folder), minutes, talk)
    samples = known(home)
    found, costs = effects(samples), hook_costs()
    shares = [computed(effect, samples, costs[effect.mode]) for effect in found]
    table(HEAD, [(*row, f"{share:.2%}") for row, share in zip(rows(found), shares, strict=True)])
    for mode, cost in costs.items():
        print(f"{mode}: " + ", ".join(f"{hook} {ns:.0f} ns" for hook, ns in cost.items()))


def hook_costs() -> dict[str, dict[str, float]]:
    """Nanoseconds of each hook in a map, by mode."""
    bench_ltrace.prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench_ltrace.compile_hooks(folder)
        return {
            mode: {
                hook: result["primaryMetric"]["score"]
                for hook, result in bench_ltrace.measure(
                    folder, bench_ltrace.MODES[f"{mode}, map"]
                ).items()
                if hook in ("record", "collect", "span")
            }
            for mode in ("spans", "units")
        }


def computed(effect: Effect, samples: list[Sample], cost: dict[str, float]) -> float:
    """Part of a stock task's CPU time that the hooks take which a task of that mode passes."""
    of = [s for s in samples if (s.workload, s.mode) == (effect.workload, effect.mode)]
    passed = {
        "record": statistics.fmean(s.records for s in of),
        "collect": statistics.fmean(s.outputs for s in of),
        "span": statistics.fmean(s.spans for s in of),
    }
    return sum(passed[hook] * cost[hook] for hook in passed) / 1e9 / effect.stock_cpu_s


if __name__ == "__main__":
    main()
