"""
The GPU workloads' common part, and two of them: matrix product, and depth from stereo video.

A map collects the records of its split into blocks, and hands each to a CUDA device or, where there
is none, to the processor (``workloads/gpu``).  Counters and the task's log say which it was.

The proof of `GpuMatmul` is Freivalds' check in double precision, that of `GpuSbs` the same whole
numbers by another way (windows by running sums); of large outputs, at even distances.
"""

from __future__ import annotations

import hashlib
import math
import zlib

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from numpy.typing import NDArray

from harness.base.records.trial import WorkloadSpec, digest
from harness.clusters.workloads.base import (
    GPU,
    File,
    InputPlan,
    Parameter,
    Sample,
    Workload,
    block_count,
    check_block,
    check_size,
    even_sizes,
    job_of_ours,
)
from harness.clusters.workloads.files import Bytes, difference, read_rows, regroup

VERSION = 1  # of the generators' bytes and of the samples kept beside them
GPU_OF_MAP = "mapreduce.map.resource.yarn.io/gpu"
MOST_TILES = 256  # of a matrix product that are multiplied by the vector
HEAD = np.dtype([("row", "<i4"), ("column", "<i4"), ("products", "<i4"), ("crc", "<u4")])
_SLACK = 8  # roundings of single precision by which a sum may be wrong
MOST_COSTS = 400_000_000  # pixels x shifts of a video that the proof computes: some ten seconds
MOST_FRAMES = 100_000  # of which it keeps a checksum


def device_parameters(block: int) -> dict[str, Parameter]:
    """Arguments of every GPU workload; *block* is the default of theirs, in bytes."""
    return {
        "device": Parameter(
            "any",
            "gpu: a CUDA device, which the cluster must offer; cpu: the processor instead;"
            " any: a CUDA device where there is one",
            choices=("gpu", "cpu", "any"),
        ),
        "block": Parameter(block, "bytes that the device gets at once: whole records", 1, 2**30),
        "threads": Parameter(1, "threads of a map, where the processor computes", 1, 1024),
        "pinned": Parameter("no", "blocks in pinned memory of the host?", choices=("no", "yes")),
        "memory": Parameter(0, "most bytes of the device's memory for a map; 0: no limit", 0),
    }


