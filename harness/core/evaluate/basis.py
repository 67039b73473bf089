"""What questions about settings start from: a cell that is known, and the profile of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from statistics import fmean
from typing import NamedTuple

from harness.base.documents.wording import count
from harness.base.errors import DataError, SpecError
from harness.base.records.profile import Profile
from harness.base.records.score import ScoreBook
from harness.base.records.trial import Cell
from harness.base.text import did_you_mean, excerpt
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.judge import Judge, judges_of
from harness.core.evaluate.stored import StoredTrials
from harness.core.store import Run


class Basis(NamedTuple):
    """
    What questions start from: the base cell, *resolved*, a *note* on which it is, its *profile*.

    *profiled* are the profiled cells by id; without them predictions have no intervals.  *judges*
    are the models by name, each with its error on the job times of the workload.
    """

    resolved: ResolvedCell
    note: str
    profile: Profile
    profiled: Mapping[str, ResolvedCell] = {}
    judges: Mapping[str, Judge] = {}

    @property
    def base(self) -> Cell:
        """The base cell."""
        return self.resolved.cell

    def judge(self, model: str) -> Judge:
        """How far off *model* was here; one of which nothing was scored says so."""
        return self.judges.get(model, Judge(model))


def basis_of_run(trials: StoredTrials, workload: str, cell_name: str = "") -> Basis:
    """
    What a run knows of *workload*, or of its only one; the base is its largest scored cell.

    Or it is the cell of that *cell_name*: `chosen_cell`.
    """
    run = trials.run
    if cell_name:
        base = chosen_cell(trials, workload, cell_name)
        profile = chosen_profile(run, base.spec.name)
        note = trials.labels[base.id]
    else:
        profile = chosen_profile(run, workload)
        scored = {trial.cell.id for trial in trials.plan if trial.is_scored}
        cells = [cell for cell in trials.resolved.values() if cell.spec.name == profile.workload]
        base = max(cells, key=lambda cell: (cell.id in scored, cell.spec.input_bytes, cell.id))
        note = f"{trials.labels[base.id]}, the largest cell that the run scores"
    scores = ScoreBook()
    with suppress(DataError):  # it was not scored
        scores = run.read_scores()
    if times_s := measured_times(scores, base.id):
        note += f", measured: {fmean(times_s):.3g} s"
    judges = judges_of(scores, profile.workload)
    return Basis(base, note, profile, trials.resolved, judges)


def chosen_cell(trials: StoredTrials, workload: str, name: str) -> ResolvedCell:
    """
    Give the cell *name* of the run, of *workload* if that is given.

    A name is what tables call the cell, or the first characters of its id; `SpecError`: it is that
    of none, or of several.
    """
    labels = {
        cell_id: label
        for cell_id, label in trials.labels.items()
        if workload in ("", trials.resolved[cell_id].spec.name)
    }
    found = [cell_id for cell_id, label in labels.items() if label == name]
    found = found or [cell_id for cell_id in labels if cell_id.startswith(name)]
    if len(found) == 1:
        return trials.resolved[found[0]]
    what = f"{count(len(found), 'cell')} of the run begin with '{excerpt(name)}'"
    if not found:
        what = f"no cell of the run is called '{excerpt(name)}'"
    raise SpecError(what, where="--cell", fix=did_you_mean(name, [*labels.values()]))


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
