"""The trials that an experiment plans: of its whole grid, or of the cells that were drawn."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.records.draw import Draw
from harness.base.records.trial import Cell, Trial, Versions
from harness.core.experiment.grid import is_profiling, order
from harness.core.experiment.model import Experiment


def planned_trials(
    experiment: Experiment, cells: Sequence[Cell], draw: Draw | None, versions: Versions
) -> tuple[Trial, ...]:
    """
    Trials of *experiment* in their order: of all *cells*, or of those that a drawn design has.

    These are the profiling cells, and once there is a *draw* the cells that it took, whose trials
    say why they are run.
    """
    if not experiment.is_drawn:
        return order(experiment, cells, versions)
    reasons = {} if draw is None else draw.reasons
    chosen = [
        cell for cell in cells if cell.id in reasons or is_profiling(cell, experiment.predict)
    ]
    trials = order(experiment, chosen, versions)
    return tuple(
        trial.model_copy(update={"reason": reasons[trial.cell.id]}) if trial.is_scored else trial
        for trial in trials
    )
