"""
Settings that make nodes what was asked: set, measure, correct, and again.

What a kernel is told and what a task gets differ: headers take their part of a network's rate, a
burst adds to it, a quota loses what is left of its periods.  So the setting is multiplied by what
was asked over what was measured, until all nodes are near enough, all of them loaded at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from harness.errors import ClusterError
from harness.records.hardware import CONTROLS, DISK_WRITE, Limit, format_control, requested_controls
from harness.records.trial import ClusterSpec

ROUNDS = 5
# Of what was asked.  Further off, the setting is not what holds a node back: others on the machine
# are, and when they are gone the node would be faster than anybody asked.
MOST_CORRECTION = 1.25

Dials = dict[str, float]


class Limiter(Protocol):
    """What sets dials on the nodes of a cluster, and measures them; nodes go by their names."""

    def set(self, settings: Mapping[str, Dials]) -> None:
        """Set dials of nodes; others stay as they are."""
        ...

    def measure(self, field: str, asked: Mapping[str, Dials]) -> dict[str, Dials]:
        """Measure the dials of *field* on all nodes of *asked* at once, each loaded."""
        ...

    def unwaited(self, asked: Mapping[str, Dials]) -> dict[str, float]:
        """Measure what the disks of the nodes of *asked* take while nobody waits for them."""
        ...


def asked_of(spec: ClusterSpec) -> dict[str, Dials]:
    """What each worker that is limited is asked to be."""
    workers = [f"worker{number}" for number in range(1, spec.workers + 1)]
    asked = {worker: requested_controls(spec.hardware(worker)) for worker in workers}
    return {worker: dials for worker, dials in asked.items() if dials}


def unlimitable(spec: ClusterSpec, limitable: AbstractSet[str]) -> list[str]:
    """Say what of *spec* its provider cannot set, which sets *limitable* fields of `Hardware`."""
    found = []
    for field in CONTROLS.keys() - limitable:
        name = field.partition("_")[0]
        every = spec.node.limits()[field] is not None
        if every or any(own.limits()[field] is not None for own in spec.nodes.values()):
            key = f"cluster.node.{name}" if every else "cluster.nodes"
            found.append(f"{key}: provider {spec.provider} cannot limit the {name} of its nodes")
    return sorted(found)


def correct(
    asked: Mapping[str, Dials], limiter: Limiter, *, where: str
) -> dict[str, dict[str, Limit]]:
    """
    Set what is *asked* of each node, and correct it until it is measured so.

    `ClusterError` names the nodes that cannot be made so, with the best that was measured.
    """
    found: dict[str, dict[str, Limit]] = {node: {} for node in asked}
    for field, dials in CONTROLS.items():
        part = {n: {d: v for d, v in of.items() if d in dials} for n, of in asked.items()}
        part = {node: values for node, values in part.items() if values}
        if part:
            for node, limits in _corrected(field, part, limiter, where).items():
                found[node] |= limits
    disks = {node: dials for node, dials in asked.items() if DISK_WRITE in dials}
    for node, rate in (limiter.unwaited(disks) if disks else {}).items():
        limit = found[node][DISK_WRITE]
        found[node][DISK_WRITE] = limit.model_copy(update={"buffered_write": rate})
    return found


def _corrected(
    field: str, asked: Mapping[str, Dials], limiter: Limiter, where: str
) -> dict[str, dict[str, Limit]]:
    """Correct the dials of one *field*, on all nodes together."""
    settings, seen = {node: dict(dials) for node, dials in asked.items()}, []
    for _ in range(ROUNDS):
        limiter.set(settings)
        measured = limiter.measure(field, asked)
        limits = {n: _limits(asked[n], settings[n], measured[n]) for n in asked}
        if all(limit.is_met for node in limits.values() for limit in node.values()):
            return limits
        seen.append(limits)
        settings = {
            node: {dial: _next(limit) for dial, limit in dials.items()}
            for node, dials in limits.items()
        }
    raise _missed(seen, where)


def _limits(asked: Dials, settings: Dials, measured: Dials) -> dict[str, Limit]:
    return {
        dial: Limit(requested=value, setting=settings[dial], measured=measured[dial])
        for dial, value in asked.items()
    }


def _next(limit: Limit) -> float:
    """Return the setting to try next: the same where it is right."""
    if limit.is_met:
        return limit.setting
    least, most = limit.requested / MOST_CORRECTION, limit.requested * MOST_CORRECTION
    return min(most, max(least, limit.setting * limit.requested / limit.measured))


def _missed(seen: list[dict[str, dict[str, Limit]]], where: str) -> ClusterError:
    """Say what was asked, and the nearest to it that was measured in all rounds."""
    said = []
    for node, dials in seen[-1].items():
        for dial in dials:
            tried = [limits[node][dial] for limits in seen]
            best = min(tried, key=lambda limit: abs(limit.measured / limit.requested - 1))
            if not best.is_met:
                what, got = (
                    format_control(dial, best.requested),
                    format_control(dial, best.measured),
                )
                said.append(f"{node}, {dial}: {what} asked, {got} measured at best")
    if not said:
        said.append("measurements vary too much from one to the next")
    return ClusterError(
        "nodes cannot be made what was asked: " + "; ".join(said),
        where=f"{where}, {len(seen)} settings tried",
        fix="ask for less in cluster.node, start fewer workers, or wait for a quiet machine",
    )
