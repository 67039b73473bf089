"""What the papers print: the tables of this package, without the columns that others computed."""

from __future__ import annotations

import csv

from importlib.resources import files

from harness.errors import DataError

# Columns of the files that are not in the papers: they are what the tests compare with.
_OURS = ("computed_", "check", "printed_over_computed")


def printed(name: str) -> list[dict[str, str]]:
    """
    Rows of the printed table *name*, each cell as it is printed.

    ``DataError`` where the file is missing or no table.

    >>> printed("vet_table1_configurations")[0]
    {'job': 'Job1', 'cluster': 'C1', 'map_slots': '1', 'reduce_slots': '2'}
    """
    try:
        rows = list(csv.DictReader(_text(name).splitlines(), strict=True))
    except csv.Error as error:
        raise _unreadable(name, str(error)) from None
    if not rows or any(None in row or None in row.values() for row in rows):
        raise _unreadable(name, "rows and columns do not fit")
    return [{k: v for k, v in row.items() if not k.startswith(_OURS)} for row in rows]


def number(text: str, name: str) -> float:
    """Read a printed number of table *name*; ``DataError`` for anything else."""
    try:
        return float(text)
    except ValueError:
        raise _unreadable(name, f"{text!r} is no number") from None


def _text(name: str) -> str:
    try:
        return (files("harness.scoring.papers") / "tables" / f"{name}.csv").read_text(
            encoding="utf-8"
        )
    except (OSError, ValueError) as error:
        raise _unreadable(name, str(error)) from None


def _unreadable(name: str, why: str) -> DataError:
    return DataError(
        f"the printed table cannot be read: {why}",
        where=f"harness/scoring/papers/tables/{name}.csv",
        fix="install the harness again: the table is part of it",
    )
