"""
Job histories in binary form: bare datums of Avro, one behind the other, to the end of the file.

Nothing tells where an event ends but reading it, so those that tell nothing are learnt as well.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from harness.parsing.jobhistory_avro import (
    Codec,
    DatumError,
    Incomplete,
    Schema,
    SchemaError,
    fields_of,
    read_long,
    symbols_of,
    union,
)
from harness.parsing.jobhistory_counters import Sets
from harness.parsing.jobhistory_datums import (
    COUNTERS,
    NUMBER,
    LearntCounters,
    Texts,
    field,
    outline,
    whole,
)
from harness.parsing.jobhistory_event import CUT, Event, Source
from harness.parsing.jobhistory_job import READ, Job
from harness.parsing.jobhistory_shapes import TAKEN, Reader, Shapes

# An event is kept whole while it is read; those with thousands of counters take a tenth of this.
_LARGEST_EVENT = 1 << 22
_CHUNK = 1 << 18

_WANTED = frozenset(
    {"jobid", "jobName", "userName", "submitTime", "launchTime", "totalMaps", "totalReduces"}
    | {"uberized", "finishTime", "finishedMaps", "finishedReduces", "diagnostics"}
    | {"totalCounters", "mapCounters", "reduceCounters", "counters"}
    | {"attemptId", "startTime", "trackerName", "containerId", "locality", "hostname", "error"}
    | {"mapFinishTime", "shuffleFinishTime", "sortFinishTime"}
    | {"name", "displayName", "groups", "counts", "value"}
)


class Layout:
    """Codecs of an event: its type, and what follows for the types that tell anything."""

    def __init__(self, schema: Any, sets: Sets) -> None:
        fields = dict(fields_of(schema))
        if list(fields) != ["type", "event"] or not isinstance(fields["event"], list):
            raise SchemaError("an event is its type and a union")
        kinds, self._members = fields["type"], fields["event"]
        if not isinstance(kinds, dict) or kinds.get("type") != "enum":
            raise SchemaError("the type of an event is no enumeration")
        self._symbols = symbols_of(kinds)
        self._sets, self._quicker = sets, list[Codec]()
        self._types = Schema(_WANTED, self._quick)
        self._kind = self._types.codec(kinds)
        self._body = union([self._types.codec(member, 1) for member in self._members])

    def event(self, data: bytes, at: int) -> tuple[str, Mapping[str, Any] | None, int]:
        """Type of the event at *at*, its fields if it tells anything, and where it ends."""
        kind, at = self._kind.read(data, at)
        self._sets.learning = not kind.startswith("JOB_")  # The job's own come once.
        if kind not in READ:
            return kind, None, self._body.skip(data, at)
        values, at = self._body.read(data, at)
        if not isinstance(values, dict):
            raise DatumError(f"{kind} without its fields")
        return kind, values, at

    def patterns(self, kind: str, raw: bytes, job: str) -> tuple[bytes, ...]:
        """Regular expressions of events like *raw*, around their counters."""
        member, at = read_long(raw, self._kind.skip(raw, 0))
        parts = [re.escape(raw[:at])]
        for name, type_, codec in self._fields(self._members[member]):
            end = codec.skip(raw, at)
            if codec in self._quicker:
                parts.append(b"")
            else:
                taken = name if name in TAKEN.get(kind, ()) else ""
                parts[-1] += field(taken, type_, raw[at:end], job)
            at = end
        return tuple(parts)

    def _fields(self, member: Any) -> list[tuple[str, Any, Codec]]:
        name = member.get("name") if isinstance(member, dict) else member
        return self._types.records.get(str(name), [])

    def _quick(self, schema: Mapping[str, Any], plain: Codec) -> Codec:
        if outline(schema) != COUNTERS:
            return plain
        learnt = LearntCounters(plain, self._sets)
        codec = Codec(learnt.read, learnt.skip)
        self._quicker.append(codec)
        return codec


def read_binary(chunks: Iterable[bytes], start: int, schema: Any, source: Source, job: Job) -> None:
    """Give the events in *chunks*, which begin at the file's byte *start*, to *job*."""
    sets = Sets(NUMBER)
    try:
        layout = Layout(schema, sets)
    except SchemaError as error:
        what = f"not the schema of job history events: {error}"
        raise Source(source.name).error(what, 2) from error
    shapes = Shapes(job, sets, whole, Texts().__getitem__)
    pieces, base, data, at, more = iter(chunks), start, b"", 0, True
    while at < len(data) or more:
        at = _passed(shapes.readers, data, at, base)
        event = _event(layout, data, at, base, source)
        if event is not None:
            kind, values, end = event
            raw = data[at:end]
            if values is not None:
                READ[kind](job, Event(kind, values, source, base + at, raw))
            if kind in TAKEN or values is None:
                shapes.learn(kind, raw[:1], raw, partial(layout.patterns, kind, raw, job.id))
            at = end
        elif more:
            base, data, at = base + at, data[at:], 0
            if len(data) > _LARGEST_EVENT:
                raise source.error(f"an event of more than {_LARGEST_EVENT} bytes", base)
            added = _gathered(pieces, max(_CHUNK, len(data)))
            data, more = data + added, bool(added)
        elif at < len(data):
            raise source.error("an event without its end: the history is cut", base + at, CUT)


def _passed(readers: dict[bytes, Reader], data: bytes, at: int, base: int) -> int:
    """Position behind the events from *at* on that have shapes that are known."""
    while True:
        reader = readers.get(data[at : at + 1])
        end = reader(data, at, base + at) if reader is not None else 0
        if not end:
            return at
        at = end


def _event(
    layout: Layout, data: bytes, at: int, base: int, source: Source
) -> tuple[str, Mapping[str, Any] | None, int] | None:
    """Event at the position *at* of *data*, or nothing where the bytes end within it."""
    try:
        return layout.event(data, at)
    except (IndexError, Incomplete):
        return None
    except DatumError as error:
        raise source.error(f"no event: {error}", base + at) from error


def _gathered(chunks: Iterator[bytes], size: int) -> bytes:
    """So many bytes of *chunks* at least, if there are."""
    parts, found = [], 0
    while found < size and (part := next(chunks, None)) is not None:
        parts.append(part)
        found += len(part)
    return b"".join(parts)
