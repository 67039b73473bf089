"""
Inputs in the cluster's file system: made once per content, checked to be the size asked for.

An input appears under its content key by one rename, so a half-written one is never read.
"""

from __future__ import annotations

import time

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import JobError
from harness.hadoop.daemons import ONE_COMPILER
from harness.providers.masters import Hdfs
from harness.records.trial import WorkloadSpec
from harness.run.jobs import JobRunner
from harness.workloads.base import INPUT_TOLERANCE, InputPlan, Workload

MAP_OPTIONS = "mapreduce.map.java.opts"
_ALL_COMPILERS = "-XX:TieredStopAtLevel=4"


@dataclass(frozen=True, slots=True)
class ReadyInput:
    """An input in the file system: where it is, its files, and what the verdict needs."""

    uri: str
    plan: InputPlan
    sample: Mapping[str, Any]


@dataclass
class Inputs:
    """
    The inputs of one running cluster.

    *await_idle* returns when no application has a container: the trial after a generator's job
    must not share the cluster with its application master.  *properties* are those of generators;
    *folder* of the file system has the inputs.
    """

    hdfs: Hdfs
    jobs: JobRunner
    logs: Path
    say: Callable[[str], None]
    await_idle: Callable[[], None]
    properties: Mapping[str, str] = field(default_factory=dict)
    ready: dict[str, ReadyInput] = field(default_factory=dict)
    partial: str = ""
    folder: str = "/harness/input"

    def ensure(
        self, workload: Workload, workload_spec: WorkloadSpec, block_bytes: int
    ) -> ReadyInput:
        """Make the input of *workload_spec* unless it is there; `JobError`: its size is wrong."""
        input_plan = workload.plan_input(workload_spec, block_bytes)
        if input_plan.key in self.ready:
            return self.ready[input_plan.key]
        self.say(
            f"input: {workload_spec.name} {workload_spec.input_bytes} bytes in"
            f" {len(input_plan.files)} files"
        )
        target = f"{self.folder}/{input_plan.key}"
        self.partial = f"{self.folder}/.partial-{input_plan.key}-{time.time_ns()}"
        self.hdfs.delete(target)
        command = workload.generate(workload_spec, block_bytes, self.partial)
        self.jobs.run(command, self.properties, self.logs / f"generate-{input_plan.key}.log")
        # Compared with the plan, not with what was asked: some jobs read less than they move.
        sizes = {
            name: size for name, size, is_folder in self.hdfs.list(self.partial) if not is_folder
        }
        total_bytes = sum(sizes.get(file.name, 0) for file in input_plan.files)
        if abs(total_bytes - input_plan.bytes) > INPUT_TOLERANCE * input_plan.bytes:
            raise JobError(
                f"input of {workload_spec.name} has {total_bytes} bytes, and its plan has"
                f" {input_plan.bytes}",
                where=self.partial,
                fix="read the generator's log, kept with the trial",
            )
        opened = self.hdfs.open_many([f"{self.partial}/{file.name}" for file in input_plan.files])
        files = ((path.rpartition("/")[2], chunks) for path, chunks in opened)
        sample = workload.sample(workload_spec, files)
        self.hdfs.rename(self.partial, target)
        self.partial = ""
        self.await_idle()
        self.ready[input_plan.key] = ReadyInput(target, input_plan, sample)
        return self.ready[input_plan.key]

    def remove_partial(self) -> None:
        """Remove what a generator left half-made: a full file system has room again."""
        if self.partial:
            self.hdfs.delete(self.partial)
            self.partial = ""


def generator_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """
    Properties of jobs that make inputs, on a cluster whose clients see *properties*.

    They run long enough for the optimising compiler, which our tasks leave out; nobody measures
    them.

    >>> generator_properties({"mapreduce.map.java.opts": "-Xmx409m -XX:TieredStopAtLevel=1"})
    {'mapreduce.map.java.opts': '-Xmx409m -XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4'}
    """
    options = properties.get(MAP_OPTIONS, "")
    return {MAP_OPTIONS: f"{options} {_ALL_COMPILERS}"} if ONE_COMPILER in options else {}
