"""
What a task says of itself in its container's ``syslog``.

The messages are those of `MapTask.MapOutputBuffer`, `Merger`, `Task` and `ReduceTask` in Hadoop 3:

    2026-01-15 10:00:00,123 INFO [main] org.apache.hadoop.mapred.MapTask: Spilling map output
    ... bufstart = 0; bufend = 342428; bufvoid = 1048576
    ... kvstart = 262140(1048560); kvend = 138040(552160); length = 124101/65536
    ... (EQUATOR) 447286 kvi 111816(447264)
    2026-01-15 10:00:00,423 INFO [SpillThread] org.apache.hadoop.mapred.MapTask: Finished spill 0
    ... (RESET) equator 447286 kv 111816(447264) kvi 85612(342448)

The sort buffer is a ring: keys and values grow up from its equator, 16 bytes (four ints) of
metadata a record grow down from it.  ``kv`` names count ints, ``buf`` names bytes, and ``length``
counts the ints of all metadata but for three of the last record's.  Between a spill's start and
its reset the map function emitted (kv - kvi) / 4 records.

A spill that the flush makes (the last one) ends on another thread than ``SpillThread``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from harness.errors import ParseError
from harness.parsing.log4j import Event, Messages, Reader, lost
from harness.records.logs import SpillLog, TaskLog
from harness.records.trace import Spill

_N = r"(\d{1,18})"
_SIGNED = r"(-?\d{1,18})"
_ATTEMPT = r"(attempt_\d{1,20}_\d{1,10}_[mr]_\d{1,10}_\d{1,10})"
_METADATA = 16  # bytes of a record
_MOST_SPILLS = 100_000  # each is a file, and the merge opens them

_MESSAGES: Messages = {
    "org.apache.hadoop.mapred.MapTask": {
        "split": (r"Processing split: ", r"Processing split: .*"),
        "collector": (r"Map output collector class = ", r"Map output collector class = .*"),
        "buffer": (r"kvstart = \d+; length", rf"kvstart = {_N}; length = {_N}"),
        "spill": (r"Spilling map output", r"Spilling map output"),
        "data": (r"bufstart = \d+; bufend", rf"bufstart = {_N}; bufend = {_N}; bufvoid = {_N}"),
        "records": (
            r"kvstart = \d+\(",
            rf"kvstart = {_N}\(\d+\); kvend = {_N}\(\d+\); length = {_N}/{_N}",
        ),
        "equator": (r"\(EQUATOR\) ", rf"\(EQUATOR\) {_N} kvi {_N}\(\d+\)"),
        "finished": (r"Finished spill ", r"Finished spill (\d{1,9})"),
        "reset": (
            r"\(RESET\) equator ",
            rf"\(RESET\) equator {_N} kv {_N}\(\d+\) kvi {_N}\(\d+\)",
        ),
        "large": (r"Record too large for in-memory buffer", r"Record too large for .*"),
        "flush": (r"Starting flush of map output", r"Starting flush of map output"),
    },
    "org.apache.hadoop.mapred.Merger": {
        "pass": (
            r"Merging \d+ intermediate",
            rf"Merging {_N} intermediate segments out of a total of {_N}",
        ),
        "last_pass": (
            r"Down to the last merge-pass",
            rf"Down to the last merge-pass, with {_N} segments left of total size: {_SIGNED} bytes",
        ),
    },
    "org.apache.hadoop.mapred.ReduceTask": {
        "shuffle": (r"Using ShuffleConsumerPlugin: ", r"Using ShuffleConsumerPlugin: .*"),
    },
    "org.apache.hadoop.mapred.Task": {
        "done": (
            r"Task:\S+ is done\.",
            rf"Task:{_ATTEMPT} is done\. And is in the process of committing",
        ),
        "allowed": (r"Task \S+ is allowed", rf"Task {_ATTEMPT} is allowed to commit now"),
        "ended": (r"Task '[^']*' done", rf"Task '{_ATTEMPT}' done\."),
    },
    "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter": {
        "saved": (r"Saved output of task '", rf"Saved output of task '{_ATTEMPT}' to .*"),
    },
}
_READER = Reader(_MESSAGES)


def read_task_log(lines: Iterable[bytes], source: str, zone: tzinfo = UTC) -> TaskLog:
    """
    What the ``syslog`` of one task says; times in seconds since the epoch.

    Hadoop writes local time without a zone: *zone* is that of the node.  A spill that was still
    running when the log ends, and a last line without an end, are left out (the task was killed).
    `ParseError` with *source* and line: a spill that ends without having begun, begins twice, or is
    out of count; a second task in the same log; a message that does not read like Hadoop's.
    """
    task = _Task(source)
    for event in _READER.events(lines, source, zone):
        task.take(event)
    return task.log()


def read_spills(lines: Iterable[bytes], source: str, zone: tzinfo = UTC) -> tuple[Spill, ...]:
    """Spills alone of `read_task_log`, with their times."""
    return spills_of(read_task_log(lines, source, zone))


def spills_of(log: TaskLog) -> tuple[Spill, ...]:
    """When the task of *log* spilled."""
    return tuple(Spill(s.start_s, s.finish_s, s.last) for s in log.spills)


@dataclass
class _Begun:
    """A spill that has begun: moment, and where the ring's marks stood."""

    at_s: float
    records: int | None = None
    buffer_bytes: int | None = None
    data_end: int = 0
    metadata_end: int = 0
    room_records: int | None = None
    room_bytes: int | None = None


