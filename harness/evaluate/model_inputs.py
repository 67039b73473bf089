"""
What a cell comes to: its effective configuration, a model's inputs, and a model's prediction.

A model predicts the body of one job, the same frame is added for every model, and the trial's time
is as many times that as the trial has jobs.  Where these are of several kinds no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import DataError, HarnessError, MissingStatistic
from harness.hadoop.properties import job_config, whole
from harness.hadoop.site import block_bytes, client_properties
from harness.hadoop.slots import effective
from harness.models import MODELS
from harness.models.frame import frame_s
from harness.profiling.fit import JOBS_PER_TRIAL
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile
from harness.records.score import Range
from harness.records.trial import Cell
from harness.workloads import WORKLOADS, workload_for
from harness.workloads.base import JobCommand, Workload

GPU_BLOCK = "block"


def effective_configuration(cell: Cell) -> dict[str, str]:
    """Job properties of *cell*: its configuration, and over it what its workload sets itself."""
    return {**cell.configuration, **workload_of(cell).properties(cell.workload)}


def required_jars(cell: Cell) -> Iterator[str]:
    """Names of our own jars that run the jobs of *cell*, or make their input."""
    workload, spec = workload_of(cell), cell.workload
    generate = workload.generate(spec, block_bytes(cell.cluster), "/input")
    for command in (*workload.submit(spec, "/input", "/output"), generate):
        if isinstance(command, JobCommand) and command.jar:
            yield command.jar


def model_inputs(cell: Cell) -> tuple[JobConfig, Cluster, JobInput]:
    """What a model is given of each job of *cell*: configuration, effective slots, input."""
    workload, configuration = workload_of(cell), effective_configuration(cell)
    properties = {**client_properties(cell.cluster), **configuration}
    input_plan = workload.plan_input(cell.workload, block_bytes(cell.cluster))
    gpu_block = None  # bytes that a map gives to its device at once
    if GPU_BLOCK in workload.parameters:
        gpu_block = workload.arguments(cell.workload)[GPU_BLOCK]
    return (
        job_config(properties, use_combiner=workload.uses_combiner),
        effective(cell.cluster, configuration),
        JobInput(
            input_bytes=input_plan.bytes,
            num_files=len(input_plan.files),
            num_splits=len(input_plan.files),
            split_bytes=input_plan.bytes / len(input_plan.files),
            replication=whole("dfs.replication", properties["dfs.replication"]),
            gpu_block_bytes=gpu_block if isinstance(gpu_block, int) else 0,
        ),
    )


def planned_jobs(cell: Cell) -> int | None:
    """Jobs of each trial of *cell*; `None`: as many as it takes."""
    return workload_of(cell).jobs(cell.workload)


def predict_cell(model: str, cell: Cell, profiles: Mapping[str, Profile]) -> Prediction:
    """
    Prediction of *model* for *cell*: its body, and with the profile's frame its job and makespan.

    Not applicable where the profile lacks what the model needs; without a frame it has no job.
    """
    try:
        if (profile := profiles.get(cell.workload.name)) is None:
            name = cell.workload.name
            raise MissingStatistic(f"profile of {name}", model=model, workload=name)
        if model not in MODELS:
            raise unknown_name_error("model", model)
        if not workload_of(cell).jobs_alike:
            raise MissingStatistic("jobs of one kind", model=model, workload=cell.workload.name)
        inputs = model_inputs(cell)
        prediction = MODELS[model].predict(profile, *inputs)
        planned = planned_jobs(cell)
        if prediction.body_s is None:
            return prediction.model_copy(update={"cell": cell.id})
        if planned is None and JOBS_PER_TRIAL not in profile.statistics:
            raise MissingStatistic(JOBS_PER_TRIAL, model=model, workload=profile.workload)
        # Trials that take as many jobs as they need take as many as the profiling trials did.
        job_count = float(planned or profile.statistics[JOBS_PER_TRIAL].value)
        changes: dict[str, Any] = {"cell": cell.id, "jobs": job_count}
        try:
            around_s, warnings = frame_s(profile.frame, *inputs)
        except MissingStatistic as error:
            return prediction.model_copy(update={**changes, "not_applicable": error.names})
        each_job_s = prediction.body_s + around_s
        outside_s = profile.frame["job_start_s"].value + profile.frame["job_end_s"].value
        changes |= {
            "frame_s": around_s,
            "job_s": job_count * each_job_s,
            "each_job_s": None if planned == 1 else each_job_s,
            "makespan_s": job_count * (each_job_s - outside_s),
            "warnings": (*prediction.warnings, *warnings),
        }
        return prediction.model_copy(update=changes)
    except MissingStatistic as error:
        missing = error.names
    except HarnessError as error:
        missing = (error.what,)
    return Prediction(model=model, cell=cell.id, not_applicable=missing)


def profiled_range(cell: Cell, profile: Profile | None) -> Range:
    """Where *cell* is in the range that was profiled."""
    if profile is None:
        return "outside"
    values: dict[str, float] = {"input_bytes": cell.workload.input_bytes}
    for property_name, text in cell.configuration.items():
        try:
            values[property_name] = float(text)
        except ValueError:
            continue
    is_at_edge = False
    for property_name, (lowest, highest) in profile.ranges.items():
        if property_name not in values:
            continue
        if not lowest <= values[property_name] <= highest:
            return "outside"
        is_at_edge = is_at_edge or (lowest < highest and values[property_name] in {lowest, highest})
    return "edge" if is_at_edge else "inside"


def workload_of(cell: Cell) -> Workload:
    """Look up the workload of *cell*; `DataError` where a stored run has one that is not known."""
    if cell.workload.name not in WORKLOADS:
        raise unknown_name_error("workload", cell.workload.name)
    return workload_for(cell.workload)


def unknown_name_error(what: str, name: str) -> DataError:
    """The error for the *name* of a model or workload in a stored run, which is not known here."""
    return DataError(
        f"this harness has no {what} {name[:80]!r}",
        where="the run's plan and manifest",
        fix="use the harness that measured this run, or a later one",
    )
