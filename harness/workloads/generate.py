"""
Commands of the generators that are MapReduce jobs of ours (`mapreduce.harness.jobs.generate`).

An input is a row of records that follow from the seed and their numbers; the job spreads them
evenly over its files.  All bytes together are the same whatever the number of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.errors import SpecError
from harness.workloads.base import JOBS, InputFile, JobCommand
from harness.workloads.shape import even_sizes

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
