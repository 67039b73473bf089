"""
What a task reports of itself in its container's ``syslog``, a reduce of its shuffle.

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

Of the shuffle ``syslog.shuffle`` has what the classes of `mapreduce.task.reduce` report, and
`mapred.Merger`; where ``yarn.app.mapreduce.shuffle.log.separate`` is off, it stands in ``syslog``,
which is read as well:

    ... [fetcher#5] ...Fetcher: fetcher#5 about to shuffle output of map attempt_1_0001_m_000000_0
            decomp: 236341 len: 236345 to MEMORY
    ... [fetcher#5] ...InMemoryMapOutput: Read 236341 bytes from map-output for attempt_1_...
    ... [fetcher#5] ...ShuffleSchedulerImpl: worker2:13562 freed by fetcher#5 in 114ms

(each one line).  A copy that fails has no second line; its map output is fetched again.
"""

from __future__ import annotations

import re

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

from harness.base.errors import ParseError
from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.records.tasks import CopyLog, MergeTimes, ShuffleLog, SpillLog, TaskLog, VisitLog
from harness.observe.parsing.lines import (
    ALWAYS,
    Event,
    Messages,
    Reader,
    Window,
    has_layout,
    order_error,
)

_N = r"(\d{1,18})"
_SIGNED = r"(-?\d{1,18})"
_ATTEMPT = r"(attempt_\d{1,20}_\d{1,10}_[mr]_\d{1,10}_\d{1,10})"
_MOST_SPILLS = 100_000  # each is a file, and the merge opens them

# By class, by name of the event; what stands before ~ shows that a line is meant to be one.
_TASK_MESSAGES: Messages = {
    "org.apache.hadoop.mapred.MapTask": {
        "split": r"Processing split: ~.*",
        "collector": r"Map output collector class = ~.*",
        "buffer": rf"kvstart = {_N}; length~ = {_N}",
        "spill": r"Spilling map output",
        "data": rf"bufstart = {_N}; bufend~ = {_N}; bufvoid = {_N}",
        "records": rf"kvstart = {_N}\(~\d+\); kvend = {_N}\(\d+\); length = {_N}/{_N}",
        "equator": rf"\(EQUATOR\) ~{_N} kvi {_N}\(\d+\)",
        "finished": r"Finished spill ~(\d{1,9})",
        "reset": rf"\(RESET\) equator ~{_N} kv {_N}\(\d+\) kvi {_N}\(\d+\)",
        "large": r"Record too large for in-memory buffer~.*",
        "flush": r"Starting flush of map output",
    },
    "org.apache.hadoop.mapred.Merger": {
        "pass": rf"Merging {_N} intermediate~ segments out of a total of {_N}",
        "last_pass": rf"Down to the last merge-pass~, with {_N} segments left of total size:"
        rf" {_SIGNED} bytes",
    },
    "org.apache.hadoop.mapred.ReduceTask": {"shuffle": r"Using ShuffleConsumerPlugin: ~.*"},
    "org.apache.hadoop.mapred.Task": {
        "done": rf"Task:(?=\S+ is done\.)~{_ATTEMPT} is done\. And is in the process of committing",
        "allowed": rf"Task (?=\S+ is allowed)~{_ATTEMPT} is allowed to commit now",
        "ended": rf"Task '(?=[^']*' done)~{_ATTEMPT}' done\.",
    },
    "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter": {
        "saved": rf"Saved output of task '~{_ATTEMPT}' to .*"
    },
}
_TASK_READER = Reader(_TASK_MESSAGES)
_ZONE = re.compile(rb"user\.timezone: ([!-~]{1,64})\s*").fullmatch
_MOMENTS = frozenset(
    {"split", "collector", "flush", "shuffle", "done", "allowed", "saved", "ended"}
)


def read_zone(lines: Iterable[bytes]) -> str:
    """
    Name of the zone in which the ``syslog`` of a task has its times, empty where it has none.

    The task's JVM writes it down before its work, as it is set to; what a task's own code writes
    later does not count.
    """
    named = (match[1].decode() for line in _TASK_READER.before(lines) if (match := _ZONE(line)))
    return next(named, "")


def wanted_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a task's logs that its readers look for."""
    for line in lines:
        if _ZONE(line) or _TASK_READER.looks_for(line) or _SHUFFLE_READER.looks_for(line):
            yield line


def in_layout(lines: Iterable[bytes]) -> bool:
    """Whether any of *lines* is as Hadoop lays out its logs: in another layout are no moments."""
    return any(map(has_layout, lines))


def moments_of(lines: Iterable[bytes], source: str, zone: tzinfo) -> tuple[float, float] | None:
    """Seconds since the epoch of the first and of the last event of a task; `None` without one."""
    moments = [event.at_s for event in _TASK_READER.events(lines, source, zone)]
    return (min(moments), max(moments)) if moments else None


