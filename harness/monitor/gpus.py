"""
What the GPUs of a cluster's nodes are, as the nodes tell it before the first trial.

How fast a node copies to its first device and back is measured there, once in a run, by a Java
class of the GPU workloads' jar (``workloads/gpu``): pinned memory, blocks of 64 MiB to the device
and of 32 MiB to the host, some 20 of them in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from harness.errors import HarnessError
from harness.hadoop_home.home import job_jar
from harness.providers.gpus import Devices, find_devices, find_on, here, words
from harness.providers.host import Host, from_json
from harness.records.trial import ClusterSpec
from harness.store import Run
from harness.workloads.base import GPU

ENTRY = "gpus_found"  # of the manifest
MACHINE = "machine"  # stands for all nodes that are on this one
RATES = ("h2d_bps", "d2h_bps")
MISSING = "rates_missing"
_CLASS = "mapreduce.harness.gpu.Rates"
_FLAGS = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_LIMIT_S = 60.0  # a driver without a daemon that keeps it loaded takes seconds to start
_MOST_HOSTS, _MOST_PASSES, _MOST_BPS = 32, 64, 10**15


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

    def java_on(self, host: Host) -> str:
        """Return the ``java`` command of *host*."""
        ...

    def host_path(self, host: Host, path: Path) -> str:
        """Return where *host* has this machine's file *path*; it is brought there if need be."""
        ...


def keep_gpus(run: Run, spec: ClusterSpec, cluster: GpuCluster) -> list[str]:
    """
    Write into the manifest of *run* what GPUs the workers of *cluster* have, where they are to.

    Workers on this machine share its devices: they are described once.  Workers without a door are
    not asked.  Answers a sentence for each that has fewer devices than it offers, or lost some; of
    this machine that was said before (`harness.run.preflight`).

    With each description stand the copies' bytes per second, of each pass (`RATES`), or in words
    why there are none (`MISSING`).
    """
    if not spec.node.gpus:
        return []
    found = _found(cluster)
    if found:
        known = run.manifest().get(ENTRY, {})
        told = {name: devices.described() for name, devices in found.items()}
        for name in found:  # one after the other: nodes may share a machine
            if told[name]["devices"]:
                told[name] |= _rates(cluster, name, known.get(name, {}))
        run.manifest({ENTRY: known | told})
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


def _rates(cluster: GpuCluster, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Rates of one node, as they are *known* already, or measured; of this machine by a worker."""
    if all(rate in known for rate in RATES):
        return {rate: known[rate] for rate in RATES}
    door = next((host for host in cluster.hosts[1:] if name in (host.name, MACHINE)), None)
    if door is None:
        return {MISSING: "no worker has a door"}
    try:
        jar = cluster.host_path(door, job_jar(GPU))
        return measure_copies(door, cluster.java_on(door), jar)
    except (HarnessError, OSError) as error:
        return {MISSING: words(str(error))}


def measure_copies(host: Host, java: str, jar: str) -> dict[str, Any]:
    """
    Measure on *host*, which has its ``java`` command at *java* and the GPU workloads' jar at *jar*.

    What was measured on a processor counts as missing.  `ClusterError` where the host is lost.
    """
    argv = [java, *_FLAGS, f"-Duser.dir={host.folder}", "-cp", jar, _CLASS]
    done = host.run(argv, timeout=_LIMIT_S)
    found = read_copies(done.out) if done.status == 0 else {}
    return found or {MISSING: words(done.err) or "it measured no CUDA device"}


def read_copies(text: str) -> dict[str, Any]:
    """Read what the measurement printed; nothing where it was no CUDA device, or a rate is none."""
    try:
        told = from_json(text)
    except ValueError:
        return {}
    if not isinstance(told, dict) or told.get("kind") != "cuda":
        return {}
    return (
        {name: told[name] for name in RATES} if all(map(_are_rates, map(told.get, RATES))) else {}
    )


def _are_rates(passes: object) -> bool:
    return (
        isinstance(passes, list)
        and 0 < len(passes) <= _MOST_PASSES
        and all(type(p) is int and 0 < p < _MOST_BPS for p in passes)
    )
