"""
A table of anybody's numbers, scored as a run is: measured times, and what models predicted of them.

A row for each measurement, with the columns `cell`, `repeat` and `measured`, and a column for each
model; `input` may say which cells read the same.  A model's prediction of a cell stands in each of
its rows, or in the first one; without one the model has no answer there.
"""

from __future__ import annotations

import csv
import io
import math
import re

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

from harness.base.errors import DataError
from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Question
from harness.base.records.score import Measurement, ScoreBook
from harness.base.text import excerpt, printable
from harness.scoring.metrics.errors import LARGEST
from harness.scoring.score import score

REQUIRED = ("cell", "repeat", "measured")
NOT_MODELS = (*REQUIRED, "input")
WORKLOAD = "table"
MOST_BYTES = 2**26
MOST_MODELS = 60
SHORTEST = 1e-6  # seconds
_MOST_NAME = 200
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"[0-9.eE+-]{1,40}", re.ASCII)
_ASKED = "--question"


class ScoredTable(NamedTuple):
    """What a table at *source* holds: *models* in their order, *predictions*, *measurements*."""

    source: str

    models: tuple[str, ...]
    predictions: Sequence[Prediction]
    measurements: Sequence[Measurement]

    def score(self, question: Question | None = None) -> ScoreBook:
        """
        Score all of it; *question*: how far the best model is off, unless it is given.

        `DataError`: it asks for what no table shows, or no model has an answer.
        """
        asks = question or Question(how_far=BEST)
        self._require_shown(asks)
        book = score(self.predictions, self.measurements, question=asks)
        if book.answer is None:
            fix = "write what they predict into their columns"
            raise DataError("no model has an answer", where=self.source, fix=fix)
        return book

    def _require_shown(self, asks: Question) -> None:
        """`DataError`: *asks* is about profiles, another run, or inputs that have no names."""
        if asks.extrapolate or asks.moved_since:
            asked = "extrapolate" if asks.extrapolate else "moved_since"
            fix = "ask how_far, nearer or choice"
            raise DataError(
                f"{asked} is a question to a run, not to a table", where=_ASKED, fix=fix
            )
        needs_inputs = asks.scope == "inputs" or asks.choice
        if needs_inputs and not all(measured.input for measured in self.measurements):
            what = "the question is about inputs, and not every row names one"
            raise DataError(what, where=self.source, fix="add a column input")


def read_table(text: str, source: str) -> ScoredTable:
    """Read the table in *text*; `DataError` names line and column of *source* that are wrong."""
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    models = _models(reader.fieldnames or (), source)
    predicted = dict[tuple[str, str], float]()
    measured = dict[str, Measurement]()
    for line, row in _rows(reader, source):
        measurement = _measurement(row, line)
        if measurement.trial in measured:
            what = f"repeat {row['repeat']} of cell {row['cell']} is there twice"
            raise DataError(what, where=line.text, fix="give each row of a cell its own repeat")
        measured[measurement.trial] = measurement
        for model in models:
            if (row[model] or "").strip():
                key = (model, measurement.cell)
                _add_prediction(predicted, key, _seconds(row, model, line), line)
    if not measured:
        raise DataError("it has no row", where=source, fix="write a row for each measurement")
    cells = dict.fromkeys(measurement.cell for measurement in measured.values())
    predictions = [
        Prediction(model=model, cell=cell, job_s=predicted.get((model, cell)))
        for model, cell in product(models, cells)
    ]
    return ScoredTable(source, models, predictions, [*measured.values()])


class _Line(NamedTuple):
    """The place of a row: its file and number, as `text`."""

    text: str


def _rows(
    reader: csv.DictReader[str], source: str
) -> Iterator[tuple[_Line, Mapping[str, str | None]]]:
    """Yield each row with its place; `DataError`: a row has more or fewer fields than columns."""
    try:
        for row in reader:
            line = _Line(f"{source}:{reader.line_num}")
            if None in row or None in row.values():
                what = f"the row has not {len(reader.fieldnames or ())} fields"
                raise DataError(what, where=line.text, fix="write a field for each column")
            yield line, row
    except csv.Error as error:
        what = f"it is no CSV: {excerpt(str(error))}"
        where = f"{source}:{reader.line_num}"
        raise DataError(what, where=where, fix="save it as CSV, with commas") from None


def _models(columns: Sequence[str], source: str) -> tuple[str, ...]:
    """The columns that are models; `DataError`: one is missing, or named twice."""
    models = tuple(name for name in columns if name not in NOT_MODELS)
    for what, fix in _complaints(columns, models):
        raise DataError(what, where=f"{source}:1", fix=fix)
    return models


def _complaints(columns: Sequence[str], models: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the first line, and what to write."""
    if lacking := [name for name in REQUIRED if name not in columns]:
        what = f"it has no column {' and no column '.join(lacking)}"
        yield what, "begin it with the line: cell,repeat,measured,MODEL,..."
    if not models:
        yield "it has no column of a model", "add a column for each model, by its name"
    for name in models:
        if not _NAME.fullmatch(name) or name == BEST:
            fix = "use letters, digits, _ and -, starting with a letter, and not 'best'"
            yield f"'{excerpt(name)}' cannot name a model", fix
    if len(models) > MOST_MODELS:
        what = f"it has {len(models)} models, of {MOST_MODELS} that are compared"
        yield what, "leave columns out"
    if twice := [name for name, number in Counter(columns).items() if number > 1]:
        yield f"the column '{excerpt(twice[0])}' is there twice", "name each column once"


def _name(row: Mapping[str, str | None], column: str, line: _Line) -> str:
    """The text of *column* that names something."""
    text = (row[column] or "").strip()
    if not text or len(text) > _MOST_NAME:
        what = f"{column} is {'empty' if not text else 'too long'}"
        raise DataError(what, where=line.text, fix=f"name each {column}")
    return printable(text)


def _seconds(row: Mapping[str, str | None], column: str, line: _Line) -> float:
    """The time in *column*, above 0."""
    text = (row[column] or "").strip()
    seconds = math.nan
    if _NUMBER.fullmatch(text):
        with suppress(ValueError):
            seconds = float(text)
    if not SHORTEST <= seconds <= LARGEST:
        what = f"{excerpt(column)} is '{excerpt(text)}', which is no time"
        what += f" from {SHORTEST:g} to {LARGEST:g} seconds"
        fix = "write seconds as a number; leave out a row that was not measured"
        raise DataError(what, where=line.text, fix=fix)
    return seconds


def _measurement(row: Mapping[str, str | None], line: _Line) -> Measurement:
    """The measurement of a row."""
    cell = _name(row, "cell", line)
    repeat = _name(row, "repeat", line)
    named_input = (row.get("input") or "").strip()
    return Measurement(
        cell=cell,
        workload=WORKLOAD,
        trial=f"{cell}\t{repeat}",
        input=printable(named_input)[:_MOST_NAME],
        raw_s={"job_s": _seconds(row, "measured", line)},
        reference_s={},  # nobody probed the speed of a machine
    )


def _add_prediction(
    predicted: dict[tuple[str, str], float], key: tuple[str, str], seconds: float, line: _Line
) -> None:
    """Keep what a model predicts of a cell; `DataError`: it said something else before."""
    model, cell = key
    if predicted.setdefault(key, seconds) != seconds:
        what = f"{model} predicts {predicted[key]:g} and {seconds:g} of cell {cell}"
        fix = "a cell is predicted once: write the same into all its rows, or give it another name"
        raise DataError(what, where=line.text, fix=fix)
