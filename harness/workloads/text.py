"""
Generated texts: what `mapreduce.harness.jobs.text` makes, planned and asked for.

    zipf    20 000 distinct pronounceable words, that of rank r as frequent as 1/r; lines of 10 to
            12 words (`ZipfText`)
    random  the law of Hadoop's RandomTextWriter, which HiBench takes: 1 000 words drawn evenly, a
            key of 5 to 9 of them, a tab, a value of 10 to 99 (`RandomText`)

Both come in pages of 32 KiB, each ended by a newline: the size asked for is met to the byte, and
all bytes together depend on the seed and the size alone, not on the files they lie in.
"""

from __future__ import annotations

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import InputFile, InputPlan, JobCommand
from harness.workloads.generate import generated, generated_files
from harness.workloads.shape import blocks

PAGE = 32 * 1024
VERSION = 2  # part of the content's key: raise it when the bytes change
_CLASSES = {"zipf": "ZipfText", "random": "RandomText"}
KINDS = tuple(_CLASSES)


def plan_text(spec: WorkloadSpec, block_bytes: int, kind: str) -> InputPlan:
    """
    Fewest files of whole pages that fit a block each; they differ by a page at most.

    The key has the workload's name, because what is kept of an input is the workload's own.
    """
    total, per_file = _size(spec, kind), block_bytes // PAGE
    if per_file < 1:
        raise SpecError(
            f"a block of {block_bytes} bytes does not hold a page of {PAGE} bytes",
            where=f"{spec.name}, dfs.blocksize",
            fix="use blocks of 1 MiB or more",
        )
    files = blocks(spec.model_copy(update={"input_bytes": total}), per_file * PAGE)
    *others, last = generated_files(_pages(total), files, PAGE)
    last = InputFile(last.name, last.bytes - _pages(total) * PAGE + total)
    kept = {"text": VERSION, "kind": kind, "seed": spec.seed, "bytes": total, "files": files}
    return InputPlan(f"{spec.name}-{digest(kept)}", (*others, last))


def generate_text(spec: WorkloadSpec, block_bytes: int, kind: str, uri: str) -> JobCommand:
    """Return the job that writes the text of `plan_text` under *uri*."""
    plan = plan_text(spec, block_bytes, kind)
    return generated(
        f"mapreduce.harness.jobs.text.{_CLASSES[kind]}",
        records=_pages(plan.bytes),
        files=len(plan.files),
        seed=spec.seed,
        uri=uri,
        properties={"pages.bytes": str(plan.bytes)},
    )


def _size(spec: WorkloadSpec, kind: str) -> int:
    """Bytes of the text: those asked for, but for a page that no record fits."""
    total = spec.input_bytes
    if kind == "random" and total % PAGE == 1:
        total -= 1  # the shortest record is a tab and a newline
    if total < 1:
        raise SpecError(
            f"a text of {spec.input_bytes} bytes holds no record",
            where=f"{spec.name}, input",
            fix="ask for 2 bytes or more",
        )
    return total


def _pages(total: int) -> int:
    return -(-total // PAGE)
