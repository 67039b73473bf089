"""
Past jobs as the trials of a run: which cell each is of, which feed its profile, which are scored.

By the moments of submission the earlier jobs of a family feed its profile, and the later ones are
scored; never the other way round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from harness.base.errors import DataError
from harness.base.hadoop.constants import CHECKSUM_BYTES, LEAST_BLOCK_BYTES, TASK_MEMORY_MB
from harness.base.hadoop.values import LIMIT, MEMORY
from harness.base.records.trace import TaskKind
from harness.base.records.trial import (
    HISTORY,
    Cell,
    ClusterSpec,
    NodeSpec,
    Tracing,
    Trial,
    Versions,
    WorkloadSpec,
)
from harness.base.units import MIB, format_bytes
from harness.catalog.families import WIDE_SPREAD
from harness.catalog.histories import Histories, PastJob
from harness.clusters.workloads.base import INPUT_TOLERANCE

UNKNOWN = Versions(hadoop="unknown", java="unknown")
_MOST_NAMED = 3


class Planned(NamedTuple):
    """A *trial* of a run of past jobs, and the *job* that it is."""

    trial: Trial
    job: PastJob


class PastPlan(NamedTuple):
    """
    The *trials* of past jobs in the order of submission.

    Of the *families* each has its name and how many jobs and cells it has, for which use; *notes*
    are on them.
    """

    trials: list[Planned]
    families: list[dict[str, Any]]
    notes: list[str]


def plan_histories(
    histories: Histories,
    names: Mapping[str, str],
    share: float = 0.5,
    until_s: float | None = None,
    tracing: Literal["logs", "off"] = "off",
) -> PastPlan:
    """Plan the trials of *histories* as `plan_jobs` does; `DataError`: none can be profiled."""
    plan = plan_jobs(histories.jobs, names, share, until_s, tracing)
    if not plan.trials:
        reasons = "; ".join([*plan.notes[:_MOST_NAMED], *histories.reasons()])
        what = f"no family of jobs can be profiled: {reasons}"
        fix = "add histories of earlier jobs, or name a later moment"
        raise DataError(what, where=histories.where, fix=fix)
    return plan


def plan_jobs(
    jobs: Sequence[PastJob],
    names: Mapping[str, str],
    share: float,
    until_s: float | None,
    tracing: Literal["logs", "off"],
) -> PastPlan:
    """
    Give the trials of *jobs* in the order of submission, their families, and notes on these.

    Of each family, whose names in the run are *names*, the first *share* of its jobs feeds the
    profile, or those that were submitted before *until_s* (seconds since the epoch).  A family that
    cannot be profiled has a note alone.
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
        profiled = sum(planned.trial.profiling for planned in chosen)
        counts = {
            "jobs": len(family_jobs),
            "cells": len({planned.trial.cell.id for planned in chosen}),
            "profiled": profiled,
            "scored": len(chosen) - profiled,
        }
        families.append({"family": name, **counts})
        notes += [*family_notes(name, counts), *spread_notes(name, family_jobs, cells)]
    plan.sort(key=lambda planned: (planned.job.submit_s, planned.job.job_id))
    return PastPlan(plan, families, notes)


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


def spread_notes(name: str, jobs: Sequence[PastJob], cells: Sequence[Cell]) -> Iterator[str]:
    """Warn of cells of the family *name* whose *jobs* spread widely: they may be two programs."""
    times_by_cell = defaultdict[str, list[float]](list)
    inputs = dict[str, str]()
    for job, cell in zip(jobs, cells, strict=True):
        times_by_cell[cell.id].append(job.finish_s - job.submit_s)
        inputs[cell.id] = format_bytes(cell.workload.input_bytes)
    for cell_id, times_s in times_by_cell.items():
        least_s = min(times_s)
        most_s = max(times_s)
        if most_s > WIDE_SPREAD * least_s:
            yield (
                f"{name}, {inputs[cell_id]}: {len(times_s)} jobs alike took {least_s:.1f} to"
                f" {most_s:.1f} s, and no setting says why: a rule may divide the family (--rules)"
            )


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
            trial = Trial.of(cell, repeats[key], UNKNOWN, profiling=place < cut)
            trials.append(Planned(trial, job))
            repeats[key] += 1
    return trials
