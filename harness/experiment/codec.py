"""
Experiment files: text -> `Experiment`, or one `SpecError` that says all that is wrong.

The tables below are the file format; `experiment_schema` gives them to editors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from harness.errors import SpecError
from harness.experiment import limits, remote, shapes
from harness.experiment.arguments import Refusal, Scales, check_arguments, resolve_scales
from harness.experiment.gridcheck import check_grid
from harness.experiment.model import Experiment
from harness.experiment.overrides import apply_overrides
from harness.experiment.shapes import Key, Keys, Listed, Properties, Schema, Shape, Value
from harness.experiment.yamltree import Entries, Items, Node, Problems, Scalar, read_tree, shown
from harness.records.trial import TraceMode

SCHEMA = 1

_SIZE = Value(shapes.size, {"type": ["string", "integer"], "examples": ["32 MiB", "200 MB"]})
_INPUT = Value(
    shapes.size, {"type": ["string", "integer"], "examples": ["32 MiB", "200 MB", "tiny"]}
)
_COUNT = Value(shapes.whole(1), {"type": "integer", "minimum": 1})
_SEED = Value(shapes.whole(0, 2**31 - 1), {"type": "integer", "minimum": 0})
_ARGUMENT = Value(shapes.argument, {"type": ["string", "number", "boolean"]})
_TEXT = Value(shapes.text, {"type": "string"})
_GPUS = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": shapes.MOST_GPUS},
        {"const": shapes.AUTO},
    ]
}


@dataclass(frozen=True, slots=True)
class KnownNames:
    """
    Names that an experiment may use; *parameters* are the further arguments of each workload.

    Without an entry there, a workload takes none.  *refusal* says what is wrong with the value of
    such an argument, and what to write; *scales* are each workload's names of sizes.  *objection*
    says what is wrong with the name of a property of Hadoop, and what to write.  *gpus* tells how
    many devices each of so many nodes of a provider has, for ``gpus: auto``.
    """

    workloads: Collection[str]
    models: Collection[str]
    providers: Collection[str]
    parameters: Mapping[str, Collection[str]] = field(default_factory=dict)
    scales: Scales = field(default_factory=dict)
    refusal: Refusal = lambda workload, name, value: None  # noqa: ARG005
    objection: Callable[[str], tuple[str, str] | None] = lambda name: None  # noqa: ARG005
    gpus: Callable[[str, int], int] = lambda provider, workers: 0  # noqa: ARG005


def read_experiment(
    text: str, source: str, overrides: Sequence[str] = (), *, known: KnownNames | None = None
) -> Experiment:
    """
    Read the experiment in *text*; *source* names its file in errors.

    *overrides* are ``a.b=VALUE`` as given to ``--set``.  Names of workloads, models and providers
    are checked where *known* is given.
    """
    problems = Problems(source)
    tree = read_tree(text, source, problems)
    if not isinstance(tree, Entries):
        raise SpecError(
            "the file is not a mapping of keys to values",
            where=str(tree.at),
            fix="begin it with 'schema: 1'; experiments/demo.yaml shows the rest",
        )
    apply_overrides(tree, overrides, problems)
    _check_schema(tree)
    if known:
        resolve_scales(tree, known.scales, problems)
        check_arguments(tree, known.refusal, problems)
    values = _experiment(known).read(tree, "", problems)
    problems.check()
    del values["schema_version"]
    values.setdefault("predict", {"models": (), "profile_on": {}})
    values["predict"].setdefault("profile_on", {})
    remote.count_workers(values)
    experiment = _with_gpus(values, known)
    remote.check_hosts(experiment, tree, problems)
    limits.check_nodes(experiment, tree, problems)
    check_grid(experiment, tree, problems, narrowed=bool(overrides))
    problems.check()
    return experiment


def _with_gpus(values: dict[str, Any], known: KnownNames | None) -> Experiment:
    """Read *values* as an experiment; what there is stands in the place of ``gpus: auto``."""
    node = values.get("cluster", {}).get("node", {})
    asked = node.get("gpus", ())
    if shapes.AUTO not in asked:
        return Experiment.model_validate(values)
    node["gpus"] = tuple(0 if n == shapes.AUTO else n for n in asked)
    cluster = Experiment.model_validate(values).cluster
    # All clusters of a grid are given the same, or their trials would not compare.
    found = known.gpus(cluster.provider, max(cluster.workers)) if known else 0
    node |= {"gpus": tuple(found if n == shapes.AUTO else n for n in asked), "gpus_found": True}
    return Experiment.model_validate(values)


def places(text: str, source: str) -> dict[str, str]:
    """
    Where each key of an experiment file stands, as ``file:line:column``, by its name alone.

    The entry of a workload stands under ``workloads.NAME``.

    For errors that are found later than here; a *text* that cannot be read has no places.
    """
    try:
        return dict(_places(read_tree(text, source, Problems(source))))
    except SpecError:
        return {}


def _places(node: Node) -> Iterator[tuple[str, str]]:
    below = node.items if isinstance(node, Items) else []
    if isinstance(node, Entries):
        yield from ((name, str(at)) for name, at in node.keys.items())
        yield from _workload_places(node)
        below = [*node.entries.values()]
    for each in below:
        yield from _places(each)


def _workload_places(node: Entries) -> Iterator[tuple[str, str]]:
    """Where the entry of each workload stands, as ``workloads.NAME``."""
    listed = node.entries.get("workloads")
    for item in listed.items if isinstance(listed, Items) else []:
        name = item.entries.get("name") if isinstance(item, Entries) else None
        if isinstance(name, Scalar):
            yield f"workloads.{name.text}", str(item.at)


def experiment_schema() -> dict[str, Any]:
    """JSON Schema of the file, for editors."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "An experiment of mapreduce-harness",
        **_experiment(None).schema(),
    }


