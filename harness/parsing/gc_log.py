"""
Garbage collection of one JVM, from unified logging (``-Xlog:gc``, JDK 9 and later).

Lines of the tag set ``gc`` alone that name a pause are counted, for every collector; concurrent
work is no pause.  The log may stand between other output, which is skipped.
"""

from __future__ import annotations

import re

from collections.abc import Iterable

from harness.errors import ParseError
from harness.parsing.lines import shown
from harness.records.trace import GcTotals

#   [3.940s][info][gc] GC(0) Pause Young (Allocation Failure) 53M->11M(193M) 92.922ms
_TAG = re.compile(rb"\[[^\[\]]*\](?:\[[^\[\]]*\])*\[gc\s*\] ")
_PAUSE = re.compile(rb"GC\(\d+\) Pause .* (\d{1,9}[.,]\d{1,9})ms\s*")


def read_gc(lines: Iterable[bytes], source: str) -> GcTotals:
    """
    Count, sum and maximum of the pauses in *lines*.

    A last line without an end is left out, for the JVM may have been killed.  A line of ours that
    names a pause without its length, and a text without any line of ``-Xlog:gc`` (the JVM writes
    one when it starts), are `ParseError`.
    """
    pauses, total, longest, ours = 0, 0.0, 0.0, False
    for number, line in enumerate(lines, start=1):
        tag = _TAG.match(line) if b"[gc" in line else None
        if tag is None:
            continue
        ours = True
        pause_s = _pause_s(line[tag.end() :], source, number)
        pauses += pause_s is not None
        total += pause_s or 0.0
        longest = max(longest, pause_s or 0.0)
    if not ours:
        raise ParseError(
            "no line of garbage collection logging",
            source=source,
            fix="start the JVM with -Xlog:gc:file=<LOG_DIR>/gc.log",
        )
    return GcTotals(pauses=pauses, pause_s=total, longest_s=longest)


def _pause_s(text: bytes, source: str, number: int) -> float | None:
    if b" Pause " not in text or not text.endswith(b"\n"):
        return None
    match = _PAUSE.fullmatch(text)
    if match is None:
        raise ParseError(
            f"a pause without its length: {shown(text)}",
            source=source,
            line=number,
            fix="-Xlog:gc writes the length in ms: was the log edited?",
        )
    return float(match[1].replace(b",", b".")) / 1e3
