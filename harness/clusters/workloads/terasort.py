"""
TeraSort of Hadoop's examples jar on rows of its TeraGen, as HiBench runs them.

The proof of the output: rows ascend by their keys, inside the files and from one to the next,
and they are the rows of the input, by their number and a checksum that no order changes.
"""

from __future__ import annotations

import itertools
import math

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.base.errors import JobError
from harness.base.hadoop.properties import whole
from harness.base.records.trial import WorkloadSpec, digest
from harness.clusters.workloads.base import (
    EXAMPLES,
    SMALL_INPUT_BYTES,
    File,
    InputPlan,
    JobCommand,
    Sample,
    Workload,
    job_of_ours,
)
from harness.clusters.workloads.files import checksum, difference, read_rows, whole_records

ROW_BYTES = 100
KEY_BYTES = 10

_ROWS = "org.apache.hadoop.examples.terasort.TeraRows"
_COPIES = "mapreduce.terasort.output.replication"
_BLOCK = 10_000 * ROW_BYTES  # looked at together: rows and their bits stay in the cache


class TeraSort(Workload):
    """
    Sorts rows of 100 bytes, those of TeraGen.

    They depend on their number alone: `seed` changes nothing, and inputs of one size
    share their content key.  The output has one replica, Hadoop's default for TeraSort
    (`mapreduce.terasort.output.replication`), unless the configuration says otherwise.
    """

    name = "terasort"
    description = "TeraSort of Hadoop's examples, TeraGen's rows; verified by order and checksum"
    unlike_hibench = ""
    # HiBench's profiles of this workload, in bytes.
    sizes = (3.2e6, 320e6, 3.2e9, 32e9, 320e9, 600e9)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """
        As many files as the size asked has blocks; as many rows as fit them.

        Rows of a small input are written by our generator's client, those of others by TeraGen.
        """
        self.arguments(spec)
        row_count, file_count = whole_records(spec, block_bytes, ROW_BYTES)
        if row_count * ROW_BYTES <= SMALL_INPUT_BYTES:
            return plan_small(row_count, file_count)
        return plan_teragen(row_count, file_count)

    def output_copies(self, properties: Mapping[str, str]) -> int:
        """One, whatever other files have, unless it is told otherwise."""
        return whole(_COPIES, properties.get(_COPIES, "1"))

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records` (rows), and `checksum` of the rows in any order (hex)."""
        return totals_of(input_files, ordered=False)

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job; its client samples the input for the partitions before it submits."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="terasort"),)

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Ascending keys over all files, in order of their names, and the rows of the input."""
        return difference(totals_of(outputs, ordered=True), sample)


def plan_small(row_count: int, file_count: int) -> InputPlan:
    """Rows spread over the files, some of the first of which have one more."""
    fewest, more = divmod(row_count, file_count)
    sizes = [(fewest + (number < more)) * ROW_BYTES for number in range(file_count)]
    content_key = digest({"terarows": 1, "rows": row_count, "files": file_count})
    arguments = (_ROWS, str(row_count), str(file_count), "0")
    generator = job_of_ours("generate.Generate", *arguments, properties={})
    return InputPlan(f"terarows-{content_key}", sizes, generator)


def plan_teragen(row_count: int, map_count: int) -> InputPlan:
    """Rows of each map as TeraGen's RangeInputFormat computes them, in the same double floats."""
    map_ends = [
        math.ceil(row_count * float(map_number) / map_count) for map_number in range(map_count + 1)
    ]
    sizes = [(end - start) * ROW_BYTES for start, end in itertools.pairwise(map_ends)]
    generator = JobCommand(
        EXAMPLES,
        (str(row_count),),
        program="teragen",
        properties={"mapreduce.job.maps": str(map_count)},
    )
    content_key = digest({"teragen": 2, "rows": row_count, "maps": map_count})
    return InputPlan(f"teragen-{content_key}", sizes, generator)


def totals_of(files: Iterable[File], *, ordered: bool) -> dict[str, int | str]:
    """
    Return what input and output have in common.

    `JobError` for a file that is cut short, or at the first descent of keys over all files.
    """
    records = 0
    checksum_sum = 0
    last_key = b""
    for file in files:
        first_row = records
        for block in read_rows("terasort", [file], ROW_BYTES, _BLOCK):
            if ordered:
                # Text of NumPy, where bytes of zero at the end do not count: its order is the same.
                block_keys = block[:, :KEY_BYTES].copy().view(f"S{KEY_BYTES}").ravel()
                keys = np.concatenate((np.array([last_key], block_keys.dtype), block_keys))
                descents = np.flatnonzero(keys[1:] < keys[:-1])
                if descents.size:
                    place = int(descents[0])
                    previous_key, row_key = (
                        bytes(key).ljust(KEY_BYTES, b"\0").hex() for key in keys[place : place + 2]
                    )
                    raise JobError(
                        f"{file[0]}: key {row_key} of row {records - first_row + place}"
                        f" is smaller than key {previous_key} before it"
                    )
                last_key = bytes(keys[-1])
            checksum_sum += checksum(block)
            records += len(block)
    return {"records": records, "checksum": f"{checksum_sum % 2**64:016x}"}
