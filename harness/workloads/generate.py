"""
Commands of the generators that are MapReduce jobs of ours (`mapreduce.harness.jobs.generate`).

An input is a row of records that follow from the seed and their numbers; the job spreads them
evenly over its files.  All bytes together are the same whatever the number of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec
from harness.workloads.base import JOBS, InputFile, JobCommand
from harness.workloads.shape import blocks, even_sizes

GENERATE = "mapreduce.harness.jobs.generate.Generate"
MOST_SEED = 2**63 - 1


def generated(
    content: str,
    *,
    records: int,
    files: int,
    seed: int,
    uri: str,
    properties: Mapping[str, str] | None = None,
    jar: str = JOBS,
) -> JobCommand:
    """
    Return the job that writes *records* of the class *content* into *files* under *uri*.

    *properties* are the content's own.  `SpecError` for a seed that Java cannot hold.
    """
    if seed > MOST_SEED:
        raise SpecError(
            f"the seed {seed} is larger than {MOST_SEED}", where="seed", fix="choose a smaller one"
        )
    return JobCommand(
        GENERATE,
        (content, str(records), str(files), str(seed), uri),
        properties=properties or {},
        jar=jar,
    )


def generated_files(records: int, files: int, record_bytes: int) -> Iterator[InputFile]:
    """Files that `generated` makes of records of one size, in their order."""
    for number, count in enumerate(even_sizes(records, files)):
        yield InputFile(f"part-m-{number:05d}", count * record_bytes)


def whole_records(
    spec: WorkloadSpec, block_bytes: int, record_bytes: int, least_files: int = 1
) -> tuple[int, int]:
    """
    Return how many records of one size come nearest to the input asked for, and in how many files.

    There are as many files as blocks, or *least_files*, and no file is larger than a block.
    `SpecError` where records and size cannot agree within 1 %, or a file would be empty.
    """
    if block_bytes < record_bytes:
        raise SpecError(
            f"a block of {block_bytes} bytes does not hold a record of {record_bytes} bytes",
            where=f"{spec.name}, dfs.blocksize",
            fix="use larger blocks, or smaller records",
        )
    files = max(blocks(spec, block_bytes), least_files)
    asked = (spec.input_bytes + record_bytes // 2) // record_bytes
    records = min(files * (block_bytes // record_bytes), max(asked, files))
    if abs(records * record_bytes - spec.input_bytes) * 100 > spec.input_bytes:
        raise SpecError(
            f"{files} files of whole records of {record_bytes} bytes are not {spec.input_bytes}"
            " bytes, within 1 %",
            where=f"{spec.name}, input",
            fix=f"ask for {records * record_bytes} bytes, or for more",
        )
    return records, files
