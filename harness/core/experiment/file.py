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
from itertools import chain
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from harness.base.errors import HarnessError, SpecError
from harness.base.hadoop.secrets import PUBLIC, SENSITIVE_KEYS, Secrets
from harness.base.installed import example
from harness.base.records.trial import Cell, Code
from harness.base.text import did_you_mean, excerpt
from harness.base.units import MIB, parse_bytes
from harness.core.experiment.document import (
    PROPERTIES,
    Document,
    KeyPath,
    Place,
    Scalar,
    dotted,
    has_unit,
)
from harness.core.experiment.grid import axis_values, expand, is_profiling, meaning, readable
from harness.core.experiment.model import (
    AUTO,
    AUTO_GPUS,
    NAME,
    ClusterAxes,
    Experiment,
    Node,
    Predict,
    WorkloadAxes,
    argument_value,
)

FORMAT = 1
MOST_HOSTS = 200
_MODELS = ("predict", "models")
_PROFILE_ON = ("predict", "profile_on")
# A slash stands in the names of YARN's resources: mapreduce.map.resource.yarn.io/gpu.
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}(/[A-Za-z][A-Za-z0-9_-]{0,99})?", re.ASCII)
_WORKER = re.compile(r"worker[1-9][0-9]{0,5}", re.ASCII)
_NAME_OF_SIZE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_CORRECT = "correct this value"

Complaint = tuple[str, str]  # what is wrong, and what to write
_Scale = Mapping[str, int]  # bytes by the name of a size
_TextsByAxis = dict[str, dict[str, None]]  # values as text, in the order of the grid

# A class of the user's own: its name and code; of a workload its parameters and names of sizes.
Own = tuple[str, Code, Collection[str], _Scale]


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
    *papers* are those whose claims can be asked about, each with the models that they name.
    *renamed* are the present names of models by their earlier ones, and *note* tells of one.
    """

    workloads: Collection[str]
    models: Collection[str]
    providers: Collection[str]
    parameters: Mapping[str, Collection[str]] = field(default_factory=dict)
    scales: Mapping[str, _Scale] = field(default_factory=dict)
    refusal: Callable[[str, str, str | int | float], Complaint | None] = lambda *_: None
    objection: Callable[[str], Complaint | None] = lambda _: None
    secrets: Secrets | None = None
    gpus: Callable[[str, int], int] = lambda *_: 0
    extra_fields: Mapping[str, Collection[str]] = field(default_factory=dict)
    required_fields: Mapping[str, Collection[str]] = field(default_factory=dict)
    own: Callable[[str, str, bool], Own] | None = None  # noun, path, whether in an override
    papers: Mapping[str, Collection[str]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    note: Callable[[str], None] = lambda _: None


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
    value of `profile_on` has to be there.  `SpecError` names everything that is wrong.
    """
    document = _read_document(text, source, overrides)
    names = known
    if names:
        # Before anything else is looked at, so that no message shows a secret.
        if names.secrets:
            _conceal(document, names.secrets)
        _rename_models(document, names)
        names = _read_own(document, names)
        _resolve_sizes(document, names.scales)
    checks = _Checks(document, names)
    checks.written_names()
    checks.used_names()
    experiment = _validated(document, names)
    if AUTO_GPUS in experiment.cluster.node.gpus:
        # All clusters of a grid are given the same, or their trials would not compare.
        cluster = experiment.cluster
        count = names.gpus(cluster.provider, max(cluster.workers)) if names else 0
        experiment = experiment.with_gpus(count)
    checks.fields(experiment.cluster.provider)
    checks.cluster(experiment.cluster)
    checks.question(experiment)
    checks.grid(experiment, narrowed=narrows and bool(overrides))
    document.raise_problems()
    return experiment


