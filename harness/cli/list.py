"""``harness list``: what this harness knows by name."""

from __future__ import annotations

import inspect

from difflib import get_close_matches
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


class Kind(click.Choice[str]):
    """One of `KINDS`; the error offers the nearest."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give *value* back; usage error for anything else."""
        del param
        if value in KINDS:
            return value
        near = get_close_matches(value, KINDS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(KINDS)}"
        raise click.UsageError(f"Nothing called {value!r} can be listed. {hint}", ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Name all that could have been meant."""
        del param, ctx
        return f"Choose from {', '.join(KINDS)}"


@click.command("list")
@click.argument("kind", type=Kind(list(KINDS)), metavar=f"[{'|'.join(KINDS)}]")
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
