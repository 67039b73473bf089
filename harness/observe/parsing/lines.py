"""
Text that comes in lines: samples of machines and of their speed, and Hadoop's container logs.

The samples are the harness's own, taken while trials run.  The layout of container logs is that of
``container-log4j.properties``, `%d{ISO8601} %p [%t] %c: %m%n`:

    2026-01-15 10:00:00,423 INFO [SpillThread] org.apache.hadoop.mapred.MapTask: Finished spill 0

A parser of logs lists the classes and messages that it reads.  Other lines are skipped; a line that
starts like one of its own and does not read like it is an error, for skipping it would lose a
measurement unseen.  All writers may be killed while they write: a last line without an end is left
out.
"""

from __future__ import annotations

import math
import re

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime, tzinfo
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

import orjson

from harness.base.errors import ParseError
from harness.base.records.trace import MachineSample, SpeedSample
from harness.base.text import excerpt

# Beyond this a whole number is no longer exact as a float, and it is no count or time of ours.
LARGEST = 2**53

# Ten a second from each of 100 cores for more than an hour: no trial has more.
MOST_SAMPLES = 5_000_000

_MACHINE_FIELDS = frozenset(field.name for field in fields(MachineSample))
_WHOLE_FIELDS = ("runnable", "available_bytes", "swapped_bytes")
_UNKNOWN_FIELDS = ("memory_pressure", "own", "kernel")  # which not every machine can tell
_LATER_FIELDS = {"own", "kernel", "swapped_bytes"}  # samples of older runs are without them
_SPEED_LINE = re.compile(rb"\s*(\d{1,16})\s+(\d{1,6})\s+(\d{1,16})\s+(\d{1,16})\s*")
_LAYOUT = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) [A-Z]{4,5} +\[(?P<thread>[^\]]*)\]"
    r" (?P<logger>[^ :]+): (?P<message>.*)",
    re.ASCII | re.DOTALL,
)

# By class, by name of the event: the message, with a ~ behind what shows that it is meant.
Messages = Mapping[str, Mapping[str, str]]
_BOUNDED = r"\d{1,18}"  # a number of a message; in its start it may have any length

Window = tuple[float, float]
ALWAYS: Window = (-math.inf, math.inf)

T = TypeVar("T")


def whole_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """
    Lines with their numbers from 1, without a last line that has no end.

    A writer that is killed leaves such a line, and half a number still reads as a number.
    """
    previous: bytes | None = None
    number = 0
    for number, log_line in enumerate(lines, start=1):
        if previous is not None:
            yield number - 1, previous
        previous = log_line
    if previous is not None and previous.endswith(b"\n"):
        yield number, previous


def limited(samples: Iterable[T], source: str) -> Iterator[T]:
    """*samples*, which somebody will keep, unless they are too many: a small file can unpack so."""
    for number, sample in enumerate(samples, start=1):
        if number > MOST_SAMPLES:
            fix = "no trial has that many: is this log the harness's own?"
            raise ParseError(f"more than {MOST_SAMPLES} samples", source=source, fix=fix)
        yield sample


def value_excerpt(value: object) -> str:
    """*value* for a message: text and numbers as they are, anything that may nest by its type."""
    if isinstance(value, str | bytes):
        return f"'{excerpt(value)}'"
    if value is None or isinstance(value, int | float):
        return excerpt(repr(value))
    return f"a {type(value).__name__}"


def read_machine(lines: Iterable[bytes], source: str) -> Iterator[MachineSample]:
    """Yield the samples in *lines*: JSON objects with the fields of `MachineSample`."""
    for number, sample_line in limited(whole_lines(lines), source):
        if sample_line.isspace():
            continue
        try:
            values = orjson.loads(sample_line)
            _check_machine_values(values)
        except ValueError as error:
            what = f"not a sample of the machine: '{excerpt(sample_line)}': {error}"
            raise ParseError(what, source=source, line=number) from error
        yield MachineSample(**values)


def _check_machine_values(values: Any) -> None:
    """`ValueError` unless *values* are those of a `MachineSample` by the names of its fields."""
    if not isinstance(values, dict) or values.keys() | _LATER_FIELDS != _MACHINE_FIELDS:
        raise ValueError(f"the fields are not {', '.join(sorted(_MACHINE_FIELDS))}")
    for name, number in values.items():
        if number is None and name in _UNKNOWN_FIELDS:
            continue
        is_whole = type(number) is int
        is_number = is_whole or (type(number) is float and name not in _WHOLE_FIELDS)
        if not is_number or not 0 <= number < LARGEST:
            raise ValueError(f"{name} is {value_excerpt(number)}")