class GpuWorkload(Workload):
    """
    One client of our GPU jar.

    The client gets all parameters, the generator `generator_parameters`.  `content` is its name of
    the input's records; `key_parameters` are those that their bytes, or what is kept of them,
    depend on.  The number of records is a multiple of the parameter `together`, and as large as
    `least`, where they are given.
    """

    jar = GPU
    content: str
    generator_parameters: tuple[str, ...]
    key_parameters: tuple[str, ...]
    together = least = ""

    @abstractmethod
    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a record of the input."""

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """Each map asks YARN for a GPU where *device* is gpu."""
        return {GPU_OF_MAP: "1"} if self.arguments(spec)["device"] == "gpu" else {}

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """
        Fewest files of whole records, each in one block; their records differ by one at most.

        Their client makes the same records for any number of files.  `SpecError` where their sum
        misses what is asked for by more than 1 %.
        """
        arguments = self.arguments(spec)
        record_bytes = self.record_bytes(arguments)
        records_together = arguments.get(self.together, 1)
        least = arguments.get(self.least, 1)
        unit_bytes = record_bytes * records_together
        nearest = max(least, (spec.input_bytes + unit_bytes // 2) // unit_bytes)
        record_count = nearest * records_together
        check_block(spec, block_bytes, record_bytes)
        units = f"{least} or more times {unit_bytes} bytes"
        check_size(spec, record_count * record_bytes, units, 50 * unit_bytes)
        file_count = block_count(spec, record_count, block_bytes // record_bytes)
        sizes = [records * record_bytes for records in even_sizes(record_count, file_count)]
        generator_arguments = {name: arguments[name] for name in self.generator_parameters}
        generator_arguments |= {"seed": spec.seed, "records": record_count, "files": file_count}
        properties = {f"gpu.{name}": argument for name, argument in generator_arguments.items()}
        content = {name: arguments[name] for name in self.key_parameters}
        content |= {spec.name: VERSION, "seed": spec.seed, "sizes": sizes}
        return InputPlan(
            f"{spec.name}-{digest(content)}",
            sizes,
            job_of_ours("Generate", self.content, properties=properties, jar=GPU),
        )

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """All arguments; iterations are jobs, which the client runs one after the other."""
        arguments = self.arguments(spec)
        arguments["pinned"] = "true" if arguments["pinned"] == "yes" else "false"
        return {f"gpu.{name}": argument for name, argument in arguments.items()}


class GpuMatmul(GpuWorkload):
    """
    C = A B in tiles of *tile* x *tile* 32-bit floats; a tile of C is the sum of *inner* products.

    A record is a pair of tiles to multiply.  A pair of *tile* squared elements takes 2 tile^3
    operations, *repeats* times: tile and repeats set the operations per byte.
    """

    name = "gpu-matmul"
    description = "Matrix product on a GPU, any arithmetic per byte; verified by Freivalds' check"
    parameters: ClassVar = {
        **device_parameters(4 * 2**20),
        "tile": Parameter(128, "rows and columns of a tile; fastest where 128 divides it", 1, 4096),
        "inner": Parameter(4, "products in each tile of the result", 1, 4096),
        "repeats": Parameter(1, "times that each product is computed", 1, 100_000),
    }
    # HiBench has no such workload: 16 MiB, then as its sizes grow.
    sizes = tuple(mib * 2**20 for mib in (16, 256, 2048, 16_384, 131_072, 524_288))
    main_class = "GpuMatmul"
    content = "pairs"
    generator_parameters = key_parameters = ("tile", "inner")
    together = "inner"

    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a pair of tiles."""
        return 8 * int(arguments["tile"]) ** 2

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `tiles` of the result, `stride`, and `checks`: every n-th times the vector."""
        arguments = self.arguments(spec)
        tile = arguments["tile"]
        inner = arguments["inner"]
        pair_bytes = self.record_bytes(arguments)
        stride = max(1, -(-spec.input_bytes // (pair_bytes * inner) // MOST_TILES))
        signs = signs_of(tile)
        count = 0
        checks: list[NDArray[np.float64]] = []
        for rows in read_rows(spec.name, input_files, pair_bytes):
            for left, right in rows.view("<f4").reshape(-1, 2, tile, tile):
                number, product = divmod(count, inner)
                if number % stride == 0:
                    if product == 0:
                        checks.append(np.zeros(tile))
                    checks[-1] += left.astype(float) @ (right.astype(float) @ signs)
                count += 1
        return {
            "tiles": count // inner,
            "stride": stride,
            "checks": [check.tolist() for check in checks],
        }

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Every tile in its place and undamaged, and the sampled ones right within rounding."""
        arguments = self.arguments(spec)
        tile = arguments["tile"]
        inner = arguments["inner"]
        tile_bytes = HEAD.itemsize + 4 * tile * tile
        columns = columns_of(max(1, sample["tiles"]))
        count = 0
        signs = signs_of(tile)
        checks = sample["checks"]
        # Each of `tile` elements in a sum is wrong by roundings of inner x tile terms below 1.
        allowed = _SLACK * float(np.finfo(np.float32).eps) * inner * tile * math.sqrt(tile)
        for file_name, file_chunks in outputs:
            for data in regroup(file_chunks, tile_bytes):
                if len(data) != tile_bytes:
                    reason = f"{len(data)} bytes at the end are not a tile of {tile_bytes} bytes"
                    return f"{file_name}: {reason}"
                reason = tile_damage(data, divmod(count, columns), inner)
                index, rest = divmod(count, sample["stride"])
                if not reason and rest == 0 and index < len(checks):
                    elements = np.frombuffer(data, "<f4", offset=HEAD.itemsize)
                    product = elements.reshape(tile, tile).astype(float) @ signs
                    error = float(np.abs(product - np.array(checks[index])).max())
                    if not error <= allowed:
                        reason = f"is wrong: a sum misses by {error:.3g}, more than {allowed:.3g}"
                if reason:
                    return f"{file_name}: tile {count} {reason}"
                count += 1
        return "" if count == sample["tiles"] else f"{count} tiles, not {sample['tiles']}"


def tile_damage(data: bytes, place: tuple[int, int], products: int) -> str:
    """What is wrong with a tile due at *place* (row, column), by its head; or nothing."""
    head = np.frombuffer(data, HEAD, 1)[0]
    if (int(head["row"]), int(head["column"])) != place:
        return f"is that of row {head['row']}, column {head['column']}"
    if int(head["products"]) != products:
        return f"is the sum of {head['products']} products, not of {products}"
    if zlib.crc32(data[HEAD.itemsize :]) != int(head["crc"]):
        return "is damaged: its CRC-32 differs"
    return ""


