"""
Kills and starts without end, for figures: prints one JSON object.

    python -m tests.live.endurance kills --count 100     a run on `local`, killed at random moments
    python -m tests.live.endurance kills --count 20 --provider ansible     the same on bare hosts
    python -m tests.live.endurance starts --count 300    a cluster on `local`, started and stopped

Exits with 1 where something is left or lost; growth is for the reader to judge by its interval.
"""

import argparse
import contextlib
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

from harness.base.errors import MachineError
from harness.base.records.trial import ClusterSpec
from harness.clusters import state
from harness.clusters.docker.engine import LABEL, Engine
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.core.store import Store
from tests.live import engine as engines
from tests.live.bare_hosts import trusted_hosts
from tests.live.runs import CLIENT, clusters, command, output, processes, settings, start

LEFT_LIMIT_S = 90.0
# Between the start of a run, or its first trial, and its death: on hosts a start takes a minute.
LONGEST_S = {"local": 25.0, "docker": 40.0, "ansible": 80.0}
IN_TRIAL_S = 20.0


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
        "folders of playbooks": len(list(Path("/tmp").glob("mrh-*"))),
    }


def seconds_until_nothing_is_left(environment, elsewhere=list):
    """
    Seconds until no process and no folder of these clusters is there, and *elsewhere* names
    nothing; infinity after the limit, with what is left on standard error.
    """
    began = time.monotonic()
    while left := [*clusters(environment), *processes(environment)] or elsewhere():
        if time.monotonic() - began > LEFT_LIMIT_S:
            sys.stderr.write(f"left: {left}\n")
            return float("inf")
        time.sleep(0.1)
    return time.monotonic() - began


@contextlib.contextmanager
def local(_environment):
    """
    All there is of a cluster is this machine's.
    """
    yield [], list


@contextlib.contextmanager
def docker(environment):
    """
    An engine, and what it has of clusters.
    """
    if reason := engines.missing():
        raise MachineError(reason, where="docker", fix="do that, and start again")
    with engines.running() as (address, _):
        environment["DOCKER_HOST"] = address
        there = Engine.connect(environment).client

        def names():
            label = {"filters": {"label": f"{LABEL}.cluster"}}
            kinds = there.containers.list(all=True, ignore_removed=True, **label)
            return [e.name for e in (*kinds, *there.networks.list(**label))] + [
                volume.name for volume in there.volumes.list()
            ]

        before = names()
        yield [], lambda: [name for name in names() if name not in before]
        there.close()


@contextlib.contextmanager
def ansible(environment):
    """
    Three hosts, and what is on them that was not there before: files, rules, processes.
    """
    with trusted_hosts(3, environment) as place:

        def lines():
            return {
                f"{host.name}: {line}"
                for host in place.hosts
                for line in (host.written() + host.execute("ps", "-eo", "args")).splitlines()
            }

        before, addresses = lines(), ", ".join(host.address for host in place.hosts)
        yield (
            [f"cluster.hosts=[{addresses}]", f"cluster.ssh.key={place.key}"],
            lambda: sorted(lines() ^ before),
        )


def kills(count, seed, folder, provider="local"):
    """
    Kill a run *count* times, then let it end: what was left or lost, and for how long.
    """
    environment = settings(folder)
    with {"local": local, "docker": docker, "ansible": ansible}[provider](environment) as place:
        changes, elsewhere = place
        changes = [f"cluster.provider={provider}", "trial_limit=10 min", *changes]
        changes.append(f"repeat={max(2, count // 3)}")
        options = [word for change in changes for word in ("--set", change)]
        return kill_runs(count, random.Random(seed), folder, environment, (options, elsewhere))


def kill_runs(count, moments, folder, environment, place):
    """
    The same, with a place that is ready; half of the runs are killed once they are in a trial.
    """
    options, elsewhere = place
    results, log, before, known = folder / "results", folder / "log", kernel_objects(), {}
    longest_s = LONGEST_S[options[1].partition("=")[2]]
    run = command("all", results, *options)
    plan = output(environment, *command("plan", results, *options, "--json"))
    planned = json.loads(plan)["trials"]
    left_s, lost, kill_count, trial_count = [], 0, 0, 0
    for number in range(count):
        began_s, harness = time.time(), start(log, environment, *run)
        while number % 2 and harness.poll() is None and not has_client(results, began_s):
            time.sleep(0.1)
        time.sleep(moments.uniform(0.0, IN_TRIAL_S if number % 2 else longest_s))
        kill_count += harness.poll() is None
        trial_count += has_client(results, began_s)
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        left_s.append(seconds_until_nothing_is_left(environment, elsewhere))
        sys.stderr.write(f"{number}: nothing was left after {left_s[-1]:.1f} s\n")
        files = {p.parent.name: p.read_bytes() for p in results.glob("smoke/*/trials/*/trial.json")}
        lost += len(known.items() - files.items())
        known = files
    output(environment, *run, limit_s=24 * 3600)
    (last,) = Store(results).runs("smoke")
    trials = last.trials()
    after = kernel_objects()
    return {
        "kills": kill_count,
        "of them in a trial": trial_count,
        "left longer than 90 s": sum(seconds > LEFT_LIMIT_S for seconds in left_s),
        "longest until nothing was left, s": max(left_s),
        "median until nothing was left, s": sorted(left_s)[len(left_s) // 2],
        "done trials that were lost or changed": lost,
        "trials as planned": sorted(trials) == sorted(trial["id"] for trial in planned),
        "trials done": sum(record.state == "done" for record in trials.values()),
        "trials planned": len(planned),
        "more than before": {kind: after[kind] - before[kind] for kind in before},
        "files of the state folder": sorted(
            str(p.relative_to(folder / "state")) for p in (folder / "state").rglob("*")
        ),
    }


def has_client(results, began_s):
    """
    Whether a client of a job in flight has said anything since then.
    """
    for client_log in results.glob(CLIENT):
        with contextlib.suppress(FileNotFoundError):
            if client_log.stat().st_mtime > began_s:
                return True
    return False


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


def starts(count, _seed, folder, _provider):
    """
    Start and stop a cluster *count* times in this process, or until Ctrl-C: growth per start.
    """
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    home, seen, seconds = HadoopHome.find(), [], []
    with contextlib.suppress(KeyboardInterrupt):
        while len(seen) < count:
            began = time.monotonic()
            with LocalCluster("again", ClusterSpec(workers=1), home):
                seconds.append(time.monotonic() - began)
            files = sum(1 for _ in state.clusters_folder().parent.rglob("*"))
            seen.append({**kernel_objects(), **own_objects(), "files": files})
            sys.stderr.write(f"{len(seen)} of {count}\n")
    return {
        "starts": len(seen),
        "median start, s": sorted(seconds)[len(seen) // 2],
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
    parser.add_argument("--provider", choices=tuple(LONGEST_S), default="local", help="of kills")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harness-endurance-") as folder:
        what = {"kills": kills, "starts": starts}[arguments.what]
        facts = what(arguments.count, arguments.seed, Path(folder), arguments.provider)
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    is_bad = facts.get("left longer than 90 s") or facts.get("processes left")
    is_bad = is_bad or facts.get("done trials that were lost or changed")
    sys.exit(bool(is_bad) or not facts.get("trials as planned", True))


if __name__ == "__main__":
    main()
