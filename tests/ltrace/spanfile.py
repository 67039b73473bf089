"""
The tracer's files read byte by byte: what the tests compare the recorder with.

The simplest way, on purpose; the reader of the product is `harness.observe.parsing.ltrace`.
"""

import struct

from dataclasses import dataclass, field
from pathlib import Path

HEADER, CHUNK, SLOT = 4096, 32768, 48


@dataclass
class Span:
    """
    One span: its slot, and the text and the numbers behind it.
    """

    thread: str
    kind: int
    flags: int
    start: int
    end: int
    cpu_start: int
    cpu_end: int
    amount: int
    text: str = ""
    numbers: tuple[int, ...] = ()


@dataclass
class Spans:
    """
    All of a file ``ltrace.spans``.
    """

    task: str
    mode: int
    unit: int
    wall: int
    anchor: int
    process_start: int
    jvm_start: int
    opening: int
    lost: int
    state: int
    chunks: int
    size: int
    sums: tuple[int, ...]
    histogram: tuple[int, ...]
    spans: list[Span] = field(default_factory=list)

    def of(self, kind: int) -> list[Span]:
        """
        Spans of one kind.
        """
        return [span for span in self.spans if span.kind == kind]


def read_spans(file: Path) -> Spans:
    """
    Header and spans.
    """
    data = file.read_bytes()
    assert data[:8] == b"LTRACE01"
    mode, unit = struct.unpack_from("<ii", data, 8)
    wall, anchor, process, opening = struct.unpack_from("<qqqq", data, 16)
    lost, state, chunks, length = struct.unpack_from("<iiii", data, 48)
    recording = Spans(
        task=data[64 : 64 + length].decode(),
        mode=mode,
        unit=unit,
        wall=wall,
        anchor=anchor,
        process_start=process,
        jvm_start=struct.unpack_from("<q", data, 184)[0],
        opening=opening,
        lost=lost,
        state=state,
        chunks=chunks,
        size=len(data),
        sums=struct.unpack_from("<32q", data, 256),
        histogram=struct.unpack_from("<64q", data, 1024),
    )
    for chunk in range(chunks):
        recording.spans += _chunk(data, HEADER + chunk * CHUNK)
    return recording


def _chunk(data: bytes, at: int) -> list[Span]:
    spans: list[Span] = []
    (length,) = struct.unpack_from("<i", data, at + 4)
    thread = data[at + 8 : at + 8 + length].decode()
    for slot in range(at + SLOT, at + CHUNK - SLOT + 1, SLOT):
        kind, flags, *numbers = struct.unpack_from("<ii5q", data, slot)
        if kind == 0:
            break
        if kind == -1:
            spans[-1].text = data[slot + 8 : slot + SLOT].rstrip(b"\0").decode()
        elif kind == -2:
            spans[-1].numbers = tuple(numbers)
        else:
            spans.append(Span(thread, kind, flags, *numbers))
    return spans


def read_units(file: Path) -> tuple[int, list[int]]:
    """
    Records of a unit, and the durations in steps of 32 ns.
    """
    data = file.read_bytes()
    magic, unit, zero = struct.unpack_from("<8sii", data)
    assert (magic, zero) == (b"LTUNITS1", 0)
    words = list(struct.unpack(f"<{(len(data) - 16) // 2}H", data[16:]))
    units = []
    while words and words[0]:
        word = words.pop(0)
        units.append((word & 0x7FFF) << 16 | words.pop(0) if word & 0x8000 else word)
    return unit, units