def columns_of(tiles: int) -> int:
    """
    Columns of a result of *tiles* tiles: the largest divisor that is no more than its rows.

    >>> columns_of(12), columns_of(7)
    (3, 1)
    """
    return next(columns for columns in range(math.isqrt(tiles), 0, -1) if tiles % columns == 0)


def signs_of(tile: int) -> NDArray[np.float64]:
    """Signs, fixed for ever: samples are kept with the input."""
    return 1.0 - 2.0 * (np.random.PCG64(tile).random_raw(tile) >> np.uint64(63)).astype(float)


class GpuSbs(GpuWorkload):
    """
    Depth by block matching: for each pixel of the left view, how far the right view shows it moved.

    Frames are raw: RGB, *width* x *height*, the left view in the left half.  The output has a grey
    frame of half the width for each, in their order.  ``workloads/gpu/kernels/sbs.h`` has the
    arithmetic.
    """

    name = "gpu-sbs"
    description = "Stereo video to depth video, matched on a GPU; verified by another algorithm"
    parameters: ClassVar = {
        **device_parameters(4 * 2**20),
        "width": Parameter(640, "columns of a frame, both views", 2, 16_384, step=2),
        "height": Parameter(180, "rows of a frame", 1, 16_384),
        "shifts": Parameter(16, "distances that are compared, from 0", 2, 256),
        "radius": Parameter(2, "pixels of the window to each side of its middle", 0, 7),
    }
    # HiBench has no such workload: 60 frames of the default size (20.7 MB), then as its sizes grow.
    sizes = (20.736e6, 207.36e6, 2.0736e9, 20.736e9, 103.68e9, 311.04e9)
    main_class = "GpuSbs"
    content = "frames"
    generator_parameters = ("width", "height", "shifts")
    key_parameters = ("width", "height", "shifts", "radius")

    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a frame."""
        return 3 * int(arguments["width"]) * int(arguments["height"])

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `frames` (all), `stride`, and `depths`: a checksum of every *stride*-th one."""
        arguments = self.arguments(spec)
        frame_bytes = self.record_bytes(arguments)
        shifts = arguments["shifts"]
        costs = frame_bytes // 6 * shifts
        frames = spec.input_bytes // frame_bytes
        stride = max(1, -(-frames * costs // MOST_COSTS), -(-frames // MOST_FRAMES))
        count = 0
        depths = []
        for rows in read_rows(spec.name, input_files, frame_bytes):
            for row in rows[-count % stride :: stride]:
                frame = row.reshape(arguments["height"], arguments["width"], 3)
                depth = depth_of(frame, shifts, arguments["radius"])
                depths.append(hashlib.sha256(depth.tobytes()).hexdigest()[:16])
            count += len(rows)
        return {"frames": count, "stride": stride, "depths": depths}

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """As many frames as the input has, in their order, and the sampled ones to the byte."""
        size = self.record_bytes(self.arguments(spec)) // 6
        count = 0
        stride = sample["stride"]
        expected = sample["depths"]
        for file_name, file_chunks in outputs:
            for frame in regroup(file_chunks, size):
                if len(frame) != size:
                    return f"{file_name} ends inside a depth frame of {size} bytes"
                index, rest = divmod(count, stride)
                if rest == 0 and index < len(expected):
                    checksum = hashlib.sha256(frame).hexdigest()[:16]
                    if checksum != expected[index]:
                        return f"{file_name}: depth frame {count} is wrong"
                count += 1
        return difference({"frames": count}, sample)


def depth_of(frame: Bytes, shifts: int, radius: int) -> Bytes:
    """Depth of one frame (rows, columns, RGB), by the definition, all shifts at once."""
    luma = (frame.astype(np.int32) @ np.array([77, 150, 29], np.int32)) >> 8
    view = luma.shape[1] // 2
    left = luma[:, :view]
    right = luma[:, view:]
    columns = np.arange(view)
    costs = np.stack(
        [np.abs(left - right[:, np.maximum(columns - shift, 0)]) for shift in range(shifts)]
    )
    padded = np.pad(costs, ((0, 0), (radius + 1, radius), (radius + 1, radius)), "edge")
    # Sum over each window: the running sums at its corners.
    sums = padded.cumsum(axis=1).cumsum(axis=2)
    side = 2 * radius + 1
    differences = sums[:, side:, side:] - sums[:, :-side, side:] - sums[:, side:, :-side]
    differences += sums[:, :-side, :-side]
    depth: Bytes = (255 * differences.argmin(axis=0) // (shifts - 1)).astype(np.uint8)
    return depth
