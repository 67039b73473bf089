"""Commands that read a run: made again, predicted, scored, reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    added_option,
    choice_option,
    chosen_results,
    folder_option,
    json_option,
    models_option,
    open_evaluation,
    open_session,
    run_argument,
    source_argument,
)
from harness.cli.console.present import Note, Part, Rows, present, require_answer, show

if TYPE_CHECKING:
    from harness.base.records.prediction import Prediction
    from harness.base.records.profile import Profile
    from harness.core.evaluate.flow import Evaluation
    from harness.core.experiment.model import Experiment
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


@command("predict")
@partial(run_argument, open_source=partial(open_evaluation, asks=True))
@added_option(help="A model beside the run's; repeatable.")
@models_option(help="Models in the place of the run's; repeatable.")
@click.option(
    "--profile-on",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="The cells that feed profiles, such as 'input=16 MiB,96 MiB'; repeatable.",
)
@click.option(
    "--from",
    "origin",
    metavar="RUN",
    shell_complete=completion.runs,
    help="Take the profiles of this run.",
)
@click.option(
    "--hardware",
    nargs=2,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="A B",
    help="With --from: that ran on the machine of A, this one is B (harness calibrate).",
)
@click.option("--strict", is_flag=True, help="Refuse costs that were measured on another machine.")
@question_option
@json_option
def predict(
    evaluation: Evaluation,
    models: tuple[str, ...],
    added: tuple[str, ...],
    profile_on: tuple[str, ...],
    origin: str | None,
    hardware: tuple[Path, Path] | None,
    strict: bool,
    question: str | None,
    as_json: bool,
) -> None:
    """
    Predict every scored cell of RUN with every model, and seal the predictions; no job is run.

    The first time, these are the predictions of the run.  Afterwards, or with other models, they
    are an analysis of it: profiles, predictions, scores and a report in a folder beside its others,
    marked as sealed after the measurement.

    \b
    Example:
        harness predict experiments/quick.yaml
        harness predict results/quick/20261121T032309Z-4f26 --model ./mine.py:Mine
        harness predict 20261121T0323 --models whatif,ernest
        harness predict 20261121T0323 --profile-on 'input=16 MiB,48 MiB' --json
        harness predict 20261122T0411 --from 20261121T0323
        harness predict 20261122T0411 --from 20261121T0323 --hardware plain.json slow.json
    """
    from harness.cli.console.asked import asked_anew
    from harness.core.run.asking import is_lent_alike

    run = evaluation.run
    experiment = evaluation.experiment
    if models or added or profile_on:
        experiment = asked_anew(run, ",".join(models), profile_on, added)
    if question is not None:
        asked = replace(evaluation, experiment=experiment)
        experiment = asked_of(asked, question).experiment
    profiles = None
    says = ""
    if is_lent_alike(experiment.predict, evaluation.experiment.predict):
        profiles = evaluation.borrowed or None
    if hardware and not origin:
        raise click.UsageError("--hardware A B is for the profiles of another run: --from RUN")
    if origin and profile_on:
        raise click.UsageError("--from RUN and --profile-on exclude each other")
    if origin and hardware:
        experiment, profiles, says = _moved(evaluation, experiment, origin, hardware, strict=strict)
    elif origin:
        experiment, profiles = _lent(evaluation, experiment, origin)
    if run.seal.exists() or experiment.predict != run.experiment().predict:
        answer = analysed(run, experiment, profiles)
    else:
        with run.lock():
            for lent in evaluation.borrowed.values():
                run.write_profile(lent)
            answer = Predicted(evaluation.predict())
    if says:
        here = answer.verdict or "how far off they are here is not known: nothing was scored here"
        answer = answer._replace(says=f"{says}; {here}")
    present(answer._asdict(), shown_predictions(evaluation, answer), as_json=as_json)


class Predicted(NamedTuple):
    """
    *predictions*; of an analysis of a run its *verdict* and *files*, too.

    It *says* in one sentence what they rest on where profiles were moved to another machine.
    """

    predictions: Sequence[Prediction]
    verdict: str = ""
    files: Sequence[Path] = ()
    says: str = ""


def analysed(run: Run, experiment: Experiment, profiles: Mapping[str, Profile] | None) -> Predicted:
    """Ask *experiment* of what *run* measured: an analysis in a folder beside its others."""
    from harness.core.evaluate.reporting import REPORT_FILES
    from harness.core.run.asking import analyse

    with analyse(run, experiment, profiles) as (analysis, document):
        predictions = analysis.predictions
    folder = analysis.run.path.with_name(analysis.run.id.lstrip("."))
    files = [folder / name for name in REPORT_FILES.values()]
    return Predicted(predictions, document.headline, files)


def shown_predictions(evaluation: Evaluation, answer: Predicted) -> Iterator[Part]:
    """Times that each model predicts of each cell, smaller inputs first; the analysis, if any."""
    if answer.says:
        yield answer.says
    sizes = {key: cell.workload.input_bytes for key, cell in evaluation.cells.items()}
    times = ("body_s", "job_s", "published_s", "map_task_s", "reduce_task_s")
    rows = []
    for prediction in sorted(answer.predictions, key=lambda it: (sizes[it.cell], it.cell)):
        texts = [evaluation.labels[prediction.cell], prediction.model]
        for name in times:
            seconds = getattr(prediction, name)
            texts.append("not applicable" if seconds is None else f"{seconds:.2f}")
        rows.append(texts)
    columns = ("body, s", "job, s", "as published, s", "map task, s", "reduce task, s")
    yield Rows(("cell", "model", *columns), rows)
    yield from _remarks(answer.predictions)
    if answer.files:
        yield f"{answer.verdict}\n"
        yield from kept_elsewhere(evaluation.run.measured)
        yield Note(f"analysis, sealed after the measurement: {answer.files[0].parent}")
        yield Note(f"report: {answer.files[0]}")


def _remarks(predictions: Sequence[Prediction]) -> Iterator[Note]:
    """Why models of the user's own have no answer, and what they warn of: once for each model."""
    from harness.core.reports.answer import model_warnings
    from harness.models import find

    models = {prediction.model for prediction in predictions}
    own_models = {model for model in models if find(model) is None}
    reasons = dict[str, str]()
    for prediction in predictions:
        if prediction.model in own_models and prediction.not_applicable:
            reasons.setdefault(prediction.model, prediction.not_applicable[0])
    for model, reason in reasons.items():
        yield Note(f"{model} is not applicable: {reason}")
    for warning in model_warnings(predictions, own_models):
        yield Note(f"warning: {warning}")


