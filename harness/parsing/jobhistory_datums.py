"""
Regular expressions of Avro's bytes: those of events like one that was read, and of their counters.

What a field of an event may hold where it is not taken is what its type may hold; a type that is
not listed here holds what it held in that event.
"""

from __future__ import annotations

import re
import sys

from collections.abc import Mapping
from typing import Any

from harness.parsing.jobhistory_avro import Codec, fields_of, read_long
from harness.parsing.jobhistory_counters import Number, Sets, name_of

# A text may be so much shorter or longer than that of the event before, and has one byte of size.
_NEAR = 8
_SHORT = 64

# Lists may have so many numbers; Hadoop's have twelve.
_MANY = 32

_TEXT, _LONG = "string", "long"
_COUNTER = [("name", _TEXT), ("displayName", _TEXT), ("value", _LONG)]
_GROUP = [("name", _TEXT), ("displayName", _TEXT), ("counts", [_COUNTER])]
COUNTERS = [("name", _TEXT), ("groups", [_GROUP])]

_NUMBER = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
_POSITIVE = b"[%s]" % re.escape(bytes(range(0x80, 0x100, 2)))  # First byte of many.


class _Halves(dict[bytes, int]):
    """Numbers in bytes of seven bits, without their sign; kept, for their upper halves repeat."""

    def __missing__(self, raw: bytes) -> int:
        if len(raw) > 2:
            value = self[raw[:2]] | self[raw[2:]] << 14
        else:
            value = sum((byte & 127) << 7 * place for place, byte in enumerate(raw))
        if len(raw) <= 2 or len(self) < 1 << 15:
            self[raw] = value
        return value


_HALVES = _Halves()


def whole(raw: bytes) -> int:
    """Whole number that is written as *raw*."""
    value = _HALVES[raw[:2]] | _HALVES[raw[2:]] << 14
    return (value >> 1) ^ -(value & 1)


# Nine bytes hold every number that eight bytes of an array can.
NUMBER = Number(rb"[\x80-\xff]{0,8}+[\x00-\x7f]", whole)


class Texts(dict[bytes, str]):
    """Texts by their bytes, size and all; hosts and racks occur thousands of times."""

    def __missing__(self, raw: bytes) -> str:
        text = self[raw] = sys.intern(raw[1:].decode("ascii"))
        return text


def outline(schema: Any) -> Any:
    """Names and types of a record's fields, to compare with `COUNTERS`; [type] of a list."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "record":
        return [(name, outline(kind)) for name, kind in fields_of(schema)]
    return [outline(schema.get("items"))] if schema.get("type") == "array" else schema.get("type")


def field(name: str, kind: Any, raw: bytes, job: str) -> bytes:
    """Regular expression of a field of type *kind* like *raw*; with a *name* it is taken."""
    known = outline(kind)
    if known == ["null", "string"] and raw[0] == 2:
        return b"\x02" + field(name, "string", raw[1:], job)
    if known == "string":
        return _text(name, raw, job)
    if known in ("int", "long"):
        return _time(len(raw)) if name else _NUMBER
    if known in (["int"], ["long"]) and 0 < (count := read_long(raw, 0)[0]) <= _MANY:
        return re.escape(_count(count)) + _NUMBER * count + rb"\x00"
    return re.escape(raw)


def _text(name: str, raw: bytes, job: str) -> bytes:
    size, at = read_long(raw, 0)
    if name == "attemptId":
        return re.escape(raw[:at]) + _attempt(raw[at:], job)
    if name == "containerId" and size < _SHORT:
        return re.escape(raw[:at]) + b"([ -~]{%d})" % size
    if size >= _SHORT:
        return re.escape(raw[:at]) + b".{%d}" % size
    sizes = range(max(0, size - _NEAR), min(_SHORT, size + _NEAR + 1))
    one = b"[ -~]" if name else b"."
    near = b"|".join(re.escape(_count(n)) + one + b"{%d}" % n for n in sizes)
    return (b"(%s)" if name else b"(?:%s)") % near


def _attempt(raw: bytes, job: str) -> bytes:
    """Regular expression of attempts of *job* whose numbers have as many digits as in *raw*."""
    *_, kind, task, attempt = raw.split(b"_")
    digits = (kind, len(task), len(attempt))
    return b"(attempt%s_" % job[3:].encode() + b"%s_[0-9]{%d}_[0-9]{%d})" % digits


def _time(size: int) -> bytes:
    """Regular expression of a number of so many bytes, 0 or more."""
    return b"(%s[\x80-\xff]{%d}[\x01-\x7f])" % (_POSITIVE, size - 2) if 2 <= size < 8 else b""


class LearntCounters:
    """Codec of counters that learns their names, given the *plain* one."""

    def __init__(self, plain: Codec, sets: Sets) -> None:
        self._plain, self._sets = plain, sets

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """Counters at the position *at* of *data*, and where they end."""
        found, end = self._sets.read(data, at)
        return self._learnt(data, at) if found is None else (found, end)

    def skip(self, data: bytes, at: int) -> int:
        """Where the counters at the position *at* of *data* end."""
        return self._sets.skip(data, at) or self._learnt(data, at)[1]

    def _learnt(self, data: bytes, at: int) -> tuple[Any, int]:
        value, end = self._plain.read(data, at)
        names = [
            name_of(group["name"], counter["name"])
            for group in value["groups"]
            for counter in group["counts"]
        ]
        self._sets.learn(data[at:end], names, lambda: _between(value))
        return value, end


def _between(counters: Mapping[str, Any]) -> list[bytes]:
    """What stands between the values of *counters*, where each list is one block, as of Java."""
    parts, text = [], _written(counters["name"]) + _count(len(counters["groups"]))
    for group in counters["groups"]:
        text += _written(group["name"]) + _written(group["displayName"])
        text += _count(len(group["counts"]))
        for counter in group["counts"]:
            parts.append(text + _written(counter["name"]) + _written(counter["displayName"]))
            text = b""
        text += b"\x00" if group["counts"] else b""
    return [*parts, text + (b"\x00" if counters["groups"] else b"")]


def _written(text: str) -> bytes:
    raw = text.encode()
    return _count(len(raw)) + raw


def _count(number: int) -> bytes:
    """Write a size as Avro does, zigzag in bytes of seven bits."""
    rest, raw = number << 1, bytearray()
    while rest > 127:
        raw.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*raw, rest])
