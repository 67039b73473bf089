"""
What models are asked of a cell, and what they answer.

All jobs of a trial are of one kind: a model is asked of one of them, and the trial's time is as
many times its answer as the trial has jobs.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import DataError, HarnessError, MissingStatistic
from harness.evaluate.cells import configured
from harness.hadoop.properties import job_config, whole
from harness.hadoop.site import block_bytes, client_properties
from harness.hadoop.slots import effective
from harness.models import MODELS
from harness.profiling.fit import JOBS_PER_TRIAL
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile
from harness.records.score import Range
from harness.records.trial import Cell
from harness.workloads import WORKLOADS
from harness.workloads.base import Workload
from harness.workloads.shape import arguments

GPU_BLOCK = "block"


def question(cell: Cell) -> tuple[JobConfig, Cluster, JobInput]:
    """What a model is told of each job of *cell*: configuration, effective slots, input."""
    workload = _workload(cell)
    asked = configured(cell)
    properties = {**client_properties(cell.cluster), **asked}
    plan = workload.plan_input(cell.workload, block_bytes(cell.cluster))
    return (
        job_config(properties, use_combiner=workload.uses_combiner),
        effective(cell.cluster, asked),
        JobInput(
            input_bytes=plan.bytes,
            num_files=len(plan.files),
            num_splits=len(plan.files),
            split_bytes=plan.bytes / len(plan.files),
            replication=whole("dfs.replication", properties["dfs.replication"]),
            gpu_block_bytes=_gpu_block_bytes(workload, cell),
        ),
    )


def _gpu_block_bytes(workload: Workload, cell: Cell) -> int:
    """Bytes that a map gives to its device at once: the argument `block` of such workloads."""
    if GPU_BLOCK not in workload.parameters:
        return 0
    block = arguments(cell.workload, workload.parameters)[GPU_BLOCK]
    return block if isinstance(block, int) else 0


def planned_jobs(cell: Cell) -> int | None:
    """Jobs of each trial of *cell*; `None`: as many as it takes."""
    return _workload(cell).jobs(cell.workload)


def predict_cell(model: str, cell: Cell, profiles: Mapping[str, Profile]) -> Prediction:
    """Answer of *model* for *cell*; not applicable where the profile lacks what it needs."""
    profile = profiles.get(cell.workload.name)
    if profile is None:
        lacks: tuple[str, ...] = (f"profile of {cell.workload.name}",)
        return Prediction(model=model, cell=cell.id, job_s=None, not_applicable=lacks)
    try:
        if model not in MODELS:
            raise _unknown("model", model)
        answer = _in_sum(MODELS[model].predict(profile, *question(cell)), cell, profile)
    except MissingStatistic as missing:
        return Prediction(model=model, cell=cell.id, job_s=None, not_applicable=missing.names)
    except HarnessError as error:
        return Prediction(model=model, cell=cell.id, job_s=None, not_applicable=(error.what,))
    return answer.model_copy(update={"cell": cell.id})


def _in_sum(one: Prediction, cell: Cell, profile: Profile) -> Prediction:
    """Prediction of a trial of *cell* from that of *one* of its jobs."""
    planned = planned_jobs(cell)
    if planned == 1 or one.job_s is None:
        return one
    jobs = float(planned) if planned is not None else _seen_jobs(profile, one.model)
    sums = {"job_s": jobs * one.job_s, "each_job_s": one.job_s, "jobs": jobs}
    return one.model_copy(update=sums)


def _seen_jobs(profile: Profile, model: str) -> float:
    seen = profile.statistics.get(JOBS_PER_TRIAL)
    if seen is None:
        raise MissingStatistic(JOBS_PER_TRIAL, model=model, workload=profile.workload)
    return seen.value


def place(cell: Cell, profile: Profile | None) -> Range:
    """Where *cell* lies in the range that was profiled."""
    if profile is None:
        return "outside"
    values: dict[str, float] = {"input_bytes": cell.workload.input_bytes}
    for key, text in cell.configuration.items():
        try:
            values[key] = float(text)
        except ValueError:
            continue
    at_edge = False
    for key, (low, high) in profile.ranges.items():
        if key not in values:
            continue
        if not low <= values[key] <= high:
            return "outside"
        at_edge = at_edge or (low < high and values[key] in {low, high})
    return "edge" if at_edge else "inside"


def _workload(cell: Cell) -> Workload:
    if cell.workload.name not in WORKLOADS:
        raise _unknown("workload", cell.workload.name)
    return WORKLOADS[cell.workload.name]


def _unknown(what: str, name: str) -> DataError:
    return DataError(
        f"this harness has no {what} {name[:80]!r}",
        where="the run's plan and manifest",
        fix="use the harness that measured this run, or a later one",
    )
