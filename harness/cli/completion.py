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

from harness.errors import HarnessError

Complete = Callable[[click.Context, click.Parameter, str], list[str]]

# Keys that can be overridden, less those below workloads, whose names stand in the file.
_KEYS = (
    "name=", "question=", "repeat=", "warmup=", "seed=", "trial_limit=", "design=", "trace=",
    "cluster.provider=", "cluster.workers=", "cluster.node.map_slots=",
    "cluster.node.reduce_slots=", "cluster.node.task_memory=", "cluster.node.gpus=",
    "cluster.node.cores=", "cluster.node.disk=", "cluster.node.network=", "cluster.node.memory=",
    "workloads.0.input=", "predict.models=",
)  # fmt: skip
_HEADS = ("configuration.", "cluster.site.")  # a property of Hadoop follows


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
    from harness.providers.state import known_names

    return known_names()


@completes
def trials(context: click.Context) -> Iterable[str]:
    """Ids of all trials of the results folder."""
    from harness.store import Store

    return Store(context.params.get("results_dir") or Path("results")).trial_ids()


@completes
def runs(context: click.Context) -> Iterable[str]:
    """Ids of all runs, and experiment files."""
    from harness.store import Store

    ids = [run.id for run in Store(context.params.get("results_dir") or Path("results")).all_runs()]
    return [*ids, *map(str, Path("experiments").glob("*.yaml"))]


def overrides(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Keys of an experiment, and behind ``configuration.`` the properties of Hadoop."""
    from harness.hadoop.properties import known_names

    for head in _HEADS:
        if typed.startswith(head):
            keys = (f"{head}{name}=" for name in sorted(known_names()))
            return [key for key in keys if key.startswith(typed)]
    return [key for key in (*_KEYS, *_HEADS) if key.startswith(typed)]
