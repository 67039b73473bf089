"""What a setting would do, without a job: cells that nobody measured, as models predict them."""

from __future__ import annotations

import json
import math
import re

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

from harness.base.documents.wording import count, listing, percent, seconds
from harness.base.errors import HarnessError, SpecError
from harness.base.hadoop.properties import JOB_PROPERTIES
from harness.base.hadoop.slots import refusals
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, ProfiledJob
from harness.base.records.trial import Cell, ClusterSpec, NodeSpec, WorkloadSpec
from harness.base.text import did_you_mean
from harness.base.units import format_bytes
from harness.clusters.workloads.resolved import ModelInputs, ResolvedCell
from harness.core.evaluate.basis import Basis
from harness.core.evaluate.judge import Judge
from harness.core.evaluate.predict import predict_cell, predict_cells, profiled_range
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.file import KnownNames, read_experiment
from harness.core.experiment.grid import axis_values, expand, label, varying
from harness.models import MODELS, Model, find, reads_settings
from harness.tuning.limits import deciding_limits, decisions, lifted

MANY = 50  # cells from which on a model that can is asked of all at once, without intervals
_KEY = re.compile(r"((configuration|cluster\.(site|node)|workloads\.[^.]+)\.|cluster\.workers=).*")
_OF_NODE = {re.sub("_bytes(_per_s)?$", "", field): field for field in NodeSpec.model_fields}
_OF_MAPS = {"map", "collect", "spill", "last"}
_OF_REDUCES = {"shuffle", "sort", "reduce"}
SPLIT_SIZE = "bytes of a split"  # a number that models are given, which is no property
_ROUNDING = 0.01  # inputs are whole records: a little less than was asked for


class Question(NamedTuple):
    """A *cell* to ask models about, its *name*, and the name of the one it is compared with."""

    name: str
    cell: ResolvedCell
    against: str


def basis_of_profile(profile: Profile, settings: list[str], names: KnownNames) -> Basis:
    """What a *profile* alone knows: the base has the input that is taken out of *settings*."""
    inputs = [setting for setting in settings if setting.startswith("input=")][:1]
    if not inputs:
        fix = "add --setting input=SIZE, or name the run"
        raise SpecError("a profile alone has no base cell", where="--setting", fix=fix)
    settings.remove(inputs[0])
    cell = Cell(cluster=ClusterSpec(), workload=WorkloadSpec(name=profile.workload, input_bytes=1))
    base = questions(resolve_cell(cell), inputs, (), names)[-1].cell
    values = ", ".join(f"{axis} {value}" for axis, value in axis_values(base.cell).items())
    return Basis(base, f"the defaults of an experiment file: {values}", profile)


def asked_cells(
    base: ResolvedCell, settings: Sequence[str], names: KnownNames
) -> list[ResolvedCell]:
    """
    Cells that *settings* make of *base*: ``KEY=VALUE``, of a list one cell for each value.

    A key is the name of an axis, or as in an experiment file; values, and `SpecError`, as there.
    """
    if not base.is_named_in_files:  # its arguments are its own, whatever is named alike
        name = base.spec.name
        names = replace(names, workloads=[name], parameters={name: base.workload.parameters})
    overrides = [whole_override(base, setting, names) for setting in settings]
    text = json.dumps(experiment_file(base.cell, "ask", "?"))
    experiment = read_experiment(text, "ask", overrides, known=names)
    return [with_settings(base, asked) for asked in expand(experiment)]


def whole_override(base: ResolvedCell, setting: str, names: KnownNames) -> str:
    """*setting* with the whole key that it has in an experiment file."""
    parameters = ("input", "seed", *names.parameters.get(base.spec.name, ()))
    heads = dict.fromkeys(parameters, "workloads.0.") | dict.fromkeys(_OF_NODE, "cluster.node.")
    heads["workers"] = "cluster."
    name = setting.partition("=")[0]
    head = heads.get(name, "")
    part = name.partition(".")[0]
    if "." in name and part not in ("cluster", "configuration", "workloads"):
        site_alone = base.cell.cluster.site.keys() - base.cell.configuration
        is_of_site = name.startswith("dfs.") or name in site_alone
        head = "cluster.site." if is_of_site else "configuration."
    if not _KEY.fullmatch(head + setting):
        what = f"there is no setting '{name[:80]}'"
        raise SpecError(
            what, where=f"--setting {setting[:200]}", fix=did_you_mean(name, list(heads))
        )
    return head + setting


