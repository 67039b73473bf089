"""
What a reduce reports of its shuffle, in its container's ``syslog.shuffle``.

Hadoop writes there what the classes of `mapreduce.task.reduce` report, and `mapred.Merger`; where
``yarn.app.mapreduce.shuffle.log.separate`` is off, it stands in ``syslog``, which is read as well:

    ... [fetcher#5] ...Fetcher: fetcher#5 about to shuffle output of map attempt_1_0001_m_000000_0
            decomp: 236341 len: 236345 to MEMORY
    ... [fetcher#5] ...InMemoryMapOutput: Read 236341 bytes from map-output for attempt_1_...
    ... [fetcher#5] ...ShuffleSchedulerImpl: worker2:13562 freed by fetcher#5 in 114ms

(each one line).  A copy that fails has no second line; its map output is fetched again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Literal

from harness.errors import ParseError
from harness.parsing.log4j import Event, Messages, Reader, order_error
from harness.records.logs import CopyLog, MergeLog, ShuffleLog, VisitLog

_N = r"(\d{1,18})"
_MAP = r"(attempt_\d{1,20}_\d{1,10}_m_\d{1,10}_\d{1,10})"
_FETCHER = r"(?:local)?fetcher#\d{1,9}"
_WHERE = r"(MEMORY|DISK)"
_FILE = rf" *Local output file is .* of size {_N}"
_MOST_EVENTS = 5_000_000  # a few for each map of the job
_READ: dict[str, tuple[str, str]] = {
    "read": (r"Read \d+ bytes", rf"Read {_N} bytes from map-output for {_MAP}")
}

_PACKAGE = "org.apache.hadoop.mapreduce.task.reduce"
_MESSAGES: Messages = {
    f"{_PACKAGE}.EventFetcher": {
        "start": (r"\S+ Thread started", r"\S+ Thread started: .*"),
        "copied": (r"EventFetcher is interrupted", r"EventFetcher is interrupted.*"),
    },
    f"{_PACKAGE}.Fetcher": {
        "copy": (
            rf"{_FETCHER} about to shuffle",
            rf"{_FETCHER} about to shuffle output of map {_MAP} decomp: {_N} len: {_N} to {_WHERE}",
        ),
        "full": (rf"{_FETCHER} - MergeManager returned", rf"{_FETCHER} - .* status WAIT.*"),
    },
    f"{_PACKAGE}.InMemoryMapOutput": _READ,
    f"{_PACKAGE}.OnDiskMapOutput": _READ,
    f"{_PACKAGE}.ShuffleSchedulerImpl": {
        "freed": (
            r"\S+ freed by ",
            rf"([A-Za-z0-9._:\[\]-]{{1,300}}) freed by {_FETCHER} in (\d{{1,12}})ms",
        ),
    },
    f"{_PACKAGE}.MergeManagerImpl": {
        "memory_merge": (
            r"Initiating in-memory merge",
            rf"Initiating in-memory merge with {_N} segments\.\.\.",
        ),
        "memory_merged": (
            r"\S+ Merge of the \d+ files in-memory",
            rf"\S+ Merge of the {_N} files in-memory complete\. Local file is .* of size {_N}",
        ),
        "disk_merge": (
            r"OnDiskMerger: We have ",
            rf"OnDiskMerger: We have +{_N} map outputs on disk\. Triggering merge\.\.\.",
        ),
        "disk_merged": (
            r"\S+ Finished merging \d+ map output files",
            rf"\S+ Finished merging {_N} map output files on disk of total-size {_N}\. {_FILE}",
        ),
        "final_merge": (
            r"finalMerge called",
            rf"finalMerge called with {_N} in-memory map-outputs and {_N} on-disk map-outputs",
        ),
        "to_reduce": (
            r"Merging \d+ segments, \d+ bytes from memory into reduce",
            rf"Merging {_N} segments, {_N} bytes from memory into reduce",
        ),
    },
    "org.apache.hadoop.mapred.Merger": {
        "last_pass": (r"Down to the last merge-pass", r"Down to the last merge-pass.*"),
    },
}
_READER = Reader(_MESSAGES)
_MERGER_THREADS = {
    "InMemoryMerger - Thread to merge in-memory shuffled map-outputs",
    "OnDiskMerger - Thread to merge on-disk map-outputs",
}


def read_shuffle_log(lines: Iterable[bytes], source: str, zone: tzinfo = UTC) -> ShuffleLog:
    """
    Read what one reduce reports of its shuffle; times in seconds since the epoch.

    *zone* is that of the node.  Copies and merges that were not over when the log ends, and a last
    line without an end, are left out (the task was killed).  `ParseError` with *source* and line:
    an end without a start, or a message that does not read like Hadoop's.
    """
    shuffle = _Shuffle(source)
    for count, event in enumerate(_READER.events(lines, source, zone), start=1):
        if count > _MOST_EVENTS:
            raise ParseError(f"more than {_MOST_EVENTS} lines", source=source, line=event.number)
        shuffle.take(event)
    pending = [
        map_copy for open_visit in shuffle.visiting.values() for map_copy in open_visit.copies
    ]
    copies = sorted(
        [*shuffle.copies, *pending], key=lambda map_copy: (map_copy.start_s, map_copy.map_attempt)
    )
    return replace(
        shuffle.moments,
        copies=tuple(copies),
        visits=tuple(shuffle.visits),
        merges=tuple(shuffle.merges),
        full_s=tuple(shuffle.full_s),
    )


@dataclass
class _OpenVisit:
    """What a fetcher has brought since it took its present host."""

    copies: list[CopyLog] = field(default_factory=list)
    pending: CopyLog | None = None


class _Shuffle:
    """Puts the events of one shuffle together."""

    def __init__(self, source: str) -> None:
        self.moments = ShuffleLog()
        self.visiting: dict[str, _OpenVisit] = {}
        self.copies: list[CopyLog] = []
        self.visits: list[VisitLog] = []
        self.merges: list[MergeLog] = []
        self.full_s: list[float] = []
        self._source = source
        self._merging: dict[str, tuple[float, int]] = {}

    def take(self, event: Event) -> None:
        """Let the next event follow from those before."""
        match event.name:
            case "start":
                if self.moments.begin_s is not None:
                    raise order_error(event, "a second shuffle, or its line", self._source)
                self.moments = replace(self.moments, begin_s=event.at_s)
            case "copied":
                self.moments = replace(self.moments, copied_s=event.at_s)
            case "full":
                self.full_s.append(event.at_s)
            case "copy" | "read" | "freed":
                self._take_copy(event)
            case "memory_merge" | "disk_merge" | "final_merge":
                kind = event.name.removesuffix("_merge")
                if kind in self._merging:
                    raise order_error(event, "a merge", self._source)
                self._merging[kind] = event.at_s, sum(event.numbers())
            case "memory_merged":
                self._end_merge(event, "memory")
            case "disk_merged":
                self._end_merge(event, "disk")
            case _:
                # The final merge ends with the last of these lines.
                started = self._merging.get("final")
                if started is not None and event.thread not in _MERGER_THREADS:
                    finish_s = max(event.at_s, started[0])
                    self.merges = [merge for merge in self.merges if merge.kind != "final"]
                    self.merges.append(MergeLog("final", started[0], finish_s, started[1]))
                    self.moments = replace(self.moments, merged_s=finish_s)

    def _take_copy(self, event: Event) -> None:
        if event.name == "freed":
            # The visit is over: what it brought has come from this host.
            open_visit = self.visiting.pop(event.thread, _OpenVisit())
            host, milliseconds = event.parts
            start_s = min(
                [
                    event.at_s - int(milliseconds) / 1e3,
                    *(map_copy.start_s for map_copy in open_visit.copies),
                ]
            )
            self.copies += [
                replace(map_copy, visit=len(self.visits)) for map_copy in open_visit.copies
            ]
            self.visits.append(VisitLog(host, start_s, event.at_s))
            return
        open_visit = self.visiting.setdefault(event.thread, _OpenVisit())
        if event.name == "copy":
            attempt, raw_bytes, sent_bytes, place = event.parts
            to: Literal["memory", "disk"] = "memory" if place == "MEMORY" else "disk"
            open_visit.pending = CopyLog(
                attempt, int(sent_bytes), int(raw_bytes), to, event.at_s, event.at_s
            )
            return
        map_copy = open_visit.pending
        if map_copy is None or map_copy.map_attempt != event.parts[1]:
            raise order_error(event, "a map output", self._source)
        open_visit.copies.append(replace(map_copy, finish_s=max(event.at_s, map_copy.start_s)))
        open_visit.pending = None

    def _end_merge(self, event: Event, kind: Literal["memory", "disk"]) -> None:
        started = self._merging.pop(kind, None)
        if started is None:
            raise order_error(event, "a merge", self._source)
        start_s, segments = started
        size_bytes = event.numbers()[-1]
        self.merges.append(MergeLog(kind, start_s, max(event.at_s, start_s), segments, size_bytes))
