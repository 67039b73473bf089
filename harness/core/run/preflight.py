"""
What is checked before anything is started.

The names in an experiment file, whether this machine can run the experiment, and what its author
may not expect of it.
"""

from __future__ import annotations

import math
import os
import shutil

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.base.documents.wording import by_number, count
from harness.base.errors import HarnessError, MachineError, SpecError
from harness.base.extras import CLUSTERS, require
from harness.base.hadoop.properties import is_known, is_own, objection, resembling
from harness.base.hadoop.site import AM_MEMORY_MB, block_bytes, client_properties
from harness.base.hadoop.slots import effective
from harness.base.installed import setup_fix
from harness.base.records.prediction import Cluster
from harness.base.records.trial import ClusterSpec, WorkloadSpec
from harness.base.stats.resampling import FEWEST_CELLS
from harness.base.units import MIB, format_bytes
from harness.clusters import PROVIDERS
from harness.clusters.hadoop_home.home import HadoopHome, job_jar
from harness.clusters.monitor.machine import machine_facts
from harness.clusters.state import clusters_folder
from harness.clusters.survey import find_devices, here
from harness.clusters.workloads import WORKLOADS, workload_for
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.own_code import OwnCode, kept_own, own_workload
from harness.core.evaluate.own_model import OwnModel
from harness.core.experiment.file import KnownNames, Own
from harness.core.experiment.grid import is_profiling
from harness.core.experiment.model import Experiment
from harness.core.run import Console
from harness.core.run.decides import coverage, uncovered_text
from harness.core.run.secrets import user_secrets
from harness.models import EARLIER_NAMES, MODELS
from harness.scoring.claims import models_by_paper

DAEMON_BYTES = 250 * MIB  # resident, idle, with the class-data archive
LEAST_INPUT = 64 * 2**10  # one block at least (dfs.namenode.fs-limits.min-block-size)
_MOST_MEMORY = 0.8  # of what the machine has: its own programs take some, too
MOST_WARNINGS = 5  # of one kind: each says the same


def known_names(find: Callable[[str, bool], OwnCode] | None = None) -> KnownNames:
    """
    Everything that an experiment file may name here, and what is known of it.

    *find* gives the code of a path, and is told whether that stands in an override; without it
    nothing is named by a path.
    """

    def read(kind: str, path: str, is_override: bool) -> Own:  # noqa: FBT001
        assert find
        named = find(path, is_override)
        if kind == "models":
            named.require_predict()
            return named.name, named.code, (), {}
        workload = own_workload(named.code)
        return named.name, named.code, tuple(workload.parameters), workload.scales

    return KnownNames(
        workloads=tuple(WORKLOADS),
        models=tuple(MODELS),
        providers=tuple(PROVIDERS),
        parameters={
            name: (*workload.parameters, "hibench") for name, workload in WORKLOADS.items()
        },
        scales={name: workload.scales for name, workload in WORKLOADS.items()},
        refusal=argument_refusal,
        objection=objection,
        secrets=user_secrets(),
        gpus=lambda provider, workers: PROVIDERS[provider].gpus_per_node(workers),
        extra_fields={name: provider.extra_fields for name, provider in PROVIDERS.items()},
        required_fields={name: provider.required_fields for name, provider in PROVIDERS.items()},
        own=read if find else None,
        papers=models_by_paper(),
        renamed=EARLIER_NAMES,
    )


def argument_refusal(workload: str, name: str, value: str | float) -> tuple[str, str] | None:
    """What is wrong with an argument of a workload, and what to write; unknown names: `None`."""
    if workload not in WORKLOADS or name not in {*WORKLOADS[workload].parameters, "hibench"}:
        return None
    spec = WorkloadSpec(name=workload, input_bytes=1, parameters={name: value})
    try:
        workload_for(spec).arguments(spec)
    except SpecError as error:
        return error.what, error.fix
    return None


