"""
From stored trials to the report, step by step: profiles, sealed predictions, scores.

Nothing here needs Hadoop: every number can be made again from the run's files on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.base.documents.document import Document
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import Measurement, ScoreBook
from harness.base.records.trial import TrialRecord
from harness.base.records.vet import VetBook
from harness.core.evaluate.measurements import measure_trials
from harness.core.evaluate.moved import answer_moved
from harness.core.evaluate.reporting import report_data, report_document, vet_trials, write_report
from harness.core.evaluate.steps import (
    PlanOfDraw,
    asked_question,
    predict_run,
    profile_run,
    score_run,
)
from harness.core.evaluate.stored import StoredTrials
from harness.core.reports.data import ReportData


class Evaluation(StoredTrials):
    """A run to be evaluated: its stored trials, and the steps, each of which stores its result."""

    def profile(self) -> dict[str, Profile]:
        """Fit one profile per workload on the profiling trials, and store them."""
        return profile_run(self)

    def predict(self, plan_of: PlanOfDraw | None = None) -> list[Prediction]:
        """
        Have every model predict every scored cell, store the predictions and seal them.

        Of a drawn design the cells are drawn first, where *plan_of* gives the plan with them.
        """
        return predict_run(self, plan_of)

    def score(self, stored: ScoreBook | None = None, *, strict: bool = False) -> ScoreBook:
        """
        Compare the sealed predictions with the measured cells, and store the scores.

        Measurements and drift of *stored* scores count as they are, the others are made from
        traces.  *strict*: `EvidenceError` refuses a run that is not blind.
        """
        score_book = score_run(self, stored, strict=strict)
        question, asked = asked_question(self)
        # A bundle stands alone: the earlier run is not there, and how far the best is off is said.
        if question.moved_since and not self.run.measured.is_published:
            found = answer_moved(self.run, question, asked)
            score_book = score_book.model_copy(update={"answer": found})
            self.run.write_scores(score_book)
        return score_book

    def report(self, folder: Path | None = None) -> tuple[list[Path], Document]:
        """Write the report in every format, into *folder* if given; and give it, path and text."""
        self.run.check_evidence()
        document = self.document()
        return write_report(self.run, document, folder), document

    def document(self) -> Document:
        """Make the report, which every format renders."""
        return report_document(self, self.report_data())

    def report_data(self, *, with_tasks: bool = True) -> ReportData:
        """
        Everything the report shows so far; `DataError` where a sealed file has changed.

        *with_tasks*: also where the time of the tasks of typical trials went.
        """
        return report_data(self, with_tasks=with_tasks)

    def measurements(
        self, stored: Iterable[Measurement] = (), *, profiling: bool = False
    ) -> list[Measurement]:
        """Measured times of each scored trial, with *profiling* of all; *stored* ones as is."""
        stored = (*stored, *self.published_measurements())
        return measure_trials(self, stored, profiling=profiling)

    def vet(self, records: Iterable[TrialRecord]) -> VetBook:
        """Overhead of *records* whose tasks have times of units: over the tasks of all jobs."""
        return vet_trials(self, records)
