"""Providers: the only code that starts and stops anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.clusters.local import LocalCluster

    PROVIDERS: dict[str, type[LocalCluster]]


def __getattr__(name: str) -> Any:
    """`PROVIDERS`, imported when asked for: ``python -m harness.clusters.home`` needs none."""
    if name != "PROVIDERS":
        raise AttributeError(name)
    from harness.clusters.local import LocalCluster

    return {"local": LocalCluster}
