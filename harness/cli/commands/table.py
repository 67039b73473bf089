"""`harness score TABLE.csv`: the verdict on anybody's numbers, without Hadoop, Java or a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import DataError
from harness.cli.console.present import Note, Part, Rows

if TYPE_CHECKING:
    from harness.base.records.score import ScoreBook
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
    """The answer, each model with its error and its verdict, the floor, and what would decide."""
    from harness.base.documents.wording import count, percent, share_with_interval
    from harness.core.reports.answer import answer_sentence, floor_sentences

    ranking = scores.ranking("raw")
    if scores.answer is None or ranking is None:
        return
    yield answer_sentence(scores.answer)
    summaries = {
        summary.model: summary
        for summary in scores.summaries
        if (summary.quantity, summary.speed, summary.workload) == ("job_s", "raw", "*")
    }
    rows = []
    for model, error in zip(ranking.models, ranking.errors, strict=True):
        mean = summaries[model].metrics["mape"]
        interval = share_with_interval(error, mean.low, mean.high)
        worst = percent(summaries[model].metrics["worst_error"].value)
        rows.append((model, interval, worst, str(summaries[model].cells)))
    yield Rows(("model", "mean relative error", "worst", "cells"), rows)
    for model, why in ranking.left_out.items():
        yield Note(f"{model} is not ranked: {why}")
    yield from floor_sentences(scores)
    if not scores.controls or scores.control("perfect") is None:
        yield "No noise shows, and so no floor: cells were measured once, or repeats do not differ."
    pairs = scores.asked() or [
        pair for pair in scores.comparisons if pair.better == ranking.models[0]
    ]
    for pair in pairs:
        if pair.speed == "raw" and pair.verdict == "undecided":
            yield f"Between {pair.better} and {pair.worse}: {pair.reason}."
    yield Note(f"{count(ranking.cells, 'cell')} compared")
