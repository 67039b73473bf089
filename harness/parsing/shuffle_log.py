"""
What a reduce says of its shuffle, in its container's ``syslog.shuffle``.

Hadoop writes there what the classes of `mapreduce.task.reduce` say, and `mapred.Merger`; where
``yarn.app.mapreduce.shuffle.log.separate`` is off, it stands in ``syslog``, which is read as well:

    ... [fetcher#5] ...Fetcher: fetcher#5 about to shuffle output of map attempt_1_0001_m_000000_0
            decomp: 236341 len: 236345 to MEMORY
    ... [fetcher#5] ...InMemoryMapOutput: Read 236341 bytes from map-output for attempt_1_...
    ... [fetcher#5] ...ShuffleSchedulerImpl: worker2:13562 freed by fetcher#5 in 114ms

(each one line).  A copy that fails has no second line; its map output is fetched again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Literal

from harness.errors import ParseError
from harness.parsing.log4j import Event, Messages, Reader, lost
from harness.records.logs import CopyLog, MergeLog, ShuffleLog, VisitLog

_N = r"(\d{1,18})"
_MAP = r"(attempt_\d{1,20}_\d{1,10}_m_\d{1,10}_\d{1,10})"
_FETCHER = r"(?:local)?fetcher#\d{1,9}"
_WHERE = r"(MEMORY|DISK)"
_FILE = rf" *Local output file is .* of size {_N}"
_MOST = 5_000_000  # lines of ours: a few for each map of the job
_READ: dict[str, tuple[str, str]] = {
    "read": (r"Read \d+ bytes", rf"Read {_N} bytes from map-output for {_MAP}")
}

_PACKAGE = "org.apache.hadoop.mapreduce.task.reduce"
_MESSAGES: Messages = {
    f"{_PACKAGE}.EventFetcher": {
        "begin": (r"\S+ Thread started", r"\S+ Thread started: .*"),
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


def read_shuffle_log(lines: Iterable[bytes], source: str, zone: tzinfo = UTC) -> ShuffleLog:
    """
    What one reduce says of its shuffle; times in seconds since the epoch.

    *zone* is that of the node.  Copies and merges that were not over when the log ends, and a last
    line without an end, are left out (the task was killed).  `ParseError` with *source* and line:
    an end without a begin, or a message that does not read like Hadoop's.
    """
    shuffle = _Shuffle(source)
    for event in _READER.events(lines, source, zone):
        shuffle.take(event)
    return shuffle.log


@dataclass
class _Visit:
    """What a fetcher has brought since it took its present host."""

    copies: list[CopyLog] = field(default_factory=list)
    pending: CopyLog | None = None


class _Shuffle:
    """Puts the events of one shuffle together."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known, self._taken = ShuffleLog(), 0
        self._fetchers: dict[str, _Visit] = {}
        self._copies: list[CopyLog] = []
        self._visits: list[VisitLog] = []
        self._merges: list[MergeLog] = []
        self._full: list[float] = []
        self._merging: dict[str, tuple[float, int]] = {}
        self._steps: dict[str, Callable[[Event], None]] = {
            "begin": self._begin,
            "copied": self._copied,
            "copy": self._copy,
            "read": self._read,
            "freed": self._freed,
            "full": self._at_full,
            "memory_merge": self._merge,
            "memory_merged": self._memory_merged,
            "disk_merge": self._merge,
            "disk_merged": self._disk_merged,
            "final_merge": self._merge,
            "to_reduce": self._final,
            "last_pass": self._final,
        }

    def take(self, event: Event) -> None:
        """Let the next event follow from what is known."""
        self._taken += 1
        if self._taken > _MOST:
            raise ParseError(f"more than {_MOST} lines", source=self._source, line=event.number)
        self._steps[event.name](event)

    @property
    def log(self) -> ShuffleLog:
        """All that was said."""
        pending = [c for visit in self._fetchers.values() for c in visit.copies]
        copies = sorted([*self._copies, *pending], key=lambda c: (c.start_s, c.map_attempt))
        return replace(
            self._known,
            copies=tuple(copies),
            visits=tuple(self._visits),
            merges=tuple(self._merges),
            full_s=tuple(self._full),
        )

    def _begin(self, event: Event) -> None:
        if self._known.begin_s is not None:
            raise lost(event, "a second shuffle, or its line", self._source)
        self._known = replace(self._known, begin_s=event.at_s)

    def _copied(self, event: Event) -> None:
        self._known = replace(self._known, copied_s=event.at_s)

    def _copy(self, event: Event) -> None:
        attempt, raw, sent, where = event.parts
        to: Literal["memory", "disk"] = "memory" if where == "MEMORY" else "disk"
        self._fetcher(event).pending = CopyLog(
            attempt, int(sent), int(raw), to, event.at_s, event.at_s
        )

    def _read(self, event: Event) -> None:
        visit = self._fetcher(event)
        copy = visit.pending
        if copy is None or copy.map_attempt != event.parts[1]:
            raise lost(event, "a map output", self._source)
        visit.copies.append(replace(copy, finish_s=max(event.at_s, copy.start_s)))
        visit.pending = None

    def _freed(self, event: Event) -> None:
        """The visit is over: what it brought has come from this host."""
        visit = self._fetchers.pop(event.thread, _Visit())
        place = len(self._visits)
        start = min([event.at_s - int(event.parts[1]) / 1e3, *(c.start_s for c in visit.copies)])
        self._visits.append(VisitLog(event.parts[0], start, event.at_s))
        self._copies += [replace(copy, visit=place) for copy in visit.copies]

    def _at_full(self, event: Event) -> None:
        self._full.append(event.at_s)

    def _merge(self, event: Event) -> None:
        kind = event.name.partition("_")[0]
        if kind in self._merging:
            raise lost(event, "a merge", self._source)
        self._merging[kind] = event.at_s, sum(int(part) for part in event.parts)

    def _memory_merged(self, event: Event) -> None:
        self._merged(event, "memory")

    def _disk_merged(self, event: Event) -> None:
        self._merged(event, "disk")

    def _merged(self, event: Event, kind: Literal["memory", "disk"]) -> None:
        begun = self._merging.pop(kind, None)
        if begun is None:
            raise lost(event, "a merge", self._source)
        size = int(event.parts[-1])
        self._merges.append(MergeLog(kind, begun[0], max(event.at_s, begun[0]), begun[1], size))

    def _final(self, event: Event) -> None:
        """The final merge ends with the last of these lines."""
        begun = self._merging.get("final")
        if begun is None or event.thread in _MERGERS:
            return
        finish = max(event.at_s, begun[0])
        self._merges = [m for m in self._merges if m.kind != "final"]
        self._merges.append(MergeLog("final", begun[0], finish, begun[1]))
        self._known = replace(self._known, merged_s=finish)

    def _fetcher(self, event: Event) -> _Visit:
        return self._fetchers.setdefault(event.thread, _Visit())


_MERGERS = frozenset(
    {
        "InMemoryMerger - Thread to merge in-memory shuffled map-outputs",
        "OnDiskMerger - Thread to merge on-disk map-outputs",
    }
)
