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
    shown,
)
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.rows import read_lines, read_rows, row_bits

RECORD = 96  # bytes
# HiBench's durations of a map: 3, 30, 90, 90, 90 and 10 s, at a millisecond for each record.
SCALES = {
    "tiny": 3_000 * RECORD,
    "small": 30_000 * RECORD,
    "large": 90_000 * RECORD,
    "huge": 90_000 * RECORD,
    "gigantic": 90_000 * RECORD,
    "bigdata": 10_000 * RECORD,
}
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
        records, files = whole_records(spec, block_bytes, RECORD, arguments["maps"])
        # What is kept of an input depends on what its records become.
        dataflow = {name: arguments[name] for name in ("keys", "outputs", "bytes")}
        key = digest({"noise": 1, "seed": spec.seed, "of": [records, files, RECORD], **dataflow})
        return InputPlan(f"{self.name}-{key}", generated_files(records, files, RECORD))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        least_files = self.arguments(spec)["maps"]
        records, files = whole_records(spec, block_bytes, RECORD, least_files)
        return generated(
            "generate.Noise",
            records=records,
            files=files,
            seed=spec.seed,
            uri=uri,
            properties={"noise.bytes": RECORD},
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `files`, `records`, `bytes`, and `keys`: under each, records and checksum."""
        arguments = self.arguments(spec)
        keys, outputs, size = arguments["keys"], arguments["outputs"], arguments["bytes"]
        counts, sums = np.zeros(keys, np.int64), np.zeros(keys, np.uint64)
        records, file_count, columns = 0, 0, np.arange(size) % RECORD
        together = max(1, 2**22 // size) * RECORD  # a record becomes *size* bytes here
        for file in files:
            first, file_count = 0, file_count + 1
            for rows in read_rows(self.name, [file], RECORD, together):
                bits = row_bits(rows[:, columns])
                for output in range(outputs):
                    row_keys = (np.arange(first, first + len(bits)) * outputs + output) % keys
                    counts += np.bincount(row_keys, minlength=keys)
                    np.add.at(sums, row_keys, bits)
                first += len(bits)
            records += first
        by_key = {str(key): [int(counts[key]), int(sums[key])] for key in counts.nonzero()[0]}
        return {"files": file_count, "records": records, "bytes": records * RECORD, "keys": by_key}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; its client writes what was slept when the job has ended."""
        arguments = self.arguments(spec)
        del arguments["maps"]
        properties = {
            f"sleep.{name.removesuffix('_ms')}": value for name, value in arguments.items()
        }
        properties["sleep.record"] = RECORD
        return (job_of_ours("Sleep", input_uri, output_uri, properties=properties),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every key with its records, and every phase with its calls and seconds."""
        by_key = dict[int, tuple[int, int]]()  # records and checksum
        slept = dict[str, tuple[int, int]]()  # calls and nanoseconds, by phase
        file_count = 0
        for name, chunks in outputs:
            file_count += 1
            for line in read_lines(chunks):
                match = _LINE.fullmatch(line)
                if match is None:
                    text = shown(line.removesuffix(b"\n"))
                    return Verdict(f"{name}: {text} is neither a key nor a phase")
                phase, key = (match[4] or b"").decode(), int(match[1] or -1)
                if phase in slept or key in by_key:
                    return Verdict(f"{name}: {phase or f'key {key}'} is reported a second time")
                if phase:
                    slept[phase] = int(match[5]), int(match[6])
                else:
                    by_key[key] = int(match[2]), int(match[3], 16)
        expected = {int(key): tuple(pair) for key, pair in sample["keys"].items()}
        facts: dict[str, int | str] = {
            f"{phase} slept (ms)": nanos // 10**6 for phase, (_, nanos) in slept.items()
        }
        for key in sorted({*by_key, *expected}):
            if by_key.get(key) != expected.get(key):
                arrived, sent = (
                    f"{pair[0]} records, checksum {pair[1]:016x}" if pair else "nothing"
                    for pair in (by_key.get(key), expected.get(key))
                )
                return Verdict(f"under key {key} came {arrived}, and {sent} was sent", facts)
        # The files are those of the reduces, and the client's own.
        return Verdict(self._overslept(spec, sample, slept, file_count), facts)

    def _overslept(
        self,
        spec: WorkloadSpec,
        sample: Mapping[str, Any],
        slept: Mapping[str, tuple[int, int]],
        reduces: int,
    ) -> str:
        """Which phase was called or slept otherwise than asked for, or nothing."""
        arguments, records, maps = self.arguments(spec), sample["records"], sample["files"]
        plan = {
            "read": (maps, records),
            "map": (maps, records),
            "reduce": (reduces, len(sample["keys"])),
        }
        for phase, (tasks, planned_calls) in plan.items():
            calls, nanos = slept.get(phase, (0, 0))
            if calls != planned_calls:
                return f"{phase} was called {calls} times and not {planned_calls}"
            least_s = planned_calls * arguments[f"{phase}_ms"] / 1000
            most_s = least_s * (1 + _SHARE) + (_DELAY_S * tasks if least_s else 0)
            # Java rounds each pause to whole nanoseconds.
            if not least_s - 1e-6 * planned_calls <= nanos / 1e9 <= most_s:
                return f"{phase} slept {nanos / 1e9:g} s, and {least_s:g} s were asked for"
        return ""
