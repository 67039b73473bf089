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
    shown,
)
from harness.workloads.generate import TEXTS, generate_text, plan_text
from harness.workloads.rows import read_lines, regroup

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

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Write the text by a job of ours."""
        return generate_text(spec, block_bytes, self.arguments(spec)["text"], uri)

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """
        Return `counts` of every word; `words`, `records` (lines) and `bytes` in all.

        Lines are those of TextInputFormat, words those of java.util.StringTokenizer, as Hadoop's
        Text decodes them; a word or a line ends with its file.  Memory is bounded by the number of
        distinct words and the size of a chunk.
        """
        raw_counts: Counter[bytes] = Counter()
        records = size = 0
        for _, chunks in files:
            word, last_byte = b"", b"\n"
            for block in regroup(chunks, _BLOCK):
                # Lines end by LF, CR or CRLF, which may be cut between two blocks.
                records += block.count(b"\n")
                if b"\r" in block or last_byte == b"\r":
                    records += block.count(b"\r") - (last_byte + block).count(b"\r\n")
                size += len(block)
                last_byte = block[-1:]
                body, space, word = (word + block.translate(_SPACES)).rpartition(b" ")
                count_words(body + space, raw_counts)
            count_words(word + b" ", raw_counts)
            records += last_byte not in (b"\n", b"\r")
        counts: Counter[str] = Counter()
        for raw_word, count in raw_counts.items():
            if raw_word:  # neighbouring separators leave empty words
                counts[raw_word.decode("utf-8", "replace")] += count
        return {"counts": dict(counts), "words": counts.total(), "records": records, "bytes": size}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        return (JobCommand(EXAMPLES, (input_uri, output_uri), program="wordcount"),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every word of the input once, with its count, and no other word."""
        expected: Mapping[str, int] = sample["counts"]
        counts: dict[str, int] = {}
        for name, chunks in outputs:
            for number, line in enumerate(read_lines(chunks), start=1):
                text = line.removesuffix(b"\n")
                word, tab, digits = text.decode("utf-8", "replace").rpartition("\t")
                is_count = digits.isascii() and digits.isdigit() and len(digits) < 20
                if not (tab and word and is_count):
                    reason = f"{shown(text)} is not a word, a tab and its count"
                    return Verdict(f"{name}:{number}: {reason}")
                if word in counts:
                    return Verdict(f"{name}:{number}: {shown(word)} is counted a second time")
                counts[word] = int(digits)
        facts = {"distinct words": len(counts), "words": sum(counts.values())}
        words = {*counts, *expected}
        wrong_words = [word for word in words if counts.get(word, 0) != expected.get(word, 0)]
        if not wrong_words:
            return Verdict(facts=facts)
        first = min(wrong_words)
        return Verdict(
            f"{shown(first)} is counted {counts.get(first, 0)} times and occurs"
            f" {expected.get(first, 0)} times; {len(wrong_words)} of {len(words)} words differ",
            facts,
        )


def count_words(text: bytes, counts: Counter[bytes]) -> None:
    """
    Add the words of *text*, each of which ends with a space.

    Words of up to eight bytes are counted as machine words; the others, which text hardly has, one
    by one.
    """
    if b"\0" in text:  # cannot be distinguished from the end of a padded word
        counts.update(text.split(b" "))
        return
    data = np.frombuffer(text + bytes(_WIDTH), np.uint8)
    ends = np.flatnonzero(data == ord(" "))
    starts = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    lengths = ends - starts
    is_short = lengths <= _WIDTH
    word_at = np.ndarray((len(text),), "<u8", data, strides=(1,))  # one at each byte
    short_words = word_at[starts[is_short]] & _MASKS[lengths[is_short]]
    distinct, times = np.unique(short_words, return_counts=True)
    counts.update(dict(zip(distinct.view("S8").tolist(), times.tolist(), strict=True)))
    spans = zip(starts[~is_short].tolist(), ends[~is_short].tolist(), strict=True)
    counts.update(text[start:end] for start, end in spans)
