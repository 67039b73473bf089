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


def regroup(chunks: Iterable[bytes], piece_bytes: int) -> Iterator[bytes]:
    """
    Cut the same bytes anew, every piece *piece_bytes* long but the last.

    >>> list(regroup([b"ab", b"cdefg"], 3))
    [b'abc', b'def', b'g']
    """
    pending = bytearray()
    for new_chunk in chunks:
        pending += new_chunk
        whole_bytes = len(pending) // piece_bytes * piece_bytes
        for piece_start in range(0, whole_bytes, piece_bytes):
            yield bytes(pending[piece_start : piece_start + piece_bytes])
        del pending[:whole_bytes]
    if pending:
        yield bytes(pending)


def read_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends; what follows the last newline is a line, too."""
    partial_line = b""
    for new_chunk in chunks:
        *lines, partial_line = (partial_line + new_chunk).split(b"\n")
        yield from (whole_line + b"\n" for whole_line in lines)
    if partial_line:
        yield partial_line


def read_rows(
    workload: str, files: Iterable[File], row_bytes: int, together: int = 2**20
) -> Iterator[Bytes]:
    """
    Records of all *files* in order, as arrays (records, *row_bytes*) of about *together* bytes.

    Raises `JobError` naming a file that does not consist of whole records.
    """
    for file_name, chunks in files:
        file_bytes = 0
        for row_piece in regroup(chunks, max(1, together // row_bytes) * row_bytes):
            file_bytes += len(row_piece)
            if len(row_piece) % row_bytes:
                raise bad_input_error(
                    workload,
                    f"{file_name} has {file_bytes} bytes, not a whole number of records of"
                    f" {row_bytes} bytes",
                )
            yield np.frombuffer(row_piece, np.uint8).reshape(-1, row_bytes)


def checksum(rows: Bytes) -> int:
    """Sum of the bits of all rows, modulo 2^64."""
    return int(row_bits(rows).sum(dtype=np.uint64))


def row_bits(rows: Bytes) -> Bits:
    """64 bits for each row."""
    row_count, row_bytes = rows.shape
    padded = np.zeros((row_count, -(-row_bytes // _WORD) * _WORD), np.uint8)
    padded[:, :row_bytes] = rows
    row_hashes = np.full(row_count, row_bytes, np.uint64)
    for word_column in padded.view("<u8").T:
        row_hashes = _splitmix(row_hashes + word_column)
    return row_hashes


def noise(seed: int, first: int, row_count: int, row_bytes: int) -> Bytes:
    """
    Rows *first* to *first* + *row_count* - 1 of *row_bytes*, a multiple of 8, that *seed* gives.

    They are those of `generate.Noise`; the words of a row are the draws of `generate.Draws`.
    """
    numbers = np.arange(first, first + row_count, dtype=np.uint64)
    row_starts = _splitmix(np.array([seed], np.uint64) + _GOLDEN) + numbers * _GOLDEN
    word_steps = np.arange(1, row_bytes // _WORD + 1, dtype=np.uint64) * _GOLDEN
    return (
        _splitmix(_splitmix(row_starts)[:, None] + word_steps[None, :]).astype("<u8").view(np.uint8)
    )


def _splitmix(word_bits: Bits) -> Bits:
    """Finaliser of SplitMix64."""
    word_bits = (word_bits ^ (word_bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word_bits = (word_bits ^ (word_bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word_bits ^ (word_bits >> np.uint64(31))


def murmur(word_bits: Bits) -> Bits:
    """Finaliser of MurmurHash3: mixed, so that sums over rows are not linear in their bytes."""
    word_bits = (word_bits ^ (word_bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word_bits = (word_bits ^ (word_bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word_bits ^ (word_bits >> np.uint64(33))
