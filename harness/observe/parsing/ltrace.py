"""
What the tracer recorded in one task: its spans (``ltrace.spans``), its units (``ltrace.units``).

Spans, little endian:

    header   4096 bytes     clocks, sums of the record loop, the attempt's id
    chunks   32768 bytes    of one thread each: its name, and slots of 48 bytes

A slot is a span, or text or numbers that belong to the span before.  A span has its slot from its
start, so the spans of a JVM that was killed are there as far as they came.  The file is sparse and
may be cut anywhere behind its header.

Units, the durations of every few records of a task: a head of 16 bytes (``LTUNITS1``, records per
unit, nothing), then of each unit one word of 16 bits in steps of 32 ns, or two where that is not
enough: the first has its top bit set and the high bits.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness.base.errors import ParseError
from harness.base.records.tasks import SPAN_NAMES, RecordLoop, Span, TaskSpans
from harness.base.text import excerpt

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEAD = 4096
CHUNK = 32768
SLOT = 48
_MAGIC = b"LTRACE01"
_HEADER = Struct("<8siiqqqqiiii")
_PROCESS_CPU = Struct("<2q")  # milliseconds at main and at the end, 0: not read
_PROCESS_CPU_AT = 192
_SUMS = Struct("<32q")
_HISTOGRAM = Struct("<64q")
_OWNER = Struct("<ii40s")
_SPAN = Struct("<iiqqqqq")
_LONGS = Struct("<ii5q")
# Kinds of slots: of a workload's own span, and of what belongs to the span before.
_WORKLOAD_KIND = 100
_TEXT = -1
_NUMBERS = -2

# The recorder's file holds fewer chunks.
_MOST_CHUNKS = 1024
_ATTEMPT = re.compile(rb"attempt_\d{1,20}_\d{1,10}_[mr]_\d{1,10}_\d{1,10}")
_STATES: tuple[Literal["open", "closed", "given up"], ...] = ("open", "closed", "given up")
# Seconds since the epoch of any trial, and no year that a calendar does not know; no task runs for
# a year.
_LATEST_S = 2**33
_LONGEST_NS = 2**55
_VISIBLE = dict.fromkeys((*range(32), *range(127, 160)), "?")

_UNITS_HEAD = Struct("<8sii")
_UNITS_MAGIC = b"LTUNITS1"
_LONG_UNIT = 0x8000
_STEP_S = 32e-9
# A map of 128 MiB has a million records of 100 bytes; this is five hundred times as much.
MOST_UNITS_BYTES = 1 << 28


class _Header(NamedTuple):
    """
    The first fields of a recording.

    At *anchor_ns* of the JVM's clock it was *wall_us* of the epoch.
    """

    magic: bytes
    mode: int
    unit_records: int
    wall_us: int
    anchor_ns: int
    process_ms: int
    opening_ns: int
    lost: int
    state: int
    used_chunks: int
    id_size: int

    def moment(self, nanoseconds: int, source: str) -> float:
        """Seconds since the epoch at a time of the JVM's clock; `ParseError`: an impossible one."""
        since_anchor_ns = nanoseconds - self.anchor_ns
        seconds = self.wall_us / 1e6 + since_anchor_ns / 1e9
        if abs(since_anchor_ns) > _LONGEST_NS or not 0 <= seconds <= _LATEST_S:
            raise _recording_error("an impossible time", source)
        return seconds


class _Recorded(NamedTuple):
    """A span's slot with its thread, and with the text and the numbers that follow it."""

    thread: int
    thread_name: str
    kind: int
    unused: int
    start_ns: int
    end_ns: int
    cpu_start_ns: int
    cpu_end_ns: int
    amount: int
    text: str = ""
    details: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What its kind is called; a span of a workload's own is called by its text."""
        if self.kind == _WORKLOAD_KIND and self.text:
            return self.text
        return SPAN_NAMES[self.kind]

    @property
    def cpu_ns(self) -> int | None:
        """CPU time of its thread; `None` where it was not read, or the span is not over."""
        if not self.cpu_end_ns or not self.end_ns:
            return None
        return self.cpu_end_ns - self.cpu_start_ns


