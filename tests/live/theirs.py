"""
A cluster of ours that plays somebody else's, on addresses that any process of this machine reaches.
"""

import contextlib

from harness.clusters.home import HadoopHome
from harness.clusters.local.cluster import LocalCluster
from harness.records.trial import ClusterSpec

BLOCKS = {"dfs.namenode.fs-limits.min-block-size": "65536"}


@contextlib.contextmanager
def somebody_elses(folder, monkeypatch, workers, **site):
    """
    Such a cluster, its state in *folder*.
    """
    monkeypatch.setenv("HARNESS_LOCAL_NETWORK", "ports")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    spec = ClusterSpec(workers=workers, site={**BLOCKS, **site})
    with LocalCluster("theirs", spec, HadoopHome.find()) as cluster:
        yield cluster


def untouched(cluster):
    """
    Whether a cluster is as it was before somebody used it.
    """
    return cluster.dead_daemons() == [] and cluster.hdfs.list("/user/root") == []


def way_to(cluster):
    """
    What the environment of a user of *cluster* says.
    """
    return {
        "HADOOP_CONF_DIR": cluster.layout.conf(cluster.layout.master),
        "HADOOP_USER_NAME": "root",
    }
