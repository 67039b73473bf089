"""`harness score TABLE.csv`: the verdict on anybody's numbers, without Hadoop, Java or a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import DataError
from harness.cli.console.present import Note, Part, Rows

if TYPE_CHECKING:
    from harness.base.records.score import Ranking, ScoreBook
    from harness.scoring.table import ScoredTable


@dataclass(frozen=True)
class TableFile:
    """A table of measured and predicted times at *path*."""

    path: Path

    def read(self) -> ScoredTable:
        """What it holds; `DataError` where it is no such table."""
        from harness.core.store import os_error_as_machine_error
        from harness.scoring.table import MOST_BYTES, read_table

        with os_error_as_machine_error(self.path):
            if self.path.exists() and not self.path.is_file():
                raise DataError("it is no plain file", where=str(self.path), fix="name a CSV file")
            size_bytes = self.path.stat().st_size
            if size_bytes > MOST_BYTES:
                what = f"it has {size_bytes} bytes, of {MOST_BYTES} that are read"
                raise DataError(what, where=str(self.path), fix="score parts of it")
            try:
                text = self.path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                fix = "save it as CSV in UTF-8"
                raise DataError("it is no UTF-8", where=str(self.path), fix=fix) from None
        return read_table(text, str(self.path))

    def score(self, question: str | None) -> ScoreBook:
        """Score it, with the *question* as it was typed, if there is one."""
        from harness.core.experiment.question import read_question
        from harness.scoring.claims import models_by_paper

        table = self.read()
        papers = models_by_paper()
        asked = None if question is None else read_question(question, table.models, papers)
        return table.score(asked)


def shown_table(scores: ScoreBook) -> Iterator[Part]:
    """The answer, each model with its error, the floor, and what would decide."""
    from harness.core.reports.answer import answer_sentence, floor_sentences

    ranking = scores.ranking()
    if scores.answer is None or ranking is None:
        return
    yield answer_sentence(scores.answer)
    yield Rows(("model", "mean relative error", "worst"), [*ranked_models(scores, ranking)])
    yield from left_out(ranking)
    yield from asked_gaps(scores)
    yield from floor_sentences(scores)
    if scores.control("perfect") is None:
        yield "No noise shows, and so no floor: cells were measured once, or repeats do not differ."
    yield from open_pairs(scores, ranking)


def ranked_models(scores: ScoreBook, ranking: Ranking) -> Iterator[tuple[str, str, str]]:
    """Each ranked model with its mean error and its worst one, over the cells that all answer."""
    from harness.base.documents.wording import percent, share_with_interval
    from harness.base.stats.resampling import mean_interval
    from harness.scoring.comparisons import job_scores

    by_model = job_scores(scores.scores, scores.speed)
    answered = [by_model[model].keys() for model in ranking.models]
    by_inputs = scores.answer is not None and scores.answer.question.scope == "inputs"
    cells = sorted(set(answered[0]).intersection(*answered[1:]))
    for model, error in zip(ranking.models, ranking.errors, strict=True):
        errors = [by_model[model][cell].relative_error for cell in cells]
        inputs = [by_model[model][cell].input for cell in cells] if by_inputs else ()
        low, high = mean_interval(errors, inputs)
        interval = share_with_interval(error, max(0.0, low), high)
        yield model, interval, percent(max(errors))


def left_out(ranking: Ranking) -> Iterator[Note]:
    """How many cells are compared, and which cells and models are not, with the reason."""
    from harness.base.documents.wording import count

    yield Note(f"{count(ranking.cells, 'cell')} compared")
    for why, number in ranking.cells_left_out.items():
        yield Note(f"{count(number, 'cell')} left out: {why}")
    for model, why in ranking.left_out.items():
        yield Note(f"{model} is not ranked: {why}")


def asked_gaps(scores: ScoreBook) -> Iterator[str]:
    """By how many points the mean errors of each asked pair differ, and the ends of that."""
    for pair in scores.asked():
        low, high = (
            f"{100 * end:+.1f}" if end is not None else "no end" for end in (pair.low, pair.high)
        )
        tested = "as tested" if pair.chance is not None else "cells"
        text = f"{pair.better} less {pair.worse}: {100 * pair.difference:+.1f} points"
        yield f"{text} ({tested}: {low} to {high})."


def open_pairs(scores: ScoreBook, ranking: Ranking) -> Iterator[str]:
    """What would decide between two models: of the question, or the one that errs least."""
    from harness.scoring.answers import is_open

    best = ranking.models[0]
    pairs = scores.asked() or [pair for pair in scores.comparisons if pair.better == best]
    for pair in pairs:
        if pair.speed == scores.speed and is_open(pair):
            yield f"Between {pair.better} and {pair.worse}: {pair.reason}."