def _version(node: Scalar) -> int:
    if type(node.value) is not int or node.value != SCHEMA:
        raise ValueError(f"'{shown(node.text)}' is no version of this format; write {SCHEMA}")
    return SCHEMA


class _Design:
    """``full``, or ``{sobol: N}``, or ``{latin: N}``."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node, Scalar) and node.text == "full":
            return {"kind": "full"}
        if isinstance(node, Entries) and len(node.entries) == 1:
            ((kind, points),) = node.entries.items()
            if kind in ("sobol", "latin"):
                return {"kind": kind, "points": _COUNT.read(points, f"{path}.{kind}", problems)}
        problems.add(node.at, f"{path} is no design", "write full, {sobol: 32} or {latin: 32}")
        return None

    def schema(self) -> Schema:
        one = {"type": "object", "minProperties": 1, "maxProperties": 1}
        points = {"sobol": _COUNT.schema(), "latin": _COUNT.schema()}
        return {"anyOf": [{"const": "full"}, one | _closed(points)]}


class _Tracing:
    """``spans``, ``units``, ``logs`` or ``off``, or ``{units: N}``."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node, Scalar) and node.text in get_args(TraceMode):
            return {"mode": node.text}
        if isinstance(node, Entries) and list(node.entries) == ["units"]:
            records = _COUNT.read(node.entries["units"], f"{path}.units", problems)
            return {"mode": "units", "unit_records": records}
        fix = f"write {', '.join(get_args(TraceMode))}, or {{units: 5}}"
        problems.add(node.at, f"{path} says nothing of how to trace", fix)
        return None

    def schema(self) -> Schema:
        one = {"type": "object", "minProperties": 1, "maxProperties": 1}
        named = {"enum": [*get_args(TraceMode)]}
        return {"anyOf": [named, one | _closed({"units": _COUNT.schema()})]}


def _closed(properties: Schema) -> Schema:
    return {"properties": properties, "additionalProperties": False}


