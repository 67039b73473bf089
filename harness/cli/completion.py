"""
What a shell completes besides commands, options and files: names that only the harness knows.

Used as ``shell_complete`` of options and arguments.  Each imports what it needs when it is asked,
and answers nothing where that fails: a shell has no place for an error.
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
    "cluster.node.cores=", "cluster.node.disk=", "cluster.node.network=",
    "workloads.0.input=", "predict.models=",
)  # fmt: skip
_HEADS = ("configuration.", "cluster.site.")  # a property of Hadoop follows


def _from(names: Callable[[click.Context], Iterable[str]]) -> Complete:
    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        with suppress(HarnessError, OSError):
            return [name for name in names(context) if name.startswith(begun)]
        return []

    return complete


def _providers(_context: click.Context) -> Iterable[str]:
    from harness.providers import PROVIDERS

    return list(PROVIDERS)


def _clusters(_context: click.Context) -> Iterable[str]:
    from harness.providers import names

    return names()


def _daemons(context: click.Context) -> Iterable[str]:
    """First words of the daemons' names: a blank would end what the shell completes."""
    from harness.providers import attach

    name = context.params.get("name") or next(iter(_clusters(context)), "default")
    return sorted({daemon.partition(" ")[0] for daemon in attach(name).daemon_logs(1)})


def _trials(context: click.Context) -> Iterable[str]:
    from harness.store import Store

    return Store(context.params.get("results_dir") or Path("results")).trial_ids()


def overrides(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Keys of an experiment, and behind ``configuration.`` the properties of Hadoop."""
    from harness.hadoop.names import known_names

    for head in _HEADS:
        if begun.startswith(head):
            return [f"{head}{n}=" for n in sorted(known_names()) if f"{head}{n}".startswith(begun)]
    return [key for key in (*_KEYS, *_HEADS) if key.startswith(begun)]


def policies(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """What ``--on-error`` takes."""
    return [word for word in ("skip", "stop", "retry:1", "retry:2") if word.startswith(begun)]


providers = _from(_providers)
clusters = _from(_clusters)
daemons = _from(_daemons)
trials = _from(_trials)
