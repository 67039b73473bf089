"""
What the tracer recorded in the tasks of a trial, as tables.

    tasks.parquet        one row per recorded attempt: its record loop, how the recording ended
    histograms.parquet   records of an attempt by the logarithm of their nanoseconds
    spans.parquet        every span; `place` is its number within the attempt, `parent` another's
    segments.parquet     every map output that a reduce copied
    units.parquet        seconds of every few records, where they were asked for

Attempts stand one behind the other, so each is read without holding the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Protocol, get_args, get_type_hints

from pydantic import TypeAdapter

from harness.errors import DataError
from harness.profiling.task_times import recorded_segments
from harness.records.spans import RecordLoop, Span, TaskSpans, UnitTimes
from harness.records.task_times import SegmentTimes
from harness.store.files import validated
from harness.store.parquet import FROM_RAW, read_columns, read_table, write_table

# A map has some ten spans, and one for each combine of each spill; a reduce some for each segment.
MOST_SPANS = 5_000_000
# A map of 128 MiB has 200 000 units of 5 records.
MOST_UNITS = 50_000_000

# Seconds since the epoch of any trial.
_LATEST_S = 2**33

_DETAILS = tuple(f"detail_{number}" for number in range(1, 6))
_COPY = tuple(f.name for f in fields(SegmentTimes))
_TO = get_args(get_type_hints(SegmentTimes)["to"])
_HISTOGRAM = {"attempt_id": str, "log2_ns": int, "records": int}
_UNITS = {"attempt_id": str, "unit_records": int, "unit": int, "seconds": float}


def _columns(kind: type, *without: str) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.name not in without}


def _span_columns() -> dict[str, Any]:
    hints = get_type_hints(Span)
    plain = {name: hints[name] for name in Span._fields if name != "details"}
    return {"attempt_id": str, "place": int, **plain, **dict.fromkeys(_DETAILS, int | None)}


def _task_columns() -> dict[str, Any]:
    return {**_columns(TaskSpans, "loop", "spans"), **_columns(RecordLoop, "histogram")}


def _segment_columns() -> dict[str, Any]:
    return {"attempt_id": str, **_columns(SegmentTimes)}


class Recorded(Protocol):
    """Tasks that were recorded; asked once for each table, so that none need stay in memory."""

    def tasks(self) -> Iterable[TaskSpans]:
        """Return the recording of each attempt."""
        ...

    def units(self) -> Iterable[UnitTimes]:
        """Return the times of units of each attempt that has them."""
        ...


def write_recordings(folder: Path, recorded: Recorded) -> None:
    """Write the tables into *folder*; without units there is no table of them."""
    tasks = recorded.tasks
    write_table(folder / "tasks.parquet", _task_columns(), map(_task_row, tasks()))
    write_table(folder / "spans.parquet", _span_columns(), _span_rows(tasks()), MOST_SPANS)
    write_table(folder / "histograms.parquet", _HISTOGRAM, _histogram_rows(tasks()), MOST_SPANS)
    copied = (
        {"attempt_id": t.attempt_id, **asdict(s)} for t in tasks() for s in recorded_segments(t)
    )
    write_table(folder / "segments.parquet", _segment_columns(), copied, MOST_SPANS)
    rows = _unit_rows(recorded.units())
    if (first := next(rows, None)) is not None:
        write_table(folder / "units.parquet", _UNITS, chain([first], rows), MOST_UNITS)


def read_recordings(folder: Path) -> Iterator[TaskSpans]:
    """Recorded tasks, one at a time; none where nothing was recorded."""
    if not (folder / "tasks.parquet").exists():
        return
    path = folder / "spans.parquet"
    spans = _Grouped(read_table(path, _span_columns(), most_rows=MOST_SPANS))
    counts = _Grouped(read_table(folder / "histograms.parquet", _HISTOGRAM, most_rows=MOST_SPANS))
    for row in read_table(folder / "tasks.parquet", _task_columns()):
        name = row["attempt_id"]
        histogram = tuple(bucket["records"] for bucket in counts.of(name))
        yield _task(row | {"histogram": histogram}, [_span(r, path) for r in spans.of(name)], path)
    if strange := spans.left() or counts.left():
        what = f"{strange[:80]!r} is not among the tasks"
        raise DataError(what, where=str(folder), fix=FROM_RAW)


class _Grouped:
    """Rows of a table by their attempt, in its order."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._groups = groupby(rows, _attempt)
        self._next = next(self._groups, None)

    def of(self, attempt: str) -> list[dict[str, Any]]:
        """Rows of *attempt*, if they come next."""
        if self._next is None or self._next[0] != attempt:
            return []
        found = list(self._next[1])
        self._next = next(self._groups, None)
        return found

    def left(self) -> str:
        """Attempt whose rows come next, empty where there is none."""
        return self._next[0] if self._next else ""


