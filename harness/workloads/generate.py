"""
Commands of the generators that are MapReduce jobs of ours (`mapreduce.harness.jobs.generate`).

An input is a row of records that follow from the seed and their numbers; the job spreads them
evenly over its files.  All bytes together are the same whatever the number of files.

Texts (`mapreduce.harness.jobs.text`) are of two kinds:

    zipf    20 000 distinct pronounceable words, that of rank r as frequent as 1/r; lines of 10 to
            12 words (`ZipfText`)
    random  the law of Hadoop's RandomTextWriter, which HiBench takes: 1 000 words drawn evenly, a
            key of 5 to 9 of them, a tab, a value of 10 to 99 (`RandomText`)

Both come in pages of 32 KiB, each ended by a newline: the size asked for is met to the byte, and
all bytes together depend on the seed and the size alone, not on their spread over files.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import (
    PACKAGE,
    InputFile,
    InputPlan,
    JobCommand,
    Value,
    block_count,
    check_block,
    check_size,
    even_sizes,
    job_of_ours,
    part_files,
)

MOST_SEED = 2**63 - 1
PAGE = 32 * 1024
TEXT_VERSION = 2  # part of the content's key: raise it when the bytes change
TEXTS = {"zipf": "ZipfText", "random": "RandomText"}


def generated(
    content: str, *, records: int, files: int, seed: int, uri: str, properties: Mapping[str, Value]
) -> JobCommand:
    """
    Return the job that writes *records* of the class *content* into *files* under *uri*.

    *properties* are the content's own.  `SpecError` for a seed that Java cannot hold.
    """
    if seed > MOST_SEED:
        raise SpecError(
            f"the seed {seed} is larger than {MOST_SEED}", where="seed", fix="choose a smaller one"
        )
    job_arguments = (f"{PACKAGE}.{content}", str(records), str(files), str(seed), uri)
    return job_of_ours("generate.Generate", *job_arguments, properties=properties)


def generated_files(records: int, files: int, record_bytes: int) -> tuple[InputFile, ...]:
    """Files that `generated` makes of records of one size, in their order."""
    return part_files(count * record_bytes for count in even_sizes(records, files))


def whole_records(
    spec: WorkloadSpec, block_bytes: int, record_bytes: int, least_files: int = 1
) -> tuple[int, int]:
    """
    Return how many records of one size come nearest to the input asked for, and in how many files.

    There are as many files as blocks, or *least_files*, and no file is larger than a block.
    `SpecError` where records and size cannot agree within 1 %, or a file would be empty.
    """
    check_block(spec, block_bytes, record_bytes)
    file_count = max(block_count(spec, block_bytes), least_files)
    nearest = (spec.input_bytes + record_bytes // 2) // record_bytes
    records = min(file_count * (block_bytes // record_bytes), max(nearest, file_count))
    size_units = f"{file_count} files of whole records of {record_bytes} bytes"
    check_size(spec, records * record_bytes, size_units, max(50, file_count) * record_bytes)
    return records, file_count


def plan_text(spec: WorkloadSpec, block_bytes: int, text_kind: str) -> InputPlan:
    """
    Fewest files of whole pages that fit a block each; they differ by a page at most.

    The key has the workload's name, because what is kept of an input is the workload's own.
    """
    text_bytes = spec.input_bytes
    if text_kind == "random" and text_bytes % PAGE == 1:
        text_bytes -= 1  # the shortest record is a tab and a newline
    if text_bytes < 1:
        raise SpecError(
            f"a text of {spec.input_bytes} bytes holds no record",
            where=f"{spec.name}, input",
            fix="ask for 2 bytes or more",
        )
    check_block(spec, block_bytes, PAGE)
    resized = spec.model_copy(update={"input_bytes": text_bytes})
    file_count = block_count(resized, block_bytes // PAGE * PAGE)
    page_count = -(-text_bytes // PAGE)
    *first_files, last_file = generated_files(page_count, file_count, PAGE)
    last_file = InputFile(last_file.name, last_file.bytes - page_count * PAGE + text_bytes)
    content = {
        "text": TEXT_VERSION,
        "kind": text_kind,
        "seed": spec.seed,
        "bytes": text_bytes,
        "files": file_count,
    }
    return InputPlan(f"{spec.name}-{digest(content)}", (*first_files, last_file))


def generate_text(spec: WorkloadSpec, block_bytes: int, text_kind: str, uri: str) -> JobCommand:
    """Return the job that writes the text of `plan_text` under *uri*."""
    input_plan = plan_text(spec, block_bytes, text_kind)
    return generated(
        f"text.{TEXTS[text_kind]}",
        records=-(-input_plan.bytes // PAGE),
        files=len(input_plan.files),
        seed=spec.seed,
        uri=uri,
        properties={"pages.bytes": input_plan.bytes},
    )
