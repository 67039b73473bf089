"""
Dfsio: the rate at which HDFS takes or gives files, one map for each, as TestDFSIO's; our own job.

    mode: write  the input is a line for each map, and each map writes its file into the output;
                 the proof: the files hold the bytes that the seed says, made here once more, by
                 their CRC-32
    mode: read   the input is the files; the proof: each was read once, with its CRC-32

Each map reports its bytes and the seconds within the file system's calls, opening and closing
included.  `rates` makes of them what TestDFSIO prints.
"""

from __future__ import annotations

import math
import re
import zlib

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import (
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Verdict,
    Workload,
    bad_input_error,
    job_of_ours,
    shown,
)
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.rows import noise, read_lines

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
_LINE = re.compile(rb"(part-(?:m|data)-\d{5,10})\t([0-9a-f]{8})\t(\d{1,18})\t(\d{1,18})\n?")
_TOGETHER = 2**16  # records

Content = tuple[int, int]  # bytes of a file, and their CRC-32


@dataclass(frozen=True, slots=True)
class FileRate:
    """One file as its map reports it: bytes, seconds within the file system's calls, CRC-32."""

    name: str
    crc: int
    bytes: int
    seconds: float


def rates(files: Iterable[FileRate]) -> dict[str, float]:
    """
    Return bytes per second as TestDFSIO prints them.

    `throughput`: all bytes by the sum of all seconds; `average`: mean of the files' rates;
    `deviation`: their standard deviation (of the whole, not of a sample).
    """
    files = list(files)
    file_rates = [file.bytes / max(file.seconds, 1e-9) for file in files]
    average = math.fsum(file_rates) / len(file_rates)
    seconds = max(math.fsum(file.seconds for file in files), 1e-9)
    squares = math.fsum((file_rate - average) ** 2 for file_rate in file_rates)
    return {
        "throughput": sum(file.bytes for file in files) / seconds,
        "average": average,
        "deviation": math.sqrt(squares / len(file_rates)),
    }


class Dfsio(Workload):
    """Reads or writes files of random bytes; without reduces."""

    name = "dfsio"
    description = "Rate of HDFS, files read or written by maps alone; verified by the bytes"
    parameters = PARAMETERS
    scales = SCALES

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """No reduces."""
        return {"mapreduce.job.reduces": "0"}

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """The files to be read; or, for files to be written, a line each."""
        arguments = self.arguments(spec)
        records, files = whole_records(spec, block_bytes, RECORD, arguments["files"])
        # A written file's bytes follow from the seed, and they are kept with the input.
        content = {"noise": 1, arguments["mode"]: [records, files, RECORD], "seed": spec.seed}
        rows, row_bytes = (records, RECORD) if arguments["mode"] == "read" else (files, LINE_BYTES)
        input_files = generated_files(rows, files, row_bytes)
        return InputPlan(f"{self.name}-{digest(content)}", input_files)

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the input by a job of ours."""
        arguments = self.arguments(spec)
        records, files = whole_records(spec, block_bytes, RECORD, arguments["files"])
        content, rows, properties = "Noise", records, {"noise.bytes": RECORD}
        if arguments["mode"] == "write":
            content, rows = "Shares", files
            properties = {"shares.records": records, "shares.parts": files}
        return generated(
            f"generate.{content}",
            records=rows,
            files=files,
            seed=spec.seed,
            uri=uri,
            properties=properties,
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """
        Return `files`: name -> bytes and CRC-32 of each; `records` of the job; `bytes` of all.

        For files to be written their lines say what they will be.  `JobError` for other lines.
        """
        if self.arguments(spec)["mode"] == "read":
            contents = {name: _content(chunks) for name, chunks in files}
        else:
            contents = {}
            for name, chunks in files:
                line = b"".join(chunks)
                match = _SHARE.fullmatch(line)
                if match is None:
                    raise bad_input_error(self.name, f"{name}: {shown(line)} is not a share")
                number, first, count = map(int, match.groups())
                pieces = (
                    noise(spec.seed, start, min(_TOGETHER, first + count - start), RECORD).tobytes()
                    for start in range(first, first + count, _TOGETHER)
                )
                contents[f"part-data-{number:05d}"] = _content(pieces)
        size = sum(file_bytes for file_bytes, _ in contents.values())
        return {"files": contents, "records": len(contents), "bytes": size}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        properties = {
            **self.properties(spec),
            "dfsio.mode": self.arguments(spec)["mode"],
            "dfsio.seed": spec.seed,
            "noise.bytes": RECORD,
        }
        return (job_of_ours("Dfsio", input_uri, output_uri, properties=properties),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Each file once, with the bytes that it should have; the rates are facts."""
        reported, stored = dict[str, FileRate](), dict[str, Content]()
        for name, chunks in outputs:
            if name.startswith("part-data-"):
                stored[name] = _content(chunks)
                continue
            for line in read_lines(chunks):
                match = _LINE.fullmatch(line)
                if match is None:
                    text = shown(line.removesuffix(b"\n"))
                    reason = f"{text} is not a file, its CRC-32, bytes and nanoseconds"
                    return Verdict(f"{name}: {reason}")
                rate = FileRate(
                    match[1].decode(), int(match[2], 16), int(match[3]), int(match[4]) / 1e9
                )
                if rate.name in reported:
                    return Verdict(f"{name}: {rate.name} is reported a second time")
                reported[rate.name] = rate
        expected = {name: (size, crc) for name, (size, crc) in sample["files"].items()}
        if self.arguments(spec)["mode"] == "write" and (
            reason := _difference("is stored with", stored, expected)
        ):
            return Verdict(reason)
        contents = {name: (rate.bytes, rate.crc) for name, rate in reported.items()}
        if reason := _difference("is reported with", contents, expected):
            return Verdict(reason)
        facts: dict[str, int | str] = {"files": len(reported)}
        for kind, bytes_per_s in rates(reported.values()).items():
            facts[f"{kind} (bytes/s)"] = round(bytes_per_s)
        return Verdict(facts=facts)


def _content(chunks: Iterable[bytes]) -> Content:
    size = crc = 0
    for chunk in chunks:
        size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    return size, crc


def _difference(verb: str, contents: Mapping[str, Content], expected: Mapping[str, Content]) -> str:
    """First file, by its name, that is not as expected: its bytes, or their CRC-32."""
    for name in sorted({*contents, *expected}):
        if contents.get(name) != expected.get(name):
            actual, due = (
                f"{content[0]} bytes, CRC-32 {content[1]:08x}" if content else "no such file"
                for content in (contents.get(name), expected.get(name))
            )
            return f"{shown(name)} {verb}: {actual}; expected: {due}"
    return ""
