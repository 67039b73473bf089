"""
Job histories in JSON form.

Every event is read by `json` and by name.  Nine tenths of a large history are attempts that look
like one another but for names and numbers: of each kind of line the first is read so, and makes a
regular expression with the names of its counters in it, which reads the others.  A line that
differs in one more byte does not match it, and is read by name again: what is read quickly is
what would have been read slowly, and what is odd is refused by the same words.
"""

from __future__ import annotations

import json
import re
import sys

from collections.abc import Iterable
from typing import Any

from harness.parsing.jobhistory_counters import Number, Sets
from harness.parsing.jobhistory_event import CUT, Event, Source
from harness.parsing.jobhistory_job import READ, Job
from harness.parsing.jobhistory_shapes import Shapes
from harness.parsing.lines import named, shown

_PACKAGE = "org.apache.hadoop.mapreduce.jobhistory"
_STARTED = (
    r'TaskAttemptStarted":{"taskid":"<any>","taskType":"<any>","attemptId":"<attempt>",'
    r'"startTime":<time>,"trackerName":"<text>","httpPort":<int>,"shufflePort":<int>,'
    r'"containerId":"<text>","locality":{"string":"<text>"},"avataar":{"string":"<any>"}}}}'
)
_FINISHED = (
    r'"hostname":"<text>","port":<int>,"rackname":"<any>","state":"<any>","counters":<counters>,'
    r'"clockSplits":<ints>,"cpuUsages":<ints>,"vMemKbytes":<ints>,"physMemKbytes":<ints>}}}'
)
_ENDED = r'{"taskid":"<any>","attemptId":"<attempt>","taskType":"<any>","taskStatus":"<any>",'
_LINES = {
    "MAP_ATTEMPT_STARTED": _STARTED,
    "REDUCE_ATTEMPT_STARTED": _STARTED,
    "MAP_ATTEMPT_FINISHED": f'MapAttemptFinished":{_ENDED}"mapFinishTime":<time>,'
    f'"finishTime":<time>,{_FINISHED}',
    "REDUCE_ATTEMPT_FINISHED": f'ReduceAttemptFinished":{_ENDED}"shuffleFinishTime":<time>,'
    f'"sortFinishTime":<time>,"finishTime":<time>,{_FINISHED}',
}

_AS_HADOOP: Any = {"separators": (",", ":"), "ensure_ascii": False}

_PLAIN = re.compile("[A-Z_]{1,60}")
_ANY = r"[ !#-\[\]-~]{0,400}"
_TIME = "(?:[1-9][0-9]{0,14}+|0)"
_LONG = "(?:[1-9][0-9]{0,17}+|0)"


def read_symbols(line: bytes, source: Source) -> frozenset[str]:
    """Types of events that the schema in *line* names."""
    schema = decode(line, source, 2)
    fields = schema.get("fields")
    head = fields[0] if isinstance(fields, list) and fields else None
    kind = head.get("type") if isinstance(head, dict) else None
    symbols = kind.get("symbols") if isinstance(kind, dict) else None
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise source.error("not the schema of job history events", 2)
    return frozenset(symbols)


def read_json(lines: Iterable[bytes], symbols: frozenset[str], source: Source, job: Job) -> None:
    """Give the events in *lines*, which begin at the file's third, to *job*."""
    skipped = frozenset(_head(kind) for kind in symbols - READ.keys() if _PLAIN.fullmatch(kind))
    sets = Sets(Number(_LONG.encode(), int))
    shapes = Shapes(job, sets, int, _Texts().__getitem__)
    readers = shapes.readers
    for number, line in enumerate(lines, start=3):
        if line == b"\n":
            continue
        head = line[: line.find(b'"', 9)]
        if head in skipped and line.endswith((b"}\n", b"}")):
            continue
        reader = readers.get(head)
        if (reader is not None and reader(line, 0, number)) or line.isspace():
            continue
        event = _event(line, number, symbols, source)
        if event is not None:
            READ[event.type](job, event)
            _learn(event, job.id, sets, shapes)


def decode(line: bytes, source: Source, number: int) -> dict[str, Any]:
    """JSON object that stands in *line*."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        cut = "" if line.endswith(b"\n") else ", and it has no end: the history is cut"
        raise source.error(f"not JSON: {shown(line)}{cut}", number, CUT) from error
    if not isinstance(values, dict):
        raise source.error(f"not a JSON object: {shown(line)}", number)
    return values


def _head(kind: str) -> bytes:
    return b'{"type":"' + kind.encode("utf-8", "replace")


def _event(line: bytes, number: int, symbols: frozenset[str], source: Source) -> Event | None:
    """Event of *line*, if it tells anything."""
    values = decode(line, source, number)
    kind = values.get("type")
    if not isinstance(kind, str) or kind not in symbols:
        raise source.error(f"no such event in the schema: {named(kind)}", number)
    if kind not in READ:
        return None
    return Event(kind, _body(values, source, number), source, number, line.strip())


def _body(values: dict[str, Any], source: Source, number: int) -> dict[str, Any]:
    """Event proper, without the tag that Avro puts around a member of a union."""
    union = values.get("event")
    body = next(iter(union.values())) if isinstance(union, dict) and len(union) == 1 else None
    if not isinstance(body, dict):
        raise source.error("an event without its body", number)
    return body


class _Texts(dict[bytes, str]):
    """Texts by their bytes; hosts and racks occur thousands of times."""

    def __missing__(self, raw: bytes) -> str:
        text = self[raw] = sys.intern(raw.decode("ascii"))
        return text


def _learn(event: Event, job: str, sets: Sets, shapes: Shapes) -> None:
    """Read lines like that of *event* quickly from now on."""
    if event.type not in _LINES:
        return
    counters = event.values.get("counters")
    if isinstance(counters, dict) and "groups" in counters:
        raw = json.dumps(counters, **_AS_HADOOP).encode("utf-8", "replace")
        if not sets.skip(raw, 0):
            sets.learn(raw, list(event.counters("counters")), lambda: _between(counters))
    shapes.learn(event.type, _head(event.type), event.raw, lambda: _patterns(event, job))


def _patterns(event: Event, job: str) -> tuple[bytes, ...]:
    """Regular expressions of lines like that of *event*, around their counters."""
    template = f'{{"type":"{event.type}","event":{{"{_PACKAGE}.{_LINES[event.type]}'
    splits = event.values.get("clockSplits")
    slots = {
        "any": _ANY,
        "text": f"({_ANY})",
        "time": f"({_TIME})",
        "int": f"-?+{_LONG}",
        "ints": rf"\[{','.join([f'-?+{_LONG}'] * len(splits))}\]"
        if isinstance(splits, list)
        else "",
        "attempt": f"(attempt{job[3:]}_{event.type[0].lower()}_[0-9]{{1,10}}_[0-9]{{1,10}})",
    }
    parts = re.escape(template).split("<counters>")
    texts = (re.sub("<([a-z]+)>", lambda slot: slots[slot[1]], part) for part in parts)
    *before, last = (text.encode("utf-8", "replace") for text in texts)
    return (*before, last + rb"\s*\Z")


def _between(counters: dict[str, Any]) -> list[bytes]:
    """What stands between the values in the text of *counters*."""
    groups = [
        {**group, "counts": [{**counter, "value": None} for counter in group["counts"]]}
        for group in counters["groups"]
    ]
    text = json.dumps({**counters, "groups": groups}, **_AS_HADOOP)
    *parts, last = text.encode("utf-8", "replace").split(b'"value":null')
    return [*(part + b'"value":' for part in parts), last]