def first_event(lines: Iterable[bytes], source: str) -> Event | None:
    """First event of a task, at its moment as if its zone were UTC; `None`: there is none."""
    return next(_TASK_READER.events(lines, source, UTC), None)


def first_of_shuffle(lines: Iterable[bytes], source: str) -> Event | None:
    """First event of a shuffle, as `first_event` has that of a task."""
    return next(_SHUFFLE_READER.events(lines, source, UTC), None)


def read_task_log(
    lines: Iterable[bytes], source: str, zone: tzinfo = UTC, window: Window = ALWAYS
) -> TaskLog:
    """
    Read the ``syslog`` of one task; times in seconds since the epoch.

    Hadoop writes local time without a zone: *zone* is that of the task.  A spill that was still
    running when the log ends, and a last line without an end, are left out (the task was killed).
    `ParseError` with *source* and line: a spill that ends without a start, starts twice, or is
    out of count; a second task in the same log; a message that does not read like Hadoop's; a
    moment that is not within *window*.
    """
    collected_task = _Task(source)
    attempt_id = ""
    for event in _TASK_READER.events(lines, source, zone, window):
        if event.name not in _MOMENTS:
            _TAKEN_BY[event.name](collected_task, event)
        elif event.name in collected_task.moments:
            raise order_error(event, "a second task, or its line", source)
        else:
            collected_task.moments[event.name] = event.at_s
            attempt_id = event.parts[0] if event.parts else attempt_id
    return TaskLog(
        attempt_id=attempt_id,
        spills=tuple(collected_task.spills),
        large_records=collected_task.large_records,
        merge_passes=collected_task.merge_passes,
        merged_bytes=collected_task.merged_bytes,
        **{f"{name}_s": at_s for name, at_s in collected_task.moments.items()},
    )


class _Task:
    """
    Puts the events of one task together: `_TAKEN_BY` says which method takes which event.

    Each event of a spill must follow from those before it, or the log is not that of one task.
    """

    def __init__(self, source: str) -> None:
        self.moments: dict[str, float] = {}  # what a task has once
        self.spills: list[SpillLog] = []
        self.large_records = self.merge_passes = self.merged_bytes = 0
        self._source = source
        # What is known of the spill that has started, and where the ring's marks stood.
        self._running: dict[str, Any] | None = None
        self._data_end = self._metadata_end = 0
        self._last_index = -1  # A record larger than the buffer has an index, and no line.
        self._ring_ints = 0

    def buffer_made(self, event: Event) -> None:
        self._ring_ints = 4 * event.numbers()[1]

    def large_record(self, _: Event) -> None:
        self.large_records += 1

    def merge_pass(self, _: Event) -> None:
        self.merge_passes += "flush" in self.moments

    def last_merge_pass(self, event: Event) -> None:
        if "flush" in self.moments:
            self.merged_bytes += max(event.numbers()[1], 0)

    def spill_started(self, event: Event) -> None:
        if self._running is not None:
            raise order_error(event, "a spill", self._source)
        self._running = {"start_s": event.at_s}

    def data_marked(self, event: Event) -> None:
        start, end, ring_bytes = event.numbers()
        if self._running is None or max(start, end) > ring_bytes:
            raise order_error(event, "marks of a spill", self._source)
        self._running["buffer_bytes"] = _distance(start, end, ring_bytes)
        self._data_end = end

    def records_marked(self, event: Event) -> None:
        _, end, length, _ = event.numbers()
        if self._running is None or length % 4 != 1:
            raise order_error(event, "marks of a spill", self._source)
        self._running["records"] = (length + 3) // 4
        self._metadata_end = 4 * end

    def equator_set(self, event: Event) -> None:
        """
        Note how much each side has of the free part of the ring until the spill ends.

        Without a spill the buffer is made, or emptied for a record that does not fit.
        """
        running = self._running
        ring_bytes = 4 * self._ring_ints
        if running and ring_bytes and running.keys() >= {"records", "buffer_bytes"}:
            equator = event.numbers()[0]
            free_bytes = _distance(self._data_end, equator, ring_bytes)
            running["room_records"] = free_bytes // METADATA_BYTES
            running["room_bytes"] = _distance(equator, self._metadata_end, ring_bytes)

    def spill_finished(self, event: Event) -> None:
        (index,) = event.numbers()
        running = self._running
        if running is None or index <= self._last_index:
            raise order_error(event, "a spill", self._source)
        if index > len(self.spills) + self.large_records:
            what = f"spill {index} follows {len(self.spills)} others: lines are missing"
            raise ParseError(what, source=self._source, line=event.number)
        if len(self.spills) >= _MOST_SPILLS:
            what = f"more than {_MOST_SPILLS} spills"
            raise ParseError(what, source=self._source, line=event.number)
        self._running = None
        self._last_index = index
        is_last = event.thread != "SpillThread"
        self.spills.append(SpillLog(finish_s=event.at_s, last=is_last, **running))

    def space_given_back(self, event: Event) -> None:
        if self._running is not None:
            raise order_error(event, "space given back", self._source)
        if self.spills and self._ring_ints and self.spills[-1].reset_s is None:
            _, metadata_start, metadata_end = event.numbers()
            collected = _distance(metadata_end, metadata_start, self._ring_ints) // 4
            self.spills[-1] = replace(self.spills[-1], collected=collected, reset_s=event.at_s)


