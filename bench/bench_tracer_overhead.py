"""
What tracing costs a task: measured in tasks mixed within the same jobs, and hooks x cost per hook.

``bench_tracer_overhead.py [MINUTES] [--modes off,instrumented,spans,units] [--no-hooks]`` (10
minutes by default) runs WordCount and TeraSort on a cluster of its own, whose tasks are drawn by
chance to be stock, to record spans, or to record units; ``instrumented``: to have the hooks, their
recorder off.  What was measured before of the same tracer on the same machine counts, too; 0 only
shows that.
"""

import argparse
import math
import os
import statistics
import tempfile

from collections.abc import Iterator, Mapping
from pathlib import Path

import bench_ltrace

from tracer_effects import ALL_MODES, HEAD, MODES, STOCK, Effect, Sample, effects, rows
from tracer_tasks import SPEC, known, measure

from harness.cli.console.talk import Progress, show_table
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster

MINUTES = 10.0


def main() -> None:
    """Measure, then print both."""
    options = arguments()
    home = HadoopHome.find()
    if options.minutes > 0:
        console = Progress("jobs")
        own = LocalCluster(f"selftest-overhead-{os.getpid()}", SPEC, home)
        with own as cluster, tempfile.TemporaryDirectory() as folder:
            measure(cluster, Path(folder), options.minutes, console, options.modes)
    samples = known(home)
    estimates, costs = effects(samples), hook_costs() if options.hooks else {}
    shares = [computed(effect, samples, costs) for effect in estimates]
    lines = zip(rows(estimates), shares, strict=True)
    show_table((*HEAD, "hooks x cost"), [(*row, share) for row, share in lines])
    for mode, cost in costs.items():
        print(f"{mode}: " + ", ".join(f"{hook} {ns:.0f} ns" for hook, ns in cost.items()))
    for line in readings(samples):
        print(line)


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


def readings(samples: list[Sample]) -> Iterator[str]:
    """What spans, which time few reads of short records, say of reading beside what units say."""
    for workload, kind in dict.fromkeys((s.workload, s.kind) for s in samples):
        chosen_samples = [
            s for s in samples if (s.workload, s.kind) == (workload, kind) and s.read_s
        ]
        spans = [s for s in chosen_samples if s.mode == "spans"]
        seconds = {m: [s.read_s for s in chosen_samples if s.mode == m] for m in ("spans", "units")}
        if min(len(times) for times in seconds.values()) < 2:
            continue
        means = {mode: statistics.fmean(times) for mode, times in seconds.items()}
        errors = [statistics.stdev(t) / len(t) ** 0.5 / means[m] for m, t in seconds.items()]
        ratio = means["spans"] / means["units"]
        timed = statistics.fmean((s.read_samples or s.records) / s.records for s in spans)
        yield (
            f"{workload} {kind}s: reading by spans, {timed:.0%} of reads timed, is {ratio:.3f}"
            f" (+-{1.96 * ratio * math.hypot(*errors):.3f}) of reading by units"
        )


def computed(
    effect: Effect, samples: list[Sample], costs: Mapping[str, Mapping[str, float]]
) -> str:
    """Part of a stock map's CPU time that the hooks take which a map of that mode passes."""
    if not costs or effect.kind != "map":
        return ""
    wanted = effect.workload, effect.mode, effect.kind
    chosen_samples = [s for s in samples if (s.workload, s.mode, s.kind) == wanted]
    # JMH's records are short ones; spans that had all reads timed cost what units do.
    all_timed = not any(s.read_samples for s in chosen_samples)
    cost = {**costs[effect.mode], "record": costs["units" if all_timed else effect.mode]["record"]}
    passed = {
        "record": statistics.fmean(s.records for s in chosen_samples),
        "collect": statistics.fmean(s.outputs for s in chosen_samples),
        "span": statistics.fmean(s.spans for s in chosen_samples),
    }
    share = sum(passed[hook] * cost[hook] for hook in passed) / 1e9 / effect.stock_cpu_s
    return f"{share:.2%}"


if __name__ == "__main__":
    main()
