"""
The plan: which trials there are, which of them results/ already holds, how long the rest takes.

Pure; `refuse` is given the function that knows what a cluster can hold.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean, median
from typing import Any, Literal

from harness.errors import SpecError
from harness.evaluate.cells import configured
from harness.experiment.file import places
from harness.experiment.grid import label, varying
from harness.experiment.model import Experiment
from harness.hadoop.site import block_bytes
from harness.records.trial import Cell, ClusterSpec, Trial, TrialRecord, TrialState
from harness.workloads import WORKLOADS

# The rule while nothing was measured: seen on two cores, within a factor of two.
CLUSTER_START_S = 15.0
LIMITING_S = 20.0  # more, where nodes are limited and measured first
TRIAL_S = 9.0
BYTES_PER_S = 6 * 2**20
SOME_JOBS = 5  # of a trial that takes as many as it needs

State = Literal["pending"] | TrialState


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial and its state; *estimate_s* is how long it takes, or took."""

    trial: Trial
    state: State
    label: str
    estimate_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """All trials of an experiment in their order; *estimate_s* is the time that is still needed."""

    trials: tuple[PlannedTrial, ...]
    estimate_s: float

    @property
    def pending(self) -> tuple[Trial, ...]:
        """Trials that are still to be run, in their order."""
        return tuple(p.trial for p in self.trials if p.state == "pending")


def make_plan(
    experiment: Experiment, trials: Sequence[Trial], records: Mapping[str, TrialRecord]
) -> Plan:
    """
    Compare *trials*, in their order, with the *records* that are there already.

    A trial is expected to take as long as the done trials of its cell; else as the rule says
    (`TRIAL_S` + input / `BYTES_PER_S` for each of its jobs), scaled by what the done trials say of
    the rule.  Each group of trials on one cluster adds its start and its warm-up trials.
    """
    expected = _expectation(trials, records, experiment.trial_limit_s)
    axes = varying(t.cell for t in trials)
    planned = tuple(
        PlannedTrial(t, _state(records.get(t.id)), label(t.cell, axes), expected(t.cell))
        for t in trials
    )
    return Plan(planned, _needed_s(planned, experiment.warmup))


def plan_json(plan: Plan) -> dict[str, Any]:
    """`harness plan --json`."""
    return {
        "schema_version": 1,
        "trials": [
            {
                "id": p.trial.id,
                "cell": p.trial.cell.model_dump(mode="json"),
                "cell_id": p.trial.cell.id,
                "label": p.label,
                "repetition": p.trial.repetition,
                "profiling": p.trial.profiling,
                "state": p.state,
                "estimate_s": round(p.estimate_s, 1),
            }
            for p in plan.trials
        ],
        "estimate_s": round(plan.estimate_s, 1),
    }


def refuse(
    cells: Iterable[Cell],
    refusals: Callable[[ClusterSpec, dict[str, str]], Iterable[str]],
    source: str,
    text: str = "",
) -> None:
    """
    Raise one `SpecError` with everything that *refusals* has against any of *cells*.

    *refusals* gets the cluster and the job's properties, with those that its workload sets, and
    says what cannot be held and why: Hadoop itself would wait for ever.  Keys that a reason names
    are looked up in *text*, the file called *source*, so that the error points at them.
    """
    found: dict[str, int] = {}
    for cell in cells:
        for reason in refusals(cell.cluster, configured(cell)):
            found[reason] = found.get(reason, 0) + 1
    if not found:
        return
    at = [_place(reason, source, text) for reason in found]
    lines = list(found)
    if len(found) > 1:
        each = zip(at, found.items(), strict=True)
        lines = [f"  {where}: {reason} ({count} cells)" for where, (reason, count) in each]
        lines.insert(0, "the cluster cannot hold this grid")
    raise SpecError(
        "\n".join(lines),
        where=at[0],
        fix="change cluster.node or the configuration; nothing was started",
    )


def refuse_inputs(cells: Iterable[Cell], source: str, text: str = "") -> None:
    """Raise `SpecError`, at its place in *text*, for an input that a workload cannot make."""
    seen = set[str]()
    for cell in cells:
        workload, block = cell.workload, block_bytes(cell.cluster)
        if (key := f"{workload!r} {block}") in seen:
            continue
        seen.add(key)
        try:
            WORKLOADS[workload.name].plan_input(workload, block)
        except SpecError as error:
            at = places(text, source).get(f"workloads.{workload.name}", source)
            raise SpecError(error.what, where=at, fix=error.fix) from error


def _place(reason: str, source: str, text: str) -> str:
    """Where the file says what *reason* is about: a name in it, else the end of a path of keys."""
    there = places(text, source)
    # A name with a dot or an underscore is no English word.
    named = [name for name in there if ("." in name or "_" in name) and name in reason]
    if named:
        return there[max(named, key=len)]
    paths = [path.split(".") for path in re.findall(r"cluster(?:\.\w+)+", reason)]
    keys = [key for path in paths for key in reversed(path) if key in there]
    return there[keys[0]] if keys else source


def _expectation(
    trials: Sequence[Trial], records: Mapping[str, TrialRecord], limit_s: float
) -> Callable[[Cell], float]:
    seen: dict[str, list[float]] = {}
    ratios = []
    for trial in trials:
        record = records.get(trial.id)
        if record is not None and record.state == "done":
            took = record.finished_s - record.started_s
            seen.setdefault(trial.cell.id, []).append(took)
            ratios.append(took / _rule_s(trial.cell))
    scale = median(ratios) if ratios else 1.0
    measured = {cell: fmean(times) for cell, times in seen.items()}
    return lambda cell: min(limit_s, measured.get(cell.id, scale * _rule_s(cell)))


def _rule_s(cell: Cell) -> float:
    planned = WORKLOADS[cell.workload.name].jobs(cell.workload)
    jobs = SOME_JOBS if planned is None else planned
    return jobs * (TRIAL_S + cell.workload.input_bytes / BYTES_PER_S)


def _state(record: TrialRecord | None) -> State:
    return "pending" if record is None else record.state


def _needed_s(planned: Iterable[PlannedTrial], warmup: int) -> float:
    pending = [p for p in planned if p.state == "pending"]
    total = 0.0
    for _, group in groupby(pending, key=lambda p: p.trial.cell.cluster.id):
        there = list(group)
        limiting = LIMITING_S if there[0].trial.cell.cluster.limited else 0.0
        times = [p.estimate_s for p in there]
        total += CLUSTER_START_S + limiting + warmup * times[0] + sum(times)
    return total
