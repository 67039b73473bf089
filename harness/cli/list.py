"""``harness list``: what this harness knows by name."""

from __future__ import annotations

import inspect
import math

from importlib import import_module
from typing import Any

import click

from harness.cli.console import print_json, show_table

# Kind -> where its dictionary stands.
KINDS = {
    "workloads": ("harness.workloads", "WORKLOADS"),
    "models": ("harness.models", "MODELS"),
    "providers": ("harness.providers", "PROVIDERS"),
    "metrics": ("harness.scoring", "METRICS"),
    "reports": ("harness.reports", "REPORTS"),
}


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar=f"[{'|'.join(KINDS)}]")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
def list_names(kind: str, as_json: bool) -> None:
    """
    List the available workloads, models, providers, metrics or reports.

    Workloads are shown with their size names (as in 'input: tiny') and their other arguments.

    \b
    Example:
        harness list models
        harness list workloads --json
    """
    from pydantic_core import to_jsonable_python

    from harness.units import format_bytes

    module, attribute = KINDS[kind]
    entries: dict[str, Any] = getattr(import_module(module), attribute)
    if as_json:
        documents = []
        for name, entry in entries.items():
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
            documents.append(document)
        print_json(documents)
        return
    rows = [(key, describe(entry)) for key, entry in entries.items()]
    show_table(["name", "description"], rows)
    if kind != "workloads":
        return
    scales = list(dict.fromkeys(scale for entry in entries.values() for scale in entry.scales))
    sizes = [
        (name, *(format_bytes(each.scales[key]) if key in each.scales else "" for key in scales))
        for name, each in entries.items()
    ]
    click.echo()
    show_table(["name", *scales], sizes, title="sizes by name")
    arguments = []
    for name, workload in entries.items():
        for key, parameter in workload.parameters.items():
            values = ", ".join(parameter.choices)
            if not values:
                ends = [f"from {parameter.least:g}"] * (parameter.least > -math.inf)
                ends += [f"to {parameter.most:g}"] * (parameter.most < math.inf)
                values = " ".join(ends)
            arguments.append((name, key, str(parameter.default), values, parameter.meaning))
    click.echo()
    columns = ["name", "argument", "default", "values", "meaning"]
    show_table(columns, arguments, title="arguments")


def describe(value: object) -> str:
    """One line about *value*: its ``description``, or else the first line of its docstring."""
    text = getattr(value, "description", "") or inspect.getdoc(value) or ""
    return str(text).strip().partition("\n")[0]
