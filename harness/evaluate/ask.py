"""What a setting would do, without a job: cells that nobody measured, as models predict them."""

from __future__ import annotations

import json
import re

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from statistics import fmean
from typing import Any, NamedTuple

from harness.errors import DataError, HarnessError, SpecError
from harness.evaluate.flow import Evaluation
from harness.evaluate.model_inputs import (
    effective_configuration,
    model_inputs,
    predict_cell,
    predict_cells,
    profiled_range,
)
from harness.evaluate.own_code import own_workload
from harness.experiment.file import KnownNames, read_experiment
from harness.experiment.grid import axis_values, expand, label, varying
from harness.hadoop.properties import JOB_PROPERTIES
from harness.hadoop.slots import refusals
from harness.models import MODELS, Model
from harness.records.prediction import Prediction
from harness.records.profile import Profile
from harness.records.trial import HISTORY, Cell, ClusterSpec, NodeSpec, WorkloadSpec
from harness.text import did_you_mean
from harness.units import format_bytes
from harness.workloads.history import PastJobs

MANY = 50  # cells from which on a model that can is asked of all at once, without intervals
_KEY = re.compile(r"((configuration|cluster\.(site|node)|workloads\.[^.]+)\.|cluster\.workers=).*")
_OF_NODE = {re.sub("_bytes(_per_s)?$", "", field): field for field in NodeSpec.model_fields}
_OF_MAPS = {"map", "collect", "spill", "last"}
_OF_REDUCES = {"shuffle", "sort", "reduce"}
_ROUNDING = 0.01  # inputs are whole records: a little less than was asked for

Question = tuple[str, Cell, str]  # the cell with its name, and the name it is compared with


class Basis(NamedTuple):
    """The base cell, which it is, its profile, profiled cells by id, mean errors by model."""

    base: Cell
    note: str
    profile: Profile
    profiled: Mapping[str, Cell] = {}  # none: predictions have no intervals
    errors: Mapping[str, float] = {}


def basis_of_run(evaluation: Evaluation, workload: str) -> Basis:
    """What a run knows of *workload*, or of its only one; the base is its largest scored cell."""
    run = evaluation.run
    profiles = evaluation.run.read_profiles()
    if not profiles:
        raise DataError("there is no profile", where=str(run.path), fix=f"harness profile {run.id}")
    if workload not in profiles and (workload or len(profiles) > 1):
        what = f"no profile is of workload '{workload[:80]}'" if workload else "which workload?"
        raise SpecError(what, where="--workload", fix=did_you_mean(workload, list(profiles)))
    profile = profiles[workload or next(iter(profiles))]
    scored = {trial.cell.id for trial in evaluation.plan if not trial.profiling}
    cells = [cell for cell in evaluation.cells.values() if cell.workload.name == profile.workload]
    base = max(cells, key=lambda cell: (cell.id in scored, cell.workload.input_bytes, cell.id))
    note = f"{evaluation.labels[base.id]}, the largest cell that the run scores"
    errors = {}
    with suppress(DataError):  # it was not scored
        scores = run.read_scores()
        times_s = [
            measurement.raw_s["job_s"]
            for measurement in scores.measurements
            if measurement.cell == base.id
        ]
        note += f", measured: {fmean(times_s):.3g} s" if times_s else ""
        for summary in scores.summaries:
            if (summary.workload, summary.quantity, summary.speed) == (
                profile.workload,
                "job_s",
                "raw",
            ):
                errors[summary.model] = summary.value("mape") or 0.0
    return Basis(base, note, profile, evaluation.cells, errors)


def basis_of_profile(profile: Profile, settings: list[str], known: KnownNames) -> Basis:
    """What a *profile* alone knows: the base has the input that is taken out of *settings*."""
    inputs = [setting for setting in settings if setting.startswith("input=")][:1]
    if not inputs:
        fix = "add --set input=SIZE, or name the run"
        raise SpecError("a profile alone has no base cell", where="--set", fix=fix)
    settings.remove(inputs[0])
    cell = Cell(cluster=ClusterSpec(), workload=WorkloadSpec(name=profile.workload, input_bytes=1))
    base = questions(cell, inputs, (), known)[-1][1]
    values = ", ".join(f"{axis} {value}" for axis, value in axis_values(base).items())
    return Basis(base, f"the defaults of an experiment file: {values}", profile)


