"""
Job histories in Hadoop's binary form, made of those in JSON form by the schema that both hold.
"""

from __future__ import annotations

import json

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.hostile.mutate import mutate

# Lengths and counts that no file holds: negative, huge, without an end, and some that may fit.
_NUMBERS = (
    b"\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80" * 10, b"\xff" * 12, b"\xfe" * 9,
    b"\xfe\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\xfc\xff\xff\xff\x1f", b"\x00", b"\x02",
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\xea\x30", b"\x02\x02\x02\x02",
)  # fmt: skip


def binary(history: bytes) -> bytes:
    """The same *history* in binary form."""
    _, schema, *events = history.splitlines(keepends=True)
    layout = json.loads(schema)
    names = dict(_named(layout))
    datums = (_encoded(layout, json.loads(line), names) for line in events if line.strip())
    return b"Avro-Binary\n" + schema + b"".join(datums)


def change(data: bytes, other: bytes, random: Random) -> bytes:
    """Change a binary history as any file, or one of the numbers in it."""
    if random.random() < 0.5:
        return mutate(data, other, random)
    at = random.randrange(data.index(b"\n", 20), len(data)) if b"\n" in data[20:] else 0
    return data[:at] + random.choice(_NUMBERS) + data[at + random.choice((0, 1, 1, 2)) :]


def _named(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every definition in *schema* by its name: others refer to it."""
    if isinstance(schema, dict):
        if "name" in schema and "type" in schema:
            yield schema["name"], schema
        for value in schema.values():
            yield from _named(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _named(value)


def _encoded(schema: Any, value: Any, names: dict[str, Any]) -> bytes:
    if isinstance(schema, list):
        return _member(schema, value, names)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        return b"".join(_encoded(f["type"], value[f["name"]], names) for f in schema["fields"])
    if kind == "enum":
        return _long(schema["symbols"].index(value))
    if kind == "array":
        items = b"".join(_encoded(schema["items"], each, names) for each in value)
        return (_long(len(value)) + items if value else b"") + _long(0)
    if kind == "map":
        pairs = (_text(k) + _encoded(schema["values"], v, names) for k, v in value.items())
        return (_long(len(value)) + b"".join(pairs) if value else b"") + _long(0)
    return _plain(kind, value, names)


def _plain(kind: str, value: Any, names: dict[str, Any]) -> bytes:
    if kind == "null":
        return b""
    if kind in ("int", "long"):
        return _long(value)
    if kind == "string":
        return _text(value)
    if kind == "boolean":
        return bytes([value])
    return _encoded(names[kind.rpartition(".")[2]], value, names)


def _member(union: list[Any], value: Any, names: dict[str, Any]) -> bytes:
    """A value of a union: which of its members, then the value without the tag that JSON has."""
    if value is None:
        return _long(union.index("null"))
    ((tag, inner),) = value.items()
    known = [m.get("name", m["type"]) if isinstance(m, dict) else m for m in union]
    known = [name.rpartition(".")[2] or name for name in known]
    at = known.index(tag.rpartition(".")[2])
    return _long(at) + _encoded(union[at], inner, names)


def _long(value: int) -> bytes:
    zigzag, found = (value << 1) ^ (value >> 63), bytearray()
    while zigzag > 0x7F:
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*found, zigzag])


def _text(value: str) -> bytes:
    raw = value.encode()
    return _long(len(raw)) + raw
