"""
Records in the bytes of files: lines, and rows of one size; sums and draws, as Java computes them.

A row's 64 bits are the finaliser of SplitMix64 over its words of 8 bytes, one after the other,
each added to what the words before left, beginning with the row's length.  Sums of them are
the same in any order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from numpy.typing import NDArray

from harness.workloads.base import File, bad_input_error

Bytes = NDArray[np.uint8]
Bits = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD = 8


def regroup(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """
    Cut the same bytes anew, every piece *size* long but the last.

    >>> list(regroup([b"ab", b"cdefg"], 3))
    [b'abc', b'def', b'g']
    """
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        whole = len(pending) // size * size
        for start in range(0, whole, size):
            yield bytes(pending[start : start + size])
        del pending[:whole]
    if pending:
        yield bytes(pending)


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends; what follows the last newline is a line, too."""
    tail = b""
    for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if tail:
        yield tail


def read_rows(
    workload: str, files: Iterable[File], row_bytes: int, together: int = 2**20
) -> Iterator[Bytes]:
    """
    Records of all *files* in order, as arrays (records, *row_bytes*) of about *together* bytes.

    Raises `JobError` naming a file that does not consist of whole records.
    """
    for name, chunks in files:
        size = 0
        for piece in regroup(chunks, max(1, together // row_bytes) * row_bytes):
            size += len(piece)
            if len(piece) % row_bytes:
                raise bad_input_error(
                    workload,
                    f"{name} has {size} bytes, not a whole number of records of {row_bytes} bytes",
                )
            yield np.frombuffer(piece, np.uint8).reshape(-1, row_bytes)


def checksum(rows: Bytes) -> int:
    """Sum of the bits of all rows, modulo 2^64."""
    return int(row_bits(rows).sum(dtype=np.uint64))


def row_bits(rows: Bytes) -> Bits:
    """64 bits for each row."""
    count, size = rows.shape
    padded = np.zeros((count, -(-size // _WORD) * _WORD), np.uint8)
    padded[:, :size] = rows
    bits = np.full(count, size, np.uint64)
    for word in padded.view("<u8").T:
        bits = _splitmix(bits + word)
    return bits


def noise(seed: int, first: int, count: int, size: int) -> Bytes:
    """
    Rows *first* to *first* + *count* - 1 of *size* bytes, a multiple of 8, that *seed* gives.

    They are those of `generate.Noise`; the words of a row are the draws of `generate.Draws`.
    """
    numbers = np.arange(first, first + count, dtype=np.uint64)
    start = _splitmix(np.array([seed], np.uint64) + _GOLDEN) + numbers * _GOLDEN
    steps = np.arange(1, size // _WORD + 1, dtype=np.uint64) * _GOLDEN
    return _splitmix(_splitmix(start)[:, None] + steps[None, :]).astype("<u8").view(np.uint8)


def _splitmix(bits: Bits) -> Bits:
    """Finaliser of SplitMix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def murmur(bits: Bits) -> Bits:
    """Finaliser of MurmurHash3: mixed, so that sums over rows are not linear in their bytes."""
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))
