"""
Long commands killed at random moments, then given again: prints one JSON object.

    python -m tests.live.resumes --count 4

A night, a tuning that measures, a calibration, and a bundle that is published again.  Exits with 1
where the last one of each, which nobody kills, does not end well, or something is left.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time

from pathlib import Path

from harness.core.store import Store
from tests.live.endurance import LEFT_LIMIT_S, kernel_objects, seconds_until_nothing_is_left
from tests.live.runs import PROGRAM, PROJECT, settings, start

LIMIT_S = 3600
NIGHT = PROJECT / "experiments" / "night.yaml"
BUNDLE = PROJECT / "results" / "published" / "quick"


def night(results):
    """
    One night: its trials, scores, and a line of the history.
    """
    return ["nightly", str(NIGHT), "--results-dir", str(results)]


def tuning(results):
    """
    A proposal that is measured beside the night's own cell.
    """
    run = Store(results).latest("night").path
    words = ["tune", "job", str(run), "--workload", "wordcount", "--try", "1"]
    return [*words, "--results-dir", str(results)]


def calibration(results):
    """
    As many small jobs as fit into its budget.
    """
    words = ["calibrate", "--workers", "1", "--budget", "2m", "--results-dir", str(results)]
    return [*words, "-o", str(results / "hardware.json")]


def publication(results):
    """
    A bundle made anew of a published one.
    """
    words = ["publish", "--again", str(BUNDLE), "--licence", "CC-BY-4.0"]
    return [*words, "-o", str(results / "bundle")]


# Commands, and the seconds from their start within which they are killed.
COMMANDS = {night: 60.0, tuning: 60.0, calibration: 60.0, publication: 8.0}


def resume(what, longest_s, count, moments, folder):
    """
    Kill a command *count* times, then let it end: what was left, and how it ended.
    """
    environment, results, log = settings(folder), folder / "results", folder / "log"
    arguments = [*PROGRAM, *what(results)]
    before = kernel_objects()
    killed, left_s = 0, []
    for _ in range(count):
        harness = start(log, environment, *arguments)
        time.sleep(moments.uniform(0.5, longest_s))
        killed += harness.poll() is None
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        left_s.append(seconds_until_nothing_is_left(environment))
    began = time.monotonic()
    status = start(log, environment, *arguments).wait(timeout=LIMIT_S)
    seconds_until_nothing_is_left(environment)
    after = kernel_objects()
    return {
        "command": what.__name__,
        "killed": killed,
        "of": count,
        "longest until nothing was left, s": round(max(left_s), 1),
        "status of the last one": status,
        "seconds of the last one": round(time.monotonic() - began, 1),
        "its last words": log.read_text().splitlines()[-1:],
        "hidden folders": sorted(path.name for path in results.glob(".*")),
        "more than before": {
            kind: after[kind] - before[kind] for kind in before if after[kind] > before[kind]
        },
    }


def main():
    """
    Do it, print what was seen.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--seed", type=int, default=4)
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    rows = []
    with tempfile.TemporaryDirectory(prefix="harness-resumes-") as folder:
        for what, longest_s in COMMANDS.items():
            rows.append(resume(what, longest_s, arguments.count, moments, Path(folder)))
            sys.stderr.write(f"{json.dumps(rows[-1])}\n")
    sys.stdout.write(json.dumps(rows, indent=1) + "\n")
    sys.exit(
        any(
            row["status of the last one"] not in (0, 1)  # 1: an alarm is open
            or row["longest until nothing was left, s"] > LEFT_LIMIT_S
            or row["hidden folders"]
            for row in rows
        )
    )


if __name__ == "__main__":
    main()