@dataclass
class Preflight:
    """Checks an *experiment* with its *cells*, of the file *source*; *find_home* gives Hadoop's."""

    experiment: Experiment
    cells: Sequence[ResolvedCell]
    source: str
    find_home: Callable[[], HadoopHome]
    console: Console

    @property
    def clusters(self) -> list[ClusterSpec]:
        """Each cluster of the experiment once."""
        clusters = [cell.cell.cluster for cell in self.cells]
        return list({cluster.id: cluster for cluster in clusters}.values())

    @property
    def is_here(self) -> bool:
        """Whether the cluster uses this machine's memory and disk."""
        return PROVIDERS[self.experiment.cluster.provider].on_this_machine

    @property
    def checks(self) -> tuple[Callable[[], None], ...]:
        """Each raises `MachineError` for something that this machine lacks or has no room for."""
        on_machine = (self.check_memory, self.check_disk)
        on_disk = (self.check_tracer, self.check_jars, self.check_limits)
        return (self.check_libraries, *on_machine, *on_disk)

    def require(self) -> None:
        """Raise `MachineError` for the first thing that this machine lacks or has no room for."""
        for check in self.checks:
            check()

    def check_libraries(self) -> None:
        """Whether those libraries are there that providers and proofs of outputs cannot lack."""
        for cluster in self.clusters:
            PROVIDERS[cluster.provider].require_libraries()
        libraries = {name for cell in self.cells for name in cell.workload.libraries}
        for library in sorted(libraries):
            require(library, CLUSTERS)

    def check_memory(self) -> None:
        """Whether this machine's memory has room for all processes of a cluster."""
        memory = machine_facts().get("memory_bytes")
        if not self.is_here:
            return
        for cell in self.cells:
            cluster = cell.cell.cluster
            needed = memory_needed(cluster, effective(cluster, cell.configuration))
            if memory and needed > memory:
                workers = count(cluster.workers, "worker")
                whose = by_number(cluster.workers, "its", "their")
                raise MachineError(
                    f"{workers} and {whose} tasks take {format_bytes(needed)},"
                    f" and this machine has {format_bytes(memory)}",
                    where=self.source,
                    fix="lower cluster.workers, cluster.node.task_memory or the slots",
                )

    def check_disk(self) -> None:
        """Whether the disk of the clusters has room for each input."""
        if not self.is_here:
            return
        free_bytes = shutil.disk_usage(clusters_folder()).free
        for cell in self.cells:
            input_bytes = cell.spec.input_bytes
            cluster = cell.cell.cluster
            replicas = int(client_properties(cluster)["dfs.replication"])
            # A DataNode takes the last block, too, only where a whole one would fit.
            needed = (input_bytes + block_bytes(cluster)) * replicas
            if needed > free_bytes:
                raise MachineError(
                    f"an input of {format_bytes(input_bytes)} takes {format_bytes(needed)} with its"
                    f" replicas and room for a block, and {format_bytes(free_bytes)} are free",
                    where=str(clusters_folder()),
                    fix="lower the input, or set XDG_STATE_HOME to a folder on a larger disk",
                )

    def check_tracer(self) -> None:
        """Whether tasks can be traced, where they are to be."""
        mode = self.experiment.tracing.mode
        if mode in ("spans", "units") and self.find_home().trace_path_jar is None:
            raise MachineError(
                f"trace: {mode} needs Hadoop's classes with the tracer's hooks, and there are none",
                where=str(self.find_home().path),
                fix=f"{setup_fix()} (or write trace: logs)",
            )

    def check_jars(self) -> None:
        """Whether the jars of our own jobs that the trials run are built."""
        cell_by_workload = {cell.spec.name: cell for cell in self.cells}
        jar_names: set[str] = set()
        for cell in cell_by_workload.values():
            jar_names.update(cell.required_jars())
        for jar_name in sorted(jar_names):
            job_jar(jar_name)

    def check_limits(self) -> None:
        """Whether this user can limit nodes here, where they are to be limited."""
        for cluster in self.clusters:
            PROVIDERS[cluster.provider].require_limits(cluster)

    def warn(self) -> None:
        """Report before anything is started what will not be what its author expects."""
        for warning in (
            *self._unknown_properties(),
            *self.overridden_properties(),
            *self._indecisive_design(),
            *self._uncovered_cells(),
            *self._scarce_resources(),
            *self._tiny_inputs(),
            *self._own_models(),
        ):
            self.console.say(f"warning: {warning}")

    def _indecisive_design(self) -> Iterator[str]:
        """Too few repeats or cells to prove anything."""
        predict = self.experiment.predict
        most_repeats = self.experiment.repeat
        if predict.is_blind and not predict.source:
            most_repeats = self.experiment.profiling_repeats
        if most_repeats == 1:
            yield "repeat: 1 shows no noise, so nothing is proved: write repeat: 2"
        scored = sum(not is_profiling(cell.cell, predict) for cell in self.cells)
        if predict.models and scored < FEWEST_CELLS:
            of_cells = f"{scored} of {count(len(self.cells), 'cell')}"
            verb = by_number(scored, "is", "are")
            too_few = f"{of_cells} {verb} scored, below {FEWEST_CELLS} there is no interval"
            yield f"{too_few}: give an axis more values"

    def _uncovered_cells(self) -> Iterator[str]:
        """A profile of which no scored cell has anything."""
        if not self.experiment.predict.models:
            return
        found = coverage(self.experiment, self.cells)
        if useless := [covered for covered in found if covered.is_of_no_use]:
            yield (
                f"the profile covers no regime that is asked: {uncovered_text(useless)}"
                " (at: predict.profile_on; fix: profile_on: auto)"
            )

    def _scarce_resources(self) -> Iterator[str]:
        """Cores, memory or GPUs of which clusters may take more than this machine has."""
        if not self.is_here:
            return
        cores = os.cpu_count() or 1
        offered_gpus = 0
        most_containers = 0
        needed = 0
        for cell in self.cells:
            cluster = cell.cell.cluster
            slots = effective(cluster, cell.configuration)
            offered_gpus = max(offered_gpus, cluster.node.gpus * cluster.workers)
            needed = max(needed, memory_needed(cluster, slots))
            if most_containers <= cores:  # the first one that is too many is named
                most_containers = max(slots.map_slots, slots.reduce_slots)
        if most_containers > cores:
            yield (
                f"{most_containers} containers at once on {cores} cores measure contention; set"
                " mapreduce.job.running.map.limit and mapreduce.job.running.reduce.limit"
                f" to {cores}"
            )
        memory = machine_facts().get("memory_bytes") or math.inf
        if _MOST_MEMORY * memory < needed <= memory:
            shares = f"{format_bytes(needed)} of this machine's {format_bytes(memory)}"
            yield f"the cluster may take {shares} of memory: lower cluster.workers"
        if offered_gpus:
            yield from lacking_gpus(offered_gpus)

    def _tiny_inputs(self) -> Iterator[str]:
        """An input below a block."""
        least_bytes = min(cell.spec.input_bytes for cell in self.cells)
        if least_bytes < LEAST_INPUT:
            yield (
                f"an input of {format_bytes(least_bytes)} shows nothing but how long tasks take to"
                " start: write 32 MiB"
            )

    def _own_models(self) -> Iterator[str]:
        """Models of the user's own without an answer to a first question."""
        from harness.core.evaluate.contract import first_complaint

        for name, code in self.experiment.predict.code.items():
            if complaint := first_complaint(OwnModel(kept_own(code))):
                yield f"the model {name} may have no answer: {complaint}"

    def warn_of_lacks(self) -> None:
        """Report in a plan, which may be for another machine, what would not run from here."""
        for check in (*self.checks, self.look):
            try:
                check()
            except HarnessError as error:
                parts = (("at", error.where), ("fix", error.fix))
                hints = "; ".join(f"{name}: {text}" for name, text in parts if text)
                lack = f"{error.what} ({hints})" if hints else error.what
                self.console.say(f"warning: this machine will not run it: {lack}")

    def look(self) -> None:
        """Report each cluster's reach, and what is seen of one that runs; `HarnessError`: unfit."""
        for sentence in {
            PROVIDERS[cluster.provider].reach(cluster): None for cluster in self.clusters
        }:
            self.console.say(f"reach: {sentence}")
        for cluster in self.clusters:
            if seen := PROVIDERS[cluster.provider].look(cluster):
                self.console.say(f"{cluster.provider} cluster: {seen}")

    def _unknown_properties(self) -> list[str]:
        """Properties whose names start as Hadoop's do and that it does not know."""
        given = {**self.experiment.cluster.site, **self.experiment.configuration}
        unknown = [name for name in given if not is_known(name) and not is_own(name)]
        warnings = []
        for property_name in unknown[:MOST_WARNINGS]:
            nearest = resembling(property_name)
            hint = f"; the nearest that it knows is {nearest}" if nearest else ""
            warnings.append(f"Hadoop knows no property {property_name}: passed on as it is{hint}")
        if unknown[MOST_WARNINGS:]:
            warnings.append(f"and {len(unknown) - MOST_WARNINGS} more such properties")
        return warnings

    def overridden_properties(self) -> list[str]:
        """Properties of the file that a workload sets to another value itself."""
        overridden = set[str]()
        for cell in self.cells:
            for property_name, value in cell.configuration.items():
                if cell.cell.configuration.get(property_name, value) != value:
                    overridden.add(
                        f"{cell.spec.name} sets {property_name} to {value},"
                        " whatever the configuration says"
                    )
        return sorted(overridden)


def lacking_gpus(offered: int) -> Iterator[str]:
    """GPUs that nodes offer in total, and that this machine has not, or has lost."""
    devices = find_devices(here)
    if devices.gpus and devices.message:
        yield f"nvidia-smi fails, the GPUs here may not work: {devices.message}"
    if len(devices.gpus) < offered:
        yield (
            f"nodes offer {offered} GPUs in total, and this machine has"
            f" {len(devices.gpus) or 'none'}: YARN does not check that, and tasks that use"
            " a missing GPU fail"
        )


def memory_needed(cluster: ClusterSpec, slots: Cluster) -> int:
    """Bytes that all processes of a cluster on one machine take at once, tasks at their limit."""
    daemons = (2 * cluster.workers + 3) * DAEMON_BYTES
    tasks = max(slots.map_slots, slots.reduce_slots) * cluster.node.task_memory_bytes
    return daemons + tasks + AM_MEMORY_MB * MIB
