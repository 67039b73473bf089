"""The steps of an experiment as commands, from plan to report; and all of them once more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.console import Progress, print_json, show_table, show_text

if TYPE_CHECKING:
    from harness.run.session import Session
    from harness.store import Run

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_MOST_DIFFERENCES = 20  # shown to people; --json has all
_results_folder = partial(
    click.option,
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    envvar="HARNESS_RESULTS_DIR",
    help="Folder of all results.",
)
results_option = _results_folder("--results-dir")


def experiment_arguments(function: Callable[..., None]) -> Callable[..., None]:
    """Add FILE, --results-dir and --set to a command, which is given the session of the file."""

    @click.argument("file", type=click.Path(path_type=Path))
    @results_option
    @click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="A.B=C",
        help="Override one value of the file; repeatable.",
        shell_complete=completion.overrides,
    )
    @wraps(function)
    def command(file: Path, results_dir: Path, overrides: tuple[str, ...], **options: Any) -> None:
        function(open_session(file, results_dir, overrides), **options)

    return command


def run_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what decides how trials are run."""
    new = click.option("--new", is_flag=True, help="Open a new run even if one is unfinished.")
    on_error = click.option(
        "--on-error",
        type=click.Choice(["skip", "stop"]),
        default="skip",
        show_default=True,
        help="What to do when a trial fails.",
    )
    retries = click.option(
        "--retries",
        type=click.IntRange(0, 10),
        default=0,
        show_default=True,
        help="How often a failed trial is run again before its failure counts.",
    )
    on_disturbed = click.option(
        "--on-disturbed",
        type=click.Choice(["repeat", "keep"]),
        default="keep",
        show_default=True,
        help="What to do with a trial during which others used the machine: repeat it at the end.",
    )
    return on_error(retries(on_disturbed(new(function))))


def open_session(file: Path, results_dir: Path, overrides: tuple[str, ...]) -> Session:
    """Open the session of an experiment file; `SpecError` where the file cannot be read."""
    from harness.run.session import Session, read_experiment_file

    return Session(read_experiment_file(file), str(file), results_dir, overrides, Progress())


def measure(session: Session, **options: Any) -> tuple[Run, int]:
    """Run the trials that are not done, and show how many are done and failed."""
    run, failed = session.measure(**options)
    show_text(f"run {run.path}: {len(session.trials) - failed} trials done, {failed} failed")
    return run, failed


def show_plan(session: Session, *, as_json: bool) -> None:
    """Print the plan of *session* as JSON or as a table."""
    from harness.units import format_duration

    plan = session.plan()
    if as_json:
        print_json(plan)
        return
    trials = plan["trials"]
    rows = []
    for trial in trials:
        use = "profile" if trial["profiling"] else "score"
        rows.append((trial["id"], trial["label"], trial["repetition"], use, trial["state"]))
    show_table(("trial", "cell", "repetition", "use", "state"), rows)
    click.echo(f"{len(trials)} trials, about {format_duration(plan['estimate_s'])} to go")


@click.command("plan")
@experiment_arguments
@json_option
def plan(session: Session, as_json: bool) -> None:
    """
    List every trial of FILE, done ones marked, with a time estimate; start nothing.

    \b
    Example:
        harness plan experiments/quick.yaml
        harness plan experiments/quick.yaml --set repeat=1 --json
    """
    show_plan(session, as_json=as_json)


@click.command("run")
@experiment_arguments
@run_options
@json_option
def run(session: Session, as_json: bool, **options: Any) -> None:
    """
    Measure the trials of FILE that are not done yet, on a cluster of its own.

    Continues the newest unfinished run of the experiment, or opens one. A run can be interrupted
    at any moment: the next call resumes it.

    \b
    Example:
        harness run experiments/quick.yaml --retries 1
    """
    measured_run, failed = measure(session, **options)
    if as_json:
        done = len(session.trials) - failed
        print_json({"run": measured_run.path, "done": done, "failed": failed})
    if failed:
        raise SystemExit(6)


