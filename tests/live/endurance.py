"""
Kills and starts without end, for figures: prints one JSON object.

    python -m tests.live.endurance kills --count 100     a run on `local`, killed at random moments
    python -m tests.live.endurance starts --count 300    a cluster on `local`, started and stopped

Exits with 1 where something is left or lost; growth is for the reader to judge by its interval.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time

from pathlib import Path

import numpy as np

from scipy import stats

from harness.hadoop_home.home import HadoopHome
from harness.providers import state
from harness.providers.local.cluster import LocalCluster
from harness.records.trial import ClusterSpec
from harness.store import Store
from tests.live.runs import clusters, command, output, processes, settings, start

LEFT_LIMIT_S = 90.0
LONGEST_S = 25.0  # between the start of a run and its death


def kernel_objects():
    """
    What this machine has of each kind that a cluster is made of.
    """
    groups = [
        p for top in Path("/sys/fs/cgroup").glob("*/mapreduce-harness") for p in top.iterdir()
    ]
    return {
        "processes": sum(entry.name.isdigit() for entry in Path("/proc").iterdir()),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": len(list(Path("/sys/class/net").iterdir())),
        "loop devices": len(list(Path("/sys/block").glob("loop*/loop"))),
        "control groups": len(groups),
    }


def seconds_until_nothing_is_left(environment):
    """
    Seconds until no process and no folder of these clusters is there; infinity after the limit.
    """
    began = time.monotonic()
    while clusters(environment) or processes(environment):
        if time.monotonic() - began > LEFT_LIMIT_S:
            return float("inf")
        time.sleep(0.1)
    return time.monotonic() - began


def kills(count, seed, folder):
    """
    Kill a run *count* times, then let it end: what was left or lost, and for how long.
    """
    environment, moments = settings(folder), random.Random(seed)
    results, log, before, known = folder / "results", folder / "log", kernel_objects(), {}
    run = command("all", results, "--set", f"repeat={max(2, count // 5)}")
    plan = command("plan", results, "--set", f"repeat={max(2, count // 5)}", "--json")
    planned = json.loads(output(environment, *plan))["trials"]
    left_s, lost, kill_count = [], 0, 0
    for _ in range(count):
        harness = start(log, environment, *run)
        time.sleep(moments.uniform(0.0, LONGEST_S))
        kill_count += harness.poll() is None
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        left_s.append(seconds_until_nothing_is_left(environment))
        files = {p.parent.name: p.read_bytes() for p in results.glob("smoke/*/trials/*/trial.json")}
        lost += len(known.items() - files.items())
        known = files
    output(environment, *run, limit_s=24 * 3600)
    (last,) = Store(results).runs("smoke")
    trials = last.trials()
    after = kernel_objects()
    return {
        "kills": kill_count,
        "left longer than 90 s": sum(seconds > LEFT_LIMIT_S for seconds in left_s),
        "longest until nothing was left, s": max(left_s),
        "median until nothing was left, s": sorted(left_s)[len(left_s) // 2],
        "done trials that were lost or changed": lost,
        "trials as planned": sorted(trials) == sorted(trial["id"] for trial in planned),
        "trials done": sum(record.state == "done" for record in trials.values()),
        "trials planned": len(planned),
        "more than before": {kind: after[kind] - before[kind] for kind in before},
    }


def slope(values):
    """
    Growth per start, with its 95 % interval: Theil and Sen's, which one neighbour cannot bend.
    """
    fit = stats.theilslopes(values, np.arange(len(values)))
    return [float(fit.slope), float(fit.low_slope), float(fit.high_slope)]


def own_objects():
    """
    What this process has: memory in KiB, open files, threads.
    """
    status = Path("/proc/self/status").read_text()
    words = [line.split() for line in status.splitlines()]
    numbers = {first.rstrip(":"): second for first, second, *_ in (w for w in words if len(w) > 1)}
    return {
        "memory, KiB": int(numbers["VmRSS"]),
        "open files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": int(numbers["Threads"]),
    }


def starts(count, _seed, folder):
    """
    Start and stop a cluster *count* times in this process: growth of each kind per start.
    """
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    home, seen, seconds = HadoopHome.find(), [], []
    for _ in range(count):
        began = time.monotonic()
        with LocalCluster("again", ClusterSpec(workers=1), home):
            seconds.append(time.monotonic() - began)
        files = sum(1 for _ in state.clusters_folder().parent.rglob("*"))
        seen.append({**kernel_objects(), **own_objects(), "files": files})
    return {
        "starts": count,
        "median start, s": sorted(seconds)[count // 2],
        "growth per start [slope, low, high]": {
            kind: slope([each[kind] for each in seen]) for kind in seen[0]
        },
        "processes left": processes({"XDG_STATE_HOME": str(folder / "state")}),
    }


def main():
    """
    Do it, print what was seen.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("kills", "starts"))
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harness-endurance-") as folder:
        what = {"kills": kills, "starts": starts}[arguments.what]
        facts = what(arguments.count, arguments.seed, Path(folder))
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    is_bad = facts.get("left longer than 90 s") or facts.get("processes left")
    is_bad = is_bad or facts.get("done trials that were lost or changed")
    sys.exit(bool(is_bad) or not facts.get("trials as planned", True))


if __name__ == "__main__":
    main()
