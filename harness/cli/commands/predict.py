"""`harness predict`: every model's predictions, sealed; or an analysis of what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from harness.cli.commands.reading import asked_of, kept_elsewhere, question_option
from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    added_option,
    chosen_results,
    json_option,
    models_option,
    open_evaluation,
    run_argument,
)
from harness.cli.console.present import Note, Part, Rows, present, show

if TYPE_CHECKING:
    from harness.base.documents.document import Document
    from harness.base.records.prediction import Prediction
    from harness.base.records.profile import Profile
    from harness.core.evaluate.flow import Evaluation
    from harness.core.experiment.model import Experiment
    from harness.core.store import Run


class Asked(NamedTuple):
    """
    An *experiment* that is asked of a run, by *profiles* of its own, or by those given.

    It *says* in one sentence what those rest on that were moved to another machine.
    """

    experiment: Experiment
    profiles: Mapping[str, Profile] | None = None
    says: str = ""


class Predicted(NamedTuple):
    """
    *predictions*; of an analysis of a run its *files* and its *report*, too.

    It *says* in one sentence what they rest on where profiles were moved to another machine.
    """

    predictions: Sequence[Prediction]
    files: Sequence[Path] = ()
    report: Document | None = None
    says: str = ""

    @property
    def verdict(self) -> str:
        """The answer of the report, if there is one."""
        return self.report.headline if self.report else ""

    def as_json(self) -> dict[str, Any]:
        """What programs get."""
        return {
            "predictions": self.predictions,
            "verdict": self.verdict,
            "files": self.files,
            "says": self.says,
        }


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
    if hardware and not origin:
        raise click.UsageError("--hardware A B is for the profiles of another run: --from RUN")
    if origin and profile_on:
        raise click.UsageError("--from RUN and --profile-on exclude each other")
    asked = asked_by_options(evaluation, ",".join(models), profile_on, added, question)
    if origin and hardware:
        asked = moved(evaluation, asked.experiment, origin, hardware, strict=strict)
    elif origin:
        asked = lent(evaluation, asked.experiment, origin)
    run = evaluation.run
    if run.seal.exists() or asked.experiment.predict != run.experiment().predict:
        answer = analysed(run, asked)
    else:
        answer = first_predicted(evaluation)
    if asked.says:
        here = answer.verdict or "how far off they are here is not known: nothing was scored here"
        answer = answer._replace(says=f"{asked.says}; {here}")
    present(answer.as_json(), shown_predictions(evaluation, answer), as_json=as_json)


def asked_by_options(
    evaluation: Evaluation,
    models: str,
    profile_on: Sequence[str],
    added: Sequence[str],
    question: str | None,
) -> Asked:
    """The experiment of *evaluation* with what options change of it."""
    from harness.cli.console.asked import asked_anew
    from harness.core.run.asking import is_lent_alike

    experiment = evaluation.experiment
    if models or added or profile_on:
        experiment = asked_anew(evaluation.run, models, profile_on, added)
    if question is not None:
        experiment = asked_of(replace(evaluation, experiment=experiment), question).experiment
    is_alike = is_lent_alike(experiment.predict, evaluation.experiment.predict)
    return Asked(experiment, (evaluation.borrowed or None) if is_alike else None)


def lent(evaluation: Evaluation, experiment: Experiment, origin: str) -> Asked:
    """*experiment* without profiling cells, and the profiles of another run as they are."""
    from harness.core.run.asking import lent_profiles

    lender = open_evaluation(origin, chosen_results()).run
    workloads = {cell.workload.name for cell in evaluation.cells.values()}
    profiles = lent_profiles(lender, workloads.difference(experiment.nightly.controls))
    changes: dict[str, Any] = {"source": lender.id, "hardware": (), "profile_on": {}, "cells": None}
    predict = experiment.predict.model_copy(update=changes)
    return Asked(experiment.model_copy(update={"predict": predict}), profiles)


def moved(
    evaluation: Evaluation,
    experiment: Experiment,
    origin: str,
    hardware: tuple[Path, Path],
    *,
    strict: bool,
) -> Asked:
    """*experiment* without profiling cells, and the profiles of another run for its machine."""
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
    changes: dict[str, Any] = {"source": source.id, "hardware": tuple(map(str, hardware))}
    changes |= {"profile_on": {}, "cells": None}
    predict = experiment.predict.model_copy(update=changes)
    judges = judges_there(source, experiment.predict.models)
    says = moved_says([path.name for path in hardware], source.id, judges)
    return Asked(experiment.model_copy(update={"predict": predict}), profiles, says)


def first_predicted(evaluation: Evaluation) -> Predicted:
    """The predictions of the run of *evaluation*, which has none yet."""
    run = evaluation.run
    with run.lock():
        for profile in evaluation.borrowed.values():
            run.write_profile(profile)
        return Predicted(evaluation.predict())


def analysed(run: Run, asked: Asked) -> Predicted:
    """Ask *asked* of what *run* measured: an analysis in a folder beside its others."""
    from harness.core.evaluate.reporting import REPORT_FILES
    from harness.core.run.asking import analyse

    with analyse(run, asked.experiment, asked.profiles) as (analysis, document):
        predictions = analysis.predictions
    folder = analysis.run.path.with_name(analysis.run.id.lstrip("."))
    files = [folder / name for name in REPORT_FILES.values()]
    return Predicted(predictions, files, document)


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
    if answer.report is not None:
        yield answer.report
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
