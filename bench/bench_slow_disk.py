"""
How near the probe of buffered writes comes to a disk whose rate is known, because it is limited.

Two ways on one file, in turn: the rate of the first half second that is near the limit, and that of
the four seconds behind it, which is what the probe says.  Shares are of the limit.
"""

import json
import sys

from statistics import median

from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.base.units import MIB
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster

RATES_MIB = (10, 40)
ROUNDS = 10
LIMIT_S = 120.0
# Run on the node, whose disk is limited: with the node agent, a folder there and its rate.
PROGRAM = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from node import load
folder, rate = sys.argv[2], float(sys.argv[3])
seen = []
write_for = load._write_for
def noting(wanted_s, *rest):
    written, seconds = write_for(wanted_s, *rest)
    seen.append(written / seconds)
    return written, seconds
load._write_for = noting
probe = load.measure_buffered(folder, rate)["buffered_write"]
print(json.dumps({"one half second": seen[-2], "four seconds": probe}))
"""


def shares(cluster: LocalCluster, rate: int) -> dict[str, list[float]]:
    """What each way says of the disk of the cluster's worker, as shares of its *rate*."""
    worker = cluster.hosts[1]
    agent = cluster.agent(worker, "load")[-2]
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        place = f"{worker.folder}/data"
        done = worker.run([sys.executable, "-c", PROGRAM, agent, place, str(rate)], LIMIT_S)
        for way, measured in json.loads(done.out).items():
            found.setdefault(way, []).append(measured / rate)
    return found


def main() -> None:
    for rate_mib in RATES_MIB:
        rate = rate_mib * MIB
        spec = ClusterSpec(workers=1, node=NodeSpec(disk_bytes_per_s=rate))
        with LocalCluster("bench-slow-disk", spec, HadoopHome.find()) as cluster:
            for way, found in shares(cluster, rate).items():
                ends = f"{min(found):.3f} to {max(found):.3f}, {ROUNDS} times"
                print(f"{rate_mib} MiB/s, {way}: median {median(found):.3f} ({ends})", flush=True)


if __name__ == "__main__":
    main()
