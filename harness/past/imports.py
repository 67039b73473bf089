"""
A run made of jobs that have run before: each history becomes a trial, and models are tried on it.

Nothing is invented.  What histories do not say (a seed, a proof of the output, the machine's speed)
the run does not have, and its manifest says so.  By the moments of submission the earlier jobs of a
family feed its profile, and the later ones are scored; never the other way round.
"""

from __future__ import annotations

import math
import re
import sys

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from harness.base.documents.document import Document
from harness.base.errors import DataError, SpecError
from harness.base.hadoop.constants import CHECKSUM_BYTES, LEAST_BLOCK_BYTES, TASK_MEMORY_MB
from harness.base.records.trace import TaskKind
from harness.base.records.trial import (
    HISTORY,
    Cell,
    ClusterSpec,
    NodeSpec,
    Tracing,
    Trial,
    TrialRecord,
    Versions,
    WorkloadSpec,
)
from harness.base.units import MIB
from harness.base.version import __version__
from harness.clusters.workloads.base import INPUT_TOLERANCE
from harness.core.catalog.catalog import Catalog
from harness.core.catalog.match import LEVELS, similar
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.model import NAME, ClusterAxes, Experiment, Node, Predict, WorkloadAxes
from harness.core.run.asking import analyse, with_models
from harness.core.run.secrets import user_secrets
from harness.core.run.traces import remake_trace
from harness.core.store import Run, Store, os_error_as_machine_error
from harness.models import MODELS
from harness.observe.parsing.history import read_history
from harness.observe.storage.files import exclusive_lock, remove_tree, rename_durably, sync_tree
from harness.past.container_logs import ContainerLogs
from harness.past.histories import LIMIT, MEMORY, PastJob, family_names, read_jobs
from harness.core.evaluate.basis import Basis

# What replaces names in the bytes of a file, given all files and what stands for each job's name.
Anonymiser = Callable[[Iterable[bytes], Mapping[str, str]], Callable[[bytes], bytes]]
Planned = tuple[Trial, PastJob]

_UNKNOWN = Versions(hadoop="unknown", java="unknown")
_MOST_NAMED = 3
_MOST_ALIKE = 50  # jobs that a profile of one is made of
_QUESTION = "How far off are the models for jobs that have run before?"
_TEXT = "# No experiment was run: these are jobs that had run before, by harness import.\n"
_NOTHING_STARTED = (
    "its jobs had run before, and nothing was started: no seed chose their order, no output was"
    " proved, no speed was probed and no load was sampled"
)
_SEEN = (
    "its workers are the hosts that ran tasks, its slots the most tasks of a kind that one job of"
    " the family ran at once; start and end of tasks are fitted, for histories show neither"
)


class Imported(NamedTuple):
    """
    A *run* that was made, and why files were *left_out* of it.

    Of the *families* each has its name and how many jobs and cells it has, for which use; *notes*
    are on them.
    """

    run: Run
    families: list[dict[str, Any]]
    notes: list[str]
    left_out: dict[str, str]


def import_jobs(
    sources: Sequence[str | Path],
    target: Path,
    *,
    share: float = 0.5,
    until_s: float | None = None,
    only: Collection[str] = (),
    logs: ContainerLogs | None = None,
    command: str = "",
    anonymiser: Anonymiser | None = None,
) -> Imported:
    """
    Make a run at *target* of the jobs whose histories lie below *sources*; `DataError`: of none.

    Of each family the first *share* of its jobs feeds the profile, or those that were submitted
    before *until_s* (seconds since the epoch).  Of the jobs, *only* these ids, if any.  The logs
    of their tasks are among *logs*.
    """
    if target.exists():
        fix = "name a folder that is not there yet"
        raise DataError("there is something already", where=str(target), fix=fix)
    user_secrets()  # whose key makes equal digests of equal values
    jobs, left_out = read_jobs(sources, only)
    where = ", ".join(map(str, sources))
    reasons = [f"{Path(path).name}: {reason}" for path, reason in left_out.items()][:_MOST_NAMED]
    if not jobs:
        what = "; ".join(["there is no job history (.jhist) that can be used", *reasons])
        fix = "name a copy of the folder mapreduce.jobhistory.done-dir, configurations included"
        raise DataError(what, where=where, fix=fix)
    names = family_names(jobs)
    if anonymiser is not None:
        names = {family: f"job-{number}" for number, family in enumerate(sorted(names), 1)}
    plan, families, notes = plan_jobs(jobs, names, share, until_s, "logs" if logs else "off")
    if not plan:
        what = "no family of jobs can be profiled: " + "; ".join([*notes[:_MOST_NAMED], *reasons])
        fix = "add histories of earlier jobs, or name a later moment"
        raise DataError(what, where=where, fix=fix)
    change = change_of_names(plan, names, anonymiser)
    facts = {"command": command, "limitations": (*limitations(jobs, len(left_out)), *notes)}
    run = write_run(target, plan, change, facts, logs)
    if logs is not None:
        notes.append(run.read_manifest().limitations[-1])
        left_out |= logs.left_out
    return Imported(run, families, notes, left_out)


