"""
What a shell completes besides commands, options and files: names that only the harness knows.

Used as ``shell_complete`` of options and arguments.  Each imports what it needs when it is called,
and returns nothing where that fails: a shell has no place for an error.
"""

from __future__ import annotations

import json

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from harness.base.errors import HarnessError

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# Below these keys of an experiment stand properties of Hadoop.
_HEADS = ("configuration.", "cluster.site.")


def completes(
    names: Callable[[click.Context, str], Iterable[str]], *, or_files: bool = False
) -> Complete:
    """
    Complete from *names*, which are told what is typed; a failure completes nothing.

    *or_files*: where no name begins as what is typed, the shell completes files.
    """

    def complete(
        context: click.Context, _parameter: click.Parameter, typed: str
    ) -> list[CompletionItem]:
        items = list[CompletionItem]()
        with suppress(HarnessError, OSError):
            for name in names(context, typed):
                if name.startswith(typed):
                    items.append(CompletionItem(name))
        if not items and or_files:
            items.append(CompletionItem(typed, type="file"))
        return items

    return complete


def _clusters(_context: click.Context, _typed: str) -> Iterable[str]:
    """Names of clusters that are up, or left something behind."""
    from harness.clusters.state import known_names

    return known_names()


def _experiments(_context: click.Context, _typed: str) -> Iterable[str]:
    """Files of the folder of experiments."""
    return sorted(map(str, Path("experiments").glob("*.yaml")))


def _runs(context: click.Context, typed: str) -> Iterable[str]:
    """Ids of all runs, and experiment files."""
    from harness.core.store import Store

    ids = [run.id for run in Store(context.params.get("results_dir") or Path("results")).all_runs()]
    return [*ids, *_experiments(context, typed)]


def _trials(context: click.Context, _typed: str) -> Iterable[str]:
    """Ids of all trials of the results folder."""
    from harness.core.store import Store

    return Store(context.params.get("results_dir") or Path("results")).trial_ids()


def _models(_context: click.Context, typed: str) -> Iterable[str]:
    """Models, the last one of several with commas between them."""
    from harness.models import MODELS

    return _behind_comma(typed, MODELS)


def _workloads(_context: click.Context, typed: str) -> Iterable[str]:
    """Workloads, the last one of several with commas between them."""
    from harness.clusters.workloads import WORKLOADS

    return _behind_comma(typed, WORKLOADS)


def _behind_comma(typed: str, names: Iterable[str]) -> Iterator[str]:
    """*names*, each behind those that are *typed* already."""
    complete_names, comma, _ = typed.rpartition(",")
    for name in names:
        yield f"{complete_names}{comma}{name}"


def _properties() -> list[str]:
    """Names of Hadoop's properties."""
    from harness.base.hadoop.properties import known_names

    return sorted(known_names())


def _experiment_keys(_context: click.Context, typed: str) -> Iterator[str]:
    """Keys of an experiment file as ``--set`` takes them, and below some the properties."""
    from harness.core import experiment

    schema_file = files(experiment) / "experiment.schema.json"
    schema = json.loads(schema_file.read_text("utf-8"))
    yield from _keys_below(schema, schema, "")
    for head in _HEADS:
        if typed.startswith(head):
            yield from (f"{head}{name}=" for name in _properties())


def _keys_below(schema: Mapping[str, Any], record: Mapping[str, Any], path: str) -> Iterator[str]:
    """Keys of *record*, a part of *schema*, which stands at *path*; of a list the first entry's."""
    for name, entry in record["properties"].items():
        key = f"{path}{name}"
        items = entry.get("items", {})
        if "$ref" in entry:
            yield from _keys_below(schema, _definition(schema, entry), f"{key}.")
        elif "$ref" in items:
            yield from _keys_below(schema, _definition(schema, items), f"{key}.0.")
        elif isinstance(entry.get("additionalProperties"), dict):
            yield f"{key}."
        else:
            yield f"{key}="


def _definition(schema: Mapping[str, Any], entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record that *entry* of *schema* refers to."""
    definition: Mapping[str, Any] = schema["$defs"][entry["$ref"].rpartition("/")[2]]
    return definition


def _settings(_context: click.Context, typed: str) -> Iterator[str]:
    """What ``--setting`` changes of a job: axes, and properties once something is typed."""
    from harness.base.records.trial import NodeSpec
    from harness.clusters.workloads import WORKLOADS

    fields = (
        field.removesuffix("_per_s").removesuffix("_bytes") for field in NodeSpec.model_fields
    )
    names = ["input", "seed", "workers", *fields]
    for workload in WORKLOADS.values():
        names += workload.parameters
    if typed:
        names += _properties()
    for name in dict.fromkeys(names):
        yield f"{name}="


clusters = completes(_clusters)
experiments = completes(_experiments, or_files=True)
runs = completes(_runs, or_files=True)
trials = completes(_trials)
models = completes(_models)
workloads = completes(_workloads)
experiment_keys = completes(_experiment_keys)
settings = completes(_settings)


@add_completion_class
class _Bash(BashComplete):
    """As click's, but a key is completed without a space behind it: its value follows at once."""

    source_template = BashComplete.source_template.replace(
        "    return 0\n",
        "    [[ ${COMPREPLY[0]-} == *[=.] ]] && compopt -o nospace\n\n    return 0\n",
    )