class _Task:
    """Puts the events of one task together."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._moments: dict[str, float] = {}
        self._attempt_id = ""
        self._spills: list[SpillLog] = []
        self._begun: _Begun | None = None
        self._index = -1  # A record larger than the buffer has an index, and no line.
        self._ints = 0  # of the ring
        self._large = self._passes = self._merged = 0
        self._steps: dict[str, Callable[[Event], None]] = {
            "buffer": self._buffer,
            "spill": self._begin,
            "data": self._data,
            "records": self._records,
            "equator": self._equator,
            "finished": self._finish,
            "reset": self._reset,
            "large": self._too_large,
            "pass": self._pass,
            "last_pass": self._last_pass,
        }

    def take(self, event: Event) -> None:
        """Let the next event follow from what is known."""
        if event.name in _MOMENTS:
            self._moment(event)
        else:
            self._steps[event.name](event)

    def log(self) -> TaskLog:
        """All that was said."""
        return TaskLog(
            attempt_id=self._attempt_id,
            spills=tuple(self._spills),
            large_records=self._large,
            merge_passes=self._passes,
            merged_bytes=self._merged,
            **{f"{name}_s": at_s for name, at_s in self._moments.items()},
        )

    def _moment(self, event: Event) -> None:
        if event.name in self._moments:
            raise lost(event, "a second task, or its line", self._source)
        self._moments[event.name] = event.at_s
        if event.parts:
            self._attempt_id = event.parts[0]

    def _buffer(self, event: Event) -> None:
        self._ints = 4 * event.whole_number(1)

    def _begin(self, event: Event) -> None:
        if self._begun is not None:
            raise lost(event, "a spill", self._source)
        self._begun = _Begun(event.at_s)

    def _data(self, event: Event) -> None:
        start, end, void = (event.whole_number(part) for part in range(3))
        if self._begun is None or max(start, end) > void:
            raise lost(event, "marks of a spill", self._source)
        self._begun.buffer_bytes = _distance(start, end, void)
        self._begun.data_end = end

    def _records(self, event: Event) -> None:
        _, end, length, _ = (event.whole_number(part) for part in range(4))
        if self._begun is None or length % 4 != 1:
            raise lost(event, "marks of a spill", self._source)
        self._begun.records = (length + 3) // 4
        self._begun.metadata_end = 4 * end

    def _equator(self, event: Event) -> None:
        """The free part of the ring is shared: how much each side has until the spill ends."""
        begun, ring = self._begun, 4 * self._ints
        if begun is None or begun.records is None or begun.buffer_bytes is None or not ring:
            return  # the buffer is made, or emptied for a record that does not fit
        at = event.whole_number(0)
        begun.room_records = _distance(begun.data_end, at, ring) // _METADATA
        begun.room_bytes = _distance(at, begun.metadata_end, ring)

    def _finish(self, event: Event) -> None:
        begun, index = self._begun, event.whole_number(0)
        if begun is None or index <= self._index:
            raise lost(event, "a spill", self._source)
        if len(self._spills) >= _MOST_SPILLS:
            raise ParseError(
                f"more than {_MOST_SPILLS} spills", source=self._source, line=event.number
            )
        self._begun, self._index = None, index
        self._spills.append(
            SpillLog(
                start_s=begun.at_s,
                finish_s=event.at_s,
                last=event.thread != "SpillThread",
                records=begun.records,
                buffer_bytes=begun.buffer_bytes,
                room_records=begun.room_records,
                room_bytes=begun.room_bytes,
            )
        )

    def _reset(self, event: Event) -> None:
        if self._begun is not None:
            raise lost(event, "space given back", self._source)
        if self._spills and self._ints and self._spills[-1].reset_s is None:
            ints = _distance(event.whole_number(2), event.whole_number(1), self._ints)
            self._spills[-1] = replace(self._spills[-1], collected=ints // 4, reset_s=event.at_s)

    def _too_large(self, _event: Event) -> None:
        self._large += 1

    def _pass(self, _event: Event) -> None:
        self._passes += "flush" in self._moments

    def _last_pass(self, event: Event) -> None:
        if "flush" in self._moments:
            self._merged += max(event.whole_number(1), 0)


def _distance(start: int, end: int, ring: int) -> int:
    """From *start* up to *end*, around the ring."""
    return (end - start) % ring if ring else 0


_MOMENTS = frozenset(
    {"split", "collector", "flush", "shuffle", "done", "allowed", "saved", "ended"}
)
