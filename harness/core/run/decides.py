"""What the design of an experiment can decide, and the refusal of one that decides nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from harness.base.documents.wording import count
from harness.base.errors import HarnessError, SpecError
from harness.base.records.ranges import range_of, ranges_of
from harness.base.records.trial import Cell
from harness.core.experiment.grid import is_profiling
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


def decision_of(experiment: Experiment, cells: Iterable[Cell], store: Store) -> Decision | None:
    """What *experiment* with these *cells* can decide; `None` where it compares no models."""
    question = experiment.question
    models = experiment.predict.models
    if len(models) < 2 or question.kind in ("choice", "moved_since"):
        return None
    scored = asked_cells(experiment, cells)
    units = {cell.id for cell in scored}
    noun = "cell"
    if question.scope == "inputs":
        units = {f"{cell.workload.name} {cell.workload.input_bytes}" for cell in scored}
        noun = "input"
    pairs = pair_count(question, models)
    design = Design(len(units), noun, len(scored), max(1, experiment.repeat), pairs)
    return decide(design, earlier_spread(experiment, store) or TYPICAL, question)


def require_choices(experiment: Experiment, cells: Iterable[Cell], source: str) -> None:
    """`SpecError` where a choice is asked about, and no input leaves one."""
    tried = experiment.question.choice
    if not tried:
        return
    settings = Counter(
        (cell.workload.name, cell.workload.input_bytes) for cell in asked_cells(experiment, cells)
    )
    most = max(settings.values(), default=0)
    if most <= tried:
        what = f"the question is about {count(tried, 'first choice')} among the settings of an"
        what += f" input, and none has more than {most}"
        fix = "give a property of configuration more values, or try fewer choices"
        raise SpecError(what, where=source, fix=fix)


def asked_cells(experiment: Experiment, cells: Iterable[Cell]) -> list[Cell]:
    """
    Those of *cells* that the question of *experiment* is about, as far as its file tells.

    Who asks about extrapolation asks about what lies outside of the range of the profiling cells.
    It is not known here where those are another run's: all cells count then.
    """
    profiling = list[Cell]()
    scored = list[Cell]()
    for cell in cells:
        if is_profiling(cell, experiment.predict):
            profiling.append(cell)
        elif cell.workload.name not in experiment.nightly.controls:
            scored.append(cell)
    if not experiment.question.extrapolate or not profiling:
        return scored
    by_workload = defaultdict[str, list[Cell]](list)
    for cell in profiling:
        by_workload[cell.workload.name].append(cell)
    profiled = {name: ranges_of(row) for name, row in by_workload.items()}
    outside = list[Cell]()
    for cell in scored:
        ranges = profiled.get(cell.workload.name)
        if ranges is None or range_of(cell, ranges) == "outside":
            outside.append(cell)
    return outside


def earlier_spread(experiment: Experiment, store: Store) -> Spread | None:
    """The spread of the newest run of *experiment* that shows it."""
    for run in reversed(store.fitting(experiment)):
        with suppress(HarnessError):  # a damaged run says nothing
            if run.is_scored and (spread := spread_of(run.read_scores(), f"run {run.id}")):
                return spread
    return None


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


def require_decisive(experiment: Experiment, found: Decision | None, source: str) -> None:
    """`SpecError` where even a perfect model would not be told to be nearer, which is asked."""
    question = experiment.question
    if found is None:
        return
    if question.extrapolate and not found.design.cells:
        what = "the question is about cells outside of what is profiled, and there is none"
        raise SpecError(
            what, where=source, fix="leave out extrapolate, or give an axis more values"
        )
    if not question.is_about_pairs or question.anyway or found.tells_perfection:
        return
    needed = f"perfection is told in {100 * found.perfect:.0f} of 100 cases, and"
    needed += f" {100 * POWER:.0f} are needed"
    what = f"the question cannot be decided, {needed}: {decision_sentence(found)}"
    more = "workloads more inputs" if question.scope == "inputs" else "an axis more values"
    fix = f"give {more}, or harness run --anyway: the answer then counts as explored"
    raise SpecError(what, where=source, fix=fix)
