"""
What a shell completes besides commands, options and files: names that only the harness knows.

Used as ``shell_complete`` of options and arguments.  Each imports what it needs when it is called,
and returns nothing where that fails: a shell has no place for an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import click

from harness.base.errors import HarnessError

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def completes(names: Callable[[click.Context], Iterable[str]]) -> Complete:
    """Complete from *names*; a failure completes nothing."""

    def complete(context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
        with suppress(HarnessError, OSError):
            return [name for name in names(context) if name.startswith(typed)]
        return []

    return complete


@completes
def clusters(_context: click.Context) -> Iterable[str]:
    """Names of clusters that are up, or left something behind."""
    from harness.clusters.state import known_names

    return known_names()


@completes
def trials(context: click.Context) -> Iterable[str]:
    """Ids of all trials of the results folder."""
    from harness.core.store import Store

    return Store(context.params.get("results_dir") or Path("results")).trial_ids()


@completes
def runs(context: click.Context) -> Iterable[str]:
    """Ids of all runs, and experiment files."""
    from harness.core.store import Store

    ids = [run.id for run in Store(context.params.get("results_dir") or Path("results")).all_runs()]
    return [*ids, *map(str, Path("experiments").glob("*.yaml"))]
