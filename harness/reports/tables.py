"""A table as every format shows it: caption, columns, rows, and how each column is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
    The first column names the row.
    """

    caption: str
    columns: tuple[str, ...]
    align: str
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""
    groups: tuple[tuple[str, int], ...] = ()


def table(
    caption: str,
    columns: Sequence[str],
    align: str,
    rows: Sequence[Sequence[str | Value]],
    *,
    note: str = "",
    groups: Sequence[tuple[str, int]] = (),
) -> Table:
    """Make a table of texts and values, every row as long as its head."""
    full = tuple(tuple(_value(v) for v in row) for row in rows)
    if len(align) != len(columns) or any(len(row) != len(columns) for row in full):
        raise ValueError(f"table {caption!r} has rows that do not fit its {len(columns)} columns")
    return Table(caption, tuple(columns), align, full, note, tuple(groups))


def _value(value: str | Value) -> Value:
    return value if isinstance(value, Value) else Value(value)


def signed_tone(error: float, floor: float | None) -> str:
    """Shade of a signed error: none inside its noise floor, then by 10 % and 20 %."""
    if abs(error) <= (floor or 0.0):
        return ""
    strength = 1 + (abs(error) > 0.10) + (abs(error) > 0.20)
    return f"{'low' if error < 0 else 'high'}{strength}"
