"""
TeraGen and TeraSort of Hadoop's examples jar, as HiBench runs them.

The proof of the output: rows ascend by their keys, inside the files and from one to the next,
and they are the rows of the input, by their number and a checksum that no order changes.
"""

from __future__ import annotations

import itertools
import math

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import (
    EXAMPLES,
    File,
    InputPlan,
    JobCommand,
    Verdict,
    Workload,
    bad_input_error,
    block_count,
    check_block,
    check_size,
    part_files,
    shown,
)
from harness.workloads.rows import Bits, Bytes, murmur, regroup

ROW_BYTES = 100
KEY_BYTES = 10

_KEY = np.dtype(
    {"names": ["high", "low"], "formats": [">u8", ">u2"], "offsets": [0, 8], "itemsize": ROW_BYTES}
)
_BLOCK = 10_000 * ROW_BYTES  # looked at together: rows and their products stay in the cache
# Odd numbers, one for each four bytes of a row; fixed for ever: samples are kept with the input.
_FACTORS = np.random.PCG64(100).random_raw(ROW_BYTES // 4) | np.uint64(1)

# HiBench's profiles of this workload, in bytes.
SCALES = {
    "tiny": 3_200_000,
    "small": 320_000_000,
    "large": 3_200_000_000,
    "huge": 32_000_000_000,
    "gigantic": 320_000_000_000,
    "bigdata": 600_000_000_000,
}


class TeraSort(Workload):
    """
    Sorts rows of 100 bytes that TeraGen makes.

    TeraGen's rows depend on their number alone: `seed` changes nothing, and inputs of one size
    share their content key.  The output has one replica, Hadoop's default for TeraSort
    (`mapreduce.terasort.output.replication`), unless the configuration says otherwise.
    """

    name = "terasort"
    description = (
        "TeraSort of Hadoop's examples over TeraGen's rows; verified by order and checksum"
    )
    scales = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """
        As many files as the size asked has blocks; as many rows as fit them and come nearest to it.

        A block is not a whole number of rows: an input of 4 blocks has a few rows less than asked
        for, and 4 files, where one row more would make a fifth.
        """
        self.arguments(spec)
        check_block(spec, block_bytes, ROW_BYTES)
        maps = block_count(spec, block_bytes)
        nearest = max(1, (spec.input_bytes + ROW_BYTES // 2) // ROW_BYTES)
        rows = min(maps * (block_bytes // ROW_BYTES), nearest)
        units = f"whole rows of {ROW_BYTES} bytes"
        check_size(spec, rows * ROW_BYTES, units, 50 * ROW_BYTES)
        # Rows of each map, as TeraGen's RangeInputFormat computes them, in the same double floats.
        ends = [0, *(math.ceil(rows * float(split + 1) / maps) for split in range(maps))]
        sizes = ((end - start) * ROW_BYTES for start, end in itertools.pairwise(ends))
        key = digest({"teragen": 1, "rows": rows, "maps": maps})
        return InputPlan(f"teragen-{key}", part_files(sizes))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """TeraGen, with one map for each file of the plan."""
        plan = self.plan_input(spec, block_bytes)
        return JobCommand(
            EXAMPLES,
            (str(plan.bytes // ROW_BYTES), uri),
            program="teragen",
            properties={"mapreduce.job.maps": str(len(plan.files))},
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `records` (rows), `bytes`, and `checksum` of the rows in any order (hex)."""
        total = RowTotals()
        for name, chunks in files:
            if reason := total.add(name, chunks, ordered=False):
                raise bad_input_error(self.name, reason)
        return {
            "records": total.rows,
            "bytes": total.rows * ROW_BYTES,
            "checksum": f"{total.checksum:016x}",
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; its client samples the input for the partitions before it submits."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="terasort"),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Ascending keys over all files, in order of their names, and the rows of the input."""
        total = RowTotals()
        for name, chunks in outputs:
            if reason := total.add(name, chunks, ordered=True):
                return Verdict(reason)
        reason, checksum = "", f"{total.checksum:016x}"
        if total.rows != sample["records"]:
            reason = f"the output has {total.rows} rows, the input {sample['records']}"
        elif checksum != sample["checksum"]:
            reason = (
                f"the rows of the output have the checksum {checksum},"
                f" those of the input {shown(str(sample['checksum']))}"
            )
        return Verdict(reason, {"rows": total.rows, "checksum": checksum})


def row_checksums(rows: Bytes) -> Bits:
    """
    64 bits for each row of an array (rows, 100).

    A multilinear hash of its 25 words, mixed: bytes exchanged between two rows change the sum.
    """
    return murmur(rows.view("<u4").astype(np.uint64) @ _FACTORS)


@dataclass
class RowTotals:
    """Running totals over files of rows, and the last key seen."""

    rows: int = 0
    checksum: int = 0
    last_key: bytes = b""

    def add(self, name: str, chunks: Iterable[bytes], *, ordered: bool) -> str:
        """Add one file; what is wrong with it, or nothing."""
        first = self.rows
        for block in regroup(chunks, _BLOCK):
            if len(block) % ROW_BYTES:
                size = (self.rows - first) * ROW_BYTES + len(block)
                return f"{name} has {size} bytes, not a whole number of {ROW_BYTES}-byte rows"
            if ordered:
                keys = np.frombuffer(block, _KEY)
                high, low = keys["high"].astype(np.uint64), keys["low"].astype(np.uint16)
                is_same, descends = high[1:] == high[:-1], high[1:] < high[:-1]
                descends |= is_same & (low[1:] < low[:-1])
                row = int(descends.argmax()) + 1 if descends.any() else -1
                if block[:KEY_BYTES] < self.last_key:
                    row = 0
                if row >= 0:
                    start = row * ROW_BYTES
                    key = block[start : start + KEY_BYTES].hex()
                    before = block[start - ROW_BYTES :][:KEY_BYTES] if row else self.last_key
                    return (
                        f"{name}: key {key} of row {self.rows - first + row} is smaller than key"
                        f" {before.hex()} before it"
                    )
            table = np.frombuffer(block, np.uint8).reshape(-1, ROW_BYTES)
            self.checksum = (self.checksum + int(row_checksums(table).sum())) % 2**64
            self.rows += len(table)
            self.last_key = block[-ROW_BYTES : KEY_BYTES - ROW_BYTES]
        return ""
