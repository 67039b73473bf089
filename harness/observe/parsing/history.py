"""
One job from its history (``.jhist``), as application masters of Hadoop 0.23 to 3.5 write it.

    line 1   Avro-Json, or Avro-Binary (Hadoop's default)
    line 2   the Avro schema of an event; its enumeration names all types of events
    then     one JSON object per event and blank lines, or Avro datums one behind the other

Of two events that report different values of the same thing the later one counts, as in Hadoop's
own reader (`JobHistoryParser`).  Fields are taken by their names, so versions of Hadoop whose
schemas differ read alike.  Types of events that say nothing about attempts or the whole job
(tasks, queue, priority) are skipped; one that the schema does not name is an error.

Whose clock: an attempt starts and ends by the application master's, the ends of map, shuffle and
sort are the container's; where these are off, `clocks` moves them or leaves them out.
"""

from __future__ import annotations

import re

from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from itertools import chain
from operator import attrgetter
from typing import IO, Any, Literal, cast

import orjson

from harness.base.errors import ParseError
from harness.base.records.trace import (
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    FILE_SYSTEM_COUNTER,
    JOB_COUNTER,
    TASK_COUNTER,
    AttemptState,
    JobTrace,
    TaskAttempt,
    TaskKind,
)
from harness.base.text import excerpt
from harness.observe.parsing.clocks import settled
from harness.observe.parsing.lines import LARGEST, value_excerpt

_CHUNK_BYTES = 1 << 18
# An event is kept whole while it is read; one with thousands of counters takes a tenth of this.
_LARGEST_EVENT = 1 << 22
# A binary event is smaller, and a byte of a foreign one may become an object of 240 bytes.
_LARGEST_BINARY_EVENT = 1 << 20
# Names and messages (stack traces, mostly) are cut: what is kept must not grow with the file.
_LONGEST_TEXT = 4000
# Hadoop's schema goes 8 deep and has 40 types; recursion in C must not exhaust the stack.
_DEEPEST_TYPE = 16
_MOST_TYPES = 200
# A job has a few sets of counter names; of a foreign file no more are remembered than these.
_MOST_NAME_SETS = 1000

_CUT = "copy the history again once the job is done"
_JOB_ID = re.compile(r"job_[0-9]{1,16}_[0-9]{1,10}")
_ATTEMPT_ID = re.compile(r"attempt(_[0-9]{1,16}_[0-9]{1,10})(_([mr])_[0-9]{1,10})_[0-9]{1,10}")
_TYPE_NAME = re.compile(r"(?:\w+\.)*([A-Za-z_]\w*)", re.ASCII)
_PRIMITIVES = {"boolean", "int", "long", "float", "double", "bytes", "string"}

# Types of events that are read.
_READ = {
    "JOB_SUBMITTED", "JOB_INITED", "JOB_FINISHED", "JOB_FAILED", "JOB_KILLED", "JOB_ERROR",
    "MAP_ATTEMPT_STARTED", "MAP_ATTEMPT_FINISHED", "MAP_ATTEMPT_FAILED", "MAP_ATTEMPT_KILLED",
    "REDUCE_ATTEMPT_STARTED", "REDUCE_ATTEMPT_FINISHED", "REDUCE_ATTEMPT_FAILED",
    "REDUCE_ATTEMPT_KILLED",
}  # fmt: skip
_STATES: dict[str, AttemptState] = {"FINISHED": "succeeded", "FAILED": "failed", "KILLED": "killed"}

_NameSet = tuple[tuple[str, ...], ...]  # of each group of counters its name, and theirs

# Names of old interfaces, as Hadoop's own reader maps them.
_GROUPS = {
    "org.apache.hadoop.mapred.Task$Counter": TASK_COUNTER,
    "org.apache.hadoop.mapred.JobInProgress$Counter": JOB_COUNTER,
    "FileSystemCounters": FILE_SYSTEM_COUNTER,
    "org.apache.hadoop.mapred.FileInputFormat$Counter": FILE_INPUT_COUNTER,
    "org.apache.hadoop.mapreduce.lib.input.FileInputFormat$Counter": FILE_INPUT_COUNTER,
    "org.apache.hadoop.mapred.FileOutputFormat$Counter": FILE_OUTPUT_COUNTER,
    "org.apache.hadoop.mapreduce.lib.output.FileOutputFormat$Counter": FILE_OUTPUT_COUNTER,
}


