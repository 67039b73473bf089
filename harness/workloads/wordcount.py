"""
WordCount of Hadoop's examples jar, as HiBench runs it, over generated text.

The job stays Hadoop's own, because its times are compared with those that others publish.  The
proof of its output is an independent count: of the bytes that lie in the file system, not of what
the generator meant to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.records.trial import WorkloadSpec
from harness.workloads.base import File, InputPlan, JobCommand, Parameter, SingleJob, Verdict
from harness.workloads.shape import EXAMPLES, arguments, shown
from harness.workloads.tally import Tally
from harness.workloads.text import KINDS, generate_text, plan_text

# HiBench's profiles of this workload, in bytes.
SCALES = {
    "tiny": 32_000,
    "small": 320_000_000,
    "large": 3_200_000_000,
    "huge": 32_000_000_000,
    "gigantic": 320_000_000_000,
    "bigdata": 1_600_000_000_000,
}


PARAMETERS = {
    "text": Parameter(
        "zipf", "words by Zipf's law, or evenly as RandomTextWriter's (HiBench)", choices=KINDS
    ),
}


class WordCount(SingleJob):
    """
    Counts the words of generated text; its job has a combiner.

    *input_bytes* is met exactly, in files that fit a block each.
    """

    name = "wordcount"
    uses_combiner = True
    description = (
        "WordCount of Hadoop's examples over generated text; proved by an independent count"
    )
    parameters: Mapping[str, Parameter] = PARAMETERS
    scales: Mapping[str, int] = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each."""
        return plan_text(spec, block_bytes, self._kind(spec))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the text by a job of ours."""
        return generate_text(spec, block_bytes, self._kind(spec), uri)

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:  # noqa: ARG002 - the bytes say it all
        """
        Return `counts` of every word; `words`, `records` (lines) and `bytes` in all.

        Memory is bounded by the number of distinct words and the size of a chunk.
        """
        tally = Tally()
        for _, chunks in files:
            tally.add(chunks)
        return tally.totals()

    def submit(
        self,
        spec: WorkloadSpec,  # noqa: ARG002 - no argument depends on it
        input_uri: str,
        output_uri: str,
    ) -> tuple[JobCommand, ...]:
        """One job."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="wordcount"),)

    def verdict(
        self,
        spec: WorkloadSpec,  # noqa: ARG002 - the sample says it all
        outputs: Iterable[File],
        sample: Mapping[str, Any],
    ) -> Verdict:
        """Every word of the input once, with its count, and no other word."""
        expected: Mapping[str, int] = sample["counts"]
        counted: dict[str, int] = {}
        for name, chunks in outputs:
            wrong = _read_counts(name, chunks, counted)
            if wrong:
                return Verdict(right=False, reason=wrong)
        reason = _difference(counted, expected)
        facts = {"distinct words": len(counted), "words": sum(counted.values())}
        return Verdict(right=not reason, reason=reason, facts=facts)

    def _kind(self, spec: WorkloadSpec) -> str:
        return str(arguments(spec, self.parameters)["text"])


def _read_counts(name: str, chunks: Iterable[bytes], counted: dict[str, int]) -> str:
    """Add the lines of one output file to *counted*; what is wrong with them, or nothing."""
    for number, line in enumerate(_lines(chunks), start=1):
        word, tab, digits = line.decode("utf-8", "replace").rpartition("\t")
        if not (tab and word and digits.isascii() and digits.isdigit() and len(digits) < 20):
            return f"{name}:{number}: {shown(line)} is not a word, a tab and its count"
        if word in counted:
            return f"{name}:{number}: {shown(word)} is counted a second time"
        counted[word] = int(digits)
    return ""


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends; what follows the last newline is a line, too."""
    tail = b""
    for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        yield from lines
    if tail:
        yield tail


def _difference(counted: Mapping[str, int], expected: Mapping[str, int]) -> str:
    """First word, in the order of the alphabet, whose counts differ, and how many do."""
    differ = [w for w in {*counted, *expected} if counted.get(w, 0) != expected.get(w, 0)]
    if not differ:
        return ""
    word = min(differ)
    return (
        f"{shown(word)} is counted {counted.get(word, 0)} times and occurs"
        f" {expected.get(word, 0)} times; {len(differ)} of {len({*counted, *expected})}"
        " words differ"
    )
