"""
Quick reading of events that look like one before, in either form of history.

Nine tenths of a large history are events that differ in names and numbers alone.  The first of its
kind is read by name, and makes regular expressions that read the others.  An event that differs in
one more byte does not match, and is read by name again: what is read quickly is what would have
been read slowly, and what is odd is refused by the same words.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from harness.parsing.jobhistory_counters import Sets
from harness.parsing.jobhistory_job import End, Job, Start
from harness.records.trace import TaskKind

# How many shapes are learnt of each type: a history whose every event is new stays slow.
_SHAPES = 8
_SHAPES_OF_ALL = 128  # types there may be as many as the schema in the file has names
_LONGEST_SHAPE = 1 << 14

# What is taken of an event, in its order, which is that of both forms.
_STARTED = ("attemptId", "startTime", "trackerName", "containerId", "locality")
TAKEN = {
    "MAP_ATTEMPT_STARTED": _STARTED,
    "REDUCE_ATTEMPT_STARTED": _STARTED,
    "MAP_ATTEMPT_FINISHED": ("attemptId", "mapFinishTime", "finishTime", "hostname"),
    "REDUCE_ATTEMPT_FINISHED": (
        "attemptId", "shuffleFinishTime", "sortFinishTime", "finishTime", "hostname",
    ),
}  # fmt: skip

# From bytes and the position of an event in them, and its place in the history for messages, to
# the position behind it; to 0 where it has no shape that is known, or contradicts what is.
Reader = Callable[[bytes, int, int], int]


class Shape(NamedTuple):
    """
    What events alike look like: *head*, counters where they are *counted*, *tail*.

    The head has a group for each field that is taken.
    """

    head: re.Pattern[bytes]
    tail: re.Pattern[bytes]
    counted: bool


class Shapes:
    """
    Shapes of events that were met, and readers of such events by the bytes that they begin with.

    *whole* and *text* read a time and a text as the form of the history writes them.
    """

    def __init__(
        self,
        job: Job,
        sets: Sets,
        whole: Callable[[bytes], int],
        text: Callable[[bytes], str],
    ) -> None:
        self.readers: dict[bytes, Reader] = {}
        self._job, self._sets, self._whole, self._text = job, sets, whole, text
        self._tried = Counter[str]()
        self._known: dict[str, list[Shape]] = {}

    def learn(
        self, kind: str, begin: bytes, raw: bytes, patterns: Callable[[], tuple[bytes, ...]]
    ) -> None:
        """
        Read events like *raw*, of the type *kind*, quickly from now on, where that is possible.

        They begin with *begin*; *patterns* gives one regular expression, or those of what stands
        before and behind the counters.
        """
        tried = self._tried
        if tried[kind] >= _SHAPES or tried.total() >= _SHAPES_OF_ALL or len(raw) > _LONGEST_SHAPE:
            return
        tried[kind] += 1
        found = [re.compile(pattern, re.DOTALL) for pattern in patterns()]
        if len(found) not in (1, 2):
            return
        shape = Shape(found[0], found[-1], counted=len(found) == 2)
        groups = sum(pattern.groups for pattern in found)
        fits = shape.head.groups == groups == len(TAKEN.get(kind, ()))
        if fits and self._skip([shape], raw, 0) == len(raw):
            known = self._known.setdefault(kind, [])
            known.insert(0, shape)
            self.readers[begin] = self._reader(kind, known)

    def _reader(self, kind: str, known: list[Shape]) -> Reader:
        if kind not in TAKEN:
            return lambda data, at, _: self._skip(known, data, at)
        if kind.endswith("STARTED"):
            return self._started(known)
        return self._finished(known, "map" if kind.startswith("MAP") else "reduce")

    def _skip(self, known: list[Shape], data: bytes, at: int) -> int:
        found = known[0].head.match(data, at) or _other(known, data, at)
        if found is None:
            return 0
        if known[0].counted:
            end = self._sets.skip(data, found.end())
            found = known[0].tail.match(data, end) if end else None
        return found.end() if found else 0

    def _started(self, known: list[Shape]) -> Reader:
        keep, text, whole = self._job.start, self._text, self._whole

        def read(data: bytes, at: int, _: int) -> int:
            found = known[0].head.match(data, at) or _other(known, data, at)
            if found is None:
                return 0
            name, start, host, container, locality = found.groups()
            told = Start(whole(start) / 1000, text(host), container.decode(), text(locality))
            return found.end() if keep(name.decode(), told) else 0

        return read

    def _finished(self, known: list[Shape], kind: TaskKind) -> Reader:
        keep, text, whole, counted = self._job.end, self._text, self._whole, self._sets.read

        def read(data: bytes, at: int, place: int) -> int:
            found = known[0].head.match(data, at) or _other(known, data, at)
            if found is None:
                return 0
            counters, end = counted(data, found.end())
            tail = known[0].tail.match(data, end) if counters is not None else None
            if counters is None or tail is None:
                return 0
            mapped = shuffled = merged = None
            if kind == "map":
                name, first, finish, host = found.groups()
                mapped = whole(first) / 1000
            else:
                name, first, second, finish, host = found.groups()
                shuffled, merged = whole(first) / 1000, whole(second) / 1000
            told = End(
                place, kind, "succeeded", whole(finish) / 1000, text(host), counters,
                mapped, shuffled, merged,
            )  # fmt: skip
            return tail.end() if keep(name.decode(), told) else 0

        return read


def _other(known: list[Shape], data: bytes, at: int) -> re.Match[bytes] | None:
    """Match with a shape but the first, and bring that to the front."""
    for place in range(1, len(known)):
        found = known[place].head.match(data, at)
        if found is not None:
            known.insert(0, known.pop(place))
            return found
    return None
