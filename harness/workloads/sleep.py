"""
Sleep: a job whose time in each phase is known, because it sleeps there: the truth test of models.

It reads real records, and moves as many bytes as its parameters say, so its dataflow is known, too.
The proof: every key came with its records, by a checksum that no order changes, and what was slept
in each phase, as its counters have it, is what was asked for.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

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
from harness.workloads.rows import read_lines, read_rows, row_bits

RECORD = 96  # bytes
# HiBench's durations of a map: 3, 30, 90, 90, 90 and 10 s, at a millisecond for each record.
SCALES = scales(
    3_000 * RECORD,
    30_000 * RECORD,
    90_000 * RECORD,
    90_000 * RECORD,
    90_000 * RECORD,
    10_000 * RECORD,
)
_LONGEST = 3_600_000
PARAMETERS = {
    "read_ms": Parameter(0.0, "sleep per record read, milliseconds", least=0, most=_LONGEST),
    "map_ms": Parameter(1.0, "sleep per record mapped, milliseconds", least=0, most=_LONGEST),
    "reduce_ms": Parameter(100.0, "sleep per key reduced, milliseconds", least=0, most=_LONGEST),
    "maps": Parameter(1, "maps at the least; one for each file of the input", least=1, most=1e5),
    "keys": Parameter(10, "keys, dealt out in turn by each map", least=1, most=1e6),
    "outputs": Parameter(1, "records that a record becomes", least=1, most=1000),
    "bytes": Parameter(100, "bytes of each of these", least=1, most=2**20),
}
# What may be slept beyond what was asked: a share of all, and the delay that is not made up for, of
# each task's last pause.  A machine that stood still for longer gave no known duration.
_SHARE, _DELAY_S = 0.1, 1.0
_LINE = re.compile(
    rb"(?:(\d{1,7})\t(\d{1,18})\t([0-9a-f]{16})|(read|map|reduce)\t(\d{1,18})\t(\d{1,18}))\n?"
)


class Sleep(Workload):
    """Sleeps over records of 96 bytes; needs one reduce or more."""

    name = "sleep"
    description = "Sleeps known times in each phase over known records; verified by both"
    parameters = PARAMETERS
    scales = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many files as `maps` says, or as the input has blocks."""
        arguments = self.arguments(spec)
        records, file_count = whole_records(spec, block_bytes, RECORD, arguments["maps"])
        # What is kept of an input depends on what its records become.
        dataflow = {
            parameter_name: arguments[parameter_name]
            for parameter_name in ("keys", "outputs", "bytes")
        }
        content_key = digest(
            {"noise": 1, "seed": spec.seed, "of": [records, file_count, RECORD], **dataflow}
        )
        return InputPlan(f"{self.name}-{content_key}", generated_files(records, file_count, RECORD))

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        least_files = self.arguments(spec)["maps"]
        records, file_count = whole_records(spec, block_bytes, RECORD, least_files)
        return generated(
            "generate.Noise",
            records=records,
            files=file_count,
            seed=spec.seed,
            uri=input_uri,
            properties={"noise.bytes": RECORD},
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `files`, `records`, `bytes`, and `keys`: under each, records and checksum."""
        arguments = self.arguments(spec)
        key_count, copy_count = arguments["keys"], arguments["outputs"]
        copy_bytes = arguments["bytes"]
        key_counts, key_sums = np.zeros(key_count, np.int64), np.zeros(key_count, np.uint64)
        records, file_count, columns = 0, 0, np.arange(copy_bytes) % RECORD
        together = max(1, 2**22 // copy_bytes) * RECORD  # a record becomes *copy_bytes* bytes here
        for input_file in input_files:
            first_row, file_count = 0, file_count + 1
            for row_block in read_rows(self.name, [input_file], RECORD, together):
                row_hashes = row_bits(row_block[:, columns])
                for copy_number in range(copy_count):
                    row_keys = (
                        np.arange(first_row, first_row + len(row_hashes)) * copy_count + copy_number
                    ) % key_count
                    key_counts += np.bincount(row_keys, minlength=key_count)
                    np.add.at(key_sums, row_keys, row_hashes)
                first_row += len(row_hashes)
            records += first_row
        by_key = {
            str(key_number): [int(key_counts[key_number]), int(key_sums[key_number])]
            for key_number in key_counts.nonzero()[0]
        }
        return {"files": file_count, "records": records, "bytes": records * RECORD, "keys": by_key}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; its client writes what was slept when the job has ended."""
        arguments = self.arguments(spec)
        del arguments["maps"]
        properties = {
            f"sleep.{parameter_name.removesuffix('_ms')}": argument_value
            for parameter_name, argument_value in arguments.items()
        }
        properties["sleep.record"] = RECORD
        return (job_of_ours("Sleep", input_uri, output_uri, properties=properties),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every key with its records, and every phase with its calls and seconds."""
        by_key = dict[int, tuple[int, int]]()  # records and checksum
        slept_phases = dict[str, tuple[int, int]]()  # calls and nanoseconds, by phase
        file_count = 0
        for file_name, file_chunks in outputs:
            file_count += 1
            for report_line in read_lines(file_chunks):
                line_match = _LINE.fullmatch(report_line)
                if line_match is None:
                    line_text = shown(report_line.removesuffix(b"\n"))
                    return Verdict(f"{file_name}: {line_text} is neither a key nor a phase")
                phase_name, key_number = (line_match[4] or b"").decode(), int(line_match[1] or -1)
                if phase_name in slept_phases or key_number in by_key:
                    which = phase_name or f"key {key_number}"
                    return Verdict(f"{file_name}: {which} is reported a second time")
                if phase_name:
                    slept_phases[phase_name] = int(line_match[5]), int(line_match[6])
                else:
                    by_key[key_number] = int(line_match[2]), int(line_match[3], 16)
        expected = {
            int(key_number): tuple(key_totals) for key_number, key_totals in sample["keys"].items()
        }
        facts: dict[str, int | str] = {
            f"{phase_name} slept (ms)": slept_nanos // 10**6
            for phase_name, (_, slept_nanos) in slept_phases.items()
        }
        for key_number in sorted({*by_key, *expected}):
            if by_key.get(key_number) != expected.get(key_number):
                arrived_text, sent_text = (
                    f"{totals[0]} records, checksum {totals[1]:016x}" if totals else "nothing"
                    for totals in (by_key.get(key_number), expected.get(key_number))
                )
                return Verdict(
                    f"under key {key_number} came {arrived_text}, and {sent_text} was sent", facts
                )
        # The files are those of the reduces, and the client's own.
        return Verdict(self._overslept(spec, sample, slept_phases, file_count), facts)

    def _overslept(
        self,
        spec: WorkloadSpec,
        sample: Mapping[str, Any],
        slept: Mapping[str, tuple[int, int]],
        reduces: int,
    ) -> str:
        """Which phase was called or slept otherwise than asked for, or nothing."""
        arguments, records, map_count = self.arguments(spec), sample["records"], sample["files"]
        planned_phases = {
            "read": (map_count, records),
            "map": (map_count, records),
            "reduce": (reduces, len(sample["keys"])),
        }
        for phase_name, (task_count, planned_calls) in planned_phases.items():
            phase_calls, slept_nanos = slept.get(phase_name, (0, 0))
            if phase_calls != planned_calls:
                return f"{phase_name} was called {phase_calls} times and not {planned_calls}"
            least_s = planned_calls * arguments[f"{phase_name}_ms"] / 1000
            most_s = least_s * (1 + _SHARE) + (_DELAY_S * task_count if least_s else 0)
            # Java rounds each pause to whole nanoseconds.
            if not least_s - 1e-6 * planned_calls <= slept_nanos / 1e9 <= most_s:
                return (
                    f"{phase_name} slept {slept_nanos / 1e9:g} s, and {least_s:g} s were asked for"
                )
        return ""
