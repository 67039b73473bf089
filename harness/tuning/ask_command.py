"""``harness ask``: what models expect of settings that nobody has measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    PICTURES,
    json_option,
    model_option,
    open_evaluation,
    outputs_option,
    results_option,
    setting_option,
    workload_option,
)
from harness.cli.console.present import Note, Part, Rows, present, save, save_rows, show

if TYPE_CHECKING:
    from harness.core.evaluate.basis import Basis
    from harness.core.evaluate.flow import Evaluation
    from harness.core.evaluate.own_code import OwnCode
    from harness.core.experiment.file import KnownNames


@command("ask")
@click.argument("source", metavar="RUN|PROFILE", shell_complete=completion.runs)
@results_option
@setting_option(help="One setting to change; repeatable.")
@click.option(
    "--grid",
    multiple=True,
    metavar="KEY=A,B,...",
    shell_complete=completion.settings,
    help="One axis to vary; repeatable.",
)
@model_option(help="A model to ask (default: the run's, or whatif); repeatable.")
@workload_option
@outputs_option(
    "Write all answers (.csv), or a figure of them (.svg, .pdf, .png); repeatable.",
    ".csv",
    *PICTURES,
)
@json_option
def ask_models(
    source: str, results_dir: Path, workload: str | None, as_json: bool, **options: Any
) -> None:
    """
    Say what models expect of settings that nobody has measured; no job is run.

    The base is the largest scored cell of RUN.  Each --setting changes one thing more, and is
    compared with the line above it; a --grid varies what they come to.  Keys are names of axes
    (input, workers, map_slots, ...), properties of Hadoop, or keys of an experiment file.  A
    PROFILE alone (profiles/WORKLOAD.json) has no base: it needs --setting input=SIZE, and all else
    is as in an experiment file that leaves it out.

    \b
    Example:
        harness ask 20261121T0323 --setting input='10 GiB' --setting mapreduce.task.io.sort.mb=256
        harness ask 20261121T0323 --model whatif --grid mapreduce.job.reduces=1,2,4 -o reduces.svg
    """
    from harness.core.evaluate.basis import basis_of_run
    from harness.core.evaluate.own_model import OwnModel
    from harness.core.run.preflight import known_names
    from harness.tuning.ask import answer_of, answers, questions

    settings = [*options["settings"]]
    models = options["models"]
    own_code = _own_code(models)
    names = known_names()
    if source.endswith(".json"):
        basis = _profile_basis(Path(source), settings, names)
    else:
        evaluation = open_evaluation(source, results_dir, asks=True)
        basis = basis_of_run(evaluation, workload or "")
        if not models:
            models, own_code = _models_of_run(evaluation)
    show(Note(f"base: {basis.note}"))
    requests = questions(basis.resolved, settings, options["grid"], names)
    own_models = {name: OwnModel(code) for name, code in own_code.items()}
    asked_models = [own_models.get(name, name) for name in models or ["whatif"]]
    rows = list[dict[str, Any]]()
    for model in asked_models:
        rows += answers(model, requests, basis)
    outputs = options["outputs"]
    save_rows(outputs.get(".csv"), rows)
    for ending in PICTURES:
        save(outputs.get(ending), partial(draw, rows=rows))
    last_name = requests[len(settings)][0]
    answer = answer_of(rows, settings, basis)
    document = {**answer.document(), "base": basis.note, "answers": rows}
    present(document, [answer.says, *shown(rows, last_name)], as_json=as_json)


def _own_code(models: Sequence[str]) -> dict[str, OwnCode]:
    """Code of *models* that are named by a path; `SpecError` where a name is that of no model."""
    from harness.core.evaluate.own_code import read_own_models
    from harness.models import require_models

    own_code = read_own_models(models)
    require_models(sorted(set(models) - own_code.keys()), "--model")
    return own_code


def _models_of_run(evaluation: Evaluation) -> tuple[Sequence[str], dict[str, OwnCode]]:
    """Models that the run was predicted by, with the code of those that are its user's own."""
    from harness.core.evaluate.own_code import kept_own

    predict = evaluation.experiment.predict
    return predict.models, {name: kept_own(code) for name, code in predict.code.items()}


def _profile_basis(path: Path, settings: list[str], names: KnownNames) -> Basis:
    """What a profile alone knows; its input is taken out of *settings*."""
    from harness.base.records.profile import Profile
    from harness.observe.storage.opener import Opener
    from harness.tuning.ask import basis_of_profile

    fix = "name the file profiles/WORKLOAD.json of a run"
    profile = Opener(path.parent).read_record(Profile, path, fix)
    return basis_of_profile(profile, settings, names)


