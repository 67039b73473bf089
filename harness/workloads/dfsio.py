"""
Dfsio: the rate at which HDFS takes or gives files, one map for each, as TestDFSIO; by a job of ours.

    mode: write  the input is a line for each map, and each map writes its file into the output;
                 the proof: the files hold the bytes that the seed says, made here once more, by
                 their CRC-32
    mode: read   the input is the files; the proof: each was read once, with its CRC-32

Each map tells its bytes and the seconds within the file system's calls, opening and closing
included.  `rates` makes of them what TestDFSIO prints.
"""

from __future__ import annotations

import math
import re
import zlib

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import JobError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import JOBS, File, InputPlan, JobCommand, Parameter, SingleJob, Verdict
from harness.workloads.checksum import noise
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.shape import arguments, shown

RECORD = 200  # bytes; whole words, and small enough that small files have their size within 1 %
LINE_BYTES = 63
_MIB = 2**20
# HiBench's profiles of dfsioe: number of files x their size, written or read.
SCALES = {
    "tiny": 16 * _MIB,
    "small": 32 * 10 * _MIB,
    "large": 64 * 10 * _MIB,
    "huge": 256 * 100 * _MIB,
    "gigantic": 512 * 400 * _MIB,
    "bigdata": 2048 * 1000 * _MIB,
}
PARAMETERS = {
    "mode": Parameter("read", "read files, or write them", choices=("read", "write")),
    "files": Parameter(1, "files at the least; no file is larger than a block", least=1, most=1e5),
}
_SHARE = re.compile(rb"(\d{20}) (\d{20}) (\d{20})\n")
_LINE = re.compile(rb"(part-(?:m|data)-\d{5,10})\t([0-9a-f]{8})\t(\d{1,18})\t(\d{1,18})")
_TOGETHER = 2**16  # records


@dataclass(frozen=True, slots=True)
class FileRate:
    """One file as its map told it: bytes, seconds within the file system's calls, CRC-32."""

    name: str
    crc: int
    bytes: int
    seconds: float


def rates(files: Iterable[FileRate]) -> dict[str, float]:
    """
    Return bytes per second as TestDFSIO tells them.

    `throughput`: all bytes by the sum of all seconds; `average`: mean of the files' rates;
    `deviation`: their standard deviation (of the whole, not of a sample).
    """
    listed = list(files)
    each = [f.bytes / max(f.seconds, 1e-9) for f in listed]
    mean = math.fsum(each) / len(each)
    seconds = max(math.fsum(f.seconds for f in listed), 1e-9)
    return {
        "throughput": sum(f.bytes for f in listed) / seconds,
        "average": mean,
        "deviation": math.sqrt(math.fsum((rate - mean) ** 2 for rate in each) / len(each)),
    }


