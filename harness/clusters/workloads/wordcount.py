"""
WordCount of Hadoop's examples jar over generated text.

The job stays Hadoop's own, because its times are compared with those that others publish.  The
proof of its output is an independent count: of the bytes in the file system, not of what the
generator meant to write.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import (
    EXAMPLES,
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Sample,
    Workload,
    has_hibench_form,
    shown,
)
from harness.clusters.workloads.files import plan_text, read_matches, read_sequence, regroup

_COUNT = re.compile(rb"(.+)\t(\d{1,19})", re.DOTALL)
# What java.util.StringTokenizer splits at; bytes.split() would add the vertical tab.
_SPACES = bytes.maketrans(b"\t\n\r\f", b"    ")
# How HiBench has Hadoop's client read and write.
SEQUENCES = {
    f"mapreduce.job.{side}format.class": "org.apache.hadoop.mapreduce.lib"
    f".{side}.SequenceFile{side.title()}Format"
    for side in ("input", "output")
}
_BLOCK = 2**20


class WordCount(Workload):
    """
    Counts the words of generated text; its job has a combiner.

    *input_bytes* is met exactly, in files that fit a block each.
    """

    name = "wordcount"
    description = "WordCount of Hadoop's examples, generated text; verified by an independent count"
    uses_combiner = True
    unlike_hibench = ""
    as_hibench: ClassVar = {"text": "random"}
    parameters: ClassVar = {
        "text": Parameter(
            "zipf",
            "words by Zipf's law, or evenly as RandomTextWriter's (HiBench)",
            choices=("zipf", "random"),
        )
    }
    # HiBench's profiles of this workload, in bytes.
    sizes = (32e3, 320e6, 3.2e9, 32e9, 320e9, 1.6e12)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each."""
        text_kind = self.arguments(spec)["text"]
        return plan_text(spec, block_bytes, "sequence" if has_hibench_form(spec) else text_kind)

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `counts` of every word; `words` and `records` (lines) in all.

        Lines are those of TextInputFormat, words those of java.util.StringTokenizer, as Hadoop's
        Text decodes them; a word or a line ends with its file.  Memory is bounded by the number of
        distinct words and the size of a chunk.
        """
        raw_counts: Counter[bytes] = Counter()
        records = 0
        for input_file in input_files:
            file_chunks = input_file[1]
            if has_hibench_form(spec):  # keys are not counted
                pairs = read_sequence(input_file)[1]
                file_chunks = (pair_line.partition(b"\t")[2] for pair_line in pairs)
            partial_word = b""
            last_byte = b"\n"
            for text_block in regroup(file_chunks, _BLOCK):
                # Lines end by LF, CR or CRLF, which may be cut between two blocks.
                records += text_block.count(b"\n")
                if b"\r" in text_block or last_byte == b"\r":
                    records += text_block.count(b"\r") - (last_byte + text_block).count(b"\r\n")
                last_byte = text_block[-1:]
                whole_words, _, partial_word = (
                    partial_word + text_block.translate(_SPACES)
                ).rpartition(b" ")
                raw_counts.update(whole_words.split(b" "))
            raw_counts[partial_word] += 1
            records += last_byte not in (b"\n", b"\r")
        counts: Counter[str] = Counter()
        for raw_word, word_count in raw_counts.items():
            if raw_word:  # neighbouring separators leave empty words
                counts[raw_word.decode("utf-8", "replace")] += word_count
        return {"counts": dict(counts), "words": counts.total(), "records": records}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        formats = SEQUENCES if has_hibench_form(spec) else {}
        return (JobCommand(EXAMPLES, (input_uri, output_uri), "wordcount", formats),)

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Every word of the input once, with its count, and no other word."""
        expected = sample["counts"]
        counts = dict[str, int]()
        for output_file in outputs:
            lines = read_sequence(output_file) if has_hibench_form(spec) else output_file
            for place, match in read_matches(lines, _COUNT, "a word, a tab and its count"):
                counted_word = match[1].decode("utf-8", "replace")
                if counted_word in counts:
                    return f"{place}: {shown(counted_word)} is counted twice"
                counts[counted_word] = int(match[2])
        all_words = {*counts, *expected}
        wrong = [word for word in all_words if counts.get(word, 0) != expected.get(word, 0)]
        if not wrong:
            return ""
        first = min(wrong)
        return (
            f"{shown(first)} is counted {counts.get(first, 0)} times and occurs"
            f" {expected.get(first, 0)} times; {len(wrong)} of {len(all_words)} words differ"
        )
