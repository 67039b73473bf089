"""
A run made of jobs that have run before: each history becomes a trial, and models are tried on it.

Nothing is invented.  What histories do not say (a seed, a proof of the output, the machine's speed)
the run does not have, and its manifest says so.
"""

from __future__ import annotations

import re
import sys

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.base.documents.document import Document
from harness.base.documents.wording import by_number, count
from harness.base.errors import DataError, SpecError
from harness.base.hadoop.properties import PARALLEL
from harness.base.records.trial import (
    HISTORY,
    TrialRecord,
    WorkloadSpec,
)
from harness.base.version import __version__
from harness.catalog.histories import PastJob, family_names, find_jobs
from harness.catalog.planning import UNKNOWN, Planned, plan_histories
from harness.catalog.sources import copies_note
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.model import NAME, ClusterAxes, Experiment, Node, Predict, WorkloadAxes
from harness.core.run.asking import analyse, with_models
from harness.core.run.secrets import user_secrets
from harness.core.store import Run, Store, os_error_as_machine_error
from harness.core.store.traces import remake_trace
from harness.models import MODELS
from harness.observe.parsing.clocks import clock_notes
from harness.observe.storage.files import exclusive_lock, remove_tree, rename_durably, sync_tree
from harness.past.container_logs import ContainerLogs

