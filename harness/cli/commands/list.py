"""``harness list``: what this harness knows by name."""

from __future__ import annotations

import inspect
import math

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from harness.base.units import format_bytes
from harness.cli.console.command import command
from harness.cli.console.options import json_option
from harness.cli.console.present import Part, Rows, present

if TYPE_CHECKING:
    from harness.clusters.workloads.base import Parameter, Workload


def _workloads() -> Mapping[str, Any]:
    from harness.clusters.workloads import WORKLOADS

    return WORKLOADS


def _models() -> Mapping[str, Any]:
    from harness.models import MODELS

    return MODELS


def _providers() -> Mapping[str, Any]:
    from harness.clusters import PROVIDERS

    return PROVIDERS


def _metrics() -> Mapping[str, Any]:
    from harness.scoring import METRICS

    return METRICS


def _reports() -> Mapping[str, Any]:
    from harness.core.reports import REPORTS

    return REPORTS


# Kind -> what imports its dictionary, when that is wanted.
KINDS: dict[str, Callable[[], Mapping[str, Any]]] = {
    "workloads": _workloads,
    "models": _models,
    "providers": _providers,
    "metrics": _metrics,
    "reports": _reports,
}


@command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar=f"[{'|'.join(KINDS)}]")
@json_option
def list_names(kind: str, as_json: bool) -> None:
    """
    List the available workloads, models, providers, metrics or reports.

    Workloads are shown with their size names (as in 'input: tiny') and their other arguments.

    \b
    Example:
        harness list models
        harness list workloads --json
    """
    entries = KINDS[kind]()
    documents = [entry_document(kind, name, entry) for name, entry in entries.items()]
    present(documents, shown_entries(kind, entries), as_json=as_json)


def entry_document(kind: str, name: str, entry: Any) -> dict[str, Any]:
    """What programs are told of *entry*, which is of the *kind*."""
    from pydantic_core import to_jsonable_python

    document: dict[str, Any] = {"name": name, "description": describe(entry)}
    if kind == "metrics":
        document |= {"unit": entry.unit, "best": entry.best}
    if kind == "workloads":
        document["scales"] = dict(entry.scales)
        # Infinite bounds have no word in JSON, and none is needed.
        document["parameters"] = [
            {"name": key, **to_jsonable_python(parameter, inf_nan_mode="null")}
            for key, parameter in entry.parameters.items()
        ]
    return document


def shown_entries(kind: str, entries: Mapping[str, Any]) -> Iterator[Part]:
    """Names with their descriptions; of workloads their sizes and arguments, too."""
    yield Rows(["name", "description"], [(key, describe(entry)) for key, entry in entries.items()])
    if kind == "workloads":
        yield ""
        yield size_table(entries)
        yield ""
        yield argument_table(entries)


def size_table(workloads: Mapping[str, Workload]) -> Rows:
    """Bytes of each name of a size, by workload."""
    scales = dict[str, None]()
    for workload in workloads.values():
        scales |= dict.fromkeys(workload.scales)
    rows = []
    for name, workload in workloads.items():
        sizes = (workload.scales.get(scale) for scale in scales)
        rows.append((name, *("" if size is None else format_bytes(size) for size in sizes)))
    return Rows(["name", *scales], rows, title="sizes by name")


def argument_table(workloads: Mapping[str, Workload]) -> Rows:
    """Further arguments of each workload."""
    rows = []
    for name, workload in workloads.items():
        for key, parameter in workload.parameters.items():
            values = allowed_values(parameter)
            rows.append((name, key, str(parameter.default), values, parameter.meaning))
    return Rows(["name", "argument", "default", "values", "meaning"], rows, title="arguments")


def allowed_values(parameter: Parameter) -> str:
    """The choices of a parameter, or the ends of its range; nothing where it may be anything."""
    if parameter.choices:
        return ", ".join(parameter.choices)
    ends = list[str]()
    if parameter.least > -math.inf:
        ends.append(f"from {parameter.least:g}")
    if parameter.most < math.inf:
        ends.append(f"to {parameter.most:g}")
    return " ".join(ends)


def describe(value: object) -> str:
    """One line about *value*: its ``description``, or else the first line of its docstring."""
    text = getattr(value, "description", "") or inspect.getdoc(value) or ""
    return str(text).strip().partition("\n")[0]
