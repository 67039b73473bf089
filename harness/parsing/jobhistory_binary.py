"""
Job histories in binary form: bare datums of Avro, one behind the other, to the end of the file.

Nothing tells where an event ends but reading it.  Counters are most of the bytes, and nearly all
attempts of a job have the same names: the first set is read name by name, and makes a regular
expression with the names in it, which reads or skips those that differ in their values alone.
"""

from __future__ import annotations

import re

from array import array
from collections.abc import Iterable, Iterator, Mapping
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
from harness.parsing.jobhistory_counters import Counters, index_of, name_of
from harness.parsing.jobhistory_event import CUT, Event, Source
from harness.parsing.jobhistory_job import READ, Job

# An event is kept whole while it is read; those with thousands of counters take a tenth of this.
_LARGEST_EVENT = 1 << 22
_CHUNK = 1 << 18

# How many sets of counters are learnt: a history with other names in every event stays slow.
_SHAPES = 16

_WANTED = frozenset(
    {"jobid", "jobName", "userName", "submitTime", "launchTime", "totalMaps", "totalReduces"}
    | {"uberized", "finishTime", "finishedMaps", "finishedReduces", "diagnostics"}
    | {"totalCounters", "mapCounters", "reduceCounters", "counters"}
    | {"attemptId", "startTime", "trackerName", "containerId", "locality", "hostname", "error"}
    | {"mapFinishTime", "shuffleFinishTime", "sortFinishTime"}
    | {"name", "displayName", "groups", "counts", "value"}
)

_TEXT, _LONG = "string", "long"
_COUNTER = [("name", _TEXT), ("displayName", _TEXT), ("value", _LONG)]
_GROUP = [("name", _TEXT), ("displayName", _TEXT), ("counts", [_COUNTER])]
_COUNTERS = [("name", _TEXT), ("groups", [_GROUP])]

# Nine bytes hold every number that eight bytes of an array can.
_VALUE = rb"([\x80-\xff]{0,8}[\x00-\x7f])"


class Layout:
    """Codecs of an event: its type, and what follows for the types that tell anything."""

    def __init__(self, schema: Any) -> None:
        fields = dict(fields_of(schema))
        if list(fields) != ["type", "event"] or not isinstance(fields["event"], list):
            raise SchemaError("an event is its type and a union")
        kinds, members = fields["type"], fields["event"]
        if not isinstance(kinds, dict) or kinds.get("type") != "enum":
            raise SchemaError("the type of an event is no enumeration")
        self._symbols = symbols_of(kinds)
        types = Schema(_WANTED, _quick_counters)
        self._kind = types.codec(kinds)
        self._body = union([types.codec(member, 1) for member in members])

    def event(self, data: bytes, at: int) -> tuple[str, Mapping[str, Any] | None, int]:
        """Type of the event at *at*, its fields if it tells anything, and where it ends."""
        kind, at = self._kind.read(data, at)
        if kind not in READ:
            return kind, None, self._body.skip(data, at)
        values, at = self._body.read(data, at)
        if not isinstance(values, dict):
            raise DatumError(f"{kind} without its fields")
        return kind, values, at


def read_binary(chunks: Iterable[bytes], start: int, schema: Any, source: Source, job: Job) -> None:
    """Give the events in *chunks*, which begin at the file's byte *start*, to *job*."""
    try:
        layout = Layout(schema)
    except SchemaError as error:
        what = f"not the schema of job history events: {error}"
        raise Source(source.name).error(what, 2) from error
    for event in _events(iter(chunks), start, layout, source):
        READ[event.type](job, event)


