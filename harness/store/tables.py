"""
Records as Parquet tables, and back: rows with typed columns, written whole.

The columns of a table are the fields of its record, so a table never disagrees with its record.
Pages carry checksums, so a damaged file is found out where it is read.
"""

from __future__ import annotations

import types

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from harness.errors import DataError
from harness.records.score import ScoreBook
from harness.records.trace import JobTrace, TaskAttempt
from harness.records.trial import Record
from harness.scoring import METRICS
from harness.store.files import (
    SCHEMA_VERSION,
    check_version,
    json_bytes,
    os_error_as_machine_error,
    parse_json,
    read_file,
    validate_stored,
)
from harness.text import excerpt

FROM_RAW = "make it again from the raw logs: harness collect FILE"
_RESCORE = "score again: harness score FILE"
_VERSION = b"schema_version"

# Fields of a job that are neither its attempts nor its counters are in job.json.
_SCOPES = ("counters", "map_counters", "reduce_counters")
_JOB = tuple(field.name for field in fields(JobTrace) if field.name not in (*_SCOPES, "attempts"))
_ATTEMPT = tuple(field.name for field in fields(TaskAttempt) if field.name != "counters")
_COUNTERS = {"job_id": str, "attempt_id": str, "scope": str, "name": str, "value": int}


