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

import numpy as np

from harness.records.trial import WorkloadSpec
from harness.workloads.base import (
    EXAMPLES,
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Sample,
    Workload,
    has_hibench_form,
    input_sizes,
    shown,
)
from harness.workloads.files import plan_text, read_matches, read_sequence, regroup

_COUNT = re.compile(rb"(.+)\t(\d{1,19})", re.DOTALL)
# What java.util.StringTokenizer splits at; bytes.split() would add the vertical tab.
_SPACES = bytes.maketrans(b"\t\n\r\f", b"    ")
# How HiBench has Hadoop's client read and write.
SEQUENCES = {
    f"mapreduce.job.{side}format.class": "org.apache.hadoop.mapreduce.lib"
    f".{side}.SequenceFile{side.title()}Format"
    for side in ("input", "output")
}
_BLOCK = 8 * 2**20
_WIDTH = 8
# By the length of a word: which bits of the eight bytes at its start are its own.
_MASKS = np.array([2 ** (8 * length) - 1 for length in range(_WIDTH + 1)], dtype="<u8")


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
    scales = input_sizes(32e3, 320e6, 3.2e9, 32e9, 320e9, 1.6e12)

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
            partial_word, last_byte = b"", b"\n"
            for text_block in regroup(file_chunks, _BLOCK):
                # Lines end by LF, CR or CRLF, which may be cut between two blocks.
                records += text_block.count(b"\n")
                if b"\r" in text_block or last_byte == b"\r":
                    records += text_block.count(b"\r") - (last_byte + text_block).count(b"\r\n")
                last_byte = text_block[-1:]
                whole_words, last_space, partial_word = (
                    partial_word + text_block.translate(_SPACES)
                ).rpartition(b" ")
                count_words(whole_words + last_space, raw_counts)
            count_words(partial_word + b" ", raw_counts)
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
        expected, counts = sample["counts"], dict[str, int]()
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


def count_words(word_bytes: bytes, counts: Counter[bytes]) -> None:
    """
    Add the words of *word_bytes*, each of which ends with a space.

    Words of up to eight bytes are counted as machine words; the others, which text hardly has, one
    by one.
    """
    if b"\0" in word_bytes:  # cannot be distinguished from the end of a padded word
        counts.update(word_bytes.split(b" "))
        return
    padded_bytes = np.frombuffer(word_bytes + bytes(_WIDTH), np.uint8)
    word_ends = np.flatnonzero(padded_bytes == ord(" "))
    word_starts = np.concatenate(([0], word_ends[:-1] + 1))[: len(word_ends)]
    lengths = word_ends - word_starts
    is_short = lengths <= _WIDTH
    word_at = np.ndarray((len(word_bytes),), "<u8", padded_bytes, strides=(1,))  # one at each byte
    short_words = word_at[word_starts[is_short]] & _MASKS[lengths[is_short]]
    distinct, word_times = np.unique(short_words, return_counts=True)
    counts.update(dict(zip(distinct.view("S8").tolist(), word_times.tolist(), strict=True)))
    long_spans = zip(word_starts[~is_short].tolist(), word_ends[~is_short].tolist(), strict=True)
    counts.update(word_bytes[word_start:word_end] for word_start, word_end in long_spans)