def _events(chunks: Iterator[bytes], base: int, layout: Layout, source: Source) -> Iterator[Event]:
    """Events that tell anything; *base* bytes stand before the bytes at hand."""
    data, at, more = b"", 0, True
    while True:
        event = _event(layout, data, at, base, source)
        if event is not None:
            kind, values, end = event
            if values is not None:
                yield Event(kind, values, source, base + at, data[at:end])
            at = end
        elif more:
            base, data, at = base + at, data[at:], 0
            if len(data) > _LARGEST_EVENT:
                raise source.error(f"an event of more than {_LARGEST_EVENT} bytes", base)
            added = _gathered(chunks, max(_CHUNK, len(data)))
            data, more = data + added, bool(added)
        elif at < len(data):
            raise source.error("an event without its end: the history is cut", base + at, CUT)
        else:
            return


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


class _Longs(dict[bytes, int]):
    """Whole numbers by their bytes: small ones and sizes of memory come again and again."""

    def __missing__(self, raw: bytes) -> int:
        value = read_long(raw, 0)[0]
        if len(self) < 1 << 13:
            self[raw] = value
        return value


class _QuickCounters:
    """Codec of counters that learns their names."""

    def __init__(self, plain: Codec) -> None:
        self._plain = plain
        self._tried = 0
        self._known: list[tuple[re.Pattern[bytes], dict[str, int]]] = []
        self._longs = _Longs()

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        found, names = self._match(data, at)
        if found is None:
            return self._learnt(data, at)
        values = array("q", map(self._longs.__getitem__, found.groups()))
        return Counters(names, values), found.end()

    def skip(self, data: bytes, at: int) -> int:
        found, _ = self._match(data, at)
        return self._learnt(data, at)[1] if found is None else found.end()

    def _match(self, data: bytes, at: int) -> tuple[re.Match[bytes] | None, dict[str, int]]:
        for place, (pattern, names) in enumerate(self._known):
            found = pattern.match(data, at)
            if found is not None:
                if place:
                    self._known.insert(0, self._known.pop(place))
                return found, names
        return None, {}

    def _learnt(self, data: bytes, at: int) -> tuple[Any, int]:
        value, end = self._plain.read(data, at)
        if self._tried < _SHAPES and end - at < 1 << 16:
            self._tried += 1
            names = [
                name_of(group["name"], counter["name"])
                for group in value["groups"]
                for counter in group["counts"]
            ]
            pattern = re.compile(_pattern(value), re.DOTALL)
            found = pattern.match(data, at)
            # Java writes a list as one block; of two equal names the first counts, as in JSON.
            if found is not None and found.end() == end and len(set(names)) == len(names):
                self._known.append((pattern, index_of(names)))
        return value, end


def _quick_counters(schema: Mapping[str, Any], plain: Codec) -> Codec:
    if _outline(schema) != _COUNTERS:
        return plain
    quick = _QuickCounters(plain)
    return Codec(quick.read, quick.skip)


def _outline(schema: Any) -> Any:
    """Names and types of a record's fields, to compare with `_COUNTERS`."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "record":
        return [(name, _outline(kind)) for name, kind in fields_of(schema)]
    return [_outline(schema.get("items"))] if schema.get("type") == "array" else schema.get("type")


def _pattern(counters: Mapping[str, Any]) -> bytes:
    """Regular expression of *counters*, with a group for each number."""
    parts = [_text(counters["name"]), _count(len(counters["groups"]))]
    for group in counters["groups"]:
        parts += [_text(group["name"]), _text(group["displayName"]), _count(len(group["counts"]))]
        for counter in group["counts"]:
            parts += [_text(counter["name"]), _text(counter["displayName"]), _VALUE]
        parts += [rb"\x00"] if group["counts"] else []
    return b"".join([*parts, *([rb"\x00"] if counters["groups"] else [])])


def _text(text: str) -> bytes:
    raw = text.encode()
    return _count(len(raw)) + re.escape(raw)


def _count(number: int) -> bytes:
    """Regular expression of a size as Avro writes it, zigzag in bytes of seven bits."""
    rest, raw = number << 1, bytearray()
    while rest > 127:
        raw.append(rest & 127 | 128)
        rest >>= 7
    return re.escape(bytes([*raw, rest]))