def read_history(pieces: IO[bytes] | Iterable[bytes], source: str) -> JobTrace:
    """
    Read the job whose history *pieces* hold: an open file, or bytes that are cut anywhere.

    Attempts that never got a container are left out, and so are those that have no end because
    the job ended before them.  A history that is cut, foreign or inconsistent is `ParseError` with
    *source* and the line, or in a binary one the byte, at which the event starts.
    """
    if hasattr(pieces, "read"):
        # By size, not by line: a line of a foreign file may have gigabytes.
        pieces = iter(partial(cast("IO[bytes]", pieces).read, _CHUNK_BYTES), b"")
    remaining = iter(pieces)
    head = b""
    while head.count(b"\n") < 2 and len(head) < _LARGEST_EVENT:
        if (chunk := next(remaining, None)) is None:
            break
        head += chunk
    first, _, rest = head.partition(b"\n")
    schema_line, _, events = rest.partition(b"\n")
    form = first.strip()
    job = _Job(source, "byte" if form == b"Avro-Binary" else "line")
    if form not in (b"Avro-Json", b"Avro-Binary"):
        is_hadoop_1 = form.startswith(b"Meta VERSION=")
        what = f"{'a Hadoop 1 history' if is_hadoop_1 else 'not a job history'}: '{excerpt(first)}'"
        fix = "give the .jhist file of a job that ran on Hadoop 0.23 or later"
        raise ParseError(what, source=source, line=1, fix=fix)
    try:
        schema = orjson.loads(schema_line)
        symbols = frozenset(map(str.encode, schema["fields"][0]["type"]["symbols"]))
    except (ValueError, LookupError, TypeError) as error:
        raise ParseError(
            f"not the schema of job history events: '{excerpt(schema_line)}'", source=source, line=2
        ) from error
    if form == b"Avro-Json":
        _read_json(chain([events], remaining), symbols, job)
    else:
        start = len(head) - len(events)
        _read_binary(chain([events], remaining), start, avro_schema(schema, source), job)
    return job.trace()


def _read_json(pieces: Iterable[bytes], symbols: frozenset[bytes], job: _Job) -> None:
    """Give *job* the events in *pieces*, which start behind the first two lines of the file."""
    skipped = symbols - {event_type.encode() for event_type in _READ}
    number = 2
    for line in chain.from_iterable(_line_lists(pieces, job)):
        number += 1
        # Half of a history is events of tasks, which repeat what their attempts report.
        is_skipped = line.startswith(b'{"type":"') and line[9 : line.find(b'"', 9)] in skipped
        if not line or is_skipped or line.isspace():
            continue
        job.place = number
        try:
            event = orjson.loads(line)
        except ValueError as error:
            raise job.error(f"not JSON: '{excerpt(line)}'", _CUT) from error
        event_type = event.get("type") if isinstance(event, dict) else None
        if not isinstance(event_type, str) or event_type.encode() not in symbols:
            raise job.error(f"not an event of the schema: '{excerpt(line)}'")
        if event_type in _READ:
            job.add(event_type, _untagged(event.get("event")))


def _line_lists(pieces: Iterable[bytes], job: _Job) -> Iterator[list[bytes]]:
    """The lines that end in each of *pieces*: the history of *job* behind its first two lines."""
    number = 2
    unended = list[bytes]()
    unended_bytes = 0
    for chunk in chain(pieces, [b"\n"]):
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*unended, lines[0]))
            unended = []
            unended_bytes = 0
        unended.append(rest)
        unended_bytes += len(rest)
        number += len(lines)
        yield lines
        if unended_bytes > _LARGEST_EVENT:
            job.place = number + 1
            raise job.error(f"an event of more than {_LARGEST_EVENT} bytes")


def _untagged(member: Any) -> Any:
    """Value of a union, without the name of its type that Avro's JSON puts around it."""
    if isinstance(member, dict) and len(member) == 1:
        return next(iter(member.values()))
    return member


def avro_schema(schema: Any, source: str) -> Any:
    """
    Rebuild the *schema* that came with a binary history for fastavro, from checked parts only.

    Every value takes a byte at least, so no count can promise values that are not there; no type
    contains itself; types with meanings of their own (dates, decimals) are plain values.
    """
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        return parse_schema(_SchemaBuilder().rebuilt(schema, 0))
    except (SchemaParseException, UnknownType, ValueError, LookupError, TypeError) as error:
        what = f"not the schema of job history events: {excerpt(error)}"
        raise ParseError(what, source=source, line=2) from error


