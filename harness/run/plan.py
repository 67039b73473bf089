"""
The plan: which trials there are, which of them results/ already holds, how long the rest takes.

Pure; `refuse_cells` is given the function that knows what a cluster has room for.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median
from typing import Any

from harness.errors import SpecError
from harness.evaluate.model_inputs import effective_configuration, workload_of
from harness.experiment.file import places
from harness.experiment.grid import label, varying
from harness.experiment.model import Experiment
from harness.hadoop.site import block_bytes
from harness.records.trial import Cell, ClusterSpec, Trial, TrialRecord

# The rule while nothing was measured: seen on two cores, within a factor of two.
CLUSTER_START_S = 15.0
LIMITING_S = 20.0  # more, where nodes are limited and measured first
TRIAL_S = 9.0
BYTES_PER_S = 6 * 2**20
SOME_JOBS = 5  # of a trial that takes as many as it needs


def make_plan(
    experiment: Experiment, trials: Sequence[Trial], records: Mapping[str, TrialRecord]
) -> dict[str, Any]:
    """
    What `harness plan --json` prints of *trials*: each with its state among *records*, and seconds.

    A trial is expected to take as long as the done trials of its cell; else as the rule says
    (`TRIAL_S` + input / `BYTES_PER_S` for each of its jobs), scaled by what the done trials say of
    the rule.  Each group of trials on one cluster adds its start and its warm-up trials.
    """
    measured_s: dict[str, list[float]] = {}
    ratios = []
    for trial in trials:
        record = records.get(trial.id)
        if record is not None and record.state == "done":
            seconds = record.finished_s - record.started_s
            measured_s.setdefault(trial.cell.id, []).append(seconds)
            ratios.append(seconds / _rule_s(trial.cell))
    scale = median(ratios) if ratios else 1.0
    axes = varying(trial.cell for trial in trials)
    planned, pending = list[dict[str, Any]](), list[tuple[ClusterSpec, float]]()
    for trial in trials:
        record, measured = records.get(trial.id), measured_s.get(trial.cell.id)
        expected_s = fmean(measured) if measured else scale * _rule_s(trial.cell)
        planned.append(
            {
                "id": trial.id,
                "cell": trial.cell.model_dump(mode="json"),
                "cell_id": trial.cell.id,
                "label": label(trial.cell, axes),
                "repetition": trial.repetition,
                "profiling": trial.profiling,
                "state": "pending" if record is None else record.state,
                "estimate_s": min(experiment.trial_limit_s, expected_s),
            }
        )
        if record is None:
            pending.append((trial.cell.cluster, min(experiment.trial_limit_s, expected_s)))
    total_s = 0.0
    for _, group in groupby(pending, key=lambda on_cluster: on_cluster[0].id):
        clusters, estimates_s = zip(*group, strict=True)
        total_s += CLUSTER_START_S + LIMITING_S * clusters[0].limited
        total_s += experiment.warmup * estimates_s[0] + sum(estimates_s)
    return {"trials": planned, "estimate_s": total_s}


def _rule_s(cell: Cell) -> float:
    """Seconds of a trial while nothing was measured."""
    jobs = workload_of(cell).jobs(cell.workload) or SOME_JOBS
    return jobs * (TRIAL_S + cell.workload.input_bytes / BYTES_PER_S)


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
    checked = set[str]()
    for cell in cells:
        workload, block_size = cell.workload, block_bytes(cell.cluster)
        if (key := f"{workload!r} {block_size}") in checked:
            continue
        checked.add(key)
        try:
            workload_of(cell).plan_input(workload, block_size)
        except SpecError as error:
            where = places(text, source).get(f"workloads.{workload.name}", source)
            raise SpecError(error.what, where=where, fix=error.fix) from error
