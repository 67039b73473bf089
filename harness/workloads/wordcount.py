"""
WordCount of Hadoop's examples jar, as HiBench runs it, over generated text.

The job stays Hadoop's own, because its times are compared with those that others publish.  The
proof of its output is an independent count: of the bytes in the file system, not of what the
generator meant to write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from harness.records.trial import WorkloadSpec
from harness.workloads.base import (
    EXAMPLES,
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Verdict,
    Workload,
    scales,
    shown,
)
from harness.workloads.generate import TEXTS, generate_text, plan_text
from harness.workloads.rows import read_lines, regroup

# HiBench's profiles of this workload, in bytes.
SCALES = scales(
    32_000, 320_000_000, 3_200_000_000, 32_000_000_000, 320_000_000_000, 1_600_000_000_000
)
PARAMETERS = {
    "text": Parameter(
        "zipf",
        "words by Zipf's law, or evenly as RandomTextWriter's (HiBench)",
        choices=tuple(TEXTS),
    ),
}

# What java.util.StringTokenizer splits at; bytes.split() would add the vertical tab.
_SPACES = bytes.maketrans(b"\t\n\r\f", b"    ")
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
    description = (
        "WordCount of Hadoop's examples over generated text; verified by an independent count"
    )
    uses_combiner = True
    parameters = PARAMETERS
    scales = SCALES

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each."""
        return plan_text(spec, block_bytes, self.arguments(spec)["text"])

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Write the text by a job of ours."""
        return generate_text(spec, block_bytes, self.arguments(spec)["text"], input_uri)

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `counts` of every word; `words`, `records` (lines) and `bytes` in all.

        Lines are those of TextInputFormat, words those of java.util.StringTokenizer, as Hadoop's
        Text decodes them; a word or a line ends with its file.  Memory is bounded by the number of
        distinct words and the size of a chunk.
        """
        raw_counts: Counter[bytes] = Counter()
        records = total_bytes = 0
        for _, file_chunks in input_files:
            partial_word, last_byte = b"", b"\n"
            for text_block in regroup(file_chunks, _BLOCK):
                # Lines end by LF, CR or CRLF, which may be cut between two blocks.
                records += text_block.count(b"\n")
                if b"\r" in text_block or last_byte == b"\r":
                    records += text_block.count(b"\r") - (last_byte + text_block).count(b"\r\n")
                total_bytes += len(text_block)
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
        return {
            "counts": dict(counts),
            "words": counts.total(),
            "records": records,
            "bytes": total_bytes,
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="wordcount"),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every word of the input once, with its count, and no other word."""
        expected: Mapping[str, int] = sample["counts"]
        counts: dict[str, int] = {}
        for file_name, file_chunks in outputs:
            for line_number, output_line in enumerate(read_lines(file_chunks), start=1):
                line_text = output_line.removesuffix(b"\n")
                counted_word, tab_mark, digits = line_text.decode("utf-8", "replace").rpartition(
                    "\t"
                )
                is_count = digits.isascii() and digits.isdigit() and len(digits) < 20
                if not (tab_mark and counted_word and is_count):
                    reason = f"{shown(line_text)} is not a word, a tab and its count"
                    return Verdict(f"{file_name}:{line_number}: {reason}")
                if counted_word in counts:
                    return Verdict(
                        f"{file_name}:{line_number}: {shown(counted_word)} is counted a second time"
                    )
                counts[counted_word] = int(digits)
        facts = {"distinct words": len(counts), "words": sum(counts.values())}
        all_words = {*counts, *expected}
        wrong_words = [
            counted_word
            for counted_word in all_words
            if counts.get(counted_word, 0) != expected.get(counted_word, 0)
        ]
        if not wrong_words:
            return Verdict(facts=facts)
        first_wrong = min(wrong_words)
        return Verdict(
            f"{shown(first_wrong)} is counted {counts.get(first_wrong, 0)} times and occurs"
            f" {expected.get(first_wrong, 0)} times; {len(wrong_words)} of {len(all_words)} words"
            " differ",
            facts,
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