def change_of_names(
    plan: Sequence[Planned], names: Mapping[str, str], anonymiser: Anonymiser | None
) -> Callable[[bytes], bytes]:
    """What is done to the files of *plan*; *names* are those that jobs of each family get."""
    if anonymiser is None:
        return bytes  # the same
    files = chain.from_iterable(job.files() for _, job in plan)
    return anonymiser(files, {job.name: names[job.family] for _, job in plan})


def plan_jobs(
    jobs: Sequence[PastJob],
    names: Mapping[str, str],
    share: float,
    until_s: float | None,
    tracing: Literal["logs", "off"],
) -> tuple[list[Planned], list[dict[str, Any]], list[str]]:
    """
    Give the trials of *jobs* in the order of submission, their families, and notes on these.

    *names* are those of families in the run.  A family that cannot be profiled has a note alone.
    """
    cluster = cluster_of(jobs)
    plan = list[Planned]()
    families = []
    notes = list[str]()
    if (groups := host_groups(jobs)) > 1:
        notes.append(
            f"the hosts are {groups} groups, and no job ran on hosts of two: where these are"
            " clusters, their slots and speeds are mixed up: import the histories of each alone"
        )
    jobs_by_name = defaultdict[str, list[PastJob]](list)
    for job in jobs:
        jobs_by_name[names[job.family]].append(job)
    for name, family_jobs in jobs_by_name.items():
        try:
            cells = cells_of(name, family_jobs, cluster, tracing)
            chosen = plan_family(family_jobs, cells, share, until_s)
        except DataError as error:
            notes.append(f"{name} is left out: {error.what}")
            continue
        plan += chosen
        profiled = sum(trial.profiling for trial, _ in chosen)
        counts = {
            "jobs": len(family_jobs),
            "cells": len({trial.cell.id for trial, _ in chosen}),
            "profiled": profiled,
            "scored": len(chosen) - profiled,
        }
        families.append({"family": name, **counts})
        notes += family_notes(name, counts)
    plan.sort(key=lambda pair: (pair[1].submit_s, pair[1].job_id))
    return plan, families, notes