def asked_cells(base: Cell, settings: Sequence[str], known: KnownNames) -> list[Cell]:
    """
    Cells that *settings* make of *base*: ``KEY=VALUE``, of a list one cell for each value.

    A key is the name of an axis, or as in an experiment file; values, and `SpecError`, as there.
    """
    cluster = base.cluster
    workload = base.workload
    overrides = list[str]()
    if workload.code or cluster.provider == HISTORY:
        kind = own_workload(workload.code) if workload.code else PastJobs
        own = {workload.name: kind.parameters}
        known = replace(known, workloads=[*own], parameters=own)
    names = ("input", "seed", *known.parameters.get(workload.name, ()))
    keys = dict.fromkeys(names, "workloads.0.") | dict.fromkeys(_OF_NODE, "cluster.node.")
    keys["workers"] = "cluster."
    for setting in settings:
        name = setting.partition("=")[0]
        head = keys.get(name, "")
        if "." in name and name.partition(".")[0] not in ("cluster", "configuration", "workloads"):
            of_site = name.startswith("dfs.") or name in cluster.site.keys() - base.configuration
            head = "cluster.site." if of_site else "configuration."
        if not _KEY.fullmatch(head + setting):
            what = f"there is no setting '{name[:80]}'"
            fix = did_you_mean(name, list(keys))
            raise SpecError(what, where=f"--set {setting[:200]}", fix=fix)
        overrides.append(head + setting)
    file = experiment_file(base, "ask", "?")
    text = json.dumps(file)
    cells = []
    for cell in expand(read_experiment(text, "ask", overrides, known=known)):
        changed = {"workers": cell.cluster.workers, "node": cell.cluster.node}
        changed["site"] = cluster.site | cell.cluster.site
        of_cell = cell.workload.model_copy(update={"code": workload.code})
        growth = of_cell.input_bytes / workload.input_bytes
        maps = of_cell.parameters.get("maps")
        if cluster.provider == HISTORY and maps == workload.parameters["maps"]:
            # More input has more splits, of the size that they had.
            more = {"maps": max(1, round(int(maps) * growth))}
            of_cell = of_cell.model_copy(update={"parameters": of_cell.parameters | more})
        changed = {"cluster": cluster.model_copy(update=changed), "workload": of_cell}
        changed["configuration"] = base.configuration | cell.configuration
        cells.append(base.model_copy(update=changed))
    return cells


def experiment_file(cell: Cell, name: str, question: str) -> dict[str, Any]:
    """The experiment of *cell* alone as its file has it, without its provider and properties."""
    cluster = cell.cluster
    workload = cell.workload
    node = {name: getattr(cluster.node, field) for name, field in _OF_NODE.items()}
    rates = {name: f"{node[name]} B/s" for name in ("disk", "network") if node[name]}
    node = {name: value for name, value in (node | rates).items() if value is not None}
    entry = {"name": workload.name, "seed": workload.seed, "input": workload.input_bytes}
    return {
        "schema": 1,
        "name": name,
        "question": question,
        "cluster": {"workers": cluster.workers, "node": node},
        "workloads": [entry | workload.parameters],
    }


def questions(
    base: Cell, settings: Sequence[str], grid: Sequence[str], known: KnownNames
) -> list[Question]:
    """*base*, each of *settings* on top of those before, and on top of all the points of *grid*."""
    requests = [("base", base, "base")]
    for number, setting in enumerate(settings, start=1):
        cells = asked_cells(base, settings[:number], known)
        if len(cells) > 1:
            what = "a setting has one value"
            fix = "vary it: --grid KEY=A,B"
            raise SpecError(what, where=f"--set {setting[:200]}", fix=fix)
        requests.append((f"+ {setting}", cells[0], requests[-1][0]))
    if settings and (reasons := _refusals(requests[-1][1])):
        raise SpecError("; ".join(reasons), where=f"--set {settings[-1][:200]}")
    axes = ["=[".join(axis.split("=", 1)) + "]" for axis in grid]
    points = asked_cells(base, [*settings, *axes], known) if grid else []
    names = varying([requests[-1][1], *points])
    against = requests[-1][0]
    return requests + [(label(point, names), point, against) for point in points]