def read_ltrace(chunks: Iterable[bytes], source: str) -> TaskSpans:
    """Read what one task recorded; `ParseError` where it is not consistent, or not the tracer's."""
    joined = bytearray()
    for chunk in chunks:
        joined += chunk
        if len(joined) > HEAD + _MOST_CHUNKS * CHUNK:
            raise _recording_error("larger than any recording", source)
    recording = bytes(joined)
    if len(recording) < HEAD or not recording.startswith(_MAGIC):
        raise _recording_error(f"not a recording: '{excerpt(recording[:8])}'", source)
    header = _Header(*_HEADER.unpack_from(recording))
    attempt = recording[64 : 64 + max(0, min(header.id_size, 120))]
    if not _ATTEMPT.fullmatch(attempt):
        raise _recording_error(f"not the id of an attempt: '{excerpt(attempt)}'", source)
    least = min(header.lost, header.unit_records, header.opening_ns)
    if not 0 <= header.state < len(_STATES) or least < 0:
        raise _recording_error("its header is not one that the recorder writes", source)
    process_start_s = header.process_ms / 1e3
    if not 0 <= process_start_s <= _LATEST_S:
        raise _recording_error("an impossible time", source)
    cpu_at_main_s, cpu_at_end_s = _process_cpu(recording, source)
    return TaskSpans(
        attempt_id=attempt.decode("ascii"),
        state=_STATES[header.state],
        opened_s=header.moment(header.anchor_ns, source),
        process_start_s=process_start_s or None,
        opening_s=header.opening_ns / 1e9,
        lost=header.lost,
        unit_records=header.unit_records,
        loop=_record_loop(recording, source),
        spans=tuple(_spans(recording, header, source)),
        cpu_at_main_s=cpu_at_main_s,
        cpu_at_end_s=cpu_at_end_s,
    )


def _process_cpu(recording: bytes, source: str) -> tuple[float | None, float | None]:
    """Processor seconds of the process at main and at its end, `None` where nobody read them."""
    at_main_ms, at_end_ms = _PROCESS_CPU.unpack_from(recording, _PROCESS_CPU_AT)
    longest_ms = _LONGEST_NS // 1_000_000
    is_possible = 0 <= at_main_ms <= longest_ms and 0 <= at_end_ms <= longest_ms
    if not is_possible or (at_end_ms and at_end_ms < at_main_ms):
        raise _recording_error("processor time that no process has used", source)
    return at_main_ms / 1e3 or None, at_end_ms / 1e3 or None


def _recording_error(what: str, source: str) -> ParseError:
    return ParseError(what, source=source, fix="give the ltrace.spans of one task")


def _spans(recording: bytes, header: _Header, source: str) -> Iterator[Span]:
    """Spans in the order of their start, with their parents: of each thread, those around them."""
    recorded: list[_Recorded] = []
    for chunk_start in range(HEAD, len(recording) - SLOT + 1, CHUNK)[: max(header.used_chunks, 0)]:
        recorded += _spans_of_chunk(recording[chunk_start : chunk_start + CHUNK], source)
    recorded.sort(key=lambda span: span.start_ns)
    last_ns = max((max(span.start_ns, span.end_ns) for span in recorded), default=0)
    # By thread: number and end of each span that is not over, the innermost last.
    enclosing_by_thread: dict[int, list[tuple[int, int]]] = {}
    for number, span in enumerate(recorded):
        start_s = header.moment(span.start_ns, source)
        end_ns = span.end_ns or last_ns
        header.moment(end_ns, source)  # refuses an impossible one
        enclosing = enclosing_by_thread.setdefault(span.thread, [])
        while enclosing and enclosing[-1][1] <= span.start_ns:
            enclosing.pop()
        parent = enclosing[-1][0] if enclosing else -1
        enclosing.append((number, end_ns))
        cpu_ns = span.cpu_ns
        if cpu_ns is not None and not 0 <= cpu_ns <= _LONGEST_NS:
            what = f"a span ({SPAN_NAMES[span.kind]}) with CPU time below zero"
            raise _recording_error(what, source)
        yield Span(
            name=span.name,
            thread=span.thread_name,
            start_s=start_s,
            wall_s=(end_ns - span.start_ns) / 1e9,
            cpu_s=None if cpu_ns is None else cpu_ns / 1e9,
            parent=parent,
            open=not span.end_ns,
            amount=span.amount,
            text=span.text,
            details=span.details,
        )


