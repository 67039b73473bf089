"""
What the nodes of a cluster achieve, as their hardware itself shows: measured once in a run.

Java classes do it on a worker.  Rates of disk and memory, which SPN-GC needs, are those of the
folder in which its daemons write (``workloads/probe``), in two to about twenty seconds.  A GPU's
are those of copies between pinned memory and the first device (``workloads/gpu``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from harness.errors import HarnessError, MachineError
from harness.hadoop_home.home import job_jar
from harness.models import MODELS
from harness.monitor.probe import probe_jar
from harness.providers.adjust import NodeLoad
from harness.providers.base import Cluster
from harness.providers.host import Host, at_once
from harness.providers.survey import Devices, find_devices, find_on, here
from harness.records.manifest import NodeGpus, NodeRates
from harness.records.profile import Statistic
from harness.records.trial import CONTROLS, ClusterSpec
from harness.stats.spread import standard_deviation
from harness.store import Run
from harness.text import first_line, read_json
from harness.workloads.base import GPU

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
    return any(name not in MODELS or MODELS[name].required & set(RATES) for name in models)


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
        # HDFS blocks are in this part of a node's folder, on the disk that is limited.
        is_limited = worker.name in cluster.disk_bytes()
        folder = f"{worker.folder}/data" if is_limited else worker.folder
        jar = cluster.host_path(worker, probe_jar())
        rates = measure_rates(worker, cluster.java_on(worker), jar, folder)
    except HarnessError as error:
        say(f"warning: {error.what}")
    else:
        run.update_manifest(rates={worker.name: rates})


def record_micro(run: Run, cluster: Cluster, say: Callable[[str], None]) -> None:
    """
    Measure disks and networks of all workers at once, once in *run*, and write them down.

    Where that fails *say* gets a warning: costs are then known from jobs alone.
    """
    workers = cluster.hosts[1:]
    if run.read_manifest().micro:
        return
    if not workers:
        say("warning: nothing is measured without jobs: the nodes cannot be reached from here")
        return
    disk = "data" if cluster.spec.limited else "."
    load = NodeLoad(cluster.hosts, lambda host: cluster.agent(host, "load"), disk)
    measured = defaultdict[str, dict[str, float]](dict)
    try:
        for field, names in CONTROLS.items():
            expected = {
                worker.name: {
                    name: float(getattr(cluster.spec.hardware(worker.name), field) or _EXPECTED_BPS)
                    for name in names
                }
                for worker in workers
            }
            if field in ("disk_bytes_per_s", "network_bytes_per_s"):
                for worker, rates in load.measure(field, expected).items():
                    measured[worker] |= rates
            if field == "disk_bytes_per_s":
                for worker, rate in load.measure_buffered(expected).items():
                    measured[worker]["buffered_write"] = rate
    except HarnessError as error:
        say(f"warning: {error.what}")
    else:
        run.update_manifest(micro=dict(measured))


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
        raise MachineError(what, where=folder, fix="make setup, then run it again")
    return node_rates


def read_rates(text: str) -> NodeRates | None:
    """Read what the measurement printed; `None` where a rate is missing or not plausible."""
    passes: dict[str, list[int]] = {rate_name: [] for rate_name in RATES}
    disk_access = ""
    for output_line in text.splitlines():
        rate_name, _, printed = output_line.partition(" ")
        if rate_name == "how":
            disk_access = printed
        elif f"{rate_name}_bps" in passes and printed.isascii() and printed.isdigit():
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
        all_passes = [float(rate) for node_rates in passes.values() for rate in node_rates]
        what = "128 MiB of memory on one core" if rate_name.startswith("mem") else file
        statistics[rate_name] = Statistic(
            value=median(all_passes),
            count=len(all_passes),
            spread=standard_deviation(all_passes),
            source=f"{what}, on {', '.join(nodes)}",
            nodes={node_name: median(node_rates) for node_name, node_rates in passes.items()},
        )
    return statistics


def record_gpus(run: Run, cluster_spec: ClusterSpec, cluster: Cluster) -> list[str]:
    """
    Write into the manifest of *run* what GPUs the workers of *cluster* have, where they offer some.

    Workers on this machine share its devices: they are described once.  Workers that cannot be
    reached are left out.  With each description are the rates of its copies, or the reason why
    there are none.  Returns a sentence for each worker that has fewer devices than it offers, or
    lost some; of this machine that was said before (`harness.run.preflight`).
    """
    if not cluster_spec.node.gpus:
        return []
    workers = cluster.hosts[1:]
    by_node: dict[str, Devices] = {}
    if cluster.watched is None:
        by_node = {MACHINE: find_devices(here)}
    else:
        of_workers = at_once(find_on, workers)
        by_node = dict(zip((worker.name for worker in workers), of_workers, strict=True))
    known_gpus = run.read_manifest().gpus_found
    described = {}
    for node_name, devices in by_node.items():  # one after the other: nodes may share a machine
        facts = devices.described()
        before = known_gpus.get(node_name)
        if facts["devices"] and before is not None and before.h2d_bps and before.d2h_bps:
            facts |= {"h2d_bps": before.h2d_bps, "d2h_bps": before.d2h_bps}
        elif facts["devices"]:
            worker = next(
                (worker for worker in workers if node_name in (worker.name, MACHINE)), None
            )
            facts |= measure_copies(cluster, worker)
        described[node_name] = NodeGpus.model_validate(facts)
    if described:
        run.update_manifest(gpus_found=known_gpus | described)
    return [
        f"the GPUs of {node_name} may not work: {cluster_spec.node.gpus} offered,"
        f" {len(devices.gpus) or 'none'} found{f' ({devices.message})' if devices.message else ''}"
        for node_name, devices in by_node.items()
        if node_name != MACHINE and (devices.message or len(devices.gpus) < cluster_spec.node.gpus)
    ]


def measure_copies(cluster: Cluster, worker: Host | None) -> dict[str, Any]:
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
    for passes in copies.values():
        if not isinstance(passes, list) or not 0 < len(passes) <= _MOST_PASSES:
            return {}
        if not all(type(rate) is int and 0 < rate < _MOST_BPS for rate in passes):
            return {}
    return copies
