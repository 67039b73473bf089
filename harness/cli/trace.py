"""``harness trace`` and ``harness vet``: what happened inside tasks; the tracer's self-test."""

from __future__ import annotations

import gzip
import json
import shutil
import sys

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from harness.cli import completion
from harness.cli.console import Progress, print_json, show_table, show_text
from harness.cli.steps import FirstByDefault, file_option, json_option, results_option
from harness.errors import DataError

_WIDTH = 120  # columns where no terminal says how many it has


@click.group("trace", cls=FirstByDefault, subcommand_metavar="TRIAL | COMMAND [ARGS]...")
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
@file_option(
    "--chrome",
    metavar="FILE",
    help="Write the job as a trace that Perfetto (ui.perfetto.dev) opens; .gz compresses it.",
)
@results_option
@json_option
def show(
    trial: str,
    task: str | None,
    job_number: int | None,
    chrome: Path | None,
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
        harness trace show 3f0a --chrome job.json.gz
    """
    from harness.records.trace import joined
    from harness.reports.waterfall import chrome_events, render_task, render_tasks
    from harness.store import Store, os_error_as_machine_error

    run, trial_id = Store(results_dir).find_trial(trial)
    traces = run.read_trace(trial_id)
    if not traces or (job_number or 1) > len(traces):
        what = f"trial {trial_id} left the history of {len(traces)} jobs"
        fix = "leave out --job for all of them; its trial.json says why there are no more"
        raise DataError(what, where=str(run.trial_dir(trial_id)), fix=fix)
    if job_number is None and len(traces) > 1:
        show_text(f"{len(traces)} jobs, one after the other; --job K shows one of them")
    job = joined(traces) if job_number is None else traces[job_number - 1]
    attempts = {attempt.attempt_id: attempt for attempt in job.attempts}
    recordings = [
        recording
        for recording in run.read_recordings(trial_id)
        if job_number is None or recording.attempt_id in attempts
    ]
    if chrome is not None:
        opener: Any = gzip.open if chrome.suffix == ".gz" else open
        with os_error_as_machine_error(chrome), opener(chrome, "wt", encoding="utf-8") as stream:
            events = [*chrome_events(job, recordings)]
            json.dump({"displayTimeUnit": "ms", "traceEvents": events}, stream)
        show_text(f"wrote {chrome}: open it at https://ui.perfetto.dev")
        return
    if not recordings:
        what = f"nothing was recorded in the tasks of trial {trial_id}"
        fix = "measure it with 'trace: spans' in the experiment"
        raise DataError(what, where=str(run.trial_dir(trial_id)), fix=fix)
    chosen = [recording for recording in recordings if (task or "") in recording.attempt_id]
    if not chosen:
        fix = f"write an id, or a part of it, such as {recordings[0].attempt_id}"
        raise DataError(f"no recorded attempt is called {task!a}", where=job.job_id, fix=fix)
    durations = {key: attempt.duration_s for key, attempt in attempts.items()}
    chosen.sort(key=lambda recording: -durations.get(recording.attempt_id, 0.0))
    if as_json:
        tasks = [
            {
                **asdict(recording),
                "spans": [span._asdict() for span in recording.spans],
                "sampled": [*recording.loop.sampled],
                "outcome": getattr(attempts.get(recording.attempt_id), "state", None),
            }
            for recording in chosen
        ]
        print_json({"trial": trial_id, "job": job.job_id, "tasks": tasks})
        return
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    if task is None:
        click.echo(render_tasks(job, recordings))
    longest = chosen[0]
    click.echo(render_task(longest, attempts.get(longest.attempt_id), width), nl=False)


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
    from harness.hadoop_home.home import HadoopHome
    from harness.tracer.selftest import SMALL, cluster_for, run_selftest

    progress = Progress("jobs")
    home = HadoopHome.find()
    with cluster_for(SMALL, home, progress) as cluster:
        checks = run_selftest(cluster, progress)
    failed = [check for check in checks if not check.ok]
    columns = ("job", "name", "expected", "found", "ok")
    rows = [(check.job, check.name, check.expected, check.observed, check.ok) for check in checks]
    if as_json:
        documents = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"ok": not failed, "checks": documents})
    else:
        show_table(columns, [(*texts, "ok" if ok else "WRONG") for *texts, ok in rows])
    if failed:
        what = (f"{one.job}, {one.name}: expected {one.expected}; {one.observed}" for one in failed)
        show_text("\n".join([f"{len(failed)} of {len(checks)} checks failed", *what]))
        sys.exit(1)


@click.command("vet")
@click.argument("target", metavar="TRIAL|RUN", shell_complete=completion.trials)
@results_option
@json_option
def vet(target: str, results_dir: Path, as_json: bool) -> None:
    """
    Measure the overhead of finished tasks from the times of their records.

    TRIAL and RUN are ids, or their first characters; RUN may be a folder.  Times of records exist
    if the experiment had 'trace: units'.  Vet is their sum over the ideal sum: 1 means no overhead.

    \b
    Example:
        harness vet 3f0a
        harness vet 3f0a --json
    """
    from harness.evaluate.flow import Evaluation
    from harness.reports.data import ReportData
    from harness.reports.document import Table, Text
    from harness.reports.sections import vet as vet_section
    from harness.store import Store

    store = Store(results_dir)
    trial_id = None
    if target and any(known.startswith(target) for known in store.trial_ids()):
        run, trial_id = store.find_trial(target)
    else:
        run = store.find(target)
    evaluation = Evaluation.of(run)
    trials = [trial for key, trial in evaluation.done.items() if trial_id in (None, key)]
    data = ReportData(
        experiment=evaluation.experiment,
        cells={key: (cell, evaluation.labels[key]) for key, cell in evaluation.cells.items()},
        trials=trials,
        vet=evaluation.vet(trials),
    )
    if not data.vet.jobs:
        what = "no finished task has times of its records"
        fix = "measure it with 'trace: units'"
        raise DataError(what, where=target, fix=f"{fix} in the experiment")
    section = vet_section.section(data)
    if as_json:
        print_json(dict(section.values()["vet"]))
        return
    for block in section.shown():
        if isinstance(block, Table):
            show_table(block.columns, block.texts(), title=block.caption)
        elif isinstance(block, Text):
            show_text(block.text)