class _SchemaBuilder:
    """Builds a schema from the checked parts of a foreign one."""

    def __init__(self) -> None:
        self._type_names = set[str]()  # of the types that are built

    def rebuilt(self, avro_type: Any, nesting: int) -> Any:
        """Build *avro_type*, *nesting* types deep; it is bad where that raises any error."""
        if nesting > _DEEPEST_TYPE or len(self._type_names) > _MOST_TYPES:
            raise ValueError(f"more than {_MOST_TYPES} types, or {_DEEPEST_TYPE} in each other")
        if isinstance(avro_type, list):
            return self._union(avro_type, nesting)
        if isinstance(avro_type, str):
            if avro_type in _PRIMITIVES:
                return avro_type
            if (type_name := _type_name(avro_type)) in self._type_names:
                return type_name
            what = f"the type '{excerpt(avro_type)}' is not known here, or contains itself"
            raise ValueError(what)
        type_kind = avro_type["type"]
        if type_kind == "record":
            return self._record(avro_type, nesting)
        if type_kind == "enum":
            type_name = self._add_name(avro_type["name"])
            return {"type": type_kind, "name": type_name, "symbols": avro_type["symbols"]}
        if type_kind in ("array", "map"):
            member_key = "items" if type_kind == "array" else "values"
            return {"type": type_kind, member_key: self.rebuilt(avro_type[member_key], nesting + 1)}
        return self.rebuilt(type_kind, nesting + 1)

    def _union(self, avro_types: list[Any], nesting: int) -> list[Any]:
        members: list[Any] = []
        for avro_type in avro_types:
            member = avro_type if avro_type == "null" else self.rebuilt(avro_type, nesting + 1)
            members.append(member)
        if not members or list in map(type, members):
            raise ValueError("a union of nothing or of unions")
        return members

    def _record(self, avro_type: Any, nesting: int) -> dict[str, Any]:
        fields = [
            {"name": _type_name(field["name"]), "type": self.rebuilt(field["type"], nesting + 1)}
            for field in avro_type["fields"]
        ]
        if not fields:
            raise ValueError("a record without fields")
        return {"type": "record", "name": self._add_name(avro_type["name"]), "fields": fields}

    def _add_name(self, name: Any) -> str:
        type_name = _type_name(name)
        self._type_names.add(type_name)
        return type_name


def _type_name(name: Any) -> str:
    match = _TYPE_NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"'{excerpt(name)}' is not the name of a type")
    return match[1]


def _read_binary(pieces: Iterator[bytes], start: int, schema: Any, job: _Job) -> None:
    """Give *job* the events in *pieces*, the first of which starts at the file's byte *start*."""
    from fastavro import schemaless_reader

    data = b""
    is_last = False
    stream = BytesIO()
    event_start = 0
    while not is_last or event_start < len(data):
        job.place = start + event_start
        try:
            event = cast("Any", schemaless_reader(stream, schema, None))
        except (EOFError, ValueError, LookupError, TypeError, OverflowError) as error:
            # Nothing but reading an event shows where it ends: perhaps it goes on.
            unread = data[event_start:]
            if is_last or len(unread) > _LARGEST_BINARY_EVENT:
                raise _unreadable_event_error(job, len(unread), error) from error
            more = _next_bytes(pieces, max(_CHUNK_BYTES, len(unread)))
            is_last = len(more) < max(_CHUNK_BYTES, len(unread))
            start += event_start
            data = unread + more
            stream = BytesIO(data)
            event_start = 0
            continue
        event_start = stream.tell()
        event_type = event.get("type") if isinstance(event, dict) else None
        if isinstance(event_type, str) and event_type in _READ:
            job.add(event_type, event.get("event"))


def _next_bytes(pieces: Iterator[bytes], wanted_bytes: int) -> bytearray:
    """The next *pieces* until there are *wanted_bytes* of them; fewer are the last."""
    more = bytearray()
    for chunk in pieces:
        more += chunk
        if len(more) >= wanted_bytes:
            break
    return more


def _unreadable_event_error(job: _Job, unread_bytes: int, error: Exception) -> ParseError:
    if unread_bytes > _LARGEST_BINARY_EVENT:
        return job.error(f"an event of more than {_LARGEST_BINARY_EVENT} bytes")
    if isinstance(error, EOFError):
        return job.error("an incomplete event: the history is truncated", _CUT)
    return job.error(f"not an event: {excerpt(error)}")