def _read_document(text: str, source: str, overrides: Sequence[str]) -> Document:
    """Read *text*, put the *overrides* into it, and refuse another format than this one."""
    document = Document(text, source)
    if not isinstance(document.data, dict):
        what = "the file is not a mapping of keys to values"
        fix = f"start it with 'schema: 1'; {example()} shows the rest"
        raise SpecError(what, where=str(document.place(())), fix=fix)
    for override in overrides:
        document.override(override)
    written_format = document.data.get("schema")
    if written_format is None:
        fix = f"add schema: {FORMAT}, the version of this format"
        document.problem((), "the experiment lacks 'schema'", fix)
    elif written_format != str(FORMAT):
        # Whatever else seems wrong with a file of another format would mislead.
        what = f"schema {excerpt(written_format)} is not one that this harness reads"
        fix = f"use the harness that this file was written for, or write schema {FORMAT}"
        where = str(document.place(("schema",)))
        raise SpecError(f"{what}; it reads {FORMAT}", where=where, fix=fix)
    return document


def _validated(document: Document, names: KnownNames | None) -> Experiment:
    """The experiment in *document*; `SpecError` where it, or what was noted before, is wrong."""
    contents = {key: value for key, value in document.data.items() if key != "schema"}
    context = {"parameters": names.parameters if names else None}
    try:
        experiment = Experiment.model_validate(
            contents, context=context, by_alias=True, by_name=False
        )
    except ValidationError as error:
        _note_errors(error, document, names)
        document.raise_problems()
        raise
    document.raise_problems()
    return experiment


def concealed_text(text: str, source: str, secrets: Secrets) -> str:
    """The experiment file *text* as it may be stored: digests in the place of secrets."""
    document = Document(text, source)
    digests = _conceal(document, secrets)
    # From the end: what stands before a replaced text keeps its place.
    for value_path in sorted(digests, key=document.spans.__getitem__, reverse=True):
        start, end = document.spans[value_path]
        line_end = text[start:end][len(text[start:end].rstrip("\n")) :]  # of a block of lines
        text = text[:start] + digests[value_path] + line_end + text[end:]
    return secrets.clean(text)


def _conceal(document: Document, secrets: Secrets) -> dict[KeyPath, str]:
    """Put digests in the place of secrets, and return them by path; note those in sight of all."""
    properties: list[tuple[KeyPath, str, Scalar]] = []
    for head in PROPERTIES:
        for name in document.mapping(*head):
            properties += [
                (value_path, name, scalar) for value_path, scalar in document.scalars((*head, name))
            ]
    digests: dict[KeyPath, str] = {}
    # First the list of sensitive keys, which says of the others whether they are secret.
    for value_path, name, scalar in sorted(
        properties, key=lambda entry: entry[1] != SENSITIVE_KEYS
    ):
        try:
            concealed = _concealed(name, scalar, secrets)
        except SpecError as error:
            document.problem(value_path, f"{dotted(value_path)}: {error.what}", error.fix)
            continue
        if concealed != scalar:
            digests[value_path] = concealed
    for value_path, _, scalar in properties:
        if value_path not in digests and secrets.clean(scalar) != scalar:
            digests[value_path] = secrets.hide(scalar)  # a secret is a part of it
    _note_shown_secrets(document, digests, secrets)
    for value_path, concealed in digests.items():
        document.put(value_path, Scalar(concealed, quoted=True))
    return digests


def _concealed(name: str, scalar: Scalar, secrets: Secrets) -> str:
    """The digest of the property *name* where its value is secret or a reference; else its text."""
    if name == SENSITIVE_KEYS:
        secrets.add_keys(scalar)
    value = secrets.resolve(scalar)
    return secrets.conceal(name, value) if value == scalar else secrets.hide(value)


def _note_shown_secrets(document: Document, digests: Collection[KeyPath], secrets: Secrets) -> None:
    """Note where the value of a secret stands in a text that others will see."""
    fix = "leave it out: everybody who sees the cluster or its results sees this text"
    for key_path in list(document.places):
        is_concealed = key_path in digests
        content = "" if is_concealed else document.at(key_path)
        texts = [text for text in (content, *key_path[-1:]) if isinstance(text, str)]
        is_shown = any(secrets.clean(text) != text for text in texts)
        if is_shown or (is_concealed and not PUBLIC.isdisjoint(key_path)):
            document.problem(key_path, f"{dotted(key_path)} holds the value of a secret", fix)


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


