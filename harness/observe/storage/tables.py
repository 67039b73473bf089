"""
Records as Parquet tables, and back: rows with typed columns, written whole (docs/results.md).

The columns of a table are the fields of its record, so a table never disagrees with its record.
Pages carry checksums, so a damaged file is found out where it is read.  The rows of an attempt are
consecutive, so each recording is read without the rest in memory.
"""

from __future__ import annotations

import types

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from harness.base.errors import DataError
from harness.base.records.tasks import RecordLoop, SegmentTimes, Span, TaskSpans, UnitTimes
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import LATEST_S, SCHEMA_VERSION
from harness.base.text import excerpt
from harness.observe.profiling.task_times import recorded_segments
from harness.observe.storage.files import json_bytes, os_error_as_machine_error
from harness.observe.storage.opener import MOST_WHOLE_BYTES, Opener

AT_ONCE = 100_000
FROM_RAW = "make it again from the raw logs: harness collect FILE"
_LARGE = 10_000  # rows

# Fields of a job that are neither its attempts nor its counters are in job.json.
_SCOPES = ("counters", "map_counters", "reduce_counters")
_APART = {*_SCOPES, "attempts", "clocks"}
_JOB = tuple(field.name for field in fields(JobTrace) if field.name not in _APART)
_COUNTERS = {"job_id": str, "attempt_id": str, "scope": str, "name": str, "value": int}
_UNITS = {"attempt_id": str, "unit_records": int, "unit": int, "seconds": float}


def _columns(record_type: type, *without: str) -> dict[str, Any]:
    """Columns of the fields of *record_type*, a dataclass or a named tuple, by their types."""
    hints = get_type_hints(record_type)
    return {column: hint for column, hint in hints.items() if column not in without}


_LOOP = _columns(RecordLoop)
_TASK = {**_columns(TaskSpans, "loop", "spans"), **_LOOP}
_LATER = ("cpu_at_main_s", "cpu_at_end_s")  # older recordings are without them
_SPAN = {"attempt_id": str, "place": int, **_columns(Span)}
_SEGMENT = {"attempt_id": str, **_columns(SegmentTimes)}
_ATTEMPT = {"job_id": str, **_columns(TaskAttempt, "counters")}
_BY_NAME = {"attempts": _ATTEMPT, "spans": _SPAN}
_adapter = cache(TypeAdapter)


