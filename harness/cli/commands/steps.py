"""The steps of an experiment as commands, from plan to report; and all of them once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.documents.wording import count
from harness.cli.console.command import command
from harness.cli.console.options import (
    choice_option,
    duration_s,
    experiment_arguments,
    json_option,
    results_option,
)
from harness.cli.console.present import Note, Part, Rows, present, show

if TYPE_CHECKING:
    from harness.base.documents.document import Document
    from harness.base.records.profile import Profile
    from harness.base.records.trial import Cell
    from harness.core.run.session import Session
    from harness.core.store import Run
    from harness.scoring.over_runs import ModelOverRuns

_LONGEST_WAIT_S = 24 * 3600


def profiles_elsewhere(
    source: Run, paths: Sequence[Path], cells: Iterable[Cell]
) -> Mapping[str, Profile]:
    """Profiles of *source* for the machine of the second of two files, for sessions to call."""
    from harness.hardware.transfer import profiles_for

    return profiles_for(source, paths, cells)[0]


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what decides how trials are run."""
    new = click.option("--new", is_flag=True, help="Open a new run even if one is unfinished.")
    reuse = click.option(
        "--reuse", is_flag=True, help="Take over trials that other runs measured on this machine."
    )
    text = "Measure although the design decides nothing; the answer then counts as explored."
    anyway = click.option("--anyway", is_flag=True, help=text)
    text = "What to do when a trial fails."
    on_error = choice_option("--on-error", choices=["skip", "stop"], text=text)
    text = "How often a failed trial is run again before its failure counts."
    retries = click.option("--retries", type=click.IntRange(0, 10), default=0, help=text)
    text = "What to do with a trial during which others used the machine: repeat it at the end."
    on_disturbed = choice_option("--on-disturbed", choices=["keep", "repeat"], text=text)
    wait_quiet = click.option(
        "--wait-quiet",
        "wait_quiet_s",
        callback=_waiting_seconds,
        default="1m",
        metavar="TIME",
        help="How long to wait, over all trials, while others use the machines; 0s: not at all.",
    )
    anchor = click.option(
        "--anchor",
        "anchor_command",
        envvar="HARNESS_ANCHOR",
        callback=_whole_command,
        default="",
        metavar="COMMAND",
        help="Tell this command, such as 'harness anchor tsa URL', of the seal and of the end.",
    )
    anchor_name = click.option(
        "--anchor-name",
        envvar="HARNESS_ANCHOR_NAME",
        callback=_shown_name,
        default="",
        metavar="NAME",
        help="Who that is, for readers: 'blind, anchored by NAME'. Else as its stamp or host says.",
    )
    not_before = click.option(
        "--not-before",
        callback=_shown_nonce,
        default="",
        metavar="TEXT",
        help="What nobody knew before some moment, such as a line of today's news: for the seal.",
    )
    told = (anchor, anchor_name, not_before)
    options = (on_error, retries, on_disturbed, wait_quiet, *told, new, reuse, anyway)
    for option in reversed(options):
        function = option(function)
    return function


def _waiting_seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Seconds of a duration; an error of the command line where it is none, or below 0."""
    seconds = duration_s(text)
    if not 0 <= seconds <= _LONGEST_WAIT_S:
        raise click.BadParameter(f"{text} is no time to wait; write 0s to 24h")
    return seconds


def _whole_command(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Give the command in *text*; `SpecError` where it cannot be run, before all is measured."""
    if text:
        from harness.core.run.anchors import words_of

        words_of(text)
    return text