def _rename_models(document: Document, names: KnownNames) -> None:
    """Put the present name in the place of an earlier one, as older files have it."""
    for value_path, scalar in list(document.scalars(_MODELS)):
        if present_name := names.renamed.get(scalar):
            names.note(f"the model {scalar} is called {present_name} now, and is asked as that")
            document.put(value_path, Scalar(present_name, written=scalar))


def _read_own(document: Document, names: KnownNames) -> KnownNames:
    """Put names in the place of paths of models and workloads, with their code beside them."""
    if names.own is None:
        return names
    class_paths = [("models", value_path) for value_path, _ in document.scalars(_MODELS)]
    class_paths += [("workloads", (*entry_path, "name")) for entry_path, *_ in document.workloads()]
    # The harness' own have no code here.
    codes: dict[str, dict[str, Code | None]] = {
        "models": dict.fromkeys([*names.models, *names.renamed]),
        "workloads": dict.fromkeys(names.workloads),
    }
    parameters = dict(names.parameters)
    scales = dict(names.scales)
    for kind, value_path in class_paths:
        path_text = document.at(value_path)
        if ".py:" not in path_text:
            continue
        is_override = document.place(value_path).line == 0
        try:
            name, code, parameters_of_name, scales_of_name = names.own(kind, path_text, is_override)
            if codes[kind].setdefault(name, code) != code:
                fix = 'write name = "..." into the class, or call it otherwise'
                raise SpecError(f"another of the {kind} is called '{name}'", fix=fix)
        except HarnessError as error:
            document.problem(value_path, f"{dotted(value_path)}: {error.what}", error.fix)
            continue
        document.put(value_path, Scalar(name, written=path_text))
        if kind == "models":
            predict = document.mapping("predict")
            predict["(code)"] = {**predict.get("(code)", {}), name: code}
            _name_in_question(document, path_text, name)
        else:
            document.mapping(*value_path[:2])["(code)"] = code
        parameters[name] = parameters_of_name
        scales[name] = scales_of_name
    return replace(
        names,
        models=[*codes["models"]],
        workloads=[*codes["workloads"]],
        parameters=parameters,
        scales=scales,
    )


def _name_in_question(document: Document, path_text: str, name: str) -> None:
    """Put *name* in the place of the path of a model, where the question names that, too."""
    for key in ("how_far", "nearer"):
        for value_path, scalar in document.scalars(("question", key)):
            if scalar == path_text:
                document.put(value_path, Scalar(name, written=path_text))


def _note_errors(error: ValidationError, document: Document, names: KnownNames | None) -> None:
    """Note what *error* says of the file, but where a problem is noted already."""
    earlier = frozenset(document.reported)
    for details in error.errors(include_url=False):
        kind = details["type"]
        key_path = document.path_of(details["loc"])
        if key_path in earlier and kind not in ("missing", "extra_forbidden", "model_type"):
            continue
        match kind:
            case "missing":
                missing = str(details["loc"][-1])
                problem = f"{dotted(key_path) or 'the experiment'} lacks '{missing}'"
                description = _keys(_model_at(key_path))[missing]
                document.problem(key_path, problem, f"add {missing}: {description}")
            case "extra_forbidden":
                _note_unknown_key(key_path, document, names)
            case "model_type":
                keys = ", ".join(_keys(_model_at(key_path)))
                fix = f"write NAME: VALUE lines; names are {keys}"
                document.problem(key_path, f"{dotted(key_path)} is not a mapping", fix)
            case "dict_type":
                problem = f"{dotted(key_path)} is not a mapping"
                word = f", or {AUTO}" if key_path == _PROFILE_ON else ""
                document.problem(key_path, problem, f"write NAME: VALUE lines{word}")
            case "value_error":
                problem, fix = _complaint(str(details["ctx"]["error"]), key_path)
                document.problem(key_path, problem, fix)
            case "given_twice":
                problem, fix = _complaint(details["msg"], key_path)
                document.problem((*key_path, details["ctx"]["index"]), problem, fix)
            case _:  # a bound of a record, beyond those of the file
                problem = f"{dotted(key_path)}: {excerpt(details['msg'].lower())}"
                document.problem(key_path, problem, _CORRECT)


