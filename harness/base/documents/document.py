"""
A report as data: sections of texts, tables and figures, which every format renders in its own way.

A format leaves out what it cannot show by the kind of block, never by the name of a section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar, NamedTuple

from harness.base.documents.wording import UNKNOWN, count
from harness.base.records.trial import TrialRecord

_MOST_ROWS = 2_000  # of a table
_NOTHING = ("", UNKNOWN)  # texts of a place without a value
_FACTS = (
    "What it is good for",
    "What the verdict rests on",
    "What would decide",
    "What may change it",
)


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

    The first column names the row.  A *folded* table opens on demand; formats that cannot fold
    leave it out.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[str, ...]
    align: str
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    folded: bool = False

    def texts(self) -> list[list[str]]:
        """Rows without their shades."""
        return [[value.text for value in row] for row in self.rows]

    def is_open(self) -> bool:
        """Whether there is something to be seen before anything is opened."""
        return bool(self.rows) and not self.folded


def table(
    caption: str,
    columns: Sequence[str],
    align: str,
    rows: Sequence[Sequence[str | Value]],
    *,
    note: str = "",
    folded: bool = False,
) -> Table:
    """
    Make a table of texts and values, every row as long as its head, of 2,000 rows at most.

    Columns after the first in which no row has anything are left out.
    """
    if {len(align), *map(len, rows)} - {len(columns)}:
        raise ValueError(f"table {caption!r} has rows that do not fit its {len(columns)} columns")
    hidden = len(rows) - _MOST_ROWS
    if hidden > 0:
        note = f"{note} {count(hidden, 'more row')} not shown; report.json has all.".lstrip()
    values = [[*map(_as_value, row)] for row in rows]
    kept = _filled_columns(values, len(columns))
    shown_rows = tuple(tuple(compress(row, kept)) for row in values[:_MOST_ROWS])
    heads = tuple(compress(columns, kept))
    return Table(caption, heads, "".join(compress(align, kept)), shown_rows, note, folded)


def _as_value(place: str | Value) -> Value:
    return place if isinstance(place, Value) else Value(place)


def _filled_columns(values: Sequence[Sequence[Value]], columns: int) -> list[bool]:
    """Whether each column has anything in it; the first names the rows, and always counts."""
    if not values:
        return [True] * columns
    filled = [any(row[place].text not in _NOTHING for row in values) for place in range(columns)]
    return [True, *filled[1:]]


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

    def data(self) -> list[Table]:
        """The tables of what is drawn."""
        return [figure.data for figure in self.figures]


Block = Text | Table | Figures


def _is_filled(block: Block) -> bool:
    match block:
        case Text():
            return bool(block.text)
        case Table():
            return bool(block.rows)
        case Figures():
            return bool(block.figures)


@dataclass(frozen=True, slots=True)
class Section:
    """
    One part of a report.

    *missing* stands where it has neither table nor figure; where it is empty, too, the section is
    left out.  *values* gives what it adds to the JSON report, by top-level key.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    missing: str = ""
    values: Callable[[], Mapping[str, Any]] = dict

    def shown(self) -> list[Block]:
        """Blocks that hold something; only *missing* where no table or figure does."""
        filled = [block for block in self.blocks if _is_filled(block)]
        has_data = any(isinstance(block, Table | Figures) for block in filled)
        return filled if has_data or not self.missing else [Text(self.missing)]

    def is_missing(self) -> bool:
        """Whether all that is shown is what is missing."""
        return self.shown() == [Text(self.missing)]

    def undrawn(self) -> list[Text | Table]:
        """
        What a format shows that can neither draw nor fold: a figure as the table of its data.

        Of a section of which all is missing that is nothing.
        """
        readable: list[Text | Table] = []
        for block in [] if self.is_missing() else self.shown():
            if isinstance(block, Text):
                readable.append(block)
            else:
                tables = [block] if isinstance(block, Table) else block.data()
                readable += [shown for shown in tables if shown.is_open()]
        return readable


class Facts(NamedTuple):
    """
    Sentences beside the verdict.

    What it is good for, what it rests on, what would decide what is open, what may change it.
    """

    good_for: Sequence[str] = ()
    rests_on: Sequence[str] = ()
    would_decide: Sequence[str] = ()
    caveats: Sequence[str] = ()

    def titled(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Title and sentences of those that hold any."""
        for title, sentences in zip(_FACTS, self, strict=True):
            if sentences:
                yield title, sentences


_NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Document:
    """
    A report: a first screen, and below it the sections.

    The first screen has the experiment's question, the verdict in one sentence (*headline*), the
    *facts* beside it, a row for each model (*overview*) and all their errors (*figure*); a *mark*
    says that this is no ordinary run, its *origin* when and on what machine it was measured.
    *is_answer* is false where the headline says why there is no
    verdict on any model.  *values* gives what the JSON report has beside the sections;
    *trials* are for formats of a line each.
    """

    name: str
    question: str
    headline: str
    sections: Sequence[Section]
    facts: Facts = _NO_FACTS
    overview: Table | None = None
    figure: Figure | None = None
    mark: str = ""
    origin: str = ""
    is_answer: bool = True
    values: Callable[[], Mapping[str, Any]] = dict
    trials: Sequence[TrialRecord] = ()

    @property
    def titled_name(self) -> str:
        """Its name, with its origin where that is known."""
        return f"Experiment {self.name}" + f", {self.origin}" * bool(self.origin)

    def figures(self) -> dict[str, Figure]:
        """Every figure by its name, in the order of the report."""
        figures = [self.figure] if self.figure else []
        for section in self.sections:
            for block in section.shown():
                if isinstance(block, Figures):
                    figures += block.figures
        return {figure.name: figure for figure in figures}


def signed_tone(error: float, floor: float | None) -> str:
    """Shade of a signed error: none inside its noise floor, then by 10 % and 20 %."""
    if abs(error) <= (floor or 0.0):
        return ""
    strength = 1 + (abs(error) > 0.10) + (abs(error) > 0.20)
    return f"{'low' if error < 0 else 'high'}{strength}"
