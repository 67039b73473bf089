"""What parsers of lines share: whole lines, numbers of a sane size, and lines fit for a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from harness.errors import ParseError

# Beyond this a whole number is no longer exact as a float, and no count or time of ours.
LARGEST = 2**53

# Ten a second from each of 100 cores for more than an hour: no trial has more.
MOST_SAMPLES = 5_000_000

_SHOWN = 80

T = TypeVar("T")


def whole(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """
    Lines with their 1-based numbers, without a last line that has no end.

    A writer that is killed leaves such a line, and half a number still reads as a number.
    """
    before: bytes | None = None
    number = 0
    for number, line in enumerate(lines, start=1):
        if before is not None:
            yield number - 1, before
        before = line
    if before is not None and before.endswith(b"\n"):
        yield number, before


def limited(samples: Iterable[T], source: str) -> Iterator[T]:
    """*samples*, which somebody will keep, unless they are too many: a small file can unpack so."""
    for number, sample in enumerate(samples, start=1):
        if number > MOST_SAMPLES:
            raise ParseError(
                f"more than {MOST_SAMPLES} samples",
                source=source,
                fix="no trial has so many: is this log the harness's own?",
            )
        yield sample


def shown(line: bytes) -> str:
    """Begin of *line* as a Python literal: it fits a message and cannot steer a terminal."""
    text = ascii(line[:_SHOWN].decode("utf-8", "replace").rstrip("\r\n"))
    return text if len(line) <= _SHOWN else f"{text}..."


def named(value: object) -> str:
    """*value* for a message: text and numbers as they are, anything that may nest by its type."""
    if isinstance(value, str):
        return shown(value.encode("utf-8", "replace"))
    if value is None or isinstance(value, int | float):
        return shown(repr(value).encode()).strip("'")
    return f"a {type(value).__name__}"


def clean(text: str) -> str:
    """*text* without lone surrogates, which JSON can hold and no file can."""
    return text.encode("utf-8", "replace").decode("utf-8")