@click.command("all")
@experiment_arguments
@run_options
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@json_option
def run_all(session: Session, dry_run: bool, as_json: bool, **options: Any) -> None:
    """
    Run FILE to its end: measure, profile, predict, score, report.

    The same as the commands run, score and report, one after the other; where the order is not
    blind, with profile and predict after run.

    \b
    Example:
        harness all experiments/demo.yaml
        harness all experiments/quick.yaml --set cluster.workers=2 --dry-run
    """
    from harness.reports import REPORTS

    if dry_run:
        show_plan(session, as_json=as_json)
        return
    measured_run, failed = measure(session, **options)
    with session.locked_evaluation(measured_run) as evaluation:
        if not session.experiment.predict.is_blind:  # else measuring has done it, in between
            evaluation.profile()
            evaluation.predict()
        evaluation.score()
        paths, document = evaluation.report()
    click.echo(REPORTS["json" if as_json else "terminal"].render(document))
    show_text(f"report: {paths[0]}")
    if failed:
        raise SystemExit(6)


@click.command("collect")
@experiment_arguments
@json_option
def collect(session: Session, as_json: bool) -> None:
    """
    Reproduce the trace tables of the newest run of FILE from its raw logs.

    \b
    Example:
        harness collect experiments/quick.yaml
    """
    count = session.collect()
    show_text(f"trace tables of {count} trials made")
    if as_json:
        print_json({"trials": count})


@click.command("profile")
@experiment_arguments
@json_option
def profile(session: Session, as_json: bool) -> None:
    """
    Fit one profile per workload on the profiling trials of the newest run of FILE.

    \b
    Example:
        harness profile experiments/quick.yaml
    """
    with session.locked_evaluation() as evaluation:
        profiles = evaluation.profile()
    if as_json:
        print_json({"profiles": [*profiles.values()]})
        return
    rows = []
    for workload, fitted in profiles.items():
        for name, statistic in {**fitted.statistics, **fitted.costs, **fitted.frame}.items():
            source = statistic.source
            if statistic.group:
                source = f"assumed: its share of {len(statistic.group) + 1} costs"
            value, spread = f"{statistic.value:.4g}", f"{statistic.spread:.2g}"
            rows.append((workload, name, value, spread, statistic.count, source))
    show_table(("workload", "statistic", "value", "spread", "count", "source"), rows)
    for workload, fitted in profiles.items():
        for group in fitted.groups:
            click.echo(
                f"{workload}: one sum stands for {', '.join(group.names)}."
                " The profiling cells cannot distinguish them: how it is shared is assumed.\n"
            )


@click.command("predict")
@experiment_arguments
@json_option
def predict(session: Session, as_json: bool) -> None:
    """
    Predict every scored cell of the newest run of FILE with every model, and seal the predictions.

    \b
    Example:
        harness predict experiments/quick.yaml --json
    """
    from harness.experiment.grid import label, varying

    with session.locked_evaluation() as evaluation:
        predictions = evaluation.predict()
    if as_json:
        print_json({"predictions": predictions})
        return
    axes = varying(evaluation.cells.values())
    labels = {cell_id: label(cell, axes) for cell_id, cell in evaluation.cells.items()}
    rows = []
    for prediction in predictions:
        seconds = (
            *(prediction.body_s, prediction.job_s, prediction.published_s),
            *(prediction.map_task_s, prediction.reduce_task_s),
        )
        texts = ("not applicable" if value is None else f"{value:.2f}" for value in seconds)
        rows.append((labels[prediction.cell], prediction.model, *texts))
    columns = ("body, s", "job, s", "as published, s", "map task, s", "reduce task, s")
    show_table(("cell", "model", *columns), rows)


@click.command("score")
@experiment_arguments
@click.option(
    "--strict", is_flag=True, help="Take the first seal alone; refuse a run that is not blind."
)
@json_option
def score(session: Session, strict: bool, as_json: bool) -> None:
    """
    Score the sealed predictions of the newest run of FILE, each beside the noise of its cell.

    What was changed, removed or added since it was measured or sealed is named: exit status 7.

    \b
    Example:
        harness score experiments/quick.yaml
        harness score experiments/quick.yaml --strict
    """
    from harness.reports import REPORTS
    from harness.reports.sections import make_document

    with session.locked_evaluation() as evaluation:
        scores = evaluation.score(strict=strict)
    if not evaluation.has_evidence:
        show_text("this run has no evidence: an earlier version measured it, which hashed no files")
    if as_json:
        print_json(scores.model_dump(mode="json"))
        return
    click.echo(REPORTS["terminal"].render(make_document(evaluation.report_data())))