class Dfsio(SingleJob):
    """Reads or writes files of random bytes; without reduces."""

    name = "dfsio"
    uses_combiner = False
    description = "Rate of HDFS, files read or written by maps alone; proved by the bytes"
    parameters: Mapping[str, Parameter] = PARAMETERS
    scales: Mapping[str, int] = SCALES

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:  # noqa: ARG002 - always
        """No reduces."""
        return {"mapreduce.job.reduces": "0"}

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """The files to be read; or, for files to be written, a line each."""
        (records, files), mode = self._files(spec, block_bytes), self._mode(spec)
        # A written file's bytes follow from the seed, and they are kept with the input.
        key = digest({"noise": 1, mode: [records, files, RECORD], "seed": spec.seed})
        made = (records, RECORD) if mode == "read" else (files, LINE_BYTES)
        return InputPlan(f"{self.name}-{key}", tuple(generated_files(made[0], files, made[1])))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the input by a job of ours."""
        records, files = self._files(spec, block_bytes)
        content, count, properties = "Noise", records, {"noise.bytes": RECORD}
        if self._mode(spec) == "write":
            content, count = "Shares", files
            properties = {"shares.records": records, "shares.parts": files}
        return generated(
            f"mapreduce.harness.jobs.generate.{content}",
            records=count,
            files=files,
            seed=spec.seed,
            uri=uri,
            properties={name: str(value) for name, value in properties.items()},
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """
        Return `files`: name -> bytes and CRC-32 of each; `records` of the job; `bytes` of all.

        For files to be written their lines say what they will be.  `JobError` for other lines.
        """
        if self._mode(spec) == "read":
            found = {name: _size_and_sum(chunks) for name, chunks in files}
        else:
            shares = (_share(name, b"".join(chunks)) for name, chunks in files)
            found = {name: _written(spec.seed, *share) for name, share in shares}
        size = sum(size for size, _ in found.values())
        return {"files": found, "records": len(found), "bytes": size}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        properties = {
            **self.properties(spec),
            "dfsio.mode": self._mode(spec),
            "dfsio.seed": str(spec.seed),
            "noise.bytes": str(RECORD),
        }
        main = "mapreduce.harness.jobs.Dfsio"
        return (JobCommand(main, (input_uri, output_uri), properties=properties, jar=JOBS),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Each file once, with the bytes that it should have; the rates are facts."""
        told, lying = dict[str, FileRate](), dict[str, tuple[int, int]]()
        for name, chunks in outputs:
            if name.startswith("part-data-"):
                lying[name] = _size_and_sum(chunks)
            elif wrong := _read_lines(name, chunks, told):
                return Verdict(right=False, reason=wrong)
        expected = {name: (size, crc) for name, (size, crc) in sample["files"].items()}
        if self._mode(spec) == "write" and (wrong := _difference("lies", lying, expected)):
            return Verdict(right=False, reason=wrong)
        found = {name: (each.bytes, each.crc) for name, each in told.items()}
        if wrong := _difference("is told", found, expected):
            return Verdict(right=False, reason=wrong)
        facts: dict[str, int | str] = {"files": len(told)}
        facts |= {f"{what} (bytes/s)": round(rate) for what, rate in rates(told.values()).items()}
        return Verdict(right=True, facts=facts)

    def _mode(self, spec: WorkloadSpec) -> str:
        return str(arguments(spec, self.parameters)["mode"])

    def _files(self, spec: WorkloadSpec, block_bytes: int) -> tuple[int, int]:
        """Records of all files that are read or written, and how many files they are."""
        least = int(arguments(spec, self.parameters)["files"])
        return whole_records(spec, block_bytes, RECORD, least)


def _size_and_sum(chunks: Iterable[bytes]) -> tuple[int, int]:
    """Bytes of a file, and their CRC-32."""
    size = crc = 0
    for chunk in chunks:
        size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    return size, crc


def _share(name: str, line: bytes) -> tuple[str, tuple[int, int]]:
    """Name of the file that a map will write, its first record and how many it has."""
    match = _SHARE.fullmatch(line)
    if match is None:
        raise JobError(
            f"{name}: {shown(line)} is no share",
            where="input of dfsio, as its generator left it",
            fix="remove this input, so that it is generated again",
        )
    number, first, count = map(int, match.groups())
    return f"part-data-{number:05d}", (first, count)


def _written(seed: int, first: int, count: int) -> tuple[int, int]:
    """Bytes and CRC-32 of a file with these records, made here."""
    starts = range(first, first + count, _TOGETHER)
    parts = (noise(seed, start, min(_TOGETHER, first + count - start), RECORD) for start in starts)
    return _size_and_sum(part.tobytes() for part in parts)


def _read_lines(name: str, chunks: Iterable[bytes], told: dict[str, FileRate]) -> str:
    """Add what the map of one output file told to *told*; what is wrong with it, or nothing."""
    *lines, tail = b"".join(chunks).split(b"\n")
    for line in [*lines, tail] if tail else lines:
        match = _LINE.fullmatch(line)
        if match is None:
            return f"{name}: {shown(line)} is not a file, its CRC-32, bytes and nanoseconds"
        rate = FileRate(match[1].decode(), int(match[2], 16), int(match[3]), int(match[4]) / 1e9)
        if rate.name in told:
            return f"{name}: {rate.name} is told a second time"
        told[rate.name] = rate
    return ""


def _difference(
    what: str, found: Mapping[str, tuple[int, int]], expected: Mapping[str, tuple[int, int]]
) -> str:
    """First file, by its name, that is not as expected: its bytes, or their CRC-32."""
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            both = (f"{f[0]} bytes, CRC-32 {f[1]:08x}" if f else "no such file"
                    for f in (found.get(name), expected.get(name)))  # fmt: skip
            return "{0}: {1} {2}, and it should have {3}".format(shown(name), what, *both)
    return ""
