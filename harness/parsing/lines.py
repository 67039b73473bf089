"""What parsers share: whole lines, bounds of numbers and lists, and values for messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from harness.errors import ParseError
from harness.text import excerpt

# Beyond this a whole number is no longer exact as a float, and it is no count or time of ours.
LARGEST = 2**53

# Ten a second from each of 100 cores for more than an hour: no trial has more.
MOST_SAMPLES = 5_000_000

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
            raise ParseError(
                f"more than {MOST_SAMPLES} samples",
                source=source,
                fix="no trial has that many: is this log the harness's own?",
            )
        yield sample


def value_excerpt(value: object) -> str:
    """*value* for a message: text and numbers as they are, anything that may nest by its type."""
    if isinstance(value, str | bytes):
        return f"'{excerpt(value)}'"
    if value is None or isinstance(value, int | float):
        return excerpt(repr(value))
    return f"a {type(value).__name__}"