def write_table(
    file_path: Path, columns: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write *rows* with *columns* (name -> type); `DataError`: a value does not fit its column."""
    import pyarrow as arrow

    from pyarrow import parquet

    schema = arrow.schema([(column, _arrow_type(hint)) for column, hint in columns.items()])
    unread = iter(rows)
    try:
        with (
            os_error_as_machine_error(file_path),
            parquet.ParquetWriter(
                file_path, schema, compression="zstd", write_page_checksum=True
            ) as writer,
        ):
            while batch := [
                {column: table_row[column] for column in columns}
                for table_row in islice(unread, AT_ONCE)
            ]:
                writer.write_table(arrow.Table.from_pylist(batch, schema))
    except (arrow.ArrowException, ValueError, OverflowError, TypeError) as error:
        raise DataError(
            f"a value does not fit its column in {file_path.name}: {excerpt(error, 300)}",
            where=str(file_path),
            fix="the log it comes from is damaged: look at the trial's raw folder",
        ) from error


def read_table(
    opener: Opener, file_path: Path, columns: Mapping[str, Any], later: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Rows of a table, a part of them in memory at once; `DataError` where damage is met."""
    for batch in read_columns(opener, file_path, columns, later):
        lists = [column if isinstance(column, list) else column.tolist() for column in batch]
        for table_row in zip(*lists, strict=True):
            yield dict(zip(columns, table_row, strict=True))


def read_columns(
    opener: Opener, file_path: Path, columns: Mapping[str, Any], later: Collection[str] = ()
) -> Iterator[list[Any]]:
    """
    Columns of a table, part after part: arrays of numbers without a gap, else lists.

    Those that came *later* may be absent from an older table: no row has a value then.
    """
    import pyarrow as arrow

    from pyarrow import parquet

    schema = arrow.schema([(column, _arrow_type(hint)) for column, hint in columns.items()])
    # Equal texts are read once.
    is_text = {field.name: field.type == arrow.string() for field in schema}
    texts = [name for name in schema.names if is_text[name] and name not in later]
    try:
        with (
            opener.open(file_path, FROM_RAW, MOST_WHOLE_BYTES) as stream,
            parquet.ParquetFile(
                stream, read_dictionary=texts, page_checksum_verification=True
            ) as file,
        ):
            if unknown := set(file.schema_arrow.names) - set(schema.names):
                what = f"the column '{excerpt(min(unknown))}' is not known here"
                raise opener.newer_error(what, file_path)
            names = file.schema_arrow.names
            if names != [name for name in schema.names if name in names or name not in later]:
                raise ValueError(f"its columns are not {', '.join(columns)}")
            for group in range(file.num_row_groups):
                # Threads cost more than they save where a table is small, and most are.
                is_large = file.metadata.row_group(group).num_rows > _LARGE
                table = file.read_row_group(group, use_threads=is_large)
                table.validate(full=True)
                for name in names:
                    _check_column(schema.field(name), table[name], columns[name])
                yield [
                    _values(table[name]) if name in names else [None] * len(table)
                    for name in schema.names
                ]
    except (arrow.ArrowException, OSError, KeyError, ValueError) as error:
        problem = f"{file_path.name} is not a table: {excerpt(error, 300)}"
        raise DataError(problem, where=str(file_path), fix=FROM_RAW) from error


def _check_column(field: Any, column: Any, hint: Any) -> None:
    """`ValueError` unless *column* has the type of *field*, and each value that *hint* demands."""
    import pyarrow as arrow

    from pyarrow import compute

    is_list = arrow.types.is_list(column.type)
    # Texts come as indices into a dictionary, whose values have the type.
    plain_type = column.type if is_list else getattr(column.type, "value_type", column.type)
    if plain_type != field.type:
        raise ValueError(f"{field.name} is not a column of {field.type}")
    is_optional = type(None) in get_args(hint)
    item_arrays = [chunk.flatten() for chunk in column.chunks] if is_list else []
    lacks_item = any(items.null_count for items in item_arrays)
    if lacks_item or (column.null_count and not is_optional):
        raise ValueError(f"a value of {field.name} is missing")
    if plain_type == arrow.float64():
        # Seconds since some moment.  Arrow would import pandas to compare with a number of Python.
        ends = compute.min_max(column).as_py().values()
        is_finite = compute.all(compute.is_finite(column)).as_py() is not False
        if not is_finite or any(end is not None and abs(end) >= LATEST_S for end in ends):
            raise ValueError(f"a value of {field.name} is no number of seconds")


def read_parts(opener: Opener, folder: Path, table_name: str) -> Iterator[dict[str, Any]]:
    """Columns of `attempts` or `spans` by their names, part after part; none without a table."""
    file_path = folder / f"{table_name}.parquet"
    columns = _BY_NAME[table_name]
    for part in read_columns(opener, file_path, columns) if file_path.exists() else ():
        yield dict(zip(columns, part, strict=True))


def _values(column: Any) -> Any:
    """Values of a column: an array of numbers, or a list, whose equal texts are one object."""
    import pyarrow as arrow

    if column.type in (arrow.int64(), arrow.float64()) and not column.null_count:
        return _numbers(column)
    values: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            words = chunk.dictionary.to_pylist()
            indices = chunk.indices.to_pylist()
            values += [None if index is None else words[index] for index in indices]
        else:
            values += chunk.to_pylist()
    return values


def _numbers(column: Any) -> Any:
    """A column of numbers without a gap as an array; Arrow itself would import pandas for it."""
    import numpy as np

    kind = np.dtype(str(column.type).replace("double", "float64"))
    parts = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def _arrow_type(hint: Any) -> Any:
    """Give the Arrow type of a field: plain values, optional ones, tuples of them."""
    import pyarrow as arrow

    plain = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    if hint in plain:
        return plain[hint]
    origin = get_origin(hint)
    args = get_args(hint)
    if origin is Literal:
        return arrow.string()
    if origin in (Union, types.UnionType):
        return _arrow_type(next(arg for arg in args if arg is not type(None)))
    return arrow.list_(_arrow_type(args[0]))  # a tuple


def write_traces(folder: Path, traces: Sequence[JobTrace]) -> None:
    """Write `job.json`, `attempts.parquet` and `counters.parquet` into *folder*."""
    jobs = [{column: getattr(trace, column) for column in _JOB} for trace in traces]
    (folder / "job.json").write_bytes(json_bytes({"schema_version": SCHEMA_VERSION, "jobs": jobs}))

    def attempt_rows() -> Iterator[dict[str, Any]]:
        for trace in traces:
            for attempt in trace.attempts:
                yield {"job_id": trace.job_id, **asdict(attempt)}

    def counter_rows(trace: JobTrace) -> Iterator[dict[str, Any]]:
        """Counters of a job, and then of its attempts."""
        owners = [("", scope, getattr(trace, scope)) for scope in _SCOPES]
        owners += [(attempt.attempt_id, "attempt", attempt.counters) for attempt in trace.attempts]
        for attempt_id, scope, counters in owners:
            for name, count in counters.items():
                values = (trace.job_id, attempt_id, scope, name, count)
                yield dict(zip(_COUNTERS, values, strict=True))

    write_table(folder / "attempts.parquet", _ATTEMPT, attempt_rows())
    counters = chain.from_iterable(map(counter_rows, traces))
    write_table(folder / "counters.parquet", _COUNTERS, counters)


def read_traces(opener: Opener, folder: Path, *, whole: bool = True) -> tuple[JobTrace, ...]:
    """Read what `write_traces` wrote, in the same order: equal records where *whole*."""
    file_path = folder / "job.json"
    counters: dict[tuple[str, str, str], dict[str, int]] = {}
    for table_row in read_table(opener, folder / "counters.parquet", _COUNTERS) if whole else ():
        owner = table_row["job_id"], table_row["scope"], table_row["attempt_id"]
        counters.setdefault(owner, {})[table_row["name"]] = table_row["value"]
    attempts: dict[str, list[dict[str, Any]]] = {}
    for table_row in read_table(opener, folder / "attempts.parquet", _ATTEMPT) if whole else ():
        job_id = table_row.pop("job_id")
        table_row["counters"] = counters.get((job_id, "attempt", table_row["attempt_id"]), {})
        attempts.setdefault(job_id, []).append(table_row)
    document = opener.parse_json(opener.read(file_path, FROM_RAW), file_path, FROM_RAW)

    def validate(hint: Any, value: Any) -> Any:
        check = _adapter(hint).validate_python
        return opener.validate(check, value, file_path, FROM_RAW, document["schema_version"])

    jobs = validate(list[dict[str, Any]], document.get("jobs"))
    for job in jobs:
        if unknown := job.keys() - set(_JOB):
            what = f"the field '{excerpt(min(unknown))}' is not known here"
            raise opener.newer_error(what, file_path)
        job_id = str(job.get("job_id"))
        job |= {scope: counters.get((job_id, scope, ""), {}) for scope in _SCOPES}
        job["attempts"] = attempts.get(job_id, [])
    traces: tuple[JobTrace, ...] = validate(tuple[JobTrace, ...], jobs)
    return traces


class Recorded(Protocol):
    """Recorded tasks, read once for each table, so that none need stay in memory."""

    def tasks(self) -> Iterable[TaskSpans]:
        """Return the recording of each attempt."""

    def units(self) -> Iterable[UnitTimes]:
        """Return the times of units of each attempt that has them."""


def write_recordings(folder: Path, recorded: Recorded) -> None:
    """Write the tables into *folder*; without units there is no table of them."""
    task_fields = [field.name for field in fields(TaskSpans)]

    def task_row(task: TaskSpans) -> dict[str, Any]:
        return asdict(task.loop) | {name: getattr(task, name) for name in task_fields}

    def span_rows(task: TaskSpans) -> Iterator[dict[str, Any]]:
        for place, span in enumerate(task.spans):
            yield {"attempt_id": task.attempt_id, "place": place, **span._asdict()}

    def segment_rows(task: TaskSpans) -> Iterator[dict[str, Any]]:
        for segment in recorded_segments(task):
            yield {"attempt_id": task.attempt_id, **asdict(segment)}

    def unit_rows(times: UnitTimes) -> Iterator[dict[str, Any]]:
        for number, seconds in enumerate(times.seconds):
            values = (times.attempt_id, times.unit_records, number, seconds)
            yield dict(zip(_UNITS, values, strict=True))

    write_table(folder / "tasks.parquet", _TASK, map(task_row, recorded.tasks()))
    spans = chain.from_iterable(map(span_rows, recorded.tasks()))
    write_table(folder / "spans.parquet", _SPAN, spans)
    segments = chain.from_iterable(map(segment_rows, recorded.tasks()))
    write_table(folder / "segments.parquet", _SEGMENT, segments)
    units = chain.from_iterable(map(unit_rows, recorded.units()))
    if (first := next(units, None)) is not None:
        write_table(folder / "units.parquet", _UNITS, chain([first], units))


def read_recordings(opener: Opener, folder: Path) -> Iterator[TaskSpans]:
    """Recorded tasks, one at a time; none where nothing was recorded."""
    if not (folder / "tasks.parquet").exists():
        return
    groups = groupby(read_table(opener, folder / "spans.parquet", _SPAN), itemgetter("attempt_id"))
    next_attempt, next_rows = next(groups, ("", iter(())))
    for table_row in read_table(opener, folder / "tasks.parquet", _TASK, _LATER):
        task_spans: list[Span] = []
        if next_attempt == table_row["attempt_id"]:
            for span in next_rows:
                values = {column: span[column] for column in Span._fields}
                if not -1 <= values["parent"] < len(task_spans):
                    problem = f"a span of '{excerpt(next_attempt)}' is within one that comes later"
                    raise DataError(problem, where=str(folder), fix=FROM_RAW)
                task_spans.append(Span(**{**values, "details": tuple(span["details"])}))
            next_attempt, next_rows = next(groups, ("", iter(())))
        loop_values = {column: table_row.pop(column) for column in _LOOP}
        loop = RecordLoop(**{**loop_values, "histogram": tuple(loop_values["histogram"])})
        yield TaskSpans(**table_row, loop=loop, spans=tuple(task_spans))
    if next_attempt:
        problem = f"the attempt '{excerpt(next_attempt)}' is not among the tasks"
        raise DataError(problem, where=str(folder), fix=FROM_RAW)


def read_units(opener: Opener, folder: Path) -> Iterator[UnitTimes]:
    """Times of units, one attempt at a time; none where none were asked for."""
    import numpy as np

    file_path = folder / "units.parquet"

    def stretches() -> Iterator[tuple[tuple[str, int], list[float]]]:
        """Consecutive rows of one attempt in one part of the table; they may go on in the next."""
        for names, sizes, _, times in read_columns(opener, file_path, _UNITS):
            is_other = np.asarray(names[1:]) != np.asarray(names[:-1])
            is_other |= sizes[1:] != sizes[:-1]
            ends = [*(np.flatnonzero(is_other) + 1).tolist(), len(times)]
            for start, end in pairwise([0, *ends] if len(times) else ()):
                yield (names[start], int(sizes[start])), times[start:end].tolist()

    rows = stretches() if file_path.exists() else ()
    for (attempt_id, unit_records), rows_of_attempt in groupby(rows, itemgetter(0)):
        seconds = chain.from_iterable(times for _, times in rows_of_attempt)
        yield UnitTimes(attempt_id, unit_records, tuple(seconds))
