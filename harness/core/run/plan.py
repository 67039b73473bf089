"""
The plan: which trials there are, which of them results/ already holds, how long the rest takes.

Pure; `refuse_cells` is given the function that knows what a cluster has room for.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from harness.base.documents.wording import count
from harness.base.errors import SpecError
from harness.base.hadoop.site import block_bytes
from harness.base.records.trial import ClusterSpec, Trial, TrialRecord
from harness.base.stats.drawn import different_cells
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.resolved import resolve_cells
from harness.core.experiment.file import places
from harness.core.experiment.grid import label, varying
from harness.core.experiment.model import Experiment
from harness.core.run.estimate import LIMITING_S, Estimator, input_of


def make_plan(
    experiment: Experiment,
    trials: Sequence[Trial],
    records: Mapping[str, TrialRecord],
    estimator: Estimator,
    *,
    is_finished: bool = False,
) -> dict[str, Any]:
    """
    What `harness plan --json` prints of *trials*: each with its state among *records*, and seconds.

    Each group of trials on one cluster adds its start and its warm-up trials (`before_s` of its
    first one), each input that is new there its generation.  *is_finished*: all is measured anew.
    """
    axes = varying(trial.cell for trial in trials)
    resolved = resolve_cells(trial.cell for trial in trials)
    trial_s = dict[str, float]()
    generation_s = dict[str, float]()
    for cell_id, cell in resolved.items():
        work_s = min(experiment.trial_limit_s, estimator.seconds(cell))
        trial_s[cell_id] = work_s + estimator.gap_s
        generation_s[cell_id] = estimator.seconds(cell, is_generation=True)
    planned = list[dict[str, Any]]()
    total_s = 0.0
    for _, group in groupby(trials, key=lambda trial: trial.cell.cluster.id):
        inputs = set[str]()
        for trial in group:
            cell_id = trial.cell.id
            record = records.get(trial.id)
            expected_s = trial_s[cell_id]
            before_s = 0.0
            if record is None or is_finished:
                if not inputs:  # the first of its cluster
                    before_s = estimator.start_s + LIMITING_S * trial.cell.cluster.limited
                    before_s += experiment.warmup * expected_s
                if input_of(trial.cell) not in inputs:
                    expected_s += generation_s[cell_id]
                inputs.add(input_of(trial.cell))
                total_s += before_s + expected_s
            planned.append(
                {
                    "id": trial.id,
                    "cell": trial.cell.model_dump(mode="json"),
                    "cell_id": cell_id,
                    "label": label(trial.cell, axes),
                    "repetition": trial.repetition,
                    "profiling": trial.profiling,
                    "use": trial.use,
                    "state": "pending" if record is None else record.state,
                    "estimate_s": expected_s,
                    "before_s": before_s,
                }
            )
    total_s += estimator.end_s if total_s else 0.0
    return {
        "trials": planned,
        "estimate_s": total_s,
        "estimated": basis_of_estimate(trials, estimator),
    }


def document_to_draw(
    experiment: Experiment, candidates: Sequence[ResolvedCell], estimator: Estimator
) -> dict[str, Any]:
    """
    What `harness plan --json` says of cells that will be drawn: how many of which, and seconds.

    Which ones it will be is not known: each counts as the mean of the *candidates*, and with each
    its input is generated.  Their clusters start once more, with warm-up trials.
    """
    draws = experiment.design.points or 0
    work_s = fmean(min(experiment.trial_limit_s, estimator.seconds(cell)) for cell in candidates)
    generation_s = fmean(estimator.seconds(cell, is_generation=True) for cell in candidates)
    trial_s = work_s + estimator.gap_s
    starts = len({cell.cell.cluster.id for cell in candidates}) * experiment.starts
    before_s = starts * (estimator.start_s + experiment.warmup * trial_s)
    return {
        "draws": draws,
        "different": different_cells(len(candidates), draws),
        "candidates": len(candidates),
        "models": list(experiment.asked_models),
        "estimate_s": before_s + draws * (experiment.repeat * trial_s + generation_s),
    }


def basis_of_estimate(trials: Iterable[Trial], estimator: Estimator) -> str:
    """Say what the seconds of *trials* rest on."""
    unmeasured = {trial.cell.workload.name for trial in trials if not estimator.knows(trial.cell)}
    if unmeasured:
        return f"no earlier run of {', '.join(sorted(unmeasured))} here: within a factor of two"
    run_count = estimator.run_count
    return f"from {run_count} earlier run{'s' if run_count > 1 else ''} on this machine"


def refuse_cells(
    cells: Iterable[ResolvedCell],
    find_refusals: Callable[[ClusterSpec, Mapping[str, str]], Iterable[str]],
    source: str,
    text: str = "",
) -> None:
    """
    Raise one `SpecError` with everything that *find_refusals* has against any of *cells*.

    It gets the cluster and the job's properties, with those that its workload sets.  Keys that a
    reason names are looked up in *text*, the file *source*, so that the error points at them.
    """
    counts: Counter[str] = Counter()
    for cell in cells:
        counts.update(find_refusals(cell.cell.cluster, cell.configuration))
    if not counts:
        return
    positions = places(text, source)
    wheres = {reason: place_of_reason(reason, positions, source) for reason in counts}
    message_lines = list(counts)
    if len(counts) > 1:
        message_lines = ["the cluster cannot run this grid"]
        for reason, number in counts.items():
            message_lines.append(f"  {wheres[reason]}: {reason} ({count(number, 'cell')})")
    fix = "change cluster.node or the configuration; nothing was started"
    raise SpecError("\n".join(message_lines), where=next(iter(wheres.values())), fix=fix)


def place_of_reason(reason: str, positions: Mapping[str, str], source: str) -> str:
    """Place of the key that *reason* names, by the *positions* of all keys; else the *source*."""
    # A name with a dot or an underscore is not an English word; else the end of a path of keys.
    named_keys = [key for key in positions if re.search(r"[._]", key) and key in reason]
    if named_keys:
        return positions[max(named_keys, key=len)]
    for path in re.findall(r"cluster(?:\.\w+)+", reason):
        for key in reversed(path.split(".")):
            if key in positions:
                return positions[key]
    return source


def refuse_inputs(cells: Iterable[ResolvedCell], source: str, text: str = "") -> None:
    """Raise `SpecError`, at its place in *text*, for an input that a workload cannot make."""
    cell_by_input = {(repr(cell.spec), block_bytes(cell.cell.cluster)): cell for cell in cells}
    for cell in cell_by_input.values():
        try:
            cell.plan_input()
        except SpecError as error:
            where = places(text, source).get(f"workloads.{cell.spec.name}", source)
            raise SpecError(error.what, where=where, fix=error.fix) from error
