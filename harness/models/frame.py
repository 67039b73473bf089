"""
The frame of a job: what passes around its tasks, in seconds, the same for all that have none.

A model that is granted start-up would win over one that is not: so whatever predicts a body is lent
the frame, whose parts `frame_s` adds to all of them, as ``docs/models/README.md``, section 9,
counts them.  Where slow start lets reduces start before the last wave of maps, the first wave's
start passes beside maps.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from harness.base.errors import MissingStatistic
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import FRAME, Profile, ProfiledJob, Statistic
from harness.models.checks import check_count, check_number

# Seen only where jobs have more tasks than slots, or reduces that start behind all maps.
GAPS = frozenset({"task_gap_s", "reduce_gap_s"})
_WHERE = "frame of a job"

Numbers: TypeAlias = np.ndarray


def frame_counts(configuration: JobConfig, cluster: Cluster, job_input: JobInput) -> dict[str, int]:
    """How often each part of the frame lies on the way from a job's submission to its end."""
    map_slots = check_count("map_slots", cluster.map_slots, where=_WHERE, low=1)
    num_reduces = configuration.num_reduces
    reduce_slots = 1
    if num_reduces:
        reduce_slots = check_count("reduce_slots", cluster.reduce_slots, where=_WHERE, low=1)
    counts = frame_counts_of_many(
        np.array([job_input.num_splits]),
        np.array([num_reduces]),
        np.array([configuration.reduce_slowstart]),
        map_slots,
        reduce_slots,
    )
    return {name: int(count.item()) for name, count in counts.items()}


def frame_counts_of_many(
    num_maps: Numbers, num_reduces: Numbers, slowstart: Numbers, map_slots: int, reduce_slots: int
) -> dict[str, Numbers]:
    """`frame_counts` of jobs with so many tasks: of each part an array, with one value per job."""
    map_waves = np.ceil(num_maps / map_slots)
    reduce_waves = np.ceil(num_reduces / reduce_slots)
    # Maps that are done when the reduces may start: step 4 of the scheduler.
    maps_needed = np.ceil(slowstart * num_maps - 1e-9)
    starts_early = (reduce_waves > 0) & (maps_needed <= (map_waves - 1) * map_slots)
    return {
        "job_start_s": np.ones_like(map_waves),
        "job_end_s": np.ones_like(map_waves),
        "map_start_s": map_waves,
        "map_end_s": map_waves,
        "reduce_start_s": reduce_waves - starts_early,
        "reduce_end_s": reduce_waves,
        "task_gap_s": np.maximum(0, map_waves - 1) + np.maximum(0, reduce_waves - 1),
        "reduce_gap_s": np.where((reduce_waves > 0) & ~starts_early, 1.0, 0.0),
    }


def frame_s(
    frame: Mapping[str, Statistic],
    configuration: JobConfig,
    cluster: Cluster,
    job_input: JobInput,
) -> tuple[float, tuple[str, ...]]:
    """
    Seconds that *frame* adds to one job, and warnings of gaps that no job has shown (taken as 0).

    ``MissingStatistic`` where another part that counts is not known.
    """
    counts = frame_counts(configuration, cluster, job_input)
    absent = [name for name in FRAME if counts[name] and name not in frame]
    if missing := [name for name in absent if name not in GAPS]:
        raise MissingStatistic(*missing, model="the frame", workload="the profile")
    seconds = math.fsum(
        count * check_number(name, frame[name].value, where=_WHERE)
        for name, count in counts.items()
        if count and name in frame
    )
    return seconds, tuple(f"no job shows a {name}: the frame takes it as 0" for name in absent)


# From this version of profiles on a body is what ran, and no longer a job less the frame.
_BODIES_AS_RUN = 10
_LEAST_BODY = 0.1  # of a job


def jobs_beside_frame(profile: Profile) -> tuple[ProfiledJob, ...]:
    """
    The profiled jobs, whose bodies are what the frame leaves of them: for who is lent the frame.

    A model that learns from whole jobs knows no waves: its body, with the frame of the formula, has
    to give the job again.  It is a tenth of the job at least, for a frame of the formula may exceed
    short jobs.  A job of which the frame is not known keeps the body that it is stored with.
    """
    if profile.schema_version < _BODIES_AS_RUN:
        return profile.jobs
    jobs = []
    for job in profile.jobs:
        body_s = job.body_s
        with suppress(MissingStatistic):
            rest_s = job.job_s - frame_s(profile.frame, *inputs_of_profiled(job))[0]
            body_s = max(rest_s, _LEAST_BODY * job.job_s)
        jobs.append(job.model_copy(update={"body_s": body_s}))
    return tuple(jobs)


def inputs_of_profiled(job: ProfiledJob) -> tuple[JobConfig, Cluster, JobInput]:
    """What a model is given of a profiled *job*, whose cell may be that of another run."""
    slots = {
        f"{kind}_slots_per_node": -(-getattr(job, f"{kind}_slots") // job.num_nodes)
        for kind in ("map", "reduce")
    }
    cluster = Cluster(
        num_nodes=job.num_nodes,
        map_slots=job.map_slots,
        reduce_slots=job.reduce_slots,
        nodes=job.nodes,
        **slots,
    )
    job_input = JobInput(
        input_bytes=job.input_bytes,
        num_files=job.num_splits,
        num_splits=job.num_splits,
        split_bytes=job.input_bytes / job.num_splits,
    )
    return job.configuration, cluster, job_input


def whole_job(
    job_s: float | None,
    body_s: float | None,
    profile: Profile,
    inputs: tuple[JobConfig, Cluster, JobInput],
) -> tuple[float | None, tuple[str, ...]]:
    """
    What a model of bodies gives as a whole job: *job_s* where no frame can be lent, with a warning.

    That is where the body is not known, *body_s* is `None`, or a part of the frame; elsewhere the
    job is left to the frame: `None`, and no warning.
    """
    try:
        frame_s(profile.frame, *inputs)
        missing: tuple[str, ...] = ("body_s",) if body_s is None else ()
    except MissingStatistic as error:
        missing = error.names
    if not missing:
        return None, ()
    reason = f"the whole job as the profiled jobs took it: {', '.join(missing)} is not known"
    return job_s, (reason,)
