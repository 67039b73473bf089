"""
A cell with what follows from it: its workload, the properties of its jobs, a model's inputs.

Who opens a run or an experiment resolves its cells, once; all others are given them resolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.base.errors import HarnessError
from harness.base.hadoop.properties import job_config, split_counts, whole
from harness.base.hadoop.site import block_bytes, client_properties
from harness.base.hadoop.slots import effective
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.trial import Cell, WorkloadSpec
from harness.clusters.workloads.base import InputPlan, JobCommand, Workload

ModelInputs = tuple[JobConfig, Cluster, JobInput]


@dataclass(frozen=True)
class ResolvedCell:
    """
    A *cell* with the workload that was *found* for it, or with the reason why there is none.

    A run of another harness may have such cells: all but its jobs is known of them.
    """

    cell: Cell
    found: Workload | HarnessError

    @cached_property
    def id(self) -> str:
        """Id of the cell."""
        return self.cell.id

    @property
    def spec(self) -> WorkloadSpec:
        """What the cell asks of its workload."""
        return self.cell.workload

    @property
    def is_named_in_files(self) -> bool:
        """Whether an experiment file can name its workload: no code of a user, no past jobs."""
        return self.spec.code is None and not self.cell.was_imported

    @property
    def workload(self) -> Workload:
        """The workload; the `HarnessError` with the reason where there is none."""
        if isinstance(self.found, HarnessError):
            raise self.found
        return self.found

    @cached_property
    def configuration(self) -> Mapping[str, str]:
        """Effective configuration: that of the cell, and over it what its workload sets itself."""
        return {**self.cell.configuration, **self.workload.properties(self.spec)}

    @cached_property
    def client_configuration(self) -> Mapping[str, str]:
        """All properties of the client that submits its jobs."""
        return {**client_properties(self.cell.cluster), **self.configuration}

    @property
    def planned_jobs(self) -> int | None:
        """Jobs of one trial; `None`: as many as it takes."""
        return self.workload.jobs(self.spec)

    @property
    def output_copies(self) -> int:
        """How many copies HDFS keeps of what its jobs write."""
        return self.workload.output_copies(self.client_configuration)

    def configured(self, configuration: Mapping[str, str]) -> ResolvedCell:
        """Give the cell with another *configuration*, its workload as it finds that."""
        cell = self.cell.model_copy(update={"configuration": dict(configuration)})
        return ResolvedCell(cell, self.workload.configured(configuration))

    def plan_input(self) -> InputPlan:
        """Plan its input in blocks of its cluster; `SpecError`: the workload cannot make it."""
        return self.workload.plan_input(self.spec, block_bytes(self.cell.cluster))

    def required_jars(self) -> Iterator[str]:
        """Names of our own jars that run its jobs, or make their input."""
        generator = self.workload.generate(self.spec, block_bytes(self.cell.cluster), "/input")
        for command in (*self.workload.submit(self.spec, "/input", "/output"), generator):
            if isinstance(command, JobCommand) and command.jar:
                yield command.jar

    @cached_property
    def model_inputs(self) -> ModelInputs:
        """What a model is given of each of its jobs: configuration, effective slots, input."""
        return self._model_inputs(self.plan_input().sizes)

    def later_inputs(self, size_ratio: float) -> ModelInputs:
        """
        What a model is given of a job that reads what another of its jobs wrote.

        That are *size_ratio* times the bytes of its own input, in a file of each reduce (or map).
        """
        configuration, _, job_input = self.model_inputs
        file_count = configuration.num_reduces or job_input.num_splits
        file_bytes = max(1, round(size_ratio * job_input.input_bytes / file_count))
        return self._model_inputs([file_bytes] * file_count)

    def _model_inputs(self, file_sizes: Sequence[int]) -> ModelInputs:
        """The inputs of a job that reads files of these sizes."""
        properties = self.client_configuration
        input_bytes = sum(file_sizes)
        split_count = sum(split_counts(file_sizes, block_bytes(self.cell.cluster), properties))
        gpu_block = self.workload.arguments(self.spec).get("block")  # given to a device at once
        return (
            job_config(properties, use_combiner=self.workload.uses_combiner),
            effective(self.cell.cluster, self.configuration),
            JobInput(
                input_bytes=input_bytes,
                num_files=len(file_sizes),
                num_splits=split_count,
                split_bytes=input_bytes / split_count,
                replication=whole("dfs.replication", properties["dfs.replication"]),
                gpu_block_bytes=gpu_block if isinstance(gpu_block, int) else 0,
            ),
        )
