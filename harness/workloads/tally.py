"""
Counts words in bytes, as Hadoop's WordCount sees them.

Lines are those of TextInputFormat, words those of java.util.StringTokenizer.  Words of up to
eight bytes are counted as machine words; the others, which text hardly has, one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from harness.workloads.shape import regroup

# What java.util.StringTokenizer splits at; bytes.split() would add the vertical tab.
_SPACES = bytes.maketrans(b"\t\n\r\f", b"    ")
_BLOCK = 8 * 2**20
_WIDTH = 8
# By the length of a word: which bits of the eight bytes at its start are its own.
_MASKS = np.array([2 ** (8 * length) - 1 for length in range(_WIDTH + 1)], dtype="<u8")


class Tally:
    """Words, lines and bytes of files that come in chunks cut anywhere."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._records = self._bytes = 0

    def add(self, chunks: Iterable[bytes]) -> None:
        """Count one file; a word or a line ends with it."""
        tail, last = b"", b"\n"
        for block in regroup(chunks, _BLOCK):
            self._records += _line_ends(block, last)
            self._bytes += len(block)
            last = block[-1:]
            body, space, tail = (tail + block.translate(_SPACES)).rpartition(b" ")
            _count(body + space, self._counts)
        _count(tail + b" ", self._counts)
        self._records += last not in (b"\n", b"\r")

    def totals(self) -> dict[str, Any]:
        """Return `counts` by word, as Hadoop's Text decodes it; `words`, `records` and `bytes`."""
        counts: Counter[str] = Counter()
        for word, count in self._counts.items():
            if word:  # neighbouring separators leave empty words
                counts[word.decode("utf-8", "replace")] += count
        return {
            "counts": dict(counts),
            "words": counts.total(),
            "records": self._records,
            "bytes": self._bytes,
        }


def _count(text: bytes, counts: Counter[bytes]) -> None:
    """Add the words of *text*, each of which ends with a space."""
    if b"\0" in text:  # cannot be told from the end of a padded word
        counts.update(text.split(b" "))
        return
    data = np.frombuffer(text + bytes(_WIDTH), np.uint8)
    ends = np.flatnonzero(data == ord(" "))
    starts = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    lengths = ends - starts
    short = lengths <= _WIDTH
    at_byte = np.ndarray((len(text),), "<u8", data, strides=(1,))
    keys = at_byte[starts[short]] & _MASKS[lengths[short]]
    found, times = np.unique(keys, return_counts=True)
    counts.update(dict(zip(found.view("S8").tolist(), times.tolist(), strict=True)))
    long = ~short
    spans = zip(starts[long].tolist(), ends[long].tolist(), strict=True)
    counts.update(text[start:end] for start, end in spans)


def _line_ends(block: bytes, last: bytes) -> int:
    """Lines that end in *block*, by LF, CR or CRLF; *last* is the byte before the block."""
    ends = block.count(b"\n")
    if b"\r" in block or last == b"\r":
        ends += block.count(b"\r") - (last + block).count(b"\r\n")
    return ends
