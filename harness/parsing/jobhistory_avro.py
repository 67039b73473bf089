"""
Datums of Avro by a schema that came with them, and so by a schema that nobody vouches for.

    codecs   schema  -> Codec       a reader and a skipper, made once
    Codec    bytes   -> values      records as dictionaries by field name

Only what histories need is accepted: records, enumerations, unions, arrays, maps and primitive
types.  Every type but a member of a union takes a byte at least, so that nothing is counted that
is not there; no type contains itself.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

# Types within types: those of Hadoop's own schema go 8 deep.
_DEPTH = 32
_TWELVE = re.compile(rb"\x18" + rb"[\x80-\xff]{0,9}[\x00-\x7f]" * 12 + rb"\x00")
_PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")

Reader = Callable[[bytes, int], tuple[Any, int]]
Skipper = Callable[[bytes, int], int]


class SchemaError(Exception):
    """A schema that is none, or that histories do not need."""


class DatumError(Exception):
    """Bytes that are no datum of their type."""


class Incomplete(Exception):  # noqa: N818 - it is no error while more bytes may come
    """The bytes end within a datum."""


class Codec(NamedTuple):
    """
    Reader and skipper of one type: bytes and a position in, the position behind the datum out.

    They raise `DatumError`, and `Incomplete` or `IndexError` where the bytes end too early.
    """

    read: Reader
    skip: Skipper


class Schema:
    """
    Codecs of the types that one schema defines.

    Of records only the fields called as in *wanted* are read.  *instead* may replace the codec of
    a record by a quicker one, given its definition.  `records` has the fields of each record, with
    their types and codecs.
    """

    def __init__(
        self, wanted: frozenset[str], instead: Callable[[Mapping[str, Any], Codec], Codec]
    ) -> None:
        self._wanted, self._instead = wanted, instead
        self.records: dict[str, list[tuple[str, Any, Codec]]] = {}
        self._named: dict[str, tuple[Codec, int] | None] = {}
        self._deepest = 0

    def codec(self, schema: Any, depth: int = 0) -> Codec:
        """Codec of *schema*; `SchemaError` where it is none."""
        self._reach(depth)
        if isinstance(schema, str):
            return self._by_name(schema, depth)
        if isinstance(schema, list):
            return self._union(schema, depth)
        if not isinstance(schema, dict):
            raise SchemaError("a type that is no name, list or object")
        kind = schema.get("type")
        if isinstance(kind, dict | list):
            return self.codec(kind, depth + 1)
        if kind in ("record", "enum"):
            return self._definition(schema, depth)
        if kind == "array":
            return _array(self.codec(schema.get("items"), depth + 1))
        if kind == "map":
            return _map(self.codec(schema.get("values"), depth + 1))
        return self._by_name(kind, depth)

    def _reach(self, depth: int) -> None:
        if depth > _DEPTH:
            raise SchemaError(f"types nest more than {_DEPTH} deep")
        self._deepest = max(self._deepest, depth)

    def _by_name(self, name: Any, depth: int) -> Codec:
        if name in _PRIMITIVES:
            return _CODECS[name]
        known = self._named.get(_last(name)) if isinstance(name, str) else None
        if known is None:
            raise SchemaError("a type that is not known, or contains itself")
        codec, height = known
        self._reach(depth + height)
        return codec

    def _definition(self, schema: Mapping[str, Any], depth: int) -> Codec:
        name = schema.get("name")
        if not isinstance(name, str) or _last(name) in self._named:
            raise SchemaError("a type without a name of its own")
        self._named[_last(name)] = None
        before, self._deepest = self._deepest, depth
        record = schema["type"] == "record"
        codec = self._record(schema, depth) if record else _enum(symbols_of(schema))
        self._named[_last(name)] = codec, self._deepest - depth
        self._deepest = max(before, self._deepest)
        return codec

    def _record(self, schema: Mapping[str, Any], depth: int) -> Codec:
        fields = [(n, kind, self.codec(kind, depth + 1)) for n, kind in fields_of(schema)]
        self.records[schema["name"]] = fields
        return self._instead(schema, _record([(n, codec) for n, _, codec in fields], self._wanted))

    def _union(self, schema: Sequence[Any], depth: int) -> Codec:
        if not schema or any(isinstance(member, list) for member in schema):
            raise SchemaError("a union of nothing, or of unions")
        return union([_NULL if m == "null" else self.codec(m, depth + 1) for m in schema])


def fields_of(schema: Any) -> list[tuple[str, Any]]:
    """Names and types of the fields of a record."""
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(fields, list) or not fields:
        raise SchemaError("a record without fields")
    named = {f["name"]: f.get("type") for f in fields if _is_field(f)}
    if len(named) != len(fields):
        raise SchemaError("a field without a name of its own")
    return list(named.items())


def _is_field(field: Any) -> bool:
    return isinstance(field, dict) and isinstance(field.get("name"), str)


def symbols_of(schema: Any) -> list[str]:
    """Symbols of an enumeration."""
    symbols = schema.get("symbols") if isinstance(schema, dict) else None
    if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
        raise SchemaError("an enumeration without symbols")
    return symbols


def union(members: Sequence[Codec]) -> Codec:
    """Codec of a union of types that have these codecs."""
    reads, skips, size = [m.read for m in members], [m.skip for m in members], len(members)

    def member(data: bytes, at: int) -> tuple[int, int]:
        which, at = read_long(data, at)
        if not 0 <= which < size:
            raise DatumError(f"no member {which} in a union of {size}")
        return which, at

    def read(data: bytes, at: int) -> tuple[Any, int]:
        which, at = member(data, at)
        return reads[which](data, at)

    def skip(data: bytes, at: int) -> int:
        which, at = member(data, at)
        return skips[which](data, at)

    return Codec(read, skip)


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Whole number: zigzag, seven bits a byte, lowest first."""
    byte = data[at]
    at += 1
    value, shift = byte & 127, 7
    while byte > 127:
        if shift == 70:
            raise DatumError("a whole number of more than ten bytes")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), at


