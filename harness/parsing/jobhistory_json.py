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

from array import array
from collections.abc import Callable, Iterable
from typing import Any

from harness.parsing.jobhistory_counters import Counters, index_of
from harness.parsing.jobhistory_event import CUT, Event, Source
from harness.parsing.jobhistory_job import READ, End, Job, Start
from harness.parsing.lines import named, shown
from harness.records.trace import TaskKind

# How many shapes of line are learnt of each type: a history whose every line is new stays slow.
_SHAPES = 8
_LONGEST_SHAPE = 65536

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

_PLAIN = re.compile("[A-Z_]{1,60}")
_ANY = r"[ !#-\[\]-~]{0,400}"
_TIME = r"(?:[1-9][0-9]{0,14}|0)"
_LONG = r"(?:[1-9][0-9]{0,17}|0)"

Reader = Callable[[bytes, int], bool]
_Known = list[tuple[re.Pattern[bytes], dict[str, int]]]


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
    shapes = Shapes(job)
    readers = shapes.readers
    for number, line in enumerate(lines, start=3):
        if line == b"\n":
            continue
        head = line[: line.find(b'"', 9)]
        if head in skipped and line.endswith((b"}\n", b"}")):
            continue
        reader = readers.get(head)
        if (reader is not None and reader(line, number)) or line.isspace():
            continue
        event = _event(line, number, symbols, source)
        if event is not None:
            READ[event.type](job, event)
            shapes.learn(event)


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


class Shapes:
    """Shapes of lines that were met, and readers of lines of these shapes, by the line's begin."""

    def __init__(self, job: Job) -> None:
        self.readers: dict[bytes, Reader] = {}
        self._job = job
        self._texts = _Texts()
        self._tried: dict[str, int] = {}
        self._known: dict[str, _Known] = {}

    def learn(self, event: Event) -> None:
        """Read lines like that of *event* quickly from now on, where that is possible."""
        kind, tries = event.type, self._tried.get(event.type, 0)
        if kind not in _LINES or tries == _SHAPES or len(event.raw) > _LONGEST_SHAPE:
            return
        self._tried[kind] = tries + 1
        names = index_of(event.counters("counters"))
        pattern = _pattern(event, self._job.id, len(names))
        if pattern is not None:
            known = self._known.setdefault(kind, [])
            known.append((pattern, names))
            started = kind.endswith("STARTED")
            read = self._started if started else self._finished
            self.readers[_head(kind)] = read(known, "map" if kind.startswith("MAP") else "reduce")

    def _started(self, known: _Known, _: TaskKind) -> Reader:
        keep, texts = self._job.start, self._texts

        def read(line: bytes, _: int) -> bool:
            found, _names = _match(known, line)
            if found is None:
                return False
            name, start, host, container, locality = found.groups()
            told = Start(int(start) / 1000, texts[host], container.decode(), texts[locality])
            return keep(name.decode(), told)

        return read

    def _finished(self, known: _Known, kind: TaskKind) -> Reader:
        keep, texts = self._job.end, self._texts

        def read(line: bytes, number: int) -> bool:
            found, names = _match(known, line)
            if found is None:
                return False
            mapped = shuffled = merged = None
            if kind == "map":
                name, first, finish, host, *values = found.groups()
                mapped = int(first) / 1000
            else:
                name, first, second, finish, host, *values = found.groups()
                shuffled, merged = int(first) / 1000, int(second) / 1000
            counters = Counters(names, array("q", map(int, values)))
            end = End(
                number, kind, "succeeded", int(finish) / 1000, texts[host], counters,
                mapped, shuffled, merged,
            )  # fmt: skip
            return keep(name.decode(), end)

        return read


def _match(known: _Known, line: bytes) -> tuple[re.Match[bytes] | None, dict[str, int]]:
    """Match *line* with the shape it has, and bring that to the front."""
    pattern, names = known[0]
    found = pattern.fullmatch(line)
    for at in range(1, 0 if found else len(known)):
        pattern, names = known[at]
        found = pattern.fullmatch(line)
        if found:
            known.insert(0, known.pop(at))
            break
    return found, names


def _pattern(event: Event, job: str, counters: int) -> re.Pattern[bytes] | None:
    """Regular expression of lines like that of *event*, which has so many *counters*."""
    template = f'{{"type":"{event.type}","event":{{"{_PACKAGE}.{_LINES[event.type]}'
    splits = event.values.get("clockSplits")
    slots = {
        "any": _ANY,
        "text": f"({_ANY})",
        "time": f"({_TIME})",
        "int": f"-?{_LONG}",
        "ints": rf"\[{','.join([f'-?{_LONG}'] * len(splits))}\]"
        if isinstance(splits, list)
        else "",
        "attempt": f"(attempt{job[3:]}_{event.type[0].lower()}_[0-9]{{1,10}}_[0-9]{{1,10}})",
        "counters": _counters(event.values.get("counters")),
    }
    text = re.sub("<([a-z]+)>", lambda slot: slots[slot[1]], re.escape(template))
    pattern = re.compile(text.encode("utf-8", "replace") + rb"\s*")
    captured = sum(template.count(f"<{slot}>") for slot in ("attempt", "text", "time"))
    fits = pattern.groups == captured + counters and pattern.fullmatch(event.raw)
    return pattern if fits else None


def _counters(value: Any) -> str:
    """Regular expression of the counters *value*, with a group for each number."""
    if not isinstance(value, dict) or "groups" not in value:
        return ""
    groups = [
        {**group, "counts": [{**counter, "value": None} for counter in group["counts"]]}
        for group in value["groups"]
    ]
    text = json.dumps({**value, "groups": groups}, separators=(",", ":"), ensure_ascii=False)
    return re.escape(text).replace('"value":null', f'"value":({_LONG})')
