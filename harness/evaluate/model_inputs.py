"""
What a cell comes to: its effective configuration, a model's inputs, and a model's prediction.

A model predicts the body of one job, the same frame is added for every model, and the trial's time
is as many times that as the trial has jobs.  Where these are of several kinds no model is asked.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harness.errors import DataError, HarnessError, MissingStatistic
from harness.evaluate.own_code import own_workload
from harness.hadoop.properties import job_config, split_counts, whole
from harness.hadoop.site import block_bytes, client_properties
from harness.hadoop.slots import effective
from harness.models import MODELS, Model
from harness.models.frame import frame_s
from harness.profiling.fit import JOBS_PER_TRIAL
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile, ProfiledJob, Statistic
from harness.records.score import Range
from harness.records.trial import HISTORY, Cell
from harness.scoring.score import predicted_times
from harness.stats.resampling import drawn_interval, prediction_interval
from harness.workloads import WORKLOADS, workload_for
from harness.workloads.base import JobCommand, Workload
from harness.workloads.history import PastJobs

if TYPE_CHECKING:
    from harness.stats.resampling import Numbers

ModelInputs = tuple[JobConfig, Cluster, JobInput]
INTERVAL_OF = ("body_s", "job_s")
INTERVAL_LEVELS = (0.8, 0.9)
JOBS = "jobs."  # before the names of times of jobs, where they stand beside statistics


def effective_configuration(cell: Cell) -> dict[str, str]:
    """Job properties of *cell*: its configuration, and over it what its workload sets itself."""
    return {**cell.configuration, **workload_of(cell).properties(cell.workload)}


def client_configuration(cell: Cell) -> dict[str, str]:
    """All properties of the client that submits the jobs of *cell*."""
    return {**client_properties(cell.cluster), **effective_configuration(cell)}


def required_jars(cell: Cell) -> Iterator[str]:
    """Names of our own jars that run the jobs of *cell*, or make their input."""
    workload = workload_of(cell)
    spec = cell.workload
    generate = workload.generate(spec, block_bytes(cell.cluster), "/input")
    for command in (*workload.submit(spec, "/input", "/output"), generate):
        if isinstance(command, JobCommand) and command.jar:
            yield command.jar


def model_inputs(cell: Cell) -> ModelInputs:
    """What a model is given of each job of *cell*: configuration, effective slots, input."""
    workload = workload_of(cell)
    properties = client_configuration(cell)
    block = block_bytes(cell.cluster)
    input_plan = workload.plan_input(cell.workload, block)
    split_count = sum(split_counts(input_plan.sizes, block, properties))
    gpu_block = workload.arguments(cell.workload).get("block")  # given to a device at once
    return (
        job_config(properties, use_combiner=workload.uses_combiner),
        effective(cell.cluster, effective_configuration(cell)),
        JobInput(
            input_bytes=input_plan.bytes,
            num_files=len(input_plan.sizes),
            num_splits=split_count,
            split_bytes=input_plan.bytes / split_count,
            replication=whole("dfs.replication", properties["dfs.replication"]),
            gpu_block_bytes=gpu_block if isinstance(gpu_block, int) else 0,
        ),
    )


def predict_cell(
    model: str | Model,
    cell: Cell,
    profiles: Mapping[str, Profile],
    known: tuple[ModelInputs, Prediction] | None = None,
) -> Prediction:
    """
    Prediction of *model* for *cell*: its body, and with the profile's frame its job and makespan.

    Not applicable where the profile lacks what the model needs; without a frame it has no job.
    *known* are the cell's inputs, and what the model says of them, where that is known.
    """
    name, predictor = (model, MODELS.get(model)) if isinstance(model, str) else (model.name, model)
    try:
        if (profile := profiles.get(cell.workload.name)) is None:
            what = f"profile of {cell.workload.name}"
            raise MissingStatistic(what, model=name, workload=cell.workload.name)
        if predictor is None:
            raise unknown_name_error("model", name)
        if not workload_of(cell).jobs_alike:
            raise MissingStatistic("jobs of one kind", model=name, workload=cell.workload.name)
        inputs = known[0] if known else model_inputs(cell)
        prediction = known[1] if known else predictor.predict(profile, *inputs)
        planned = workload_of(cell).jobs(cell.workload)  # `None`: as many as it takes
        if prediction.body_s is None:
            return prediction.model_copy(update={"cell": cell.id})
        if planned is None and JOBS_PER_TRIAL not in profile.statistics:
            raise MissingStatistic(JOBS_PER_TRIAL, model=name, workload=profile.workload)
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
    return Prediction(model=name, cell=cell.id, not_applicable=missing)


def predict_cells(
    model: str | Model,
    cells: Iterable[Cell],
    profiles: Mapping[str, Profile],
    profiled: Mapping[str, Cell],
) -> Iterator[Prediction]:
    """
    Yield the prediction of *model* for each of *cells*, with its refits and intervals.

    Residuals are those of logarithms, the factor between predicted and measured times: times of
    jobs vary over a decade and their errors with them, and no interval reaches 0.  Measured times
    of profiling cells are those that the profile keeps, at reference speed; *profiled* has the
    cells by their ids, but those of another run.
    """
    import numpy as np

    missed = {name: [*_misses(model, each, profiled)] for name, each in profiles.items()}
    for cell in cells:
        prediction = predict_cell(model, cell, profiles)
        workload = cell.workload.name
        if prediction.body_s is None:
            yield prediction
            continue
        profile = profiles[workload]
        of_cells = missed[workload]
        others = [predict_cell(model, cell, {workload: refit}) for refit in profile.refits]
        logarithms = [_log_times(other) for other in others]
        never = [(math.nan, math.nan)] * (len({job.cell for job in profile.jobs}) - len(of_cells))
        drawn = None
        if profile.draws:  # of another machine: its costs there, and what the model misses here
            drawn = np.array(
                [
                    _log_times(predict_cell(model, cell, {workload: scaled(profile, times)}))
                    for times in profile.draws
                ]
            )
            known = [error for _, error in of_cells if np.isfinite(error).all()]
            errors = np.array(known or [np.zeros(len(INTERVAL_OF))])
            numbers = np.arange(len(drawn))
            drawn += errors[numbers // 2 % len(errors)] * (2 * (numbers % 2) - 1)[:, None]
        refits = {}
        intervals = {}
        for column, quantity in enumerate(INTERVAL_OF):
            refits[quantity] = tuple(predicted_times(other)[quantity][1] for other in others)
            pairs = [(logarithms[place][column], error[column]) for place, error in of_cells]
            centres, residuals = np.reshape(pairs + never, (-1, 2)).T
            intervals[quantity] = {
                f"{100 * level:.0f}": drawn_interval(drawn[:, column], level)
                if drawn is not None
                else prediction_interval(centres, residuals, level)
                for level in INTERVAL_LEVELS
            }
        yield prediction.model_copy(update={"refits": refits, "intervals": intervals})


def _log_times(prediction: Prediction) -> Numbers:
    """Logarithms of a trial's times, NaN where there is none."""
    import numpy as np

    times_s = predicted_times(prediction)
    logs: Numbers = np.log([times_s[quantity][1] or math.nan for quantity in INTERVAL_OF])
    return logs


