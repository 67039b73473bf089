"""
Rates of a node's disk and memory, which SPN-GC needs: measured once in a run, on a worker.

A Java class (``workloads/probe``) does it on the node, in the folder in which its daemons write: a
file of 64 MiB past the page cache, and 128 MiB of memory on one core.  It takes a second or two and
no more than about twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

from harness.errors import HarnessError, MachineError
from harness.models import MODELS
from harness.monitor.probe import probe_jar
from harness.providers.base import Cluster
from harness.providers.host import Host
from harness.records.manifest import NodeRates
from harness.records.profile import Statistic
from harness.stats.spread import standard_deviation
from harness.store import Run

RATES = ("disk_read_bps", "disk_write_bps", "mem_read_bps", "mem_write_bps")
CLASS = "mapreduce.harness.probe.Rates"
DISK_PART = "data"  # of a node's folder: HDFS blocks are there, on the disk that is limited
_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_LIMIT_S = 120.0
_MOST_BPS = 10**15


def are_rates_required(models: Iterable[str]) -> bool:
    """Whether one of *models* cannot do without rates."""
    known_models = [MODELS[rate_name] for rate_name in models if rate_name in MODELS]
    return any(not model.required.isdisjoint(RATES) for model in known_models)


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
        is_limited = worker.name in cluster.disk_bytes()
        folder = f"{worker.folder}/{DISK_PART}" if is_limited else worker.folder
        jar = cluster.host_path(worker, probe_jar())
        rates = measure_rates(worker, cluster.java_on(worker), jar, folder)
    except HarnessError as error:
        say(f"warning: {error.what}")
    else:
        run.update_manifest(rates={worker.name: rates})


def measure_rates(host: Host, java: str, jar: str, folder: str) -> NodeRates:
    """
    Measure on *host* the disk of *folder* and its memory.

    *java* and *jar* are where the host has its ``java`` command and the probe's jar.
    `MachineError` has the first line that a failed measurement wrote.
    """
    completed = host.run([java, *_FLAGS, "-cp", jar, CLASS, folder], timeout=_LIMIT_S)
    node_rates = read_rates(completed.out) if completed.status == 0 else None
    if node_rates is None:
        lines = (output_line for output_line in completed.err.splitlines() if output_line.strip())
        raise MachineError(
            f"the rates of {host.name} cannot be measured: {next(lines, 'no message')[:200]!a}",
            where=folder,
            fix="make setup, then run it again",
        )
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
    is_direct = all(node_name.how == "direct" for node_name in nodes.values())
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
