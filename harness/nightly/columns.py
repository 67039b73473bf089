"""
Nights from a file of columns: ``time,NAME,...``, a line per night.

Read are the forms that Apache Otava's CSV importer documents, too: commas, semicolons or tabs,
times with dots and a zone, and attributes, which are columns of texts.  The file may be anybody's:
it is read to a bound, and what is not understood is named with its line.
"""

from __future__ import annotations

import csv
import math
import re

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.base.errors import DataError
from harness.base.text import excerpt
from harness.nightly.alarms import Table
from harness.nightly.records import Point
from harness.nightly.shifts import Numbers

_FIX = "write time,NAME,... and a line per night: 2026-11-23T02:00:00Z,12.5,... in order"
_MOST_BYTES = 2**26  # a hundred thousand nights of a hundred columns take less
_TIME = "time"
_BRANCH = "branch"
_ATTRIBUTES = {"commit", _BRANCH, "version", "run"}  # no measurements, whatever their digits
_DELIMITER = re.compile(r"[,;\t]")
# 2026.01.31 3:00:00 +0100: parts of a date by dots, dashes or slashes, a clock, a zone.
_MOMENT = re.compile(
    r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})"
    r"(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?)?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?",
    re.ASCII,
)


_LEAST = 1e-100  # a ratio of two such numbers is one, too


class Row(NamedTuple):
    """The *texts* of a line of the file, which has the *number* from 1."""

    number: int
    texts: list[str]


def read_csv(path: Path, *, separate: bool = False) -> list[Table]:
    """
    Read nights from columns `time,NAME...`: a row per night, nothing or NaN where it has no value.

    They are one table, or where *separate* one for each column.  Attributes are left out (`commit`
    and what else Otava has), and columns without any number: the first table's notes name these.
    `DataError` names the line, and what in it is no number or a clock that goes back.
    """
    head, rows = _rows_of(path, _lines_of(path))
    with _at_line(path, 1):
        chosen, textual = number_columns(head, rows)
        require_one_branch(head, rows)
    values = np.empty((len(rows), len(chosen)))
    last_s = -math.inf
    place_of_time = head.index(_TIME)
    for place, row in enumerate(rows):
        with _at_line(path, row.number):
            last_s = seconds_after(last_s, row.texts[place_of_time])
            values[place] = [finite_number(row.texts[column], head[column]) for column in chosen]
    names = [excerpt(head[column], 60) for column in chosen]
    if separate:
        share = 1 / len(names)
        tables = [csv_table([name], values[:, [place]], share) for place, name in enumerate(names)]
    else:
        tables = [csv_table(names, values)]
    for name in textual:
        tables[0].notes.append(f"column '{excerpt(name, 60)}' has no number, and is left out")
    return tables


