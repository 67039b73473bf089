"""
Recordings of tasks as the tracer writes them, damaged where it hurts: numbers in their slots.
"""

from __future__ import annotations

import gzip
import struct

from pathlib import Path
from random import Random

from tests.hostile.mutate import mutate

DATA = Path(__file__).parent / "data"
HEAD = 4096
SLOT = 48
_LONGS = (0, 1, -1, 2, 9, 40, 100, 2**31 - 1, 2**31, 2**53, 2**55, 2**62, 2**63 - 1, -(2**63))
_INTS = (0, 1, -1, -2, -3, 2, 9, 40, 44, 45, 100, 101, 2**31 - 1, -(2**31))


def recording(name: str) -> bytes:
    """A recorded file, without the zeros that were reserved behind its last slot."""
    data = gzip.decompress((DATA / f"{name}.gz").read_bytes())
    kept = len(data.rstrip(b"\0"))
    return data[: kept + -kept % 8]


def moved(data: bytes, attempt: str, start_s: float) -> bytes:
    """The recording of another *attempt*, whose recorder was opened at *start_s*."""
    head = bytearray(data)
    (wall,) = struct.unpack_from("<q", data, 16)
    later = round(start_s * 1e6) - wall
    struct.pack_into("<q", head, 16, wall + later)
    for at in (32, 184):
        (reported,) = struct.unpack_from("<q", data, at)
        struct.pack_into("<q", head, at, reported + later // 1000 if reported else 0)
    name = attempt.encode()
    struct.pack_into("<i120s", head, 60, len(name), name)
    return bytes(head)


def change(data: bytes, other: bytes, random: Random) -> bytes:
    """Damage bytes, or put numbers at their limits into fields that are in use."""
    if random.random() < 0.4 or len(data) < HEAD:
        return mutate(data, other, random)
    changed = bytearray(data)
    used = [at for at in range(8, len(data) - 8, 8) if any(data[at : at + 8])]
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.choice(used)
        if random.random() < 0.5:
            (old,) = struct.unpack_from("<q", changed, at)
            near = min(max(old + random.choice((-1, 1, 10**9, -(10**9))), -(2**63)), 2**63 - 1)
            struct.pack_into("<q", changed, at, random.choice((*_LONGS, near, near)))
        else:
            struct.pack_into("<i", changed, at + random.choice((0, 4)), random.choice(_INTS))
    return bytes(changed)
