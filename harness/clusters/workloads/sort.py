"""
Sort of text records by their keys, by a job of ours.

The proof of the output: keys ascend in every file, and the records are those of the input, by their
number and a checksum that no order changes.
"""

from __future__ import annotations

import hashlib

from collections.abc import Iterable
from typing import Any

from harness.base.errors import JobError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import (
    File,
    InputPlan,
    Sample,
    Workload,
    has_hibench_form,
    shown,
)
from harness.clusters.workloads.files import difference, plan_text, read_lines, read_sequence


class Sort(Workload):
    """
    Sorts records of RandomTextWriter's law: a key of 5 to 9 words, a tab, a value of 10 to 99.

    Records are lines, or sequence files as in HiBench.
    """

    name = "sort"
    main_class = "Sort"
    description = "Sort of text records by their keys; verified by order and checksum"
    unlike_hibench = ""
    # HiBench's profiles of this workload, in bytes.
    sizes = (32e3, 3.2e6, 320e6, 3.2e9, 32e9, 300e9)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each."""
        self.arguments(spec)
        return plan_text(spec, block_bytes, "sequence" if has_hibench_form(spec) else "random")

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, and `checksum` of the records in any order (hex)."""
        return totals_of(spec, input_files, ordered=False)

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Whether records are lines."""
        return {"sort.form": "sequence" if has_hibench_form(spec) else "lines"}

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Ascending keys in each file, and the records of the input."""
        return difference(totals_of(spec, outputs, ordered=True), sample)


def totals_of(spec: WorkloadSpec, files: Iterable[File], *, ordered: bool) -> dict[str, int | str]:
    """Return what input and output have in common; `JobError` names the first descent of keys."""
    records = checksum = 0
    for file in files:
        name, chunks = read_sequence(file) if has_hibench_form(spec) else file
        last_key = b""
        for line_number, record_line in enumerate(read_lines(chunks), start=1):
            record_key = record_line.removesuffix(b"\n").partition(b"\t")[0]
            if ordered and record_key < last_key:
                descent = f"key {shown(record_key)} is smaller than {shown(last_key)}"
                raise JobError(f"{name}:{line_number}: {descent} before it")
            last_key = record_key
            # 128 bits of a cryptographic hash: their sum is that of the same lines in any order.
            line_hash = hashlib.blake2b(record_line, digest_size=16).digest()
            checksum = (checksum + int.from_bytes(line_hash, "big")) % 2**128
            records += 1
    return {"records": records, "checksum": f"{checksum:032x}"}
