"""
What the nodes of a cluster achieve, as their hardware itself shows.

Java classes do it on a worker.  Rates of disk and memory, which SPN-GC needs, are those of the
folder in which its daemons write (``workloads/probe``), in two to about twenty seconds.  A GPU's
are those of copies between pinned memory and the first device (``workloads/gpu``).
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping
from itertools import chain
from statistics import median
from typing import Any

from harness.base.errors import HarnessError, MachineError
from harness.base.installed import setup_fix
from harness.base.records.manifest import NodeGpus, NodeRates
from harness.base.records.profile import Statistic
from harness.base.records.trial import CONTROLS
from harness.base.stats.spread import standard_deviation
from harness.base.text import first_line, read_json
from harness.clusters.adjust import NodeLoad
from harness.clusters.base import Cluster
from harness.clusters.hadoop_home.home import job_jar
from harness.clusters.host import Host, at_once
from harness.clusters.monitor.probe import probe_jar
from harness.clusters.survey import Devices, find_devices, find_on, here
from harness.clusters.workloads.base import GPU
from harness.models import find

RATES = ("disk_read_bps", "disk_write_bps", "mem_read_bps", "mem_write_bps")
CLASS = "mapreduce.harness.probe.Rates"
_FLAGS = ("-XX:+UseSerialGC", "-XX:-UsePerfData")
_LIMIT_S = 120.0

MACHINE = "machine"  # stands for all nodes that are on this one
GPU_RATES = ("h2d_bps", "d2h_bps")
_GPU_CLASS = "mapreduce.harness.gpu.Rates"
_GPU_LIMIT_S = 60.0  # a driver without a daemon that keeps it loaded takes seconds to start
_MOST_PASSES = 64
_MOST_BPS = 10**15
_EXPECTED_BPS = 2e8  # of a disk or a network without a limit: decides how much is moved


def are_rates_required(models: Iterable[str]) -> bool:
    """Whether one of *models* cannot do without rates, or is a user's own: it may ask for them."""
    registered_models = [find(name) for name in models]
    return any(model is None or model.required & set(RATES) for model in registered_models)


def measure_worker(cluster: Cluster, worker: Host) -> NodeRates:
    """Measure a *worker* where its daemons write; `MachineError` as of `measure_rates`."""
    # HDFS blocks are in this part of a node's folder, on the disk that is limited.
    is_limited = worker.name in cluster.disk_bytes()
    folder = f"{worker.folder}/data" if is_limited else worker.folder
    jar = cluster.host_path(worker, probe_jar())
    return measure_rates(worker, cluster.java_on(worker), jar, folder)


def measure_micro(cluster: Cluster) -> dict[str, dict[str, float]]:
    """Rates of the disks and networks of all workers at once, each worker's by its name."""
    disk_folder = "data" if cluster.spec.limited else "."
    load = NodeLoad(cluster.hosts, lambda host: cluster.agent(host, "load"), disk_folder)
    measured: dict[str, dict[str, float]] = {}
    expected = _expected_rates(cluster, "disk_bytes_per_s")
    for worker_name, rates in load.measure("disk_bytes_per_s", expected).items():
        measured[worker_name] = dict(rates)
    for worker_name, rate in load.measure_buffered(expected).items():
        measured.setdefault(worker_name, {})["buffered_write"] = rate
    expected = _expected_rates(cluster, "network_bytes_per_s")
    for worker_name, rates in load.measure("network_bytes_per_s", expected).items():
        measured.setdefault(worker_name, {}).update(rates)
    return measured


def _expected_rates(cluster: Cluster, field: str) -> dict[str, dict[str, float]]:
    """Rates to be expected of each worker: its limit *field*, or of hardware without a limit."""
    expected = {}
    for worker in cluster.hosts[1:]:
        limit = getattr(cluster.spec.hardware(worker.name), field)
        expected[worker.name] = dict.fromkeys(CONTROLS[field], float(limit or _EXPECTED_BPS))
    return expected


def measure_rates(host: Host, java: str, jar: str, folder: str) -> NodeRates:
    """
    Measure on *host* the disk of *folder* and its memory.

    *java* and *jar* are where the host has its ``java`` command and the probe's jar.
    `MachineError` has the first line that a failed measurement wrote.
    """
    completed = host.run([java, "-Xmx256m", *_FLAGS, "-cp", jar, CLASS, folder], timeout=_LIMIT_S)
    node_rates = read_rates(completed.out) if completed.status == 0 else None
    if node_rates is None:
        what = f"the rates of {host.name} cannot be measured: {first_line(completed.err)}"
        raise MachineError(what, where=folder, fix=f"{setup_fix()}, then run it again")
    return node_rates