def read_units(folder: Path) -> Iterator[UnitTimes]:
    """Times of units, one attempt at a time; none where none were asked for."""
    path = folder / "units.parquet"
    if path.exists():
        for name, size, seconds in _joined(read_columns(path, _UNITS, most_rows=MOST_UNITS)):
            if not size or size < 1 or None in seconds or min(seconds) < 0:
                raise DataError("a unit that took no time", where=str(path), fix=FROM_RAW)
            yield UnitTimes(str(name), int(size), tuple(seconds))


def _joined(parts: Iterable[list[Any]]) -> Iterator[tuple[str | None, int | None, list[Any]]]:
    """Attempt, records of its units and all their seconds, also where these are in many parts."""
    name: str | None = None
    size: int | None = None
    seconds: list[Any] = []
    for names, sizes, _, times in parts:
        start = 0
        for each, rows in groupby(names):
            if each != name:
                if seconds:
                    yield name, size, seconds
                name, size, seconds = each, sizes[start], []
            end = start + sum(1 for _ in rows)
            piece = times[start:end]
            seconds += piece if isinstance(piece, list) else piece.tolist()
            start = end
    if seconds:
        yield name, size, seconds


def read_segments(folder: Path) -> Iterator[tuple[str, SegmentTimes]]:
    """Every map output that a recorded reduce copied, with the id of the reduce's attempt."""
    path = folder / "segments.parquet"
    if path.exists():
        for row in read_table(path, _segment_columns(), most_rows=MOST_SPANS):
            yield _attempt(row), _segment(row, path)


def _segment(row: Mapping[str, Any], path: Path) -> SegmentTimes:
    values = {name: row[name] for name in _COPY}
    connect_s = values["connect_s"] or 0.0
    if None in (row["attempt_id"], *(v for name, v in values.items() if name != "connect_s")):
        raise DataError("a copy with an empty field", where=str(path), fix=FROM_RAW)
    if not 0 <= values["start_s"] <= values["finish_s"] <= 2 * _LATEST_S:
        raise DataError("a time that no clock shows", where=str(path), fix=FROM_RAW)
    if not 0 <= connect_s <= _LATEST_S or values["to"] not in _TO:
        raise DataError("a copy that no reduce made", where=str(path), fix=FROM_RAW)
    if values["sent_bytes"] < 0 or values["raw_bytes"] < 0:
        raise DataError("a size below 0", where=str(path), fix=FROM_RAW)
    return SegmentTimes(**values)


def _attempt(row: Mapping[str, Any]) -> str:
    return str(row["attempt_id"])


def _task_row(task: TaskSpans) -> dict[str, Any]:
    whole = {**asdict(task.loop), **{f.name: getattr(task, f.name) for f in fields(TaskSpans)}}
    return {name: whole[name] for name in _task_columns()}


def _histogram_rows(tasks: Iterable[TaskSpans]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        for bucket, records in enumerate(task.loop.histogram):
            yield {"attempt_id": task.attempt_id, "log2_ns": bucket, "records": records}


def _span_rows(tasks: Iterable[TaskSpans]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        for place, span in enumerate(task.spans):
            details = dict(zip(_DETAILS, (*span.details, *[None] * 5), strict=False))
            yield {"attempt_id": task.attempt_id, "place": place, **span._asdict(), **details}


def _unit_rows(units: Iterable[UnitTimes]) -> Iterator[dict[str, Any]]:
    for each in units:
        row = {"attempt_id": each.attempt_id, "unit_records": each.unit_records}
        yield from ({**row, "unit": n, "seconds": s} for n, s in enumerate(each.seconds))


def _span(row: Mapping[str, Any], path: Path) -> Span:
    values = {name: row[name] for name in Span._fields if name != "details"}
    if None in (row["place"], *(value for name, value in values.items() if name != "cpu_s")):
        raise DataError("a span with an empty field", where=str(path), fix=FROM_RAW)
    if not all(0 <= s <= _LATEST_S for s in (row["start_s"], row["wall_s"], row["cpu_s"] or 0)):
        raise DataError("a time that no clock shows", where=str(path), fix=FROM_RAW)
    if not -1 <= row["parent"] < row["place"]:
        raise DataError("a span within one that comes later", where=str(path), fix=FROM_RAW)
    return Span(**values, details=tuple(row[n] for n in _DETAILS if row[n] is not None))


def _task(row: Mapping[str, Any], spans: Sequence[Span], path: Path) -> TaskSpans:
    loop = {name: row[name] for name in _columns(RecordLoop)}
    told = {name: row[name] for name in _columns(TaskSpans, "loop", "spans")}
    whole = {**told, "loop": loop, "spans": ()}
    checked: TaskSpans = validated(TypeAdapter(TaskSpans).validate_python, whole, path, FROM_RAW)
    return replace(checked, spans=tuple(spans))
