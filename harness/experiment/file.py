"""
Experiment files: text -> `Experiment`, or one `SpecError` that says all that is wrong.

A file may come from anybody.  Nothing in it is executed: anchors, aliases and tags are refused, and
so are texts that are large or deep.  Every problem has its place in the file, or its override.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from harness.errors import SpecError
from harness.experiment.checks import check_cluster, check_grid
from harness.experiment.document import PROPERTIES, Document, Place, dotted
from harness.experiment.model import Experiment
from harness.experiment.values import AUTO_GPUS, FORMAT, NAME, Scalar, argument_value, has_unit
from harness.text import did_you_mean, excerpt
from harness.units import MIB, parse_bytes

# A slash stands in the names of YARN's resources: mapreduce.map.resource.yarn.io/gpu.
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,199}(/[A-Za-z][A-Za-z0-9_-]{0,99})?", re.ASCII)
_NAME_OF_SIZE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

Complaint = tuple[str, str]  # what is wrong, and what to write


@dataclass(frozen=True, slots=True)
class KnownNames:
    """
    Names that an experiment may use; without an entry in *parameters*, a workload takes none.

    *refusal* says what is wrong with the value of a workload's argument, and what to write;
    *scales* are each workload's names of sizes.  *objection* says what is wrong with the name of a
    property of Hadoop, and what to write.  *gpus* counts the devices of each of so many nodes of a
    provider, for ``gpus: auto``.  *extra_fields* are keys of ``cluster`` that a provider takes and
    others refuse, *required_fields* those that it insists on.
    """

    workloads: Collection[str]
    models: Collection[str]
    providers: Collection[str]
    parameters: Mapping[str, Collection[str]] = field(default_factory=dict)
    scales: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    refusal: Callable[[str, str, str | int | float], Complaint | None] = lambda *_: None
    objection: Callable[[str], Complaint | None] = lambda _: None
    gpus: Callable[[str, int], int] = lambda *_: 0
    extra_fields: Mapping[str, Collection[str]] = field(default_factory=dict)
    required_fields: Mapping[str, Collection[str]] = field(default_factory=dict)


def read_experiment(
    text: str, source: str, overrides: Sequence[str] = (), *, known: KnownNames | None = None
) -> Experiment:
    """
    Read the experiment in *text*; *source* names its file in errors.

    *overrides* are ``a.b=VALUE`` as given to ``--set``.  Names of workloads, models and providers
    are checked where *known* is given.
    """
    document = Document(text, source)
    if not isinstance(document.data, dict):
        raise SpecError(
            "the file is not a mapping of keys to values",
            where=str(document.place(())),
            fix="start it with 'schema: 1'; experiments/demo.yaml shows the rest",
        )
    for override in overrides:
        document.override(override)
    _check_format(document)
    _check_properties(document, known)
    if known:
        document.known_parameters = known.parameters
        _resolve_sizes(document, known.scales)
        _check_names(document, known)
    data = {key: node for key, node in document.data.items() if key != "schema"}
    context = {"parameters": known.parameters if known else None}
    try:
        experiment = Experiment.model_validate(data, context=context, by_alias=True, by_name=False)
    except ValidationError as error:
        document.add_errors(error)
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
    check_cluster(cluster, document, known)
    check_grid(experiment, document, narrowed=bool(overrides))
    document.raise_problems()
    return experiment


def places(text: str, source: str) -> dict[str, str]:
    """
    Where each key of an experiment file is, as ``file:line:column``, by its name alone.

    The entry of a workload is under ``workloads.NAME``.  For errors that are found later than here;
    a *text* that cannot be read has no places.
    """
    try:
        document = Document(text, source)
    except SpecError:
        return {}
    keys = {str(path[-1]): str(place) for path, place in document.key_places.items()}
    entries = document.workloads() if isinstance(document.data, dict) else ()
    return keys | {f"workloads.{name}": str(document.place(path)) for path, name, _ in entries}


def _check_format(document: Document) -> None:
    """Refuse a file of another format at once: what else is wrong with it would mislead."""
    written = document.data.get("schema")
    version = written.value if isinstance(written, Scalar) else None
    if type(version) is int and version != FORMAT:
        raise SpecError(
            f"schema {excerpt(written)} is not one that this harness reads; it reads {FORMAT}",
            where=str(document.place(("schema",))),
            fix=f"use the harness that this file was written for, or write schema {FORMAT}",
        )
    if written is None:
        fix = f"add schema: {FORMAT}, the version of this format"
        document.problem((), "the experiment lacks 'schema'", fix)
    elif type(version) is not int:
        what = f"schema: '{excerpt(written)}' is not a version of this format"
        document.problem(("schema",), what, f"write {FORMAT}")


def _check_properties(document: Document, known: KnownNames | None) -> None:
    """Note names that are not properties of Hadoop, and sizes where Hadoop reads MiB."""
    for head in PROPERTIES:
        for name in document.mapping(*head):
            path = (*head, name)
            if _PROPERTY.fullmatch(name) is None:
                what = f"{dotted(head)}: '{excerpt(name)}' is not the name of a property"
                document.problem(path, what, "write a name such as mapreduce.job.reduces", key=True)
            elif known and head[0] != "predict" and (complaint := known.objection(name)):
                what = f"{dotted(head)}: {complaint[0]}"
                document.problem(path, what, complaint[1], key=True)
            for below, scalar in document.scalars(path):
                if name.endswith((".mb", "-mb")) and not scalar.quoted and has_unit(scalar):
                    what = f"{dotted(below)}: '{excerpt(scalar)}' for a number of MiB"
                    mebibytes = max(1, round(parse_bytes(scalar) / MIB))
                    document.problem(below, what, f"write {mebibytes}")


def _check_names(document: Document, known: KnownNames) -> None:
    """Note providers, models, workloads and arguments of workloads that there are not."""
    for path, what, names in (
        (("cluster", "provider"), "provider", known.providers),
        (("predict", "models"), "model", known.models),
        *(((*at, "name"), "workload", known.workloads) for at, *_ in document.workloads()),
    ):
        for below, scalar in document.scalars(path):
            if NAME.fullmatch(scalar) and scalar not in names:
                missing = f"{dotted(below)}: there is no {what} '{scalar}'"
                document.problem(below, missing, did_you_mean(scalar, list(names)))
    for path, workload, entry in document.workloads():
        for key in entry.keys() - {"name", "input", "seed"}:
            for below, scalar in document.scalars((*path, key)):
                try:
                    value = argument_value(scalar)
                except ValueError:
                    continue  # the model refuses it
                if complaint := known.refusal(workload, key, value):
                    document.problem(below, *complaint)


def _resolve_sizes(document: Document, scales: Mapping[str, Mapping[str, int]]) -> None:
    """
    Put bytes in the place of names of sizes; *scales* has those of each workload.

    In `profile_on` a name means the bytes of every workload of the file that has it.
    """
    used: dict[str, Mapping[str, int]] = {}
    for path, workload, entry in document.workloads():
        if workload not in scales or "input" not in entry:
            continue
        scale = used[workload] = scales[workload]
        for below, scalar in document.scalars((*path, "input")):
            if scalar in scale:
                document.put(below, Scalar(str(scale[scalar]), written=scalar))
            elif _NAME_OF_SIZE.fullmatch(scalar):
                what = f"{dotted((*path, 'input'))}: {workload} has no size called '{scalar}'"
                document.problem(below, excerpt(what, 200), _size_fix(scalar, scale))
    chosen = ("predict", "profile_on", "input")
    sizes: dict[str, tuple[Place, Scalar]] = {}
    unresolved = False
    for below, scalar in document.scalars(chosen):
        meant = {scale[scalar] for scale in used.values() if scalar in scale}
        if not _NAME_OF_SIZE.fullmatch(scalar):
            sizes[f"{below} {scalar}"] = document.place(below), scalar
        elif meant:
            for size in sorted(meant):
                text = str(size)
                sizes[text] = document.place(below), Scalar(text, written=scalar)
        else:
            unresolved = True
            what = f"predict.profile_on: no workload here has a size called '{excerpt(scalar)}'"
            names = dict.fromkeys(name for scale in used.values() for name in scale)
            document.problem(below, what, _size_fix(scalar, names))
    if sizes and not unresolved:
        document.put(chosen, [scalar for _, scalar in sizes.values()])
        for index, (place, _) in enumerate(sizes.values()):
            document.places[*chosen, index] = place


def _size_fix(name: str, known: Collection[str]) -> str:
    if not known:
        return "write a size such as 32 MiB"
    return f"{did_you_mean(name, list(known))} (or a size such as 32 MiB)"