def family_notes(name: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Why no model is scored on a family, and how many of its jobs repeat others, by *counts*."""
    if not counts["scored"]:
        if counts["jobs"] == 1:
            reason = "it is one job"
        elif counts["cells"] == 1:
            reason = f"its {counts['jobs']} jobs never vary in size or setting"
        else:
            reason = f"its {counts['jobs']} jobs end with none that is new"
        yield f"{name}: {reason}, so no model can be scored on it; it has a profile"
    if repeated := counts["jobs"] - counts["profiled"] - counts["scored"]:
        yield f"{name}: {repeated} later jobs repeat what was profiled: not scored"


def write_run(
    target: Path,
    plan: Sequence[Planned],
    change: Callable[[bytes], bytes],
    facts: Mapping[str, Any],
    logs: ContainerLogs | None = None,
) -> Run:
    """
    Write the run of *plan*, which appears at *target* in one step.

    *change* is made to its files; *facts* are entries of its manifest.  *logs* are copied as far as
    they are there.
    """
    scratch = target.with_name(f".{target.name}.new")
    experiment = experiment_of(target.name, plan)
    lock = exclusive_lock(target.with_name(".import.lock"), f"import into {target.parent}")
    with lock, os_error_as_machine_error(target, is_long=True):
        remove_tree(scratch)  # of one that was killed
        try:
            run = Store(scratch).open_run(experiment, _TEXT)
            with run.lock():
                run.write_plan(trial for trial, _ in plan)
                python = sys.version.split()[0]
                run.update_manifest(harness=__version__, python=python, versions=_UNKNOWN, **facts)
                logged = 0
                tasks = 0
                for trial, job in plan:
                    job_logged, job_tasks = write_trial(run, trial, job, change, logs)
                    logged += job_logged
                    tasks += job_tasks
                if logs is not None and not logged:
                    what = f"none of {tasks} tasks has a log there that can be read"
                    fix = "it needs container_.../syslog below it; a server, aggregated logs"
                    raise DataError(what, where="--logs", fix=fix)
                if logs is not None:
                    limits = (
                        *run.read_manifest().limitations,
                        f"{tasks - logged} of {tasks} tasks have no log",
                    )
                    run.update_manifest(limitations=limits)
                run.finish()
            sync_tree(run.path)
            rename_durably(run.path, target)
        finally:
            remove_tree(scratch)
    return Run(target)


def write_trial(
    run: Run,
    trial: Trial,
    job: PastJob,
    change: Callable[[bytes], bytes],
    logs: ContainerLogs | None,
) -> tuple[int, int]:
    """Write *job* into *run* as a *trial*; how many of its tasks have logs, and how many it has."""
    folder = run.start_trial(trial)
    names = ("job-0-history.jhist", "job-0-conf.xml")
    files = job.files()
    for name, data in zip(names, files, strict=True):
        (folder.raw / name).write_bytes(change(data))
    logged = 0
    tasks = 0
    if logs is not None:
        trace = read_history([files[0]], job.job_id)
        tasks = len(trace.succeeded("map")) + len(trace.succeeded("reduce"))
        logged = logs.copy(trace, folder.raw / "containers")
    record = TrialRecord(
        trial=trial,
        state="done",
        versions=_UNKNOWN,
        job_ids=(job.job_id,),
        started_s=job.submit_s,
        finished_s=job.finish_s,
        input_bytes=job.input_bytes,
        num_splits=job.num_maps,
    )
    folder.commit(record)
    remake_trace(run, record)
    return logged, tasks


def cluster_of(jobs: Sequence[PastJob]) -> ClusterSpec:
    """
    The cluster of *jobs*: the hosts that ran tasks, and the most tasks that one job ran at once.

    Its blocks are as large as the largest mean split, so that a map of each job reads one.
    """
    workers = max(1, len(frozenset().union(*(job.hosts for job in jobs))))
    kinds = jobs[0].at_once
    memories_mb = [
        int(job.configuration[MEMORY.format(kind)]) for job, kind in product(jobs, kinds)
    ]
    split_bytes = max(LEAST_BLOCK_BYTES, *(-(-job.input_bytes // job.num_maps) for job in jobs))
    slots = {
        f"{kind}_slots": -(-max(1, *(job.at_once[kind] for job in jobs)) // workers)
        for kind in kinds
    }
    return ClusterSpec(
        provider=HISTORY,
        workers=workers,
        node=NodeSpec(task_memory_bytes=max(*memories_mb, TASK_MEMORY_MB) * MIB, **slots),
        site={"dfs.blocksize": str(-(-split_bytes // CHECKSUM_BYTES) * CHECKSUM_BYTES)},
    )


def host_groups(jobs: Iterable[PastJob]) -> int:
    """How many groups the hosts of *jobs* are, where no job ran on hosts of two."""
    groups = list[frozenset[str]]()
    for job in jobs:
        joined = [group for group in groups if group & job.hosts]
        apart = [group for group in groups if group not in joined]
        groups = [*apart, job.hosts.union(*joined)] if job.hosts else groups
    return len(groups)


def cells_of(
    name: str,
    jobs: Sequence[PastJob],
    cluster: ClusterSpec,
    tracing: Literal["logs", "off"] = "off",
) -> list[Cell]:
    """
    Give the cell of each of *jobs*, which are the family *name* and left *tracing*.

    Jobs with as many maps, an input that differs by 1 % at most and the same configuration are of
    one cell.  A family has as many slots as one of its jobs had tasks at once, or fewer where the
    job sets a limit itself; where every job ran all of its reduces at once, those of the cluster.
    """
    slots = family_slots(jobs)
    known_cells = defaultdict[tuple[int, tuple[tuple[str, str], ...]], list[Cell]](list)
    cells = []
    for job in jobs:
        configuration = limited_configuration(job, slots)
        cells_alike = known_cells[job.num_maps, tuple(sorted(configuration.items()))]
        for cell in cells_alike:
            if abs(job.input_bytes / cell.workload.input_bytes - 1) <= INPUT_TOLERANCE:
                break
        else:
            spec = WorkloadSpec(
                name=name, input_bytes=job.input_bytes, parameters={"maps": job.num_maps}
            )
            cell = Cell(
                cluster=cluster,
                workload=spec,
                configuration=configuration,
                tracing=Tracing(mode=tracing),
            )
            cells_alike.append(cell)
        cells.append(cell)
    return cells


def family_slots(jobs: Sequence[PastJob]) -> dict[TaskKind, int]:
    """Tasks of each kind that one of *jobs* ran at once, the most; 0: those of the cluster."""
    slots = {kind: max(job.at_once[kind] for job in jobs) for kind in jobs[0].at_once}
    reduces = (int(job.configuration.get("mapreduce.job.reduces", "1")) for job in jobs)
    if all(job.at_once["reduce"] >= number for job, number in zip(jobs, reduces, strict=True)):
        slots["reduce"] = 0
    return slots


def limited_configuration(job: PastJob, slots: Mapping[TaskKind, int]) -> dict[str, str]:
    """The configuration of *job*, whose tasks have as many *slots* or fewer, where it says so."""
    configuration = dict(job.configuration)
    for kind, slot_count in slots.items():
        job_limit = int(configuration.pop(LIMIT.format(kind), "0"))
        # 0 stands for no limit on either side
        if limit := min(job_limit or slot_count, slot_count or job_limit):
            configuration[LIMIT.format(kind)] = str(limit)
    return configuration


def plan_family(
    jobs: Sequence[PastJob], cells: Sequence[Cell], share: float, until_s: float | None
) -> list[Planned]:
    """
    Give the trials of a family, whose *jobs* are of *cells* and in the order of their submission.

    Later jobs whose cell was profiled are in neither part: such cells are never scored.  Where the
    *share* leaves none to score, fewer are profiled; a family that never varies is profiled as a
    whole.  `DataError`: nothing can be profiled.
    """
    ids = [cell.id for cell in cells]
    first = {key: place for place, key in reversed([*enumerate(ids)])}
    cut = max(1, min(max(first.values()), int(share * len(jobs))))  # behind it one is new
    if until_s is not None:
        cut = bisect_left(jobs, until_s, key=lambda job: job.submit_s)
    if cut == 0:
        raise DataError("none of its jobs ran before that moment: there is nothing to profile")
    scored = {*ids[cut:]} - {*ids[:cut]}
    if not scored and until_s is None:
        cut = len(jobs)
    repeats = Counter[str]()
    trials = []
    for place, (job, cell, key) in enumerate(zip(jobs, cells, ids, strict=True)):
        if place < cut or key in scored:
            trial = Trial.of(cell, repeats[key], _UNKNOWN, profiling=place < cut)
            trials.append((trial, job))
            repeats[key] += 1
    return trials


def experiment_of(name: str, plan: Sequence[Planned]) -> Experiment:
    """Give what stands for the experiment of a run *name* of *plan*: the values on each axis."""
    cells = [trial.cell for trial, _ in plan]
    cluster = cells[0].cluster
    node = cells[0].cluster.node.model_dump(exclude_none=True)
    specs = defaultdict[str, list[WorkloadSpec]](list)
    configuration = defaultdict[str, dict[str, None]](dict)
    for cell in cells:
        specs[cell.workload.name].append(cell.workload)
        for key, value in cell.configuration.items():
            configuration[key][value] = None
    short_name = re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:64]
    return Experiment(
        name=short_name if NAME.fullmatch(short_name) else "history",
        question=_QUESTION,
        cluster=ClusterAxes(
            provider=HISTORY,
            workers=(cluster.workers,),
            node=Node(**{key: (value,) for key, value in node.items()}),
            site={key: (value,) for key, value in cluster.site.items()},
        ),
        workloads=tuple(
            workload_axes(family, family_specs) for family, family_specs in specs.items()
        ),
        configuration={key: tuple(values) for key, values in configuration.items()},
        repeat=1 + max(trial.repetition for trial, _ in plan),
        warmup=0,
        tracing=cells[0].tracing,
        predict=Predict(models=tuple(MODELS), order="mixed"),
    )


def workload_axes(family: str, specs: Sequence[WorkloadSpec]) -> WorkloadAxes:
    """The axes of a *family* whose cells have these *specs*: each value once, in their order."""
    return WorkloadAxes(
        name=family,
        input_bytes=tuple(dict.fromkeys(spec.input_bytes for spec in specs)),
        parameters={"maps": tuple(dict.fromkeys(spec.parameters["maps"] for spec in specs))},
    )


def limitations(jobs: Sequence[PastJob], left_out: int) -> Iterator[str]:
    """Sentences on what such a run cannot show, or is distorted by."""
    yield from (_NOTHING_STARTED, _SEEN)
    ends_s = [0.0, *accumulate((job.finish_s for job in jobs), max)]
    starts_s = [*(job.submit_s for job in jobs[1:]), float("inf")]
    overlapping = sum(
        job.submit_s < end_s or start_s < job.finish_s
        for job, end_s, start_s in zip(jobs, ends_s, starts_s, strict=False)
    )
    if overlapping:
        jobs_text = f"{overlapping} of {len(jobs)} jobs"
        yield f"{jobs_text} ran beside others of the source, as no model knows"
    if repeats := sum(job.has_repeats for job in jobs):
        yield f"in {repeats} of {len(jobs)} jobs attempts failed or were killed, and count"
    if left_out:
        yield f"{left_out} histories were left out: they failed, or could not be used"


def backtest(run: Run, models: Sequence[str] = ()) -> Document:
    """
    Profile, predict, seal and score what was imported into *run*; give its report, written there.

    *models* are all, unless they are named.  Where others are sealed already, these are an analysis
    of the run.  `SpecError`: the run was measured here, and not imported; `DataError`: it has
    profiles, and no job to score.
    """
    evaluation = Evaluation.of(run)
    if not evaluation.experiment.was_imported:
        fix = f"harness import {run.path} -o RUN takes its histories alone"
        raise SpecError("this run was measured, and not imported", where=str(run.path), fix=fix)
    evaluation = replace(evaluation, experiment=with_models(evaluation.experiment, models))
    is_sealed = run.seal.exists()
    if is_sealed and {*run.read_predictions()} != {*evaluation.experiment.predict.models}:
        with analyse(run, evaluation.experiment) as (_, document):
            return document
    with run.lock():
        if not is_sealed:
            evaluation.profile()
            if all(trial.profiling for trial in evaluation.plan):
                what = "no later job is new in size or setting: no model can be scored"
                fix = f"harness tune {run.path} --workload NAME takes their profiles as they are"
                raise DataError(what, where=str(run.path), fix=fix)
            evaluation.predict()
        evaluation.score()
        return evaluation.report()[1]


def basis_of_past_job(catalog: Catalog, job_id: str) -> Basis:
    """
    What *catalog* knows of a job: its cell, and a profile of the jobs of its family most like it.

    Where its own history is of no use, the cell is that of the job most like it.  `DataError`: the
    catalog has no such job, or none of the histories can be read any more.
    """
    matches = similar(catalog, job_id, _MOST_ALIKE)
    job_ids = [job_id, *(match.job_id for match in matches if match.level == LEVELS[0])]
    places = set[Path]()
    for wanted_id in job_ids:
        path = Path(catalog.read_job(wanted_id)["source"])
        # The files of a trial are compressed: they are read by way of their run.
        is_of_trial = path.parts[-4:-3] == ("trials",)
        places.add(path.parents[3] if is_of_trial else path.parent)
    with TemporaryDirectory(prefix="harness-past-") as folder:
        target = Path(folder) / "past"
        run = import_jobs(sorted(places), target, until_s=math.inf, only=job_ids).run
        evaluation = Evaluation.of(run)
        with run.lock():
            evaluation.profile()
        cells = {
            record.job_ids[0]: evaluation.resolved_of(record) for record in evaluation.done.values()
        }
        base_id = next(wanted_id for wanted_id in job_ids if wanted_id in cells)
        base = cells[base_id]
        note = f"{evaluation.labels[base.id]}, the cell of {base_id}"
        if base_id != job_id:
            note += f", the job most like {job_id}, whose own history is of no use"
        note += f"; the profile is of {len(cells)} jobs of its family"
        return Basis(base, note, run.read_profiles()[base.spec.name], evaluation.resolved)
