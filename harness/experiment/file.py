"""
Experiment files: text -> `Experiment`, or one `SpecError` that says all that is wrong.

Every problem has its place in the file, or its override.
"""

from __future__ import annotations

import json
import re

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from harness.errors import HarnessError, SpecError
from harness.experiment.document import (
    PROPERTIES,
    Document,
    KeyPath,
    Place,
    Scalar,
    dotted,
    has_unit,
)
from harness.experiment.grid import axis_values, expand, is_profiling, meaning, readable
from harness.experiment.model import (
    AUTO_GPUS,
    NAME,
    ClusterAxes,
    Experiment,
    Node,
    WorkloadAxes,
    argument_value,
)
from harness.hadoop.secrets import PUBLIC, SENSITIVE_KEYS, Secrets
from harness.records.trial import Code
from harness.text import did_you_mean, excerpt
from harness.units import MIB, parse_bytes

FORMAT = 1
MOST_HOSTS = 200
_PROFILE_ON = ("predict", "profile_on")
# A slash stands in the names of YARN's resources: mapreduce.map.resource.yarn.io/gpu.
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}(/[A-Za-z][A-Za-z0-9_-]{0,99})?", re.ASCII)
_WORKER = re.compile(r"worker[1-9][0-9]{0,5}", re.ASCII)
_NAME_OF_SIZE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Complaint = tuple[str, str]  # what is wrong, and what to write

