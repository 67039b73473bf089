"""
The same job beside a made neighbour: at which load of others its time is off by 2 %.

A neighbour is a process that is not ours and uses a share of one core, 0 to 100 %.  Each round has
a trial beside each of them, in a shuffled order; a trial is compared with that of its round which
had no neighbour.  What the harness measures of others' load stands beside the share that was made,
and the threshold of `harness.clusters.monitor.machine.MOST_OTHERS` is where the job's time exceeds
2 %, on the line through what was measured.

    bench_neighbour.py [ROUNDS [MINUTES]]        4 rounds, 30 minutes at most, on an idle machine
"""

import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scipy.stats import t as student_t

from harness.base.hadoop.site import block_bytes
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.monitor.machine import find_disturbance
from harness.clusters.monitor.watch import monitor_cluster
from harness.core.run.jobs import Inputs, JobRunner
from harness.core.run.session import Session
from harness.core.run.trial import TrialRunner
from tests.run.fakes import RecordingConsole

FILE = Path(__file__).parent / "neighbour.yaml"
SHARES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
BIAS = 0.02
LIMIT_S = 180.0
# Uses SHARE of a core: so much CPU time in each twentieth of a second, until its input ends.
BURNER = """
import select, sys, time
share, limit_s, period_s = float(sys.argv[1]), float(sys.argv[2]), 0.05
ends_s = time.monotonic() + limit_s
while time.monotonic() < ends_s:
    started_s, used_s = time.monotonic(), time.process_time()
    while time.process_time() - used_s < share * period_s:
        pass
    rest_s = max(0.0, started_s + period_s - time.monotonic())
    if select.select([0], [], [], rest_s)[0] and not sys.stdin.read(1):
        break
"""


class Beside(NamedTuple):
    """One job: the made share of one core, its seconds, and the load of others as measured."""

    round: int
    share: float
    job_s: float
    others: float
    steal: float
    disturbed: str


@contextmanager
def neighbour(share: float) -> Iterator[None]:
    """Have a process that is no descendant of ours use *share* of a core during a block."""
    if not share:
        yield
        return
    # The one that we start forks and ends: the burner then belongs to the machine's first process.
    argv = ["setsid", "--fork", sys.executable, "-I", "-S", "-c", BURNER, str(share), str(LIMIT_S)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as started:
        started.wait()
        yield


def measure(rounds: int, limit_s: float, scratch: Path) -> Iterator[Beside]:
    """Each job, as it ends; whole rounds only, as many as there is time for."""
    session = Session(FILE.read_text(), str(FILE), scratch / "results", (), RecordingConsole())
    (trial,) = session.trials
    chance, ends_s = random.Random(1), time.monotonic() + limit_s
    spec = trial.cell.cluster
    with (
        LocalCluster("bench-neighbour", spec, HadoopHome.find()) as cluster,
        monitor_cluster(cluster, scratch, print, print) as monitor,
    ):
        inputs = Inputs(JobRunner(cluster, LIMIT_S), scratch, print)
        runner = TrialRunner(cluster, inputs, block_bytes(spec), LIMIT_S)
        round_s = 0.0
        for number in range(-1, rounds):  # the first one is a warm-up
            started_s = time.monotonic()
            if started_s + round_s > ends_s:
                return
            shares = [0.0] if number < 0 else chance.sample(SHARES, len(SHARES))
            for share in shares:
                raw = scratch / f"raw-{number}-{share}"
                raw.mkdir()
                with neighbour(share), monitor.sample(raw):
                    outcome = runner.run(trial, raw)
                if outcome.state != "done":
                    sys.exit(f"a trial {outcome.state}: {outcome.reason}")
                loads = monitor.loads(raw)
                (load,) = loads.values()
                others = math.nan if load.others is None else load.others
                if number >= 0:
                    job_s, mark = outcome.traces[0].job_s, find_disturbance(loads)
                    yield Beside(number, share, job_s, others, load.steal, mark)
            round_s = time.monotonic() - started_s


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Interval of the mean at 95 %, by Student's t; all numbers for one value."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = student_t.ppf(0.975, len(values) - 1) * statistics.stdev(values)
    half /= math.sqrt(len(values))
    return statistics.fmean(values) - half, statistics.fmean(values) + half


def summary(jobs: Sequence[Beside]) -> Iterator[str]:
    """Lines of a table by share, and the load of others at which times are off by `BIAS`."""
    alone = {job.round: job for job in jobs if job.share == 0}
    biases: dict[float, list[float]] = defaultdict(list)
    others: dict[float, list[float]] = defaultdict(list)
    for job in jobs:
        biases[job.share].append(job.job_s / alone[job.round].job_s - 1)
        others[job.share].append(job.others)
    yield "share of a core  jobs  others, of all cores  bias of the job's time (95 %)  marked"
    for share in sorted(biases):
        low, high = mean_interval(biases[share])
        marked = sum(bool(job.disturbed) for job in jobs if job.share == share)
        mean_others, bias = map(statistics.fmean, (others[share], biases[share]))
        yield (
            f"{share:15.0%}  {len(biases[share]):4}  {mean_others:20.1%}"
            f"  {bias:+12.1%} ({low:+.1%} to {high:+.1%})  {marked:6}"
        )
    slopes = []
    for number, without in alone.items():
        pairs = [
            (job.others - without.others, job.job_s / without.job_s - 1)
            for job in jobs
            if job.round == number and job.share
        ]
        load, bias = np.array(pairs).T
        slopes.append(float(load @ bias / (load @ load)))
    low, high = mean_interval(slopes)
    slope = statistics.fmean(slopes)
    yield f"bias per share of all cores: {slope:.2f} ({low:.2f} to {high:.2f}, by rounds)"
    if low > 0:
        ends = f"{BIAS / high:.1%} to {BIAS / low:.1%}"
        yield f"a bias of {BIAS:.0%}: where others use {BIAS / slope:.1%} ({ends}) of all cores"
    else:
        yield f"a bias of {BIAS:.0%} cannot be placed: more rounds"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 30.0
    jobs = []
    with tempfile.TemporaryDirectory() as folder:
        for job in measure(rounds, 60 * minutes, Path(folder)):
            print(json.dumps(job._asdict()), flush=True)
            jobs.append(job)
    whole = max((job.round for job in jobs), default=-1)
    if whole < 0:
        sys.exit("no round was measured: allow more minutes")
    for line in summary(jobs):
        print(line)


if __name__ == "__main__":
    main()
