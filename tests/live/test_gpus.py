"""
GPUs as YARN counts them, on a node that declares one and has none.
"""

import pytest

from harness.base.records.trial import ClusterSpec, NodeSpec
from harness.cli.console.talk import Progress
from harness.clusters.hadoop_home.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.clusters.workloads.base import JobCommand
from harness.tracer.selftest import JOBS_JAR, SLEEP, JobBench
from tests.live.runs import settings

pytestmark = [pytest.mark.live, pytest.mark.long]

JOB = {"sleep.maps": "3", "sleep.records": "1", "sleep.work": "1500", "mapreduce.job.reduces": "0"}
NVIDIA_SMI = {"mapreduce.map.resource.yarn.io/gpu": "1"}


def most_at_once(trace):
    """
    Most maps that held a container at one moment.
    """
    maps = trace.succeeded("map")
    return max(sum(a.start_s <= b.start_s < a.finish_s for a in maps) for b in maps)


def test_no_more_maps_run_than_devices_allow(tmp_path, monkeypatch):
    """
    On a node of two map slots and one GPU, maps that ask for a GPU run one after the other; maps of
    the same job that ask for none run two at a time.
    """
    monkeypatch.setenv("XDG_STATE_HOME", settings(tmp_path)["XDG_STATE_HOME"])
    spec = ClusterSpec(workers=1, node=NodeSpec(map_slots=2, gpus=1))

    with LocalCluster("gpus", spec, HadoopHome.find()) as cluster:
        bench = JobBench(cluster, tmp_path, Progress("jobs"))
        (node,) = cluster.hdfs.get_json("rm", "/ws/v1/cluster/nodes")["nodes"]["node"]
        types = node["totalResource"]["resourceInformations"]["resourceInformation"]
        observed = []
        for name, more in (("asking", NVIDIA_SMI), ("not", {})):
            command = JobCommand(SLEEP, (f"/harness/{name}",))
            job = bench.run(name, command, JOB | more, [JOBS_JAR])
            observed.append(most_at_once(job.trace))

    assert [t["value"] for t in types if t["name"] == "yarn.io/gpu"] == [1]
    assert observed == [1, 2]