def _lines_of(path: Path) -> list[str]:
    """Lines of the file at *path*; `DataError`: it is not there, too large, or no text."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        what = f"it cannot be read: {excerpt(error)}"
        raise DataError(what, where=str(path), fix=_FIX) from error
    if len(data) > _MOST_BYTES:
        what = f"it is larger than {_MOST_BYTES >> 20} MiB"
        raise DataError(
            what, where=str(path), fix="give the nights of a few years, or fewer columns"
        )
    return text.splitlines()


@contextmanager
def _at_line(path: Path, number: int) -> Iterator[None]:
    """A `ValueError` of the block, or one of the form, as `DataError` that names the line."""
    try:
        yield
    except (ValueError, csv.Error) as error:
        raise DataError(excerpt(error, 160), where=f"{path}:{number}", fix=_FIX) from error


def _rows_of(path: Path, lines: Sequence[str]) -> tuple[list[str], list[Row]]:
    """The names in the first line, and all others that are not blank, each with as many values."""
    delimiter, quote = form_of(lines[0] if lines else "")
    reader = csv.reader(lines, delimiter=delimiter, quotechar=quote)
    head = list[str]()
    rows = list[Row]()
    number = 1
    while True:
        with _at_line(path, number):
            texts = next(reader, None)
            if texts is None:
                return head, rows
            if number == 1:
                head = [name.strip() for name in texts]
            elif texts and len(texts) != len(head):
                what = f"{len(texts)} values, and {len(head)} names are in the first line"
                raise ValueError(what)
            elif texts:
                rows.append(Row(number, texts))
        number = reader.line_num + 1  # a quoted text may take several


def form_of(first_line: str) -> tuple[str, str]:
    """What stands between values, and around texts, by the *first_line* of a file."""
    found = _DELIMITER.search(first_line)
    is_single = "'" in first_line and '"' not in first_line
    return found[0] if found else ",", "'" if is_single else '"'


def number_columns(head: Sequence[str], rows: Sequence[Row]) -> tuple[list[int], list[str]]:
    """
    Places of the columns of numbers, and the names of those that have none in any row.

    `ValueError`: the *head* of the file is another one.
    """
    named = [place for place, name in enumerate(head) if name != _TIME and name not in _ATTRIBUTES]
    if not named or _TIME not in head or len(set(head)) < len(head):
        raise ValueError(f"the first line is '{','.join(head)}', and not time,NAME,...")
    textual = [
        place for place in named if rows and not any(is_number(row.texts[place]) for row in rows)
    ]
    if len(textual) == len(named):  # then the first value that is none is named
        return named, []
    return [place for place in named if place not in textual], [head[place] for place in textual]


def require_one_branch(head: Sequence[str], rows: Sequence[Row]) -> None:
    """Raise `ValueError` where nights are of several branches: they are no series."""
    if _BRANCH in head:
        place = head.index(_BRANCH)
        branches = dict.fromkeys(row.texts[place].strip() for row in rows)
        if len(branches) > 1:
            named = ", ".join([*branches][:4])
            what = f"nights of {len(branches)} branches are no series: {named}"
            raise ValueError(f"{what}: keep the lines of one")


def seconds_after(last_s: float, text: str) -> float:
    """A time in seconds since 1970; `ValueError`: *text* is none, or not after *last_s*."""
    try:
        time_s = float(text)
    except ValueError:
        time_s = seconds_of(text)
    if not time_s > last_s:
        raise ValueError(f"the time '{text}' is not after that of the line before")
    return time_s


def seconds_of(text: str) -> float:
    """
    The moment *text* in seconds since 1970, without a zone in that of this machine.

    >>> seconds_of("2026.01.01 3:00:00 +0100") == seconds_of("2026-01-01T02:00:00Z")
    True
    """
    found = _MOMENT.fullmatch(text.strip())
    if found:
        year, month, day, hour, minute, second, zone = found.groups()
        date = f"{year}-{month:0>2}-{day:0>2}"
        clock = f"{hour or 0:0>2}:{minute or '00'}:{second or '00'}"
        with suppress(ValueError):  # of a month 13 there is none
            return datetime.fromisoformat(f"{date}T{clock}{zone or ''}").timestamp()
    what = f"'{excerpt(text, 40)}' is no time"
    raise ValueError(f"{what}, as 2026-11-23T02:00:00Z or 2026.11.23 2:00:00 +0000")


def is_number(text: str) -> bool:
    """Whether *text* is a number, infinite or not."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def finite_number(text: str, name: str) -> float:
    """A number of column *name*, NaN for nothing; `ValueError`: *text* is infinite, or none."""
    if not is_number(text.strip() or "nan"):
        raise ValueError(f"'{excerpt(text, 40)}' in column '{excerpt(name, 40)}' is no number")
    number = float(text.strip() or "nan")
    if math.isinf(number):
        raise ValueError(f"a number in column '{excerpt(name, 40)}' is infinite")
    if number and not (math.isnan(number) or _LEAST <= abs(number) <= 1 / _LEAST):
        raise ValueError(
            f"{number:g} in column '{excerpt(name, 40)}' is beyond all that is measured"
        )
    return number


def csv_table(names: Sequence[str], values: Numbers, share: float = 1.0) -> Table:
    """
    The table of columns with *names*, each of them a cell: of logarithms where it can be.

    It may have that *share* of all false alarms.
    """
    points = [Point(kind="measured", cell=name, quantity="job_s", raw=()) for name in names]
    is_plain = bool((values <= 0).any())
    firm = np.zeros(values.shape, bool)
    weights = np.ones(values.shape)
    logs = values if is_plain else np.log(values)
    numbers = range(1, len(values) + 1)
    return Table(numbers, points, logs, firm, weights, is_plain=is_plain, share=share)
