"""
A report as data: sections of texts, tables and figures, which every format renders in its own way.

A format leaves out what it cannot show by the kind of block, never by the name of a section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.records.trial import TrialRecord
from harness.reports.wording import count


@dataclass(frozen=True, slots=True)
class Value:
    """
    One place of a table.

    *tone* is a shade that repeats what the text says (`low1` to `low3` for predictions that are
    too short, `high1` to `high3` for too long, `mark` for what deserves a look).
    """

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """
    *align* has one letter per column: `l` text, `r` number, `c` identifier (set in code type).

    *groups* are headings above neighbouring columns, each with the number of columns it spans.
    The first column names the row.  A *folded* table opens on demand; formats that cannot fold
    leave it out.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[str, ...]
    align: str
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    groups: tuple[tuple[str, int], ...] = ()
    folded: bool = False

    def texts(self) -> list[list[str]]:
        """Rows without their shades."""
        return [[value.text for value in row] for row in self.rows]


def table(
    caption: str,
    columns: Sequence[str],
    align: str,
    rows: Sequence[Sequence[str | Value]],
    *,
    note: str = "",
    groups: Sequence[tuple[str, int]] = (),
    folded: bool = False,
    most: int = 10_000,
) -> Table:
    """Make a table of texts and values, every row as long as its head; *most* rows are kept."""
    if len(align) != len(columns) or any(len(row) != len(columns) for row in rows):
        raise ValueError(f"table {caption!r} has rows that do not fit its {len(columns)} columns")
    hidden = len(rows) - most
    if hidden > 0:
        note = f"{note} {count(hidden, 'more row')} not shown; report.json has all.".lstrip()
    kept = tuple(
        tuple(value if isinstance(value, Value) else Value(value) for value in row)
        for row in rows[:most]
    )
    return Table(caption, tuple(columns), align, kept, note, tuple(groups), folded)


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, a `remark` that is set off from what it remarks upon, or a `heading`."""

    text: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Figure:
    """
    A drawing of *width* x *height* inches with its caption, and the same data as a table.

    It is drawn when a format wants it.  *name* keeps its ids apart from other figures', *title* is
    what a screen reader says.
    """

    name: str
    title: str
    width: float
    height: float
    caption: str
    data: Table
    draw: Callable[[Any], None]  # on a `Canvas` of `drawing`, which imports this module


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures below each other, or small ones side by side; *lead* says how to read them."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[Figure]
    lead: str = ""
    side_by_side: bool = False


Block = Text | Table | Figures


@dataclass(frozen=True, slots=True)
class Section:
    """
    One part of a report.

    *missing* stands where it has neither table nor figure; where it is empty, too, the section is
    left out.  *brief* is what the end of a run shows
    of it on a terminal.  *values* gives what it adds to the JSON report, by top-level key.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    missing: str = ""
    brief: Sequence[Text | Table] = ()
    values: Callable[[], Mapping[str, Any]] = dict

    def shown(self) -> list[Block]:
        """Blocks that hold something; only *missing* where no table or figure does."""
        filled = [
            block
            for block in self.blocks
            if not (isinstance(block, Table) and not block.rows)
            and not (isinstance(block, Figures) and not block.figures)
            and not (isinstance(block, Text) and not block.text)
        ]
        if any(isinstance(block, Table | Figures) for block in filled) or not self.missing:
            return filled
        return [Text(self.missing)]

    def is_missing(self) -> bool:
        """Whether all that is shown is what is missing."""
        return self.shown() == [Text(self.missing)]


@dataclass(frozen=True, slots=True)
class Card:
    """One model at a glance: its mean error, and below it what belongs to it."""

    model: str
    error: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Document:
    """
    A report: the experiment's question, its answer in sentences, a card per model, sections.

    *values* gives what the JSON report has beside them; *trials* are for formats of a line each.
    """

    name: str
    question: str
    headline: str
    details: Sequence[str]
    cards: Sequence[Card]
    sections: Sequence[Section]
    values: Callable[[], Mapping[str, Any]]
    trials: Sequence[TrialRecord] = ()


def signed_tone(error: float, floor: float | None) -> str:
    """Shade of a signed error: none inside its noise floor, then by 10 % and 20 %."""
    if abs(error) <= (floor or 0.0):
        return ""
    strength = 1 + (abs(error) > 0.10) + (abs(error) > 0.20)
    return f"{'low' if error < 0 else 'high'}{strength}"
