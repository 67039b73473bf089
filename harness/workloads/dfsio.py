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
    scales,
    shown,
)
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.rows import noise, read_lines

RECORD = 200  # bytes; whole words, and small enough that small files have their size within 1 %
LINE_BYTES = 63
_MIB = 2**20
# HiBench's profiles of dfsioe: number of files x their size, written or read.
SCALES = scales(
    16 * _MIB,
    32 * 10 * _MIB,
    64 * 10 * _MIB,
    256 * 100 * _MIB,
    512 * 400 * _MIB,
    2048 * 1000 * _MIB,
)
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


def rates(file_list: Iterable[FileRate]) -> dict[str, float]:
    """
    Return bytes per second as TestDFSIO prints them.

    `throughput`: all bytes by the sum of all seconds; `average`: mean of the files' rates;
    `deviation`: their standard deviation (of the whole, not of a sample).
    """
    file_list = list(file_list)
    file_rates = [file_rate.bytes / max(file_rate.seconds, 1e-9) for file_rate in file_list]
    average = math.fsum(file_rates) / len(file_rates)
    seconds = max(math.fsum(file_rate.seconds for file_rate in file_list), 1e-9)
    squares = math.fsum((file_rate - average) ** 2 for file_rate in file_rates)
    return {
        "throughput": sum(file_rate.bytes for file_rate in file_list) / seconds,
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
        records, file_count = whole_records(spec, block_bytes, RECORD, arguments["files"])
        # A written file's bytes follow from the seed, and they are kept with the input.
        content = {"noise": 1, arguments["mode"]: [records, file_count, RECORD], "seed": spec.seed}
        input_files = generated_files(records, file_count, RECORD)
        if arguments["mode"] == "write":
            input_files = generated_files(file_count, file_count, LINE_BYTES)
        return InputPlan(f"{self.name}-{digest(content)}", input_files)

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Write the input by a job of ours."""
        arguments = self.arguments(spec)
        records, file_count = whole_records(spec, block_bytes, RECORD, arguments["files"])
        content, row_count, properties = "Noise", records, {"noise.bytes": RECORD}
        if arguments["mode"] == "write":
            content, row_count = "Shares", file_count
            properties = {"shares.records": records, "shares.parts": file_count}
        return generated(
            f"generate.{content}",
            records=row_count,
            files=file_count,
            seed=spec.seed,
            uri=input_uri,
            properties=properties,
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `files`: name -> bytes and CRC-32 of each; `records` of the job; `bytes` of all.

        For files to be written their lines say what they will be.  `JobError` for other lines.
        """
        if self.arguments(spec)["mode"] == "read":
            contents = {file_name: _content(file_chunks) for file_name, file_chunks in input_files}
        else:
            contents = {}
            for file_name, file_chunks in input_files:
                share_line = b"".join(file_chunks)
                line_match = _SHARE.fullmatch(share_line)
                if line_match is None:
                    raise bad_input_error(
                        self.name, f"{file_name}: {shown(share_line)} is not a share"
                    )
                number, first_record, record_count = map(int, line_match.groups())
                file_pieces = (
                    noise(
                        spec.seed,
                        piece_start,
                        min(_TOGETHER, first_record + record_count - piece_start),
                        RECORD,
                    ).tobytes()
                    for piece_start in range(first_record, first_record + record_count, _TOGETHER)
                )
                contents[f"part-data-{number:05d}"] = _content(file_pieces)
        total_bytes = sum(file_bytes for file_bytes, _ in contents.values())
        return {"files": contents, "records": len(contents), "bytes": total_bytes}

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
        for file_name, file_chunks in outputs:
            if file_name.startswith("part-data-"):
                stored[file_name] = _content(file_chunks)
                continue
            for report_line in read_lines(file_chunks):
                line_match = _LINE.fullmatch(report_line)
                if line_match is None:
                    line_text = shown(report_line.removesuffix(b"\n"))
                    reason = f"{line_text} is not a file, its CRC-32, bytes and nanoseconds"
                    return Verdict(f"{file_name}: {reason}")
                file_rate = FileRate(
                    line_match[1].decode(),
                    int(line_match[2], 16),
                    int(line_match[3]),
                    int(line_match[4]) / 1e9,
                )
                if file_rate.name in reported:
                    return Verdict(f"{file_name}: {file_rate.name} is reported a second time")
                reported[file_rate.name] = file_rate
        expected = {file_name: (size, crc) for file_name, (size, crc) in sample["files"].items()}
        if self.arguments(spec)["mode"] == "write" and (
            reason := _difference("is stored with", stored, expected)
        ):
            return Verdict(reason)
        contents = {
            file_name: (file_rate.bytes, file_rate.crc) for file_name, file_rate in reported.items()
        }
        if reason := _difference("is reported with", contents, expected):
            return Verdict(reason)
        facts: dict[str, int | str] = {"files": len(reported)}
        for rate_kind, bytes_per_s in rates(reported.values()).items():
            facts[f"{rate_kind} (bytes/s)"] = round(bytes_per_s)
        return Verdict(facts=facts)


def _content(chunks: Iterable[bytes]) -> Content:
    file_bytes = checksum = 0
    for chunk in chunks:
        file_bytes, checksum = file_bytes + len(chunk), zlib.crc32(chunk, checksum)
    return file_bytes, checksum


def _difference(verb: str, contents: Mapping[str, Content], expected: Mapping[str, Content]) -> str:
    """First file, by its name, that is not as expected: its bytes, or their CRC-32."""
    for file_name in sorted({*contents, *expected}):
        if contents.get(file_name) != expected.get(file_name):
            actual_text, expected_text = (
                f"{content[0]} bytes, CRC-32 {content[1]:08x}" if content else "no such file"
                for content in (contents.get(file_name), expected.get(file_name))
            )
            return f"{shown(file_name)} {verb}: {actual_text}; expected: {expected_text}"
    return ""
