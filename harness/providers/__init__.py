"""
Providers: the only code that starts and stops anything.

`attach`, `names` and `remove` speak of all clusters, whichever provider made them.
"""

from __future__ import annotations

import sys

from typing import TYPE_CHECKING, Any

from harness.errors import ClusterError

if TYPE_CHECKING:
    from harness.providers.base import Cluster

    PROVIDERS: dict[str, type[Cluster]]


def __getattr__(name: str) -> Any:
    """`PROVIDERS`, imported when asked for: ``python -m harness.hadoop_home.home`` needs none."""
    if name != "PROVIDERS":
        raise AttributeError(name)
    from harness.providers.ansible.cluster import AnsibleCluster
    from harness.providers.docker.cluster import DockerCluster
    from harness.providers.existing.cluster import ExistingCluster
    from harness.providers.local.cluster import LocalCluster

    return {
        "local": LocalCluster,
        "docker": DockerCluster,
        "ansible": AnsibleCluster,
        "existing": ExistingCluster,
    }


def names() -> list[str]:
    """Names of all clusters that are up, or left something behind."""
    from harness.providers.state import known_names

    return known_names()


def attach(name: str) -> Cluster:
    """The cluster of that name, started by whichever process; see `Cluster.attach`."""
    return _provider(name).attach(name)


def remove(name: str, provider: str | None = None) -> bool:
    """
    Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat.

    *provider* is asked where no file tells whose cluster it is.
    """
    return _provider(name, provider).remove(name)


def _provider(name: str, otherwise: str | None = None) -> type[Cluster]:
    from harness.providers.state import provider_of

    known: dict[str, type[Cluster]] = sys.modules[__name__].PROVIDERS
    provider = provider_of(name) or otherwise or "local"
    if provider not in known:
        raise ClusterError(
            f"cluster {name!r} was made by provider {provider!r:.80}, which is not known here",
            where="the file `provider` in the cluster's folder",
            fix="take it down with the version of the harness that started it",
        )
    return known[provider]