class Counters(Mapping[str, int]):
    """Values by name, in eight bytes each; attempts with equal names share one table of names."""

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: Mapping[str, int], values: array[int]) -> None:
        self._positions = positions
        self._values = values

    def __getitem__(self, name: str) -> int:
        return self._values[self._positions[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


class _Job:
    """
    Collects the events of one job; nothing grows but with the number of its attempts.

    `place` is where the event stands that is being read: its line, or its first byte.
    """

    def __init__(self, source: str, unit: Literal["line", "byte"]) -> None:
        self.place: int | None = None
        self._source = source
        self._unit = unit
        self._job_id = ""
        self._facts: dict[str, Any] = {}
        self._finished_tasks: dict[str, int] = {}
        self._end_place: int | None = None
        self._starts: dict[str, dict[str, Any]] = {}
        self._ends: dict[str, dict[str, Any]] = {}
        self._end_places: dict[str, int | None] = {}
        self._positions: dict[_NameSet, dict[str, int]] = {}

    def error(self, what: str, fix: str = "") -> ParseError:
        """Error at the event that is being read."""
        if self._unit == "line":
            return ParseError(what, source=self._source, line=self.place, fix=fix)
        return ParseError(what, source=self._source, byte=self.place, fix=fix)

    def add(self, event_type: str, fields: Any) -> None:
        """Take what an event of the type *event_type* reports."""
        if not isinstance(fields, dict):
            raise self.error(f"{event_type} without its fields")
        if "ATTEMPT" in event_type:
            self._add_attempt(event_type, fields)
            return
        job_id = self._text(fields, "jobid")
        if _JOB_ID.fullmatch(job_id) is None:
            raise self.error(f"'{excerpt(job_id)}' is not a job id")
        self._check_job(job_id, job_id)
        if event_type == "JOB_SUBMITTED":
            self._facts["name"] = self._text(fields, "jobName")
            self._facts["user"] = self._text(fields, "userName")
            self._facts["submit_s"] = self._seconds(fields, "submitTime")
        elif event_type == "JOB_INITED":
            is_uberized = fields.get("uberized", False)
            if not isinstance(is_uberized, bool):
                raise self.error(f"uberized is {value_excerpt(is_uberized)}, not true or false")
            self._facts["uberized"] = is_uberized
            self._facts["launch_s"] = self._seconds(fields, "launchTime")
            self._facts["num_maps"] = self._whole(fields, "totalMaps")
            self._facts["num_reduces"] = self._whole(fields, "totalReduces")
        else:
            succeeded = event_type == "JOB_FINISHED"
            self._end_place = self.place
            self._facts["state"] = "SUCCEEDED" if succeeded else event_type.removeprefix("JOB_")
            self._facts["finish_s"] = self._seconds(fields, "finishTime")
            self._facts["diagnostics"] = self._text(fields, "diagnostics")
            self._facts["counters"] = self._counters(fields, "totalCounters")
            self._facts["map_counters"] = self._counters(fields, "mapCounters")
            self._facts["reduce_counters"] = self._counters(fields, "reduceCounters")
            self._finished_tasks = {}
            if succeeded:
                for name in ("finishedMaps", "finishedReduces"):
                    self._finished_tasks[name] = self._whole(fields, name)

    def _add_attempt(self, event_type: str, fields: Mapping[str, Any]) -> None:
        attempt_id = self._text(fields, "attemptId")
        id_match = _ATTEMPT_ID.fullmatch(attempt_id)
        task_kind: TaskKind = "map" if event_type.startswith("MAP") else "reduce"
        if id_match is None or id_match[3] != task_kind[0]:
            raise self.error(f"'{excerpt(attempt_id)}' is not the id of a {task_kind} attempt")
        self._check_job(f"job{id_match[1]}", attempt_id)
        if event_type.endswith("STARTED"):
            start = self._starts[attempt_id] = {
                "task_id": f"task{id_match[1]}{id_match[2]}",
                "kind": task_kind,
                "start_s": self._seconds(fields, "startTime"),
                "container_id": self._text(fields, "containerId"),
                "locality": self._text(fields, "locality"),
            }
            if host := self._text(fields, "trackerName"):
                start["host"] = host
            return
        # An attempt that has succeeded may still be lost with its node, and be killed then.
        self._end_places[attempt_id] = self.place
        ended = self._ends[attempt_id] = {
            "state": _STATES[event_type.rpartition("_")[2]],
            "finish_s": self._seconds(fields, "finishTime"),
            "host": self._text(fields, "hostname"),
            "counters": self._counters(fields, "counters"),
        }
        if ended["state"] != "succeeded":
            ended["error"] = self._text(fields, "error")
        elif task_kind == "map":
            # A map of the old interface without reduces after it writes 0, which is no moment.
            ended["map_finish_s"] = self._seconds(fields, "mapFinishTime") or None
        else:
            ended["shuffle_finish_s"] = self._seconds(fields, "shuffleFinishTime") or None
            ended["sort_finish_s"] = self._seconds(fields, "sortFinishTime") or None

    def trace(self) -> JobTrace:
        """Give the job, once all events are in; `ParseError` where they do not make one."""
        self.place = None
        for fact, event in (("submit_s", "JOB_SUBMITTED"), ("finish_s", "the end of the job")):
            if fact not in self._facts:
                raise self.error(f"no event reports {event}: the history is truncated", _CUT)
        self.place = self._end_place
        if self._facts["finish_s"] < self._facts["submit_s"]:
            raise self.error("the job ends before it is submitted")
        listed = list[TaskAttempt]()
        for attempt_id, ended in self._ends.items():
            self.place = self._end_places[attempt_id]
            start = self._starts.get(attempt_id)
            if start is None and ended["state"] == "succeeded":
                raise self.error(f"{attempt_id} succeeds without having started")
            if start is None:
                continue  # It never got a container.
            if ended["finish_s"] < start["start_s"]:
                raise self.error(f"{attempt_id} ends before it starts")
            listed.append(TaskAttempt(attempt_id=attempt_id, **{**ended, **start}))
        kept, clocks = settled(listed)
        attempts = sorted(kept, key=attrgetter("start_s", "attempt_id"))
        self.place = self._end_place
        self._check_count(attempts)
        defaults = {"launch_s": self._facts["submit_s"], "num_maps": 0, "num_reduces": 0}
        return JobTrace(
            job_id=self._job_id,
            attempts=tuple(attempts),
            clocks=clocks,
            **defaults | self._facts,
        )

    def _check_count(self, attempts: Iterable[TaskAttempt]) -> None:
        """Compare with the job's own count of its successful tasks: no lost line goes unseen."""
        succeeded = [attempt for attempt in attempts if attempt.state == "succeeded"]
        for name, expected in self._finished_tasks.items():
            kind = "map" if name == "finishedMaps" else "reduce"
            tasks = {attempt.task_id for attempt in succeeded if attempt.kind == kind}
            if len(tasks) != expected:
                what = f"{name} is {expected}, and the history has {len(tasks)} such tasks"
                raise self.error(what)

    def _check_job(self, job_id: str, name: str) -> None:
        self._job_id = self._job_id or job_id
        if job_id != self._job_id:
            raise self.error(f"{name} in the history of {self._job_id}")

    def _whole(self, fields: Mapping[str, Any], field_name: str) -> int:
        field_value = fields.get(field_name)
        if type(field_value) is not int or not 0 <= field_value < LARGEST:
            raise self.error(
                f"{field_name} is {value_excerpt(field_value)}, not a whole number from 0 to 2**53"
            )
        return field_value

    def _seconds(self, fields: Mapping[str, Any], field_name: str) -> float:
        """Field *field_name*, milliseconds since the epoch, in seconds."""
        return self._whole(fields, field_name) / 1000

    def _text(self, fields: Mapping[str, Any], field_name: str) -> str:
        """Field *field_name*; an absent or null one is empty."""
        field_value = _untagged(fields.get(field_name))
        if field_value is not None and not isinstance(field_value, str):
            raise self.error(f"{field_name} is {value_excerpt(field_value)}, not text")
        return field_value[:_LONGEST_TEXT] if field_value else ""

    def _counters(self, fields: Mapping[str, Any], field_name: str) -> Mapping[str, int]:
        """Field *field_name* as counters, keyed by the group's whole name and their own."""
        field_value = fields.get(field_name)
        if field_value is None:
            return {}
        try:
            groups = (field_value if "groups" in field_value else _untagged(field_value))["groups"]
            # Lists, for a history has many of these: a generator takes longer.
            names_by_group = [
                (group["name"], *[counter["name"] for counter in group["counts"]])
                for group in groups
            ]
            name_set = tuple(names_by_group)
            values: list[Any] = []
            for group in groups:
                values += [counter["value"] for counter in group["counts"]]
            positions = self._positions.get(name_set) or self._add_positions(name_set)
            if bool in map(type, values):
                raise TypeError("true or false")
            return Counters(positions, array("q", values))
        except (LookupError, TypeError, OverflowError) as error:
            what = f"{field_name} are not groups of named whole numbers: {excerpt(error)}"
            raise self.error(what) from error

    def _add_positions(self, name_set: _NameSet) -> dict[str, int]:
        """Remember where among its values each counter of *name_set* stands, by its whole name."""
        keys: list[str] = []
        for group, *counters in name_set:
            keys += [
                f"{_GROUPS.get(group, group[:_LONGEST_TEXT])}.{counter[:_LONGEST_TEXT]}"
                for counter in counters
            ]
        if len(self._positions) >= _MOST_NAME_SETS:
            self._positions.clear()
        # Of two of the same name the later one counts.
        positions = {key: position for position, key in enumerate(keys)}
        self._positions[name_set] = positions
        return positions
