"""
Generators beside the rate at which HDFS takes files: the same bytes written by dfsio and by each.

``bench_generators.py [ROUNDS] [--mebibytes N] [--only NAME,...]`` (3 rounds of 512 MiB) starts a
cluster of three workers and lets dfsio and the generators write in turn, in files of 128 MiB:
dfsio before and after each generator.  A rate is bytes by the seconds of all maps together, from
the start of a container to the end of its file, in the job's history.  A ratio is that of a
generator to the mean of its two neighbours.  The aim is 0.7.
"""

import argparse
import os
import statistics
import tempfile

from pathlib import Path

from harness.base.records.trial import ClusterSpec, WorkloadSpec
from harness.cli.console.talk import show_table
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.workloads import WORKLOADS
from harness.core.run.jobs import JobRunner, fetch_history, generator_properties

MIB = 2**20
BLOCK = 128 * MIB
SPEC = ClusterSpec(workers=3, site={"dfs.blocksize": str(BLOCK)})
# Name -> workload and its arguments; each makes about as many bytes as are asked for.
GENERATORS = {
    "text zipf": ("wordcount", {}),
    "text random": ("wordcount", {"text": "random"}),
    "noise": ("shuffle", {}),
    "rows (TeraGen)": ("terasort", {}),
    "graph": ("pagerank", {}),
    "mixture": ("kmeans", {}),
    "points": ("gpu-kmeans", {"device": "cpu"}),
    "frames": ("gpu-sbs", {"device": "cpu"}),
    "matrices": ("gpu-matmul", {"device": "cpu"}),
}
DFSIO = "dfsio write"
LIMIT_S = 600.0


def main() -> None:
    """Measure, then print."""
    options = arguments()
    known = {name: each for name, each in GENERATORS.items() if each[0] in WORKLOADS}
    chosen = {n: known[n] for n in known if not options.only or n in options.only.split(",")}
    rates: dict[str, list[float]] = {name: [] for name in (DFSIO, *chosen)}
    ratios: dict[str, list[float]] = {name: [] for name in chosen}
    with (
        LocalCluster(f"bench-generators-{os.getpid()}", SPEC, HadoopHome.find()) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        writer = Writer(cluster, Path(folder), options.mebibytes * MIB)
        before = writer.dfsio()
        for number in range(options.rounds):
            # Every other round begins at the other end, so that no generator always comes last.
            for name in list(chosen) if number % 2 == 0 else list(chosen)[::-1]:
                rate, after = writer.generator(*chosen[name]), writer.dfsio()
                rates[DFSIO].append(before)
                rates[name].append(rate)
                ratios[name].append(2 * rate / (before + after))
                rates = f"{rate / MIB:.1f} MiB/s of a map, {ratios[name][-1]:.2f} of dfsio's"
                print(f"round {number + 1}: {name} {rates}", flush=True)
                before = after
    rows = [
        (name, spread([r / MIB for r in each], 1), spread(ratios.get(name, [1.0]), 2))
        for name, each in rates.items()
    ]
    show_table(("generator", "MiB/s of a map", "of dfsio's"), rows)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument("--only", default="", help="some of " + ",".join(GENERATORS))
    return parser.parse_args()


def spread(values: list[float], digits: int) -> str:
    """Median, and range in brackets."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


class Writer:
    """Lets jobs write *size* bytes on *cluster*, and takes what they wrote away."""

    def __init__(self, cluster: LocalCluster, folder: Path, size: int) -> None:
        self.cluster, self.folder, self.size = cluster, folder, size
        self.runner, self.jobs, self.shares = JobRunner(cluster, LIMIT_S), 0, ""
        self.properties = generator_properties(cluster.site_properties())

    def dfsio(self) -> float:
        """Bytes per second that a map of dfsio writes."""
        spec = WorkloadSpec(name="dfsio", input_bytes=self.size, parameters={"mode": "write"})
        workload = WORKLOADS["dfsio"]
        if not self.shares:
            self.shares = "/bench/shares"
            self._run(workload.generate(spec, BLOCK, self.shares))
        (command,) = workload.submit(spec, self.shares, "/bench/out")
        return self._rate(command, "/bench/out")

    def generator(self, name: str, parameters: dict[str, str]) -> float:
        """Bytes per second that a map of a workload's generator writes."""
        spec = WorkloadSpec(name=name, input_bytes=self.size, parameters=parameters)
        return self._rate(WORKLOADS[name].generate(spec, BLOCK, "/bench/out"), "/bench/out")

    def _rate(self, command, output: str) -> float:
        job = self._run(command)
        trace = fetch_history(self.cluster, job, self.folder, self.jobs, 60.0)
        files = [f for f in self.cluster.hdfs.list(output) if f[0].startswith("part-")]
        self.cluster.hdfs.delete(output)
        seconds = sum(a.finish_s - a.start_s for a in trace.attempts if a.kind == "map")
        return sum(size for _, size, _ in files) / seconds

    def _run(self, command) -> str:
        self.jobs += 1
        log = self.folder / f"client-{self.jobs}.log"
        (job,) = self.runner.run(command, self.properties, log)
        self.cluster.await_idle(60.0)
        return job


if __name__ == "__main__":
    main()
