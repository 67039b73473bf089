"""What the nodes of a cluster achieve, measured once in a run and written into its manifest."""

from __future__ import annotations

from collections.abc import Callable

from harness.base.errors import HarnessError
from harness.base.records.trial import ClusterSpec
from harness.clusters.base import Cluster
from harness.clusters.monitor.rates import (
    MACHINE,
    describe_gpus,
    find_gpus,
    measure_micro,
    measure_worker,
)
from harness.clusters.survey import Devices
from harness.core.store import Run


def record_rates(run: Run, cluster: Cluster, say: Callable[[str], None]) -> None:
    """
    Measure a worker's rates, once in *run*, and write them into its manifest.

    Where that fails *say* gets a warning: models report by themselves which statistic is missing.
    """
    if run.read_manifest().rates:
        return
    worker = next(iter(cluster.hosts[1:]), None)
    if worker is None:
        say("warning: rates are not measured: the cluster's nodes cannot be reached from here")
        return
    try:
        rates = measure_worker(cluster, worker)
    except HarnessError as error:
        say(f"warning: {error.what}")
    else:
        run.update_manifest(rates={worker.name: rates})


def record_micro(run: Run, cluster: Cluster, say: Callable[[str], None]) -> None:
    """
    Measure disks and networks of all workers at once, once in *run*, and write them down.

    Where that fails *say* gets a warning: costs are then known from jobs alone.
    """
    if run.read_manifest().micro:
        return
    if not cluster.hosts[1:]:
        say("warning: nothing is measured without jobs: the nodes cannot be reached from here")
        return
    try:
        measured = measure_micro(cluster)
    except HarnessError as error:
        say(f"warning: {error.what}")
    else:
        run.update_manifest(micro=measured)


def record_gpus(run: Run, cluster_spec: ClusterSpec, cluster: Cluster) -> list[str]:
    """
    Write into the manifest of *run* what GPUs the workers of *cluster* have, where they offer some.

    Workers on this machine share its devices: they are described once.  Workers that cannot be
    reached are left out.  With each description are the rates of its copies, or the reason why
    there are none.  Returns a sentence for each worker that has fewer devices than it offers, or
    lost some; of this machine that was said before (`harness.core.run.preflight`).
    """
    if not cluster_spec.node.gpus:
        return []
    offered_count = cluster_spec.node.gpus
    node_devices = find_gpus(cluster)
    described_before = run.read_manifest().gpus_found
    described = {}
    warnings = []
    for node_name, devices in node_devices.items():  # in turn: nodes may share a machine
        described_gpus = described_before.get(node_name)
        described[node_name] = describe_gpus(cluster, node_name, devices, described_gpus)
        if node_name != MACHINE:
            warnings.append(_missing_gpus(node_name, devices, offered_count))
    if described:
        run.update_manifest(gpus_found=described_before | described)
    return [*filter(None, warnings)]


def _missing_gpus(node_name: str, devices: Devices, offered_count: int) -> str:
    """A sentence on a node with fewer devices than it offers, or with one that is lost; or none."""
    if len(devices.gpus) >= offered_count and not devices.message:
        return ""
    found = len(devices.gpus) or "none"
    message = f" ({devices.message})" if devices.message else ""
    what = f"the GPUs of {node_name} may not work"
    return f"{what}: {offered_count} offered, {found} found{message}"