def _shown_name(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Give the name in *text*; `SpecError` where readers could not see who that is."""
    if text:
        from harness.core.run.anchors import require_name

        require_name(text)
    return text


def _shown_nonce(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """Give the *text* for the seal; `SpecError` where it is no line."""
    if text:
        from harness.core.run.anchors import require_nonce

        require_nonce(text)
    return text


def measure(session: Session, **options: Any) -> tuple[Run, int]:
    """Run the trials that are not done, and show how many are done and failed."""
    if options.pop("anyway", False) and session.experiment.question.is_about_pairs:
        session = replace(session, overrides=(*session.overrides, "question.anyway=true"))
    run, failed = session.measure(**options)
    done = len(run.read_plan()) - failed
    show(Note(f"run {run.path}: {count(done, 'trial')} done, {failed} failed"))
    return run, failed


@command("plan")
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
    document = session.plan()
    present(document, shown_plan(document), as_json=as_json)


def shown_plan(document: Mapping[str, Any]) -> Iterator[Part]:
    """Every trial with its state and what it is for, and how long those take that are left."""
    from harness.base.units import about

    columns = ("id", "label", "repetition", "state", "use")
    rows = [[trial[name] for name in columns] for trial in document["trials"]]
    yield Rows(columns, rows)
    left = about(document["estimate_s"])
    yield f"{count(len(rows), 'trial')}, {left} to go ({document['estimated']})"
    if "to_draw" in document:
        yield to_draw_sentence(document["to_draw"])
    if "profiling" in document:
        yield from shown_profiling(document["profiling"])
    if "decides" in document:
        yield f"What it can decide: {document['decides']['says']}."


def to_draw_sentence(document: Mapping[str, Any]) -> str:
    """Say how many cells will be drawn of how many, and how."""
    from harness.base.documents.wording import listing

    drawn = f"{document['draws']} of {document['candidates']} candidates will be drawn after"
    drawn += f" profiling, where {listing(document['models'])} disagree (a cell may be drawn twice:"
    drawn += f" {document['different']} different ones or so)"
    return f"{drawn}; the time above counts as many cells of mean length."


def shown_profiling(document: Mapping[str, Any]) -> Iterator[str]:
    """Which cells feed the profile of each workload, what they cover, and what they do not."""
    yield f"Profiling takes {100 * document['share']:.0f} % of the time:"
    for row in document["workloads"]:
        yield f"- {row['workload']}: {'; '.join(row['cells'])}"
        yield f"  covers: {', '.join(row['covers'])}"
        if row["extrapolated"]:
            cells = f"{len(row['extrapolated'])} of {count(row['scored'], 'scored cell')}"
            yield f"  extrapolated: {cells}, for want of {row['lacks']}"


@command("run")
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
    done = len(measured_run.read_plan()) - failed
    present({"run": measured_run.path, "done": done, "failed": failed}, as_json=as_json)
    if failed:
        raise SystemExit(6)


@command("all")
@experiment_arguments
@click.option(
    "--runs",
    type=click.IntRange(1, 20),
    default=1,
    help="As many runs, each in an order and with profiles of its own.",
)
@run_options
@json_option
def run_all(session: Session, runs: int, as_json: bool, **options: Any) -> None:
    """
    Run FILE to its end: measure, profile, predict, score, report.

    The same as the commands run, score and report, one after the other; where the order is not
    blind, with profile and predict after run.  Several runs (--runs) have the next seeds of the
    file's, and end with each model's error over them; interrupted, the same command goes on.

    \b
    Example:
        harness all experiments/demo.yaml
        harness all experiments/quick.yaml --set cluster.workers=2
        harness all experiments/quick.yaml --runs 3
    """
    if runs > 1:
        failed = _run_several(session, runs, options, as_json=as_json)
    else:
        measured_run, failed = measure(session, **options)
        report_file, document = _concluded(session, measured_run)
        present(document, as_json=as_json)
        show(Note(f"report: {report_file}"))
    if failed:
        raise SystemExit(6)


def _concluded(session: Session, measured_run: Run) -> tuple[Path, Document]:
    """Score a run that was measured, and write its report: the file, and what stands in it."""
    from harness.core.evaluate.flow import Evaluation

    evaluation = Evaluation.of(measured_run)
    with measured_run.lock():
        session.seal(measured_run)  # where the order is blind, measuring has done it
        evaluation.score()
        paths, document = evaluation.report()
    return paths[0], document


def _run_several(
    session: Session, run_count: int, options: Mapping[str, Any], *, as_json: bool
) -> int:
    """Make the runs that are not there yet, show what they say together, and count failures."""
    from harness.core.run.several import ended_runs, over_runs, says_over_runs, sessions_of

    for name in ("new", "reuse"):
        if options[name]:
            what = "trials of one run would stand in another" if name == "reuse" else "none goes on"
            raise click.UsageError(f"--runs and --{name} do not go together: {what}")
    sessions = sessions_of(session, run_count)
    found = ended_runs(sessions)
    failed = 0
    all_runs: list[Run] = []
    for number, (one_session, ended) in enumerate(zip(sessions, found, strict=True), 1):
        head = f"run {number} of {run_count}"
        if ended is None:
            show(Note(f"{head}: seed {one_session.experiment.seed}"))
            measured_run, failures = measure(one_session, **options)
            failed += failures
        else:
            measured_run = ended
            show(Note(f"{head}: {measured_run.path} is there"))
        all_runs.append(measured_run)
        if ended is None or not measured_run.is_scored:
            report_file, _ = _concluded(one_session, measured_run)
            show(Note(f"report: {report_file}"))
    quantity, models = over_runs([measured_run.read_scores() for measured_run in all_runs])
    says = says_over_runs(models, [measured_run.id for measured_run in all_runs])
    answer = {
        "says": says,
        "rests_on": len(all_runs),
        "runs": [measured_run.path for measured_run in all_runs],
        "quantity": quantity,
        "models": [row._asdict() for row in models],
    }
    present(answer, shown_over_runs(models, all_runs, says), as_json=as_json)
    return failed


def shown_over_runs(
    models: Sequence[ModelOverRuns], runs: Sequence[Run], says: str
) -> Iterator[Part]:
    """The error of each model by run, their mean and its interval; then what it rests on."""
    from harness.base.documents.wording import percent

    rows = []
    for row in models:
        interval = "" if row.interval is None else " to ".join(map(percent, row.interval))
        rows.append((row.model, *map(percent, row.errors), percent(row.mean), interval))
    numbers = [f"run {number}" for number in range(1, len(runs) + 1)]
    yield Rows(("model", *numbers, "mean", "95 % over runs"), rows)
    yield says
    for number, run in zip(numbers, runs, strict=True):
        yield Note(f"{number}: {run.path}")


@command("unpack")
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@results_option
@json_option
def unpack(archive: Path, results_dir: Path, as_json: bool) -> None:
    """
    Take in the run in ARCHIVE: a tar file, plain or compressed by gzip or zstd.

    Refused are links, names that lead elsewhere and whatever else is not a file of a run, and a run
    that is not as it was measured and sealed.  It appears under the folder of results in one step,
    as your own files; a run that is there already stays.  To pack one:
    tar czf run.tar.gz -C results/EXPERIMENT RUN

    \b
    Example:
        harness unpack run.tar.gz
        harness unpack run.tar.gz --results-dir elsewhere --json
    """
    from harness.core.evaluate.laws import broken_laws
    from harness.core.store.unpack import unpack as take_in

    run, has_evidence, unchecked = take_in(archive, results_dir)
    broken = [*map(str, broken_laws(run))]
    manifest = run.read_manifest()
    trials = run.trials().values()
    done = sum(record.state == "done" for record in trials)
    answer = {
        "run": run.path,
        "trials": len(trials),
        "done": done,
        "has_evidence": has_evidence,
        "unchecked": unchecked,
        "broken_laws": broken,
    }
    checked = "not checked: it has no evidence, and nothing shows whether it was changed"
    if has_evidence:
        checked = "checked: every file is as the chain and the seals have it, and they agree"
    lines = [
        f"run {run.path}: {count(len(trials), 'trial')}, {done} done",
        f"measured by harness {manifest.harness or 'unknown'}: {manifest.command}",
        checked,
    ]
    if unchecked:
        lines.append(f"not checked, as no hash is about them: {', '.join(unchecked)}")
    lines += [f"warning: the run contradicts itself: {breach}" for breach in broken]
    present(answer, lines, as_json=as_json)
