"""
Sleep: a job whose time in each phase is known, because it sleeps there: the truth test of models.

It reads real records, and moves as many bytes as its parameters say, so its dataflow is known, too.
The proof: every key came with its records, by a checksum that no order changes, and what was slept
in each phase, as its counters have it, is what was asked for.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from harness.base.errors import JobError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import File, InputPlan, Parameter, Sample, Workload
from harness.clusters.workloads.files import plan_noise, read_matches, read_rows, row_bits

RECORD = 96  # bytes
_LONGEST = 3_600_000
# What may be slept beyond what was asked: a share of all, and the delay that is not made up for, of
# each task's last pause.  A machine that stood still for longer gave no known duration.
_SHARE = 0.1
_DELAY_S = 1.0
_LINE = re.compile(
    rb"(\d{1,7})\t(\d{1,18})\t([0-9a-f]{16})|(read|map|reduce)\t(\d{1,18})\t(\d{1,18})"
)

Totals = list[int]  # records of a key, and the sum of their hashes


class Sleep(Workload):
    """Sleeps over records of 96 bytes; needs one reduce or more."""

    name = "sleep"
    main_class = "Sleep"
    description = "Sleeps known times in each phase over known records; verified by both"
    unlike_hibench = "its maps and reduces sleep once each, without an input"
    parameters: ClassVar = {
        "read_ms": Parameter(0.0, "sleep per record read, milliseconds", 0, _LONGEST),
        "map_ms": Parameter(1.0, "sleep per record mapped, milliseconds", 0, _LONGEST),
        "reduce_ms": Parameter(100.0, "sleep per key reduced, milliseconds", 0, _LONGEST),
        "maps": Parameter(1, "fewest maps; one for each file of the input", 1, 1e5),
        "keys": Parameter(10, "keys, assigned in turn by each map", 1, 1e6),
        "outputs": Parameter(1, "records that a record becomes", 1, 1000),
        "bytes": Parameter(100, "bytes of each such record", 1, 2**20),
    }
    # HiBench's durations of a map: 3, 30, 90, 90, 90 and 10 s, at a millisecond for each record.
    sizes = tuple(1000 * seconds * RECORD for seconds in (3, 30, 90, 90, 90, 10))

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many files as `maps` says, or as the input has blocks."""
        arguments = self.arguments(spec)
        # What is kept of an input depends on what its records become.
        dataflow = {name: arguments[name] for name in ("keys", "outputs", "bytes")}
        return plan_noise(spec, block_bytes, RECORD, arguments["maps"], **dataflow)

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `files`, `records`, and `keys`: under each, records and checksum."""
        arguments = self.arguments(spec)
        key_count = arguments["keys"]
        copy_count = arguments["outputs"]
        copy_bytes = arguments["bytes"]
        key_counts = np.zeros(key_count, np.int64)
        key_sums = np.zeros(key_count, np.uint64)
        records = 0
        file_count = 0
        columns = np.arange(copy_bytes) % RECORD
        together = max(1, 2**22 // copy_bytes) * RECORD  # a record becomes *copy_bytes* bytes here
        for input_file in input_files:
            first_row = 0
            file_count += 1
            for row_block in read_rows(self.name, [input_file], RECORD, together):
                row_hashes = row_bits(row_block[:, columns])
                row_numbers = np.arange(first_row, first_row + len(row_hashes))
                for copy_number in range(copy_count):
                    row_keys = (row_numbers * copy_count + copy_number) % key_count
                    key_counts += np.bincount(row_keys, minlength=key_count)
                    np.add.at(key_sums, row_keys, row_hashes)
                first_row += len(row_hashes)
            records += first_row
        totals = {
            str(key_number): [int(key_counts[key_number]), int(key_sums[key_number])]
            for key_number in key_counts.nonzero()[0]
        }
        return {"files": file_count, "records": records, "keys": totals}

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """All but the number of maps; the client writes what was slept when the job has ended."""
        arguments = self.arguments(spec) | {"record": RECORD}
        del arguments["maps"]
        return {
            f"sleep.{name.removesuffix('_ms')}": argument for name, argument in arguments.items()
        }

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Every key with its records, and every phase with its calls and seconds."""
        report = read_report(outputs)
        sent = sample["keys"]
        for key in sorted({*report.keys, *sent}, key=int):
            if report.keys.get(key) != sent.get(key):
                arrived_text = _describe(report.keys.get(key))
                sent_text = _describe(sent.get(key))
                return f"key {key} arrived with {arrived_text}, but {sent_text} were sent"
        arguments = self.arguments(spec)
        records = sample["records"]
        map_count = sample["files"]
        planned_phases = {
            "read": (map_count, records),
            "map": (map_count, records),
            # The files are those of the reduces, and the client's own.
            "reduce": (report.files, len(sent)),
        }
        for phase_name, (task_count, planned_calls) in planned_phases.items():
            phase_calls, slept_nanos = report.phases.get(phase_name, (0, 0))
            if phase_calls != planned_calls:
                return f"{phase_name} was called {phase_calls} times, not {planned_calls}"
            least_s = planned_calls * arguments[f"{phase_name}_ms"] / 1000
            most_s = least_s * (1 + _SHARE) + (_DELAY_S * task_count if least_s else 0)
            # Java rounds each pause to whole nanoseconds.
            if not least_s - 1e-6 * planned_calls <= slept_nanos / 1e9 <= most_s:
                return f"{phase_name} slept {slept_nanos / 1e9:g} s, not {least_s:g} s"
        return ""


@dataclass(frozen=True, slots=True)
class Report:
    """What an output says: its files, totals of each key, calls and nanoseconds of each phase."""

    files: int
    keys: Mapping[str, Totals]
    phases: Mapping[str, tuple[int, int]]


def read_report(outputs: Iterable[File]) -> Report:
    """Read the output; `JobError` names a line that is no key or phase, or repeats one."""
    keys = dict[str, Totals]()
    phases = dict[str, tuple[int, int]]()
    file_count = 0
    for output_file in outputs:
        file_count += 1
        for place, line_match in read_matches(output_file, _LINE, "a key or a phase"):
            phase_name = (line_match[4] or b"").decode()
            key = str(int(line_match[1] or -1))
            if phase_name in phases or key in keys:
                raise JobError(f"{place}: {phase_name or f'key {key}'} is reported twice")
            if phase_name:
                phases[phase_name] = int(line_match[5]), int(line_match[6])
            else:
                keys[key] = [int(line_match[2]), int(line_match[3], 16)]
    return Report(file_count, keys, phases)


def _describe(totals: Totals | None) -> str:
    """What came, or was sent, under one key, in words."""
    return f"{totals[0]} records (checksum {totals[1]:016x})" if totals else "no record"
