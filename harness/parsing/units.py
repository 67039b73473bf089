"""
Durations of every few records of a task (``ltrace.units``), as vet needs them.

A head of 16 bytes (``LTUNITS1``, records per unit, nothing), then of each unit one word of 16 bits
in steps of 32 ns, or two where that is not enough: the first has its top bit set and the high bits.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from harness.errors import ParseError
from harness.text import excerpt

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HEAD = Struct("<8sii")
_MAGIC = b"LTUNITS1"
_LONG, _STEP_S = 0x8000, 32e-9

# A map of 128 MiB has a million records of 100 bytes; this is five hundred times as much.
_MOST_BYTES = 1 << 28


def read_units(data: bytes, source: str) -> tuple[int, NDArray[Any]]:
    """
    Records per unit, and the seconds of each unit, in their order.

    The recorder maps more of the file than it fills, and no unit takes no time: the first zero is
    the end.  Half a unit is none.  What is no such file is `ParseError` with *source*.
    """
    import numpy as np

    if len(data) > _MOST_BYTES or len(data) < _HEAD.size or not data.startswith(_MAGIC):
        raise ParseError(
            f"no durations of units: '{excerpt(data[:8])}'",
            source=source,
            fix="give the ltrace.units of one task",
        )
    _, records, _ = _HEAD.unpack_from(data)
    if records < 1:
        raise ParseError(f"units of {records} records", source=source)
    words = np.frombuffer(data, "<u2", offset=_HEAD.size, count=(len(data) - _HEAD.size) // 2)
    durations = _durations(words.astype(np.int64))
    never_written = np.flatnonzero(durations == 0)
    return records, durations[: never_written[0] if len(never_written) else None] * _STEP_S


def _durations(words: NDArray[Any]) -> NDArray[Any]:
    """Join the two words of long units."""
    import numpy as np

    # A word with its top bit set begins a unit, unless it is the second of one: of a run of such
    # words every other one begins.
    top = words >= _LONG
    places = np.arange(len(words))
    run_start = np.maximum.accumulate(np.where(top, -1, places)) + 1
    first = top & ((places - run_start) % 2 == 0)
    second = np.concatenate(([False], first[:-1]))
    low = np.append(words[1:], 0)
    joined = np.where(first, (words & (_LONG - 1)) << 16 | low, words)
    cut = first & (places == len(words) - 1)
    kept: NDArray[Any] = joined[~second & ~cut]
    return kept
