"""
Profiled jobs, clusters and inputs for the models that read `Profile.jobs`.
"""

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import FRAME, Profile, ProfiledJob, Statistic

MIB = 2**20


def stat(value, **more):
    """
    A statistic of which only the value matters.
    """
    return Statistic(value=value, count=1, spread=0.0, source="test", **more)


def job(job_s=60.0, *, mib=64, splits=4, slots=2, trial="t", cell="c", config=None, **more):
    """
    One profiled job of *mib* MiB.
    """
    return ProfiledJob(
        **{
            "trial": trial, "cell": cell, "input_bytes": mib * MIB, "num_splits": splits,
            "num_nodes": 2, "map_slots": slots, "reduce_slots": slots,
            "configuration": JobConfig(**(config or {})), "job_s": job_s, "body_s": job_s, **more,
        }
    )  # fmt: skip


def profile(*jobs, **more):
    """
    A profile that knows these jobs, and a frame of 1 s for each of its parts.

    Of a version whose bodies are what the frame leaves of jobs: what models learn is as given here.
    """
    known = {"frame": {name: stat(1.0) for name in FRAME}, "schema_version": 9} | more
    return Profile(workload="wordcount", jobs=jobs, **known)


def cell_inputs(*, mib=128, splits=8, slots=2, **config):
    """
    What a model is given of a cell: configuration, cluster, input.
    """
    cluster = Cluster(
        num_nodes=2, map_slots_per_node=slots, reduce_slots_per_node=slots,
        map_slots=slots, reduce_slots=slots,
    )  # fmt: skip
    size = JobInput(
        input_bytes=mib * MIB, num_files=splits, num_splits=splits, split_bytes=mib * MIB / splits
    )
    return JobConfig(**config), cluster, size
