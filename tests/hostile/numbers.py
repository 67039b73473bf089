"""
Numbers that nobody measures, in the place of those of a real file: whatever else is as it was.

A file with one such number passes more readers than a damaged one, and so comes farther: into
scores, reports, figures, tables and bundles.
"""

from __future__ import annotations

import gzip
import json
import re

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from pyarrow import ArrowException, BufferReader, Table, array, parquet

from tests.hostile.mutate import NUMBERS

# As they stand in a text: what JSON has no number for, other digits, and what reads as a number.
WRITTEN = (
    b"1e999", b"-1e999", b"NaN", b"Infinity", b"-0.0", b"9223372036854775808", b"1e308", b"5e-324",
    b"-1", b"0", b"1e18", b"253402300800", b"1" * 400, "\u0661\u0662".encode(), b"3_0.6", b"0x10",
    b'"\\u0661\\u0662"', b'"1e999"', b"2147483648", b"1.7976931348623157e308", b"true", b"null",
)  # fmt: skip
_NUMBER = re.compile(rb"(?<![\w.+-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_FLOATS = (0.0, -0.0, -1.0, 1e15, 1e100, 1e308, -1e308, 5e-324, 253402300800.0, float("nan"),
           float("inf"), float("-inf"))  # fmt: skip
_INTEGERS = (0, -1, 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))


def in_text(data: bytes, _: bytes, random: Random) -> bytes:
    """*data* with one to three of its numbers replaced by others, as they are written."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = [match.span() for match in _NUMBER.finditer(data)]
        if not places:
            return data
        start, end = random.choice(places)
        data = data[:start] + random.choice(WRITTEN) + data[end:]
    return data


def in_packed(data: bytes, other: bytes, random: Random) -> bytes:
    """The same in a text that gzip has compressed."""
    return gzip.compress(in_text(gzip.decompress(data), other, random), 1, mtime=0)


def in_json(data: bytes, other: bytes, random: Random) -> bytes:
    """The same in JSON, or in one of its lines; numbers are chosen by field, not by length."""
    try:
        if data.startswith((b"{\n", b"[\n")):
            return json.dumps(_with_numbers(json.loads(data), random), indent=2).encode() + b"\n"
        lines = data.splitlines()
        place = random.randrange(len(lines))
        lines[place] = json.dumps(_with_numbers(json.loads(lines[place]), random)).encode()
    except (ValueError, IndexError):
        return in_text(data, other, random)
    return b"\n".join(lines) + b"\n"


def _with_numbers(value: Any, random: Random) -> Any:
    """*value* with one to three numbers replaced; now and then all that have the same name."""
    places = [*_places(value, ())]
    if not places:
        return value
    for _ in range(random.choice((1, 1, 2, 3))):
        number = random.choice(NUMBERS)
        chosen = random.choice(places)
        alike = [chosen]
        if random.random() < 0.3:
            alike = [place for place in places if place[-1] == chosen[-1]]
        for place in alike:
            value = _replaced(value, place, number)
    return value


def _places(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Keys that lead to each number in *value*."""
    if isinstance(value, bool | str) or value is None:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*place, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _places(inner, (*place, position))
    elif place and place[-1] != "schema_version":
        yield place


def _replaced(value: Any, place: Sequence[Any], number: Any) -> Any:
    if not place:
        return number
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[place[0]] = _replaced(changed[place[0]], place[1:], number)
    return changed


def in_table(data: bytes, _: bytes, random: Random) -> bytes:
    """A Parquet table with numbers replaced in one to three cells, or in a whole column."""
    from pyarrow import BufferOutputStream

    table = parquet.read_table(BufferReader(data))
    for _ in range(random.choice((1, 1, 2, 3))):
        chosen = [field for field in table.schema if str(field.type) in ("double", "int64")]
        if not chosen or not table.num_rows:
            return data
        field = random.choice(chosen)
        numbers = _FLOATS if str(field.type) == "double" else _INTEGERS
        column = table[field.name].to_pylist()
        if random.random() < 0.2:
            column = [random.choice(numbers)] * len(column)
        else:
            column[random.randrange(len(column))] = random.choice(numbers)
        position = table.schema.get_field_index(field.name)
        table = table.set_column(position, field, array(column, field.type))
    return _written(table, BufferOutputStream())


def _written(table: Table, stream: Any) -> bytes:
    try:
        parquet.write_table(table, stream, compression="zstd", write_page_checksum=True)
    except (ArrowException, ValueError):
        return b"PAR1"
    return bytes(stream.getvalue())
