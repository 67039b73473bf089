"""
Records as Parquet tables, and back.

The columns of a table are the fields of its record, so a table never disagrees with its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from harness.records.score import ScoreBook
from harness.records.trace import JobTrace, TaskAttempt
from harness.records.trial import Record
from harness.scoring import METRICS
from harness.store.files import (
    SCHEMA_VERSION,
    as_record,
    json_bytes,
    parse_json,
    read_file,
    validated,
)
from harness.store.parquet import FROM_RAW, read_table, write_table

R = TypeVar("R", bound=Record)

# A history of 20 000 tasks has about a million counters, and no job has more than 100 000 tasks.
_MOST_COUNTERS = 5_000_000

# Fields of a job that are neither its attempts nor its counters stand in job.json.
_SCOPES = ("counters", "map_counters", "reduce_counters")
_JOB = tuple(f.name for f in fields(JobTrace) if f.name not in (*_SCOPES, "attempts"))
_ATTEMPT = tuple(f.name for f in fields(TaskAttempt) if f.name != "counters")


def write_traces(folder: Path, traces: Sequence[JobTrace]) -> None:
    """Write `job.json`, `attempts.parquet` and `counters.parquet` into *folder*."""
    jobs = [{name: getattr(t, name) for name in _JOB} for t in traces]
    (folder / "job.json").write_bytes(json_bytes({"schema_version": SCHEMA_VERSION, "jobs": jobs}))
    rows = [{"job_id": t.job_id, **asdict(a)} for t in traces for a in t.attempts]
    write_table(folder / "attempts.parquet", _attempt_columns(), rows)
    write_table(folder / "counters.parquet", _COUNTERS, _counter_rows(traces), _MOST_COUNTERS)


def read_traces(folder: Path) -> tuple[JobTrace, ...]:
    """Read what `write_traces` wrote: equal records, in the same order."""
    path = folder / "job.json"
    jobs: Any = parse_json(read_file(path, FROM_RAW), path, FROM_RAW).get("jobs")
    counters: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in read_table(folder / "counters.parquet", _COUNTERS, most_rows=_MOST_COUNTERS):
        key = row["job_id"], row["scope"], row["attempt_id"]
        counters.setdefault(key, {})[row["name"]] = row["value"]
    attempts: dict[str, list[dict[str, Any]]] = {}
    for row in read_table(folder / "attempts.parquet", _attempt_columns()):
        job = row.pop("job_id")
        row["counters"] = counters.get((job, "attempt", row["attempt_id"]), {})
        attempts.setdefault(job, []).append(row)
    whole = [_job(values, attempts, counters) for values in jobs] if _objects(jobs) else jobs
    return validated(_traces().validate_python, whole, path, FROM_RAW)


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


# Ends of the columns of a metric, with the fields of its value.
_ENDS = {"": "value", "_low": "low", "_high": "high"}


def write_scores(folder: Path, book: ScoreBook) -> None:
    """
    Write one table per list of the score book into *folder*, and `book.json` for the rest.

    Records that hold lists themselves are no rows of a table: they are of the rest.
    """
    rest = book.model_dump(mode="json", exclude=set(_score_tables()))
    (folder / "book.json").write_bytes(json_bytes(rest))
    for name, kind in _score_tables().items():
        rows = [_row(record) for record in getattr(book, name)]
        write_table(folder / f"{name}.parquet", _columns(kind), rows)


def read_scores(folder: Path) -> ScoreBook:
    """Read what `write_scores` wrote."""
    fix, path = "score again: harness score FILE", folder / "book.json"
    rest = parse_json(read_file(path, fix), path, fix)
    tables = {
        name: tuple(
            as_record(kind, _with_metrics(kind, row), folder, fix)
            for row in read_table(folder / f"{name}.parquet", _columns(kind), fix)
        )
        for name, kind in _score_tables().items()
    }
    return as_record(ScoreBook, rest | tables, path, fix)


def _score_tables() -> dict[str, type[Record]]:
    hints = {name: get_type_hints(ScoreBook)[name] for name in ScoreBook.model_fields}
    kinds = {name: get_args(h)[0] for name, h in hints.items() if get_origin(h) is tuple}
    return {name: kind for name, kind in kinds.items() if _flat(kind)}


def _flat(kind: type[Record]) -> bool:
    return all(get_origin(hint) is not tuple for hint in get_type_hints(kind).values())


def _columns(kind: type[Record]) -> dict[str, Any]:
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
    if "metrics" not in kind.model_fields:
        return row
    values = {name: {key: row.pop(name + end) for end, key in _ENDS.items()} for name in METRICS}
    return {
        **row,
        "metrics": {n: value for n, value in values.items() if value["value"] is not None},
    }
