"""
Providers: the only code that starts and stops anything.

`attach` and `remove` act on all clusters, whichever provider made them.
"""

from __future__ import annotations

import time

from harness.base.errors import HarnessError
from harness.base.records.trial import Tracing
from harness.clusters import state
from harness.clusters.ansible.cluster import AnsibleCluster
from harness.clusters.base import Cluster
from harness.clusters.docker.cluster import DockerCluster
from harness.clusters.existing.cluster import ExistingCluster
from harness.clusters.local.cluster import LocalCluster

PROVIDERS: dict[str, type[Cluster]] = {
    "local": LocalCluster,
    "docker": DockerCluster,
    "ansible": AnsibleCluster,
    "existing": ExistingCluster,
}


def tracing_of(provider: type[Cluster], asked: Tracing) -> Tracing:
    """The tracing that tasks get on a *provider*: logs, where it puts no tracer on the nodes."""
    is_given = asked.mode in provider.traces
    return asked if is_given else asked.model_copy(update={"mode": "logs"})


def attach(name: str) -> Cluster:
    """The cluster of that name, started by whichever process; see `Cluster.attach`."""
    return _provider_of(name, None).attach(name)


def remove(name: str, provider: str | None = None) -> bool:
    """
    Take a cluster down and remove all of it; `False`: there was none.  Safe to repeat.

    *provider* removes it where no file says which one made it.
    """
    return _provider_of(name, provider).remove(name)


def remove_orphan(name: str, token: str) -> None:
    """Remove what its owner of that *token* left, for a while: hosts may be away just now."""
    for pause_s in (5, 10, 20, 40, 80, 160, 320):
        try:
            _provider_of(name, None).remove(name, token)
        except state.NotOursError:
            return  # another cluster has the name by now
        except (HarnessError, OSError):
            time.sleep(pause_s)
        else:
            return


def _provider_of(name: str, default: str | None) -> type[Cluster]:
    return PROVIDERS[state.provider_of(name) or default or "local"]
