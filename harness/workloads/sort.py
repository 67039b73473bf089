"""
Sort of text records by their keys, by a job of ours.

The proof of the output: keys ascend in every file (and from one to the next where that was asked),
and the records are those of the input, by their number and a checksum that no order changes.
"""

from __future__ import annotations

import hashlib

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.errors import JobError
from harness.records.trial import WorkloadSpec
from harness.workloads.base import (
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Sample,
    Workload,
    has_hibench_form,
    input_sizes,
    job_of_ours,
    shown,
)
from harness.workloads.files import difference, plan_text, read_lines, read_sequence


class Sort(Workload):
    """
    Sorts records of RandomTextWriter's law: a key of 5 to 9 words, a tab, a value of 10 to 99.

    Records are lines, or sequence files as in HiBench.
    """

    name = "sort"
    description = "Sort of text records by their keys; verified by order and checksum"
    unlike_hibench = ""
    as_hibench: ClassVar = {"order": "partition"}
    parameters: ClassVar = {
        "order": Parameter(
            "partition",
            "each output file in order (HiBench), or all of them together",
            choices=("partition", "total"),
        )
    }
    # HiBench's profiles of this workload, in bytes.
    scales = input_sizes(32e3, 3.2e6, 320e6, 3.2e9, 32e9, 300e9)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each."""
        self.arguments(spec)
        return plan_text(spec, block_bytes, "sequence" if has_hibench_form(spec) else "random")

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, and `checksum` of the records in any order (hex)."""
        totals = LineTotals()
        for input_file in input_files:
            totals.add(read_sequence(input_file) if has_hibench_form(spec) else input_file)
        return totals.known()

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; for a total order its client samples the input before it submits."""
        properties = {"sort.order": self.arguments(spec)["order"]}
        if has_hibench_form(spec):
            properties["sort.form"] = "sequence"
        return (job_of_ours("Sort", input_uri, output_uri, properties=properties),)

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Ascending keys in the files, and the records of the input."""
        totals = LineTotals()
        for output_file in outputs:
            if self.arguments(spec)["order"] == "partition":
                totals.last_key = b""
            lines = read_sequence(output_file) if has_hibench_form(spec) else output_file
            totals.add(lines, ordered=True)
        return difference(totals.known(), sample)


@dataclass
class LineTotals:
    """Running totals over records, and the last key seen."""

    records: int = 0
    checksum: int = 0
    last_key: bytes = b""

    def known(self) -> dict[str, int | str]:
        """What input and output have in common."""
        return {"records": self.records, "checksum": f"{self.checksum:032x}"}

    def add(self, file: File, *, ordered: bool = False) -> None:
        """Add one file; `JobError` names the first descent of its keys."""
        for line_number, record_line in enumerate(read_lines(file[1]), start=1):
            record_key = record_line.removesuffix(b"\n").partition(b"\t")[0]
            if ordered and record_key < self.last_key:
                descent = f"key {shown(record_key)} is smaller than {shown(self.last_key)}"
                raise JobError(f"{file[0]}:{line_number}: {descent} before it")
            self.last_key = record_key
            # 128 bits of a cryptographic hash: their sum is that of the same lines in any order.
            line_hash = hashlib.blake2b(record_line, digest_size=16).digest()
            self.checksum = (self.checksum + int.from_bytes(line_hash, "big")) % 2**128
            self.records += 1
