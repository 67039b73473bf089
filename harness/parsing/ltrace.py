"""
What the tracer recorded in one task (``ltrace.spans``).

Little endian:

    header   4096 bytes     clocks, sums of the record loop, the attempt's id
    chunks   32768 bytes    of one thread each: its name, and slots of 48 bytes

A slot is a span, or text or numbers that belong to the span before.  A span has its slot from its
begin, so the spans of a JVM that was killed are there as far as they came.  The file is sparse and
may be cut anywhere behind its header.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Literal, NamedTuple

from harness.errors import ParseError
from harness.records.spans import SPAN_NAMES, RecordLoop, Span, TaskSpans
from harness.text import excerpt

HEAD, CHUNK, SLOT = 4096, 32768, 48
_MAGIC = b"LTRACE01"
_HEADER = Struct("<8siiqqqqiiii")
_SUMS = Struct("<32q")
_HISTOGRAM = Struct("<64q")
_OWNER = Struct("<ii40s")
_SPAN = Struct("<iiqqqqq")
_LONGS = Struct("<ii5q")
_TEXT, _NUMBERS = -1, -2

# The recorder's file holds fewer chunks; a longer file is none of ours.
_MOST_CHUNKS = 1024
_ATTEMPT = re.compile(rb"attempt_\d{1,20}_\d{1,10}_[mr]_\d{1,10}_\d{1,10}")
_STATES: tuple[Literal["open", "closed", "given up"], ...] = ("open", "closed", "given up")
# Seconds since the epoch of any trial, and no year that a calendar does not know; no task runs for
# a year.
_LATEST_S = 2**33
_LONGEST = 2**55


class _Raw(NamedTuple):
    kind: int
    start: int
    end: int
    cpu_start: int
    cpu_end: int
    amount: int


def read_ltrace(chunks: Iterable[bytes], source: str) -> TaskSpans:
    """
    Read what one task recorded.

    A file that is not the tracer's, or contradicts itself, is `ParseError` with *source*.
    """
    data = _gathered(chunks, source)
    if len(data) < HEAD or not data.startswith(_MAGIC):
        raise _foreign(f"not a recording: '{excerpt(data[:8])}'", source)
    _, _, unit, wall, anchor, process, opening, lost, state, used, size = _HEADER.unpack_from(data)
    attempt = data[64 : 64 + max(0, min(size, 120))]
    if not _ATTEMPT.fullmatch(attempt):
        raise _foreign(f"no attempt's id: '{excerpt(attempt)}'", source)
    if not (0 <= state < len(_STATES) and lost >= 0 and unit >= 0 and opening >= 0):
        raise _foreign("its header holds what no recorder writes", source)
    clock = _Clock(wall / 1e6, anchor, source)
    spans = _spans(data, used, clock, source)
    return TaskSpans(
        attempt_id=attempt.decode("ascii"),
        state=_STATES[state],
        opened_s=clock.at(anchor),
        process_start_s=clock.told(process / 1e3) if process else None,
        opening_s=opening / 1e9,
        lost=lost,
        unit_records=unit,
        loop=_loop(data, source),
        spans=spans,
    )


def _gathered(chunks: Iterable[bytes], source: str) -> bytes:
    parts, size = [], 0
    for part in chunks:
        parts.append(part)
        size += len(part)
        if size > HEAD + _MOST_CHUNKS * CHUNK:
            raise _foreign("larger than any recording", source)
    return b"".join(parts)


def _foreign(what: str, source: str) -> ParseError:
    return ParseError(what, source=source, fix="give the ltrace.spans of one task")


class _Clock:
    """Brings the JVM's nanoseconds to seconds since the epoch."""

    def __init__(self, wall_s: float, anchor: int, source: str) -> None:
        self._wall_s, self._anchor, self._source = wall_s, anchor, source

    def at(self, nanos: int) -> float:
        if abs(nanos - self._anchor) > _LONGEST:
            raise _foreign("a time that no clock shows", self._source)
        return self.told(self._wall_s + (nanos - self._anchor) / 1e9)

    def told(self, seconds: float) -> float:
        if not 0 <= seconds <= _LATEST_S:
            raise _foreign("a time that no clock shows", self._source)
        return seconds


def _spans(data: bytes, used: int, clock: _Clock, source: str) -> tuple[Span, ...]:
    """Spans in the order of their begin, with their parents."""
    found: list[tuple[int, str, _Raw, str, tuple[int, ...]]] = []
    for number, begin in enumerate(range(HEAD, len(data) - SLOT + 1, CHUNK)):
        if number >= used:
            break
        thread, size, name = _OWNER.unpack_from(data, begin)
        shown_name = _text(name[: max(0, min(size, len(name)))])
        chunk = data[begin + SLOT : begin + CHUNK]
        found += [(thread, shown_name, *entry) for entry in _slots(chunk, source)]
    found.sort(key=lambda entry: entry[2].start)
    last = max((max(raw.start, raw.end) for _, _, raw, _, _ in found), default=0)
    return tuple(_nested(found, last, clock, source))


