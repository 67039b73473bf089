"""Settings for a job that a run knows, priced by models."""

from __future__ import annotations

import math

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from harness.base.documents.wording import by_number, count, percent, seconds
from harness.base.errors import DataError, HarnessError, SpecError
from harness.base.hadoop.site import block_bytes
from harness.base.hadoop.slots import refusals
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.trial import Cell, ClusterSpec
from harness.base.units import MIB, format_bytes
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.basis import Basis
from harness.core.evaluate.judge import Judge
from harness.core.evaluate.predict import predict_cells
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment.file import KnownNames
from harness.models import MODELS, reads_settings
from harness.tuning.ask import (
    SPLIT_SIZE,
    never_profiled,
    profiled_ends,
    questions,
)
from harness.tuning.learned import Learned
from harness.tuning.limits import deciding_limits, decisions, lifted
from harness.tuning.optimizers import PTC_WAVE, Choice, choose
from harness.tuning.settings import SPLIT, Job, properties_of

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

    def profiled(self, profile: Profile) -> dict[str, str]:
        """By property, of those of its settings that no job of *profile* had, what the jobs had."""
        ends = profiled_ends(profile, self.resolved)
        texts = dict[str, str]()
        for name, value in self.choice.values.items():
            (property_name,) = properties_of({name: value})
            number_name = SPLIT_SIZE if name == SPLIT else property_name
            if number_name in ends:
                texts[property_name] = ends[number_name]
        return texts

    def document(self, profile: Profile, judge: Judge) -> dict[str, Any]:
        """The proposal as JSON has it, with what no job of *profile* had, and its *judge*'s say."""
        choice = self.choice
        prediction = self.prediction
        return vars(choice) | {
            "properties": properties_of(choice.values),
            "within_error": judge.is_within(self.saved),
            "profiled": self.profiled(profile),
            "own_job_s": choice.job_s if math.isfinite(choice.job_s) else None,
            "job_s": prediction.job_s,
            "intervals": prediction.intervals.get("job_s", {}),
            "saved": self.saved,
            "saved_ends": self.saved_ends,
            "not_applicable": prediction.not_applicable,
            "never_profiled": never_profiled(profile, self.resolved),
        }


def job_of(basis: Basis) -> Job:
    """The base cell of *basis* as a job to tune."""
    properties = dict(basis.resolved.client_configuration)
    configuration, cluster, job_input = basis.resolved.model_inputs
    files = basis.resolved.plan_input().sizes
    switches = {job.configuration.map_output_compressed for job in basis.profile.jobs}
    return Job(
        configuration, cluster, job_input, tuple(files), properties, can_compress=len(switches) > 1
    )


def says(best: Proposal, basis: Basis, judge: Judge) -> str:
    """What the *best* proposal comes to in one sentence, and how far off its *judge* is."""
    choice = best.choice
    if (best.saved or 0.0) <= 0:
        text = f"by {judge.model} nothing is faster than the job's own settings"
        return f"{text}; {judge.clause}"
    gain = percent(best.saved, signed=True)
    job_s = seconds(best.prediction.job_s)
    text = f"with what {choice.optimizer} chose the job takes {job_s} by {judge.model},"
    text += f" {percent(best.saved)} less than with its own settings; {judge.clause}"
    if judge.is_within(best.saved):
        text += f": {gain} may be none"
    profiled = best.profiled(basis.profile)
    if profiled:
        verb = by_number(len(profiled), "was", "were")
        text += f"; {len(profiled)} of its {count(len(choice.values), 'setting')} {verb}"
        text += " never profiled"
    return text


def limits_of(basis: Basis, judge: str) -> dict[str, Any]:
    """
    What decides how many tasks of the base run at once; without its own limits, its seconds.

    *judge* prices both; `None` where no limit of the job decides.
    """
    job_limits = deciding_limits(basis.resolved)
    without_s = None
    change = None
    if job_limits:
        profiles = {basis.profile.workload: basis.profile}
        cells = [basis.resolved, lifted(basis.resolved)]
        own, unlimited = predict_cells(judge, cells, profiles, basis.profiled)
        without_s = unlimited.job_s
        if own.job_s and without_s is not None:
            change = without_s / own.job_s - 1
    return {
        "decides": [decision.document() for decision in decisions(basis.resolved)],
        "job_limit": "; ".join(decision.text for decision in job_limits),
        "without_limits_s": without_s,
        "without_limits": change,
    }


