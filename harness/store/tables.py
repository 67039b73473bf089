"""
Records as Parquet tables, and back.

The columns of a table are the fields of its record, so a table never disagrees with its record.
"""

from __future__ import annotations

import types

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from harness.errors import DataError
from harness.records.jsontext import LARGEST
from harness.records.score import ScoreBook
from harness.records.trace import JobTrace, TaskAttempt
from harness.records.trial import Record
from harness.store.files import (
    SCHEMA_VERSION,
    as_record,
    check_version,
    disk,
    json_bytes,
    parse_json,
    read_file,
    validated,
)
from harness.store.pages import MOST_IN_LIST, check_pages, read_footer

R = TypeVar("R", bound=Record)

_AGAIN = "make it again from the raw logs: harness collect FILE"
_VERSION = b"schema_version"

# No table of ours has more.  A history of 20 000 tasks has about a million counters, and no job
# has more than 100 000 tasks.  Text counts as often as it stands in a row: so a report shows it.
_MOST_ROWS, _MOST_COUNTERS = 500_000, 5_000_000
_MOST_TEXT_OF_ROW = 512
_MOST_BYTES = 2**29

# Fields of a job that are neither its attempts nor its counters stand in job.json.
_SCOPES = ("counters", "map_counters", "reduce_counters")
_JOB = tuple(f.name for f in fields(JobTrace) if f.name not in (*_SCOPES, "attempts"))
_ATTEMPT = tuple(f.name for f in fields(TaskAttempt) if f.name != "counters")


def write_traces(folder: Path, traces: Sequence[JobTrace]) -> None:
    """Write `job.json`, `attempts.parquet` and `counters.parquet` into *folder*."""
    jobs = [{name: getattr(t, name) for name in _JOB} for t in traces]
    (folder / "job.json").write_bytes(json_bytes({"schema_version": SCHEMA_VERSION, "jobs": jobs}))
    rows = [{"job_id": t.job_id, **asdict(a)} for t in traces for a in t.attempts]
    _write(folder / "attempts.parquet", _attempt_columns(), rows)
    counters = list(_counter_rows(traces))
    _write(folder / "counters.parquet", _COUNTERS, counters, _MOST_COUNTERS)


def read_traces(folder: Path) -> tuple[JobTrace, ...]:
    """Read what `write_traces` wrote: equal records, in the same order."""
    path = folder / "job.json"
    jobs: Any = parse_json(read_file(path, _AGAIN), path, _AGAIN).get("jobs")
    counters: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in _read(folder / "counters.parquet", _COUNTERS, most_rows=_MOST_COUNTERS):
        key = row["job_id"], row["scope"], row["attempt_id"]
        counters.setdefault(key, {})[row["name"]] = row["value"]
    attempts: dict[str, list[dict[str, Any]]] = {}
    for row in _read(folder / "attempts.parquet", _attempt_columns()):
        job = row.pop("job_id")
        row["counters"] = counters.get((job, "attempt", row["attempt_id"]), {})
        attempts.setdefault(job, []).append(row)
    whole = [_job(values, attempts, counters) for values in jobs] if _objects(jobs) else jobs
    return validated(_traces().validate_python, whole, path, _AGAIN)


_COUNTERS = {"job_id": str, "attempt_id": str, "scope": str, "name": str, "value": int}


def _attempt_columns() -> dict[str, Any]:
    hints = get_type_hints(TaskAttempt)
    return {"job_id": str, **{name: hints[name] for name in _ATTEMPT}}


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


@cache
def _traces() -> TypeAdapter[tuple[JobTrace, ...]]:
    return TypeAdapter(tuple[JobTrace, ...])


def _job(
    values: Mapping[str, Any],
    attempts: Mapping[str, list[dict[str, Any]]],
    counters: Mapping[tuple[str, str, str], dict[str, int]],
) -> dict[str, Any]:
    job = str(values.get("job_id"))
    totals = {scope: counters.get((job, scope, ""), {}) for scope in _SCOPES}
    return {**values, "attempts": attempts.get(job, []), **totals}


