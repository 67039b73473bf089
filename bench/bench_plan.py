"""
How long `harness plan` takes for 500 trials, with its simulation of what the design can decide.

Each round is a process of its own, as people start it; printed are its seconds by the clock and its
memory at most, beside those of `harness --version`, which imports the command line alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROUNDS = 5
COMMAND = "import sys; from harness.cli import main; sys.exit(main(sys.argv[1:]))"
EXPERIMENT = """
schema: 1
name: large
question: {nearer: [prophet, whatif]}
cluster: {workers: 2}
workloads:
  - {name: terasort, input: [16 MiB, 32 MiB, 48 MiB, 64 MiB, 96 MiB]}
  - {name: wordcount, input: [16 MiB, 32 MiB, 48 MiB, 64 MiB, 96 MiB]}
configuration:
  mapreduce.job.reduces: [1, 2, 3, 4, 5]
  mapreduce.task.io.sort.mb: [16, 32, 48, 64, 80]
repeat: 2
predict: {models: [prophet, whatif, whatif-mr2, ernest, scaling], profile_on: {input: 16 MiB}}
"""


def cost_of(words: list[str]) -> tuple[float, float]:
    """Seconds and MiB of one process of the command line with these *words*."""
    started_s = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", COMMAND, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"harness {' '.join(words)} ended with {process.returncode}")
    return time.perf_counter() - started_s, usage.ru_maxrss / 1024


def main() -> None:
    """Print the medians of both commands, and the least and the largest."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.yaml"
        path.write_text(EXPERIMENT)
        for words in (["plan", str(path), "--results-dir", folder], ["--version"]):
            costs = [cost_of(words) for _ in range(ROUNDS)]
            seconds, mebibytes = zip(*costs, strict=True)
            print(
                f"harness {words[0]}: {median(seconds):.2f} s ({min(seconds):.2f} to"
                f" {max(seconds):.2f}), {max(mebibytes):.0f} MiB at most"
            )


if __name__ == "__main__":
    main()