# A class of the user's own: its name and code; of a workload its parameters and names of sizes.
Own = tuple[str, Code, Collection[str], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class KnownNames:
    """
    Names that an experiment may use; without an entry in *parameters*, a workload takes none.

    *refusal* says what is wrong with the value of a workload's argument, and what to write;
    *scales* are each workload's names of sizes.  *objection* says what is wrong with the name of a
    property of Hadoop, and what to write.  *secrets* conceals values.  *gpus* counts the devices of
    each of so many nodes of a provider, for ``gpus: auto``.  *extra_fields* are keys of ``cluster``
    that a provider takes and others refuse, *required_fields* those that it insists on.
    *own* reads a model or a workload that is given by its path, in the file or in an override.
    """

    workloads: Collection[str]
    models: Collection[str]
    providers: Collection[str]
    parameters: Mapping[str, Collection[str]] = field(default_factory=dict)
    scales: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    refusal: Callable[[str, str, str | int | float], Complaint | None] = lambda *_: None
    objection: Callable[[str], Complaint | None] = lambda _: None
    secrets: Secrets | None = None
    gpus: Callable[[str, int], int] = lambda *_: 0
    extra_fields: Mapping[str, Collection[str]] = field(default_factory=dict)
    required_fields: Mapping[str, Collection[str]] = field(default_factory=dict)
    own: Callable[[str, str, bool], Own] | None = None  # noun, path, whether in an override


def read_experiment(
    text: str,
    source: str,
    overrides: Sequence[str] = (),
    *,
    known: KnownNames | None = None,
    narrows: bool = True,
) -> Experiment:
    """
    Read the experiment in *text*; *source* names its file in errors.

    *overrides* are ``a.b=VALUE`` as given to ``--set``.  Names of workloads, models and providers
    are checked where *known* is given.  Where overrides may not narrow the grid (*narrows*), each
    value of `profile_on` has to be there.
    """
    document = Document(text, source)
    if not isinstance(document.data, dict):
        what = "the file is not a mapping of keys to values"
        fix = "start it with 'schema: 1'; experiments/demo.yaml shows the rest"
        raise SpecError(what, where=str(document.place(())), fix=fix)
    for override in overrides:
        document.override(override)
    written = document.data.get("schema")
    if written is None:
        fix = f"add schema: {FORMAT}, the version of this format"
        document.problem((), "the experiment lacks 'schema'", fix)
    elif written != str(FORMAT):
        # Whatever else seems wrong with a file of another format would mislead.
        what = f"schema {excerpt(written)} is not one that this harness reads; it reads {FORMAT}"
        fix = f"use the harness that this file was written for, or write schema {FORMAT}"
        raise SpecError(what, where=str(document.place(("schema",))), fix=fix)
    if known:
        if known.secrets:
            _conceal(document, known.secrets)
        known = _read_own(document, known)
        _resolve_sizes(document, known.scales)
    _check_names(document, known)
    contents = {key: node for key, node in document.data.items() if key != "schema"}
    context = {"parameters": known.parameters if known else None}
    try:
        experiment = Experiment.model_validate(
            contents, context=context, by_alias=True, by_name=False
        )
    except ValidationError as error:
        _note_errors(error, document, known)
        document.raise_problems()
        raise
    document.raise_problems()
    cluster = experiment.cluster
    if AUTO_GPUS in cluster.node.gpus:
        # All clusters of a grid are given the same, or their trials would not compare.
        count = known.gpus(cluster.provider, max(cluster.workers)) if known else 0
        gpus = tuple(count if number == AUTO_GPUS else number for number in cluster.node.gpus)
        node = cluster.node.model_copy(update={"gpus": gpus, "gpus_found": True})
        cluster = cluster.model_copy(update={"node": node})
        experiment = experiment.model_copy(update={"cluster": cluster})
    _check_cluster(cluster, document, known)
    _check_grid(experiment, document, narrowed=narrows and bool(overrides))
    document.raise_problems()
    return experiment


def concealed_text(text: str, source: str, secrets: Secrets) -> str:
    """The experiment file *text* as it may be stored: digests in the place of secrets."""
    document = Document(text, source)
    digests = _conceal(document, secrets)
    for value_path in sorted(digests, key=document.spans.__getitem__, reverse=True):
        start, end = document.spans[value_path]
        line_end = text[start:end][len(text[start:end].rstrip("\n")) :]  # of a block of lines
        text = text[:start] + digests[value_path] + line_end + text[end:]
    return secrets.clean(text)


def _conceal(document: Document, secrets: Secrets) -> dict[KeyPath, str]:
    """Put digests in the place of secrets, and return them by path; note those in sight of all."""
    properties = [
        (path, name, scalar)
        for head in PROPERTIES
        for name in document.mapping(*head)
        for path, scalar in document.scalars((*head, name))
    ]
    digests: dict[KeyPath, str] = {}
    for value_path, name, scalar in sorted(properties, key=lambda one: one[1] != SENSITIVE_KEYS):
        try:
            if name == SENSITIVE_KEYS:
                secrets.add_keys(scalar)
            value = secrets.resolve(scalar)
        except SpecError as error:
            document.problem(value_path, f"{dotted(value_path)}: {error.what}", error.fix)
            continue
        concealed = secrets.conceal(name, value) if value == scalar else secrets.hide(value)
        if concealed != scalar:
            digests[value_path] = concealed
    for value_path, _, scalar in properties:
        if value_path not in digests and secrets.clean(scalar) != scalar:
            digests[value_path] = secrets.hide(scalar)  # a secret is a part of it
    for key_path in list(document.places):
        content = "" if key_path in digests else document.at(key_path)
        texts = [text for text in (content, *key_path[-1:]) if isinstance(text, str)]
        shown = any(secrets.clean(text) != text for text in texts)
        if shown or (key_path in digests and not PUBLIC.isdisjoint(key_path)):
            fix = "leave it out: everybody who sees the cluster or its results sees this text"
            document.problem(key_path, f"{dotted(key_path)} holds the value of a secret", fix)
    for value_path, concealed in digests.items():
        document.put(value_path, Scalar(concealed, quoted=True))
    return digests


def places(text: str, source: str) -> dict[str, str]:
    """
    Where each key of an experiment file is, as ``file:line:column``, by its name alone.

    A workload's entry is under ``workloads.NAME``; a *text* that cannot be read has no places.
    """
    try:
        document = Document(text, source)
    except SpecError:
        return {}
    places_by_key = {str(path[-1]): str(place) for path, place in document.key_places.items()}
    for entry_path, workload, _ in document.workloads() if isinstance(document.data, dict) else ():
        places_by_key[f"workloads.{workload}"] = str(document.place(entry_path))
    return places_by_key


def _read_own(document: Document, known: KnownNames) -> KnownNames:
    """Put names in the place of paths of models and workloads, with their code beside them."""
    parts = [("models", path) for path, _ in document.scalars(("predict", "models"))]
    parts += [("workloads", (*path, "name")) for path, _, _ in document.workloads()]
    codes: dict[tuple[str, str], Code | None] = {("models", name): None for name in known.models}
    codes |= {("workloads", name): None for name in known.workloads}
    for kind, value_path in parts:
        path_text = document.at(value_path)
        if ".py:" not in path_text or known.own is None:
            continue
        try:
            own = known.own(kind, path_text, document.place(value_path).line == 0)
            name, code, parameters, scales = own
            if codes.setdefault((kind, name), code) != code:
                fix = 'write name = "..." into the class, or call it otherwise'
                raise SpecError(f"another of the {kind} is called '{name}'", fix=fix)
        except HarnessError as error:
            document.problem(value_path, f"{dotted(value_path)}: {error.what}", error.fix)
            continue
        document.put(value_path, Scalar(name, written=path_text))
        around = document.mapping(*value_path[: 1 if kind == "models" else 2])
        around["(code)"] = {**around.get("(code)", {}), name: code} if kind == "models" else code
        known = replace(
            known,
            models=[name for kind, name in codes if kind == "models"],
            workloads=[name for kind, name in codes if kind == "workloads"],
            parameters={**known.parameters, name: parameters},
            scales={**known.scales, name: scales},
        )
    return known


def _note_errors(error: ValidationError, document: Document, known: KnownNames | None) -> None:
    """Note what *error* says of the file, but where a problem is noted already."""
    earlier = frozenset(document.reported)
    for each in error.errors(include_url=False):
        kind = each["type"]
        context = each.get("ctx", {})
        location = each["loc"]
        # Parts that the file does not have: the index of a single value, branches of a model.
        key_path: KeyPath = ()
        for part in location:
            around = document.at(key_path)
            if (isinstance(around, dict) and part in around) or (
                isinstance(around, list) and isinstance(part, int)
            ):
                key_path = (*key_path, part)
        if key_path in earlier and kind not in ("missing", "extra_forbidden", "model_type"):
            continue
        item = key_path
        is_key = False
        fix = "correct this value"
        name = dotted(key_path)
        model = _model_at(key_path[:-1] if kind == "extra_forbidden" else key_path)
        keys = {
            str(info.validation_alias or field): info.description or ""
            for field, info in model.model_fields.items()
            if not str(info.validation_alias).startswith("(")  # not a key of the file
        }
        if kind == "missing":
            missing = str(location[-1])
            problem = f"{name or 'the experiment'} lacks '{missing}'"
            fix = f"add {missing}: {keys[missing]}"
        elif kind == "extra_forbidden":
            known_names = list(keys)
            if model is WorkloadAxes and known:
                workload = document.mapping(*key_path[:-1]).get("name", "")
                known_names += known.parameters.get(str(workload), ())
            parent = dotted(key_path[:-1]) or "the experiment"
            problem = f"unknown key '{excerpt(key_path[-1])}' in {parent}"
            fix = did_you_mean(str(key_path[-1]), known_names)
            is_key = True
            inner: dict[str, type[BaseModel]] = {"cluster": ClusterAxes, "cluster.node": Node}
            for place, record in inner.items():
                names_there = {str(info.validation_alias) for info in record.model_fields.values()}
                if str(key_path[-1]) in names_there:
                    fix = f"it stands in {place}: write {place}.{key_path[-1]}"
        elif kind in ("model_type", "dict_type"):
            names = f"; names are {', '.join(keys)}" if kind == "model_type" else ""
            problem = f"{name} is not a mapping"
            fix = f"write NAME: VALUE lines{names}"
        elif kind in ("value_error", "given_twice"):
            text = str(context["error"]) if kind == "value_error" else each["msg"]
            # The errors of `harness.units` say what to write after a colon.
            problem, _, advice = re.sub(r": (?=write )", "; ", text, count=1).partition("; ")
            colon = " " if problem.startswith(("is ", "limits ")) else ": "
            problem = f"{name}{colon}{problem}"
            fix = advice or fix
            item = (*key_path, context["index"]) if kind == "given_twice" else key_path
        else:  # a bound of a record, beyond those of the file
            problem = f"{name}: {excerpt(each['msg'].lower())}"
        document.problem(item, problem, fix, key=is_key)


def _model_at(key_path: KeyPath) -> type[BaseModel]:
    """Give the model of the mapping at *key_path*, or around it."""
    model: type[BaseModel] = Experiment
    for part in key_path:
        for name, info in model.model_fields.items():
            if part in (name, info.validation_alias):
                annotations: list[Any] = [info.annotation]
                for annotation in annotations:  # which grows meanwhile
                    annotations += get_args(annotation)
                    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                        model = annotation
                break
    return model


def _check_names(document: Document, known: KnownNames | None) -> None:
    """Note names that there are not, bad arguments of workloads, and sizes for numbers of MiB."""
    for head in PROPERTIES:
        for name in document.mapping(*head):
            problem = ""
            fix = "write a name such as mapreduce.job.reduces"
            if _PROPERTY.fullmatch(name) is None:
                problem = f"'{excerpt(name)}' is not the name of a property"
            elif known and head[0] != "predict":
                problem, fix = known.objection(name) or ("", "")
            if problem:
                document.problem((*head, name), f"{dotted(head)}: {problem}", fix, key=True)
            for value_path, scalar in document.scalars((*head, name)):
                if name.endswith((".mb", "-mb")) and not scalar.quoted and has_unit(scalar):
                    problem = f"{dotted(value_path)}: '{excerpt(scalar)}' for a number of MiB"
                    mebibytes = max(1, round(parse_bytes(scalar) / MIB))
                    document.problem(value_path, problem, f"write {mebibytes}")
    for name in document.mapping("cluster", "nodes"):
        if _WORKER.fullmatch(name) is None:
            problem = f"cluster.nodes: '{excerpt(name)}' is not the name of a worker"
            fix = "workers are called worker1, worker2, ..."
            document.problem(("cluster", "nodes", name), problem, fix, key=True)
    if not known:
        return
    named_parts: list[tuple[KeyPath, str, Collection[str]]] = [
        (("cluster", "provider"), "provider", known.providers),
        (("predict", "models"), "model", known.models),
    ]
    for entry_path, workload, entry in document.workloads():
        named_parts.append(((*entry_path, "name"), "workload", known.workloads))
        for key in entry.keys() - {"name", "input", "seed"}:
            for value_path, scalar in document.scalars((*entry_path, key)):
                with suppress(ValueError):  # the model refuses what is not a value of an argument
                    value = argument_value(scalar)
                    if complaint := known.refusal(workload, key, value):
                        document.problem(value_path, *complaint)
    for named_path, noun, names in named_parts:
        for value_path, scalar in document.scalars(named_path):
            if NAME.fullmatch(scalar) and scalar not in names:
                problem = f"{dotted(value_path)}: there is no {noun} '{scalar}'"
                document.problem(value_path, problem, did_you_mean(scalar, list(names)))


def cluster_text(text: str, source: str) -> str:
    """The cluster of the experiment in *text*, to be written into another one."""
    data = Document(text, source).data
    return json.dumps(data.get("cluster", {}) if isinstance(data, dict) else {})


def _resolve_sizes(document: Document, scales: Mapping[str, Mapping[str, int]]) -> None:
    """
    Put bytes in the place of names of sizes; *scales* has those of each workload.

    In `profile_on` a name means the bytes of every workload of the file that has it.
    """
    used_scales = []
    for entry_path, workload, entry in document.workloads():
        if workload not in scales or "input" not in entry:
            continue
        scale = scales[workload]
        input_path = (*entry_path, "input")
        used_scales.append(scale)
        for value_path, scalar in document.scalars(input_path):
            if scalar in scale:
                document.put(value_path, Scalar(str(scale[scalar]), written=scalar))
            elif _NAME_OF_SIZE.fullmatch(scalar):
                problem = f"{dotted(input_path)}: {workload} has no size called '{scalar}'"
                document.problem(value_path, excerpt(problem, 200), _size_fix(scalar, scale))
    chosen_path = ("predict", "profile_on", "input")
    resolved: dict[str, tuple[Place, Scalar]] = {}
    for value_path, scalar in document.scalars(chosen_path):
        place = document.place(value_path)
        sizes = sorted({scale[scalar] for scale in used_scales if scalar in scale})
        for size in map(str, sizes):
            resolved[size] = place, Scalar(size, written=scalar)
        if not sizes:
            resolved[f"{value_path} {scalar}"] = place, scalar
            if _NAME_OF_SIZE.fullmatch(scalar):
                problem = f"no workload here has a size called '{excerpt(scalar)}'"
                names = dict.fromkeys(name for scale in used_scales for name in scale)
                fix = _size_fix(scalar, names)
                document.problem(value_path, f"predict.profile_on: {problem}", fix)
    if resolved:
        document.put(chosen_path, [scalar for _, scalar in resolved.values()])
        for index, (place, _) in enumerate(resolved.values()):
            document.places[*chosen_path, index] = place


def _size_fix(name: str, known: Collection[str]) -> str:
    if not known:
        return "write a size such as 32 MiB"
    return f"{did_you_mean(name, list(known))} (or a size such as 32 MiB)"


def _check_cluster(cluster: ClusterAxes, document: Document, known: KnownNames | None) -> None:
    """Note keys that the provider needs or refuses, wrong hosts, and workers that are not there."""
    given = document.mapping("cluster")
    provider = cluster.provider
    count = len(cluster.hosts)
    if known:
        for key in sorted(set(known.required_fields.get(provider, ())) - given.keys()):
            example = "[MASTER, WORKER, ...]" if key == "hosts" else "..."
            problem = f"provider {provider} needs cluster.{key}"
            document.problem(("cluster",), problem, f"add {key}: {example}")
        extra = {key for fields in known.extra_fields.values() for key in fields}
        for key in sorted(given.keys() & extra - set(known.extra_fields.get(provider, ()))):
            takers = [name for name, fields in known.extra_fields.items() if key in fields]
            problem = f"provider {provider} does not take cluster.{key}"
            fix = f"write provider: {' or '.join(takers)}, or remove the line"
            document.problem(("cluster", key), problem, fix, key=True)
    if count and not 2 <= count <= MOST_HOSTS:
        problem = f"{count} hosts are not 2 to {MOST_HOSTS}"
        fix = "name a master and at least one worker"
        document.problem(("cluster", "hosts"), problem, fix, key=True)
    elif count and cluster.workers != (count - 1,):
        written = ", ".join(map(str, cluster.workers))
        problem = f"{count} hosts are a master and {count - 1} workers, not {written}"
        document.problem(("cluster", "workers"), problem, f"write workers: {count - 1}", key=True)
    fewest = min(cluster.workers)
    workers = [f"worker{number}" for number in range(1, fewest + 1)]
    for name in cluster.nodes:
        if name not in workers:
            problem = f"cluster.nodes: there is no '{name}' in a cluster of {fewest} workers"
            fix = excerpt(did_you_mean(name, workers))
            document.problem(("cluster", "nodes", name), problem, fix, key=True)


def _check_grid(experiment: Experiment, document: Document, *, narrowed: bool) -> None:
    """
    Note what is wrong with the grid, and what `profile_on` names and the grid does not have.

    Where overrides *narrowed* the grid, it is enough that one of an axis' values is left.
    """
    try:
        cells = expand(experiment)
    except SpecError as error:
        document.problem((), error.what, error.fix)
        return
    if not document.mapping("predict"):
        return
    predict = experiment.predict
    if not predict.profile_on and not predict.source:
        fix = "write profile_on, the cells that feed the profiles; or from, a run that has some"
        document.problem(("predict",), "predict lacks 'profile_on'", fix)
    if len(predict.hardware) not in ((0, 2) if predict.source else (0,)):
        fix = "write hardware: [A, B], the machine of the run that from names, and this one"
        document.problem(("predict",), "predict.hardware is two files, and needs from", fix)
    axes: dict[str, dict[str, None]] = {}  # values as text, in the order of the grid
    for cell in cells:
        for axis, value in axis_values(cell).items():
            axes.setdefault(axis, {})[_readable(axis, value)] = None
    for axis, values in experiment.predict.profile_on.items():
        key_path = (*_PROFILE_ON, axis)
        if axis not in axes:
            problem = f"predict.profile_on: the grid has no axis '{excerpt(axis)}'"
            document.problem(key_path, problem, did_you_mean(axis, sorted(axes)), key=True)
            continue
        existing = {meaning(value) for value in axes[axis]}
        lacking = [value for value in values if meaning(value) not in existing]
        if lacking and not (narrowed and len(lacking) < len(values)):
            missing = ", ".join(_readable(axis, value) for value in lacking)
            problem = f"predict.profile_on: no cell has {excerpt(axis)} {missing}"
            document.problem(key_path, problem, f"its values are {', '.join(axes[axis])}")
    if any(key_path[:2] == _PROFILE_ON for key_path in document.reported):
        return
    profiling = [cell for cell in cells if is_profiling(cell, experiment.predict)]
    workloads = {cell.workload.name for cell in cells}
    controls = experiment.nightly.controls
    for name in sorted(set(controls) - workloads):
        problem = f"nightly.controls: there is no workload {name}"
        document.problem(("nightly", "controls"), problem, did_you_mean(name, sorted(workloads)))
    unfed = workloads.difference(controls, (cell.workload.name for cell in profiling))
    unfed = set[str]() if predict.source else unfed
    choices = [f"{axis} has {', '.join(texts)}" for axis, texts in axes.items() if len(texts) > 1]
    alternatives = "; ".join(choices) or "no axis has two values yet"
    fix = f"choose some values and leave some: {alternatives}"
    for workload in sorted(unfed):
        problem = f"predict.profile_on selects no cell of {workload}"
        document.problem(_PROFILE_ON, problem, fix, key=True)
    if len(profiling) == len(cells):
        problem = "predict.profile_on selects every cell, and none is left to score"
        document.problem(_PROFILE_ON, problem, fix, key=True)


def _readable(axis: str, value: str | float) -> str:
    """Write a value as in the file: sizes in MiB where they are whole."""
    size = meaning(value)
    if axis in ("input", "task_memory") and isinstance(size, int) and size % MIB == 0:
        return f"{size // MIB} MiB"
    return readable(axis, size) if axis in ("disk", "network") else excerpt(value)