def with_settings(base: ResolvedCell, asked: Cell) -> ResolvedCell:
    """*base* with what may be asked of it as in *asked*, and what follows from that."""
    cluster = base.cell.cluster
    cluster_settings = {
        "workers": asked.cluster.workers,
        "node": asked.cluster.node,
        "site": cluster.site | asked.cluster.site,
    }
    spec = asked.workload.model_copy(update={"code": base.spec.code})
    changes = {
        "cluster": cluster.model_copy(update=cluster_settings),
        "workload": base.workload.resized(spec, base.spec),
        "configuration": base.cell.configuration | asked.configuration,
    }
    return resolve_cell(base.cell.model_copy(update=changes))


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
    base: ResolvedCell, settings: Sequence[str], grid: Sequence[str], names: KnownNames
) -> list[Question]:
    """*base*, each of *settings* on top of those before, and on top of all the points of *grid*."""
    requests = [Question("base", base, "base")]
    for number, setting in enumerate(settings, start=1):
        cells = asked_cells(base, settings[:number], names)
        if len(cells) > 1:
            what = "a setting has one value"
            fix = "vary it: --grid KEY=A,B"
            raise SpecError(what, where=f"--setting {setting[:200]}", fix=fix)
        requests.append(Question(f"+ {setting}", cells[0], requests[-1].name))
    if settings and (reasons := _refusals(requests[-1].cell)):
        raise SpecError("; ".join(reasons), where=f"--setting {settings[-1][:200]}")
    axes = ["=[".join(axis.split("=", 1)) + "]" for axis in grid]
    points = asked_cells(base, [*settings, *axes], names) if grid else []
    varied = varying(cell.cell for cell in [requests[-1].cell, *points])
    against = requests[-1].name
    return requests + [Question(label(point.cell, varied), point, against) for point in points]


def answers(
    model_or_name: str | Model, requests: Sequence[Question], basis: Basis
) -> Iterator[dict[str, Any]]:
    """
    Yield what a model says of each question, the base first, as a row of a table.

    `change` is the share by which the job is longer than what it is compared with, `within_error`
    whether the model's error is as large, `outside` all that was not profiled; where not `is_read`,
    the model is not told of the change, or does not look at it.  `decides` is what decides how many
    tasks run at once; where that is a limit of the job itself, it is its `job_limit`,
    `without_limits_s` the job without any, and `without_limits` the share by which that is longer.
    `limits` is the longest of `phases`.  What Hadoop would not run is not applicable.
    """
    model = model_or_name if isinstance(model_or_name, str) else model_or_name.name
    profile = basis.profile
    profiled_numbers = [_numbers_of_job(job) for job in profile.jobs]
    judge = basis.judge(model)
    earlier = dict[str, tuple[ModelInputs, float | None]]()
    predictions = predictions_of(model_or_name, [request.cell for request in requests], basis)
    unlimited_s = _seconds_without_limits(model_or_name, requests, basis)
    for (name, cell, against), answer in zip(requests, predictions, strict=True):
        reasons = _refusals(cell) if earlier else ()  # the base was measured
        prediction = Prediction(model=model, not_applicable=reasons) if reasons else answer
        job_s = prediction.job_s
        earlier[name] = _read_inputs(model, cell), job_s
        inputs_before, before_s = earlier[against]
        _, base_s = earlier["base"]
        low_s, high_s = prediction.intervals.get("job_s", {}).get("80") or (None, None)
        outside = [*_outside(_numbers(*cell.model_inputs), profiled_numbers)]
        phases = phases_of(prediction)
        change = None if name == against else _change(job_s, before_s)
        without_limits_s = None if reasons else unlimited_s.get(name)
        yield {
            "model": model,
            "cell": name,
            "settings": axis_values(cell.cell),
            "job_s": job_s,
            "low_80_s": low_s,
            "high_80_s": high_s,
            "change": change,
            "from_base": _change(job_s, base_s),
            "error": judge.error,
            "within_error": judge.is_within(change),
            "is_read": name == against or _read_inputs(model, cell) != inputs_before,
            "range": "outside" if outside else profiled_range(cell, profile),
            "outside": "; ".join(outside),
            "decides": "; ".join(decision.text for decision in decisions(cell)),
            "job_limit": "; ".join(decision.text for decision in deciding_limits(cell)),
            "without_limits_s": without_limits_s,
            "without_limits": _change(without_limits_s, before_s),
            "limits": max(phases, key=lambda phase: phases[phase]["job_s"], default=""),
            "phases": phases,
            "not_applicable": "; ".join(prediction.not_applicable),
            "warnings": prediction.warnings,
        }


