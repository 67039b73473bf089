"""Commands that read a run: made again, predicted, scored, reported."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from harness.base.documents.wording import by_number, count
from harness.base.text import excerpt
from harness.cli.commands.table import TableFile, shown_table
from harness.cli.console.command import command
from harness.cli.console.options import (
    choice_option,
    folder_option,
    json_option,
    open_evaluation,
    open_session,
    run_argument,
    source_argument,
)
from harness.cli.console.present import Note, Part, Rows, present, require_answer

if TYPE_CHECKING:
    from harness.base.records.profile import Profile
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Run
    from harness.core.store.compare import Difference
    from harness.publish.compare import Replication

Scorable: TypeAlias = "Evaluation | TableFile"
_MOST_DIFFERENCES = 20  # shown to people; --json has all


@command("collect")
@run_argument
@json_option
def collect(evaluation: Evaluation, as_json: bool) -> None:
    """
    Make the trace tables of RUN again from its raw logs.

    \b
    Example:
        harness collect experiments/quick.yaml
    """
    from harness.core.store.traces import remake_trace

    run = evaluation.run.measured
    with run.lock():
        trials = sum(remake_trace(run, record) for record in run.trials().values())
    parts = [Note(f"trace tables of {count(trials, 'trial')} made")]
    present({"run": run.path, "trials": trials}, parts, as_json=as_json)


@command("profile")
@run_argument
@json_option
def profile(evaluation: Evaluation, as_json: bool) -> None:
    """
    Fit one profile per workload on the profiling trials of RUN; show those that are sealed already.

    \b
    Example:
        harness profile experiments/quick.yaml
        harness profile 20261121T0323
    """
    if evaluation.run.seal.exists():
        profiles = evaluation.run.read_profiles()
    else:
        with evaluation.run.lock():
            profiles = evaluation.profile()
    present({"profiles": [*profiles.values()]}, [profile_table(profiles)], as_json=as_json)


def profile_table(profiles: Mapping[str, Profile]) -> Rows:
    """Every statistic and cost of each workload's profile."""
    rows = []
    for workload, fitted in profiles.items():
        for name, statistic in {**fitted.statistics, **fitted.costs, **fitted.frame}.items():
            source = statistic.source
            if statistic.group:
                source = f"assumed: a share of one sum with {', '.join(statistic.group)}"
            value = f"{statistic.value:.4g}"
            spread = f"{statistic.spread:.2g}"
            rows.append((workload, name, value, spread, statistic.count, source))
    return Rows(("workload", "statistic", "value", "spread", "count", "source"), rows)


question_option = click.option(
    "--question",
    metavar="QUESTION",
    help="What is asked, such as '{nearer: [prophet, whatif]}' (default: what the run asks).",
)


def asked_of(evaluation: Evaluation, text: str) -> Evaluation:
    """*evaluation* with the question in *text* in the place of its own."""
    from harness.core.experiment.question import read_question, with_question
    from harness.scoring.claims import models_by_paper

    models = evaluation.experiment.predict.models
    asked = read_question(text, models, models_by_paper())
    return replace(evaluation, experiment=with_question(evaluation.experiment, asked))


def open_scored(name: str, results_dir: Path, overrides: tuple[str, ...] = ()) -> Scorable:
    """Open the run *name*, or the table that a name with the ending .csv means."""
    if name.lower().endswith(".csv"):
        return TableFile(Path(name))
    return open_evaluation(name, results_dir, overrides)


@command("score")
@partial(run_argument, open_source=open_scored)
@click.option(
    "--strict", is_flag=True, help="Refuse a run that is not blind, or contradicts itself."
)
@question_option
@json_option
def score(evaluation: Scorable, strict: bool, question: str | None, as_json: bool) -> None:
    """
    Score the sealed predictions of RUN, or a table of anybody's, beside the noise of each cell.

    What was changed, removed or added since it was measured or sealed is named: exit status 7.
    That is also the status where no model has an answer for a cell that was measured.  Records that
    contradict each other (docs/results.md, laws) are told.  A question that was sealed with the
    predictions stays; of a run without one another may be asked.

    \b
    Example:
        harness score experiments/quick.yaml
        harness score 20261121T0323 --strict
        harness score bundle --question '{nearer: [prophet, whatif]}'
        harness score times.csv     # columns: cell, repeat, measured, and one for each model
    """
    from harness.core.evaluate.laws import broken_laws
    from harness.core.reports.sections import make_document

    if isinstance(evaluation, TableFile):
        if strict:
            raise click.UsageError("--strict is about seals, and a table has none")
        table_scores = evaluation.score(question)
        shown = [*shown_table(table_scores)]
        present(partial(table_scores.model_dump, mode="json"), shown, as_json=as_json)
        return
    if question is not None:
        evaluation = asked_of(evaluation, question)
    with evaluation.run.output_lock():
        scores = evaluation.score(strict=strict)
    document = make_document(evaluation.report_data())
    parts: list[Part] = [document, *kept_elsewhere(evaluation.run)]
    if not strict:
        broken = broken_laws(evaluation.run.measured)
        parts += [Note(f"warning: the run contradicts itself: {breach}") for breach in broken]
    present(partial(scores.model_dump, mode="json"), parts, as_json=as_json)
    require_answer(document, evaluation.run.path)