def _experiment(known: KnownNames | None) -> Shape:
    return Keys(
        {
            "schema": Key(
                Value(_version, {"const": SCHEMA}),
                "schema_version",
                "1, the version of this format",
                required=True,
            ),
            "name": Key(
                Value(shapes.one_of(None, "experiment"), {"type": "string"}),
                "name",
                "a short name; results lie in a folder of this name",
                required=True,
            ),
            "question": Key(
                _TEXT, "question", "what the report is to answer, in a sentence", required=True
            ),
            "cluster": Key(_cluster(known), "cluster", "what to measure on"),
            "workloads": Key(
                Listed(_workload(known), bare=False, unique=False),
                "workloads",
                "a list such as [{name: wordcount, input: [32 MiB, 64 MiB]}]",
                required=True,
            ),
            "configuration": Key(
                _properties(known), "configuration", "job properties; a list is an axis of the grid"
            ),
            "design": Key(_Design(), "design", "full, {sobol: N} or {latin: N}"),
            "repeat": Key(_COUNT, "repeat", "trials of each cell (3)"),
            "warmup": Key(
                Value(shapes.whole(0, 100), {"type": "integer", "minimum": 0}),
                "warmup",
                "trials before those that count, per cluster (1)",
            ),
            "seed": Key(_SEED, "seed", "of the order of trials and of the design (7)"),
            "trial_limit": Key(
                Value(shapes.duration, {"type": ["string", "number"], "examples": ["10 min"]}),
                "trial_limit_s",
                "the longest that a trial may take (10 min)",
            ),
            "trace": Key(
                _Tracing(),
                "tracing",
                "what is recorded inside tasks: spans, units, {units: N}, logs or off (spans)",
            ),
            "predict": Key(_predict(known), "predict", "what to predict, and from which cells"),
        }
    )


def _cluster(known: KnownNames | None) -> Shape:
    axis = Listed(_COUNT)
    node = {
        "map_slots": Key(axis, "map_slots", "map tasks at once on a node (1)"),
        "reduce_slots": Key(axis, "reduce_slots", "reduce tasks at once on a node (1)"),
        "task_memory": Key(
            Listed(_SIZE), "task_memory_bytes", "memory of a task's container (512 MiB)"
        ),
        "gpus": Key(
            Listed(Value(shapes.gpus, _GPUS)),
            "gpus",
            "GPUs of a node that YARN counts, or auto: those that it has (0)",
        ),
        **limits.axes(),
    }
    provider = shapes.one_of(known.providers if known else None, "provider")
    return Keys(
        {
            "provider": Key(
                Value(provider, {"type": "string"}), "provider", "what makes the cluster (local)"
            ),
            "workers": Key(axis, "workers", "worker nodes (3); a list is an axis"),
            "node": Key(Keys(node), "node", "slots, memory, GPUs and limits of a worker"),
            "nodes": Key(limits.Nodes(), "nodes", "limits of single workers, by their names"),
            "site": Key(_properties(known), "site", "cluster-wide properties; a list is an axis"),
            **remote.keys(),
        }
    )


def _properties(known: KnownNames | None) -> Shape:
    return Properties(known.objection) if known else Properties()


def _workload(known: KnownNames | None) -> Shape:
    name = Value(shapes.one_of(known.workloads if known else None, "workload"), {"type": "string"})
    keys = {
        "name": Key(
            name, "name", "wordcount, or another of 'harness list workloads'", required=True
        ),
        "input": Key(
            Listed(_INPUT),
            "input_bytes",
            "a size such as 32 MiB, or one by its name, such as tiny, or a list",
            required=True,
        ),
        "seed": Key(_SEED, "seed", "of the generated input (1)"),
    }
    if known is None:
        return Keys(keys, rest=Listed(_ARGUMENT))
    return Keys(
        keys, rest=Listed(_ARGUMENT), allowed=lambda v: known.parameters.get(v.get("name", ""), ())
    )


def _predict(known: KnownNames | None) -> Shape:
    model = Value(shapes.one_of(known.models if known else None, "model"), {"type": "string"})
    return Keys(
        {
            "models": Key(
                Listed(model), "models", "names from 'harness list models', to score", required=True
            ),
            "profile_on": Key(
                Properties(),
                "profile_on",
                "values of axes: these cells feed the profiles and are never scored",
                required=True,
            ),
        }
    )


def _check_schema(tree: Entries) -> None:
    """Refuse a file of another format at once: what else is wrong with it would mislead."""
    node = tree.entries.get("schema")
    if isinstance(node, Scalar) and type(node.value) is int and node.value != SCHEMA:
        raise SpecError(
            f"schema {shown(node.text)} is not one that this harness reads; it reads {SCHEMA}",
            where=str(node.at),
            fix=f"use the harness that this file was written for, or write schema {SCHEMA}",
        )