@click.command("report")
@experiment_arguments
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the files there; nothing is written into the run.",
)
@json_option
def report(session: Session, into: Path | None, as_json: bool) -> None:
    """
    Write report.html, report.md and report.json of the newest run of FILE.

    \b
    Example:
        harness report experiments/quick.yaml
        harness report experiments/quick.yaml --into /tmp/report --json
    """
    with nullcontext(session.evaluation()) if into else session.locked_evaluation() as evaluation:
        paths, _ = evaluation.report(into)
    if as_json:
        print_json({"files": paths})
        return
    for path in paths:
        click.echo(path)


@click.command("reproduce")
@click.argument("run_path", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "given",
    type=click.Choice(["raw", "trace", "profiles", "predictions"]),
    default="raw",
    show_default=True,
    help="What is taken as it is stored; all that follows is made again.",
)
@json_option
def reproduce(run_path: Path, given: str, as_json: bool) -> int:
    """
    Make the results of RUN, the folder of a run, again, and compare them with what is stored.

    The present code makes traces, profiles, predictions and scores in a scratch folder; RUN stays
    as it is.  Needs neither Hadoop nor Java.  Exit status 1: something differs; 7: the run cannot
    be read, or was tampered with.

    \b
    Example:
        harness reproduce results/quick/20261121T032309Z-4f26
        harness reproduce results/quick/20261121T032309Z-4f26 --from profiles --json
    """
    from harness.run.reproduce import reproduce as reproduce_stages
    from harness.store import Run

    with TemporaryDirectory(prefix="harness-reproduce-") as folder:
        stages = list(reproduce_stages(Run(run_path), Path(folder), given))
    differs = [difference for _, differences in stages for difference in differences]
    if as_json:
        documents = [
            {"stage": stage, "equal": not several, "differs": [each._asdict() for each in several]}
            for stage, several in stages
        ]
        print_json({"stages": documents})
        return int(bool(differs))
    for stage, several in stages:
        click.echo(f"{stage}: {len(several)} values differ" if several else f"{stage}: equal")
    if differs:
        columns = ("model", "name", "stored", "made again", "relative difference")
        show_table(columns, differs[:_MOST_DIFFERENCES])
    return int(bool(differs))


@click.command("unpack")
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@_results_folder("--into", metavar="FOLDER")
@json_option
def unpack(archive: Path, into: Path, as_json: bool) -> None:
    """
    Take in the run in ARCHIVE: a tar file, plain or compressed by gzip or zstd.

    Refused are links, names that lead elsewhere and whatever else is not a file of a run, and a run
    that is not as it was measured and sealed.  It appears under the folder of results in one step,
    as your own files; a run that is there already stays.  To pack one:
    tar czf run.tar.gz -C results/EXPERIMENT RUN

    \b
    Example:
        harness unpack run.tar.gz
        harness unpack run.tar.gz --into elsewhere --json
    """
    from harness.store.unpack import unpack as take_in
    from harness.text import printable

    run, has_evidence, unchecked = take_in(archive, into)
    manifest, trials = run.read_manifest(), run.trials().values()
    done = sum(record.state == "done" for record in trials)
    if as_json:
        document = {"run": run.path, "trials": len(trials), "done": done}
        print_json({**document, "has_evidence": has_evidence, "unchecked": unchecked})
        return
    click.echo(f"run {run.path}: {len(trials)} trials, {done} done")
    click.echo(
        printable(f"measured by harness {manifest.harness or 'unknown'}: {manifest.command}")
    )
    if has_evidence:
        click.echo("checked: every file is as the chain and the seals have it, and they agree")
    else:
        click.echo("not checked: it has no evidence, and nothing shows whether it was changed")
    if unchecked:
        click.echo(f"not checked, as no hash is about them: {', '.join(unchecked)}")