@command("report")
@run_argument
@folder_option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    help="Write the files there; nothing is written into the run.",
)
@json_option
def report(evaluation: Evaluation, folder: Path | None, as_json: bool) -> None:
    """
    Write report.html, report.md and report.json of RUN.

    \b
    Example:
        harness report experiments/quick.yaml
        harness report 20261121T0323 -o /tmp/report --json
    """
    with nullcontext() if folder else evaluation.run.output_lock():
        paths, _ = evaluation.report(folder)
    notes = () if folder else kept_elsewhere(evaluation.run)
    present({"files": paths}, [*paths, *notes], as_json=as_json)


def kept_elsewhere(run: Run) -> Iterator[Note]:
    """Say where what is made of *run* is kept, where that is not in the run, and of what it is."""
    from harness.core.store.readings import read_source

    source = read_source(run.measured.output)
    if source is not None:
        origin = f"bundle {source.sha256}" if source.is_in_bundle else "the run"
        yield Note(f"{origin} stays as it is; what was made of it is in {run.output}")


class Bundle(NamedTuple):
    """A bundle, packed or in a *folder*, and where and how it may be measured again."""

    folder: Path
    results_dir: Path
    overrides: tuple[str, ...]


def open_result(
    name: str, results_dir: Path, overrides: tuple[str, ...] = ()
) -> Evaluation | Bundle:
    """Open the run *name*, or give the bundle of that name, packed or not."""
    from harness.core.store.packed import is_bundle

    if is_bundle(Path(name)):
        return Bundle(Path(name), results_dir, overrides)
    return open_evaluation(name, results_dir, overrides)


@command("reproduce")
@partial(source_argument, metavar="RUN|BUNDLE", open_source=open_result)
@choice_option(
    "--given",
    choices=["raw", "trace", "profiles", "predictions"],
    text="What is taken as it is stored; all that follows is made again.",
)
@click.option("--measure", "is_measured", is_flag=True, help="Measure a BUNDLE's experiment again.")
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="PROPERTY",
    help="With --measure: a property of the BUNDLE that may load code, or more; repeatable.",
)
@json_option
def reproduce(
    source: Evaluation | Bundle,
    given: str,
    is_measured: bool,
    allowed: tuple[str, ...],
    as_json: bool,
) -> int:
    """
    Make the results of RUN again, and compare them with what is stored.

    The present code makes traces, profiles, predictions and scores in a scratch folder; RUN stays
    as it is.  Needs neither Hadoop nor Java.  Of a BUNDLE, what its evidence allows is made again,
    and its tables and its claim; with --measure its experiment runs on a cluster of yours (--set
    changes it), and the answer says which conclusions carry over.  Pages that another release made,
    and pictures that other packages drew, are not compared: the last line names them.  Exit status
    1: something differs, or does not hold; 7: it cannot be read, or was tampered with.

    \b
    Example:
        harness reproduce results/quick/20261121T032309Z-4f26
        harness reproduce results/quick/20261121T032309Z-4f26 --given profiles --json
        harness reproduce bundle --measure --set cluster.provider=docker
        harness reproduce bundle --measure --allow mapreduce.map.env
    """
    if isinstance(source, Bundle) and is_measured:
        return _measure_again(source, allowed, as_json=as_json)
    has_overrides = isinstance(source, Bundle) and bool(source.overrides)
    if is_measured or has_overrides or allowed:
        what = "--measure is for a BUNDLE, and --set and --allow of a BUNDLE for --measure"
        raise click.UsageError(what)
    stages = remade_stages(source, given)
    documents = [stage_document(stage, compared) for stage, compared in stages]
    answer = {"stages": documents, "summary": summary_of_stages(stages)}
    present(answer, shown_stages(stages), as_json=as_json)
    return int(any(differing(compared or ()) for _, compared in stages))


Stages: TypeAlias = "Sequence[tuple[str, Sequence[Difference] | None]]"  # `None`: not compared


def remade_stages(source: Evaluation | Bundle, given: str) -> Stages:
    """Make each stage after *given* again in a scratch folder; what of it differs is beside it."""
    from harness.core.run.reproduce import reproduce as reproduce_stages

    with TemporaryDirectory(prefix="harness-reproduce-") as folder:
        if isinstance(source, Bundle):
            from harness.publish.compare import reproduce_bundle

            return list(reproduce_bundle(source.folder, Path(folder), given))
        return list(reproduce_stages(source.run, Path(folder), given))