def shown(rows: Sequence[dict[str, Any]], last_name: str) -> Iterator[Part]:
    """*rows* for people; below them phases of the cell *last_name*, and what it rests on."""
    times = ("job, s", "80 % interval, s", "change", "from base", "its error here")
    yield Rows(("model", "cell", *times, "range", "takes most"), map(row_texts, rows))
    yield phase_table(rows, last_name)
    remarks = list[str]()
    for row in rows:
        remarks += _remarks(row, is_last=row["cell"] == last_name)
    yield from dict.fromkeys(remarks)


def row_texts(row: dict[str, Any]) -> tuple[str, ...]:
    """One model's answer for one cell, as the columns of the table for people."""
    from harness.base.documents.wording import number, percent

    job_s = row["job_s"]
    interval = ""
    if row["low_80_s"]:
        interval = f"{number(row['low_80_s'])} to {number(row['high_80_s'])}"
    takes_most = ""
    if job_s and row["limits"]:
        limiting_s = row["phases"][row["limits"]]["job_s"]
        takes_most = f"{row['limits']}, {percent(limiting_s / job_s)}"
    times = (row["model"], row["cell"], number(job_s), interval)
    return (*times, *change_texts(row), row["range"], takes_most)


def change_texts(row: dict[str, Any]) -> tuple[str, str, str]:
    """Change, change from the base, and whether the model can see so small a one."""
    from harness.base.documents.wording import percent

    if row["change"] is None:
        return "", "", ""
    model_error = row["error"]
    certainty = ""
    if model_error:
        word = "within" if abs(row["change"]) <= model_error else "beyond"
        certainty = f"{word} {percent(model_error)}"
        if row["within_error"]:
            certainty += ": may be none"
    return percent(row["change"], signed=True), percent(row["from_base"], signed=True), certainty


def phase_table(rows: Sequence[dict[str, Any]], cell_name: str) -> Rows:
    """Seconds of each phase of one cell, a column for each model."""
    from harness.base.documents.wording import number

    models = list(dict.fromkeys(row["model"] for row in rows))
    phases: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["cell"] != cell_name:
            continue
        for phase, times in row["phases"].items():
            task = f" ({number(times['task_s'])})" if "task_s" in times else ""
            phases.setdefault(phase, {})[row["model"]] = number(times["job_s"]) + task
    by_phase = [
        (phase, *(texts.get(model, "") for model in models)) for phase, texts in phases.items()
    ]
    return Rows((f"{cell_name}: seconds of the job (of a task)", *models), by_phase)


def _remarks(row: dict[str, Any], *, is_last: bool) -> Iterator[str]:
    """Why there is no answer; of the last cell, whether profile and models know what it changes."""
    from harness.models import find

    if row["job_s"] is None:
        yield f"{row['model']} is not applicable: {row['not_applicable']}"
    if not is_last:
        return
    if row["decides"]:
        yield row["decides"]
    if row["outside"]:
        yield f"never profiled: {row['outside']}"
    # Models of the harness warn of what a profile lacks.
    if row["warnings"] and find(row["model"]) is None:
        yield f"{row['model']} warns: {row['warnings'][0]}"
    if not row["is_read"]:
        yield f"no model reads what {row['cell']} changes"


def draw(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Draw job times over the first setting that varies; a line for each value of the others."""
    import pandas as pd

    from harness.base.documents.drawing import SERIES, WIDE, Canvas, drawing, grid
    from harness.core.experiment.grid import meaning

    points = [row for row in rows if row["cell"] != "base" and row["cell"][0] != "+"]
    table = pd.DataFrame([{**row["settings"], **row} for row in points or rows])
    axes = [name for name in rows[0]["settings"] if len(set(table[name])) > 1] if points else []
    axes = axes or ["cell"]
    table[axes[0]] = table[axes[0]].map(meaning)
    lines = table.pivot_table("job_s", axes[0], ["model", *axes[1:]], sort=bool(points))
    with drawing():
        canvas = Canvas(WIDE / 2, 3.4)
        plot_axes = canvas.figure.add_subplot()
        lines.plot(ax=plot_axes, style="o-", color=[*SERIES], legend=False, ylabel="job, s")
        grid(plot_axes, "both")
        title = ", ".join(map(str, lines.columns.names))
        canvas.figure.legend(loc="outside lower center", ncols=2, title=title)
        path.write_bytes(canvas.file(path.suffix))