def changed_basis(basis: Basis, settings: Sequence[str], names: KnownNames) -> Basis:
    """*basis* with the cell that *settings* make of its base, as `harness ask` takes them."""
    base = questions(basis.resolved, settings, (), names)[-1].cell
    return basis._replace(resolved=base, note=f"{basis.note}, with {', '.join(settings)}")


def nearest_model(basis: Basis) -> str:
    """
    The model with the smallest error of this workload's jobs in the run, else `whatif-mr2`.

    What is fitted to whole jobs knows of no setting, and cannot judge.
    """
    errors = {
        name: judge.error
        for name, judge in basis.judges.items()
        if name in MODELS and reads_settings(name) and judge.error is not None
    }
    return min(errors, key=lambda name: (errors[name], name), default="whatif-mr2")


def proposals(
    basis: Basis,
    optimizers: Sequence[str],
    models: Sequence[str],
    judge: str,
    learned: Mapping[str, Learned] | None = None,
    **search_options: int,
) -> tuple[list[Proposal], list[str]]:
    """
    What each optimizer chooses by each model that it can use, by the *judge* the best first.

    Beside them is why some do not choose; where none does, the error of the last one is raised.
    What was *learned* of a model corrects it where choices are made, and not the judge's answers.
    *search_options* are `evaluations` and `seed`.  `DataError` where the *judge* has no answer for
    the base.
    """
    profiles = {basis.profile.workload: basis.profile}
    (base,) = predict_cells(judge, [basis.resolved], profiles, basis.profiled)
    if base.job_s is None:
        what = f"{judge} cannot judge: the profile lacks {', '.join(base.not_applicable)}"
        raise DataError(what, where=basis.profile.workload, fix="choose another: --judge MODEL")
    pairs = _optimizers_with_models(optimizers, models, judge)
    job = replace(job_of(basis), learned=learned or {})
    choices = list[Choice]()
    refused = list[str]()
    for optimizer, model in pairs:
        try:
            choices.append(choose(optimizer, basis.profile, job, model, **search_options))
        except HarnessError as error:
            if (optimizer, model) == pairs[-1] and not choices:
                raise
            refused.append(f"{optimizer} by {model}: {error.what}")
    proposed = judged(choices, basis, judge, base)
    return sorted(proposed, key=lambda proposal: proposal.prediction.job_s or math.inf), refused


def judged(
    choices: Sequence[Choice], basis: Basis, judge: str, base: Prediction
) -> Iterator[Proposal]:
    """Yield each of *choices* as a cell, with what the *judge* says of it beside the *base*."""
    profiles = {basis.profile.workload: basis.profile}
    properties = basis.base.configuration
    cells = [
        basis.resolved.configured(properties | properties_of(choice.values)) for choice in choices
    ]
    answers = predict_cells(judge, cells, profiles, basis.profiled)
    for choice, cell, answer in zip(choices, cells, answers, strict=True):
        yield Proposal(choice, cell, answer, *_saving(base, answer))


def _optimizers_with_models(
    optimizers: Sequence[str], models: Sequence[str], judge: str
) -> list[tuple[str, str]]:
    """Each optimizer with each of *models* that it can use; the rules are priced by the *judge*."""
    ptc_models = [name for name in models if name.startswith("ptc")] or [PTC_WAVE]
    usable_models = {"search": models, "mrtuner": ptc_models}
    pairs = []
    for optimizer in optimizers:
        pairs += [(optimizer, model) for model in usable_models.get(optimizer, [judge])]
    return pairs


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

    def document(self) -> dict[str, Any]:
        """The plan as JSON has it; settings are written as in an experiment file."""
        node = self.cluster.node
        return {
            "map_slots": str(node.map_slots),
            "reduce_slots": str(node.reduce_slots),
            "task_memory": f"{node.task_memory_bytes / MIB:.15g} MiB",
            "dfs.blocksize": f"{block_bytes(self.cluster) / MIB:.15g} MiB",
            "job_s": self.job_s,
            "total_s": self.total_s,
        }


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
    base_cluster = next(iter(bases.values())).base.cluster
    plans = list[ClusterPlan]()
    if base_cluster.was_imported:
        what = "of a cluster that histories tell of, no slots are known but those that jobs used"
        raise SpecError(what, where="tune cluster", fix="name a run that was measured")
    blocks = {*BLOCKS, *(block_bytes(basis.base.cluster) for basis in bases.values())}
    grid = [*product(range(1, cores + 1), range(1, cores + 1), sorted(blocks))]
    for done, (map_slots, reduce_slots, block) in enumerate(grid):
        report(done, len(grid))
        task_bytes = memory // (map_slots + reduce_slots) // MIB * MIB
        slots = {
            "map_slots": map_slots,
            "reduce_slots": reduce_slots,
            "task_memory_bytes": task_bytes,
        }
        node = base_cluster.node.model_copy(update=slots)
        site = base_cluster.site | {"dfs.blocksize": str(block)}
        cluster = base_cluster.model_copy(update={"node": node, "site": site})
        job_s = _tuned_seconds(bases, cluster, judge)
        total_s = sum(weights.get(name, 1.0) * job_s.get(name, math.nan) for name in bases)
        if math.isfinite(total_s):
            plans.append(ClusterPlan(cluster, job_s, total_s))
    return sorted(plans, key=lambda plan: plan.total_s)


