"""
What the stock logs of a task's container say: moments and amounts, and nothing inferred from them.

Times are seconds since the epoch by the node's clock, as fine as the log's millisecond; what no
line has said is `None`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SpillLog:
    """
    One spill of a map task; *last* is the one that the flush makes on the main thread.

    *records* and *buffer_bytes* were taken from the buffer.  From its start to *reset_s*, when its
    space was given back, the map function emitted *collected* records; there was room for
    *room_records* by the metadata and for *room_bytes* of keys and values.
    """

    start_s: float
    finish_s: float
    last: bool
    records: int | None = None
    buffer_bytes: int | None = None
    collected: int | None = None
    reset_s: float | None = None
    room_records: int | None = None
    room_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TaskLog:
    """
    The ``syslog`` of a map or a reduce.

    *split_s*: the input split is read; *collector_s*: the sort buffer stands, mapping begins;
    *flush_s*: mapping is over.  *large_records* were spilled one by one, for they do not fit the
    buffer.  The merge read *merged_bytes* (uncompressed) in *merge_passes* besides the last one.
    *shuffle_s*: a reduce has its shuffle.  *done_s*: the task's work is over; *allowed_s*: it may
    commit its output; *saved_s*: it has; *ended_s*: the master knows.
    """

    attempt_id: str = ""
    split_s: float | None = None
    collector_s: float | None = None
    flush_s: float | None = None
    spills: tuple[SpillLog, ...] = ()
    large_records: int = 0
    merge_passes: int = 0
    merged_bytes: int = 0
    shuffle_s: float | None = None
    done_s: float | None = None
    allowed_s: float | None = None
    saved_s: float | None = None
    ended_s: float | None = None


@dataclass(frozen=True, slots=True)
class CopyLog:
    """One map output as a fetcher copied it; *visit* is its place among the visits, -1 for none."""

    map_attempt: str
    sent_bytes: int
    raw_bytes: int
    to: Literal["memory", "disk"]
    start_s: float
    finish_s: float
    visit: int = -1


@dataclass(frozen=True, slots=True)
class VisitLog:
    """One connection of a fetcher to a node, for one or more map outputs."""

    host: str
    start_s: float
    finish_s: float


@dataclass(frozen=True, slots=True)
class MergeLog:
    """One merge of a reduce; *bytes* is the size of the file that it wrote."""

    kind: Literal["memory", "disk", "final"]
    start_s: float
    finish_s: float
    segments: int
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ShuffleLog:
    """
    The ``syslog.shuffle`` of a reduce.

    *begin_s*: fetching begins; *copied_s*: the last map output is there; *merged_s*: what is left
    of merging belongs to the reduce function.  *full_s* are the moments at which a fetcher found
    no memory for a map output.
    """

    begin_s: float | None = None
    copied_s: float | None = None
    merged_s: float | None = None
    copies: tuple[CopyLog, ...] = ()
    visits: tuple[VisitLog, ...] = ()
    merges: tuple[MergeLog, ...] = ()
    full_s: tuple[float, ...] = ()
