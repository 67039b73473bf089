"""``harness trace``: what happened inside the tasks of a trial, and whether that is true."""

from __future__ import annotations

import gzip
import json
import shutil
import sys

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.console import Progress, print_json, table, talk
from harness.cli.experiment import results_option
from harness.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.records.spans import TaskSpans
    from harness.records.trace import JobTrace
    from harness.store import Run

_WIDTH = 120  # columns where no terminal says how many it has


class _Traces(click.Group):
    """A trial where no command is named."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group("trace", cls=_Traces, subcommand_metavar="TRIAL | COMMAND [ARGS]...")
def command() -> None:
    """
    Show what happened inside the tasks of a trial; test the tracer.

    \b
    Example:
        harness trace 3f0a
        harness trace 3f0a --task m_000003
        harness trace selftest
    """


@command.command("show")
@click.argument("trial", shell_complete=completion.trials)
@click.option("--task", help="End of an attempt's id, such as m_000003 (default: the longest).")
@click.option(
    "--job", "number", type=click.IntRange(1), metavar="K", help="Of several jobs the K-th alone."
)
@click.option(
    "--chrome",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the job as a trace that Perfetto (ui.perfetto.dev) opens; .gz compresses it.",
)
@results_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def show(
    trial: str,
    task: str | None,
    number: int | None,
    chrome: Path | None,
    results_dir: Path,
    as_json: bool,
) -> None:
    """
    List the tasks of TRIAL, an id or its begin, and draw one as a waterfall.

    Of a trial with several jobs these are the tasks of all, unless --job names one.  The word
    "show" may be left out.

    \b
    Example:
        harness trace show 3f0a
        harness trace show 3f0a --task r_000000
        harness trace show 3f0a --job 2
        harness trace show 3f0a --chrome job.json.gz
    """
    from harness.store import Store

    run, trial_id = Store(results_dir).find_trial(trial)
    job = _job(run, trial_id, number)
    mine = {a.attempt_id for a in job.attempts}
    recorded = [t for t in run.read_recordings(trial_id) if number is None or t.attempt_id in mine]
    if chrome is not None:
        _write_chrome(chrome, job, recorded)
        talk(f"wrote {chrome}: open it at https://ui.perfetto.dev")
        return
    if not recorded:
        raise DataError(
            f"nothing was recorded in the tasks of trial {trial_id}",
            where=str(run.trial_dir(trial_id)),
            fix="measure it with 'trace: spans' in the experiment",
        )
    chosen = _chosen(job, recorded, task)
    if as_json:
        states = {a.attempt_id: a.state for a in job.attempts}
        tasks = [{**_document(t), "outcome": states.get(t.attempt_id)} for t in chosen]
        print_json({"trial": trial_id, "job": job.job_id, "tasks": tasks})
        return
    _show(job, recorded, chosen[0], whole=task is None)


@command.command("selftest")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def selftest(as_json: bool) -> None:
    """
    Prove on real tasks that the tracer tells the truth.

    Runs small jobs on the cluster that is up, or on one of its own.  Exit status 1: a check failed.

    \b
    Example:
        harness trace selftest
        harness trace selftest --json
    """
    from harness.hadoop_home.home import HadoopHome
    from harness.tracer.selftest import SMALL, cluster_for, run_selftest

    progress, home = Progress("jobs"), HadoopHome.find()
    with cluster_for(SMALL, home, progress) as cluster:
        checks = run_selftest(cluster, progress)
    failed = sum(not check.ok for check in checks)
    if as_json:
        documents = [
            {
                "job": check.job,
                "name": check.name,
                "expected": check.expected,
                "found": check.observed,
                "ok": check.ok,
            }
            for check in checks
        ]
        print_json({"ok": not failed, "checks": documents})
    else:
        rows = [
            ("ok" if check.ok else "WRONG", check.job, check.name, check.expected, check.observed)
            for check in checks
        ]
        table(("", "job", "check", "expected", "found"), rows)
    if failed:
        talk(f"{failed} of {len(checks)} checks failed")
        sys.exit(1)


def _job(run: Run, trial_id: str, number: int | None) -> JobTrace:
    """Trace of the *number*-th job of a trial, from 1; without a number, of all its jobs."""
    from harness.records.trace import joined

    traces = run.read_trace(trial_id)
    if not traces:
        raise DataError(
            f"trial {trial_id} left no history of a job",
            where=str(run.trial_dir(trial_id)),
            fix="read why it failed in its trial.json",
        )
    if number is None:
        if len(traces) > 1:
            talk(f"{len(traces)} jobs, one after the other; --job K shows one of them")
        return joined(traces)
    if number > len(traces):
        raise DataError(
            f"trial {trial_id} has no job {number}: its jobs are 1 to {len(traces)}",
            where=str(run.trial_dir(trial_id)),
            fix=f"write --job {len(traces)}, or leave it out for all",
        )
    return traces[number - 1]


def _chosen(job: JobTrace, recorded: list[TaskSpans], task: str | None) -> list[TaskSpans]:
    """Recordings asked for, the longest attempt first."""
    took = {a.attempt_id: a.duration_s for a in job.attempts}
    chosen = [t for t in recorded if task is None or task in t.attempt_id]
    if not chosen:
        raise DataError(
            f"no recorded attempt is called {task!a}",
            where=job.job_id,
            fix=f"write an id, or a part of it, such as {recorded[0].attempt_id}",
        )
    return sorted(chosen, key=lambda t: -took.get(t.attempt_id, 0.0))


def _show(job: JobTrace, recorded: list[TaskSpans], chosen: TaskSpans, *, whole: bool) -> None:
    from harness.reports.waterfall import render_task, render_tasks

    attempt = next((a for a in job.attempts if a.attempt_id == chosen.attempt_id), None)
    width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    if whole:
        click.echo(render_tasks(job, recorded))
    click.echo(render_task(chosen, attempt, width), nl=False)


def _document(task: TaskSpans) -> dict[str, Any]:
    """Recording as JSON; what is sampled is named."""
    from dataclasses import asdict

    spans = [span._asdict() for span in task.spans]
    return {**asdict(task), "spans": spans, "sampled": [*task.loop.sampled]}


def _write_chrome(file: Path, job: JobTrace, recorded: list[TaskSpans]) -> None:
    from harness.reports.chrome import chrome_events

    opener: Any = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "wt", encoding="utf-8") as out:
            out.write('{"displayTimeUnit":"ms","traceEvents":[\n')
            out.writelines(_separated(chrome_events(job, recorded)))
            out.write("\n]}\n")
    except OSError as error:
        raise DataError(
            f"the file cannot be written: {error.strerror}",
            where=str(file),
            fix="name a file in a folder where you may write",
        ) from error


def _separated(events: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for number, event in enumerate(events):
        yield (",\n" if number else "") + json.dumps(event)
