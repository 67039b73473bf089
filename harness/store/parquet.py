"""
Parquet files of ours: rows with typed columns, written whole, and read only where they fit.

A file is looked at before anything of it is unpacked: a small file can unpack to gigabytes.
"""

from __future__ import annotations

import types

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from harness.errors import DataError
from harness.records.jsontext import LARGEST
from harness.store.files import SCHEMA_VERSION, check_version, disk, read_file
from harness.store.pages import MOST_IN_LIST, check_pages, read_footer

FROM_RAW = "make it again from the raw logs: harness collect FILE"
_VERSION = b"schema_version"

# No table of ours has more, where nothing else is said.  Text counts as often as it stands in a
# row: so a report shows it.
MOST_ROWS = 500_000
_MOST_TEXT_OF_ROW = 512
_MOST_BYTES = 2**29


def _pyarrow() -> tuple[Any, Any]:
    """Import what is slow to import, and has no types, when it is needed."""
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def write_table(
    path: Path,
    columns: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    most_rows: int = MOST_ROWS,
    *,
    at_once: int = 100_000,
) -> None:
    """
    Write *rows*, of which *at_once* are held in memory, with *columns* (name -> Python type).

    A value that does not fit its column, and more than could be read again, is `DataError`.
    """
    pa, pq = _pyarrow()

    schema = _schema(columns).with_metadata({_VERSION: str(SCHEMA_VERSION).encode()})
    sink, size = pa.BufferOutputStream(), 0
    try:
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            for part in _parts(rows, at_once):
                table = pa.Table.from_pylist([{n: r[n] for n in columns} for r in part], schema)
                size += table.nbytes
                if size > most_rows * _MOST_TEXT_OF_ROW:
                    raise ValueError(f"{size} bytes are more than any run has")
                writer.write_table(table)
        data = sink.getvalue()
        # What could not be read again is told now, while there is something to do about it.
        _opened(data, columns, path, most_rows)
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise DataError(
            f"a value does not fit its column in {path.name}: {error}",
            where=str(path),
            fix="the log it comes from is damaged: look at the trial's raw folder",
        ) from error
    with disk(path):
        path.write_bytes(data)


def _parts(rows: Iterable[Mapping[str, Any]], at_once: int) -> Iterator[list[Mapping[str, Any]]]:
    """Lists of *rows*, one at least: a table without rows has its columns, too."""
    waiting = iter(rows)
    part = list(islice(waiting, at_once))
    while True:
        yield part
        part = list(islice(waiting, at_once))
        if not part:
            return


def _schema(columns: Mapping[str, Any]) -> Any:
    pa, _ = _pyarrow()
    return pa.schema([(name, _arrow(hint)) for name, hint in columns.items()])


def read_table(
    path: Path, columns: Mapping[str, Any], fix: str = FROM_RAW, most_rows: int = MOST_ROWS
) -> Iterator[dict[str, Any]]:
    """
    Rows of a table of ours, a part of them in memory at once: these columns, and values that fit.

    What is wrong with the file is `DataError`, at once or where it is met; *fix* says what to do.
    """
    for part in read_columns(path, columns, fix, most_rows):
        lists = [column if isinstance(column, list) else column.tolist() for column in part]
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def read_columns(
    path: Path, columns: Mapping[str, Any], fix: str = FROM_RAW, most_rows: int = MOST_ROWS
) -> Iterator[list[Any]]:
    """
    `read_table` for tables of millions of rows: the values of each column, part after part.

    Numbers without a gap are arrays, all else lists.
    """
    pa, _ = _pyarrow()

    data = pa.py_buffer(read_file(path, fix, most_bytes=_MOST_BYTES))
    try:
        file, size = _opened(data, columns, path, most_rows), 0
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            table.validate(full=True)
            values = [_values(column) for column in table.columns]
            size += _text_size(table)
            if size > most_rows * _MOST_TEXT_OF_ROW:
                raise ValueError(f"its texts have {size} characters, more than any run")
            _check_values(values, columns)
            yield values
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        what = str(error)[:300]
        raise DataError(f"{path.name} is not a table: {what}", where=str(path), fix=fix) from error


def _opened(data: Any, columns: Mapping[str, Any], path: Path, most_rows: int) -> Any:
    """A Parquet file of ours that fits into memory; equal texts are read once."""
    pa, pq = _pyarrow()

    view, schema = memoryview(data).cast("B"), _schema(columns)
    footer = read_footer(view)
    texts = [field.name for field in schema if field.type == pa.string()]
    limits = {"thrift_container_size_limit": MOST_IN_LIST}
    file = pq.ParquetFile(pa.BufferReader(data), **limits)
    version = (file.schema_arrow.metadata or {}).get(_VERSION, b"").decode("ascii", "replace")
    check_version(int(version) if version.isdecimal() else version, path)
    if not file.schema_arrow.remove_metadata().equals(schema):
        raise ValueError(f"its columns are not {', '.join(columns)}")
    check_pages(view, footer, most_rows=most_rows, most_bytes=_MOST_BYTES)
    return pq.ParquetFile(
        pa.BufferReader(data), metadata=file.metadata, read_dictionary=texts, **limits
    )


def _values(column: Any) -> Any:
    """Values of a column: an array of numbers, or a list, whose equal texts are one object."""
    pa, _ = _pyarrow()

    if column.type in (pa.int64(), pa.float64()) and not column.null_count:
        return column.to_numpy()
    found: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            words = [*chunk.dictionary.to_pylist(), None]
            found += [words[n] for n in chunk.indices.fill_null(len(words) - 1).to_pylist()]
        else:
            found += chunk.to_pylist(maps_as_pydicts="strict")
    return found


def _text_size(table: Any) -> int:
    """Characters of all texts of *table*, put down in each row."""
    size = 0
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if hasattr(chunk, "dictionary"):
            words = chunk.dictionary.to_pylist()
            times = chunk.indices.drop_null().value_counts().to_pylist()
            size += sum(len(words[each["values"]]) * each["counts"] for each in times)
    return size


def _check_values(values: Sequence[Any], columns: Mapping[str, Any]) -> None:
    for (name, hint), column in zip(columns.items(), values, strict=True):
        if hint not in (str, int, bool) and not _all_measurable(column):
            raise ValueError(f"{name} is beyond any number that is measured")


def _all_measurable(column: Any) -> bool:
    if isinstance(column, list):
        return all(map(_measurable, column))
    return bool((abs(column) <= LARGEST).all())  # False for NaN, too


def _measurable(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_measurable, value.values()))
    return not isinstance(value, float) or abs(value) <= LARGEST  # False for NaN, too


def _arrow(hint: Any) -> Any:
    """Give the Arrow type of a field: plain values, optional ones, maps and records of them."""
    pa, _ = _pyarrow()
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if hint in plain:
        return plain[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return pa.string()
    if origin in (Union, types.UnionType):
        return _arrow(next(a for a in args if a is not type(None)))
    if origin is dict:
        return pa.map_(_arrow(args[0]), _arrow(args[1]))
    if origin is tuple:
        return pa.list_(_arrow(args[0]))
    hints = get_type_hints(hint)
    return pa.struct([(n, _arrow(hints[n])) for n in hint.model_fields])