# What replaces names in the bytes of a file, given all files and what stands for each job's name.
Anonymiser = Callable[[Iterable[bytes], Mapping[str, str]], Callable[[bytes], bytes]]

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
    are on them.  *applications* are those, by kind, that are no MapReduce jobs.
    """

    run: Run
    families: list[dict[str, Any]]
    notes: list[str]
    left_out: dict[str, str]
    applications: dict[str, dict[str, Any]]


def import_jobs(
    sources: Sequence[str | Path],
    target: Path,
    *,
    share: float = 0.5,
    until_s: float | None = None,
    logs: ContainerLogs | None = None,
    rules: Mapping[str, str] | None = None,
    command: str = "",
    anonymiser: Anonymiser | None = None,
) -> Imported:
    """
    Make a run at *target* of the jobs whose histories lie below *sources*; `DataError`: of none.

    Of each family the first *share* of its jobs feeds the profile, or those that were submitted
    before *until_s* (seconds since the epoch).  The logs of their tasks are among *logs*; families
    are those of *rules*, as `read_rules` gives them, or the jobs' own.
    """
    if target.exists():
        fix = "name a folder that is not there yet"
        raise DataError("there is something already", where=str(target), fix=fix)
    user_secrets()  # whose key makes equal digests of equal values
    histories = find_jobs(sources, rules=rules)
    names = family_names(histories.jobs)
    if anonymiser is not None:
        names = {family: f"job-{number}" for number, family in enumerate(sorted(names), 1)}
    tracing: Literal["logs", "off"] = "logs" if logs else "off"
    plan, families, notes = plan_histories(histories, names, share, until_s, tracing)
    change = change_of_names(plan, names, anonymiser)
    left_out = dict(histories.left_out)
    notes += clock_notes(chain.from_iterable(job.clocks for _, job in plan), changed_name(change))
    notes += filter(None, [copies_note(histories.copies), histories.applications.sentence()])
    limits = (*limitations(histories.jobs, len(left_out)), *notes)
    run = write_run(target, plan, change, {"command": command, "limitations": limits}, logs)
    if logs is not None:
        notes += logs.notes()
        left_out |= logs.left_out
    return Imported(run, families, notes, left_out, histories.applications.counted())


def changed_name(change: Callable[[bytes], bytes]) -> Callable[[str], str]:
    """What *change* makes of a name, as of one in a file."""
    return lambda name: change(name.encode()).decode(errors="replace")


def change_of_names(
    plan: Sequence[Planned], names: Mapping[str, str], anonymiser: Anonymiser | None
) -> Callable[[bytes], bytes]:
    """What is done to the files of *plan*; *names* are those that jobs of each family get."""
    if anonymiser is None:
        return bytes  # the same
    files = chain.from_iterable(job.files() for _, job in plan)
    return anonymiser(files, {job.name: names[job.family] for _, job in plan})


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
                run.update_manifest(harness=__version__, python=python, versions=UNKNOWN, **facts)
                for planned in plan:
                    write_trial(run, planned, change, logs)
                if logs is not None:
                    add_limits_of_logs(run, logs)
                run.finish()
            sync_tree(run.path)
            rename_durably(run.path, target)
        finally:
            remove_tree(scratch)
    return Run(target)


def add_limits_of_logs(run: Run, logs: ContainerLogs) -> None:
    """Note in the manifest what the *logs* of a run lack; `DataError` where there are none."""
    if not logs.has_any:
        what = f"none of {count(logs.counts.total(), 'task')} has a log there that can be read"
        if logs.counts.total() > logs.counts["none"]:
            what += f": {'; '.join(logs.notes())}"
        fix = "it needs container_.../syslog below it, or aggregated logs; so does a server"
        raise DataError(what, where="--logs", fix=fix)
    run.update_manifest(limitations=(*run.read_manifest().limitations, *logs.notes()))


def write_trial(
    run: Run,
    planned: Planned,
    change: Callable[[bytes], bytes],
    logs: ContainerLogs | None,
) -> None:
    """Write what was *planned* into *run*, with the *logs* of its tasks."""
    trial, job = planned
    folder = run.start_trial(trial)
    names = ("job-0-history.jhist", "job-0-conf.xml")
    files = job.files()
    for name, data in zip(names, files, strict=True):
        (folder.raw / name).write_bytes(change(data))
    if logs is not None:
        logs.copy(job.trace(), folder.raw / "containers")
    record = TrialRecord(
        trial=trial,
        state="done",
        versions=UNKNOWN,
        job_ids=(job.job_id,),
        started_s=job.submit_s,
        finished_s=job.finish_s,
        input_bytes=job.input_bytes,
        num_splits=job.num_maps,
    )
    folder.commit(record)
    remake_trace(run, record)


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
        jobs_text = f"{overlapping} of {count(len(jobs), 'job')}"
        yield f"{jobs_text} ran beside others of the source, as no model knows"
    if repeats := sum(job.has_repeats for job in jobs):
        yield f"in {repeats} of {count(len(jobs), 'job')} attempts failed or were killed, and count"
    options = "mapreduce.reduce.java.opts"
    if parallel := sum(PARALLEL in job.configuration[options].split() for job in jobs):
        jobs_text = f"{parallel} of {count(len(jobs), 'job')}"
        yield (
            f"the heaps of {jobs_text} are those of the parallel collector: their options name it"
            " or show Java 8, or their configuration is of a Hadoop before 3.4, which ran on that"
        )
    if without := sum(not job.reads_files for job in jobs):
        jobs_text = f"{without} of {count(len(jobs), 'job')}"
        yield f"{jobs_text} read no files: what the maps wrote stands for the size"
    if left_out:
        histories = by_number(left_out, "history was", "histories were")
        reason = by_number(left_out, "it", "they")
        yield f"{left_out} {histories} left out: {reason} failed, or could not be used"


def backtest(run: Run, models: Sequence[str] = ()) -> Document:
    """
    Profile, predict, seal and score what was imported into *run*; give its report, written there.

    *models* are all, unless they are named.  Where others are sealed already, these are an analysis
    of the run.  `SpecError`: the run was measured here, and not imported; `DataError`: it has
    profiles, and no job to score.
    """
    evaluation = Evaluation.of(run)
    if not evaluation.experiment.was_imported:
        fix = f"harness import {run.place} -o RUN takes its histories alone"
        if run.published_level not in ("", "raw"):
            fix = f"harness score {run.place} says how far off its models are"
        raise SpecError("this run was measured, and not imported", where=str(run.path), fix=fix)
    evaluation = replace(evaluation, experiment=with_models(evaluation.experiment, models))
    is_sealed = run.seal.exists()
    if is_sealed and {*run.read_predictions()} != {*evaluation.experiment.predict.models}:
        with analyse(run, evaluation.experiment) as (_, document):
            return document
    with run.output_lock() if is_sealed else run.lock():
        if not is_sealed:
            evaluation.profile()
            if all(trial.profiling for trial in evaluation.plan):
                what = "no later job is new in size or setting: no model can be scored"
                fix = f"harness tune {run.path} --workload NAME takes their profiles as they are"
                raise DataError(what, where=str(run.path), fix=fix)
            evaluation.predict()
        evaluation.score()
        return evaluation.report()[1]