_TAKEN_BY: Mapping[str, Callable[[_Task, Event], None]] = {
    "buffer": _Task.buffer_made,
    "spill": _Task.spill_started,
    "data": _Task.data_marked,
    "records": _Task.records_marked,
    "equator": _Task.equator_set,
    "finished": _Task.spill_finished,
    "reset": _Task.space_given_back,
    "large": _Task.large_record,
    "pass": _Task.merge_pass,
    "last_pass": _Task.last_merge_pass,
}


def _distance(start: int, end: int, ring: int) -> int:
    """From *start* up to *end*, around the ring."""
    return (end - start) % ring if ring else 0


_MAP = r"(attempt_\d{1,20}_\d{1,10}_m_\d{1,10}_\d{1,10})"
_FETCHER = r"(?:local)?fetcher#\d{1,9}"
_WHERE = r"(MEMORY|DISK)"
_MOST_EVENTS = 5_000_000  # a few for each map of the job
_READ = {"read": rf"Read {_N} bytes~ from map-output for {_MAP}"}

_PACKAGE = "org.apache.hadoop.mapreduce.task.reduce"
_SHUFFLE_MESSAGES: Messages = {
    f"{_PACKAGE}.EventFetcher": {
        "start": r"\S+ Thread started~: .*",
        "copied": r"EventFetcher is interrupted~.*",
    },
    f"{_PACKAGE}.Fetcher": {
        "copy": rf"{_FETCHER} about to shuffle~ output of map {_MAP} decomp: {_N} len: {_N}"
        rf" to {_WHERE}",
        "full": rf"{_FETCHER} - MergeManager returned~.* status WAIT.*",
    },
    f"{_PACKAGE}.InMemoryMapOutput": _READ,
    f"{_PACKAGE}.OnDiskMapOutput": _READ,
    f"{_PACKAGE}.ShuffleSchedulerImpl": {
        "freed": rf"(?=\S+ freed by )~([A-Za-z0-9._:\[\]-]{{1,300}}) freed by {_FETCHER}"
        r" in (\d{1,12})ms"
    },
    f"{_PACKAGE}.MergeManagerImpl": {
        "memory_merge": rf"Initiating in-memory merge~ with {_N} segments\.\.\.",
        "memory_merged": rf"\S+ Merge of the {_N} files in-memory~ complete\."
        rf" Local file is .* of size {_N}",
        "disk_merge": rf"OnDiskMerger: We have ~ *{_N} map outputs on disk\."
        r" Triggering merge\.\.\.",
        "disk_merged": rf"\S+ Finished merging {_N} map output files~ on disk of total-size {_N}\."
        rf"  *Local output file is .* of size {_N}",
        "final_merge": rf"finalMerge called~ with {_N} in-memory map-outputs and {_N} on-disk"
        r" map-outputs",
        "to_reduce": rf"Merging {_N} segments, {_N} bytes from memory into reduce",
    },
    "org.apache.hadoop.mapred.Merger": {"last_pass": r"Down to the last merge-pass~.*"},
}
_SHUFFLE_READER = Reader(_SHUFFLE_MESSAGES)
_MERGER_THREADS = {
    "InMemoryMerger - Thread to merge in-memory shuffled map-outputs",
    "OnDiskMerger - Thread to merge on-disk map-outputs",
}


def read_shuffle_log(
    lines: Iterable[bytes], source: str, zone: tzinfo = UTC, window: Window = ALWAYS
) -> ShuffleLog:
    """
    Read what one reduce reports of its shuffle; times in seconds since the epoch.

    *zone* and *window* are those of `read_task_log`.  Copies and merges that were not over when the
    log ends, and a last line without an end, are left out (the task was killed).  `ParseError` with
    *source* and line: an end without a start, or a message that does not read like Hadoop's.
    """
    shuffle = _Shuffle(source)
    events = _SHUFFLE_READER.events(lines, source, zone, window)
    for count, event in enumerate(events, start=1):
        if count > _MOST_EVENTS:
            raise ParseError(f"more than {_MOST_EVENTS} lines", source=source, line=event.number)
        _SHUFFLE_TAKEN_BY[event.name](shuffle, event)
    copies = [*shuffle.copies, *chain.from_iterable(shuffle.visiting.values())]
    return replace(
        shuffle.moments,
        copies=tuple(sorted(copies, key=attrgetter("start_s", "map_attempt"))),
        visits=tuple(shuffle.visits),
        merges=tuple(shuffle.merges),
        full_s=tuple(shuffle.full_s),
    )


