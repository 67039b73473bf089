"""
What the GPU workloads share: arguments of the device, inputs of whole records, their client.

A map collects the records of its split into blocks, and hands each to a CUDA device or, in its
stead, to the processor (``workloads/gpu``).  Counters and the task's log say which of them it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from numpy.typing import NDArray

from harness.errors import JobError, SpecError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import GPU, File, InputFile, InputPlan, JobCommand, Parameter, Value
from harness.workloads.shape import MOST_FILES, arguments, even_sizes, regroup

PACKAGE = "mapreduce.harness.gpu"
VERSION = 1  # of the generators' bytes and of the samples kept beside them
GPU_OF_MAP = "mapreduce.map.resource.yarn.io/gpu"
_GIB = 2**30


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
            block, "bytes that the device gets at once: whole records, one at least", 1, _GIB
        ),
        "threads": Parameter(1, "threads of a map, where the processor computes", 1, 1024),
        "pinned": Parameter(
            "no", "whether blocks lie in pinned memory of the host", choices=("no", "yes")
        ),
        "memory": Parameter(
            0, "bytes of the device's memory that a map takes at most; 0: no limit", 0
        ),
    }


def gpu_properties(spec: WorkloadSpec, known: Mapping[str, Parameter]) -> dict[str, str]:
    """Each map asks YARN for a GPU where the device must be one."""
    return {GPU_OF_MAP: "1"} if arguments(spec, known)["device"] == "gpu" else {}


def client(
    main: str,
    places: tuple[str, ...],
    values: Mapping[str, Value],
    own: Iterable[str],
    more: Mapping[str, str] | None = None,
) -> JobCommand:
    """
    Return the client *main* of our jar: the arguments named in *own* become its properties.

    *places* are its arguments, *more* properties beside.
    """
    properties = {f"gpu.{name}": str(values[name]) for name in own}
    if "gpu.pinned" in properties:
        properties["gpu.pinned"] = str(values["pinned"] == "yes").lower()
    return JobCommand(
        f"{PACKAGE}.{main}", places, properties={**properties, **(more or {})}, jar=GPU
    )


def generator(
    kind: str, plan: InputPlan, record: int, spec: WorkloadSpec, properties: Mapping[str, str],
    uri: str,
) -> JobCommand:  # fmt: skip
    """Return the client that makes the files of *plan*, records of *record* bytes."""
    asked = {
        "gpu.seed": str(spec.seed),
        "gpu.records": str(plan.bytes // record),
        "gpu.files": str(len(plan.files)),
    }
    return client("Generate", (kind, uri), {}, (), {**properties, **asked})


def plan_records(
    spec: WorkloadSpec, block_bytes: int, record: int, content: Mapping[str, Value], group: int = 1
) -> InputPlan:
    """
    Files of whole records, each in one block, the sum as near to what is asked as *group* allows.

    The number of records is a multiple of *group*.  *content* is all beside seed and sizes that the
    bytes, or what is kept of them, depend on.  `SpecError` where the sum misses by more than 1 %.
    """
    unit = record * group
    count = max(1, (spec.input_bytes + unit // 2) // unit) * group
    _check(spec, block_bytes, record, count, unit)
    most = block_bytes // record
    files = -(-count // most)
    if files > MOST_FILES:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes has {files} blocks, more than {MOST_FILES}",
            where=f"{spec.name}, input",
            fix="ask for less input, or for larger blocks (cluster.site.dfs.blocksize)",
        )
    sizes = [n * record for n in even_sizes(count, files)]
    key = digest({spec.name: VERSION, "seed": spec.seed, "sizes": sizes, **content})
    names = (f"part-m-{number:05d}" for number in range(files))
    return InputPlan(f"{spec.name}-{key}", tuple(map(InputFile, names, sizes)))


def _check(spec: WorkloadSpec, block_bytes: int, record: int, count: int, unit: int) -> None:
    if record > block_bytes:
        raise SpecError(
            f"a record of {record} bytes does not fit a block of {block_bytes} bytes",
            where=f"{spec.name}, dfs.blocksize",
            fix="use larger blocks (cluster.site.dfs.blocksize), or smaller records",
        )
    if abs(count * record - spec.input_bytes) * 100 > spec.input_bytes:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes is too far from a whole number of {unit} bytes",
            where=f"{spec.name}, input",
            fix=f"ask for {count * record} bytes, or for {50 * unit} bytes or more",
        )


def read_records(
    workload: str, files: Iterable[File], record: int, at_once: int = 2**20
) -> Iterator[NDArray[np.uint8]]:
    """
    Records of all *files* in order, as arrays (records, *record* bytes) of about *at_once* bytes.

    Raises `JobError` naming a file that does not consist of whole records.
    """
    for name, chunks in files:
        size = 0
        for piece in regroup(chunks, max(1, at_once // record) * record):
            size += len(piece)
            if len(piece) % record:
                raise JobError(
                    f"{name} has {size} bytes, no whole number of records of {record} bytes",
                    where=f"input of {workload}, as its generator left it",
                    fix="remove this input, so that it is generated again",
                )
            yield np.frombuffer(piece, np.uint8).reshape(-1, record)
