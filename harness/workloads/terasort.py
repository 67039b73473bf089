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

from numpy.typing import NDArray

from harness.errors import JobError, SpecError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import (
    File,
    InputFile,
    InputPlan,
    JobCommand,
    Parameter,
    SingleJob,
    Verdict,
)
from harness.workloads.shape import EXAMPLES, arguments, blocks, regroup, shown

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


class TeraSort(SingleJob):
    """
    Sorts rows of 100 bytes that TeraGen makes.

    TeraGen's rows depend on their number alone: `seed` changes nothing, and inputs of one size
    share their content key.  The output has one replica, Hadoop's default for TeraSort
    (`mapreduce.terasort.output.replication`), unless the configuration says otherwise.
    """

    name = "terasort"
    uses_combiner = False
    description = "TeraSort of Hadoop's examples over TeraGen's rows; proved by order and checksum"
    parameters: Mapping[str, Parameter] = {}  # noqa: RUF012 - nobody writes to it
    scales: Mapping[str, int] = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """
        As many files as the size asked has blocks; as many rows as fit them and come nearest to it.

        A block holds no whole number of rows: an input of 4 blocks has a few rows less than asked,
        and 4 files, where one row more would make a fifth.
        """
        arguments(spec, self.parameters)
        if block_bytes < ROW_BYTES:
            raise SpecError(
                f"a block of {block_bytes} bytes does not hold a row of {ROW_BYTES} bytes",
                where="terasort, dfs.blocksize",
                fix="use blocks of 1 MiB or more",
            )
        maps = blocks(spec, block_bytes)
        rows = _rows(spec, maps * (block_bytes // ROW_BYTES))
        key = digest({"teragen": 1, "rows": rows, "maps": maps})
        files = (
            InputFile(f"part-m-{number:05d}", count * ROW_BYTES)
            for number, count in enumerate(_split_rows(rows, maps))
        )
        return InputPlan(f"teragen-{key}", tuple(files))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """TeraGen, with one map for each file of the plan."""
        plan = self.plan_input(spec, block_bytes)
        return JobCommand(
            EXAMPLES,
            (str(plan.bytes // ROW_BYTES), uri),
            program="teragen",
            properties={"mapreduce.job.maps": str(len(plan.files))},
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:  # noqa: ARG002 - the bytes say it all
        """
        Return `records` (rows), `bytes`, and `checksum` of the rows in any order (hex).

        Raises `JobError` where a file does not consist of rows.
        """
        total = _Rows()
        for name, chunks in files:
            wrong = total.add(name, chunks, ordered=False)
            if wrong:
                raise JobError(
                    wrong,
                    where="input of terasort, as TeraGen left it",
                    fix="remove this input, so that it is generated again",
                )
        return {"records": total.rows, "bytes": total.size, "checksum": f"{total.checksum:016x}"}

    def submit(
        self,
        spec: WorkloadSpec,  # noqa: ARG002 - no argument depends on it
        input_uri: str,
        output_uri: str,
    ) -> tuple[JobCommand, ...]:
        """One job; its client samples the input for the partitions before it submits."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="terasort"),)

    def verdict(
        self,
        spec: WorkloadSpec,  # noqa: ARG002 - the sample says it all
        outputs: Iterable[File],
        sample: Mapping[str, Any],
    ) -> Verdict:
        """Ascending keys over all files, in order of their names, and the rows of the input."""
        total = _Rows()
        for name, chunks in outputs:
            wrong = total.add(name, chunks, ordered=True)
            if wrong:
                return Verdict(right=False, reason=wrong)
        reason = ""
        if total.rows != sample["records"]:
            reason = f"the output has {total.rows} rows, the input {sample['records']}"
        elif f"{total.checksum:016x}" != sample["checksum"]:
            reason = (
                f"the rows of the output have the checksum {total.checksum:016x},"
                f" those of the input {shown(str(sample['checksum']))}"
            )
        facts: dict[str, int | str] = {"rows": total.rows, "checksum": f"{total.checksum:016x}"}
        return Verdict(right=not reason, reason=reason, facts=facts)


def row_checksums(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """
    64 bits for each row of an array (rows, 100).

    A multilinear hash of its 25 words, mixed (the finaliser of MurmurHash3) so that the sum over
    rows is not linear in their bytes: bytes exchanged between two rows change the sum.
    """
    mixed: NDArray[np.uint64] = rows.view("<u4").astype(np.uint64) @ _FACTORS
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))


@dataclass
class _Rows:
    """Running totals over files of rows, and the last key seen."""

    rows: int = 0
    size: int = 0
    checksum: int = 0
    last: bytes = b""

    def add(self, name: str, chunks: Iterable[bytes], *, ordered: bool) -> str:
        """Add one file; what is wrong with it, or nothing."""
        first = self.rows
        for block in regroup(chunks, _BLOCK):
            self.size += len(block)
            whole = len(block) // ROW_BYTES
            if len(block) % ROW_BYTES:
                size = (self.rows - first) * ROW_BYTES + len(block)
                return f"{name} has {size} bytes, no whole number of {ROW_BYTES}-byte rows"
            bad = _first_descent(self.last, block) if ordered else None
            if bad is not None:
                return f"{name}: {self._descent(self.rows - first + bad, bad, block)}"
            table = np.frombuffer(block, np.uint8).reshape(whole, ROW_BYTES)
            self.checksum = (self.checksum + int(row_checksums(table).sum())) % 2**64
            self.rows += whole
            self.last = block[-ROW_BYTES : KEY_BYTES - ROW_BYTES]
        return ""

    def _descent(self, row: int, index: int, block: bytes) -> str:
        start = index * ROW_BYTES
        key = block[start : start + KEY_BYTES]
        before = block[start - ROW_BYTES : start - ROW_BYTES + KEY_BYTES] if index else self.last
        return f"key {key.hex()} of row {row} is smaller than key {before.hex()} before it"


def _first_descent(last: bytes, block: bytes) -> int | None:
    """Index of the first row whose key is smaller than the one before it."""
    keys = np.frombuffer(block, _KEY)
    if last and block[:KEY_BYTES] < last:
        return 0
    high, low = keys["high"].astype(np.uint64), keys["low"].astype(np.uint16)
    descends = (high[1:] < high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] < low[:-1]))
    return int(descends.argmax()) + 1 if descends.any() else None


def _rows(spec: WorkloadSpec, most: int) -> int:
    """Whole rows nearest to the size asked, at most *most*; refuses to miss it by more than 1 %."""
    rows = min(most, max(1, (spec.input_bytes + ROW_BYTES // 2) // ROW_BYTES))
    if abs(rows * ROW_BYTES - spec.input_bytes) * 100 > spec.input_bytes:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes is too far from whole rows of {ROW_BYTES} bytes",
            where="terasort, input",
            fix=f"ask for {rows * ROW_BYTES} bytes, or for 5000 bytes or more",
        )
    return rows


def _split_rows(rows: int, maps: int) -> list[int]:
    """Rows of each map, as TeraGen's RangeInputFormat computes them, in the same double floats."""
    ends = [0, *(math.ceil(rows * float(split + 1) / maps) for split in range(maps))]
    return [after - before for before, after in itertools.pairwise(ends)]