def _spans_of_chunk(chunk: bytes, source: str) -> list[_Recorded]:
    """Spans in the slots of *chunk*, all of one thread, in the order in which they began."""
    thread, name_size, name = _OWNER.unpack_from(chunk)
    thread_name = _text(name[: max(0, min(name_size, len(name)))])
    spans: list[_Recorded] = []
    for offset in range(SLOT, len(chunk) // SLOT * SLOT, SLOT):
        kind = int.from_bytes(chunk[offset : offset + 4], "little", signed=True)
        if kind > 0:
            span = _Recorded(thread, thread_name, *_SPAN.unpack_from(chunk, offset))
            if kind not in SPAN_NAMES:
                raise _recording_error(f"a span of the unknown kind {kind}", source)
            if span.end_ns and span.end_ns < span.start_ns:
                what = f"a span ({SPAN_NAMES[kind]}) that ends before it starts"
                raise _recording_error(what, source)
            spans.append(span)
        elif kind == _TEXT and spans:
            text = spans[-1].text + _text(chunk[offset + 8 : offset + SLOT].rstrip(b"\0"))
            spans[-1] = spans[-1]._replace(text=text)
        elif kind == _NUMBERS and spans and not spans[-1].details:
            spans[-1] = spans[-1]._replace(details=_LONGS.unpack_from(chunk, offset)[2:])
    return spans


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").translate(_VISIBLE)


def _record_loop(recording: bytes, source: str) -> RecordLoop:
    loop_sums = _SUMS.unpack_from(recording, 256)
    histogram = _HISTOGRAM.unpack_from(recording, 1024)
    if min(*loop_sums, *histogram) < 0 or max(*loop_sums, *histogram) > 2**53:
        raise _recording_error("sums of the record loop that no task reaches", source)
    (
        records,
        read_ns,
        alone_ns,
        spilling_ns,
        overlapped,
        outputs,
        sampled_ns,
        samples,
        exact_ns,
    ) = loop_sums[:9]
    blocked_ns = loop_sums[11]
    blocked = loop_sums[12]
    reduce_function_ns = loop_sums[15]
    spilling_read_ns = loop_sums[16]
    read_samples = loop_sums[17]
    # A sample may split a total, and never exceed it.
    most_ns = alone_ns + spilling_ns + reduce_function_ns
    output_ns = min(sampled_ns * outputs / samples, most_ns) if samples else exact_ns
    last_bucket = max((bucket for bucket, count in enumerate(histogram, 1) if count), default=0)
    return RecordLoop(
        records=records,
        read_s=read_ns / 1e9,
        function_s=(alone_ns + reduce_function_ns) / 1e9,
        spilling_s=spilling_ns / 1e9,
        spilling_read_s=spilling_read_ns / 1e9,
        overlapped=overlapped,
        outputs=outputs,
        output_s=output_ns / 1e9,
        output_samples=samples,
        blocked_s=blocked_ns / 1e9,
        blocked=blocked,
        histogram=histogram[:last_bucket],
        # Reads that were timed; older recordings do not count them, and had timed them all.
        read_samples=read_samples if read_samples < records else 0,
    )


def read_units(unit_file: bytes, source: str) -> tuple[int, NDArray[Any]]:
    """
    Read records per unit, and the seconds of each unit, in their order.

    The recorder maps more of the file than it fills, and no unit takes no time: the first zero is
    the end.  Half a unit is left out.  What is not such a file is `ParseError` with *source*.
    """
    import numpy as np

    size = len(unit_file)
    if not _UNITS_HEAD.size <= size <= MOST_UNITS_BYTES or not unit_file.startswith(_UNITS_MAGIC):
        what = f"not durations of units: '{excerpt(unit_file[:8])}'"
        raise ParseError(what, source=source, fix="give the ltrace.units of one task")
    _, unit_records, _ = _UNITS_HEAD.unpack_from(unit_file)
    if unit_records < 1:
        raise ParseError(f"units of {unit_records} records", source=source)
    word_count = (size - _UNITS_HEAD.size) // 2
    words = np.frombuffer(unit_file, "<u2", offset=_UNITS_HEAD.size, count=word_count).astype(
        np.int64
    )
    # A word with its top bit set starts a unit, unless it is the second of one: in a run of such
    # words every other one starts one.
    is_long = words >= _LONG_UNIT
    places = np.arange(word_count)
    run_start = np.maximum.accumulate(np.where(is_long, -1, places)) + 1
    is_first = is_long & ((places - run_start) % 2 == 0)
    is_second = np.concatenate(([False], is_first[:-1]))
    high_bits = (words & (_LONG_UNIT - 1)) << 16
    steps = np.where(is_first, high_bits | np.append(words[1:], 0), words)
    is_cut = is_first & (places == word_count - 1)
    durations = steps[~is_second & ~is_cut]
    never_written = np.flatnonzero(durations == 0)
    return unit_records, durations[: never_written[0] if len(never_written) else None] * _STEP_S
