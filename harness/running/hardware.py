"""Hardware made on purpose: which limits of nodes a provider cannot set."""

from __future__ import annotations

from collections.abc import Iterator

from harness.clusters import PROVIDERS
from harness.records.trial import ClusterSpec, Hardware


def unlimitable(cluster: ClusterSpec) -> Iterator[str]:
    """Say which limits of *cluster* its provider cannot set: nothing is ignored silently."""
    can: frozenset[str] = getattr(PROVIDERS[cluster.provider], "limitable", frozenset())
    for field in Hardware.model_fields:
        every = cluster.node.limits()[field] is not None
        single = any(node.limits()[field] is not None for node in cluster.nodes.values())
        if (every or single) and field not in can:
            name = field.partition("_")[0]
            key = f"cluster.node.{name}" if every else "cluster.nodes"
            yield f"{key}: provider {cluster.provider} cannot limit the {name} of its nodes"
