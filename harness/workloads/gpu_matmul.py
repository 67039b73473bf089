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
from harness.workloads.base import File, Parameter, Verdict, scales
from harness.workloads.gpu import GpuWorkload, device_parameters
from harness.workloads.rows import read_rows, regroup

# HiBench has no such workload: 16 MiB, then as its sizes grow.
SCALES = scales(16 * 2**20, 256 * 2**20, 2 * 2**30, 16 * 2**30, 128 * 2**30, 512 * 2**30)
PARAMETERS = {
    **device_parameters(4 * 2**20),
    "tile": Parameter(128, "rows and columns of a tile; fastest where 128 divides it", 1, 4096),
    "inner": Parameter(4, "products in each tile of the result", 1, 4096),
    "repeats": Parameter(1, "times that each product is computed", 1, 100_000),
}

MOST_TILES = 256  # of the result that are multiplied by the vector
HEAD = np.dtype([("row", "<i4"), ("column", "<i4"), ("products", "<i4"), ("crc", "<u4")])
_SLACK = 8  # roundings of single precision by which a sum may be wrong


class GpuMatmul(GpuWorkload):
    """
    C = A B in tiles of *tile* x *tile* 32-bit floats; a tile of C is the sum of *inner* products.

    A record is a pair of tiles to multiply.  A pair of *tile* squared elements takes 2 tile^3
    operations, *repeats* times: tile and repeats set the operations per byte.
    """

    name = "gpu-matmul"
    description = (
        "Matrix product by tiles on a GPU, arithmetic per byte at will; verified by Freivalds"
    )
    parameters = PARAMETERS
    scales = SCALES
    main_class = "GpuMatmul"
    content = "pairs"
    generator_parameters = key_parameters = ("tile", "inner")

    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a pair of tiles."""
        return 8 * int(arguments["tile"]) ** 2

    def records_together(self, arguments: Mapping[str, Any]) -> int:
        """Pairs of one tile of the result."""
        return int(arguments["inner"])

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `tiles` of the result, `stride`, and `checks`: every n-th times the vector."""
        arguments = self.arguments(spec)
        tile, inner = arguments["tile"], arguments["inner"]
        pair_bytes = self.record_bytes(arguments)
        stride = max(1, -(-spec.input_bytes // (pair_bytes * inner) // MOST_TILES))
        signs, count = signs_of(tile), 0
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

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every tile in its place and undamaged, and the sampled ones right within rounding."""
        arguments = self.arguments(spec)
        tile, inner = arguments["tile"], arguments["inner"]
        tile_bytes, columns = HEAD.itemsize + 4 * tile * tile, columns_of(max(1, sample["tiles"]))
        count, signs, checks = 0, signs_of(tile), sample["checks"]
        # Each of `tile` elements in a sum is wrong by roundings of inner x tile terms below 1.
        allowed = _SLACK * float(np.finfo(np.float32).eps) * inner * tile * math.sqrt(tile)
        for file_name, file_chunks in outputs:
            for data in regroup(file_chunks, tile_bytes):
                if len(data) != tile_bytes:
                    reason = f"{len(data)} bytes at the end are not a tile of {tile_bytes} bytes"
                    return Verdict(f"{file_name}: {reason}")
                head = np.frombuffer(data, HEAD, 1)[0]
                reason = ""
                if (int(head["row"]), int(head["column"])) != divmod(count, columns):
                    reason = f"is that of row {head['row']}, column {head['column']}"
                elif int(head["products"]) != inner:
                    reason = f"is the sum of {head['products']} products, not of {inner}"
                elif zlib.crc32(data[HEAD.itemsize :]) != int(head["crc"]):
                    reason = "is damaged: its CRC-32 differs"
                index, rest = divmod(count, sample["stride"])
                if not reason and rest == 0 and index < len(checks):
                    elements = np.frombuffer(data, "<f4", offset=HEAD.itemsize)
                    product = elements.reshape(tile, tile).astype(float) @ signs
                    error = float(np.abs(product - np.array(checks[index])).max())
                    if not error <= allowed:
                        reason = f"is wrong: a sum misses by {error:.3g}, more than {allowed:.3g}"
                if reason:
                    return Verdict(f"{file_name}: tile {count} {reason}")
                count += 1
        reason = ""
        if count != sample["tiles"]:
            reason = f"the output has {count} tiles, the input makes {sample['tiles']}"
        return Verdict(reason, {"tiles": count, "tiles compared": len(checks)})


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
