"""Hardware made on purpose: limits that a provider cannot set, and what nodes became."""

from __future__ import annotations

from collections.abc import Mapping

from harness.providers import PROVIDERS
from harness.providers.limits.calibrate import unsupported_limits
from harness.records.hardware import ENTRY, Limit, LimitedCluster, format_control
from harness.records.trial import ClusterSpec
from harness.store import Run

DISK_PART = "data"  # of a node's folder: HDFS blocks lie there, on the disk that is limited


def refused_limits(cluster: ClusterSpec) -> list[str]:
    """Say which limits of *cluster* its provider cannot set: nothing is ignored silently."""
    return unsupported_limits(cluster, PROVIDERS[cluster.provider].limitable)


def keep_limits(
    run: Run, spec: ClusterSpec, limits: Mapping[str, Mapping[str, Limit]], now_s: float
) -> list[str]:
    """
    Write into the manifest of *run* what the nodes of a cluster that was started now are.

    Answers a sentence for each limit that tasks do not feel.
    """
    if not limits:
        return []
    found = LimitedCluster.model_validate(
        {"cluster": spec.id, "measured_s": now_s, "nodes": limits}
    )
    known = run.manifest().get(ENTRY, [])
    run.manifest({ENTRY: [*known, found.model_dump(mode="json", exclude_none=True)]})
    return [
        f"the limit of {node}'s disk is not felt by what waits for nothing: written at"
        f" {format_control(dial, limit.buffered_write or 0)},"
        f" where {format_control(dial, limit.requested)} was asked"
        for node, dials in found.nodes.items()
        for dial, limit in dials.items()
        if not limit.is_enforced
    ]
