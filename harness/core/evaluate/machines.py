"""The machines of a trial and what its cluster used of their processors, from its samples."""

from __future__ import annotations

import re

from collections.abc import Sequence
from typing import NamedTuple

from harness.base.records.manifest import Manifest
from harness.base.records.tasks import Interval
from harness.base.records.trace import JobTrace, MachineSample
from harness.base.records.trial import TrialRecord
from harness.clusters.monitor.machine import PROBE_LOGS
from harness.core.store import RawLogs
from harness.observe.parsing.lines import read_machine, read_speed
from harness.observe.profiling.jobs import Machine
from harness.observe.profiling.processes import probe_cpu_s, sampled_cpu_s

# Samples of this machine, of that of a node, and of others of our processes on one of them.
_LOAD_LOGS = re.compile(r"(machine|processes)(?:-([^/]+))?\.jsonl")
_MASTER = "master"


class SampledMachines(NamedTuple):
    """Machines of a trial, and processor seconds of the cluster on all of them, job by job."""

    machines: tuple[Machine, ...]
    cluster_cpu_s: tuple[float | None, ...]


def sampled_machines(
    raw: RawLogs, manifest: Manifest, record: TrialRecord, jobs: Sequence[JobTrace]
) -> SampledMachines:
    """
    What samples of a trial's machines show of its *jobs*; nothing where there are none.

    The speed probe is none of the cluster's, and its time is left out.
    """
    logs = {match[0]: match for name in raw.names() if (match := _LOAD_LOGS.fullmatch(name))}
    cores_here = float(manifest.machine.get("cores") or 0)
    machines = list[Machine]()
    loads = list[tuple[float, list[MachineSample]]]()
    for name, match in sorted(logs.items()):
        node = match[2]
        monitored = manifest.machines.get(node or "")
        cores = cores_here
        if match[1] == "processes":
            shared = [facts for facts in manifest.machines.values() if node in facts.nodes]
            cores = shared[0].cores if shared else cores_here
        elif monitored is not None:
            cores = monitored.cores
            workers = tuple(worker for worker in monitored.nodes if worker != _MASTER)
            if workers:
                machines.append(Machine(workers, cores, len(workers)))
        elif node is None:
            machines.append(Machine((), cores, record.trial.cell.cluster.workers))
        with raw.open(name) as lines:
            loads.append((cores, list(read_machine(lines, name))))
    intervals = [(job.submit_s, job.finish_s) for job in jobs]
    if not cores_here and not manifest.machines:
        return SampledMachines((), tuple(None for _ in jobs))
    used_s = [_cluster_cpu_s(raw, loads, within) for within in intervals]
    return SampledMachines(tuple(machines), tuple(used_s))


def _cluster_cpu_s(
    raw: RawLogs, loads: Sequence[tuple[float, list[MachineSample]]], within: Interval
) -> float | None:
    """Processor seconds of the cluster's processes *within* two moments, on all machines."""
    total_s = 0.0
    for cores, samples in loads:
        used_s = sampled_cpu_s(samples, cores, within)
        if used_s is None:
            return None
        total_s += used_s
    for name in filter(PROBE_LOGS.fullmatch, raw.names()):
        with raw.open(name) as lines:
            total_s -= probe_cpu_s(read_speed(lines, name), within)
    return max(0.0, total_s) if loads else None
