"""The draw of a run: every model predicts all candidates, and cells are drawn where they differ."""

from __future__ import annotations

from collections.abc import Mapping

from harness.base.errors import DataError
from harness.base.records.draw import Candidate, Draw
from harness.base.records.profile import Profile
from harness.base.stats.drawn import disagreement, draw_chances, draw_counts, drawn_weights
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.predict import predict_cell, profiled_range
from harness.core.evaluate.provenance import asked_model
from harness.core.evaluate.resolved import resolve_cells
from harness.core.experiment.drawn import too_few_error
from harness.core.experiment.grid import expand, is_profiling
from harness.core.experiment.model import Experiment


def candidates_of(
    experiment: Experiment, profiles: Mapping[str, Profile]
) -> dict[str, ResolvedCell]:
    """
    Cells of *experiment* that may be drawn, by id and in their order: all that its question counts.

    An extrapolated cell that is in no verdict would be drawn for nothing.
    """
    cells = resolve_cells(
        cell for cell in expand(experiment) if not is_profiling(cell, experiment.predict)
    )
    return {
        cell_id: cells[cell_id]
        for cell_id in sorted(cells)
        if experiment.question.is_about(
            profiled_range(cells[cell_id], profiles.get(cells[cell_id].spec.name))
        )
    }


def draw_cells(experiment: Experiment, profiles: Mapping[str, Profile], where: str) -> Draw:
    """
    Draw cells of *experiment* by what its models predict with *profiles*.

    `SpecError`: fewer cells than draws; `DataError`: the asked models disagree nowhere.  *where* is
    the run.
    """
    import numpy as np

    draws = experiment.design.points or 0
    cells = candidates_of(experiment, profiles)
    if len(cells) < draws:
        raise too_few_error(experiment, len(cells), where)
    times_s = predicted_times_s(experiment, cells, profiles)
    asked = experiment.asked_models
    disagreements = np.array(
        [
            disagreement(times_s[cell_id][model] for model in asked if model in times_s[cell_id])
            for cell_id in cells
        ]
    )
    if not disagreements.any():
        what = f"design: drawn draws cells where models disagree, and {' and '.join(asked)} do not"
        what += f" in any of {len(cells)} cells"
        fix = "ask other models, or measure all cells: design: full"
        raise DataError(what, where=where, fix=fix)
    chances = draw_chances(disagreements)
    counts = draw_counts(chances, draws, experiment.seed)
    columns = zip(
        cells,
        disagreements.tolist(),
        chances.tolist(),
        counts.tolist(),
        drawn_weights(chances, counts).tolist(),
        strict=True,
    )
    candidates = tuple(
        Candidate(
            cell=cell_id,
            predicted_s=times_s[cell_id],
            disagreement=apart,
            chance=chance,
            count=count,
            weight=weight,
        )
        for cell_id, apart, chance, count, weight in columns
    )
    return Draw(seed=experiment.seed, draws=draws, models=asked, candidates=candidates)


def predicted_times_s(
    experiment: Experiment, cells: Mapping[str, ResolvedCell], profiles: Mapping[str, Profile]
) -> dict[str, dict[str, float]]:
    """Job times of a trial of each of *cells*, by its id and the model; those above 0 alone."""
    times_s: dict[str, dict[str, float]] = {cell_id: {} for cell_id in cells}
    for name in experiment.predict.models:
        model, _ = asked_model(experiment, name)
        for cell_id, cell in cells.items():
            job_s = predict_cell(model, cell, profiles).job_s
            if job_s is not None and job_s > 0:
                times_s[cell_id][name] = job_s
    return times_s