def _read_inputs(model: str, cell: ResolvedCell) -> ModelInputs:
    """What of the inputs of *cell* a model looks at: none of ours knows limits of workers."""
    configuration, cluster, job_input = cell.model_inputs
    if model in MODELS:
        cluster = cluster.model_copy(update={"nodes": ()})
    return configuration, cluster, job_input


def _seconds_without_limits(
    model_or_name: str | Model, requests: Sequence[Question], basis: Basis
) -> dict[str, float | None]:
    """Job times of those *requests* in which a limit of the job itself decides, by their names."""
    limited = [request for request in requests if deciding_limits(request.cell)]
    cells = [lifted(request.cell) for request in limited]
    predictions = predictions_of(model_or_name, cells, basis) if cells else ()
    return {
        request.name: prediction.job_s
        for request, prediction in zip(limited, predictions, strict=True)
    }


class Answer(NamedTuple):
    """What all rows say in one sentence, and the *judge*, the nearest of the models that answer."""

    says: str
    judge: Judge | None

    def document(self) -> dict[str, Any]:
        """The sentence and the judge as JSON has them."""
        judge = self.judge or Judge("")
        return {"says": self.says, **judge.document()}


def answer_of(rows: Sequence[Mapping[str, Any]], settings: Sequence[str], basis: Basis) -> Answer:
    """
    What *rows* say by the nearest of the models that answer, and how far off that was.

    Of several points of a grid it is about the shortest; *settings* are those below which they lie.
    """
    models = dict.fromkeys(row["model"] for row in rows if row["job_s"] is not None)
    if not models:
        return Answer("no model that was asked has an answer", None)
    readers = [*filter(reads_settings, models)] or models
    judge = min(map(basis.judge, readers), key=lambda judge: judge.error or math.inf)
    judged = [row for row in rows if row["model"] == judge.model]
    answered = [row for row in judged if row["job_s"] is not None]
    points = [row for row in answered if row["cell"] != "base" and row["cell"][0] != "+"]
    last = answered[-1]
    subject = f"with {listing(settings)}" if settings else "as it ran"
    if points:
        last = min(points, key=lambda row: row["job_s"])
        subject = f"shortest of {count(len(points), 'point')}, {last['cell']}:"
    text = f"{subject} the job takes {seconds(last['job_s'])} by {judge.model}"
    change = None if last["cell"] == "base" else last["from_base"]
    text += _against_base(change, judge) + _without_limits(last, judged[0], judge)
    return Answer(f"{text}; {judge.clause}", judge)


def _against_base(change: float | None, judge: Judge) -> str:
    """By which share a job is longer than the base; marked where the *judge* is as far off."""
    if change is None:
        return ""
    text = f", {percent(change, signed=True)} against the base"
    return f"{text}, which may be none" if change and judge.is_within(change) else text


def _without_limits(row: Mapping[str, Any], base: Mapping[str, Any], judge: Judge) -> str:
    """Which limit of the job decides in *row*, and the number without it; else nothing."""
    if row["without_limits_s"] is None:
        return ""
    them = "them" if "; " in row["job_limit"] else "it"
    text = f"; {row['job_limit']}; without {them} {seconds(row['without_limits_s'])}"
    text += _against_base(_change(row["without_limits_s"], base["job_s"]), judge)
    if row["cell"] != "base" and base["without_limits"] is not None:
        text += f" (the base without {them}: {percent(base['without_limits'], signed=True)})"
    return text


def predictions_of(
    model_or_name: str | Model, cells: Sequence[ResolvedCell], basis: Basis
) -> Iterable[Prediction]:
    """Predictions of all *cells*: of many by a model that can say all bodies at once."""
    profile = basis.profile
    if not basis.profiled:
        profile = profile.model_copy(update={"refits": ()})
    profiles = {profile.workload: profile}
    inputs = [cell.model_inputs for cell in cells]
    registered = find(model_or_name) if isinstance(model_or_name, str) else None
    predict_many = getattr(registered, "predict_many", None)
    if predict_many is not None and len(cells) >= MANY:
        with suppress(HarnessError):  # it refuses one cell, and so all: each is asked alone
            bodies = [*predict_many(basis.profile, inputs)]
            return map(predict_cell, repeat(model_or_name), cells, repeat(profiles), bodies)
    return predict_cells(model_or_name, cells, profiles, basis.profiled)


