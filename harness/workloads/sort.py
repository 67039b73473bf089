"""
Sort of text records by their keys, as HiBench's sort, by a job of ours.

The proof of the output: keys ascend in every file (and from one to the next where that was asked),
and the records are those of the input, by their number and a checksum that no order changes.
"""

from __future__ import annotations

import hashlib

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.records.trial import WorkloadSpec
from harness.workloads.base import (
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Verdict,
    Workload,
    job_of_ours,
    shown,
)
from harness.workloads.generate import generate_text, plan_text
from harness.workloads.rows import read_lines

# HiBench's profiles of this workload, in bytes.
SCALES = {
    "tiny": 32_000,
    "small": 3_200_000,
    "large": 320_000_000,
    "huge": 3_200_000_000,
    "gigantic": 32_000_000_000,
    "bigdata": 300_000_000_000,
}
PARAMETERS = {
    "order": Parameter(
        "partition",
        "each output file in order (HiBench), or all of them together",
        choices=("partition", "total"),
    )
}


class Sort(Workload):
    """
    Sorts records of RandomTextWriter's law: a key of 5 to 9 words, a tab, a value of 10 to 99.

    Records are lines, where HiBench has sequence files.
    """

    name = "sort"
    description = "Sort of text records by their keys; verified by order and checksum"
    parameters = PARAMETERS
    scales = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each."""
        self.arguments(spec)
        return plan_text(spec, block_bytes, "random")

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        return generate_text(spec, block_bytes, "random", uri)

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, `bytes`, and `checksum` of the records in any order (hex)."""
        total = LineTotals()
        for _, chunks in files:
            total.add(chunks)
        return {"records": total.records, "bytes": total.size, "checksum": f"{total.checksum:032x}"}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; for a total order its client samples the input before it submits."""
        properties = {"sort.order": self.arguments(spec)["order"]}
        return (job_of_ours("Sort", input_uri, output_uri, properties=properties),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Ascending keys in the files, and the records of the input."""
        total = LineTotals()
        for name, chunks in outputs:
            if self.arguments(spec)["order"] == "partition":
                total.last_key = b""
            if reason := total.add(chunks, ordered=True):
                return Verdict(f"{name}:{reason}")
        reason, checksum = "", f"{total.checksum:032x}"
        if total.records != sample["records"]:
            reason = f"the output has {total.records} records, the input {sample['records']}"
        elif checksum != sample["checksum"]:
            reason = (
                f"the records of the output have the checksum {checksum},"
                f" those of the input {shown(str(sample['checksum']))}"
            )
        return Verdict(reason, {"records": total.records, "checksum": checksum})


@dataclass
class LineTotals:
    """Running totals over records, and the last key seen."""

    records: int = 0
    size: int = 0
    checksum: int = 0
    last_key: bytes = b""

    def add(self, chunks: Iterable[bytes], *, ordered: bool = False) -> str:
        """Add one file; the first descent of its keys, or nothing."""
        for number, line in enumerate(read_lines(chunks), start=1):
            key = line.removesuffix(b"\n").partition(b"\t")[0]
            if ordered and key < self.last_key:
                before = shown(self.last_key)
                return f"{number}: key {shown(key)} is smaller than {before} before it"
            self.last_key = key
            # 128 bits of a cryptographic hash: their sum is that of the same lines in any order.
            bits = hashlib.blake2b(line, digest_size=16).digest()
            self.checksum = (self.checksum + int.from_bytes(bits, "big")) % 2**128
            self.records += 1
            self.size += len(line)
        return ""
