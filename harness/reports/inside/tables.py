"""The inside of tasks as tables: the same numbers as the drawings, for every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.records.trace import TaskAttempt
from harness.reports.inside.names import DRAWN, PARTS
from harness.reports.inside.parts import Bar
from harness.reports.inside.tracks import Track
from harness.reports.tables import Table, Value, table
from harness.reports.wording import number, percent

_MOST_BARS = 200
_SOURCES = {"spans": "tracer", "logs": "logs"}


class Shown(Protocol):
    """A task with what its threads did."""

    @property
    def attempt(self) -> TaskAttempt:
        """The attempt."""
        ...

    @property
    def found(self) -> Sequence[Track]:
        """Its threads."""
        ...


def parts_table(name: str, every: Sequence[Bar]) -> Table:
    """Mean seconds of each part, a row for each kind, node and part."""
    rows = [row for bar in every[:_MOST_BARS] for row in _bar(bar)]
    hidden = len(every) - _MOST_BARS
    note = f"{hidden} more kinds and nodes not shown." if hidden > 0 else ""
    columns = ("Tasks", "Node", "Part", "Mean, s", "Share", "Count", "Source", "Remark")
    return table(f"{name}: where the time of a task went", columns, "lllrrrll", rows, note=note)


def _bar(bar: Bar) -> list[tuple[str | Value, ...]]:
    return [
        (
            bar.kind,
            bar.host or "all",
            PARTS[part],
            number(mean),
            percent(mean / bar.total_s),
            str(bar.tasks),
            _SOURCES[bar.source],
            Value("estimated", "mark") if part in bar.estimated else "",
        )
        for part, mean in bar.seconds.items()
    ]


def tracks_table(name: str, shown: Sequence[Shown]) -> Table:
    """How often and how long each thread of the tasks *shown* did what."""
    rows = [
        (task.attempt.attempt_id, track.name, DRAWN[part], str(times), number(total))
        for task in shown
        for track in task.found
        for part, (times, total) in _sums(track).items()
    ]
    columns = ("Attempt", "Thread", "What", "Pieces", "Seconds")
    return table(f"{name}: what the threads of these tasks did", columns, "cllrr", rows)


def _sums(track: Track) -> Mapping[str, tuple[int, float]]:
    sums: dict[str, tuple[int, float]] = {}
    for piece in track.pieces:
        times, total = sums.get(piece.part, (0, 0.0))
        sums[piece.part] = times + 1, total + piece.end - piece.start
    return sums
