"""
What tracing costs a task: measured in tasks mixed within the same jobs, and hooks x cost per hook.

``bench_tracer_overhead.py [MINUTES] [--modes off,woven,spans,units] [--no-hooks]`` (10 minutes by
default) runs WordCount and TeraSort on a cluster of its own, whose tasks are drawn by chance to be
stock, to record spans, or to record units; ``woven``: to have the hooks, their recorder off.  What
was measured before of the same tracer on the same machine counts, too; 0 only shows that.
"""

import argparse
import os
import statistics
import tempfile

from pathlib import Path

import bench_ltrace

from harness.cli.console import Progress, table
from harness.clusters.home import HadoopHome
from harness.clusters.local import LocalCluster
from harness.running.selftest_effects import (
    ALL_MODES,
    HEAD,
    MODES,
    STOCK,
    Effect,
    Sample,
    effects,
    rows,
)
from harness.running.selftest_overhead import SPEC, known, measure

MINUTES = 10.0


def main() -> None:
    """Measure, then print both."""
    asked = arguments()
    home = HadoopHome.find()
    if asked.minutes > 0:
        talk = Progress("jobs")
        own = LocalCluster(f"selftest-overhead-{os.getpid()}", SPEC, home)
        with own as cluster, tempfile.TemporaryDirectory() as folder:
            measure(cluster, Path(folder), asked.minutes, talk, asked.modes)
    samples = known(home)
    found, costs = effects(samples), hook_costs() if asked.hooks else {}
    shares = [computed(effect, samples, costs.get(effect.mode)) for effect in found]
    told = zip(rows(found), shares, strict=True)
    table((*HEAD, "hooks x cost"), [(*row, share) for row, share in told])
    for mode, cost in costs.items():
        print(f"{mode}: " + ", ".join(f"{hook} {ns:.0f} ns" for hook, ns in cost.items()))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=MINUTES)
    parser.add_argument(
        "--modes", type=chosen, default=MODES, help="some of " + ",".join(ALL_MODES)
    )
    parser.add_argument("--no-hooks", dest="hooks", action="store_false", help="leave JMH out")
    return parser.parse_args()


def chosen(text: str) -> tuple[str, ...]:
    """Modes that *text* names; stock tasks, with which they are compared, always."""
    named = {STOCK, *text.split(",")}
    if len(named) < 2 or not named <= set(ALL_MODES):
        raise argparse.ArgumentTypeError(f"{text!a}: write some of {','.join(ALL_MODES)}")
    return tuple(mode for mode in ALL_MODES if mode in named)


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


def computed(effect: Effect, samples: list[Sample], cost: dict[str, float] | None) -> str:
    """Part of a stock map's CPU time that the hooks take which a map of that mode passes."""
    if cost is None or effect.kind != "map":
        return ""
    wanted = effect.workload, effect.mode, effect.kind
    of = [s for s in samples if (s.workload, s.mode, s.kind) == wanted]
    passed = {
        "record": statistics.fmean(s.records for s in of),
        "collect": statistics.fmean(s.outputs for s in of),
        "span": statistics.fmean(s.spans for s in of),
    }
    share = sum(passed[hook] * cost[hook] for hook in passed) / 1e9 / effect.stock_cpu_s
    return f"{share:.2%}"


if __name__ == "__main__":
    main()
