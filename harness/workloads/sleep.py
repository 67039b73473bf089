"""
Sleep: a job whose time in each phase is known, because it sleeps there: the truth test of models.

It reads real records, and moves as many bytes as it is told, so its dataflow is known, too.  The
proof: every key came with its records, by a checksum that no order changes, and what was slept in
each phase, as its counters tell it, is what was asked.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import JOBS, File, InputPlan, JobCommand, Parameter, SingleJob, Verdict
from harness.workloads.checksum import record_bits
from harness.workloads.generate import generated, generated_files, whole_records
from harness.workloads.shape import arguments, regroup, shown

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
_LINE = re.compile(r"(\d{1,7})\t(\d{1,18})\t([0-9a-f]{16})")
_SLEPT = re.compile(r"(read|map|reduce)\t(\d{1,18})\t(\d{1,18})")


class Sleep(SingleJob):
    """Sleeps over records of 96 bytes; needs one reduce or more."""

    name = "sleep"
    uses_combiner = False
    description = "Sleeps known times in each phase over known records; proved by both"
    parameters: Mapping[str, Parameter] = PARAMETERS
    scales: Mapping[str, int] = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many files as `maps` says, or as the input has blocks."""
        records, files = self._shape(spec, block_bytes)
        moved = {
            name: arguments(spec, self.parameters)[name] for name in ("keys", "outputs", "bytes")
        }
        # What is kept of an input depends on what its records become.
        key = digest({"noise": 1, "seed": spec.seed, "of": [records, files, RECORD], **moved})
        return InputPlan(f"{self.name}-{key}", tuple(generated_files(records, files, RECORD)))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the records by a job of ours."""
        records, files = self._shape(spec, block_bytes)
        return generated(
            "mapreduce.harness.jobs.generate.Noise",
            records=records,
            files=files,
            seed=spec.seed,
            uri=uri,
            properties={"noise.bytes": str(RECORD)},
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `files`, `records`, `bytes`, and `keys`: under each, records and checksum."""
        asked = arguments(spec, self.parameters)
        keys, outputs, size = int(asked["keys"]), int(asked["outputs"]), int(asked["bytes"])
        counts, sums = np.zeros(keys, np.int64), np.zeros(keys, np.uint64)
        records, parts, columns = 0, 0, np.arange(size) % RECORD
        for _, chunks in files:
            first, parts = 0, parts + 1
            for block in regroup(chunks, max(1, 2**22 // size) * RECORD):
                rows = np.frombuffer(block[: len(block) // RECORD * RECORD], np.uint8)
                bits = record_bits(rows.reshape(-1, RECORD)[:, columns])
                for output in range(outputs):
                    under = (np.arange(first, first + len(bits)) * outputs + output) % keys
                    counts += np.bincount(under, minlength=keys)
                    np.add.at(sums, under, bits)
                first += len(bits)
            records += first
        came = {str(key): [int(counts[key]), int(sums[key])] for key in counts.nonzero()[0]}
        return {"files": parts, "records": records, "bytes": records * RECORD, "keys": came}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; its client writes what was slept when the job has ended."""
        asked = arguments(spec, self.parameters)
        properties = {
            f"sleep.{name.removesuffix('_ms')}": str(value)
            for name, value in asked.items()
            if name != "maps"
        }
        properties["sleep.record"] = str(RECORD)
        main = "mapreduce.harness.jobs.SleepOver"
        return (JobCommand(main, (input_uri, output_uri), properties=properties, jar=JOBS),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every key with its records, and every phase with its calls and seconds."""
        told = _Told()
        for name, chunks in outputs:
            if wrong := told.add(b"".join(chunks)):
                return Verdict(right=False, reason=f"{name}: {wrong}")
        expected = {int(key): tuple(each) for key, each in sample["keys"].items()}
        facts: dict[str, int | str] = {
            f"{p} slept (ms)": s // 10**6 for p, (_, s) in told.slept.items()
        }
        reason = _differs(told.keys, expected) or self._overslept(spec, sample, told)
        return Verdict(right=not reason, reason=reason, facts=facts)

    def _overslept(self, spec: WorkloadSpec, sample: Mapping[str, Any], told: _Told) -> str:
        """Which phase was called or slept otherwise than asked, or nothing."""
        asked, records = arguments(spec, self.parameters), int(sample["records"])
        maps = int(sample["files"])
        calls = {
            "read": (maps, records),
            "map": (maps, records),
            "reduce": (told.files, len(sample["keys"])),
        }
        for phase, (tasks, planned) in calls.items():
            called, nanos = told.slept.get(phase, (0, 0))
            if called != planned:
                return f"{phase} was called {called} times and not {planned}"
            least = planned * float(asked[f"{phase}_ms"]) / 1000
            most = least * (1 + _SHARE) + (_DELAY_S * tasks if least else 0)
            if not least - 1e-6 * planned <= nanos / 1e9 <= most:
                return f"{phase} slept {nanos / 1e9:g} s, and {least:g} s were asked"
        return ""

    def _shape(self, spec: WorkloadSpec, block_bytes: int) -> tuple[int, int]:
        """Records and files."""
        least = int(arguments(spec, self.parameters)["maps"])
        return whole_records(spec, block_bytes, RECORD, least)


@dataclass
class _Told:
    """What the reduces and the client told: records by key, calls and nanoseconds by phase."""

    files: int = 0
    keys: dict[int, tuple[int, int]] = field(default_factory=dict)
    slept: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, data: bytes) -> str:
        """Add one file; what is wrong with it, or nothing."""
        self.files += 1
        *lines, tail = data.decode("ascii", "replace").split("\n")
        for line in [*lines, tail] if tail else lines:
            if match := _LINE.fullmatch(line):
                key, value = int(match[1]), (int(match[2]), int(match[3], 16))
                if self.keys.setdefault(key, value) is not value:
                    return f"key {key} is told a second time"
            elif match := _SLEPT.fullmatch(line):
                slept = (int(match[2]), int(match[3]))
                if self.slept.setdefault(match[1], slept) is not slept:
                    return f"{match[1]} is told a second time"
            else:
                return f"{shown(line)} is neither a key nor a phase"
        return ""


def _differs(found: Mapping[int, tuple[int, ...]], expected: Mapping[int, tuple[int, ...]]) -> str:
    """First key under which something else came, or nothing."""
    for key in sorted({*found, *expected}):
        if found.get(key) != expected.get(key):
            both = (f"{e[0]} records, checksum {e[1]:016x}" if e else "nothing"
                    for e in (found.get(key), expected.get(key)))  # fmt: skip
            return "under key {0} came {1}, and {2} was sent".format(key, *both)
    return ""