def read_speed(lines: Iterable[bytes], source: str) -> Iterator[SpeedSample]:
    """
    Yield the samples of the speed probe in *lines*, a sample's CPU time in seconds.

    A line is ``epoch_ms thread units cpu_ns``: when the sample was taken, on which thread, the
    units of fixed work that were done and the CPU time they took; or a header after ``#``.  Any
    other line is `ParseError` with *source* and line.
    """
    for number, sample_line in limited(whole_lines(lines), source):
        if sample_line.isspace() or sample_line.startswith(b"#"):
            continue
        match = _SPEED_LINE.fullmatch(sample_line)
        values = [int(text) for text in match.groups()] if match else [LARGEST]
        if max(values) >= LARGEST:
            what = f"not a sample of the speed probe: '{excerpt(sample_line)}'"
            fix = "a sample is: epoch_ms thread units cpu_ns"
            raise ParseError(what, source=source, line=number, fix=fix)
        epoch_ms, thread, units, cpu_ns = values
        yield SpeedSample(at_s=epoch_ms / 1e3, thread=thread, units=units, cpu_s=cpu_ns / 1e9)


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
        flags = re.ASCII | re.DOTALL
        starts = list[str]()
        self._rules: dict[str, list[tuple[str, re.Pattern[str], re.Pattern[str]]]] = {}
        for logger, rules in messages.items():
            compiled = self._rules[logger] = []
            for name, message in rules.items():
                start = message.partition("~")[0].replace(_BOUNDED, r"\d+")
                whole = re.compile(message.replace("~", ""), flags)
                compiled.append((name, re.compile(start, flags), whole))
                starts.append(f"{re.escape(logger)}: {start}")
        self._any_start = re.compile("|".join(starts).encode())

    def looks_for(self, line: bytes) -> bool:
        """Whether *line* is like one of the messages."""
        return bool(self._any_start.search(line))

    def before(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The *lines* before the first that is looked for."""
        return takewhile(lambda log_line: not self.looks_for(log_line), lines)

    def events(
        self, lines: Iterable[bytes], source: str, zone: tzinfo, window: Window = ALWAYS
    ) -> Iterator[Event]:
        """
        Events in *lines*, whose times are local to *zone*, each within *window*.

        `ParseError` names one that does not read, or lies outside.  Of the hour that clocks repeat
        in autumn that moment counts which is nearer to the line before.
        """
        last_s = window[0]
        for number, log_line in whole_lines(lines):
            if not self.looks_for(log_line):
                continue
            layout = _LAYOUT.fullmatch(log_line.decode("utf-8", "replace").rstrip("\r\n\t "))
            if layout is None:
                raise _unreadable_line_error(number, log_line, source)
            rule = self._rule(layout["logger"], layout["message"])
            if rule is None:
                continue
            name, pattern = rule
            message = pattern.fullmatch(layout["message"])
            parts = message.groups() if message else ()
            largest = max(map(int, filter(str.isdecimal, parts)), default=0)
            if message is None or largest > LARGEST:
                raise _unreadable_line_error(number, log_line, source)
            moments = _moments(layout["stamp"], zone)
            if not moments:  # 30 February has the right shape
                raise ParseError(f"no such time: {layout['stamp']}", source=source, line=number)
            possible = [at_s for at_s in moments if window[0] <= at_s <= window[1]]
            if not possible:
                what = f"{layout['stamp']} in the zone {zone} is {moments[0] - window[0]:.0f} s"
                what += f" into an attempt of {window[1] - window[0]:.0f} s"
                fix = "set its node's clock and zone right, then: harness all FILE --new"
                raise ParseError(what, source=source, line=number, fix=fix)
            last_s = min(possible, key=lambda at_s: abs(at_s - last_s))
            yield Event(last_s, layout["thread"], name, parts, number, log_line)

    def _rule(self, logger: str, message: str) -> tuple[str, re.Pattern[str]] | None:
        """Name and pattern of the event as which *message* starts; other classes quote freely."""
        for name, start_pattern, whole_pattern in self._rules.get(logger, ()):
            if start_pattern.match(message):
                return name, whole_pattern
        return None


def has_layout(log_line: bytes) -> bool:
    """Whether a line is laid out as those of Hadoop's containers are."""
    return _LAYOUT.match(log_line.decode("utf-8", "replace")) is not None


def _moments(stamp: str, zone: tzinfo) -> list[float]:
    """Seconds since the epoch at *stamp*, twice: they differ in the hour that clocks repeat."""
    try:
        local = datetime.fromisoformat(stamp.replace(",", ".")).replace(tzinfo=zone)
        return [local.replace(fold=fold).timestamp() for fold in (0, 1)]
    except (ValueError, OverflowError):
        return []


def _unreadable_line_error(number: int, log_line: bytes, source: str) -> ParseError:
    fix = "keep Hadoop's layout of container logs: %d{ISO8601} %p [%t] %c: %m%n"
    what = f"not a line of a task's log: '{excerpt(log_line)}'"
    return ParseError(what, source=source, line=number, fix=fix)


def order_error(event: Event, what: str, source: str) -> ParseError:
    """*event* does not follow from the lines before it."""
    what = f"{what} out of order: '{excerpt(event.line)}'"
    fix = "lines are missing or mixed: is this the whole log of one task?"
    return ParseError(what, source=source, line=event.number, fix=fix)
