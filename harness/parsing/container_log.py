"""
Spills of a map task, from its container's ``syslog``.

The layout is Hadoop's own ``container-log4j.properties``; the messages are those of
`MapTask.MapOutputBuffer` in Hadoop 3:

    2026-01-15 10:00:00,123 INFO [main] org.apache.hadoop.mapred.MapTask: Spilling map output
    2026-01-15 10:00:00,423 INFO [SpillThread] org.apache.hadoop.mapred.MapTask: Finished spill 0

A spill that the flush makes (the last one) ends on another thread than ``SpillThread``.  Lines of
other classes are not ours and are skipped; a line with one of the two messages that does not
parse is an error, because skipping it would lose a measurement unseen.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo

from harness.errors import ParseError
from harness.parsing.lines import shown, whole
from harness.records.trace import Spill

_OURS = re.compile(rb"\.MapTask: (?:Spilling map output|Finished spill )")
_LINE = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) INFO \[(?P<thread>[^\]]*)\]"
    r" org\.apache\.hadoop\.mapred\.MapTask:"
    r" (?P<what>Spilling map output|Finished spill (?P<index>\d{1,9}))\s*",
    re.ASCII,
)


def read_spills(lines: Iterable[bytes], source: str, zone: tzinfo = UTC) -> tuple[Spill, ...]:
    """
    Spills in *lines*, in their order; times in seconds since the epoch.

    Hadoop writes local time without a zone: *zone* is that of the node.  A spill that was still
    running when the log ends, and a last line without an end, are left out (the task was killed).
    A spill that ends without having begun, begins twice, or is out of count is `ParseError` with
    *source* and line.
    """
    spills: list[Spill] = []
    begun: float | None = None
    index = -1  # A record larger than the buffer has an index, and no line.
    for number, line in _ours(lines):
        match, at = _read(line, source, number, zone)
        ends = match["index"] is not None
        if ends == (begun is None) or (ends and int(match["index"]) <= index):
            raise _lost(line, source, number)
        if begun is not None:
            spills.append(Spill(begun, at, last=match["thread"] != "SpillThread"))
        begun, index = (None, int(match["index"])) if ends else (at, index)
    return tuple(spills)


def _ours(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in whole(lines) if _OURS.search(line))


def _read(line: bytes, source: str, number: int, zone: tzinfo) -> tuple[re.Match[str], float]:
    match = _LINE.fullmatch(line.decode("utf-8", "replace"))
    if match is None:
        raise ParseError(
            f"not a line of MapTask: {shown(line)}",
            source=source,
            line=number,
            fix="keep Hadoop's layout of container logs: %d{ISO8601} %p [%t] %c: %m%n",
        )
    try:
        stamp = datetime.strptime(match["stamp"], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=zone)
        return match, stamp.timestamp()
    except (ValueError, OverflowError) as error:  # The shape of a date, and no date: 30 February.
        raise ParseError(f"no such time: {match['stamp']}", source=source, line=number) from error


def _lost(line: bytes, source: str, number: int) -> ParseError:
    return ParseError(
        f"a spill out of order: {shown(line)}",
        source=source,
        line=number,
        fix="lines are missing or mixed: is this the whole syslog of one map task?",
    )
