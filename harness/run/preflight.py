"""
Whether this machine can run an experiment, and what its author may not expect of it.

All of it is said before anything is started.
"""

from __future__ import annotations

import os
import shutil

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from harness.errors import HarnessError, MachineError
from harness.evaluate.cells import configured, jars_of, overruled
from harness.experiment.grid import expand
from harness.experiment.model import Experiment
from harness.hadoop.names import is_known, is_own, resembling
from harness.hadoop.site import AM_MEMORY_MB, client_properties
from harness.hadoop.slots import effective
from harness.hadoop_home.home import HadoopHome, job_jar
from harness.monitor.machine import machine_facts
from harness.providers import PROVIDERS
from harness.providers.gpus import find_devices, here
from harness.providers.state import clusters_folder
from harness.records.prediction import Cluster
from harness.records.trial import Cell, ClusterSpec
from harness.run.talk import Talk
from harness.units import MIB, format_bytes

DAEMON_BYTES = 250 * MIB  # resident, idle, with the class-data archive
LEAST_INPUT = 64 * 2**10  # one block at least (dfs.namenode.fs-limits.min-block-size)
MOST_WARNINGS = 5  # of one kind: each says the same


@dataclass
class Fitness:
    """An *experiment* of the file *source* before this machine; *find_home* gives Hadoop's home."""

    experiment: Experiment
    source: str
    find_home: Callable[[], HadoopHome]
    talk: Talk

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells of the experiment."""
        return expand(self.experiment)

    @property
    def _refusals(self) -> tuple[Callable[[], None], ...]:
        return (
            self._refuse_too_large,
            self._refuse_too_much_input,
            self._refuse_untraceable,
            self._refuse_unbuilt,
            self._refuse_unlimitable,
        )

    @property
    def _here(self) -> bool:
        """Whether the cluster lives on this machine's memory and disk."""
        return PROVIDERS[self.experiment.cluster.provider].on_this_machine

    def refuse(self) -> None:
        """Raise `MachineError` for the first thing that this machine lacks or cannot hold."""
        for refuse_it in self._refusals:
            refuse_it()

    def _refuse_too_large(self) -> None:
        """Raise `MachineError` for a cluster whose processes this machine's memory cannot hold."""
        memory = machine_facts().get("memory_bytes")
        if not self._here:
            return
        for cell in self.cells:
            needed = memory_needed(cell.cluster, effective(cell.cluster, configured(cell)))
            if memory and needed > memory:
                raise MachineError(
                    f"{cell.cluster.workers} workers and their tasks take {format_bytes(needed)},"
                    f" and this machine has {format_bytes(memory)}",
                    where=self.source,
                    fix="lower cluster.workers, cluster.node.task_memory or the slots",
                )

    def _refuse_too_much_input(self) -> None:
        """Raise `MachineError` for an input that has no room on the disk of the clusters."""
        if not self._here:
            return
        free = shutil.disk_usage(clusters_folder()).free
        for cell in self.cells:
            size = cell.workload.input_bytes
            needed = size * int(client_properties(cell.cluster)["dfs.replication"])
            if needed > free:
                raise MachineError(
                    f"an input of {format_bytes(size)} takes {format_bytes(needed)} with its"
                    f" replicas, and {format_bytes(free)} are free",
                    where=str(clusters_folder()),
                    fix="lower the input, or set XDG_STATE_HOME to a folder on a larger disk",
                )

    def _refuse_untraceable(self) -> None:
        """Raise `MachineError` where tasks are to be traced and the home lacks what that takes."""
        mode = self.experiment.tracing.mode
        if mode in ("spans", "units") and self.find_home().trace_path_jar is None:
            raise MachineError(
                f"trace: {mode} needs Hadoop's classes with the tracer's hooks, and there are none",
                where=str(self.find_home().path),
                fix="make setup (or write trace: logs)",
            )

    def _refuse_unbuilt(self) -> None:
        """Raise `MachineError` where a jar of our own jobs that the trials run is not built."""
        one_of_each = {cell.workload.name: cell for cell in self.cells}
        for jar in sorted({jar for cell in one_of_each.values() for jar in jars_of(cell)}):
            job_jar(jar)

    def _refuse_unlimitable(self) -> None:
        """Raise `MachineError` where nodes are to be limited, and this user cannot do it here."""
        for spec in {cell.cluster.id: cell.cluster for cell in self.cells}.values():
            PROVIDERS[spec.provider].require_limits(spec)

    def warn(self) -> None:
        """Tell before anything is started what will not be what its author expects."""
        self._warn_of_names()
        self._warn_of_overruled()
        self._warn_of_contention()
        self._warn_of_gpus()
        least = min(cell.workload.input_bytes for cell in self.cells)
        if least < LEAST_INPUT:
            self.talk.say(
                f"warning: an input of {format_bytes(least)} tells nothing but how long tasks take"
                " to start; a number without a unit is bytes: write 32 MiB"
            )

    def warn_of_lacks(self) -> None:
        """Say in a plan, which may be for another machine, what this one would refuse to run."""
        for refuse_it in self._refusals:
            try:
                refuse_it()
            except MachineError as error:
                self.talk.say(f"warning: {error.what}: this machine will not run it")

    def look(self) -> None:
        """Say what is seen of clusters that run already; `HarnessError`: they cannot be used."""
        for spec in {cell.cluster.id: cell.cluster for cell in self.cells}.values():
            if seen := PROVIDERS[spec.provider].look(spec):
                self.talk.say(f"{spec.provider} cluster: {seen}")

    def look_in_vain(self) -> None:
        """The same in a plan, which is made whatever is seen."""
        try:
            self.look()
        except HarnessError as error:
            said = f"{error.what} (at: {error.where}; fix: {error.fix})"
            self.talk.say(f"warning: {said}: nothing would run")

    def _warn_of_names(self) -> None:
        """Tell of properties that begin as Hadoop's do and that it does not know."""
        given = {**self.experiment.cluster.site, **self.experiment.configuration}
        strange = [name for name in given if not is_known(name) and not is_own(name)]
        for name in strange[:MOST_WARNINGS]:
            near = resembling(name)
            hint = f"; the nearest that it knows is {near}" if near else ""
            self.talk.say(f"warning: Hadoop knows no property {name}: passed on as it is{hint}")
        if strange[MOST_WARNINGS:]:
            self.talk.say(f"warning: and {len(strange) - MOST_WARNINGS} more such properties")

    def _warn_of_overruled(self) -> None:
        """Tell of properties that a workload sets itself, whatever the file says."""
        found = {
            f"warning: {cell.workload.name} sets {name} to {value}, whatever the configuration says"
            for cell in self.cells
            for name, value in overruled(cell)
        }
        for warning in sorted(found):
            self.talk.say(warning)

    def _warn_of_contention(self) -> None:
        if not self._here:
            return
        cores = os.cpu_count() or 1
        for cell in self.cells:
            slots = effective(cell.cluster, configured(cell))
            if max(slots.map_slots, slots.reduce_slots) > cores:
                self.talk.say(
                    f"warning: {max(slots.map_slots, slots.reduce_slots)} containers at once on"
                    f" {cores} cores measure contention; set mapreduce.job.running.map.limit"
                    f" and mapreduce.job.running.reduce.limit to {cores}"
                )
                return

    def _warn_of_gpus(self) -> None:
        """Tell of GPUs that nodes of this machine are to offer, and that it has not, or lost."""
        asked = {cell.cluster.node.gpus * cell.cluster.workers for cell in self.cells}
        if not self._here or not any(asked):
            return
        devices = find_devices(here)
        if devices.names and devices.said:
            self.talk.say(f"warning: nvidia-smi fails, the GPUs here may not work: {devices.said}")
        if len(devices.names) < max(asked):
            self.talk.say(
                f"warning: nodes offer {max(asked)} GPUs together, and this machine has"
                f" {len(devices.names) or 'none'}: YARN counts them all the same, and a task that"
                " computes on one fails"
            )


def memory_needed(cluster: ClusterSpec, slots: Cluster) -> int:
    """Bytes that all processes of a cluster on one machine take at once, tasks at their limit."""
    daemons = (2 * cluster.workers + 3) * DAEMON_BYTES
    tasks = max(slots.map_slots, slots.reduce_slots) * cluster.node.task_memory_bytes
    return daemons + tasks + AM_MEMORY_MB * MIB
