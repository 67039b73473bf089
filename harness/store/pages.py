"""
How much a Parquet file unpacks to, known before any of it is unpacked.

A file of kilobytes can hold a page of gigabytes, or one long text that a million rows repeat, and
its footer may claim what it likes.  The header of each page is what a reader goes by, so that is
what is added up here.  It is a Thrift struct in compact form; what Arrow does not write into one
is refused, so that no header means one thing here and another there.

    https://parquet.apache.org/docs/file-format/data-pages/
    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.units import format_bytes

# Of one file: two lists and a struct for each column and each group of rows.
MOST_IN_LIST = 64
_MOST_FOOTER = 2**20
_MOST_PAGES = 20_000

_WRITER, _CODEC = "parquet-cpp-arrow", "ZSTD"
_TAIL = 8  # length of the footer, and a magic number

# Kinds of page, each with the field of its own header, and the encodings that we meet in them:
# plain, dictionary, runs, dictionary.  Others repeat parts of a text at no cost.
_KINDS = {0: 5, 2: 7, 3: 8}
_ENCODINGS = frozenset({0, 2, 3, 8})

# Types of a field in Thrift's compact form.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12
_DEEPEST, _LAST_FIELD = 3, 20


@dataclass(frozen=True)
class Page:
    """Header of a page: how many values it holds, and its bytes, packed and unpacked."""

    values: int
    packed: int
    unpacked: int
    is_dictionary: bool


def check_footer(data: memoryview) -> None:
    """Refuse, with `ValueError`, a footer that would take more memory than a file of ours."""
    size = int.from_bytes(data[-_TAIL:-4], "little")
    if size > _MOST_FOOTER:
        raise ValueError(f"its footer has {format_bytes(size)}")


def check_pages(data: memoryview, metadata: Any, *, most_rows: int, most_bytes: int) -> None:
    """
    Refuse, with `ValueError`, a file with more rows or unpacked bytes than these.

    *metadata* is what pyarrow read from the footer of *data*.
    """
    if not metadata.created_by.startswith(_WRITER):
        raise ValueError("another program wrote it")
    if metadata.num_rows > most_rows:
        raise ValueError(f"it has {metadata.num_rows} rows, more than any run")
    unpacked = 0
    for count, page in enumerate(_all_pages(data, metadata)):
        unpacked += page.unpacked
        if unpacked > most_bytes or count > _MOST_PAGES:
            raise ValueError(f"it unpacks to {format_bytes(unpacked)} or more, beyond any run")


def _all_pages(data: memoryview, metadata: Any) -> Iterator[Page]:
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    rows = [group.num_rows for group in groups]
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise ValueError("its groups of rows do not make up its rows")
    for group in groups:
        if group.num_columns != metadata.num_columns:
            raise ValueError("a group of rows lacks columns")
        for n in range(metadata.num_columns):
            yield from _pages(data, group.column(n), group.num_rows)


def _pages(data: memoryview, column: Any, rows: int) -> Iterator[Page]:
    """Headers of the pages of one *column* in a group of so many *rows*."""
    if column.compression != _CODEC or column.num_values != rows or column.file_path:
        raise ValueError("a column is not as it is written here")
    if not rows:
        return
    at = column.data_page_offset
    dictionary = column.dictionary_page_offset
    if dictionary and 0 < dictionary < at:
        at = dictionary
    end, values = at + column.total_compressed_size, 0
    if not 4 <= at <= end <= len(data) - _TAIL:
        raise ValueError("a column lies outside the file")
    while at < end:
        page, at = _page(data, at)
        at += page.packed
        values += 0 if page.is_dictionary else page.values
        if at > end or max(page.values, values) > rows:
            raise ValueError("a page is larger than its column")
        yield page
    if values != rows:
        raise ValueError("a column has fewer values than rows")


def _page(data: memoryview, at: int) -> tuple[Page, int]:
    """Give the page whose header begins at byte *at*, and where its header ends."""
    try:
        header, end = _struct(data, at, 0)
        own = header[_KINDS[header[1]]]
        is_dictionary = header[1] == 2
        values, encoding = own[1], own[4 if header[1] == 3 else 2]
        page = Page(values, header[3], header[2], is_dictionary)
        if encoding not in _ENCODINGS or min(values, page.packed, page.unpacked) < 0:
            raise ValueError("a page is not as it is written here")
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("a page has no header") from error
    return page, end


def _struct(data: memoryview, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Fields of a struct by their numbers, and where it ends; only what is needed of each."""
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        number += step
        # Without a step the number would follow, and could be one that was there before.
        if not step or number > _LAST_FIELD or depth == _DEEPEST:
            raise ValueError("a page has no header")
        fields[number], at = _field(data, at + 1, kind, depth)
    return fields, at + 1


def _field(data: memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):  # the type is the value
        return None, at
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (_BYTE, _DOUBLE):
        return None, at + (1 if kind == _BYTE else 8)
    number, at = _varint(data, at)
    if kind == _BINARY:
        return None, at + number
    if kind == _I32 and number < 2**32:
        return (number >> 1) ^ -(number & 1), at
    if kind in (_I16, _I64):
        return None, at
    raise ValueError("a page has no header")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        value, at = value | (byte & 0x7F) << shift, at + 1
        if byte < 0x80:
            return value, at
    raise ValueError("a page has no header")
