"""What the design of an experiment can decide, and the refusal of one that decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from harness.base.documents.wording import by_number, count
from harness.base.errors import HarnessError, SpecError
from harness.base.stats.drawn import different_cells
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.experiment.cover import Covered, covered_by
from harness.core.experiment.drawn import too_few_error
from harness.core.experiment.grid import is_profiling, label, varying
from harness.core.experiment.model import Experiment
from harness.core.store import Store
from harness.scoring.design import (
    POWER,
    TYPICAL,
    Decision,
    Design,
    Spread,
    decide,
    decision_sentence,
    pair_count,
    spread_of,
)


def decision_of(
    experiment: Experiment, cells: Sequence[ResolvedCell], store: Store
) -> Decision | None:
    """What *experiment* with these *cells* can decide; `None` where it compares no models."""
    question = experiment.question
    models = experiment.predict.models
    if len(models) < 2 or question.kind in ("choice", "moved_since"):
        return None
    scored = asked_cells(experiment, cells)
    units = {cell.id for cell in scored}
    noun = "cell"
    if question.scope == "inputs":
        units = {f"{cell.spec.name} {cell.spec.input_bytes}" for cell in scored}
        noun = "input"
    cell_count = len(scored)
    if experiment.is_drawn:  # of these; that they tell more than others is not counted on
        cell_count = different_cells(cell_count, experiment.design.points or 0)
    unit_count = min(len(units), cell_count)
    pairs = pair_count(question, models)
    design = Design(unit_count, noun, cell_count, max(1, experiment.repeat), pairs)
    return decide(design, earlier_spread(experiment, store) or TYPICAL, question)


def require_choices(experiment: Experiment, cells: Sequence[ResolvedCell], source: str) -> None:
    """`SpecError` where a choice is asked about, and no input leaves one."""
    tried = experiment.question.choice
    if not tried:
        return
    settings = Counter(
        (cell.spec.name, cell.spec.input_bytes) for cell in asked_cells(experiment, cells)
    )
    most = max(settings.values(), default=0)
    if most <= tried:
        what = f"the question is about {count(tried, 'first choice')} among the settings of an"
        what += f" input, and none has more than {most}"
        fix = "give a property of configuration more values, or try fewer choices"
        raise SpecError(what, where=source, fix=fix)


def require_enough_to_draw(
    experiment: Experiment, cells: Sequence[ResolvedCell], source: str
) -> None:
    """`SpecError` where a drawn design is to draw more cells than its question is about."""
    if experiment.is_drawn:
        candidates = len(asked_cells(experiment, cells))
        if candidates < (experiment.design.points or 0):
            raise too_few_error(experiment, candidates, source)


def coverage(experiment: Experiment, cells: Iterable[ResolvedCell]) -> list[Covered]:
    """
    What the profiling cells of *experiment* cover of each workload of *cells* that is scored.

    It is not known here where the profiles are another run's: there is nothing then.
    """
    profiling = set[str]()
    asked = list[ResolvedCell]()
    for cell in cells:
        if cell.spec.name not in experiment.nightly.controls:
            asked.append(cell)
        if is_profiling(cell.cell, experiment.predict):
            profiling.add(cell.id)
    if experiment.predict.source or not profiling:
        return []
    return [*covered_by(asked, profiling)]


def asked_cells(experiment: Experiment, cells: Sequence[ResolvedCell]) -> list[ResolvedCell]:
    """
    Those of *cells* that the question of *experiment* is about, as far as its file tells.

    Who asks about extrapolation asks about what lies outside of what the profiling cells cover, who
    leaves it out about the rest.  Where those are another run's, all cells count.
    """
    controls = experiment.nightly.controls
    scored = [
        cell
        for cell in cells
        if cell.spec.name not in controls and not is_profiling(cell.cell, experiment.predict)
    ]
    found = coverage(experiment, cells)
    if not found:
        return scored
    outside = {*chain.from_iterable(covered.lacking for covered in found)}
    question = experiment.question
    return [
        cell for cell in scored if question.is_about("outside" if cell.id in outside else "inside")
    ]


def require_asked(experiment: Experiment, cells: Sequence[ResolvedCell], source: str) -> None:
    """`SpecError` where the question is about no cell: all, or none, are extrapolated."""
    found = coverage(experiment, cells)
    if not found or asked_cells(experiment, cells):
        return
    if experiment.question.extrapolate == "out":
        what = f"the profile covers no regime that is asked: {uncovered_text(found)}"
        fix = "profile_on: auto chooses cells that do; or ask with extrapolate: in"
        raise SpecError(what, where=source, fix=fix)
    what = "the question is about cells outside of what is profiled, and there is none"
    raise SpecError(what, where=source, fix="leave out extrapolate, or give an axis more values")


def uncovered_text(found: Iterable[Covered]) -> str:
    """Say of each workload which regimes and ranges of its scored cells no profiling cell has."""
    return "; ".join(
        f"{len(covered.lacking)} of {count(len(covered.scored), 'scored cell')} of"
        f" {covered.workload} {by_number(len(covered.lacking), 'is', 'are')} extrapolated, for want"
        f" of {covered.lacks}"
        for covered in found
        if covered.lacking
    )


def earlier_spread(experiment: Experiment, store: Store) -> Spread | None:
    """The spread of the newest run of *experiment* that shows it."""
    for run in reversed(store.fitting(experiment)):
        with suppress(HarnessError):  # a damaged run says nothing
            if run.is_scored and (spread := spread_of(run.read_scores(), f"run {run.id}")):
                return spread
    return None


def profiling_document(
    found: Iterable[Covered], plan: Mapping[str, Any], cells: Iterable[ResolvedCell]
) -> dict[str, Any]:
    """
    What `harness plan --json` says of the profiling cells of its *plan*, among all *cells*.

    Their share of the time is without what passes before a cluster of all cells is ready.
    """
    cells = [*cells]
    axes = varying(cell.cell for cell in cells)
    labels = {cell.id: label(cell.cell, axes) for cell in cells}
    has_one_cluster = len({cell.cell.cluster.id for cell in cells}) == 1
    profiling_s = 0.0
    total_s: float = plan.get("to_draw", {}).get("estimate_s", 0.0)
    for trial in plan["trials"]:
        seconds = trial["estimate_s"] + trial["before_s"]
        total_s += seconds
        if trial["profiling"]:
            profiling_s += trial["estimate_s"] if has_one_cluster else seconds
    return {
        "share": profiling_s / total_s if total_s else 0.0,
        "workloads": [
            {
                "workload": covered.workload,
                "cells": [labels[cell_id] for cell_id in covered.profiling],
                "covers": covered.regimes,
                "scored": len(covered.scored),
                "extrapolated": {
                    labels[cell_id]: names for cell_id, names in covered.lacking.items()
                },
                "lacks": covered.lacks,
            }
            for covered in found
        ],
    }


def decision_document(found: Decision) -> dict[str, Any]:
    """What `harness plan --json` says of it."""
    return {
        "says": decision_sentence(found),
        "units": found.design.units,
        "unit": found.design.noun,
        "repeats": found.design.repeats,
        "pairs": found.design.pairs,
        "gap": found.gap,
        "gap_of_twice": found.gap_of_twice,
        "gap_alone": found.gap_alone,
        "perfect": found.perfect,
        "perfect_alone": found.perfect_alone,
        "enough": found.enough,
        "spread": found.spread.origin,
    }


def is_undecided(experiment: Experiment, found: Decision) -> bool:
    """Whether *experiment* asks which model is nearer, and *found* is that none would be told."""
    question = experiment.question
    if question.anyway or not question.is_about_pairs:
        return False
    return not found.tells_perfection


def undecided_text(found: Decision) -> str:
    """Say how seldom a perfect model would be told in a run as noisy as an earlier one."""
    cases = f"{100 * found.perfect:.0f} of 100 cases"
    return f"as noisy as {found.spread.origin} even a perfect model would be told in {cases}"


def require_decisive(experiment: Experiment, found: Decision | None, source: str) -> None:
    """
    `SpecError` where even a perfect model would not be told to be nearer, which is asked.

    One earlier run that was noisy refuses nothing that the published grids would decide.
    """
    question = experiment.question
    if found is None or not is_undecided(experiment, found):
        return
    if decide(found.design, TYPICAL, question).tells_perfection:
        return
    needed = f"perfection is told in {100 * found.perfect:.0f} of 100 cases, and"
    needed += f" {100 * POWER:.0f} are needed"
    what = f"the question cannot be decided, {needed}: {decision_sentence(found)}"
    more = "workloads more inputs" if question.scope == "inputs" else "an axis more values"
    draw = "draw more (a cell may be drawn twice), " if experiment.is_drawn else ""
    fix = f"{draw}give {more}, or harness run --anyway: the answer then counts as explored"
    raise SpecError(what, where=source, fix=fix)
