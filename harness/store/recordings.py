"""
What the tracer recorded in the tasks of a trial, as tables.

    tasks.parquet        one row per recorded attempt: its record loop, how the recording ended
    histograms.parquet   records of an attempt by the logarithm of their nanoseconds
    spans.parquet        every span; `place` is its number within the attempt, `parent` another's
    segments.parquet     every map output that a reduce copied
    units.parquet        seconds of every few records, where they were asked for

The rows of an attempt are consecutive, so each attempt is read without the rest in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, get_type_hints

from harness.errors import DataError
from harness.profiling.task_times import recorded_segments
from harness.records.spans import RecordLoop, Span, TaskSpans, UnitTimes
from harness.records.task_times import SegmentTimes
from harness.store.tables import FROM_RAW, read_columns, read_table, write_table
from harness.text import excerpt

_DETAILS = tuple(f"detail_{number}" for number in range(1, 6))
_HISTOGRAM = {"attempt_id": str, "log2_ns": int, "records": int}
_UNITS = {"attempt_id": str, "unit_records": int, "unit": int, "seconds": float}


def _columns(record_type: type, *without: str) -> dict[str, Any]:
    """Columns of the fields of *record_type*, a dataclass or a named tuple, by their types."""
    hints = get_type_hints(record_type)
    return {column: hint for column, hint in hints.items() if column not in without}


_LOOP = _columns(RecordLoop, "histogram")
_TASK = {**_columns(TaskSpans, "loop", "spans"), **_LOOP}
_SPAN = {"attempt_id": str, "place": int, **_columns(Span, "details")}
_SPAN |= dict.fromkeys(_DETAILS, int | None)
_SEGMENT = {"attempt_id": str, **_columns(SegmentTimes)}


class Recorded(Protocol):
    """Recorded tasks, read once for each table, so that none need stay in memory."""

    def tasks(self) -> Iterable[TaskSpans]:
        """Return the recording of each attempt."""
        ...

    def units(self) -> Iterable[UnitTimes]:
        """Return the times of units of each attempt that has them."""
        ...


def write_recordings(folder: Path, recorded: Recorded) -> None:
    """Write the tables into *folder*; without units there is no table of them."""
    own = [field.name for field in fields(TaskSpans)]
    tasks = (
        {**asdict(recorded_task.loop), **{column: getattr(recorded_task, column) for column in own}}
        for recorded_task in recorded.tasks()
    )
    write_table(folder / "tasks.parquet", _TASK, tasks)
    spans = (
        {
            "attempt_id": recorded_task.attempt_id,
            "place": place,
            **span._asdict(),
            **dict(zip(_DETAILS, (*span.details, *[None] * 5), strict=False)),
        }
        for recorded_task in recorded.tasks()
        for place, span in enumerate(recorded_task.spans)
    )
    write_table(folder / "spans.parquet", _SPAN, spans)
    buckets = (
        {"attempt_id": recorded_task.attempt_id, "log2_ns": bucket, "records": records}
        for recorded_task in recorded.tasks()
        for bucket, records in enumerate(recorded_task.loop.histogram)
    )
    write_table(folder / "histograms.parquet", _HISTOGRAM, buckets)
    copies = (
        {"attempt_id": recorded_task.attempt_id, **asdict(segment)}
        for recorded_task in recorded.tasks()
        for segment in recorded_segments(recorded_task)
    )
    write_table(folder / "segments.parquet", _SEGMENT, copies)
    units = (
        dict(zip(_UNITS, (times.attempt_id, times.unit_records, number, seconds), strict=True))
        for times in recorded.units()
        for number, seconds in enumerate(times.seconds)
    )
    if (first := next(units, None)) is not None:
        write_table(folder / "units.parquet", _UNITS, chain([first], units))


def read_recordings(folder: Path) -> Iterator[TaskSpans]:
    """Recorded tasks, one at a time; none where nothing was recorded."""
    if not (folder / "tasks.parquet").exists():
        return
    spans = _Groups(read_table(folder / "spans.parquet", _SPAN))
    buckets = _Groups(read_table(folder / "histograms.parquet", _HISTOGRAM))
    for table_row in read_table(folder / "tasks.parquet", _TASK):
        attempt_id = table_row["attempt_id"]
        histogram = tuple(bucket["records"] for bucket in buckets.take(attempt_id))
        loop = RecordLoop(
            **{column: table_row.pop(column) for column in _LOOP}, histogram=histogram
        )
        task_spans = []
        for span in spans.take(attempt_id):
            values = {column: span[column] for column in Span._fields if column != "details"}
            details = tuple(span[column] for column in _DETAILS if span[column] is not None)
            task_spans.append(Span(**values, details=details))
        yield TaskSpans(**table_row, loop=loop, spans=tuple(task_spans))
    if unread := spans.next_attempt or buckets.next_attempt:
        problem = f"the attempt '{excerpt(unread)}' is not among the tasks"
        raise DataError(problem, where=str(folder), fix=FROM_RAW)


class _Groups:
    """Rows of a table by their attempt, in the table's order."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._groups = groupby(rows, itemgetter("attempt_id"))
        self.next_attempt = ""
        self._rows: Iterable[dict[str, Any]] = ()
        self._advance()

    def _advance(self) -> None:
        """Go on to the next attempt; its id is empty after the last."""
        self.next_attempt, self._rows = next(self._groups, ("", ()))

    def take(self, attempt_id: str) -> list[dict[str, Any]]:
        """Rows of *attempt_id*, if they come next."""
        if self.next_attempt != attempt_id:
            return []
        rows = list(self._rows)
        self._advance()
        return rows


def read_units(folder: Path) -> Iterator[UnitTimes]:
    """Times of units, one attempt at a time; none where none were asked for."""
    file_path = folder / "units.parquet"
    attempt_id, unit_records = "", 0
    seconds: list[float] = []
    for names, sizes, _, times in read_columns(file_path, _UNITS) if file_path.exists() else ():
        start = 0
        for owner_id, rows in groupby(names):
            # An attempt may go on in the next part of the table.
            if owner_id != attempt_id:
                if seconds:
                    yield UnitTimes(attempt_id, unit_records, tuple(seconds))
                attempt_id, unit_records, seconds = owner_id, int(sizes[start]), []
            end = start + sum(1 for _ in rows)
            seconds += times[start:end].tolist()
            start = end
    if seconds:
        yield UnitTimes(attempt_id, unit_records, tuple(seconds))


def read_segments(folder: Path) -> Iterator[tuple[str, SegmentTimes]]:
    """Every map output that a recorded reduce copied, with the id of the reduce's attempt."""
    file_path = folder / "segments.parquet"
    for table_row in read_table(file_path, _SEGMENT) if file_path.exists() else ():
        yield table_row.pop("attempt_id"), SegmentTimes(**table_row)
