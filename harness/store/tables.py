"""
Records as Parquet tables, and back.

The columns of a table are the fields of its record, so a table never disagrees with its record.
"""

from __future__ import annotations

import types

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from harness.errors import DataError
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
)

R = TypeVar("R", bound=Record)

_AGAIN = "make it again from the raw logs: harness collect FILE"
_VERSION = b"schema_version"

# Fields of a job that are neither its attempts nor its counters stand in job.json.
_SCOPES = ("counters", "map_counters", "reduce_counters")
_JOB = tuple(f.name for f in fields(JobTrace) if f.name not in (*_SCOPES, "attempts"))
_ATTEMPT = tuple(f.name for f in fields(TaskAttempt) if f.name != "counters")


def write_traces(folder: Path, traces: Sequence[JobTrace]) -> None:
    """Write `job.json`, `attempts.parquet` and `counters.parquet` into *folder*."""
    jobs = [{name: getattr(t, name) for name in _JOB} for t in traces]
    (folder / "job.json").write_bytes(json_bytes({"schema_version": SCHEMA_VERSION, "jobs": jobs}))
    hints = get_type_hints(TaskAttempt)
    columns = {"job_id": str, **{name: hints[name] for name in _ATTEMPT}}
    rows = [{"job_id": t.job_id, **asdict(a)} for t in traces for a in t.attempts]
    _write(folder / "attempts.parquet", columns, rows)
    columns = {"job_id": str, "attempt_id": str, "scope": str, "name": str, "value": int}
    _write(folder / "counters.parquet", columns, list(_counter_rows(traces)))


def read_traces(folder: Path) -> tuple[JobTrace, ...]:
    """Read what `write_traces` wrote: equal records, in the same order."""
    path = folder / "job.json"
    jobs = parse_json(read_file(path, _AGAIN), path, _AGAIN).get("jobs")
    counters: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in _read(folder / "counters.parquet"):
        key = row["job_id"], row["scope"], row["attempt_id"]
        counters.setdefault(key, {})[row["name"]] = row["value"]
    attempts: dict[str, list[TaskAttempt]] = {}
    try:
        for row in _read(folder / "attempts.parquet"):
            job = row.pop("job_id")
            own = counters.get((job, "attempt", row["attempt_id"]), {})
            attempts.setdefault(job, []).append(TaskAttempt(**row, counters=own))
        return tuple(_job(values, attempts, counters) for values in jobs or ())
    except (TypeError, KeyError) as error:
        raise DataError(
            f"the tables of this trace do not fit together: {error}", where=str(folder), fix=_AGAIN
        ) from error


def _job(
    values: Mapping[str, Any],
    attempts: Mapping[str, list[TaskAttempt]],
    counters: Mapping[tuple[str, str, str], dict[str, int]],
) -> JobTrace:
    job = values["job_id"]
    totals: dict[str, Any] = {scope: counters.get((job, scope, ""), {}) for scope in _SCOPES}
    return JobTrace(**values, attempts=tuple(attempts.get(job, ())), **totals)


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
        _write(folder / f"{name}.parquet", get_type_hints(kind), rows, kind)


def read_scores(folder: Path) -> ScoreBook:
    """Read what `write_scores` wrote."""
    fix, path = "score again: harness score FILE", folder / "book.json"
    rest = parse_json(read_file(path, fix), path, fix)
    tables = {
        name: tuple(
            as_record(kind, row, folder, fix) for row in _read(folder / f"{name}.parquet", fix)
        )
        for name, kind in _score_tables().items()
    }
    return as_record(ScoreBook, rest | tables, path, fix)


def _score_tables() -> dict[str, type[Record]]:
    hints = {name: get_type_hints(ScoreBook)[name] for name in ScoreBook.model_fields}
    return {name: get_args(h)[0] for name, h in hints.items() if get_origin(h) is tuple}


def _pyarrow() -> tuple[Any, Any]:
    """Import what is slow to import, and has no types, when it is needed."""
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def _write(
    path: Path, columns: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], kind: Any = None
) -> None:
    pa, pq = _pyarrow()

    known = columns if kind is None else {n: columns[n] for n in kind.model_fields}
    schema = pa.schema(
        [(name, _arrow(hint)) for name, hint in known.items()],
        metadata={_VERSION: str(SCHEMA_VERSION).encode()},
    )
    try:
        table = pa.Table.from_pylist([{n: row[n] for n in known} for row in rows], schema=schema)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError) as error:
        raise DataError(
            f"a value does not fit its column in {path.name}: {error}",
            where=str(path),
            fix="the log it comes from is damaged: look at the trial's raw folder",
        ) from error
    with disk(path):
        pq.write_table(table, path, compression="zstd")


def _read(path: Path, fix: str = _AGAIN) -> list[dict[str, Any]]:
    pa, pq = _pyarrow()

    data = read_file(path, fix)
    try:
        table = pq.read_table(pa.BufferReader(data))
        rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, OSError, KeyError, UnicodeError) as error:
        raise DataError(f"{path.name} is not a table: {error}", where=str(path), fix=fix) from error
    version = (table.schema.metadata or {}).get(_VERSION, b"").decode("ascii", "replace")
    check_version(int(version) if version.isdecimal() else version, path)
    return rows


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
