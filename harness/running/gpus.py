"""What the GPUs of a cluster's nodes are, as the nodes tell it before the first trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from harness.clusters.gpus import Devices, find_devices, find_on, here
from harness.clusters.host import Host
from harness.records.trial import ClusterSpec
from harness.store import Run

ENTRY = "gpus_found"  # of the manifest
MACHINE = "machine"  # stands for all nodes that are on this one
_MOST_HOSTS = 32


class GpuCluster(Protocol):
    """What asking for the GPUs of its nodes takes of a cluster."""

    @property
    def hosts(self) -> Sequence[Host]:
        """The nodes, master first."""
        ...

    @property
    def watched(self) -> Sequence[Host] | None:
        """`None`: all nodes are on this machine."""
        ...


def keep_gpus(run: Run, spec: ClusterSpec, cluster: GpuCluster) -> list[str]:
    """
    Write into the manifest of *run* what GPUs the workers of *cluster* have, where they are to.

    Workers on this machine share its devices: they are described once.  Workers without a door are
    not asked.  Answers a sentence for each that has fewer devices than it offers, or lost some; of
    this machine that was said before (`harness.running.fitness`).
    """
    if not spec.node.gpus:
        return []
    found = _found(cluster)
    if found:
        told = {name: devices.described() for name, devices in found.items()}
        run.manifest({ENTRY: run.manifest().get(ENTRY, {}) | told})
    return [
        f"the GPUs of {name} may not work: {spec.node.gpus} offered,"
        f" {len(devices.gpus) or 'none'} found{f' ({devices.said})' if devices.said else ''}"
        for name, devices in found.items()
        if name != MACHINE and (devices.said or len(devices.gpus) < spec.node.gpus)
    ]


def _found(cluster: GpuCluster) -> Mapping[str, Devices]:
    """Devices by the worker's name, or of this machine; all workers are asked at once."""
    if cluster.watched is None:
        return {MACHINE: find_devices(here)}
    workers = cluster.hosts[1:]
    if not workers:
        return {}
    with ThreadPoolExecutor(min(len(workers), _MOST_HOSTS)) as pool:
        return dict(zip((w.name for w in workers), pool.map(find_on, workers), strict=True))
