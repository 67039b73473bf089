"""``harness trace`` and ``harness vet``: what happened inside tasks; the tracer's self-test."""

from __future__ import annotations

import gzip
import json
import shutil
import sys

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.documents.wording import count
from harness.base.errors import DataError
from harness.cli.console import completion
from harness.cli.console.command import FirstByDefault, command, group
from harness.cli.console.options import (
    json_option,
    open_evaluation,
    outputs_option,
    results_option,
)
from harness.cli.console.present import Note, Part, Rows, present, save
from harness.cli.console.present import show as show_parts
from harness.cli.console.talk import Progress

if TYPE_CHECKING:
    from harness.base.documents.document import Section
    from harness.base.records.tasks import TaskSpans
    from harness.base.records.trace import JobTrace
    from harness.core.store import Run

_WIDTH = 120  # columns where no terminal says how many it has


@group("trace", cls=FirstByDefault, subcommand_metavar="TRIAL | COMMAND [ARGS]...")
def trace() -> None:
    """
    Show what happened inside the tasks of a trial; test the tracer.

    \b
    Example:
        harness trace 3f0a
        harness trace 3f0a --task m_000003
        harness trace selftest
    """


@trace.command("show")
@click.argument("trial", shell_complete=completion.trials)
@click.option("--task", help="End of an attempt's id, such as m_000003 (default: the longest one).")
@click.option(
    "--job",
    "job_number",
    type=click.IntRange(1),
    metavar="K",
    help="Show only the K-th of several jobs.",
)
@outputs_option(
    "Write the job as a trace that Perfetto (ui.perfetto.dev) opens: .json, or .json.gz.",
    ".json",
    ".json.gz",
)
@results_option
@json_option
def show(
    trial: str,
    task: str | None,
    job_number: int | None,
    outputs: Mapping[str, Path],
    results_dir: Path,
    as_json: bool,
) -> None:
    """
    List the tasks of TRIAL, an id or its first characters, and draw one as a waterfall.

    For a trial with several jobs, all their tasks are listed unless --job selects one.  The word
    "show" is optional.

    \b
    Example:
        harness trace show 3f0a
        harness trace show 3f0a --task r_000000
        harness trace show 3f0a --job 2
        harness trace show 3f0a -o job.json.gz
    """
    from harness.core.store import Store

    run, trial_id = Store(results_dir).find_trial(trial)
    job = read_job(run, trial_id, job_number)
    attempts = {attempt.attempt_id for attempt in job.attempts}
    recordings = [*run.read_recordings(trial_id)]
    if job_number is not None:
        recordings = [recording for recording in recordings if recording.attempt_id in attempts]
    for file in outputs.values():
        save(file, partial(write_chrome, job, recordings))
        show_parts(Note(f"wrote {file}: open it at https://ui.perfetto.dev"))
    if outputs:
        present({"files": [*outputs.values()]}, as_json=as_json)
        return
    if not recordings:
        what = f"nothing was recorded in the tasks of trial {trial_id}"
        fix = "measure it with 'trace: spans' in the experiment"
        raise DataError(what, where=str(run.trial_dir(trial_id)), fix=fix)
    chosen = choose_tasks(job, recordings, task or "")
    answer = partial(tasks_document, trial_id, job, chosen)
    listed = recordings if task is None else ()
    present(answer, shown_tasks(job, listed, chosen[0]), as_json=as_json)


def read_job(run: Run, trial_id: str, job_number: int | None) -> JobTrace:
    """The job with that number of a trial; without a number all of them, joined."""
    from harness.base.records.trace import joined

    traces = run.read_trace(trial_id)
    if not traces or (job_number or 1) > len(traces):
        what = f"trial {trial_id} left the history of {count(len(traces), 'job')}"
        fix = "leave out --job for all of them; its trial.json says why there are no more"
        raise DataError(what, where=str(run.trial_dir(trial_id)), fix=fix)
    if job_number is not None:
        return traces[job_number - 1]
    if len(traces) > 1:
        show_parts(Note(f"{len(traces)} jobs, one after the other; --job K shows one of them"))
    return joined(traces)


def choose_tasks(job: JobTrace, recordings: Sequence[TaskSpans], part: str) -> list[TaskSpans]:
    """*recordings* that have *part* in their attempt's id, longest first; `DataError`: none has."""
    chosen = [recording for recording in recordings if part in recording.attempt_id]
    if not chosen:
        fix = f"write an id, or a part of it, such as {recordings[0].attempt_id}"
        raise DataError(f"no recorded attempt is called {part!a}", where=job.job_id, fix=fix)
    durations = {attempt.attempt_id: attempt.duration_s for attempt in job.attempts}
    return sorted(chosen, key=lambda recording: -durations.get(recording.attempt_id, 0.0))


