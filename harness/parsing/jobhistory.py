"""
One job from its history (``.jhist`` in JSON form), as the application master wrote it.

    line 1   Avro-Json
    line 2   the Avro schema of an event; its enumeration names all event types
    then     one JSON object per event, and blank lines

Events are read one at a time, in any order; only the job's attempts are kept.  An event that is
repeated word for word counts once.  Types that tell nothing here (tasks, queue, priority) are
skipped without being decoded; a type that the schema does not name is an error.

Whose clock: an attempt starts and ends by the application master's, the ends of map, shuffle and
sort are the container's.
"""

from __future__ import annotations

import json
import re

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.errors import ParseError
from harness.parsing.jobhistory_event import Event
from harness.parsing.jobhistory_job import Job
from harness.parsing.lines import named, shown
from harness.records.trace import JobTrace

_TYPE = re.compile(rb'\{"type":"([A-Z_]{1,60})"')
_BINARY = "set mapreduce.jobhistory.jhist.format=json for the job, and run it again"

_READ: dict[str, Callable[[Job, Event], None]] = {
    "JOB_SUBMITTED": Job.submitted,
    "JOB_INITED": Job.inited,
    "MAP_ATTEMPT_STARTED": Job.attempt_started,
    "REDUCE_ATTEMPT_STARTED": Job.attempt_started,
    "MAP_ATTEMPT_FINISHED": Job.attempt_finished,
    "REDUCE_ATTEMPT_FINISHED": Job.attempt_finished,
    "MAP_ATTEMPT_FAILED": Job.attempt_unsuccessful,
    "MAP_ATTEMPT_KILLED": Job.attempt_unsuccessful,
    "REDUCE_ATTEMPT_FAILED": Job.attempt_unsuccessful,
    "REDUCE_ATTEMPT_KILLED": Job.attempt_unsuccessful,
    "JOB_FINISHED": Job.finished,
    "JOB_FAILED": Job.unsuccessful,
    "JOB_KILLED": Job.unsuccessful,
    "JOB_ERROR": Job.unsuccessful,
}


def read_job(lines: Iterable[bytes], source: str) -> JobTrace:
    """
    Read the job whose history *lines* hold.

    Attempts that never got a container are left out, and so are those of which no end is told
    (the job ended before them).  A history that is cut, foreign, contradictory or binary is
    `ParseError` with *source* and, where there is one, the line.
    """
    numbered = enumerate(lines, start=1)
    job = Job(source)
    for event in _events(numbered, source, _types(numbered, source)):
        _READ[event.type](job, event)
    return job.trace()


def _types(numbered: Iterator[tuple[int, bytes]], source: str) -> frozenset[str]:
    """Event types of the schema, once the first two lines show a JSON history."""
    _, first = next(numbered, (1, b""))
    if first.strip() != b"Avro-Json":
        binary = first.strip() == b"Avro-Binary"
        what = "a job history in binary form" if binary else f"not a job history: {shown(first)}"
        fix = _BINARY if binary else "give the .jhist file of a job"
        raise ParseError(what, source=source, line=1, fix=fix)
    number, line = next(numbered, (2, b""))
    schema = _decode(line, source, number)
    fields = schema.get("fields")
    head = fields[0] if isinstance(fields, list) and fields else None
    kind = head.get("type") if isinstance(head, dict) else None
    symbols = kind.get("symbols") if isinstance(kind, dict) else None
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise ParseError("not the schema of job history events", source=source, line=2)
    return frozenset(symbols)


def _events(
    numbered: Iterable[tuple[int, bytes]], source: str, known: frozenset[str]
) -> Iterator[Event]:
    for number, line in numbered:
        if line.isspace():
            continue
        head = _TYPE.match(line)
        kind = head[1].decode() if head else None
        if kind in known and kind not in _READ and line.rstrip().endswith(b"}"):
            continue
        values = _decode(line, source, number)
        kind = values.get("type")
        if not isinstance(kind, str) or kind not in known:
            raise ParseError(
                f"no such event in the schema: {named(kind)}",
                source=source,
                line=number,
            )
        if kind in _READ:
            yield Event(kind, _body(values, source, number), source, number, line.strip())


def _decode(line: bytes, source: str, number: int) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        cut = "" if line.endswith(b"\n") else ", and it has no end: the history is cut"
        raise ParseError(
            f"not JSON: {shown(line)}{cut}",
            source=source,
            line=number,
            fix="copy the history again once the job is done",
        ) from error
    if not isinstance(values, dict):
        raise ParseError(f"not a JSON object: {shown(line)}", source=source, line=number)
    return values


def _body(values: dict[str, Any], source: str, number: int) -> dict[str, Any]:
    """Event proper, without the tag that Avro puts around a member of a union."""
    union = values.get("event")
    body = next(iter(union.values())) if isinstance(union, dict) and len(union) == 1 else None
    if not isinstance(body, dict):
        raise ParseError("an event without its body", source=source, line=number)
    return body
