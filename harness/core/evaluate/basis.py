"""What questions about settings start from: a cell that is known, and the profile of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple

from harness.base.errors import DataError, SpecError
from harness.base.records.profile import Profile
from harness.base.records.score import ScoreBook
from harness.base.records.trial import Cell
from harness.base.text import did_you_mean
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.stored import StoredTrials
from harness.core.store import Run


class Basis(NamedTuple):
    """
    What questions start from: the base cell, *resolved*, a *note* on which it is, its *profile*.

    *profiled* are the profiled cells by id; without them predictions have no intervals.  *errors*
    are mean errors by model.
    """

    resolved: ResolvedCell
    note: str
    profile: Profile
    profiled: Mapping[str, ResolvedCell] = {}
    errors: Mapping[str, float] = {}

    @property
    def base(self) -> Cell:
        """The base cell."""
        return self.resolved.cell


def basis_of_run(trials: StoredTrials, workload: str) -> Basis:
    """What a run knows of *workload*, or of its only one; the base is its largest scored cell."""
    run = trials.run
    profile = chosen_profile(run, workload)
    scored = {trial.cell.id for trial in trials.plan if not trial.profiling}
    cells = [cell for cell in trials.resolved.values() if cell.spec.name == profile.workload]
    base = max(cells, key=lambda cell: (cell.id in scored, cell.spec.input_bytes, cell.id))
    note = f"{trials.labels[base.id]}, the largest cell that the run scores"
    scores = ScoreBook()
    with suppress(DataError):  # it was not scored
        scores = run.read_scores()
    if times_s := measured_times(scores, base.id):
        note += f", measured: {fmean(times_s):.3g} s"
    errors = mean_errors(scores, profile.workload)
    return Basis(base, note, profile, trials.resolved, errors)


def chosen_profile(run: Run, workload: str) -> Profile:
    """Give the profile of *workload*, or the only one; `SpecError` where there is none, or more."""
    profiles = run.read_profiles()
    if not profiles:
        raise DataError("there is no profile", where=str(run.path), fix=f"harness profile {run.id}")
    if workload not in profiles and (workload or len(profiles) > 1):
        what = f"no profile is of workload '{workload[:80]}'" if workload else "which workload?"
        raise SpecError(what, where="--workload", fix=did_you_mean(workload, list(profiles)))
    return profiles[workload or next(iter(profiles))]


def measured_times(scores: ScoreBook, cell_id: str) -> list[float]:
    """Measured job times of a cell, in seconds."""
    return [
        measurement.raw_s["job_s"]
        for measurement in scores.measurements
        if measurement.cell == cell_id
    ]


def mean_errors(scores: ScoreBook, workload: str) -> dict[str, float]:
    """Mean relative error of each model, by its name, of the job times of *workload*."""
    errors = {}
    for summary in scores.summaries:
        key = (summary.workload, summary.quantity, summary.speed)
        if key == (workload, "job_s", "raw"):
            errors[summary.model] = summary.value("mape") or 0.0
    return errors
