"""
One job from its history (``.jhist``), as the application master wrote it, in either form.

    line 1   Avro-Json, or Avro-Binary (Hadoop's default)
    line 2   the Avro schema of an event; its enumeration names all event types
    then     one JSON object per event and blank lines, or Avro datums one behind the other

Events are read one at a time, in any order; only the job's attempts are kept.  An event that is
repeated word for word counts once.  Types that tell nothing here (tasks, queue, priority) are
skipped without being looked into; a type that the schema does not name is an error.  Fields are
taken by their names, so versions of Hadoop whose schemas differ read alike.

Whose clock: an attempt starts and ends by the application master's, the ends of map, shuffle and
sort are the container's.
"""

from __future__ import annotations

import gc

from collections.abc import Iterable, Iterator
from functools import partial
from io import BufferedIOBase, IOBase
from itertools import chain

from harness.parsing.jobhistory_event import Source
from harness.parsing.jobhistory_job import Job
from harness.parsing.jobhistory_json import decode, read_json, read_symbols
from harness.parsing.lines import shown
from harness.records.trace import JobTrace

# Hadoop's schema has 6 kB.
_LARGEST_HEAD = 1 << 20
_CHUNK = 1 << 18


def read_job(lines: Iterable[bytes], source: str) -> JobTrace:
    """
    Read the job whose history *lines* hold: its lines, or pieces of it that end anywhere.

    Attempts that never got a container are left out, and so are those of which no end is told
    (the job ended before them).  A history that is cut, foreign or contradictory is `ParseError`
    with *source* and, where there is one, the line or (binary) the byte at which the event begins.
    """
    collecting = gc.isenabled()
    gc.disable()  # Nothing here refers to itself, and there is much of it to look through.
    try:
        return _read(lines, source)
    finally:
        if collecting:
            gc.enable()


def _read(lines: Iterable[bytes], source: str) -> JobTrace:
    pieces = iter(lines)
    first, second, rest = _head(pieces)
    text = Source(source)
    if first.strip() == b"Avro-Json":
        job = Job(text)
        # An open file gives whole lines of itself.
        rest_of = pieces if isinstance(lines, IOBase) else _lines(chain([rest], pieces))
        read_json(rest_of, read_symbols(second, text), text, job)
    elif first.strip() == b"Avro-Binary":
        from harness.parsing.jobhistory_binary import read_binary

        binary = Source(source, "byte")
        job = Job(binary)
        start, schema = len(first) + len(second), decode(second, text, 2)
        # What a line is to an open file means nothing here.
        read = partial(lines.read, _CHUNK) if isinstance(lines, BufferedIOBase) else None
        chunks = iter(read, b"") if read else pieces
        read_binary(chain([rest], chunks), start, schema, binary, job)
    else:
        what, fix = f"not a job history: {shown(first)}", "give the .jhist file of a job"
        raise text.error(what, 1, fix)
    return job.trace()


def _head(pieces: Iterator[bytes]) -> tuple[bytes, bytes, bytes]:
    """First two lines, with their ends, and what of *pieces* was taken beyond them."""
    taken, ends, size = [], 0, 0
    while ends < 2 and size < _LARGEST_HEAD and (piece := next(pieces, None)) is not None:
        taken.append(piece)
        ends += piece.count(b"\n")
        size += len(piece)
    text = b"".join(taken)
    first = text.find(b"\n") + 1 or len(text)
    second = text.find(b"\n", first) + 1 or len(text)
    return text[:first], text[first:second], text[second:]


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines of *pieces*, which mostly are whole lines."""
    begun: list[bytes] = []
    for piece in pieces:
        if not begun and piece.find(b"\n") == len(piece) - 1 >= 0:
            yield piece
            continue
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield b"".join([*begun, line, b"\n"])
            begun.clear()
        if rest:
            begun.append(rest)
    if begun:
        yield b"".join(begun)
