"""
The same cells on each kind of cluster, and how long its nodes take from nothing to healthy.

``bench_providers.py [ROUNDS] [--only local,docker,ansible]`` (3 rounds): in each round every
provider starts three workers and runs bench/providers.yaml, in turn; every other round in the other
order.  Docker is the engine that ``DOCKER_HOST`` names, or one that is started for this; bare hosts
are real sshd in namespaces (root only), prepared in the first round.  A cell's noise floor is the
spread of its repeats within a round.  The aim: docker differs from local by less than that and 5 %.
"""

import argparse
import contextlib
import os
import re
import statistics
import tempfile

from collections import defaultdict
from pathlib import Path

from harness.base.stats.spread import coefficient_of_variation
from harness.cli.console.talk import show_table
from harness.clusters.ssh.connection import trust
from harness.core.run.session import Session
from tests.live import bare_hosts, engine
from tests.run.fakes import RecordingConsole

FILE = Path(__file__).parent / "providers.yaml"
WORKERS = 3


class Start(RecordingConsole):
    """Keeps how long the cluster took to be healthy."""

    def __init__(self) -> None:
        super().__init__()
        self.up_s = 0.0

    def say(self, line: str) -> None:
        if match := re.search(r"healthy after ([0-9.]+) s", line):
            self.up_s = float(match[1])


def main() -> None:
    """Measure, then print."""
    options = arguments()
    ups: dict[str, list[float]] = defaultdict(list)
    jobs: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    with contextlib.ExitStack() as stack:
        names = options.only.split(",")
        overrides = {name: stack.enter_context(PLACES[name]()) for name in names}
        for number in range(options.rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                up_s, seconds = measured(name, overrides[name])
                ups[name].append(up_s)
                for cell, each in seconds.items():
                    jobs[name, cell].append(each)
                averages = ", ".join(f"{c} {statistics.mean(s):.2f} s" for c, s in seconds.items())
                print(
                    f"round {number + 1}: {name} healthy after {up_s:.1f} s, {averages}", flush=True
                )
    print_tables(names, ups, jobs)


def print_tables(names, ups, jobs) -> None:
    """Boot times; each cell on each provider beside the first provider."""
    show_table(
        ("provider", "nothing to healthy, s"),
        [
            (name, f"{statistics.median(u):.1f} ({min(u):.1f} to {max(u):.1f})")
            for name, u in ups.items()
        ],
    )
    rows = []
    for name, cell in sorted(jobs, key=lambda k: (k[1], names.index(k[0]))):
        means = [statistics.mean(each) for each in jobs[name, cell]]
        first = [statistics.mean(each) for each in jobs[names[0], cell]]
        off = [m / f - 1 for m, f in zip(means, first, strict=True)]
        floors = [coefficient_of_variation(each) for each in jobs[name, cell]]
        away = f"{statistics.mean(off):+.1%} ({min(off):+.1%} to {max(off):+.1%})"
        rows.append(
            (cell, name, f"{statistics.mean(means):.2f}", f"{statistics.mean(floors):.1%}", away)
        )
    show_table(("cell", "provider", "job, s", "noise floor", f"beside {names[0]}"), rows)


def measured(provider: str, overrides: tuple[str, ...]) -> tuple[float, dict[str, list[float]]]:
    """Seconds to healthy, and of every repeat by cell."""
    start = Start()
    with tempfile.TemporaryDirectory() as folder:
        sets = (f"cluster.provider={provider}", *overrides)
        session = Session(FILE.read_text(), str(FILE), Path(folder), sets, start)
        run, failed = session.measure()
        assert not failed, f"{failed} trials failed on {provider}"
        seconds = defaultdict(list)
        evaluation = session.evaluation(run)
        for record in evaluation.done.values():
            (job,) = evaluation.observe(record)
            seconds[record.trial.cell.workload.name].append(job.trace.job_s)
    return start.up_s, seconds


@contextlib.contextmanager
def here():
    """Nodes in namespaces of this machine."""
    yield ()


@contextlib.contextmanager
def an_engine():
    """An engine with the image at hand."""
    with engine.ready() as (address, _):
        os.environ["DOCKER_HOST"] = address
        yield ()


@contextlib.contextmanager
def hosts():
    """Bare hosts beside each other, all of them trusted."""
    with bare_hosts.BareHosts() as place:
        made = [place.add() for _ in range(WORKERS + 1)]
        for host in made:
            trust(host.address, host.fingerprint)
        addresses = ", ".join(host.address for host in made)
        yield (
            f"cluster.hosts=[{addresses}]",
            f"cluster.ssh.key={place.key}",
            "cluster.ssh.keep=true",
        )


PLACES = {"local": here, "docker": an_engine, "ansible": hosts}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--only", default=",".join(PLACES), help="some of " + ",".join(PLACES))
    return parser.parse_args()


if __name__ == "__main__":
    main()
