"""
Shuffle: every byte of the input goes to a reduce, and nothing is computed; by a job of ours.

The proof of the output: all reduces together got the records of the input, by their number, their
bytes and a checksum that no order changes, and each got its even share.
"""

from __future__ import annotations

import re

from collections.abc import Iterable
from typing import Any, ClassVar

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import File, InputPlan, Parameter, Sample, Workload, shown
from harness.clusters.workloads.files import checksum, difference, plan_noise, read_rows

_LINE = re.compile(rb"(\d{1,18})\t(\d{1,18})\t([0-9a-f]{16})\n?")


class Shuffle(Workload):
    """Moves records of random bytes, which nothing compresses, to the reduces in turn."""

    name = "shuffle"
    main_class = "Shuffle"
    description = "All bytes to the reduces, nothing computed; verified by shares and checksum"
    unlike_hibench = "its repartition runs on Spark"
    parameters: ClassVar = {
        "record": Parameter(200, "bytes of a record: whole words", 8, 2**24, step=8)
    }
    # HiBench's profiles of repartition, its workload that only shuffles, count rows of 100 bytes.
    sizes = (320e3, 320e6, 3.2e9, 32e9, 320e9, 600e9)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many files as the input has blocks, each of whole records."""
        return plan_noise(spec, block_bytes, self.arguments(spec)["record"])

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, `bytes`, `files`, and `checksum` of the records in any order (hex)."""
        record_bytes = self.arguments(spec)["record"]
        checksum_sum = 0
        records = 0
        file_count = 0
        for input_file in input_files:
            file_count += 1
            for rows in read_rows(self.name, [input_file], record_bytes, together=2**22):
                checksum_sum += checksum(rows)
                records += len(rows)
        return {
            "records": records,
            "bytes": records * record_bytes,
            "files": file_count,
            "checksum": f"{checksum_sum % 2**64:016x}",
        }

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Bytes of a record."""
        return {"shuffle.record": self.arguments(spec)["record"]}

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """What all reduces report, in sum, and how evenly."""
        shares = list[int]()
        moved_bytes = 0
        checksum_sum = 0
        for file_name, file_chunks in outputs:
            reduce_line = b"".join(file_chunks)
            line_match = _LINE.fullmatch(reduce_line)
            if line_match is None:
                return f"{file_name}: {shown(reduce_line)} is not one reduce's line"
            shares.append(int(line_match[1]))
            moved_bytes += int(line_match[2])
            checksum_sum += int(line_match[3], 16)
        if not shares:
            return "no reduce reported anything"
        totals = {"records": sum(shares), "bytes": moved_bytes}
        if reason := difference({**totals, "checksum": f"{checksum_sum % 2**64:016x}"}, sample):
            return reason
        # Every map deals its records out in turn: a share is one off at most for each map.
        if max(shares) - min(shares) > sample["files"]:
            return f"the shares of the reduces are from {min(shares)} to {max(shares)} records"
        return ""
