"""
Shuffle: every byte of the input goes to a reduce, and nothing is computed; by a job of ours.

The proof of the output: all reduces together got the records of the input, by their number, their
bytes and a checksum that no order changes, and each got its even share.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import JOBS, File, InputPlan, JobCommand, Parameter, SingleJob, Verdict
from harness.workloads.checksum import checksum
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.shape import arguments, regroup, shown

# HiBench's profiles of repartition, its workload that only shuffles, in bytes.
SCALES = {
    "tiny": 32_000,
    "small": 3_200_000,
    "large": 32_000_000,
    "huge": 320_000_000,
    "gigantic": 3_200_000_000,
    "bigdata": 6_000_000_000,
}
PARAMETERS = {
    "record": Parameter(
        200, "bytes of a record, rounded up to a multiple of 8", least=8, most=2**24
    ),
}
_TOGETHER = 2**22
_LINE = re.compile(rb"(\d{1,18})\t(\d{1,18})\t([0-9a-f]{16})\n?")


class Shuffle(SingleJob):
    """Moves records of random bytes, which nothing compresses, to the reduces in turn."""

    name = "shuffle"
    uses_combiner = False
    description = "All bytes to the reduces, nothing computed; proved by shares and checksum"
    parameters: Mapping[str, Parameter] = PARAMETERS
    scales: Mapping[str, int] = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many files as the input has blocks, each of whole records."""
        size = self._record(spec)
        records, files = whole_records(spec, block_bytes, size)
        key = digest({"noise": 1, "seed": spec.seed, "of": [records, files, size]})
        return InputPlan(f"{self.name}-{key}", tuple(generated_files(records, files, size)))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        size = self._record(spec)
        records, files = whole_records(spec, block_bytes, size)
        return generated(
            "mapreduce.harness.jobs.generate.Noise",
            records=records,
            files=files,
            seed=spec.seed,
            uri=uri,
            properties={"noise.bytes": str(size)},
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, `bytes`, `files`, and `checksum` of the records in any order (hex)."""
        size, total, found, count = self._record(spec), 0, 0, 0
        for _, chunks in files:
            count += 1
            for block in regroup(chunks, _TOGETHER // size * size):
                rows = np.frombuffer(block[: len(block) // size * size], np.uint8)
                total += checksum(rows.reshape(-1, size))
                found += len(block)
        sums = f"{total % 2**64:016x}"
        return {"records": found // size, "bytes": found, "files": count, "checksum": sums}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        properties = {"shuffle.record": str(self._record(spec))}
        main = "mapreduce.harness.jobs.Shuffle"
        return (JobCommand(main, (input_uri, output_uri), properties=properties, jar=JOBS),)

    def verdict(
        self,
        spec: WorkloadSpec,  # noqa: ARG002 - the sample says it all
        outputs: Iterable[File],
        sample: Mapping[str, Any],
    ) -> Verdict:
        """What all reduces tell they got, in sum, and how evenly."""
        shares, moved, total = list[int](), 0, 0
        for name, chunks in outputs:
            told = b"".join(chunks)
            line = _LINE.fullmatch(told)
            if line is None:
                return Verdict(
                    right=False, reason=f"{name}: {shown(told)} is not one reduce's line"
                )
            shares.append(int(line[1]))
            moved += int(line[2])
            total += int(line[3], 16)
        got: dict[str, int | str] = {"records": sum(shares), "bytes": moved}
        got["checksum"] = f"{total % 2**64:016x}"
        facts = {**got, "reduces": len(shares)}
        if not shares:
            return Verdict(right=False, reason="no reduce told anything")
        for what, found in got.items():
            if found != sample[what]:
                reason = f"the reduces got {what} {found}, the input has {shown(str(sample[what]))}"
                return Verdict(right=False, reason=reason, facts=facts)
        # Every map deals its records out in turn: a share is one off at most for each map.
        if max(shares) - min(shares) > sample["files"]:
            reason = f"the shares of the reduces lie from {min(shares)} to {max(shares)} records"
            return Verdict(right=False, reason=reason, facts=facts)
        return Verdict(right=True, facts=facts)

    def _record(self, spec: WorkloadSpec) -> int:
        """Bytes of a record: whole words, as the generator makes them."""
        return -(-int(arguments(spec, self.parameters)["record"]) // 8) * 8
