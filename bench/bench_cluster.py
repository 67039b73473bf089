"""
Start of a cluster and an empty job: median of five, on an idle machine.

A cluster is three workers with history server, from nothing to healthy.  The empty job is a
WordCount of one line, one map and one reduce, client JVM included.
"""

import statistics
import tempfile
import time

from pathlib import Path

from harness.base.records.trial import ClusterSpec
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.workloads.base import JobCommand
from harness.core.run.jobs import JobRunner

REPEATS = 5
EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"


def main() -> None:
    home, starts, stops, jobs = HadoopHome.find(), [], [], []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "client.log"
        for number in range(REPEATS):
            cluster = LocalCluster("bench", ClusterSpec(workers=3), home)
            started = time.monotonic()
            with cluster:
                starts.append(time.monotonic() - started)
                if number == REPEATS - 1:
                    jobs = [empty_job(cluster, log, f"/out-{n}") for n in range(REPEATS + 1)][1:]
                ended = time.monotonic()
            stops.append(time.monotonic() - ended)
    for what, times in (("cluster start", starts), ("cluster down", stops), ("empty job", jobs)):
        row = ", ".join(f"{t:.2f}" for t in times)
        print(f"{what}: median {statistics.median(times):.2f} s of {row}")


def empty_job(cluster: LocalCluster, log: Path, output: str) -> float:
    cluster.hdfs.put("/in/line.txt", [b"one line\n"])
    cluster.await_idle()
    started = time.monotonic()
    JobRunner(cluster, 300.0).run(JobCommand(EXAMPLES, ("/in", output), "wordcount"), {}, log)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
