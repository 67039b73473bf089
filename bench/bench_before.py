"""
This checkout beside an earlier one: predictions, the history reader and a report, in pairs.

    git worktree add ../before a5c7ed52
    .venv/bin/harness all experiments/demo.yaml
    .venv/bin/python bench/bench_before.py ../before --run results/demo/RUN [--pairs 7]

Each task is a process of either checkout, with the Python that runs this and the packages that it
has; the two take turns, and the order within a pair alternates.  Printed are the medians of
processor seconds and of peak memory, and the median of the pairs' ratios with the least and the
largest.

- predictions: `harness reproduce` of the earlier checkout's bundle `tuning`: eight models over 96
  cells with their refits, and their scores;
- history: 20 000 tasks in Hadoop's JSON form, read to records, five times;
- report: `harness report` of the run that `--run` names, in every format.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench_history import lines

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = "results/published/tuning"
COMMAND = "import sys; from harness.cli import main; sys.exit(main(sys.argv[1:]))"
READ = """
import sys
try:
    from harness.observe.parsing.history import read_history
except ImportError:
    from harness.parsing.history import read_history
for _ in range(5):
    with open(sys.argv[1], "rb") as file:
        read_history(file, sys.argv[1])
"""
REPORT = """
import sys
from harness.cli import main
try:
    import harness.cli.commands_table
    option = "-o"
except ImportError:
    option = "--into"
sys.exit(main(["report", sys.argv[1], option, sys.argv[2]]))
"""


class Cost(NamedTuple):
    """What a process took: seconds of processors, and bytes of memory at most."""

    cpu_s: float
    peak_bytes: int


def measure(checkout: Path, *arguments: str) -> Cost:
    """Run Python with *arguments* in *checkout*; an error where it does not end well."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=checkout, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{checkout}: {' '.join(arguments)[:200]} ended with {status}")
    return Cost(usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)


def main() -> None:
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    before = options.before.resolve()
    with TemporaryDirectory() as folder:
        history = Path(folder) / "job_1_0001.jhist"
        with history.open("wb") as file:
            file.writelines(lines(random.Random(7), kinds=0))
        tasks = {
            "predictions": ("-c", COMMAND, "reproduce", str(before / BUNDLE)),
            "history": ("-c", READ, str(history)),
        }
        if options.run:
            tasks["report"] = ("-c", REPORT, str(options.run.resolve()), f"{folder}/report")
        print(f"{'task':12} {'before':>9} {'now':>9} {'ratio':>20} {'memory':>8}")
        for name, arguments in tasks.items():
            pairs = []
            for number in range(options.pairs):
                checkouts = (before, ROOT) if number % 2 else (ROOT, before)
                costs = {checkout: measure(checkout, *arguments) for checkout in checkouts}
                pairs.append((costs[before], costs[ROOT]))
            ratios = sorted(now.cpu_s / earlier.cpu_s for earlier, now in pairs)
            memory = median(now.peak_bytes / earlier.peak_bytes for earlier, now in pairs)
            before_s = median(earlier.cpu_s for earlier, _ in pairs)
            now_s = median(now.cpu_s for _, now in pairs)
            spread = f"{median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
            print(
                f"{name:12} {before_s:8.2f}s {now_s:8.2f}s {spread:>20} {memory:8.3f}", flush=True
            )


if __name__ == "__main__":
    main()