def _misses(
    model: str | Model, profile: Profile, profiled: Mapping[str, Cell]
) -> Iterator[tuple[int, Numbers]]:
    """Yield for each profiling cell the place of the refit without it, and what that misses."""
    import numpy as np

    known = {job.cell for job in profile.jobs}
    for place, refit in enumerate(profile.refits):
        for cell_id in sorted(known - {job.cell for job in refit.jobs}):
            jobs = [job for job in profile.jobs if job.cell == cell_id]
            if cell_id not in profiled:  # of another run
                yield place, _missed(model, refit, jobs)
                continue
            sums_s = [
                sum(getattr(job, quantity) or math.nan for job in jobs) for quantity in INTERVAL_OF
            ]
            measured = np.log(sums_s) - math.log(len({job.trial for job in jobs}))
            again = predict_cell(model, profiled[cell_id], {profile.workload: refit})
            yield place, measured - _log_times(again)


def _missed(model: str | Model, refit: Profile, jobs: Sequence[ProfiledJob]) -> Numbers:
    """By how much *model* misses profiled *jobs* of one cell: logarithms, NaN: it has no answer."""
    import numpy as np

    predictor = MODELS[model] if isinstance(model, str) else model
    job = jobs[0]
    slots = {
        f"{kind}_slots_per_node": -(-getattr(job, f"{kind}_slots") // job.num_nodes)
        for kind in ("map", "reduce")
    }
    cluster = Cluster(
        num_nodes=job.num_nodes, map_slots=job.map_slots, reduce_slots=job.reduce_slots, **slots
    )
    job_input = JobInput(
        input_bytes=job.input_bytes,
        num_files=job.num_splits,
        num_splits=job.num_splits,
        split_bytes=job.input_bytes / job.num_splits,
    )
    cell = (job.configuration, cluster, job_input)
    try:
        body_s = predictor.predict(refit, *cell).body_s or math.nan
        predicted_s = [body_s, body_s + frame_s(refit.frame, *cell)[0]]
    except HarnessError:
        predicted_s = [math.nan, math.nan]
    measured_s = [
        sum(getattr(job, name) or math.nan for job in jobs) / len(jobs) for name in INTERVAL_OF
    ]
    missed: Numbers = np.log(measured_s) - np.log(predicted_s)
    return missed


def scaled(profile: Profile, times: Mapping[str, float]) -> Profile:
    """*profile* with each time as many times as long as *times* has it, by name, jobs by `JOBS`."""

    def longer(known: Mapping[str, Statistic]) -> dict[str, Statistic]:
        changed = dict(known)
        for name in known.keys() & times.keys():
            factor = times[name]
            old = known[name]
            nodes = {node: factor * value for node, value in old.nodes.items()}
            update = {"value": factor * old.value, "spread": factor * old.spread, "nodes": nodes}
            changed[name] = old.model_copy(update=update)
        return changed

    jobs = []
    for job in profile.jobs:
        names = {name.removeprefix(JOBS): times[name] for name in times if name.startswith(JOBS)}
        update = {
            name: factor * value
            for name, factor in names.items()
            if (value := getattr(job, name)) is not None
        }
        jobs.append(job.model_copy(update=update))
    return profile.model_copy(
        update={
            "statistics": longer(profile.statistics),
            "costs": longer(profile.costs),
            "frame": longer(profile.frame),
            "jobs": tuple(jobs),
        }
    )


def profiled_range(cell: Cell, profile: Profile | None) -> Range:
    """Where *cell* is in the range that was profiled."""
    if profile is None:
        return "outside"
    values: dict[str, float] = {"input_bytes": cell.workload.input_bytes}
    for property_name, text in cell.configuration.items():
        with suppress(ValueError):
            values[property_name] = float(text)
    known = [(values[name], *ends) for name, ends in profile.ranges.items() if name in values]
    if not all(lowest <= value <= highest for value, lowest, highest in known):
        return "outside"
    is_at_edge = any(low < high and value in {low, high} for value, low, high in known)
    return "edge" if is_at_edge else "inside"


def workload_of(cell: Cell) -> Workload:
    """Look up the workload of *cell*; `DataError` where a stored run has one that is not known."""
    if cell.workload.code is not None:
        return own_workload(cell.workload.code)
    if cell.cluster.provider == HISTORY:
        return PastJobs(cell.configuration)
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
