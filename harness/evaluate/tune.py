"""Settings for a job that a run knows, priced by models; and what choosing by a model is worth."""

from __future__ import annotations

import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from harness.errors import DataError, HarnessError, SpecError
from harness.evaluate.ask import Basis
from harness.evaluate.flow import Evaluation
from harness.evaluate.predict import predict_cells
from harness.evaluate.resolved import resolve_cell
from harness.hadoop.properties import JOB_PROPERTIES
from harness.hadoop.site import block_bytes
from harness.hadoop.slots import refusals
from harness.models import MODELS
from harness.records.prediction import JobConfig, Prediction
from harness.records.trial import Cell, ClusterSpec
from harness.tuning.learned import Learned
from harness.tuning.optimizers import PTC_WAVE, Choice, choose
from harness.tuning.settings import Job, properties_of
from harness.units import MIB
from harness.workloads.resolved import ResolvedCell

AT_RANDOM = "at random"
NEAR = 0.05
BLOCKS = tuple(mib * MIB for mib in (32, 64, 128, 256))  # bytes, that a cluster may have


class Proposal(NamedTuple):
    """
    A *choice* as a cell, *resolved*, and what the judging model says of it: job time and interval.

    *saved* is the share of the base's job time that it saves, with the lowest and highest of the
    refits of the profile; `None` where a time is not known.
    """

    choice: Choice
    resolved: ResolvedCell
    prediction: Prediction
    saved: float | None
    saved_ends: tuple[float, float] | None

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self.resolved.cell


def job_of(basis: Basis) -> Job:
    """The base cell of *basis* as a job to tune."""
    properties = dict(basis.resolved.client_configuration)
    configuration, cluster, job_input = basis.resolved.model_inputs
    files = basis.resolved.plan_input().sizes
    both = {job.configuration.map_output_compressed for job in basis.profile.jobs}
    return Job(
        configuration, cluster, job_input, tuple(files), properties, can_compress=len(both) > 1
    )


def nearest_model(basis: Basis) -> str:
    """
    The model with the smallest error of this workload's jobs in the run, else `whatif-mr2`.

    What is fitted to whole jobs knows of no setting, and cannot judge.
    """
    known = {
        name: error
        for name, error in basis.errors.items()
        if name in MODELS and MODELS[name].required != {"jobs"}
    }
    return min(known, key=lambda name: (known[name], name), default="whatif-mr2")


def proposals(
    basis: Basis,
    optimizers: Sequence[str],
    models: Sequence[str],
    judge: str,
    learned: Mapping[str, Learned] | None = None,
    **of_search: int,
) -> tuple[list[Proposal], list[str]]:
    """
    What each optimizer chooses by each model that it can use, by the *judge* the best first.

    And why some do not choose; where none does, the error of the last one.  What was *learned* of a
    model corrects it where choices are made, and not the judge's answers.  *of_search* are its
    `evaluations` and its `seed`.  `DataError` where the *judge* has no answer for the base.
    """
    profiles = {basis.profile.workload: basis.profile}
    (base,) = predict_cells(judge, [basis.resolved], profiles, basis.profiled)
    if base.job_s is None:
        what = f"{judge} cannot judge: the profile lacks {', '.join(base.not_applicable)}"
        raise DataError(what, where=basis.profile.workload, fix="choose another: --judge MODEL")
    of_ptc = [name for name in models if name.startswith("ptc")] or [PTC_WAVE]
    able = {"search": models, "mrtuner": of_ptc}
    pairs = [
        (optimizer, model) for optimizer in optimizers for model in able.get(optimizer, [judge])
    ]
    job = replace(job_of(basis), learned=learned or {})
    choices = list[Choice]()
    refused = list[str]()
    for optimizer, model in pairs:
        try:
            choices.append(choose(optimizer, basis.profile, job, model, **of_search))
        except HarnessError as error:
            if (optimizer, model) == pairs[-1] and not choices:
                raise
            refused.append(f"{optimizer} by {model}: {error.what}")
    properties = basis.base.configuration
    cells = [
        basis.resolved.configured(properties | properties_of(choice.values)) for choice in choices
    ]
    answers = predict_cells(judge, cells, profiles, basis.profiled)
    made = [
        Proposal(choice, cell, answer, *_saving(base, answer))
        for choice, cell, answer in zip(choices, cells, answers, strict=True)
    ]
    return sorted(made, key=lambda each: each.prediction.job_s or math.inf), refused


def _saving(base: Prediction, tuned: Prediction) -> tuple[float | None, tuple[float, float] | None]:
    """Share of the job time that is saved, and its lowest and highest by refits of the profile."""
    if not base.job_s or tuned.job_s is None:
        return None, None
    pairs = zip(base.refits["job_s"], tuned.refits["job_s"], strict=True)
    shares = [1 - new_s / old_s for old_s, new_s in pairs if old_s and new_s]
    return 1 - tuned.job_s / base.job_s, (min(shares), max(shares)) if shares else None


class ClusterPlan(NamedTuple):
    """A *cluster* for a mix of jobs: seconds of each, tuned for it, and their weighted sum."""

    cluster: ClusterSpec
    job_s: dict[str, float]
    total_s: float


