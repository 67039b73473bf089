"""``harness list``: what this harness knows by name."""

from __future__ import annotations

import inspect

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from harness.cli.console import print_json, table

if TYPE_CHECKING:
    from harness.workloads.base import Workload

# Kind -> where its dictionary stands.
KINDS = {
    "workloads": ("harness.workloads", "WORKLOADS"),
    "models": ("harness.models", "MODELS"),
    "providers": ("harness.providers", "PROVIDERS"),
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

    Of workloads their sizes by name (write 'input: tiny') and their further arguments, too.

    \b
    Example:
        harness list models
        harness list workloads --json
    """
    module, name = KINDS[kind]
    known = getattr(import_module(module), name)
    if as_json:
        print_json([_document(kind, key, value) for key, value in known.items()])
        return
    table(["name", "description"], [(key, describe(value)) for key, value in known.items()])
    if kind == "workloads":
        _show_arguments(known)


def describe(value: object) -> str:
    """One line about *value*: its ``description``, or else the first line of its docstring."""
    text = getattr(value, "description", "") or inspect.getdoc(value) or ""
    return str(text).strip().partition("\n")[0]


def _document(kind: str, name: str, value: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "description": describe(value)}
    if kind == "metrics":
        told |= {"unit": value.unit, "best": value.best}
    if kind == "workloads":
        told["scales"] = dict(value.scales)
        told["parameters"] = [_parameter(key, each) for key, each in value.parameters.items()]
    return told


def _parameter(name: str, parameter: Any) -> dict[str, Any]:
    """Bounds that are infinite have no word in JSON, and none are needed."""
    ends = {"least": parameter.least, "most": parameter.most}
    return {
        "name": name,
        "default": parameter.default,
        "meaning": parameter.meaning,
        "choices": list(parameter.choices),
        **{key: None if abs(end) == float("inf") else end for key, end in ends.items()},
    }


def _show_arguments(known: dict[str, Workload]) -> None:
    from harness.units import format_bytes

    names = list(dict.fromkeys(scale for w in known.values() for scale in w.scales))
    sizes = [
        (name, *(format_bytes(w.scales[s]) if s in w.scales else "" for s in names))
        for name, w in known.items()
    ]
    click.echo()
    table(["name", *names], sizes, title="sizes by name")
    arguments = [
        (name, key, str(p.default), _range(p), p.meaning)
        for name, w in known.items()
        for key, p in w.parameters.items()
    ]
    if arguments:
        click.echo()
        table(["name", "argument", "default", "values", "meaning"], arguments, title="arguments")


def _range(parameter: Any) -> str:
    if parameter.choices:
        return ", ".join(parameter.choices)
    low, high = parameter.least, parameter.most
    ends = [f"from {low:g}"] * (low > float("-inf")) + [f"to {high:g}"] * (high < float("inf"))
    return " ".join(ends)
