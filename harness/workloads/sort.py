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
    scales,
    shown,
)
from harness.workloads.generate import generate_text, plan_text
from harness.workloads.rows import read_lines

# HiBench's profiles of this workload, in bytes.
SCALES = scales(32_000, 3_200_000, 320_000_000, 3_200_000_000, 32_000_000_000, 300_000_000_000)
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

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        return generate_text(spec, block_bytes, "random", input_uri)

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, `bytes`, and `checksum` of the records in any order (hex)."""
        totals = LineTotals()
        for _, file_chunks in input_files:
            totals.add(file_chunks)
        return {
            "records": totals.records,
            "bytes": totals.size,
            "checksum": f"{totals.checksum:032x}",
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; for a total order its client samples the input before it submits."""
        properties = {"sort.order": self.arguments(spec)["order"]}
        return (job_of_ours("Sort", input_uri, output_uri, properties=properties),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Ascending keys in the files, and the records of the input."""
        totals = LineTotals()
        for file_name, file_chunks in outputs:
            if self.arguments(spec)["order"] == "partition":
                totals.last_key = b""
            if reason := totals.add(file_chunks, ordered=True):
                return Verdict(f"{file_name}:{reason}")
        reason, checksum = "", f"{totals.checksum:032x}"
        if totals.records != sample["records"]:
            reason = f"the output has {totals.records} records, the input {sample['records']}"
        elif checksum != sample["checksum"]:
            reason = (
                f"the records of the output have the checksum {checksum},"
                f" those of the input {shown(str(sample['checksum']))}"
            )
        return Verdict(reason, {"records": totals.records, "checksum": checksum})


@dataclass
class LineTotals:
    """Running totals over records, and the last key seen."""

    records: int = 0
    size: int = 0
    checksum: int = 0
    last_key: bytes = b""

    def add(self, chunks: Iterable[bytes], *, ordered: bool = False) -> str:
        """Add one file; the first descent of its keys, or nothing."""
        for line_number, record_line in enumerate(read_lines(chunks), start=1):
            record_key = record_line.removesuffix(b"\n").partition(b"\t")[0]
            if ordered and record_key < self.last_key:
                previous_key = shown(self.last_key)
                descent = f"key {shown(record_key)} is smaller than {previous_key} before it"
                return f"{line_number}: {descent}"
            self.last_key = record_key
            # 128 bits of a cryptographic hash: their sum is that of the same lines in any order.
            line_hash = hashlib.blake2b(record_line, digest_size=16).digest()
            self.checksum = (self.checksum + int.from_bytes(line_hash, "big")) % 2**128
            self.records += 1
            self.size += len(record_line)
        return ""
