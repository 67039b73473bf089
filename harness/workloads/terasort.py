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
    scales,
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
SCALES = scales(
    3_200_000, 320_000_000, 3_200_000_000, 32_000_000_000, 320_000_000_000, 600_000_000_000
)


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
        map_count = block_count(spec, block_bytes)
        nearest_rows = max(1, (spec.input_bytes + ROW_BYTES // 2) // ROW_BYTES)
        row_count = min(map_count * (block_bytes // ROW_BYTES), nearest_rows)
        size_units = f"whole rows of {ROW_BYTES} bytes"
        check_size(spec, row_count * ROW_BYTES, size_units, 50 * ROW_BYTES)
        # Rows of each map, as TeraGen's RangeInputFormat computes them, in the same double floats.
        map_ends = [
            0,
            *(
                math.ceil(row_count * float(map_number + 1) / map_count)
                for map_number in range(map_count)
            ),
        ]
        file_sizes = (
            (map_end - map_start) * ROW_BYTES for map_start, map_end in itertools.pairwise(map_ends)
        )
        content_key = digest({"teragen": 1, "rows": row_count, "maps": map_count})
        return InputPlan(f"teragen-{content_key}", part_files(file_sizes))

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """TeraGen, with one map for each file of the plan."""
        plan = self.plan_input(spec, block_bytes)
        return JobCommand(
            EXAMPLES,
            (str(plan.bytes // ROW_BYTES), input_uri),
            program="teragen",
            properties={"mapreduce.job.maps": str(len(plan.files))},
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records` (rows), `bytes`, and `checksum` of the rows in any order (hex)."""
        totals = RowTotals()
        for file_name, file_chunks in input_files:
            if reason := totals.add(file_name, file_chunks, ordered=False):
                raise bad_input_error(self.name, reason)
        return {
            "records": totals.rows,
            "bytes": totals.rows * ROW_BYTES,
            "checksum": f"{totals.checksum:016x}",
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; its client samples the input for the partitions before it submits."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="terasort"),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Ascending keys over all files, in order of their names, and the rows of the input."""
        totals = RowTotals()
        for file_name, file_chunks in outputs:
            if reason := totals.add(file_name, file_chunks, ordered=True):
                return Verdict(reason)
        reason, checksum = "", f"{totals.checksum:016x}"
        if totals.rows != sample["records"]:
            reason = f"the output has {totals.rows} rows, the input {sample['records']}"
        elif checksum != sample["checksum"]:
            reason = (
                f"the rows of the output have the checksum {checksum},"
                f" those of the input {shown(str(sample['checksum']))}"
            )
        return Verdict(reason, {"rows": totals.rows, "checksum": checksum})


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

    def add(self, file_name: str, chunks: Iterable[bytes], *, ordered: bool) -> str:
        """Add one file; what is wrong with it, or nothing."""
        first_row = self.rows
        for block in regroup(chunks, _BLOCK):
            if len(block) % ROW_BYTES:
                file_bytes = (self.rows - first_row) * ROW_BYTES + len(block)
                units = f"a whole number of {ROW_BYTES}-byte rows"
                return f"{file_name} has {file_bytes} bytes, not {units}"
            if ordered:
                row_keys = np.frombuffer(block, _KEY)
                high = row_keys["high"].astype(np.uint64)
                low = row_keys["low"].astype(np.uint16)
                descends = high[1:] < high[:-1]
                descends |= (high[1:] == high[:-1]) & (low[1:] < low[:-1])
                row_number = int(descends.argmax()) + 1 if descends.any() else -1
                if block[:KEY_BYTES] < self.last_key:
                    row_number = 0
                if row_number >= 0:
                    row_start = row_number * ROW_BYTES
                    row_key = block[row_start : row_start + KEY_BYTES].hex()
                    previous_key = (
                        block[row_start - ROW_BYTES :][:KEY_BYTES] if row_number else self.last_key
                    )
                    return (
                        f"{file_name}: key {row_key} of row {self.rows - first_row + row_number}"
                        f" is smaller than key {previous_key.hex()} before it"
                    )
            row_table = np.frombuffer(block, np.uint8).reshape(-1, ROW_BYTES)
            self.checksum = (self.checksum + int(row_checksums(row_table).sum())) % 2**64
            self.rows += len(row_table)
            self.last_key = block[-ROW_BYTES : KEY_BYTES - ROW_BYTES]
        return ""
