"""
What trials ran on, as opposed to what they were planned with.

A trial's id holds the versions of this machine: nothing else is known before nodes are there.  The
nodes may have others.  What they have stands in each trial and in the manifest, and one run is not
continued on nodes that have changed meanwhile: its trials could not be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from harness.errors import DataError
from harness.records.trial import Trial, Versions, trial_id
from harness.store import Run

ENTRY = "nodes"  # of the manifest
_DECIDES = ("hadoop", "java")


class RanOn(Protocol):
    """Versions on one node; empty where it does not tell."""

    @property
    def hadoop(self) -> str:
        """Of Hadoop."""
        ...

    @property
    def java(self) -> str:
        """Of the Java of its tasks."""
        ...

    @property
    def kernel(self) -> str:
        """Of its kernel."""
        ...


def keep_versions(run: Run, planned: Versions, told: Mapping[str, RanOn]) -> tuple[Versions, str]:
    """
    Write down what the nodes *told*; answer the versions and the kernel of the trials there.

    `DataError` where trials of the run ran on another Hadoop or Java of the same node.
    """
    known = run.manifest().get(ENTRY)
    if isinstance(known, dict) and any(_is_of(r.trial, planned) for r in run.trials().values()):
        _refuse_others(run, known, told)
    found = {name: agreed({n: getattr(r, name) for n, r in told.items()}) for name in _NAMES}
    of_nodes = {name: _text(value) for name, value in found.items()}
    versions = planned.model_copy(
        update={name: of_nodes[name] or "unknown" for name in _DECIDES} if told else {}
    )
    run.manifest({"versions": versions.model_dump(), ENTRY: found})
    return versions, of_nodes["kernel"]


_NAMES = (*_DECIDES, "kernel")


def _is_of(trial: Trial, planned: Versions) -> bool:
    """Whether a trial is one of the plan: those of other versions have other ids."""
    return trial.id == trial_id(trial.cell, trial.repetition, planned)


def agreed(by_node: Mapping[str, str]) -> str | dict[str, str]:
    """One value where all nodes have the same, by node otherwise."""
    values = set(by_node.values())
    return values.pop() if len(values) == 1 else dict(by_node)


def _text(value: str | Mapping[str, str]) -> str:
    """
    The same as one text.

    >>> _text({"worker1": "17.0.15", "worker2": ""})
    'worker1: 17.0.15, worker2: unknown'
    """
    if isinstance(value, str):
        return value
    return ", ".join(f"{node}: {each or 'unknown'}" for node, each in sorted(value.items()))


def _refuse_others(run: Run, known: Mapping[str, Any], told: Mapping[str, RanOn]) -> None:
    for name in _DECIDES:
        for node, one in told.items():
            before, now = _of_node(known.get(name), node), getattr(one, name)
            if before and now and before != now:
                raise DataError(
                    f"{node} has {name.capitalize()} {now} now, and trials of this run ran on"
                    f" {before}",
                    where=str(run.path),
                    fix="measure anew: the same command with --new",
                )


def _of_node(value: Any, node: str) -> str:
    found = value.get(node) if isinstance(value, dict) else value
    return found if isinstance(found, str) else ""
