"""
Lines of Hadoop's container logs, as events.

The layout is that of ``container-log4j.properties``, `%d{ISO8601} %p [%t] %c: %m%n`:

    2026-01-15 10:00:00,423 INFO [SpillThread] org.apache.hadoop.mapred.MapTask: Finished spill 0

A parser says which classes and messages are its own.  Other lines are skipped; a line that begins
like one of its own and does not read like it is an error, for skipping it would lose a measurement
unseen.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import NamedTuple

from harness.errors import ParseError
from harness.parsing.lines import LARGEST, whole_lines
from harness.text import excerpt

_LAYOUT = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]{4,5} +\[(?P<thread>[^\]]*)\]"
    r" (?P<logger>[^ :]+): (?P<message>.*)",
    re.ASCII | re.DOTALL,
)

# By class, by name of the event: how the message begins, and the whole of it.
Messages = Mapping[str, Mapping[str, tuple[str, str]]]


class Event(NamedTuple):
    """A line that was asked for: when, on which thread, what, and the parts that vary."""

    at_s: float
    thread: str
    name: str
    parts: tuple[str, ...]
    number: int
    line: bytes

    def whole_number(self, part: int) -> int:
        """The *part* as a count of records or bytes."""
        return int(self.parts[part])


class Rule(NamedTuple):
    """A message: the event's name, how the message begins, and the whole of it."""

    name: str
    begin: re.Pattern[str]
    whole: re.Pattern[str]


class Reader:
    """Finds events of some classes; *messages* are regular expressions."""

    def __init__(self, messages: Messages) -> None:
        """Prepare to look for *messages*."""
        self._rules = {
            logger: [
                Rule(name, _pattern(begin), _pattern(rule)) for name, (begin, rule) in of.items()
            ]
            for logger, of in messages.items()
        }
        signs = (
            f"{re.escape(logger)}: (?:{'|'.join(begin for begin, _ in of.values())})"
            for logger, of in messages.items()
        )
        self._ours = re.compile("|".join(signs).encode())

    def events(self, lines: Iterable[bytes], source: str, zone: tzinfo) -> Iterator[Event]:
        """
        Events in *lines*; the node wrote its times in *zone*.

        A last line without an end is left out: the task was killed.  `ParseError` names *source*
        and the line that does not read.
        """
        for number, line in whole_lines(lines):
            if self._ours.search(line):
                event = self._event(number, line, source, zone)
                if event is not None:
                    yield event

    def _event(self, number: int, line: bytes, source: str, zone: tzinfo) -> Event | None:
        match = _LAYOUT.fullmatch(line.decode("utf-8", "replace").rstrip("\r\n\t "))
        if match is None:
            raise _foreign(number, line, source)
        # Other classes may quote what they like.
        for rule in self._rules.get(match["logger"], ()):
            if rule.begin.match(match["message"]):
                told = rule.whole.fullmatch(match["message"])
                if told is None or any(_too_large(part) for part in told.groups()):
                    raise _foreign(number, line, source)
                at_s = _seconds(match["stamp"], zone, number, source)
                return Event(at_s, match["thread"], rule.name, told.groups(), number, line)
        return None


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | re.DOTALL)


def _too_large(part: str) -> bool:
    return part.isdecimal() and int(part) > LARGEST


def _seconds(stamp: str, zone: tzinfo, number: int, source: str) -> float:
    try:
        return datetime.fromisoformat(stamp.replace(",", ".")).replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError) as error:  # The shape of a date, and no date: 30 February.
        raise ParseError(f"no such time: {stamp}", source=source, line=number) from error


def _foreign(number: int, line: bytes, source: str) -> ParseError:
    return ParseError(
        f"not a line of a task's log: '{excerpt(line)}'",
        source=source,
        line=number,
        fix="keep Hadoop's layout of container logs: %d{ISO8601} %p [%t] %c: %m%n",
    )


def lost(event: Event, what: str, source: str) -> ParseError:
    """Say that *event* does not follow from the lines before it."""
    return ParseError(
        f"{what} out of order: '{excerpt(event.line)}'",
        source=source,
        line=event.number,
        fix="lines are missing or mixed: is this the whole log of one task?",
    )
