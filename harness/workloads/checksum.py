"""
Sums over records that no order changes, and the bytes of `generate.Noise`; as Java computes both.

A record's 64 bits are the finaliser of SplitMix64 over its words of 8 bytes, one after the other,
each added to what the words before left, beginning with the record's length.
"""

from __future__ import annotations

import numpy as np

from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD = 8


def checksum(records: NDArray[np.uint8]) -> int:
    """Sum of the bits of all rows of an array (records, bytes), modulo 2^64."""
    return int(record_bits(records).sum(dtype=np.uint64))


def record_bits(records: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """64 bits for each row of an array (records, bytes)."""
    count, size = records.shape
    padded = np.zeros((count, -(-size // _WORD) * _WORD), np.uint8)
    padded[:, :size] = records
    bits = np.full(count, size, np.uint64)
    for word in padded.view("<u8").T:
        bits = _mix(bits + word)
    return bits


def noise(seed: int, first: int, count: int, size: int) -> NDArray[np.uint8]:
    """Records *first* to *first* + *count* - 1 of *size* bytes, a multiple of 8, as an array."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    start = _mix(np.array([seed], np.uint64) + _GOLDEN) + numbers * _GOLDEN
    steps = np.arange(1, size // _WORD + 1, dtype=np.uint64) * _GOLDEN
    return _mix(_mix(start)[:, None] + steps[None, :]).astype("<u8").view(np.uint8)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