def write_chrome(job: JobTrace, recordings: Sequence[TaskSpans], path: Path) -> None:
    """Write the *job* for Perfetto, compressed where the name of the file says so."""
    from harness.observe.waterfall import chrome_events

    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as stream:
        events = [*chrome_events(job, recordings)]
        json.dump({"displayTimeUnit": "ms", "traceEvents": events}, stream)


def tasks_document(trial_id: str, job: JobTrace, recordings: Sequence[TaskSpans]) -> dict[str, Any]:
    """What programs are told of recorded tasks; the outcome of each is that of its attempt."""
    states = {attempt.attempt_id: attempt.state for attempt in job.attempts}
    tasks = [
        {
            **asdict(recording),
            "spans": [span._asdict() for span in recording.spans],
            "sampled": [*recording.loop.sampled],
            "outcome": states.get(recording.attempt_id),
        }
        for recording in recordings
    ]
    return {"trial": trial_id, "job": job.job_id, "tasks": tasks}


def shown_tasks(job: JobTrace, listed: Sequence[TaskSpans], longest: TaskSpans) -> Iterator[Part]:
    """A list of the tasks that are to be *listed*, if any, and the *longest* as a waterfall."""
    from harness.observe.waterfall import render_task, render_tasks

    if listed:
        yield render_tasks(job, listed)
    attempts = {attempt.attempt_id: attempt for attempt in job.attempts}
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    drawn = render_task(longest, attempts.get(longest.attempt_id), width)
    yield drawn.removesuffix("\n")


@trace.command("selftest")
@json_option
def selftest(as_json: bool) -> None:
    """
    Verify on real tasks that the tracer records what happened.

    Runs small jobs on the cluster that is up, or on one of its own.  Exit status 1: a check failed.

    \b
    Example:
        harness trace selftest
        harness trace selftest --json
    """
    from harness.clusters.hadoop_home.home import HadoopHome
    from harness.tracer.selftest import SMALL, cluster_for, run_selftest

    progress = Progress("jobs")
    home = HadoopHome.find()
    with cluster_for(SMALL, home, progress) as cluster:
        checks = run_selftest(cluster, progress)
    failed = [check for check in checks if not check.ok]
    columns = ("job", "name", "expected", "found", "ok")
    rows = [(check.job, check.name, check.expected, check.observed, check.ok) for check in checks]
    answer = {"ok": not failed, "checks": Rows(columns, rows).records()}
    shown = Rows(columns, [(*texts, "ok" if ok else "WRONG") for *texts, ok in rows])
    present(answer, [shown], as_json=as_json)
    if failed:
        found = (
            f"{check.job}, {check.name}: expected {check.expected}; {check.observed}"
            for check in failed
        )
        show_parts(Note("\n".join([f"{len(failed)} of {len(checks)} checks failed", *found])))
        sys.exit(1)


@command("vet")
@click.argument("target", metavar="TRIAL|RUN", shell_complete=completion.trials)
@results_option
@json_option
def vet(target: str, results_dir: Path, as_json: bool) -> None:
    """
    Measure the overhead of finished tasks from the times of their records.

    TRIAL and RUN are ids, or their first characters; RUN may be a folder or an experiment file.
    Times of records exist if the experiment had 'trace: units'.  Vet is their sum over the ideal
    sum: 1 means no overhead.

    \b
    Example:
        harness vet 3f0a
        harness vet experiments/quick.yaml
        harness vet 3f0a --json
    """
    from harness.core.evaluate.flow import Evaluation
    from harness.core.reports.data import ReportData
    from harness.core.reports.sections import vet as vet_section
    from harness.core.store import Store

    store = Store(results_dir)
    trial_id = None
    if target and any(stored_id.startswith(target) for stored_id in store.trial_ids()):
        run, trial_id = store.find_trial(target)
        evaluation = Evaluation.of(run)
    else:
        evaluation = open_evaluation(target, results_dir, asks=True)
    trials = [trial for key, trial in evaluation.done.items() if trial_id in (None, key)]
    data = ReportData(
        experiment=evaluation.experiment,
        cells={key: (cell, evaluation.labels[key]) for key, cell in evaluation.cells.items()},
        trials=trials,
        vet=evaluation.vet(trials),
    )
    if not data.vet.jobs:
        if any(trial.trial.cell.tracing.mode == "units" for trial in trials):
            evaluation.run.require_published("raw")  # at no other level are units published
        what = "no finished task has times of its records"
        fix = "measure it with 'trace: units'"
        raise DataError(what, where=target, fix=f"{fix} in the experiment")
    section = vet_section.section(data)
    values: Mapping[str, Any] = section.values()["vet"]
    present(dict(values), shown_section(section), as_json=as_json)


def shown_section(section: Section) -> Iterator[Part]:
    """All tables of a *section* with their captions, and its texts beside them."""
    from harness.base.documents.document import Table, Text

    for block in section.shown():
        if isinstance(block, Table):
            yield Rows(block.columns, block.texts(), title=block.caption)
        elif isinstance(block, Text):
            yield Note(block.text)
