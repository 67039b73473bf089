"""
Dfsio: the rate at which HDFS takes or gives files, one map for each, as TestDFSIO's; our own job.

Files to be read are the input; for files to be written it is a line for each map.  The proof: each
file was read, or is stored, once, with the CRC-32 of the bytes that the seed says.
"""

from __future__ import annotations

import re
import zlib

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from harness.base.records.trial import WorkloadSpec, digest
from harness.clusters.workloads.base import (
    File,
    InputPlan,
    Parameter,
    Sample,
    Workload,
    bad_input_error,
    shown,
)
from harness.clusters.workloads.files import (
    generated_input,
    noise,
    plan_noise,
    read_matches,
    whole_records,
)

RECORD = 200  # bytes; whole words, and small enough that small files have their size within 1 %
LINE_BYTES = 63
_SHARE = re.compile(rb"(\d{20}) (\d{20}) (\d{20})\n")
_LINE = re.compile(rb"(part-(?:m|data)-\d{5,10})\t([0-9a-f]{8})\t(\d{1,18})\t\d{1,18}")
_TOGETHER = 2**16  # records

Content = tuple[int, int]  # bytes of a file, and their CRC-32


class Dfsio(Workload):
    """Reads or writes files of random bytes; without reduces."""

    name = "dfsio"
    main_class = "Dfsio"
    description = "Rate of HDFS, files read or written by maps alone; verified by the bytes"
    unlike_hibench = "its dfsioe also samples the rates while it runs, and has a reduce"
    parameters: ClassVar = {
        "mode": Parameter("read", "read files, or write them", choices=("read", "write")),
        "files": Parameter(1, "fewest files; no file is larger than a block", 1, 1e5),
    }
    # HiBench's profiles of dfsioe: all files that it writes or reads.
    sizes = tuple(mib * 2**20 for mib in (16, 320, 640, 25_600, 204_800, 2_048_000))

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """No reduces."""
        return {"mapreduce.job.reduces": "0"}

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """The files to be read; or, for files to be written, a line each."""
        arguments = self.arguments(spec)
        if arguments["mode"] == "read":
            return plan_noise(spec, block_bytes, RECORD, arguments["files"])
        records, file_count = whole_records(spec, block_bytes, RECORD, arguments["files"])
        # A written file's bytes follow from the seed, and they are kept with the input.
        content = {"noise": 1, "write": [records, file_count, RECORD], "seed": spec.seed}
        return generated_input(
            spec,
            f"{self.name}-{digest(content)}",
            "generate.Shares",
            records=file_count,
            sizes=[LINE_BYTES] * file_count,
            properties={"shares.records": records, "shares.parts": file_count},
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `files`: name -> bytes and CRC-32 of each; `records` of the job.

        For files to be written their lines say what they will be.  `JobError` for other lines.
        """
        contents = dict[str, Content]()
        for file_name, file_chunks in input_files:
            if self.arguments(spec)["mode"] == "read":
                contents[file_name] = _content(file_chunks)
                continue
            share_line = b"".join(file_chunks)
            line_match = _SHARE.fullmatch(share_line)
            if line_match is None:
                reason = f"{file_name}: {shown(share_line)} is not a share"
                raise bad_input_error(self.name, reason)
            number, first_record, record_count = map(int, line_match.groups())
            end = first_record + record_count
            file_pieces = (
                noise(spec.seed, start, min(_TOGETHER, end - start), RECORD).tobytes()
                for start in range(first_record, end, _TOGETHER)
            )
            contents[f"part-data-{number:05d}"] = _content(file_pieces)
        return {"files": contents, "records": len(contents)}

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Mode, seed, bytes of a record; and no reduces."""
        return {
            **self.properties(spec),
            "dfsio.mode": self.arguments(spec)["mode"],
            "dfsio.seed": spec.seed,
            "noise.bytes": RECORD,
        }

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Each file once, with the bytes that it should have."""
        stored = dict[str, Content]()
        reported = dict[str, Content]()
        report = "a file, its CRC-32, bytes and nanoseconds"
        for output_file in outputs:
            if output_file[0].startswith("part-data-"):
                stored[output_file[0]] = _content(output_file[1])
                continue
            for place, line_match in read_matches(output_file, _LINE, report):
                file_name = line_match[1].decode()
                if file_name in reported:
                    return f"{place}: {file_name} is reported twice"
                reported[file_name] = int(line_match[3]), int(line_match[2], 16)
        expected = sample["files"]
        compared = {"is stored with": stored, "is reported with": reported}
        if self.arguments(spec)["mode"] == "read":
            del compared["is stored with"]
        for verb, contents in compared.items():
            for file_name in sorted({*contents, *expected}):
                actual = _describe(contents.get(file_name))
                due = _describe(expected.get(file_name))
                if actual != due:
                    return f"{shown(file_name)} {verb}: {actual}; expected: {due}"
        return ""


def _describe(content: Content | None) -> str:
    """What a file has, in words."""
    return f"{content[0]} bytes, CRC-32 {content[1]:08x}" if content else "no such file"


def _content(chunks: Iterable[bytes]) -> Content:
    """Bytes of a file, and their CRC-32."""
    file_bytes = 0
    checksum = 0
    for chunk in chunks:
        file_bytes += len(chunk)
        checksum = zlib.crc32(chunk, checksum)
    return file_bytes, checksum
