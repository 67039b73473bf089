"""
Kills and starts without end, for figures: prints one JSON object.

    python -m tests.live.endurance kills --count 100     a run on `local`, killed at random moments
    python -m tests.live.endurance kills --count 20 --provider ansible     the same on bare hosts
    python -m tests.live.endurance starts --count 300    a cluster, started and stopped
    python -m tests.live.endurance hangs --provider docker      each daemon stopped in a trial

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
from statistics import median

import numpy as np

from scipy import stats

from harness.base.errors import MachineError
from harness.clusters import PROVIDERS, state
from harness.clusters.docker.engine import LABEL, Engine
from harness.clusters.hadoop_home.home import HadoopHome
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand
from harness.core.store import Store
from tests.live import engine as engines
from tests.live.bare_hosts import trusted_hosts
from tests.live.runs import (
    CLIENT,
    LIMIT_S,
    MIXED,
    SMOKE,
    clusters,
    command,
    mapping,
    output,
    processes,
    settings,
    start,
    wait_for,
)

LEFT_LIMIT_S = 90.0
NAMED_LIMIT_S = 20.0
# Between the start of a run, or its first trial, and its death: on hosts a start takes a minute.
LONGEST_S = {"local": 25.0, "docker": 40.0, "ansible": 80.0}
WORKERS = {"local": 1, "docker": 1, "ansible": 2}  # of three hosts one is the master
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


PLACES = {"local": local, "docker": docker, "ansible": ansible}


def kills(count, seed, folder, provider="local"):
    """
    Kill a run *count* times, then let it end: what was left or lost, and for how long.
    """
    environment = settings(folder)
    with PLACES[provider](environment) as place:
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


def starts(count, _seed, folder, provider):
    """
    Start and stop a cluster *count* times in this process, or until Ctrl-C: growth per start.
    """
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    text, home, seen, seconds = SMOKE.read_text(), HadoopHome.find(), [], []
    with PLACES[provider](os.environ) as (changes, elsewhere):
        overrides = [f"cluster.provider={provider}", f"cluster.workers={WORKERS[provider]}"]
        overrides += changes
        spec = expand(read_experiment(text, str(SMOKE), overrides))[0].cluster
        state_folder = {"XDG_STATE_HOME": str(folder / "state")}
        place = processes(state_folder)  # an engine, hosts
        with contextlib.suppress(KeyboardInterrupt):
            while len(seen) < count:
                began = time.monotonic()
                with PROVIDERS[provider]("again", spec, home):
                    seconds.append(time.monotonic() - began)
                files = sum(1 for _ in state.clusters_folder().parent.rglob("*"))
                seen.append({**kernel_objects(), **own_objects(), "files": files})
                sys.stderr.write(f"{len(seen)} of {count}: {seconds[-1]:.1f} s\n")
        left = [each for each in processes(state_folder) if each not in place]
        left += elsewhere()
    return {
        "provider": provider,
        "starts": len(seen),
        "failed starts": 0,  # the first one ends this command
        "start, s [least, median, most]": [min(seconds), median(seconds), max(seconds)],
        "growth per start [slope, low, high]": {
            kind: slope([each[kind] for each in seen]) for kind in seen[0]
        },
        "left": [str(what) for what in left],
    }


# Daemons by what their command lines end in, and what a trial says before each is stopped.
IN_JOB, BEFORE_JOB = b"map 0%", b"starting the job"
HANGS = [
    ("namenode on master", b".NameNode", IN_JOB),
    ("resourcemanager on master", b".ResourceManager", IN_JOB),
    ("historyserver on master", b".JobHistoryServer", IN_JOB),
    ("nodemanager on worker1", b".NodeManager", IN_JOB),
    ("datanode on worker1", b".DataNode", IN_JOB),
    ("datanode on worker1", b".DataNode", BEFORE_JOB),
]


def hangs(_count, _seed, folder, provider):
    """
    Stop each daemon in a trial: seconds until it is named, and in which words.
    """
    environment = settings(folder)
    rows = []
    with PLACES[provider](environment) as (changes, elsewhere):
        for number, (daemon, ending, moment) in enumerate(HANGS):
            changed = [f"cluster.provider={provider}", f"cluster.workers={WORKERS[provider]}"]
            changed += ["repeat=1", *changes]
            options = [word for change in changed for word in ("--set", change)]
            options += [*MIXED, "--on-error", "stop"]
            run = command("run", folder / f"results{number}", *options)
            rows.append(hang(folder, number, environment, run, (daemon, ending, moment)))
            rows[-1]["left after, s"] = seconds_until_nothing_is_left(environment, elsewhere)
            sys.stderr.write(f"{json.dumps(rows[-1])}\n")
    slow = [row for row in rows if row["named after, s"] > NAMED_LIMIT_S]
    return {"provider": provider, "hangs": rows, "named after more than 20 s": slow}


def hang(folder, number, environment, run, victim):
    """
    One of them: its process is found by its command line, among those that the run has started.
    """
    daemon, ending, moment = victim
    before = set(Path("/proc").iterdir())
    log = folder / f"log{number}"
    harness = start(log, environment, *run)
    is_there = has_begun if moment == BEFORE_JOB else mapping
    wait_for(lambda: is_there(folder / f"results{number}"), harness, log)
    new = set(Path("/proc").iterdir()) - before
    started = [entry for entry in new if entry.name.isdigit()]
    os.kill(daemon_pid(started, ending, daemon.rpartition(" ")[2]), signal.SIGSTOP)
    stopped_s = time.monotonic()
    while not (said := [each for each in log.read_text().splitlines() if daemon in each]):
        if harness.poll() is not None or time.monotonic() - stopped_s > LEFT_LIMIT_S:
            break
        time.sleep(0.05)
    named_s = time.monotonic() - stopped_s if said else float("inf")
    status = harness.wait(timeout=LIMIT_S)
    return {
        "daemon": daemon,
        "stopped": "in its job" if moment == IN_JOB else "between input and job",
        "named after, s": round(named_s, 1),
        "words": said[:1],
        "status": status,
    }


def daemon_pid(entries, ending, node):
    """
    The process, of *entries* of the kernel's, that is Java and whose main class ends in that.

    Of several nodes each has one: that of the *node* has a folder of its name.
    """
    daemons = [
        (int(entry.name), command_line(entry))
        for entry in entries
        if command_line(entry).partition(b"\0")[0].endswith(b"/java")
        and ending + b"\0" in command_line(entry)
    ]
    if len(daemons) > 1:
        daemons = [(pid, words) for pid, words in daemons if f"/{node}/".encode() in words]
    ((pid, _),) = daemons
    return pid


def has_begun(results):
    """
    Whether the input of a trial is there, and its client not yet.
    """
    return any(results.glob("smoke/*/incoming/*/raw")) and not mapping(results)


def command_line(process):
    """
    Words of the command line of a process, a folder of the kernel's; none of one that has ended.
    """
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes()
    return b""


def main():
    """
    Do it, print what was seen.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("kills", "starts", "hangs"))
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument(
        "--provider", choices=tuple(LONGEST_S), default="local", help="whose clusters"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harness-endurance-") as folder:
        what = {"kills": kills, "starts": starts, "hangs": hangs}[arguments.what]
        facts = what(arguments.count, arguments.seed, Path(folder), arguments.provider)
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")
    bad = ("left longer than 90 s", "left", "done trials that were lost or changed")
    is_bad = any(facts.get(what) for what in (*bad, "named after more than 20 s"))
    sys.exit(is_bad or not facts.get("trials as planned", True))


if __name__ == "__main__":
    main()