def _note_unknown_key(key_path: KeyPath, document: Document, names: KnownNames | None) -> None:
    key = str(key_path[-1])
    model = _model_at(key_path[:-1])
    keys = list(_keys(model))
    if model is WorkloadAxes and names:
        workload = document.mapping(*key_path[:-1]).get("name", "")
        keys += names.parameters.get(str(workload), ())
    fix = did_you_mean(key, keys)
    for parent, record in (("cluster", ClusterAxes), ("cluster.node", Node)):
        if key in _keys(record):
            fix = f"it stands in {parent}: write {parent}.{key}"
    problem = f"unknown key '{excerpt(key)}' in {dotted(key_path[:-1]) or 'the experiment'}"
    document.problem(key_path, problem, fix, key=True)


def _complaint(text: str, key_path: KeyPath) -> Complaint:
    """What a validator's *text* says is wrong at *key_path*, and what to write."""
    # The errors of `harness.base.units` say what to write after a colon.
    flaw, _, advice = re.sub(r": (?=write )", "; ", text, count=1).partition("; ")
    colon = " " if flaw.startswith(("is ", "limits ")) else ": "
    return f"{dotted(key_path)}{colon}{flaw}", advice or _CORRECT


def _keys(model: type[BaseModel]) -> dict[str, str]:
    """Keys that a file may have in a mapping that becomes *model*, with their descriptions."""
    return {
        str(info.validation_alias or field_name): info.description or ""
        for field_name, info in model.model_fields.items()
        if not str(info.validation_alias).startswith("(")  # not a key of the file
    }


def _model_at(key_path: KeyPath) -> type[BaseModel]:
    """Give the model of the mapping at *key_path*, or around it."""
    model: type[BaseModel] = Experiment
    for part in key_path:
        for field_name, info in model.model_fields.items():
            if part in (field_name, info.validation_alias):
                annotations: list[Any] = [info.annotation]
                for annotation in annotations:  # which grows meanwhile
                    annotations += get_args(annotation)
                    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                        model = annotation
                break
    return model


def cluster_text(text: str, source: str) -> str:
    """The cluster of the experiment in *text*, to be written into another one."""
    return json.dumps(_values(Document(text, source).mapping("cluster")))