def _counter_rows(traces: Iterable[JobTrace]) -> Iterable[dict[str, Any]]:
    for trace in traces:
        owners = [("", scope, getattr(trace, scope)) for scope in _SCOPES]
        owners += [(a.attempt_id, "attempt", a.counters) for a in trace.attempts]
        for attempt, scope, counters in owners:
            row = {"job_id": trace.job_id, "attempt_id": attempt, "scope": scope}
            yield from ({**row, "name": n, "value": v} for n, v in counters.items())


def write_scores(folder: Path, book: ScoreBook) -> None:
    """Write one table per list of the score book into *folder*, and `book.json` for the rest."""
    rest = book.model_dump(mode="json", exclude=set(_score_tables()))
    (folder / "book.json").write_bytes(json_bytes(rest))
    for name, kind in _score_tables().items():
        rows = [row.model_dump(mode="json") for row in getattr(book, name)]
        _write(folder / f"{name}.parquet", _columns(kind), rows)


def read_scores(folder: Path) -> ScoreBook:
    """Read what `write_scores` wrote."""
    fix, path = "score again: harness score FILE", folder / "book.json"
    rest = parse_json(read_file(path, fix), path, fix)
    tables = {
        name: tuple(
            as_record(kind, row, folder, fix)
            for row in _read(folder / f"{name}.parquet", _columns(kind), fix)
        )
        for name, kind in _score_tables().items()
    }
    return as_record(ScoreBook, rest | tables, path, fix)


def _score_tables() -> dict[str, type[Record]]:
    hints = {name: get_type_hints(ScoreBook)[name] for name in ScoreBook.model_fields}
    return {name: get_args(h)[0] for name, h in hints.items() if get_origin(h) is tuple}


def _columns(kind: type[Record]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.model_fields}


def _pyarrow() -> tuple[Any, Any]:
    """Import what is slow to import, and has no types, when it is needed."""
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def _write(
    path: Path,
    columns: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    most_rows: int = _MOST_ROWS,
) -> None:
    pa, pq = _pyarrow()

    schema = _schema(columns).with_metadata({_VERSION: str(SCHEMA_VERSION).encode()})
    try:
        table = pa.Table.from_pylist([{n: row[n] for n in columns} for row in rows], schema=schema)
        if table.nbytes > most_rows * _MOST_TEXT_OF_ROW:
            raise ValueError(f"{table.nbytes} bytes are more than any run has")
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
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


def _schema(columns: Mapping[str, Any]) -> Any:
    pa, _ = _pyarrow()
    return pa.schema([(name, _arrow(hint)) for name, hint in columns.items()])


def _read(
    path: Path, columns: Mapping[str, Any], fix: str = _AGAIN, most_rows: int = _MOST_ROWS
) -> Iterator[dict[str, Any]]:
    """Rows of a table of ours: these columns, and values that fit them."""
    pa, _ = _pyarrow()

    data = pa.py_buffer(read_file(path, fix, most_bytes=_MOST_BYTES))
    try:
        table = _opened(data, columns, path, most_rows).read()
        table.validate(full=True)
        values = [_values(column) for column in table.columns]
        _check_text(table, most_rows)
        _check_values(values, columns)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        what = str(error)[:300]
        raise DataError(f"{path.name} is not a table: {what}", where=str(path), fix=fix) from error
    return (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


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


def _values(column: Any) -> list[Any]:
    """Values of a column; equal texts are one object."""
    found: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            words = [*chunk.dictionary.to_pylist(), None]
            found += [words[n] for n in chunk.indices.fill_null(len(words) - 1).to_pylist()]
        else:
            found += chunk.to_pylist(maps_as_pydicts="strict")
    return found


def _check_text(table: Any, most_rows: int) -> None:
    """Refuse a table whose texts, put down in each row, would be more than any run has."""
    size = 0
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        if hasattr(chunk, "dictionary"):
            words = chunk.dictionary.to_pylist()
            times = chunk.indices.drop_null().value_counts().to_pylist()
            size += sum(len(words[each["values"]]) * each["counts"] for each in times)
    if size > most_rows * _MOST_TEXT_OF_ROW:
        raise ValueError(f"its texts have {size} characters, more than any run")


def _check_values(values: Sequence[Iterable[Any]], columns: Mapping[str, Any]) -> None:
    for (name, hint), column in zip(columns.items(), values, strict=True):
        if hint not in (str, int, bool) and not all(map(_measurable, column)):
            raise ValueError(f"{name} is beyond any number that is measured")


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
