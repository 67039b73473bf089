"""
Samples of the speed probe: how much fixed work a CPU second did, while a trial ran.

One line per sample, ``epoch_ms thread units cpu_ns``: when the sample was taken, which thread took
it, the units of work it did and the CPU time they took.  A line that begins with ``#`` is a header.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator

from harness.errors import ParseError
from harness.parsing.lines import LARGEST, limited, shown, whole
from harness.records.trace import SpeedSample

_LINE = re.compile(rb"\s*(\d{1,16})\s+(\d{1,6})\s+(\d{1,16})\s+(\d{1,16})\s*", re.ASCII)


def read_speed(lines: Iterable[bytes], source: str) -> Iterator[SpeedSample]:
    """
    Yield the samples in *lines*, a sample's CPU time in seconds.

    A last line without an end is left out: the probe is killed, and may be while it writes.
    Any other line that is neither sample nor header is `ParseError` with *source* and line.
    """
    return limited(_samples(lines, source), source)


def _samples(lines: Iterable[bytes], source: str) -> Iterator[SpeedSample]:
    for number, line in whole(lines):
        if line.isspace() or line.startswith(b"#"):
            continue
        match = _LINE.fullmatch(line)
        values = [int(text) for text in match.groups()] if match else [LARGEST]
        if max(values) >= LARGEST:
            raise ParseError(
                f"not a sample of the speed probe: {shown(line)}",
                source=source,
                line=number,
                fix="a sample is: epoch_ms thread units cpu_ns",
            )
        at_ms, thread, units, cpu_ns = values
        yield SpeedSample(at_s=at_ms / 1e3, thread=thread, units=units, cpu_s=cpu_ns / 1e9)