def skip_long(data: bytes, at: int) -> int:
    """Position behind a whole number."""
    return at + 1 if data[at] < 128 else read_long(data, at)[1]


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """Text: its size in bytes, then UTF-8."""
    raw, at = _read_bytes(data, at)
    try:
        return raw.decode("utf-8"), at
    except UnicodeDecodeError as error:
        raise DatumError("a text that is no UTF-8") from error


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    end = at + size
    if size < 0:
        raise DatumError(f"a text of {size} bytes")
    if end > len(data):
        raise Incomplete
    return data[at:end], end


def _skip_bytes(data: bytes, at: int) -> int:
    size, at = read_long(data, at)
    if size < 0:
        raise DatumError(f"a text of {size} bytes")
    if at + size > len(data):
        raise Incomplete
    return at + size


def _fixed(size: int) -> Codec:
    def skip(data: bytes, at: int) -> int:
        if at + size > len(data):
            raise Incomplete
        return at + size

    return Codec(lambda data, at: (data[at : at + size], skip(data, at)), skip)


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise DatumError(f"a boolean of {data[at]}")
    return data[at] == 1, at + 1


_NULL = Codec(lambda _, at: (None, at), lambda _, at: at)
_CODECS = {
    "boolean": Codec(_read_boolean, lambda data, at: _read_boolean(data, at)[1]),
    "int": Codec(read_long, skip_long),
    "long": Codec(read_long, skip_long),
    "float": _fixed(4),
    "double": _fixed(8),
    "bytes": Codec(_read_bytes, _skip_bytes),
    "string": Codec(read_string, _skip_bytes),
}


def _enum(symbols: Sequence[str]) -> Codec:
    def read(data: bytes, at: int) -> tuple[str, int]:
        which, at = read_long(data, at)
        if not 0 <= which < len(symbols):
            raise DatumError(f"no symbol {which} in an enumeration of {len(symbols)}")
        return symbols[which], at

    return Codec(read, lambda data, at: read(data, at)[1])


def _record(fields: Sequence[tuple[str, Codec]], wanted: frozenset[str]) -> Codec:
    steps = [(name in wanted, name, codec) for name, codec in fields]
    skips = [codec.skip for _, codec in fields]

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values = {}
        for is_wanted, name, codec in steps:
            if is_wanted:
                values[name], at = codec.read(data, at)
            else:
                at = codec.skip(data, at)
        return values, at

    def skip(data: bytes, at: int) -> int:
        for step in skips:
            at = step(data, at)
        return at

    return Codec(read, skip)


def _blocks(data: bytes, at: int) -> tuple[int, int]:
    """Number of the items that follow, 0 behind the last."""
    count, at = read_long(data, at)
    if count < 0:  # The size of the block in bytes stands before it, for those who skip it whole.
        count, at = -count, skip_long(data, at)
    if count > len(data) - at:  # Every item takes a byte at least.
        raise Incomplete
    return count, at


def _array(item: Codec) -> Codec:
    item_read, item_skip = item

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        values = []
        count, at = _blocks(data, at)
        while count:
            for _ in range(count):
                value, at = item_read(data, at)
                values.append(value)
            count, at = _blocks(data, at)
        return values, at

    def skip(data: bytes, at: int) -> int:
        count, at = _blocks(data, at)
        while count:
            for _ in range(count):
                at = item_skip(data, at)
            count, at = _blocks(data, at)
        return at

    return Codec(read, _skip_twelve(skip) if item_skip is skip_long else skip)


def _skip_twelve(skip: Skipper) -> Skipper:
    """Skip lists of whole numbers; at once where they have the length that Hadoop gives them."""
    match = _TWELVE.match

    def skip_quickly(data: bytes, at: int) -> int:
        found = match(data, at)
        return found.end() if found else skip(data, at)

    return skip_quickly


def _map(value: Codec) -> Codec:
    items = _array(_record([("key", _CODECS["string"]), ("value", value)], _PAIR))

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        pairs, at = items.read(data, at)
        return {pair["key"]: pair["value"] for pair in pairs}, at

    return Codec(read, items.skip)


_PAIR = frozenset({"key", "value"})