def cluster_plans(
    bases: Mapping[str, Basis],
    weights: Mapping[str, float],
    judge: str,
    *,
    cores: int,
    memory: int,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[ClusterPlan]:
    """
    Slots, memory of a task and block size for the jobs of *bases*, the shortest mix first.

    A node has so many *cores*, which no kind of task has more slots than, and bytes of *memory* for
    all tasks at once.  Each job is tuned on each by MRTuner's factors, or by the rules where these
    are better; what has no answer for a job is left out.  *report* gets how many clusters of all
    are priced.  `SpecError` for an imported run.
    """
    first = next(iter(bases.values())).base.cluster
    plans = list[ClusterPlan]()
    if first.was_imported:
        what = "of a cluster that histories tell of, no slots are known but those that jobs used"
        raise SpecError(what, where="tune cluster", fix="name a run that was measured")
    own = {block_bytes(basis.base.cluster) for basis in bases.values()}
    sizes = [*product(range(1, cores + 1), range(1, cores + 1), sorted({*own, *BLOCKS}))]
    for place, (maps, reduces, block) in enumerate(sizes):
        report(place, len(sizes))
        task = memory // (maps + reduces) // MIB * MIB
        slots = {"map_slots": maps, "reduce_slots": reduces, "task_memory_bytes": task}
        site = first.site | {"dfs.blocksize": str(block)}
        cluster = first.model_copy(
            update={"node": first.node.model_copy(update=slots), "site": site}
        )
        job_s = dict[str, float]()
        for name, basis in bases.items():
            cell = resolve_cell(basis.base.model_copy(update={"cluster": cluster}))
            if refusals(cluster, cell.configuration, sets_site=False):
                break
            with suppress(HarnessError):
                made, _ = proposals(
                    basis._replace(resolved=cell), ["mrtuner", "rules"], [PTC_WAVE], judge
                )
                job_s[name] = made[0].prediction.job_s or math.nan
        total_s = sum(weights.get(name, 1.0) * job_s.get(name, math.nan) for name in bases)
        if math.isfinite(total_s):
            plans.append(ClusterPlan(cluster, job_s, total_s))
    return sorted(plans, key=lambda plan: plan.total_s)


def regrets(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """
    What each model's choice among the scored cells of one input is worth, by the clock.

    A model chooses among the cells that it answers; the best one and the default are those of all.
    Of cells that it predicts alike it may choose any: all is a mean over them, and the last row,
    `AT_RANDOM`, is of who knows nothing.  `regret` is by how much the chosen cell takes longer than
    the one measured to be fastest, `from_default` by how much less than the cell nearest to
    Hadoop's defaults (the mean of several), `curse` by how much it was predicted longer (below 0:
    shorter) than it took, `ranks` the rank correlation of predicted and measured times, `noise` the
    floors of both cells together, `measured` how many cells, the shortest predicted one first, must
    be measured until one is within `NEAR` of the best.
    """
    from pandas import DataFrame

    scores = (vars(score) for score in evaluation.run.read_scores().scores)
    frame = DataFrame(row for row in scores if (row["quantity"], row["speed"]) == ("job_s", "raw"))
    for of_input, rows in frame.groupby("input") if len(frame) else ():
        predicted = rows.pivot_table(index="cell", columns="model", values="predicted_s")
        if len(predicted) < 2:
            continue
        cells = rows.groupby("cell").first()  # as they were measured, whoever predicted them
        measured_s = cells["measured_s"]
        floors = cells["floor"].astype(float).fillna(0.0)
        best = measured_s.idxmin()
        apart = {cell: _from_defaults(evaluation.resolved[cell]) for cell in cells.index}
        defaults = [cell for cell in cells.index if apart[cell] == min(apart.values())]
        is_near = measured_s <= (1 + NEAR) * measured_s[best]
        for model, predicted_s in predicted.assign(**{AT_RANDOM: 0.0}).items():
            both = DataFrame({"predicted": predicted_s, "measured": measured_s})
            ranks = both.corr("spearman").loc["predicted", "measured"]
            chosen = predicted_s.index[predicted_s == predicted_s.min()]
            chosen_s = measured_s[chosen].mean()
            # Cells without an answer come last, and those alike in any order.
            order_s = predicted_s.fillna(math.inf)
            near_s = order_s[is_near].min()
            is_alike = order_s == near_s
            yield {
                "input": of_input,
                "model": model,
                "cells": int(predicted_s.count()),
                "of": len(cells),
                "chosen": evaluation.labels[chosen[0]] if len(chosen) == 1 else "",
                "best": evaluation.labels[best],
                "regret": chosen_s / measured_s[best] - 1,
                "noise": math.hypot(floors[chosen].mean(), floors[best]),
                "from_default": 1 - chosen_s / measured_s[defaults].mean(),
                "curse": None
                if model == AT_RANDOM
                else (predicted_s / measured_s)[chosen].mean() - 1,
                "ranks": None if math.isnan(ranks) else ranks,
                "measured": (order_s < near_s).sum()
                + (is_alike.sum() + 1) / ((is_alike & is_near).sum() + 1),
            }


def _from_defaults(cell: ResolvedCell) -> tuple[int, float, int]:
    """
    How far the settings of *cell* that models read are from Hadoop's defaults.

    How many differ, then by what ratios; of those alike, the one with fewer splits is nearer.
    """
    configuration, _, job_input = cell.model_inputs
    pairs = [(getattr(configuration, name), getattr(JobConfig(), name)) for name in JOB_PROPERTIES]
    ratios = (abs(math.log(own / default)) for own, default in pairs if own > 0 < default)
    return sum(own != default for own, default in pairs), math.fsum(ratios), job_input.num_splits


def mean_regret(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean regret of each model over all inputs, the smallest first."""
    from pandas import DataFrame

    means: dict[str, float] = DataFrame(rows).groupby("model")["regret"].mean().to_dict()
    return dict(sorted(means.items(), key=lambda pair: pair[1]))
