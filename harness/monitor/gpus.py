"""
What the GPUs of a cluster's nodes are, as the nodes report it before the first trial.

How fast a node copies to its first device and back is measured there, once in a run, by a Java
class of the GPU workloads' jar (``workloads/gpu``): pinned memory, blocks of 64 MiB to the device
and of 32 MiB to the host, some 20 of them in all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from harness.errors import HarnessError
from harness.hadoop_home.home import job_jar
from harness.providers.base import Cluster
from harness.providers.host import Host, from_json
from harness.providers.survey import Devices, find_devices, find_on, first_line, here
from harness.records.manifest import NodeGpus
from harness.records.trial import ClusterSpec
from harness.store import Run
from harness.workloads.base import GPU

MACHINE = "machine"  # stands for all nodes that are on this one
RATES = ("h2d_bps", "d2h_bps")
_CLASS = "mapreduce.harness.gpu.Rates"
_FLAGS = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_LIMIT_S = 60.0  # a driver without a daemon that keeps it loaded takes seconds to start
_MOST_HOSTS, _MOST_PASSES, _MOST_BPS = 32, 64, 10**15

Copies = dict[str, list[int]]  # bytes per second of each pass, by the names in `RATES`


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
    elif workers:
        with ThreadPoolExecutor(min(len(workers), _MOST_HOSTS)) as pool:
            names = (worker.name for worker in workers)
            by_node = dict(zip(names, pool.map(find_on, workers), strict=True))
    known_gpus = run.read_manifest().gpus_found
    described = {}
    for node_name, devices in by_node.items():  # one after the other: nodes may share a machine
        node_gpus = NodeGpus.model_validate(devices.described())
        if node_gpus.devices:
            before = known_gpus.get(node_name)
            if before is not None and before.h2d_bps and before.d2h_bps:
                copies = {"h2d_bps": before.h2d_bps, "d2h_bps": before.d2h_bps}
                node_gpus = node_gpus.model_copy(update=copies)
            else:
                worker = next(
                    (worker for worker in workers if node_name in (worker.name, MACHINE)), None
                )
                node_gpus = _with_rates(node_gpus, cluster, worker)
        described[node_name] = node_gpus
    if described:
        run.update_manifest(gpus_found=known_gpus | described)
    return [
        f"the GPUs of {node_name} may not work: {cluster_spec.node.gpus} offered,"
        f" {len(devices.gpus) or 'none'} found{f' ({devices.message})' if devices.message else ''}"
        for node_name, devices in by_node.items()
        if node_name != MACHINE and (devices.message or len(devices.gpus) < cluster_spec.node.gpus)
    ]


def _with_rates(node_gpus: NodeGpus, cluster: Cluster, worker: Host | None) -> NodeGpus:
    """*node_gpus* with the rates of copies on *worker*, or the reason why there are none."""
    reason = "no worker can be reached from here"
    if worker is not None:
        try:
            jar = cluster.host_path(worker, job_jar(GPU))
            argv = [cluster.java_on(worker), *_FLAGS, f"-Duser.dir={worker.folder}", "-cp", jar]
            completed = worker.run([*argv, _CLASS], timeout=_LIMIT_S)
        except (HarnessError, OSError) as error:
            reason = first_line(str(error))
        else:
            if completed.status == 0 and (copies := read_copies(completed.out)):
                return NodeGpus.model_validate(
                    {**node_gpus.model_dump(exclude_none=True), **copies}
                )
            reason = first_line(completed.err) or "it measured no CUDA device"
    return node_gpus.model_copy(update={"rates_missing": reason})


def read_copies(text: str) -> Copies:
    """
    Read what the measurement printed.

    Empty where that was not done on a CUDA device (a processor computes as well), or where a rate
    is not plausible.
    """
    try:
        document = from_json(text)
    except ValueError:
        return {}
    if not isinstance(document, dict) or document.get("kind") != "cuda":
        return {}
    copies = {rate_name: document.get(rate_name) for rate_name in RATES}
    for passes in copies.values():
        if not isinstance(passes, list) or not 0 < len(passes) <= _MOST_PASSES:
            return {}
        if not all(type(rate) is int and 0 < rate < _MOST_BPS for rate in passes):
            return {}
    return {rate_name: passes for rate_name, passes in copies.items() if isinstance(passes, list)}