def _values(content: Any) -> Any:
    """Mappings, lists and scalars of a document as what they mean: `2` is a number, `'2'` not."""
    if isinstance(content, dict):
        return {key: _values(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_values(item) for item in content]
    return content.value if isinstance(content, Scalar) else content


def _resolve_sizes(document: Document, scales: Mapping[str, _Scale]) -> None:
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
    _resolve_chosen_sizes(document, used_scales)


def _resolve_chosen_sizes(document: Document, scales: Sequence[_Scale]) -> None:
    """Put bytes in the place of the names of sizes in `profile_on`: each may mean several."""
    chosen_path = (*_PROFILE_ON, "input")
    resolved: dict[str, tuple[Place, Scalar]] = {}
    for value_path, scalar in document.scalars(chosen_path):
        place = document.place(value_path)
        sizes = {scale[scalar] for scale in scales if scalar in scale}
        for size in map(str, sorted(sizes)):
            resolved[size] = place, Scalar(size, written=scalar)
        if not sizes:
            resolved[f"{value_path} {scalar}"] = place, scalar
            if _NAME_OF_SIZE.fullmatch(scalar):
                problem = f"no workload here has a size called '{excerpt(scalar)}'"
                fix = _size_fix(scalar, dict.fromkeys(chain.from_iterable(scales)))
                document.problem(value_path, f"predict.profile_on: {problem}", fix)
    if resolved:
        document.put(chosen_path, [scalar for _, scalar in resolved.values()])
        for index, (place, _) in enumerate(resolved.values()):
            document.places[*chosen_path, index] = place


def _size_fix(name: str, choices: Collection[str]) -> str:
    if not choices:
        return "write a size such as 32 MiB"
    return f"{did_you_mean(name, list(choices))} (or a size such as 32 MiB)"


class _Checks:
    """
    Checks of a *document* beside those of single values; they note problems in it.

    Without *names*, those that an experiment may use, any name may stand.
    """

    def __init__(self, document: Document, names: KnownNames | None) -> None:
        self._document = document
        self._names = names

    def written_names(self) -> None:
        """Note what cannot be a property or a worker, and sizes where one is a number of MiB."""
        for head in PROPERTIES:
            for name in self._document.mapping(*head):
                complaint: Complaint | None = None
                if _PROPERTY.fullmatch(name) is None:
                    problem = f"'{excerpt(name)}' is not the name of a property"
                    complaint = problem, "write a name such as mapreduce.job.reduces"
                elif self._names and head[0] != "predict":
                    complaint = self._names.objection(name)
                if complaint:
                    problem, fix = complaint
                    problem = f"{dotted(head)}: {problem}"
                    self._document.problem((*head, name), problem, fix, key=True)
                if name.endswith((".mb", "-mb")):
                    self._mebibytes((*head, name))
        for name in self._document.mapping("cluster", "nodes"):
            if _WORKER.fullmatch(name) is None:
                problem = f"cluster.nodes: '{excerpt(name)}' is not the name of a worker"
                fix = "workers are called worker1, worker2, ..."
                self._document.problem(("cluster", "nodes", name), problem, fix, key=True)

    def _mebibytes(self, key_path: KeyPath) -> None:
        """Note sizes with a unit at *key_path*, where Hadoop reads a bare number of MiB."""
        for value_path, scalar in self._document.scalars(key_path):
            if not scalar.quoted and has_unit(scalar):
                problem = f"{dotted(value_path)}: '{excerpt(scalar)}' for a number of MiB"
                mebibytes = max(1, round(parse_bytes(scalar) / MIB))
                self._document.problem(value_path, problem, f"write {mebibytes}")

    def used_names(self) -> None:
        """Note names that there are not, and what a workload refuses as its arguments."""
        names = self._names
        if not names:
            return
        self._existing(("cluster", "provider"), "provider", names.providers)
        self._existing(_MODELS, "model", names.models)
        for entry_path, workload, entry in self._document.workloads():
            self._existing((*entry_path, "name"), "workload", names.workloads)
            for key in entry.keys() - {"name", "input", "seed"}:
                for value_path, scalar in self._document.scalars((*entry_path, key)):
                    # The model refuses what is not a value of an argument.
                    with suppress(ValueError):
                        if complaint := names.refusal(workload, key, argument_value(scalar)):
                            self._document.problem(value_path, *complaint)

    def _existing(self, key_path: KeyPath, noun: str, choices: Collection[str]) -> None:
        for value_path, scalar in self._document.scalars(key_path):
            if NAME.fullmatch(scalar) and scalar not in choices:
                problem = f"{dotted(value_path)}: there is no {noun} '{scalar}'"
                self._document.problem(value_path, problem, did_you_mean(scalar, list(choices)))

    def fields(self, provider: str) -> None:
        """Note keys of ``cluster`` that the *provider* needs, and those that it does not take."""
        names = self._names
        if not names:
            return
        written = self._document.mapping("cluster").keys()
        for key in sorted(set(names.required_fields.get(provider, ())) - written):
            example = "[MASTER, WORKER, ...]" if key == "hosts" else "..."
            problem = f"provider {provider} needs cluster.{key}"
            self._document.problem(("cluster",), problem, f"add {key}: {example}")
        extra_fields = set(chain.from_iterable(names.extra_fields.values()))
        for key in sorted(written & extra_fields - set(names.extra_fields.get(provider, ()))):
            takers = [taker for taker, fields in names.extra_fields.items() if key in fields]
            problem = f"provider {provider} does not take cluster.{key}"
            fix = f"write provider: {' or '.join(takers)}, or remove the line"
            self._document.problem(("cluster", key), problem, fix, key=True)

    def cluster(self, cluster: ClusterAxes) -> None:
        """Note hosts that do not make the *cluster*, and limits of workers that are not there."""
        count = len(cluster.hosts)
        if count and not 2 <= count <= MOST_HOSTS:
            problem = f"{count} hosts are not 2 to {MOST_HOSTS}"
            fix = "name a master and at least one worker"
            self._document.problem(("cluster", "hosts"), problem, fix, key=True)
        elif count and cluster.workers != (count - 1,):
            written_workers = ", ".join(map(str, cluster.workers))
            problem = f"{count} hosts are a master and {count - 1} workers, not {written_workers}"
            fix = f"write workers: {count - 1}"
            self._document.problem(("cluster", "workers"), problem, fix, key=True)
        fewest = min(cluster.workers)
        workers = [f"worker{number}" for number in range(1, fewest + 1)]
        for name in cluster.nodes:
            if name not in workers:
                problem = f"cluster.nodes: there is no '{name}' in a cluster of {fewest} workers"
                fix = excerpt(did_you_mean(name, workers))
                self._document.problem(("cluster", "nodes", name), problem, fix, key=True)

    def question(self, experiment: Experiment) -> None:
        """Note a question that is missing, or about models that the experiment does not ask."""
        question = experiment.question
        models = experiment.predict.models
        if models and not self._document.mapping("question") and not question.title:
            fix = "add question: what the report should answer, in one sentence"
            self._document.problem((), "the experiment lacks 'question'", fix)
        papers = self._names.papers if self._names else {}
        if question.claims and self._names and question.claims not in papers:
            problem = f"question.claims: nothing is known of the paper '{excerpt(question.claims)}'"
            self._document.problem(
                ("question", "claims"), problem, did_you_mean(question.claims, list(papers))
            )
            return
        asked = {*question.models, *papers.get(question.claims, ())}
        for model in sorted(asked.difference(models)):
            key_path = ("question", question.kind)
            problem = f"{dotted(key_path)}: predict.models has no '{excerpt(model)}'"
            fix = did_you_mean(model, list(models)) if models else "add it to predict.models"
            self._document.problem(key_path, problem, fix)

    def grid(self, experiment: Experiment, *, narrowed: bool) -> None:
        """
        Note what is wrong with the grid, and what `profile_on` names and the grid does not have.

        Where overrides *narrowed* the grid, it is enough that one of an axis' values is left.
        """
        try:
            cells = expand(experiment)
        except SpecError as error:
            self._document.problem((), error.what, error.fix)
            return
        if not self._document.mapping("predict"):
            return
        predict = experiment.predict
        if predict.is_auto and predict.source:
            problem = "profile_on: auto chooses cells to measure, and from takes another run's"
            self._document.problem(_PROFILE_ON, problem, "leave one of them out", key=True)
        elif not predict.profile_on and not predict.source and not predict.is_auto:
            fix = "write profile_on, the cells that feed the profiles; or from, a run that has some"
            self._document.problem(("predict",), "predict lacks 'profile_on'", fix)
        self._profile_repeat(experiment)
        if len(predict.hardware) not in ((0, 2) if predict.source else (0,)):
            fix = "write hardware: [A, B], the machine of the run that from names, and this one"
            problem = "predict.hardware is two files, and needs from"
            self._document.problem(("predict",), problem, fix)
        texts_by_axis: _TextsByAxis = {}
        for cell in cells:
            for axis, value in axis_values(cell).items():
                texts_by_axis.setdefault(axis, {})[_readable(axis, value)] = None
        self._profile_on(predict, texts_by_axis, narrowed=narrowed)
        if not any(key_path[:2] == _PROFILE_ON for key_path in self._document.reported):
            self._use_of_cells(experiment, cells, texts_by_axis)

    def _profile_repeat(self, experiment: Experiment) -> None:
        """Note that profiling cells would have fewer trials than others, or are another run's."""
        predict = experiment.predict
        key_path = ("predict", "profile_repeat")
        if 0 < predict.profile_repeat < experiment.profiling_repeats:
            fix = f"write {experiment.profiling_repeats} or more, or leave it out"
            problem = "predict.profile_repeat: profiling cells have as many trials as others"
            self._document.problem(key_path, problem, fix)
        if predict.profile_repeat and predict.source:
            problem = "predict.profile_repeat repeats profiling cells, and from takes another run's"
            self._document.problem(key_path, problem, "leave one of them out", key=True)

    def _profile_on(self, predict: Predict, texts_by_axis: _TextsByAxis, *, narrowed: bool) -> None:
        """Note axes and values in `profile_on` that the grid does not have."""
        for axis, values in predict.profile_on.items():
            key_path = (*_PROFILE_ON, axis)
            if axis not in texts_by_axis:
                problem = f"predict.profile_on: the grid has no axis '{excerpt(axis)}'"
                fix = did_you_mean(axis, sorted(texts_by_axis))
                self._document.problem(key_path, problem, fix, key=True)
                continue
            texts = texts_by_axis[axis]
            meanings = set(map(meaning, texts))
            lacking = [value for value in values if meaning(value) not in meanings]
            if lacking and not (narrowed and len(lacking) < len(values)):
                missing = ", ".join(_readable(axis, value) for value in lacking)
                problem = f"predict.profile_on: no cell has {excerpt(axis)} {missing}"
                self._document.problem(key_path, problem, f"its values are {', '.join(texts)}")

    def _use_of_cells(
        self, experiment: Experiment, cells: Sequence[Cell], texts_by_axis: _TextsByAxis
    ) -> None:
        """Note workloads without a profile, controls that lack, and that no cell is left."""
        workloads = {cell.workload.name for cell in cells}
        controls = set(experiment.nightly.controls)
        for name in sorted(controls - workloads):
            problem = f"nightly.controls: there is no workload {name}"
            fix = did_you_mean(name, sorted(workloads))
            self._document.problem(("nightly", "controls"), problem, fix)
        if experiment.predict.is_auto:
            return  # they are chosen once all is known to be right
        profiling = [cell for cell in cells if is_profiling(cell, experiment.predict)]
        unfed = workloads - controls - {cell.workload.name for cell in profiling}
        if experiment.predict.source:
            unfed = set()  # the profiles are another run's
        choices = [
            f"{axis} has {', '.join(texts)}"
            for axis, texts in texts_by_axis.items()
            if len(texts) > 1
        ]
        alternatives = "; ".join(choices) or "no axis has two values yet"
        fix = f"choose some values and leave some: {alternatives}"
        for workload in sorted(unfed):
            problem = f"predict.profile_on selects no cell of {workload}"
            self._document.problem(_PROFILE_ON, problem, fix, key=True)
        if len(profiling) == len(cells):
            problem = "predict.profile_on selects every cell, and none is left to score"
            self._document.problem(_PROFILE_ON, problem, fix, key=True)


def _readable(axis: str, value: str | float) -> str:
    """Write a value as in the file: sizes in MiB where they are whole."""
    size = meaning(value)
    if axis in ("input", "task_memory") and isinstance(size, int) and size % MIB == 0:
        return f"{size // MIB} MiB"
    return readable(axis, size) if axis in ("disk", "network") else excerpt(value)
