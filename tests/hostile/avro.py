"""
Job histories in Hadoop's binary form, with damaged numbers in them.
"""

from __future__ import annotations

from random import Random

from tests.hostile.mutate import mutate

# Lengths and counts that no file holds: negative, huge, without an end, and some that may fit.
_NUMBERS = (
    b"\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80" * 10, b"\xff" * 12, b"\xfe" * 9,
    b"\xfe\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\xfc\xff\xff\xff\x1f", b"\x00", b"\x02",
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\xea\x30", b"\x02\x02\x02\x02",
)  # fmt: skip


def change(data: bytes, other: bytes, random: Random) -> bytes:
    """Change a binary history as any file, or one of the numbers in it."""
    if random.random() < 0.5:
        return mutate(data, other, random)
    at = random.randrange(data.index(b"\n", 20), len(data)) if b"\n" in data[20:] else 0
    return data[:at] + random.choice(_NUMBERS) + data[at + random.choice((0, 1, 1, 2)) :]
