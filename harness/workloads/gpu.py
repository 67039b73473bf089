"""
What the GPU workloads share: arguments of the device, inputs of whole records, their client.

A map collects the records of its split into blocks, and hands each to a CUDA device or, in its
stead, to the processor (``workloads/gpu``).  Counters and the task's log say which of them it was.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import (
    GPU,
    InputPlan,
    JobCommand,
    Parameter,
    Value,
    Workload,
    check_block,
    check_file_count,
    check_size,
    even_sizes,
    part_files,
)

PACKAGE = "mapreduce.harness.gpu"
VERSION = 1  # of the generators' bytes and of the samples kept beside them
GPU_OF_MAP = "mapreduce.map.resource.yarn.io/gpu"


def device_parameters(block: int) -> dict[str, Parameter]:
    """Arguments of every GPU workload; *block* is the default of theirs, in bytes."""
    return {
        "device": Parameter(
            "any",
            "gpu: a CUDA device, which the cluster must offer; cpu: the processor in its stead;"
            " any: a CUDA device where there is one",
            choices=("gpu", "cpu", "any"),
        ),
        "block": Parameter(
            block, "bytes that the device gets at once: whole records, one at least", 1, 2**30
        ),
        "threads": Parameter(1, "threads of a map, where the processor computes", 1, 1024),
        "pinned": Parameter(
            "no", "whether blocks lie in pinned memory of the host", choices=("no", "yes")
        ),
        "memory": Parameter(
            0, "bytes of the device's memory that a map takes at most; 0: no limit", 0
        ),
    }


class GpuWorkload(Workload):
    """
    One client of our GPU jar.

    `main_class` is the client's, `content` the generator's name of the input's records.  Of the
    parameters, the generator gets `generator_parameters`, and the client all but `not_of_client`;
    `key_parameters` are those that the input's bytes, or what is kept of them, depend on.
    """

    main_class: str
    content: str
    generator_parameters: tuple[str, ...]
    key_parameters: tuple[str, ...]
    not_of_client: tuple[str, ...] = ()

    @abstractmethod
    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a record of the input."""

    def records_together(self, arguments: Mapping[str, Any]) -> int:
        """Return the number of which the number of records is a multiple."""
        return 1

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """Each map asks YARN for a GPU where *device* is gpu."""
        return {GPU_OF_MAP: "1"} if self.arguments(spec)["device"] == "gpu" else {}

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """
        Fewest files of whole records, each in one block, their records equal in number to one.

        `SpecError` where their sum misses what is asked for by more than 1 %.
        """
        arguments = self.arguments(spec)
        record_bytes = self.record_bytes(arguments)
        records_together = self.records_together(arguments)
        unit_bytes = record_bytes * records_together
        record_count = max(1, (spec.input_bytes + unit_bytes // 2) // unit_bytes) * records_together
        check_block(spec, block_bytes, record_bytes)
        check_size(
            spec,
            record_count * record_bytes,
            f"a whole number of {unit_bytes} bytes",
            50 * unit_bytes,
        )
        file_count = check_file_count(spec, -(-record_count // (block_bytes // record_bytes)))
        file_sizes = [records * record_bytes for records in even_sizes(record_count, file_count)]
        content = {
            parameter_name: arguments[parameter_name] for parameter_name in self.key_parameters
        }
        content_key = digest(
            {spec.name: VERSION, "seed": spec.seed, "sizes": file_sizes, **content}
        )
        return InputPlan(f"{spec.name}-{content_key}", part_files(file_sizes))

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Return the client that makes the same records for any number of files."""
        arguments, input_plan = self.arguments(spec), self.plan_input(spec, block_bytes)
        properties = {
            **{
                parameter_name: arguments[parameter_name]
                for parameter_name in self.generator_parameters
            },
            "seed": spec.seed,
            "records": input_plan.bytes // self.record_bytes(arguments),
            "files": len(input_plan.files),
        }
        return gpu_command("Generate", self.content, input_uri, properties=properties)

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One client; iterations are jobs, which it runs one after the other."""
        properties = self.arguments(spec)
        for parameter_name in self.not_of_client:
            del properties[parameter_name]
        properties["pinned"] = "true" if properties["pinned"] == "yes" else "false"
        return (gpu_command(self.main_class, input_uri, output_uri, properties=properties),)


def gpu_command(main: str, *places: str, properties: Mapping[str, Value]) -> JobCommand:
    """Return the client *main* of our GPU jar."""
    texts = {
        f"gpu.{property_name}": str(property_value)
        for property_name, property_value in properties.items()
    }
    return JobCommand(f"{PACKAGE}.{main}", places, properties=texts, jar=GPU)