def present_seconds(
    bases: Mapping[str, Basis], weights: Mapping[str, float], judge: str
) -> float | None:
    """Seconds of the mix of *bases* on the cluster that it has, tuned alike; `None`: not known."""
    cluster = next(iter(bases.values())).base.cluster
    job_s = _tuned_seconds(bases, cluster, judge)
    total_s = sum(weights.get(name, 1.0) * job_s.get(name, math.nan) for name in bases)
    return total_s if math.isfinite(total_s) else None


def mix_says(plan: ClusterPlan, present_s: float | None, judge: Judge) -> str:
    """
    What the best *plan* comes to in one sentence, and how far off its *judge* is.

    It is set beside *present_s*, seconds of the mix on the cluster that it has.
    """
    node = plan.cluster.node
    slots = f"{count(node.map_slots, 'map slot')} and {count(node.reduce_slots, 'reduce slot')}"
    blocks = f"blocks of {format_bytes(block_bytes(plan.cluster))}"
    text = f"with {slots} a node and {blocks} the mix takes {seconds(plan.total_s)}"
    text += f" by {judge.model}"
    saved = 1 - plan.total_s / present_s if present_s else None
    if saved is not None:
        less = f"{percent(saved)} less than on its present cluster" if saved > 0 else "no less"
        text += f", {less}, with jobs tuned for both"
    text += f"; {judge.clause}"
    if saved and judge.is_within(saved):
        text += f": {percent(saved, signed=True)} may be none"
    return text


def mix_limits(
    bases: Mapping[str, Basis], weights: Mapping[str, float], judge: str, plan: ClusterPlan
) -> dict[str, Any]:
    """
    Which limits of the jobs of *bases* decide with *plan*; without them, seconds of the mix.

    `None` where none decides.
    """
    job_limits = list[str]()
    unlimited = dict[str, Basis]()
    for name, basis in bases.items():
        cell = resolve_cell(basis.base.model_copy(update={"cluster": plan.cluster}))
        job_limits += [f"{name}: {decision.text}" for decision in deciding_limits(cell)]
        unlimited[name] = basis._replace(resolved=lifted(basis.resolved))
    without_s = None
    if job_limits:
        job_s = _tuned_seconds(unlimited, plan.cluster, judge)
        without_s = sum(weights.get(name, 1.0) * job_s.get(name, math.nan) for name in bases)
    is_known = without_s is not None and math.isfinite(without_s)
    return {"job_limits": job_limits, "without_limits_s": without_s if is_known else None}


def _tuned_seconds(
    bases: Mapping[str, Basis], cluster: ClusterSpec, judge: str
) -> dict[str, float]:
    """Seconds of each job, tuned for *cluster*, up to the first that it has no room for."""
    job_s = dict[str, float]()
    for name, basis in bases.items():
        cell = resolve_cell(basis.base.model_copy(update={"cluster": cluster}))
        if refusals(cluster, cell.configuration, sets_site=False):
            break
        with suppress(HarnessError):
            tuned_basis = basis._replace(resolved=cell)
            proposed, _ = proposals(tuned_basis, ["mrtuner", "rules"], [PTC_WAVE], judge)
            job_s[name] = proposed[0].prediction.job_s or math.nan
    return job_s
