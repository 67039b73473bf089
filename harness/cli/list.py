"""``harness list``: what this harness knows by name."""

from __future__ import annotations

import inspect

from importlib import import_module

import click

from harness.cli.console import print_json, table

# Kind -> where its dictionary stands.
KINDS = {
    "workloads": ("harness.workloads", "WORKLOADS"),
    "models": ("harness.models", "MODELS"),
    "providers": ("harness.clusters", "PROVIDERS"),
    "metrics": ("harness.scoring", "METRICS"),
    "reports": ("harness.reports", "REPORTS"),
}


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar=f"[{'|'.join(KINDS)}]")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects.")
def command(kind: str, as_json: bool) -> None:
    """
    List the workloads, models, providers, metrics or reports that there are.

    \b
    Example:
        harness list models
        harness list workloads --json
    """
    module, name = KINDS[kind]
    known = getattr(import_module(module), name)
    rows = [{"name": key, "description": describe(value)} for key, value in known.items()]
    if as_json:
        print_json(rows)
    else:
        table(["name", "description"], [tuple(row.values()) for row in rows])


def describe(value: object) -> str:
    """One line about *value*: its ``description``, or else the first line of its docstring."""
    text = getattr(value, "description", "") or inspect.getdoc(value) or ""
    return str(text).strip().partition("\n")[0]