def read_rates(text: str) -> NodeRates | None:
    """Read what the measurement printed; `None` where a rate is missing or not plausible."""
    passes: dict[str, list[int]] = {rate_name: [] for rate_name in RATES}
    disk_access = ""
    for output_line in text.splitlines():
        rate_name, _, printed = output_line.partition(" ")
        if rate_name == "how":
            disk_access = printed
        elif f"{rate_name}_bps" in passes and re.fullmatch("[0-9]+", printed):
            passes[f"{rate_name}_bps"].append(int(printed))
    if disk_access not in ("direct", "cached"):
        return None
    if not all(rates and 0 < min(rates) <= max(rates) <= _MOST_BPS for rates in passes.values()):
        return None
    return NodeRates.model_validate({**passes, "how": disk_access})


def rate_statistics(nodes: Mapping[str, NodeRates]) -> dict[str, Statistic]:
    """Median of all passes on all *nodes*, as the manifest of a run has them; none without."""
    if not nodes:
        return {}
    is_direct = all(node_rates.how == "direct" for node_rates in nodes.values())
    file = f"a file of 64 MiB, {'direct' if is_direct else 'through the page cache'}"
    statistics = {}
    for rate_name in RATES:
        passes: dict[str, Any] = {
            node_name: getattr(node_rates, rate_name) for node_name, node_rates in nodes.items()
        }
        all_passes = [float(rate) for rate in chain.from_iterable(passes.values())]
        what = "128 MiB of memory on one core" if rate_name.startswith("mem") else file
        statistics[rate_name] = Statistic(
            value=median(all_passes),
            count=len(all_passes),
            spread=standard_deviation(all_passes),
            source=f"{what}, on {', '.join(nodes)}",
            nodes={node_name: median(node_rates) for node_name, node_rates in passes.items()},
        )
    return statistics


def describe_gpus(
    cluster: Cluster, node_name: str, devices: Devices, described: NodeGpus | None
) -> NodeGpus:
    """
    What a node's *devices* are, with the rates of their copies or why there are none.

    Rates that were *described* before are not measured again.
    """
    facts = devices.described()
    if facts["devices"]:
        worker = _worker_named(cluster, node_name)
        facts |= _recorded_copies(described) or _measure_copies(cluster, worker)
    return NodeGpus.model_validate(facts)


def find_gpus(cluster: Cluster) -> dict[str, Devices]:
    """GPUs of the workers by their names; where all are on this machine, its own as `MACHINE`."""
    if cluster.watched is None:
        return {MACHINE: find_devices(here)}
    workers = cluster.hosts[1:]
    names = [worker.name for worker in workers]
    return dict(zip(names, at_once(find_on, workers), strict=True))


def _recorded_copies(gpus: NodeGpus | None) -> dict[str, Any]:
    """Rates of copies that were measured when *gpus* was written; empty unless there are both."""
    if gpus is None or not gpus.h2d_bps or not gpus.d2h_bps:
        return {}
    return {"h2d_bps": gpus.h2d_bps, "d2h_bps": gpus.d2h_bps}


def _worker_named(cluster: Cluster, node_name: str) -> Host | None:
    """The worker with this name, any one of this machine; `None` where it cannot be reached."""
    workers = (worker for worker in cluster.hosts[1:] if node_name in (worker.name, MACHINE))
    return next(workers, None)


def _measure_copies(cluster: Cluster, worker: Host | None) -> dict[str, Any]:
    """Rates of copies on *worker* as the manifest has them, or the reason why there are none."""
    if worker is None:
        return {"rates_missing": "no worker can be reached from here"}
    try:
        jar = cluster.host_path(worker, job_jar(GPU))
        flags = ("-Xmx64m", *_FLAGS, f"-Duser.dir={worker.folder}")
        argv = [cluster.java_on(worker), *flags, "-cp", jar, _GPU_CLASS]
        completed = worker.run(argv, timeout=_GPU_LIMIT_S)
    except (HarnessError, OSError) as error:
        return {"rates_missing": first_line(str(error))}
    copies = read_copies(completed.out) if completed.status == 0 else {}
    return copies or {"rates_missing": first_line(completed.err, "it measured no CUDA device")}


def read_copies(text: str) -> dict[str, list[int]]:
    """Read what the measurement printed; empty where it was no CUDA device, or is not plausible."""
    try:
        document = read_json(text)
    except ValueError:
        return {}
    if not isinstance(document, dict) or document.get("kind") != "cuda":
        return {}
    copies: dict[str, Any] = {rate_name: document.get(rate_name) for rate_name in GPU_RATES}
    return copies if all(map(_are_plausible, copies.values())) else {}


def _are_plausible(passes: object) -> bool:
    """Whether *passes* is a list of whole numbers that can be rates, one for each pass."""
    if not isinstance(passes, list) or not 0 < len(passes) <= _MOST_PASSES:
        return False
    return all(type(rate) is int and 0 < rate < _MOST_BPS for rate in passes)
