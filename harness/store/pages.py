"""
How much a Parquet file unpacks to, known before any of it is unpacked.

A file of kilobytes can hold a page of gigabytes, or one long text that a million rows repeat, and
its footer may claim what it likes.  The header of each page is what a reader goes by, so that is
what is added up here.  Footer and headers are Thrift structs in compact form; what Arrow does not
write into one is refused, so that nothing means one thing here and another there.  They are read
here because pyarrow ends the process where it meets some footers that contradict themselves.

    https://parquet.apache.org/docs/file-format/metadata/
    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.units import format_bytes

# Of one file: as many columns, and as many groups of rows.
MOST_IN_LIST = 512
_MOST_FOOTER = 2**20
_MOST_PAGES = 20_000

_WRITER, _ZSTD = b"parquet-cpp-arrow", 6
_MAGIC, _TAIL = b"PAR1", 8  # the length of the footer, and the magic number

# Kinds of page, each with the field of its own header, and the encodings that we meet in them:
# plain, dictionary, runs, dictionary.  Others repeat parts of a text at no cost.
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_OWN = {_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}
_ENCODINGS = frozenset({0, 2, 3, 8})

# Types of a field in Thrift's compact form.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _STRUCT = *range(1, 10), 12
_DEEPEST, _LAST_FIELD = 8, 20

# Fields of a struct by number and type: a field of another type is another field.
Struct = dict[tuple[int, int], Any]


class _DamagedError(ValueError):
    """What stands here is not what Arrow writes."""

    def __init__(self, what: str = "a page has no header") -> None:
        super().__init__(what)


@dataclass(frozen=True)
class Page:
    """Header of a page: how many values it holds, and its bytes, packed and unpacked."""

    values: int
    packed: int
    unpacked: int
    is_dictionary: bool


@dataclass(frozen=True)
class Column:
    """One column in one group of rows: its values, and where its pages stand."""

    values: int
    begin: int
    end: int


@dataclass(frozen=True)
class Footer:
    """What the end of a file claims: the rows, and its columns with the rows of their group."""

    rows: int
    columns: tuple[Column, ...]


def read_footer(data: memoryview) -> Footer:
    """Footer of a Parquet file of ours; ``ValueError`` for any other."""
    size = int.from_bytes(data[-_TAIL:-4], "little")
    if bytes(data[-4:]) != _MAGIC or not 0 < size <= min(_MOST_FOOTER, len(data) - _TAIL):
        raise _DamagedError(f"its footer has {format_bytes(size)}")
    try:
        fields, _ = _struct(data, len(data) - _TAIL - size, 0)
        return _footer(fields, len(data) - _TAIL - size)
    except (KeyError, IndexError, TypeError) as error:
        raise _DamagedError("it has no footer") from error


def _footer(fields: Struct, end: int) -> Footer:
    if not fields[6, _BINARY].startswith(_WRITER):
        raise _DamagedError("another program wrote it")
    groups, rows = fields[4, _LIST], fields[3, _I64]
    counts = [group[3, _I64] for group in groups]
    if min(counts, default=0) < 0 or sum(counts) != rows:
        raise _DamagedError("its groups of rows do not make up its rows")
    if any(len(group[1, _LIST]) != len(groups[0][1, _LIST]) for group in groups):
        raise _DamagedError("a group of rows lacks columns")
    columns = (
        _column(chunk, count, end)
        for group, count in zip(groups, counts, strict=True)
        for chunk in group[1, _LIST]
    )
    return Footer(rows, tuple(columns))


def _column(chunk: Struct, rows: int, limit: int) -> Column:
    about = chunk[3, _STRUCT]
    if chunk.get((1, _BINARY)) or about[4, _I32] != _ZSTD or about[5, _I64] != rows:
        raise _DamagedError("a column is not as it is written here")
    begin, dictionary = about[9, _I64], about.get((11, _I64), 0)
    if 0 < dictionary < begin:
        begin = dictionary
    end = begin + about[7, _I64]
    if rows and not 4 <= begin <= end <= limit:
        raise _DamagedError("a column lies outside the file")
    return Column(rows, begin, end)


def check_pages(data: memoryview, footer: Footer, *, most_rows: int, most_bytes: int) -> None:
    """Refuse, with `ValueError`, a file with more rows or unpacked bytes than these."""
    if footer.rows > most_rows:
        raise ValueError(f"it has {footer.rows} rows, more than any run")
    pages = unpacked = 0
    for column in footer.columns:
        for page in column_pages(data, column):
            pages, unpacked = pages + 1, unpacked + page.unpacked
            if unpacked > most_bytes or pages > _MOST_PAGES:
                raise ValueError(f"it unpacks to {format_bytes(unpacked)} or more, beyond any run")


def column_pages(data: memoryview, column: Column) -> Iterator[Page]:
    """Headers of the pages of one *column*: together they hold its values, and nothing else."""
    at, values = column.begin, 0
    while column.values and at < column.end:
        page, at = _page(data, at)
        at += page.packed
        values += 0 if page.is_dictionary else page.values
        if at > column.end or max(page.values, values) > column.values:
            raise _DamagedError("a page is larger than its column")
        yield page
    if values != column.values:
        raise _DamagedError("a column has fewer values than rows")


def _page(data: memoryview, at: int) -> tuple[Page, int]:
    """Give the page whose header begins at byte *at*, and where its header ends."""
    try:
        header, end = _struct(data, at, 0)
        kind = header[1, _I32]
        own = header[_OWN[kind], _STRUCT]
        encoding = own[4 if kind == _DATA_2 else 2, _I32]
        page = Page(own[1, _I32], header[3, _I32], header[2, _I32], kind == _DICTIONARY)
    except (KeyError, IndexError, TypeError) as error:
        raise _DamagedError from error
    if encoding not in _ENCODINGS or min(page.values, page.packed, page.unpacked) < 0:
        raise _DamagedError("a page is not as it is written here")
    return page, end


def _struct(data: memoryview, at: int, depth: int) -> tuple[Struct, int]:
    """Fields of the struct that begins at byte *at*, and where it ends."""
    fields: Struct = {}
    number = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        number += step
        # Without a step the number would follow, and could be one that was there before.
        if not step or number > _LAST_FIELD or depth == _DEEPEST:
            raise _DamagedError
        if kind in (_TRUE, _FALSE):  # the type is the value
            at += 1
        else:
            fields[number, kind], at = _value(data, at + 1, kind, depth)
    return fields, at + 1


def _value(data: memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind == _LIST:
        return _list(data, at, depth + 1)
    if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE):
        return None, at + (8 if kind == _DOUBLE else 1)
    number, at = _varint(data, at)
    if kind == _BINARY and at + number <= len(data):
        return bytes(data[at : at + number]), at + number
    if (kind in (_I16, _I32) and number < 2**32) or (kind == _I64 and number < 2**64):
        return (number >> 1) ^ -(number & 1), at
    raise _DamagedError


def _list(data: memoryview, at: int, depth: int) -> tuple[list[Any], int]:
    size, kind = divmod(data[at], 16)
    size, at = _varint(data, at + 1) if size == 15 else (size, at + 1)
    if size > MOST_IN_LIST or depth == _DEEPEST:
        raise _DamagedError("a list is longer than any of ours")
    found = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth)
        found.append(value)
    return found, at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    raise _DamagedError
