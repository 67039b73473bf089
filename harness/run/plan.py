"""
The plan: which trials there are, which of them results/ already holds, how long the rest takes.

Pure; `refuse_cells` is given the function that knows what a cluster has room for.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from harness.errors import SpecError
from harness.evaluate.model_inputs import effective_configuration, workload_of
from harness.experiment.file import places
from harness.experiment.grid import label, varying
from harness.experiment.model import Experiment
from harness.hadoop.site import block_bytes
from harness.records.trial import Cell, ClusterSpec, Trial, TrialRecord
from harness.run.estimate import LIMITING_S, Estimator, input_of


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

    Each group of trials on one cluster adds its start and its warm-up trials, each input that is
    new there its generation.  *is_finished*: all is measured anew.
    """
    axes = varying(trial.cell for trial in trials)
    planned = list[dict[str, Any]]()
    expected = dict[str, tuple[float, float]]()
    total_s = 0.0
    for _, group in groupby(trials, key=lambda trial: trial.cell.cluster.id):
        inputs = set[str]()
        for trial in group:
            cell = trial.cell
            cell_id = trial.cell.id
            record = records.get(trial.id)
            if cell_id not in expected:
                work_s = min(experiment.trial_limit_s, estimator.seconds(cell))
                generation_s = estimator.seconds(cell, is_generation=True)
                expected[cell_id] = work_s + estimator.gap_s, generation_s
            expected_s, generation_s = expected[cell_id]
            if record is None or is_finished:
                if not inputs:
                    total_s += estimator.start_s + LIMITING_S * cell.cluster.limited
                    total_s += experiment.warmup * expected_s
                expected_s += 0.0 if input_of(cell) in inputs else generation_s
                inputs.add(input_of(cell))
                total_s += expected_s
            planned.append(
                {
                    "id": trial.id,
                    "cell": cell.model_dump(mode="json"),
                    "cell_id": cell_id,
                    "label": label(cell, axes),
                    "repetition": trial.repetition,
                    "profiling": trial.profiling,
                    "state": "pending" if record is None else record.state,
                    "estimate_s": expected_s,
                }
            )
    others = {trial.cell.workload.name for trial in trials if not estimator.knows(trial.cell)}
    count = estimator.run_count
    basis = f"from {count} earlier run{'s' if count > 1 else ''} on this machine"
    if others:
        basis = f"no earlier run of {', '.join(sorted(others))} here: within a factor of two"
    total_s += estimator.end_s if total_s else 0.0
    return {"trials": planned, "estimate_s": total_s, "estimated": basis}


def refuse_cells(
    cells: Iterable[Cell],
    find_refusals: Callable[[ClusterSpec, dict[str, str]], Iterable[str]],
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
        counts.update(find_refusals(cell.cluster, effective_configuration(cell)))
    if not counts:
        return
    positions = places(text, source)
    wheres = {}
    for reason in counts:
        # A name with a dot or an underscore is not an English word; else the end of a path of keys.
        named_keys = [key for key in positions if re.search(r"[._]", key) and key in reason]
        paths = [path.split(".") for path in re.findall(r"cluster(?:\.\w+)+", reason)]
        file_keys = sorted(named_keys, key=len, reverse=True)
        file_keys += [key for path in paths for key in reversed(path) if key in positions]
        wheres[reason] = positions[file_keys[0]] if file_keys else source
    message_lines = list(counts)
    if len(counts) > 1:
        message_lines = ["the cluster cannot run this grid"]
        message_lines += [f"  {wheres[why]}: {why} ({n} cells)" for why, n in counts.items()]
    fix = "change cluster.node or the configuration; nothing was started"
    raise SpecError("\n".join(message_lines), where=next(iter(wheres.values())), fix=fix)


def refuse_inputs(cells: Iterable[Cell], source: str, text: str = "") -> None:
    """Raise `SpecError`, at its place in *text*, for an input that a workload cannot make."""
    one_of_each = {(repr(cell.workload), block_bytes(cell.cluster)): cell for cell in cells}
    for (_, block_size), cell in one_of_each.items():
        try:
            workload_of(cell).plan_input(cell.workload, block_size)
        except SpecError as error:
            where = places(text, source).get(f"workloads.{cell.workload.name}", source)
            raise SpecError(error.what, where=where, fix=error.fix) from error