def _change(job_s: float | None, before_s: float | None) -> float | None:
    """By which share a job of *job_s* is longer than one of *before_s*; `None`: one is unknown."""
    return job_s / before_s - 1 if job_s and before_s else None


def _refusals(cell: ResolvedCell) -> tuple[str, ...]:
    return tuple(refusals(cell.cell.cluster, cell.configuration, sets_site=False))


def _numbers(configuration: JobConfig, cluster: Cluster, job_input: JobInput) -> dict[str, float]:
    """All numbers that models are given of a job, by axis or property."""
    return _named_numbers(configuration, cluster, job_input.input_bytes, job_input.num_splits)


def _numbers_of_job(job: ProfiledJob) -> dict[str, float]:
    """The same numbers of a profiled *job*."""
    return _named_numbers(job.configuration, job, job.input_bytes, job.num_splits)


def _named_numbers(
    configuration: JobConfig, cluster: Cluster | ProfiledJob, input_bytes: float, splits: int
) -> dict[str, float]:
    numbers = {
        "input bytes": input_bytes,
        SPLIT_SIZE: input_bytes / splits,
        "workers": cluster.num_nodes,
        "map_slots": cluster.map_slots,
        "reduce_slots": cluster.reduce_slots,
    }
    for field, value in configuration.model_dump().items():
        numbers[JOB_PROPERTIES.get(field, [field])[0]] = value
    return numbers


def never_profiled(profile: Profile, cell: ResolvedCell) -> list[str]:
    """What of *cell* is beyond that of all jobs of its *profile*, and where these ended."""
    profiled_numbers = [_numbers_of_job(job) for job in profile.jobs]
    return [*_outside(_numbers(*cell.model_inputs), profiled_numbers)]


def profiled_ends(profile: Profile, cell: ResolvedCell) -> dict[str, str]:
    """By the name of what is beyond all jobs of *profile* in *cell*, what these had."""
    profiled_numbers = [_numbers_of_job(job) for job in profile.jobs]
    numbers = _numbers(*cell.model_inputs)
    return {name: ends for name, _, ends in _beyond(numbers, profiled_numbers)}


def _outside(
    numbers: Mapping[str, float], profiled: Sequence[Mapping[str, float]]
) -> Iterator[str]:
    """Yield which of *numbers* are beyond those of all profiled jobs, and where these ended."""
    for name, value, ends in _beyond(numbers, profiled):
        yield f"{name} {value} (profiled: {ends})"


def _beyond(
    numbers: Mapping[str, float], profiled: Sequence[Mapping[str, float]]
) -> Iterator[tuple[str, str, str]]:
    """Yield each of *numbers* beyond those of all profiled jobs: its name, itself, their ends."""
    if not profiled:
        return
    for name, value in numbers.items():
        low = min(job_numbers[name] for job_numbers in profiled)
        high = max(job_numbers[name] for job_numbers in profiled)
        if not low * (1 - _ROUNDING) <= value <= high * (1 + _ROUNDING):
            write = format_bytes if "bytes" in name else "{:g}".format
            yield name, write(value), " to ".join(dict.fromkeys((write(low), write(high))))


def phases_of(prediction: Prediction) -> dict[str, dict[str, float]]:
    """Seconds in each phase: `task_s` of one task, `job_s` of all waves of all jobs; the frame."""
    times_s = prediction.phases
    phases = dict[str, dict[str, float]]()
    if any(name.partition("_")[0] not in _OF_MAPS | _OF_REDUCES for name in times_s):
        times_s = prediction.measurable  # not of tasks: those that a job history shows
    for name, task_s in times_s.items():
        is_of_maps = name.partition("_")[0] in _OF_MAPS
        waves = (prediction.map_waves if is_of_maps else prediction.reduce_waves) or 0.0
        phases[name] = {"task_s": task_s, "job_s": task_s * waves * prediction.jobs}
    if prediction.frame_s is not None:
        phases["frame_s"] = {"job_s": prediction.frame_s * prediction.jobs}
    return phases
