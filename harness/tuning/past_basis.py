"""What questions start from where a job ran before: its cell, and the profile of jobs like it."""

from __future__ import annotations

import math

from collections import defaultdict
from pathlib import Path

from harness.base.documents.wording import count
from harness.catalog.catalog import Catalog
from harness.catalog.histories import family_names, find_jobs
from harness.catalog.match import LEVELS, similar
from harness.catalog.planning import PastPlan, plan_histories
from harness.core.evaluate.basis import Basis
from harness.core.evaluate.observations import observe_jobs
from harness.core.evaluate.resolved import resolve_cells
from harness.core.evaluate.steps import fit_profiles
from harness.core.evaluate.stored import labels_in_families
from harness.observe.profiling.jobs import Observation

_MOST_ALIKE = 50  # jobs that a profile of one is made of


def basis_of_past_job(catalog: Catalog, job_id: str) -> Basis:
    """
    What *catalog* knows of a job: its cell, and a profile of the jobs of its family most like it.

    Where its own history is of no use, the cell is that of the job most like it.  `DataError`: the
    catalog has no such job, or none of the histories can be read any more.
    """
    matches = similar(catalog, job_id, _MOST_ALIKE)
    job_ids = [job_id, *(match.job_id for match in matches if match.level == LEVELS[0])]
    places = sorted({place_of_job(catalog, wanted_id) for wanted_id in job_ids})
    histories = find_jobs(places, only=job_ids, rules=catalog.rules)
    plan = plan_histories(histories, family_names(histories.jobs), until_s=math.inf)
    return basis_of_plan(plan, job_ids)


def place_of_job(catalog: Catalog, job_id: str) -> Path:
    """Folder of the history of a job in *catalog*; of one of a trial that of its run."""
    path = Path(catalog.read_job(job_id)["source"])
    # The files of a trial are compressed: they are read by way of their run.
    is_of_trial = path.parts[-4:-3] == ("trials",)
    return path.parents[3] if is_of_trial else path.parent


def basis_of_plan(plan: PastPlan, job_ids: list[str]) -> Basis:
    """What the jobs of *plan*, all of which were profiled, say of the first of *job_ids* in it."""
    cells = {planned.job.job_id: planned.trial.cell for planned in plan.trials}
    resolved = resolve_cells(cells.values())
    observations = defaultdict[str, list[Observation]](list)
    for trial, job in plan.trials:
        observed = observe_jobs(trial, resolved[trial.cell.id], [job.trace()])
        observations[trial.cell.workload.name] += observed
    profiles = fit_profiles(observations, {})
    base_id = next(wanted_id for wanted_id in job_ids if wanted_id in cells)
    base = resolved[cells[base_id].id]
    labels = labels_in_families({cell.id: cell for cell in cells.values()})
    note = f"{labels[base.id]}, the cell of {base_id}"
    if base_id != job_ids[0]:
        note += f", the job most like {job_ids[0]}, whose own history is of no use"
    note += f"; the profile is of {count(len(cells), 'job')} of its family"
    return Basis(base, note, profiles[base.spec.name], resolved)
