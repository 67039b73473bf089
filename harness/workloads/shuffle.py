"""
Shuffle: every byte of the input goes to a reduce, and nothing is computed; by a job of ours.

The proof of the output: all reduces together got the records of the input, by their number, their
bytes and a checksum that no order changes, and each got its even share.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping
from typing import Any

from harness.records.trial import WorkloadSpec, digest
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
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.rows import checksum, read_rows

# HiBench's profiles of repartition, its workload that only shuffles, in bytes.
SCALES = scales(32_000, 3_200_000, 32_000_000, 320_000_000, 3_200_000_000, 6_000_000_000)
PARAMETERS = {
    "record": Parameter(
        200, "bytes of a record, rounded up to a multiple of 8", least=8, most=2**24
    ),
}
_LINE = re.compile(rb"(\d{1,18})\t(\d{1,18})\t([0-9a-f]{16})\n?")


class Shuffle(Workload):
    """Moves records of random bytes, which nothing compresses, to the reduces in turn."""

    name = "shuffle"
    description = "All bytes to the reduces, nothing computed; verified by shares and checksum"
    parameters = PARAMETERS
    scales = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many files as the input has blocks, each of whole records."""
        record_bytes = self._record_bytes(spec)
        records, file_count = whole_records(spec, block_bytes, record_bytes)
        content_key = digest(
            {"noise": 1, "seed": spec.seed, "of": [records, file_count, record_bytes]}
        )
        return InputPlan(
            f"{self.name}-{content_key}", generated_files(records, file_count, record_bytes)
        )

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        record_bytes = self._record_bytes(spec)
        records, file_count = whole_records(spec, block_bytes, record_bytes)
        return generated(
            "generate.Noise",
            records=records,
            files=file_count,
            seed=spec.seed,
            uri=input_uri,
            properties={"noise.bytes": record_bytes},
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, `bytes`, `files`, and `checksum` of the records in any order (hex)."""
        record_bytes, checksum_sum, records, file_count = self._record_bytes(spec), 0, 0, 0
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

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        properties = {"shuffle.record": self._record_bytes(spec)}
        return (job_of_ours("Shuffle", input_uri, output_uri, properties=properties),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """What all reduces report, in sum, and how evenly."""
        shares, moved_bytes, checksum_sum = list[int](), 0, 0
        for file_name, file_chunks in outputs:
            reduce_line = b"".join(file_chunks)
            line_match = _LINE.fullmatch(reduce_line)
            if line_match is None:
                return Verdict(f"{file_name}: {shown(reduce_line)} is not one reduce's line")
            shares.append(int(line_match[1]))
            moved_bytes += int(line_match[2])
            checksum_sum += int(line_match[3], 16)
        if not shares:
            return Verdict("no reduce reported anything")
        sums: dict[str, int | str] = {"records": sum(shares), "bytes": moved_bytes}
        sums["checksum"] = f"{checksum_sum % 2**64:016x}"
        facts = {**sums, "reduces": len(shares)}
        for quantity, reported_value in sums.items():
            if reported_value != sample[quantity]:
                expected_text = shown(str(sample[quantity]))
                return Verdict(
                    f"the reduces got {quantity} {reported_value}, the input has {expected_text}",
                    facts,
                )
        # Every map deals its records out in turn: a share is one off at most for each map.
        if max(shares) - min(shares) > sample["files"]:
            reason = f"the shares of the reduces are from {min(shares)} to {max(shares)} records"
            return Verdict(reason, facts)
        return Verdict(facts=facts)

    def _record_bytes(self, spec: WorkloadSpec) -> int:
        """Whole words, as the generator makes them."""
        return -(-int(self.arguments(spec)["record"]) // 8) * 8
