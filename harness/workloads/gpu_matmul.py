"""
Product of two matrices, tile by tile, on a GPU.

The proof of its output: the tiles of the result times a vector of signs, against the tiles of the
input times that vector in double precision (Freivalds); of a large result, tiles at even distances.
"""

from __future__ import annotations

import math
import zlib

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.records.trial import WorkloadSpec
from harness.workloads.base import File, InputPlan, JobCommand, Parameter, SingleJob, Value, Verdict
from harness.workloads.gpu import (
    client,
    device_parameters,
    generator,
    gpu_properties,
    plan_records,
    read_records,
)
from harness.workloads.shape import arguments, regroup

# HiBench has no such workload: 16 MiB, then as its sizes grow.
SCALES = {
    "tiny": 16 * 2**20,
    "small": 256 * 2**20,
    "large": 2 * 2**30,
    "huge": 16 * 2**30,
    "gigantic": 128 * 2**30,
    "bigdata": 512 * 2**30,
}

MOST_TILES = 256  # of the result that are multiplied by the vector
HEAD = np.dtype([("row", "<i4"), ("column", "<i4"), ("products", "<i4"), ("crc", "<u4")])
_SLACK = 8  # roundings of single precision that a sum may be off


class GpuMatmul(SingleJob):
    """
    C = A B in tiles of *tile* x *tile* 32-bit floats; a tile of C is the sum of *inner* products.

    A record is a pair of tiles to multiply.  A pair of *tile* squared elements takes 2 tile^3
    operations, *repeats* times: tile and repeats set the operations per byte.
    """

    name = "gpu-matmul"
    uses_combiner = False
    description = (
        "Matrix product by tiles on a GPU, arithmetic per byte at will; proved by Freivalds"
    )
    scales: Mapping[str, int] = SCALES
    parameters: Mapping[str, Parameter] = {  # noqa: RUF012 - nobody writes to it
        **device_parameters(4 * 2**20),
        "tile": Parameter(128, "rows and columns of a tile; fastest where 128 divides it", 1, 4096),
        "inner": Parameter(4, "products in each tile of the result", 1, 4096),
        "repeats": Parameter(1, "times that each product is computed", 1, 100_000),
    }

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """A GPU for each map where *device* is gpu."""
        return gpu_properties(spec, self.parameters)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each, their pairs equal in number to one."""
        values = arguments(spec, self.parameters)
        content = {name: values[name] for name in ("tile", "inner")}
        return plan_records(spec, block_bytes, _pair(values), content, int(values["inner"]))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Pairs of tiles of two matrices, the same for any number of files."""
        values, plan = arguments(spec, self.parameters), self.plan_input(spec, block_bytes)
        own = {f"gpu.{name}": str(values[name]) for name in ("tile", "inner")}
        return generator("pairs", plan, _pair(values), spec, own, uri)

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `tiles` of the result, `stride`, and `checks`: every so many-th times the vector."""
        values = arguments(spec, self.parameters)
        tile, inner = int(values["tile"]), int(values["inner"])
        stride = max(1, -(-spec.input_bytes // (_pair(values) * inner) // MOST_TILES))
        signs, count = _signs(tile), 0
        checks: list[NDArray[np.float64]] = []
        for rows in read_records(spec.name, files, _pair(values)):
            for pair in rows.view("<f4").reshape(-1, 2, tile, tile):
                number, product = divmod(count, inner)
                if number % stride == 0:
                    if product == 0:
                        checks.append(np.zeros(tile))
                    checks[-1] += pair[0].astype(float) @ (pair[1].astype(float) @ signs)
                count += 1
        return {
            "tiles": count // inner,
            "stride": stride,
            "checks": [check.tolist() for check in checks],
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        values = arguments(spec, self.parameters)
        return (client("GpuMatmul", (input_uri, output_uri), values, self.parameters),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every tile in its place and undamaged, and those that were sampled right within rounding."""
        values = arguments(spec, self.parameters)
        tiles = _Tiles(int(values["tile"]), int(values["inner"]), sample)
        for name, chunks in outputs:
            for data in regroup(chunks, tiles.bytes):
                if wrong := tiles.wrong(data):
                    return Verdict(right=False, reason=f"{name}: {wrong}")
        reason = ""
        if tiles.count != sample["tiles"]:
            reason = f"the output has {tiles.count} tiles, the input makes {sample['tiles']}"
        facts: dict[str, int | str] = {
            "tiles": tiles.count,
            "tiles compared": len(sample["checks"]),
        }
        return Verdict(right=not reason, reason=reason, facts=facts)


class _Tiles:
    """Looks at the tiles of the result as they come."""

    def __init__(self, tile: int, inner: int, sample: Mapping[str, Any]) -> None:
        self.tile, self.inner, self.sample = tile, inner, sample
        self.columns = columns(max(1, sample["tiles"]))
        self.bytes = HEAD.itemsize + 4 * tile * tile
        self.count = 0
        # Each of `tile` elements in a sum is off by roundings of inner x tile terms below 1.
        self.allowed = _SLACK * float(np.finfo(np.float32).eps) * inner * tile * math.sqrt(tile)

    def wrong(self, data: bytes) -> str:
        """What is wrong with the next tile, or nothing."""
        if len(data) != self.bytes:
            return f"{len(data)} bytes at the end are no tile of {self.bytes} bytes"
        head = np.frombuffer(data, HEAD, 1)[0]
        number, place = self.count, divmod(self.count, self.columns)
        self.count += 1
        if (int(head["row"]), int(head["column"])) != place:
            return f"tile {number} is that of row {head['row']}, column {head['column']}"
        if int(head["products"]) != self.inner:
            return f"tile {number} is the sum of {head['products']} products, not of {self.inner}"
        if zlib.crc32(data[HEAD.itemsize :]) != int(head["crc"]):
            return f"tile {number} is damaged: its CRC-32 differs"
        return self._miss(number, np.frombuffer(data, "<f4", offset=HEAD.itemsize))

    def _miss(self, number: int, elements: NDArray[np.float32]) -> str:
        at, rest = divmod(number, self.sample["stride"])
        if rest or at >= len(self.sample["checks"]):
            return ""
        product = elements.reshape(self.tile, self.tile).astype(float) @ _signs(self.tile)
        miss = float(np.abs(product - np.array(self.sample["checks"][at])).max())
        if miss <= self.allowed:
            return ""
        return f"tile {number} is wrong: a sum misses by {miss:.3g}, more than {self.allowed:.3g}"


def columns(tiles: int) -> int:
    """
    Columns of a result of *tiles* tiles: the largest divisor that is no more than its rows.

    >>> columns(12), columns(7)
    (3, 1)
    """
    return next(n for n in range(math.isqrt(tiles), 0, -1) if tiles % n == 0)


def _pair(values: Mapping[str, Value]) -> int:
    """Bytes of a pair of tiles."""
    return 8 * int(values["tile"]) ** 2


def _signs(tile: int) -> NDArray[np.float64]:
    """Signs, fixed for ever: samples are kept with the input."""
    return 1.0 - 2.0 * (np.random.PCG64(tile).random_raw(tile) >> np.uint64(63)).astype(float)