def _lent(
    evaluation: Evaluation, experiment: Experiment, origin: str
) -> tuple[Experiment, dict[str, Profile]]:
    """*experiment* without profiling cells, and the profiles of another run as they are."""
    from harness.core.run.asking import lent_profiles

    lender = open_evaluation(origin, chosen_results()).run
    workloads = {cell.workload.name for cell in evaluation.cells.values()}
    profiles = lent_profiles(lender, workloads.difference(experiment.nightly.controls))
    changes = {"source": lender.id, "hardware": (), "profile_on": {}}
    predict = experiment.predict.model_copy(update=changes)
    return experiment.model_copy(update={"predict": predict}), profiles


def _moved(
    evaluation: Evaluation,
    experiment: Experiment,
    origin: str,
    hardware: tuple[Path, Path],
    *,
    strict: bool,
) -> tuple[Experiment, dict[str, Profile], str]:
    """
    *experiment* without profiling cells, and the profiles of another run for its machine.

    With them, in one sentence, what they rest on.
    """
    from harness.base.errors import EvidenceError
    from harness.hardware.transfer import judges_there, profiles_for
    from harness.hardware.words import moved_says

    source = open_evaluation(origin, chosen_results()).run
    cells = evaluation.cells.values()
    profiles, foreign_costs = profiles_for(source, hardware, cells)
    for cost in foreign_costs:
        show(Note(f"warning: its costs were measured on another machine: {cost}"))
    if foreign_costs and strict:
        what = f"costs of another machine: {'; '.join(foreign_costs)}"
        fix = f"harness calibrate measures those of this one; {hardware[1]} is of another"
        raise EvidenceError(what, where=str(hardware[1]), fix=fix)
    changes = {"source": source.id, "hardware": tuple(map(str, hardware)), "profile_on": {}}
    predict = experiment.predict.model_copy(update=changes)
    judges = judges_there(source, experiment.predict.models)
    says = moved_says([path.name for path in hardware], source.id, judges)
    return experiment.model_copy(update={"predict": predict}), profiles, says