def answers(
    model_or_name: str | Model, requests: Sequence[Question], basis: Basis
) -> Iterator[dict[str, Any]]:
    """
    Yield what a model says of each question, the base first, as a row of a table.

    `change` is the share by which the job is longer than what it is compared with, `outside` all
    that was not profiled; where not `is_read`, no model is told of the change.  `limits` is the
    longest of `phases`.  What Hadoop would not run is not applicable.
    """
    profile = basis.profile
    cells = [cell for _, cell, _ in requests]
    known = profile if basis.profiled else profile.model_copy(update={"refits": ()})
    profiles = {profile.workload: known}
    inputs = [model_inputs(cell) for cell in cells]
    predictions = predict_cells(model_or_name, cells, profiles, basis.profiled)
    model = model_or_name if isinstance(model_or_name, str) else model_or_name.name
    of_name = MODELS.get(model) if model is model_or_name else None
    predict_many = getattr(of_name, "predict_many", None)
    if predict_many is not None and len(cells) >= MANY:
        with suppress(HarnessError):  # it refuses one cell, and so all: each is asked alone
            bodies = zip(inputs, [*predict_many(profile, inputs)], strict=True)
            predictions = map(predict_cell, repeat(model), cells, repeat(profiles), bodies)
    seen = [_numbers(job.configuration, job, job) for job in profile.jobs]
    earlier = dict[str, tuple[Any, float | None]]()
    for (name, cell, against), of_cell, answer in zip(requests, inputs, predictions, strict=True):
        reasons = _refusals(cell) if earlier else ()  # the base was measured
        prediction = Prediction(model=model, not_applicable=reasons) if reasons else answer
        job_s = prediction.job_s
        ends = prediction.intervals.get("job_s", {}).get("80")
        earlier[name] = of_cell, job_s
        (of_before, before_s) = earlier[against]
        (_, base_s) = earlier["base"]
        outside = [*_outside(_numbers(*of_cell), seen)]
        phases = phases_of(prediction)
        yield {
            "model": model,
            "cell": name,
            "settings": axis_values(cell),
            "job_s": job_s,
            **dict(zip(("low_80_s", "high_80_s"), ends or (None, None), strict=True)),
            "change": job_s / before_s - 1 if job_s and before_s and name != against else None,
            "from_base": job_s / base_s - 1 if job_s and base_s else None,
            "error": basis.errors.get(model),
            "is_read": name == against or of_cell != of_before,
            "range": "outside" if outside else profiled_range(cell, profile),
            "outside": "; ".join(outside),
            "limits": max(phases, key=lambda phase: phases[phase]["job_s"], default=""),
            "phases": phases,
            "not_applicable": "; ".join(prediction.not_applicable),
            "warnings": prediction.warnings,
        }


def _refusals(cell: Cell) -> tuple[str, ...]:
    return tuple(refusals(cell.cluster, effective_configuration(cell), sets_site=False))


def _numbers(configuration: Any, cluster: Any, of_input: Any) -> dict[str, float]:
    """All numbers that models are given of a job, or of a profiled one, by axis or property."""
    size = of_input.input_bytes
    fields = configuration.model_dump().items()
    numbers = {"input bytes": size, "bytes of a split": size / of_input.num_splits}
    numbers |= {"workers": cluster.num_nodes, "map_slots": cluster.map_slots}
    numbers |= {"reduce_slots": cluster.reduce_slots}
    return numbers | {JOB_PROPERTIES.get(name, [name])[0]: value for name, value in fields}


def never_profiled(profile: Profile, cell: Cell) -> list[str]:
    """What of *cell* is beyond that of all jobs of its *profile*, and where these ended."""
    seen = [_numbers(job.configuration, job, job) for job in profile.jobs]
    return [*_outside(_numbers(*model_inputs(cell)), seen)]


def _outside(numbers: Mapping[str, float], seen: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield which of *numbers* are beyond those of all profiled jobs, and where these ended."""
    for name, value in numbers.items() if seen else ():
        low, high = (end(each[name] for each in seen) for end in (min, max))
        if not low * (1 - _ROUNDING) <= value <= high * (1 + _ROUNDING):
            write = format_bytes if "bytes" in name else "{:g}".format
            ends = " to ".join(dict.fromkeys((write(low), write(high))))
            yield f"{name} {write(value)} (profiled: {ends})"


def phases_of(prediction: Prediction) -> dict[str, dict[str, float]]:
    """Seconds in each phase: `task_s` of one task, `job_s` of all waves of all jobs; the frame."""
    times_s = prediction.phases
    phases = dict[str, dict[str, float]]()
    if any(name.partition("_")[0] not in _OF_MAPS | _OF_REDUCES for name in times_s):
        times_s = prediction.measurable  # not of tasks: those that a job history shows
    for name, task_s in times_s.items():
        of_maps = name.partition("_")[0] in _OF_MAPS
        waves = (prediction.map_waves if of_maps else prediction.reduce_waves) or 0.0
        phases[name] = {"task_s": task_s, "job_s": task_s * waves * prediction.jobs}
    if prediction.frame_s is not None:
        phases["frame_s"] = {"job_s": prediction.frame_s * prediction.jobs}
    return phases