class _Shuffle:
    """Puts the events of one shuffle together; see `_SHUFFLE_TAKEN_BY`."""

    def __init__(self, source: str) -> None:
        self.moments = ShuffleLog()
        # By fetcher: what it has brought since it took its present host, and what it copies.
        self.visiting = defaultdict[str, list[CopyLog]](list)
        self._pending: dict[str, CopyLog] = {}
        self.copies: list[CopyLog] = []
        self.visits: list[VisitLog] = []
        self.merges: list[MergeTimes] = []
        self.full_s: list[float] = []
        self._source = source
        self._merging: dict[str, tuple[float, int]] = {}

    def begun(self, event: Event) -> None:
        if self.moments.begin_s is not None:
            raise order_error(event, "a second shuffle, or its line", self._source)
        self.moments = replace(self.moments, begin_s=event.at_s)

    def copied(self, event: Event) -> None:
        self.moments = replace(self.moments, copied_s=event.at_s)

    def memory_full(self, event: Event) -> None:
        self.full_s.append(event.at_s)

    def copy_started(self, event: Event) -> None:
        attempt, raw_bytes, sent_bytes, place = event.parts
        to: Literal["memory", "disk"] = "memory" if place == "MEMORY" else "disk"
        self._pending[event.thread] = CopyLog(
            attempt, int(sent_bytes), int(raw_bytes), to, event.at_s, event.at_s
        )

    def copy_finished(self, event: Event) -> None:
        pending = self._pending.pop(event.thread, None)
        if pending is None or pending.map_attempt != event.parts[1]:
            raise order_error(event, "a map output", self._source)
        finish_s = max(event.at_s, pending.start_s)
        self.visiting[event.thread].append(replace(pending, finish_s=finish_s))

    def host_freed(self, event: Event) -> None:
        """The visit is over: what it brought has come from this host."""
        copies = self.visiting.pop(event.thread, [])
        self._pending.pop(event.thread, None)
        host, milliseconds = event.parts
        starts = [copy.start_s for copy in copies]
        start_s = min([event.at_s - int(milliseconds) / 1e3, *starts])
        self.copies += [replace(copy, visit=len(self.visits)) for copy in copies]
        self.visits.append(VisitLog(host, start_s, event.at_s))

    def merge_started(self, event: Event) -> None:
        kind = event.name.removesuffix("_merge")
        if kind in self._merging:
            raise order_error(event, "a merge", self._source)
        self._merging[kind] = event.at_s, sum(event.numbers())

    def merge_finished(self, event: Event) -> None:
        kind: Literal["memory", "disk"] = "memory" if event.name == "memory_merged" else "disk"
        started = self._merging.pop(kind, None)
        if started is None:
            raise order_error(event, "a merge", self._source)
        start_s, segments = started
        finish_s = max(event.at_s, start_s)
        size_bytes = event.numbers()[-1]
        self.merges.append(MergeTimes(kind, start_s, finish_s, segments, size_bytes))

    def final_merge_goes_on(self, event: Event) -> None:
        """The final merge ends with the last of these lines."""
        started = self._merging.get("final")
        if started is None or event.thread in _MERGER_THREADS:
            return
        start_s, segments = started
        finish_s = max(event.at_s, start_s)
        self.merges = [merge for merge in self.merges if merge.kind != "final"]
        self.merges.append(MergeTimes("final", start_s, finish_s, segments))
        self.moments = replace(self.moments, merged_s=finish_s)


_SHUFFLE_TAKEN_BY: Mapping[str, Callable[[_Shuffle, Event], None]] = {
    "start": _Shuffle.begun,
    "copied": _Shuffle.copied,
    "copy": _Shuffle.copy_started,
    "full": _Shuffle.memory_full,
    "read": _Shuffle.copy_finished,
    "freed": _Shuffle.host_freed,
    "memory_merge": _Shuffle.merge_started,
    "memory_merged": _Shuffle.merge_finished,
    "disk_merge": _Shuffle.merge_started,
    "disk_merged": _Shuffle.merge_finished,
    "final_merge": _Shuffle.merge_started,
    "to_reduce": _Shuffle.final_merge_goes_on,
    "last_pass": _Shuffle.final_merge_goes_on,
}
