"""
Generated text: seeded lines of words whose frequencies follow Zipf's law.

    words       20 000 distinct, lower-case, pronounceable; the same for every seed
    frequency   of the word of rank r proportional to 1/r, in steps of 2**-20
    lines       10 to 12 words, one space between them, ended by a newline

The bytes depend on (seed, number of the file, size) alone.  Only the raw stream of PCG64 and
whole numbers are used, which NumPy promises to keep; its distributions may change with a version.
The words do not depend on the seed, because their lengths decide the records per byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from numpy.typing import NDArray

VOCABULARY = 20_000
VERSION = 1  # part of the content's key: raise it when the bytes change

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aeiou"
_FORMS = ("cvc", "cvcv", "cvcvc", "cvcvcv")
_WIDTH = 8  # a word and its separator, padded with NUL to one machine word
_TABLE_BITS = 20
_LINES = 16_384  # lines made at once: about 1 MB


def text(seed: int, number: int, size: int) -> Iterator[bytes]:
    """
    Exactly *size* bytes of text, file *number* of the input that *seed* names, in chunks.

    The last line is cut to fit and still ends with a newline, so its last word may be foreign.
    """
    stream = np.random.PCG64(np.random.SeedSequence((seed, number)))
    left = size
    while left > 0:
        chunk = _lines(stream, _LINES)
        if len(chunk) >= left:
            chunk = _cut(chunk, left)
        left -= len(chunk)
        yield chunk


@cache
def words() -> tuple[str, ...]:
    """Words from the most to the least frequent."""
    stream = np.random.PCG64(np.random.SeedSequence(20_000))
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        found.update(dict.fromkeys(map(_word, stream.random_raw(VOCABULARY).tolist())))
    return tuple(found)[:VOCABULARY]


def _word(number: int) -> str:
    """One word: a form by the two lowest bits, then one letter by each eight bits."""
    letters = ""
    for position, kind in enumerate(_FORMS[number % 4]):
        choice = number >> (8 * (position + 1)) & 0xFF
        alphabet = _CONSONANTS if kind == "c" else _VOWELS
        letters += alphabet[choice % len(alphabet)]
    return letters


def _lines(stream: np.random.PCG64, count: int) -> bytes:
    """Return the next *count* lines."""
    ends = np.cumsum(10 + stream.random_raw(count) % 3)
    total = int(ends[-1])
    ranks = _ranks(stream, total)
    # The second half of the table holds the same words with a newline behind them.
    ranks[ends.astype(np.intp) - 1] += VOCABULARY
    return _padded().take(ranks).tobytes().translate(None, b"\0")


def _ranks(stream: np.random.PCG64, count: int) -> NDArray[np.uint16]:
    """Zipf distributed ranks, two from each raw number of 64 bits."""
    raw = stream.random_raw(-(-count // 2)).astype("<u8", copy=False).view("<u4")
    return _zipf()[(raw >> np.uint32(32 - _TABLE_BITS)).astype(np.intp)[:count]]


@cache
def _zipf() -> NDArray[np.uint16]:
    """Rank by a random number of 20 bits: rank r fills a share of the table close to 1/r."""
    weights = np.int64(2**32) // np.arange(1, VOCABULARY + 1, dtype=np.int64)
    ends = np.cumsum(weights) * 2**_TABLE_BITS // weights.sum()
    return np.repeat(np.arange(VOCABULARY, dtype=np.uint16), np.diff(ends, prepend=0))


@cache
def _padded() -> NDArray[np.uint64]:
    """Every word with a space, then every word with a newline, one machine word each."""
    cells = (f"{word}{end}".encode().ljust(_WIDTH, b"\0") for end in " \n" for word in words())
    return np.frombuffer(b"".join(cells), dtype=np.uint64)


def _cut(chunk: bytes, size: int) -> bytes:
    """First *size* bytes, the last one a newline, and no empty word or line before it."""
    body = chunk[: size - 1]
    if body.endswith((b" ", b"\n")):
        body = body[:-1] + b"a"
    return body + b"\n"