def asked_of(evaluation: Evaluation, text: str) -> Evaluation:
    """*evaluation* with the question in *text* in the place of its own."""
    from harness.core.experiment.question import read_question, with_question
    from harness.scoring.claims import models_by_paper

    models = evaluation.experiment.predict.models
    asked = read_question(text, models, models_by_paper())
    return replace(evaluation, experiment=with_question(evaluation.experiment, asked))


def open_scored(name: str, results_dir: Path, overrides: tuple[str, ...] = ()) -> Scorable:
    """Open the run *name*, or the table that a name with the ending .csv means."""
    if name.endswith(".csv"):
        return TableFile(Path(name))
    return open_evaluation(name, results_dir, overrides)


@command("score")
@partial(run_argument, open_source=open_scored)
@click.option("--strict", is_flag=True, help="Refuse a run that is not blind.")
@question_option
@json_option
def score(evaluation: Scorable, strict: bool, question: str | None, as_json: bool) -> None:
    """
    Score the sealed predictions of RUN, or a table of anybody's, beside the noise of each cell.

    What was changed, removed or added since it was measured or sealed is named: exit status 7.
    That is also the status where no model has an answer for a cell that was measured.  A question
    that was sealed with the predictions stays; of a run without one another may be asked.

    \b
    Example:
        harness score experiments/quick.yaml
        harness score 20261121T0323 --strict
        harness score bundle --question '{nearer: [prophet, whatif]}'
        harness score times.csv     # columns: cell, repeat, measured, and one for each model
    """
    from harness.core.reports.sections import make_document

    if isinstance(evaluation, TableFile):
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
@json_option
def reproduce(
    source: Evaluation | Bundle,
    given: str,
    is_measured: bool,
    as_json: bool,
) -> int:
    """
    Make the results of RUN again, and compare them with what is stored.

    The present code makes traces, profiles, predictions and scores in a scratch folder; RUN stays
    as it is.  Needs neither Hadoop nor Java.  Of a BUNDLE, what its evidence allows is made again,
    and its tables and its claim; with --measure its experiment runs on a cluster of yours (--set
    changes it), and the answer says which conclusions carry over.  Exit status 1: something
    differs, or does not hold; 7: it cannot be read, or was tampered with.

    \b
    Example:
        harness reproduce results/quick/20261121T032309Z-4f26
        harness reproduce results/quick/20261121T032309Z-4f26 --given profiles --json
        harness reproduce bundle --measure --set cluster.provider=docker
    """
    if isinstance(source, Bundle) and is_measured:
        return _measure_again(source, as_json=as_json)
    has_overrides = isinstance(source, Bundle) and bool(source.overrides)
    if is_measured or has_overrides:
        raise click.UsageError("--measure is for a BUNDLE, and --set of a BUNDLE for --measure")
    stages = remade_stages(source, given)
    answer = {"stages": [stage_document(stage, compared) for stage, compared in stages]}
    present(answer, shown_stages(stages), as_json=as_json)
    return int(any(map(differing, (compared for _, compared in stages))))


Stages: TypeAlias = "Sequence[tuple[str, Sequence[Difference]]]"


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


def stage_document(stage: str, compared: Sequence[Difference]) -> dict[str, Any]:
    """What programs are told of a stage; where nothing was *compared*, its bytes are equal."""
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
        differs = differing(compared)
        all_differing += differs
        if differs:
            verb = by_number(len(differs), "differs", "differ")
            yield f"{stage}: {count(len(differs), 'value')} {verb}"
        elif compared:
            verb = by_number(len(compared), "differs", "differ")
            yield f"{stage}: equal to 1e-9 ({count(len(compared), 'value')} {verb} beyond it)"
        else:
            yield f"{stage}: equal"
    if all_differing:
        columns = ("model", "name", "stored", "made again", "relative difference")
        yield Rows(columns, all_differing[:_MOST_DIFFERENCES])


def _measure_again(bundle: Bundle, *, as_json: bool) -> int:
    """Measure the experiments of *bundle* once more, and say which conclusions carry over."""
    from harness.cli.commands.steps import measure
    from harness.core.store.packed import home_of
    from harness.publish.compare import replicate

    def measure_run(run: Run) -> Evaluation:
        from harness.core.evaluate.flow import Evaluation

        overrides = (*run.read_manifest().overrides, *bundle.overrides, "predict.order=blind")
        session = open_session(run.path / "experiment.yaml", bundle.results_dir, overrides)
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
