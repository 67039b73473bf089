"""How far off a model was on the job times of a workload, and on what that rests: in one clause."""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.base.documents.wording import count, percent
from harness.base.records.score import Measurement, ScoreBook


class Judge(NamedTuple):
    """
    A *model* that prices what nobody measured.

    *error* is its mean relative error on measured job times, over so many *cells*, measured by so
    many *jobs*, from *fewest* to *most* repeats of each; `None`: nothing was scored.
    """

    model: str
    error: float | None = None
    cells: int = 0
    jobs: int = 0
    fewest: int = 0
    most: int = 0

    def is_within(self, change: float | None) -> bool:
        """Whether a *change* of a job's time, as a share, may be none: the error is as large."""
        return self.error is not None and change is not None and abs(change) <= self.error

    @property
    def basis(self) -> str:
        """
        What its error rests on.

        >>> Judge("whatif", 0.1, cells=6, jobs=12, fewest=2, most=2).basis
        '6 cells, 12 jobs, 2 repeats of each'
        """
        repeats = count(self.most, "repeat")
        if self.fewest != self.most:
            repeats = f"{self.fewest} to {repeats}"
        return f"{count(self.cells, 'cell')}, {count(self.jobs, 'job')}, {repeats} of each"

    @property
    def clause(self) -> str:
        """
        How far off it was, for the end of a sentence.

        >>> Judge("whatif").clause
        'how far off whatif is here is not known: it was not scored here'
        """
        if self.error is None:
            return f"how far off {self.model} is here is not known: it was not scored here"
        return f"{self.model} was {percent(self.error)} off on job times here ({self.basis})"

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        rests_on = {"cells": self.cells, "jobs": self.jobs, "repeats": [self.fewest, self.most]}
        return {"judge": self.model, "judge_error": self.error, "rests_on": rests_on}


def joint_judge(model: str, judges: Sequence[Judge]) -> Judge:
    """
    *model* as a judge of all the workloads of *judges* together: its mean error over their cells.

    >>> joint_judge("m", [Judge("m", 0.1, 1, 2, 2, 2), Judge("m", 0.4, 2, 6, 3, 3)]).error
    0.3
    """
    errors = [judge.error * judge.cells for judge in judges if judge.error is not None]
    cells = sum(judge.cells for judge in judges)
    if len(errors) < len(judges) or not cells:
        return Judge(model)
    fewest = min(judge.fewest for judge in judges)
    most = max(judge.most for judge in judges)
    jobs = sum(judge.jobs for judge in judges)
    return Judge(model, math.fsum(errors) / cells, cells, jobs, fewest, most)


def judges_of(scores: ScoreBook, workload: str) -> dict[str, Judge]:
    """Each model of *scores* as a judge of the job times of *workload*, by its name."""
    measured = dict[str, list[Measurement]]()
    for measurement in scores.measurements:
        if measurement.workload == workload:
            measured.setdefault(measurement.cell, []).append(measurement)
    judges = dict[str, Judge]()
    for model, error in mean_errors(scores, workload).items():
        cells = {
            score.cell
            for score in scores.scores
            if (score.model, score.quantity, score.speed) == (model, "job_s", scores.speed)
            and score.cell in measured
        }
        repeats = [len(measured[cell]) for cell in cells] or [0]
        jobs = sum(
            max(1, len(measurement.jobs_s)) for cell in cells for measurement in measured[cell]
        )
        judges[model] = Judge(model, error, len(cells), jobs, min(repeats), max(repeats))
    return judges


def mean_errors(scores: ScoreBook, workload: str) -> Mapping[str, float]:
    """Mean relative error of each model, by its name, of the job times of *workload*."""
    errors = dict[str, float]()
    for summary in scores.summaries:
        key = (summary.workload, summary.quantity, summary.speed)
        error = summary.value("mape")
        if key == (workload, "job_s", scores.speed) and error is not None:
            errors[summary.model] = error
    return errors
