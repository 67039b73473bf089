"""
Lines of Hadoop's container logs, as events.

The layout is that of ``container-log4j.properties``, `%d{ISO8601} %p [%t] %c: %m%n`:

    2026-01-15 10:00:00,423 INFO [SpillThread] org.apache.hadoop.mapred.MapTask: Finished spill 0

A parser lists the classes and messages that it reads.  Other lines are skipped; a line that starts
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

# By class, by name of the event: how the message starts, and the whole of it.
Messages = Mapping[str, Mapping[str, tuple[str, str]]]


class Event(NamedTuple):
    """A line that was looked for: when, on which thread, what, and the parts that vary."""

    at_s: float
    thread: str
    name: str
    parts: tuple[str, ...]
    number: int
    line: bytes

    def numbers(self) -> list[int]:
        """Give the parts as counts of records or bytes."""
        return [int(part) for part in self.parts]


class Reader:
    """Finds events of some classes; *messages* are regular expressions."""

    def __init__(self, messages: Messages) -> None:
        """Prepare to look for *messages*."""
        flags = re.ASCII | re.DOTALL
        self._rules = {
            logger: [
                (name, re.compile(start_pattern, flags), re.compile(whole_pattern, flags))
                for name, (start_pattern, whole_pattern) in rules.items()
            ]
            for logger, rules in messages.items()
        }
        starts = (
            f"{re.escape(logger)}: (?:{'|'.join(pattern for pattern, _ in rules.values())})"
            for logger, rules in messages.items()
        )
        self._any_start = re.compile("|".join(starts).encode())

    def events(self, lines: Iterable[bytes], source: str, zone: tzinfo) -> Iterator[Event]:
        """
        Events in *lines*; the node wrote its times in *zone*.

        A last line without an end is left out: the task was killed.  `ParseError` names *source*
        and the line that does not read.
        """
        for number, log_line in whole_lines(lines):
            if not self._any_start.search(log_line):
                continue
            layout = _LAYOUT.fullmatch(log_line.decode("utf-8", "replace").rstrip("\r\n\t "))
            if layout is None:
                raise _unreadable_line_error(number, log_line, source)
            # Other classes may quote what they like.
            for name, start_pattern, whole_pattern in self._rules.get(layout["logger"], ()):
                if not start_pattern.match(layout["message"]):
                    continue
                message = whole_pattern.fullmatch(layout["message"])
                variable_parts = message.groups() if message else ()
                if message is None or any(
                    p.isdecimal() and int(p) > LARGEST for p in variable_parts
                ):
                    raise _unreadable_line_error(number, log_line, source)
                stamp = layout["stamp"].replace(",", ".")
                try:
                    at_s = datetime.fromisoformat(stamp).replace(tzinfo=zone).timestamp()
                except (ValueError, OverflowError) as error:  # 30 February has the right shape
                    raise ParseError(
                        f"no such time: {layout['stamp']}", source=source, line=number
                    ) from error
                yield Event(at_s, layout["thread"], name, variable_parts, number, log_line)
                break


def _unreadable_line_error(number: int, log_line: bytes, source: str) -> ParseError:
    return ParseError(
        f"not a line of a task's log: '{excerpt(log_line)}'",
        source=source,
        line=number,
        fix="keep Hadoop's layout of container logs: %d{ISO8601} %p [%t] %c: %m%n",
    )


def order_error(event: Event, what: str, source: str) -> ParseError:
    """*event* does not follow from the lines before it."""
    return ParseError(
        f"{what} out of order: '{excerpt(event.line)}'",
        source=source,
        line=event.number,
        fix="lines are missing or mixed: is this the whole log of one task?",
    )