def _pyarrow() -> tuple[Any, Any]:
    """Import what is slow to import, and has no types, when it is needed."""
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def write_table(
    path: Path,
    columns: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    *,
    at_once: int = 100_000,
) -> None:
    """
    Write *rows*, of which *at_once* are held in memory, with *columns* (name -> Python type).

    A value that does not fit its column is `DataError`.
    """
    pa, pq = _pyarrow()
    schema = pa.schema([(name, _arrow_type(hint)) for name, hint in columns.items()])
    schema = schema.with_metadata({_VERSION: str(SCHEMA_VERSION).encode()})
    unread = iter(rows)
    try:
        with (
            os_error_as_machine_error(path),
            pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            while part := [
                {name: row[name] for name in columns} for row in islice(unread, at_once)
            ]:
                writer.write_table(pa.Table.from_pylist(part, schema))
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise DataError(
            f"a value does not fit its column in {path.name}: {excerpt(error, 300)}",
            where=str(path),
            fix="the log it comes from is damaged: look at the trial's raw folder",
        ) from error


def read_table(
    path: Path, columns: Mapping[str, Any], fix: str = FROM_RAW
) -> Iterator[dict[str, Any]]:
    """
    Rows of a table, a part of them in memory at once.

    A damaged file is `DataError`, at once or where the damage is met; *fix* says what to do.
    """
    for part in read_columns(path, columns, fix):
        lists = [column if isinstance(column, list) else column.tolist() for column in part]
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def read_columns(
    path: Path, columns: Mapping[str, Any], fix: str = FROM_RAW
) -> Iterator[list[Any]]:
    """
    `read_table` for tables of millions of rows: the values of each column, part after part.

    Numbers without a gap are arrays, all else lists.
    """
    pa, pq = _pyarrow()
    if not path.exists():
        raise DataError(f"{path.name} is missing", where=str(path), fix=fix)
    schema = pa.schema([(name, _arrow_type(hint)) for name, hint in columns.items()])
    # Equal texts are read once.
    texts = [field.name for field in schema if field.type == pa.string()]
    try:
        with pq.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
            metadata = file.schema_arrow.metadata or {}
            version = metadata.get(_VERSION, b"").decode("ascii", "replace")
            check_version(int(version) if version.isdecimal() else version, path)
            if file.schema_arrow.names != schema.names:
                raise ValueError(f"its columns are not {', '.join(columns)}")
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                table.validate(full=True)
                yield [_values(column) for column in table.columns]
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        what = f"{path.name} is not a table: {excerpt(error, 300)}"
        raise DataError(what, where=str(path), fix=fix) from error


def _values(column: Any) -> Any:
    """Values of a column: an array of numbers, or a list, whose equal texts are one object."""
    pa, _ = _pyarrow()
    if column.type in (pa.int64(), pa.float64()) and not column.null_count:
        return column.to_numpy()
    values: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            words = [*chunk.dictionary.to_pylist(), None]
            indices = chunk.indices.fill_null(len(words) - 1)
            values += [words[index] for index in indices.to_pylist()]
        else:
            values += chunk.to_pylist(maps_as_pydicts="strict")
    return values


def _arrow_type(hint: Any) -> Any:
    """Give the Arrow type of a field: plain values, optional ones, maps and records of them."""
    pa, _ = _pyarrow()
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if hint in plain:
        return plain[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return pa.string()
    if origin in (Union, types.UnionType):
        return _arrow_type(next(arg for arg in args if arg is not type(None)))
    if origin is dict:
        return pa.map_(_arrow_type(args[0]), _arrow_type(args[1]))
    if origin is tuple:
        return pa.list_(_arrow_type(args[0]))
    hints = get_type_hints(hint)
    return pa.struct([(name, _arrow_type(hints[name])) for name in hint.model_fields])


def write_traces(folder: Path, traces: Sequence[JobTrace]) -> None:
    """Write `job.json`, `attempts.parquet` and `counters.parquet` into *folder*."""
    jobs = [{name: getattr(trace, name) for name in _JOB} for trace in traces]
    (folder / "job.json").write_bytes(json_bytes({"schema_version": SCHEMA_VERSION, "jobs": jobs}))
    rows = [
        {"job_id": trace.job_id, **asdict(attempt)}
        for trace in traces
        for attempt in trace.attempts
    ]
    write_table(folder / "attempts.parquet", _attempt_columns(), rows)
    write_table(folder / "counters.parquet", _COUNTERS, _counter_rows(traces))


def _counter_rows(traces: Iterable[JobTrace]) -> Iterator[dict[str, Any]]:
    for trace in traces:
        owners = [("", scope, getattr(trace, scope)) for scope in _SCOPES]
        owners += [(each.attempt_id, "attempt", each.counters) for each in trace.attempts]
        for attempt, scope, counters in owners:
            row = {"job_id": trace.job_id, "attempt_id": attempt, "scope": scope}
            yield from ({**row, "name": name, "value": count} for name, count in counters.items())


def _attempt_columns() -> dict[str, Any]:
    hints = get_type_hints(TaskAttempt)
    return {"job_id": str, **{name: hints[name] for name in _ATTEMPT}}


def read_traces(folder: Path) -> tuple[JobTrace, ...]:
    """Read what `write_traces` wrote: equal records, in the same order."""
    path = folder / "job.json"
    counters: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in read_table(folder / "counters.parquet", _COUNTERS):
        owner = row["job_id"], row["scope"], row["attempt_id"]
        counters.setdefault(owner, {})[row["name"]] = row["value"]
    attempts: dict[str, list[dict[str, Any]]] = {}
    for row in read_table(folder / "attempts.parquet", _attempt_columns()):
        job_id = row.pop("job_id")
        row["counters"] = counters.get((job_id, "attempt", row["attempt_id"]), {})
        attempts.setdefault(job_id, []).append(row)
    document = parse_json(read_file(path, FROM_RAW), path, FROM_RAW)
    jobs = validate_stored(_rows_type().validate_python, document.get("jobs"), path, FROM_RAW)
    for job in jobs:
        job_id = str(job.get("job_id"))
        job |= {scope: counters.get((job_id, scope, ""), {}) for scope in _SCOPES}
        job["attempts"] = attempts.get(job_id, [])
    return validate_stored(_traces_type().validate_python, jobs, path, FROM_RAW)


@cache
def _rows_type() -> TypeAdapter[list[dict[str, Any]]]:
    return TypeAdapter(list[dict[str, Any]])


@cache
def _traces_type() -> TypeAdapter[tuple[JobTrace, ...]]:
    return TypeAdapter(tuple[JobTrace, ...])


# Ends of the columns of a metric, with the fields of its value.
_ENDS = {"": "value", "_low": "low", "_high": "high"}


def write_scores(folder: Path, scores: ScoreBook) -> None:
    """
    Write one table per list of *scores* into *folder*, and `book.json` for the rest.

    Records that hold lists themselves are not rows of a table: they are of the rest.
    """
    tables = _score_tables()
    rest = scores.model_dump(mode="json", exclude=set(tables))
    (folder / "book.json").write_bytes(json_bytes(rest))
    for name, kind in tables.items():
        rows = [_row(record) for record in getattr(scores, name)]
        write_table(folder / f"{name}.parquet", _record_columns(kind), rows)


def read_scores(folder: Path) -> ScoreBook:
    """Read what `write_scores` wrote."""
    path = folder / "book.json"
    rest = parse_json(read_file(path, _RESCORE), path, _RESCORE)
    tables = {
        name: [
            _with_metrics(kind, row)
            for row in read_table(folder / f"{name}.parquet", _record_columns(kind), _RESCORE)
        ]
        for name, kind in _score_tables().items()
    }
    return validate_stored(ScoreBook.model_validate, rest | tables, folder, _RESCORE)


def _record_columns(kind: type[Record]) -> dict[str, Any]:
    """Columns of a record's fields; each metric of a summary has a column, and its interval two."""
    hints = get_type_hints(kind)
    columns = {name: hints[name] for name in kind.model_fields if name != "metrics"}
    if "metrics" in hints:
        columns |= {name + end: float | None for name in METRICS for end in _ENDS}
    return columns


def _row(record: Record) -> dict[str, Any]:
    row = record.model_dump(mode="json")
    if (metrics := row.pop("metrics", None)) is not None:
        for name in METRICS:
            row |= {name + end: metrics.get(name, {}).get(key) for end, key in _ENDS.items()}
    return row


def _with_metrics(kind: type[Record], row: dict[str, Any]) -> dict[str, Any]:
    if "metrics" in kind.model_fields:
        metrics = {
            name: {key: row.pop(name + end) for end, key in _ENDS.items()} for name in METRICS
        }
        defined = {name: metric for name, metric in metrics.items() if metric["value"] is not None}
        row["metrics"] = defined
    return row


def _score_tables() -> dict[str, type[Record]]:
    """The lists of a score book whose records are flat."""
    hints = {name: get_type_hints(ScoreBook)[name] for name in ScoreBook.model_fields}
    kinds = {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is tuple}
    return {
        name: kind
        for name, kind in kinds.items()
        if all(get_origin(hint) is not tuple for hint in _record_columns(kind).values())
    }
