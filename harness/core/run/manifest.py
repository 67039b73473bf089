"""
What the manifest of a run says: the command, this machine, and each cluster as it was started.

A trial's id contains the versions of this machine: nothing else is known before nodes are there.
The nodes may have others.  Theirs stand in each trial and in the manifest, and a run is not
continued on nodes that have changed meanwhile: its trials could not be compared.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from harness.base.errors import DataError
from harness.base.hadoop.daemons import daemon_options
from harness.base.hadoop.secrets import SECRETS
from harness.base.records.manifest import OfferedGpus
from harness.base.records.trial import (
    ClusterSpec,
    Limit,
    LimitedCluster,
    Versions,
    format_control,
    trial_id,
)
from harness.base.version import __version__
from harness.clusters.base import Cluster
from harness.clusters.monitor.machine import machine_facts
from harness.clusters.survey import RanOn, node_systems
from harness.core.experiment.model import Experiment
from harness.core.store import Run

_DECISIVE = ("hadoop", "java")  # trials of other versions cannot be compared


def record_command(
    run: Run, experiment: Experiment, versions: Versions, given: tuple[str, ...]
) -> None:
    """Write down what runs, where; *versions* are this machine's, *given* the user's overrides."""
    overrides = tuple(map(SECRETS.clean_override, given))
    words = ["harness", *sys.argv[1:]]
    for override, cleaned in zip(given, overrides, strict=True):
        words = [word.replace(override, cleaned) for word in words]
    manifest = run.read_manifest()
    node_spec = experiment.cluster.node
    gpus = None
    if any(node_spec.gpus) or node_spec.gpus_found:
        origin = "found on the nodes" if node_spec.gpus_found else "declared, not detected"
        gpus = OfferedGpus.model_validate({"per_node": node_spec.gpus, "origin": origin})
    run.update_manifest(
        harness=__version__,
        commit=source_commit(),
        command=SECRETS.clean(shlex.join(words)),
        versions=manifest.versions if manifest.nodes else versions,
        python=sys.version.split()[0],
        packages=installed_packages(),
        machine=machine_facts(),
        seed=experiment.seed,
        overrides=overrides,
        gpus=gpus,
    )


def source_commit() -> str:
    """Commit of the source tree that runs, with ``-dirty`` where it was changed; may be empty."""
    folder = Path(__file__).resolve().parent
    argv = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        completed = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return completed.stdout.strip() if completed.returncode == 0 else ""


def record_versions(
    run: Run, planned: Versions, ran_on: Mapping[str, RanOn]
) -> tuple[Versions, str]:
    """
    Write down what the nodes *ran_on*; return the versions and the kernel of the trials there.

    `DataError` where trials of the run ran on another Hadoop or Java of the same node.
    """
    # Trials of other planned versions have other ids: they are not compared with these.
    trials = [record.trial for record in run.trials().values()]
    if any(trial.id == trial_id(trial.cell, trial.repetition, planned) for trial in trials):
        refuse_other_versions(run, ran_on)
    if not ran_on:
        run.update_manifest(versions=planned, nodes={})
        return planned, ""
    nodes = dict[str, str | dict[str, str]]()
    shown = dict[str, str]()
    for component in (*_DECISIVE, "kernel"):
        by_node = {worker: getattr(versions, component) for worker, versions in ran_on.items()}
        common, *differing = set(by_node.values())
        nodes[component] = by_node if differing else common
        pairs = (f"{worker}: {by_node[worker] or 'unknown'}" for worker in sorted(by_node))
        shown[component] = ", ".join(pairs) if differing else common
    decisive = {component: shown[component] or "unknown" for component in _DECISIVE}
    versions = planned.model_copy(update=decisive)
    run.update_manifest(versions=versions, nodes=nodes)
    return versions, shown["kernel"]


def refuse_other_versions(run: Run, ran_on: Mapping[str, RanOn]) -> None:
    """Raise `DataError` where a node has another Hadoop or Java than earlier trials of *run*."""
    recorded = run.read_manifest().nodes
    for component in _DECISIVE:
        by_node = recorded.get(component, "")
        for worker, versions in ran_on.items():
            current = getattr(versions, component)
            before = by_node if isinstance(by_node, str) else by_node.get(worker, "")
            if before and current and before != current:
                raise DataError(
                    f"{worker} has {component.capitalize()} {current} now, and trials of this"
                    f" run ran on {before}",
                    where=str(run.path),
                    fix="measure again: the same command with --new",
                )


@cache
def installed_packages() -> dict[str, str]:
    """Name and version of each installed package: the SHA-256 of its ``RECORD``, or nothing."""
    packages = {}
    for package in distributions():
        records = [file for file in package.files or () if file.match("*.dist-info/RECORD")]
        digests = [hashlib.sha256(Path(file.locate()).read_bytes()).hexdigest() for file in records]
        packages[f"{package.name} {package.version}"] = "".join(digests[:1])
    return packages


def record_systems(run: Run, cluster: Cluster, workers: Iterable[str]) -> None:
    """Write down what the nodes of a cluster are, but for those that were asked before."""
    recorded = run.read_manifest().systems
    if not cluster.sets_site:
        why = "not known: the nodes of an existing cluster have no connection"
        run.update_manifest(systems=dict.fromkeys(workers, why))
    elif hosts := [host for host in cluster.hosts if host.name not in recorded]:
        systems = recorded | node_systems(hosts, cluster.agent)
        run.update_manifest(systems=systems, daemon_options=daemon_options(cluster.layout))


def record_limits(
    run: Run, spec: ClusterSpec, limits: Mapping[str, Mapping[str, Limit]], now_s: float
) -> list[str]:
    """Write down the limits of a cluster that has started; a sentence for each not enforced."""
    if not limits:
        return []
    started = LimitedCluster.model_validate(
        {"cluster": spec.id, "measured_s": now_s, "nodes": limits}
    )
    run.update_manifest(limits=(*run.read_manifest().limits, started))
    sentences = []
    for node, controls in started.nodes.items():
        for control, limit in controls.items():
            if not limit.is_enforced:
                sentences.append(
                    f"the limit of {node}'s disk is not enforced on buffered writes: they were"
                    f" written at {format_control(control, limit.buffered_write or 0)},"
                    f" and {format_control(control, limit.requested)} was requested"
                )
    return sentences