def differing(compared: Sequence[Difference]) -> list[Difference]:
    """Those that are more than rounding."""
    return [difference for difference in compared if not difference.is_equal]


def stage_document(stage: str, compared: Sequence[Difference] | None) -> dict[str, Any]:
    """What programs are told of a stage; where nothing differs at all, its bytes are equal."""
    if compared is None:
        return {"stage": stage, "equal": None, "by": "", "differs": []}
    differs = differing(compared)
    return {
        "stage": stage,
        "equal": not differs,
        "by": "1e-9" if compared else "bytes",
        "differs": [difference._asdict() for difference in differs],
    }


def shown_stages(stages: Stages) -> Iterator[Part]:
    """Whether each stage came out the same, and what did not."""
    all_differing: list[Difference] = []
    for stage, compared in stages:
        if compared is None:
            yield stage
            continue
        differs = differing(compared)
        all_differing += differs
        if differs:
            verb = by_number(len(differs), "differs", "differ")
            yield f"{stage}: {count(len(differs), 'value')} {verb}"
        elif compared:
            verb = by_number(len(compared), "differs", "differ")
            yield f"{stage}: equal to 1e-9; {count(len(compared), 'value')} {verb} in later digits"
        else:
            yield f"{stage}: equal"
    if all_differing:
        columns = ("model", "name", "stored", "made again", "relative difference")
        shown = [["-" if part is None else part for part in row] for row in all_differing]
        yield Rows(columns, shown[:_MOST_DIFFERENCES])
    yield summary_of_stages(stages)


def summary_of_stages(stages: Stages) -> str:
    """Whether what was made again is equal, and what was not compared at all."""
    left = [stage for stage, compared in stages if compared is None]
    number = sum(len(differing(compared or ())) for _, compared in stages)
    if number:
        text = f"{count(number, 'value')} {by_number(number, 'differs', 'differ')}"
    else:
        text = "all that was compared is equal" if left else "everything is equal"
    return "; ".join((f"made again: {text}", *left))


def _measure_again(bundle: Bundle, allowed: Collection[str], *, as_json: bool) -> int:
    """
    Measure the experiments of *bundle* once more, and say which conclusions carry over.

    `SpecError` names properties of theirs that do more than change the time of a job, unless they
    are *allowed*, and a place that is theirs.
    """
    from harness.cli.commands.steps import measure
    from harness.core.evaluate.laws.plan import require_same_file
    from harness.core.experiment.file import read_experiment
    from harness.core.experiment.foreign import require_own_place, require_performance
    from harness.core.experiment.grid import expand
    from harness.core.store.packed import home_of
    from harness.publish.compare import replicate

    def measure_run(run: Run) -> Evaluation:
        from harness.core.evaluate.flow import Evaluation

        overrides = (*run.read_manifest().overrides, *bundle.overrides, "predict.order=blind")
        require_same_file(run)
        path = run.path / "experiment.yaml"
        # As it is written: nothing of the reader's has been put in the place of a reference yet.
        text = run.opener.read(path, "get the bundle again").decode()
        cells = expand(read_experiment(text, str(path), overrides))
        require_performance(cells, str(bundle.folder), allowed)
        require_own_place(cells, str(bundle.folder), bundle.overrides)
        session = open_session(path, bundle.results_dir, overrides)
        evaluation = Evaluation.of(measure(session)[0])
        with evaluation.run.lock():
            evaluation.score()
            evaluation.report()
        return evaluation

    replication = replicate(bundle.folder, measure_run)
    parts = shown_replication(replication, home_of(bundle.folder))
    present(replication.model_dump(mode="json"), parts, as_json=as_json)
    return int(any(conclusion.outcome == "does not hold" for conclusion in replication.conclusions))


def shown_replication(replication: Replication, bundle: Path) -> Iterator[Part]:
    """What differs between the two clusters, each conclusion, and how many of each kind hold."""
    from harness.publish.compare import KINDS

    pairs = [(excerpt(name), *map(excerpt, pair)) for name, pair in replication.differences.items()]
    yield Rows(("what differs", "published", "here"), pairs)
    conclusions = replication.conclusions
    columns = ("conclusion", "published", "measured again", "outcome")
    yield Rows(
        columns,
        [
            (conclusion.what, conclusion.published, conclusion.measured, conclusion.outcome)
            for conclusion in conclusions
        ],
    )
    for kind in KINDS:
        outcomes = [conclusion.outcome for conclusion in conclusions if conclusion.kind == kind]
        text = f"{kind}: of {count(len(outcomes), 'conclusion')} {outcomes.count('holds')} hold,"
        text += f" {outcomes.count('does not hold')} do not hold,"
        yield f"{text} {outcomes.count('undecided')} undecided"
    yield Note(f"record: {bundle}/replications/{replication.runs[0]}/replication.json")
