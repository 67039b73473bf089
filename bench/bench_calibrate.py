"""
Calibrations one after the other, each on a cluster of its own: whether intervals hold, and design.

``bench_calibrate.py [COUNT] [--budget 4m] [--random N] [--set A.B=C] [--folder F]`` (10): as
`harness calibrate` does, and, between the first N of them, as many whose jobs are drawn at random
from the same list.  Printed: for each cost its mean, the half width of its interval relative to
that, and in how many calibrations the interval holds the mean of the others (aims: 84 to 95 %,
15 %); and the half widths beside those of random programmes, of the same minutes (aim: 0.7).  What
is in the folder is not measured again.
"""

import argparse
import random
import shutil
import statistics

from pathlib import Path

from harness.base.units import parse_duration
from harness.cli.console.talk import show_table
from harness.core.run.session import Session
from harness.hardware.calibrate import TEXT, Calibration
from harness.hardware.transfer import read_hardware
from tests.run.fakes import RecordingConsole

CLUSTER = "{provider: local, workers: 3, site: {dfs.blocksize: 32 MiB}}"


def main() -> None:
    """Measure, then print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=10)
    parser.add_argument("--budget", type=parse_duration, default="4m")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("results", "bench-calibrate"))
    options = parser.parse_args()
    machines = {"chosen": [], "random": []}
    for number in range(options.count):
        for kind, known in machines.items():
            if kind == "random" and number >= options.random:
                continue
            file = options.folder / f"{kind}-{number}.json"
            if not file.exists():
                calibrated(file, options, random.Random(number))
            known.append(read_hardware(file))
            costs = known[-1].costs.values()
            known_ends = sum(cost.high is not None for cost in costs)
            print(f"{file.stem}: {len(known[-1].chosen)} jobs in {known[-1].spent_s:.0f} s,"
                  f" {known_ends} of {len(costs)} costs have an interval", flush=True)  # fmt: skip
    print_tables(**machines)


def calibrated(file, options, generator) -> None:
    """Write the costs of one calibration to *file*."""

    def random_draw(_known, _offered, seconds, budget_s):
        fits = [place for place, each_s in enumerate(seconds) if each_s <= budget_s]
        yield from ((generator.choice(fits), 0.0) for _ in fits)

    chooses = {} if file.stem.startswith("chosen") else {"choose": random_draw}
    results = file.with_suffix("")
    shutil.rmtree(results, ignore_errors=True)  # one that was interrupted
    text = TEXT.format(cluster=CLUSTER)
    session = Session(text, "calibrate", results, tuple(options.set), RecordingConsole())
    _, hardware = Calibration(session, options.budget, **chooses).measure()
    file.write_text(hardware.model_dump_json(indent=1))


def print_tables(chosen, random) -> None:
    """Each cost of the calibrations whose jobs were chosen, and widths beside the random ones."""
    rows, covered, ratios, widths = [], [], [], []
    names = [name for name in chosen[0].costs if all(name in each.costs for each in chosen)]
    for name in names:
        values = [each.costs[name].value for each in chosen]
        mean, covers = statistics.fmean(values), []
        for machine in chosen:
            cost = machine.costs[name]
            if cost.high is not None and len(values) > 1:
                others = (sum(values) - cost.value) / (len(values) - 1)
                covers.append(cost.low <= others <= cost.high)
        own, at_random = (half_widths(machines, name, mean) for machines in (chosen, random))
        covered += covers
        widths += [statistics.median(own)] if own else []
        spread = statistics.stdev(values) / mean if mean and len(values) > 1 else 0.0
        texts = [f"{mean:.3g}", f"{spread:.0%}", f"{widths[-1]:.0%}" if own else "not known"]
        texts.append(f"{sum(covers)} of {len(covers)}")
        if own and at_random and statistics.median(at_random):
            ratios.append(statistics.median(own) / statistics.median(at_random))
            texts.append(f"{ratios[-1]:.2f}")
        rows.append((name, *texts, "")[:6])
    columns = ("cost", "mean", "spread", "half width", "holds others", "width / random")
    show_table(columns, rows)
    if covered:
        share = sum(covered) / len(covered)
        print(f"intervals that hold the mean of the others: {sum(covered)} of {len(covered)}"
              f" ({share:.0%}); median half width {statistics.median(widths):.0%}")  # fmt: skip
    if ratios:
        print(f"half width over that of a random programme: median {statistics.median(ratios):.2f}"
              f" ({min(ratios):.2f} to {max(ratios):.2f})")  # fmt: skip


def half_widths(machines, name, mean) -> list[float]:
    """Of the intervals of a cost, relative to its *mean*; of a group there is none."""
    costs = [machine.costs[name] for machine in machines if name in machine.costs]
    return [(cost.high - cost.low) / 2 / mean for cost in costs if cost.high is not None and mean]


if __name__ == "__main__":
    main()