def _slots(chunk: bytes, source: str) -> Iterator[tuple[_Raw, str, tuple[int, ...]]]:
    """Spans of a chunk with the text and the numbers that follow them."""
    held: tuple[_Raw, str, tuple[int, ...]] | None = None
    whole = len(chunk) // SLOT * SLOT
    for at in range(0, whole, SLOT):
        kind = int.from_bytes(chunk[at : at + 4], "little", signed=True)
        if kind == _TEXT and held:
            text = chunk[at + 8 : at + SLOT].rstrip(b"\0")
            held = (held[0], held[1] + _text(text), held[2])
        elif kind == _NUMBERS and held:
            held = (held[0], held[1], held[2] or _LONGS.unpack_from(chunk, at)[2:])
        elif kind > 0:
            if held:
                yield held
            held = _raw(chunk, at, source), "", ()
    if held:
        yield held


def _raw(chunk: bytes, at: int, source: str) -> _Raw:
    kind, _, start, end, cpu_start, cpu_end, amount = _SPAN.unpack_from(chunk, at)
    if kind not in SPAN_NAMES:
        raise _foreign(f"a span of the unknown kind {kind}", source)
    if end and end < start:
        raise _foreign(f"a span ({SPAN_NAMES[kind]}) that ends before it begins", source)
    return _Raw(kind, start, end, cpu_start, cpu_end, amount)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").translate(_VISIBLE)


_VISIBLE = dict.fromkeys((*range(32), *range(127, 160)), "?")


def _nested(
    found: list[tuple[int, str, _Raw, str, tuple[int, ...]]], last: int, clock: _Clock, source: str
) -> Iterator[Span]:
    """Spans whose parents are known: of each thread, those that are not over."""
    around: dict[int, list[tuple[int, int]]] = {}
    for place, (thread, name, raw, text, details) in enumerate(found):
        start_s, end = clock.at(raw.start), raw.end or last
        clock.at(end)
        stack = around.setdefault(thread, [])
        while stack and stack[-1][1] <= raw.start:
            stack.pop()
        parent = stack[-1][0] if stack else -1
        stack.append((place, end))
        yield Span(
            name=text if raw.kind == 100 and text else SPAN_NAMES[raw.kind],
            thread=name,
            start_s=start_s,
            wall_s=(end - raw.start) / 1e9,
            cpu_s=_cpu_s(raw, source),
            parent=parent,
            open=not raw.end,
            amount=raw.amount,
            text=text,
            details=details,
        )


def _cpu_s(raw: _Raw, source: str) -> float | None:
    if not raw.cpu_end or not raw.end:
        return None
    if not 0 <= raw.cpu_end - raw.cpu_start <= _LONGEST:
        raise _foreign(f"a span ({SPAN_NAMES[raw.kind]}) with CPU time below zero", source)
    return (raw.cpu_end - raw.cpu_start) / 1e9


def _loop(data: bytes, source: str) -> RecordLoop:
    sums = _SUMS.unpack_from(data, 256)
    histogram = _HISTOGRAM.unpack_from(data, 1024)
    if min(sums) < 0 or min(histogram) < 0 or max(sums) > 2**53 or max(histogram) > 2**53:
        raise _foreign("sums of the record loop that no task reaches", source)
    records, read, alone, spilling, overlapped, outputs, sampled, samples, exact = sums[:9]
    reduce_function, blocked_ns, blocked = sums[15], sums[11], sums[12]
    # A sample may split a total, and never exceed it.
    most = alone + spilling + reduce_function
    output = min(sampled * outputs / samples, most) if samples else exact
    return RecordLoop(
        records=records,
        read_s=read / 1e9,
        function_s=(alone + reduce_function) / 1e9,
        spilling_s=spilling / 1e9,
        spilling_read_s=sums[16] / 1e9,
        overlapped=overlapped,
        outputs=outputs,
        output_s=output / 1e9,
        output_samples=samples,
        blocked_s=blocked_ns / 1e9,
        blocked=blocked,
        histogram=_trimmed(histogram),
        # Reads that were timed; older recordings do not count them, and had timed them all.
        read_samples=sums[17] if sums[17] < records else 0,
    )


def _trimmed(histogram: tuple[int, ...]) -> tuple[int, ...]:
    """Without the empty buckets at the end."""
    last = max((n for n, count in enumerate(histogram, start=1) if count), default=0)
    return histogram[:last]
