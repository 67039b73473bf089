"""``harness ask``: what models expect of settings that nobody has measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from harness.cli import completion
from harness.cli.console import print_json, show_table, show_text
from harness.cli.export import picture_option
from harness.cli.reading import open_evaluation
from harness.cli.steps import file_option, json_option, results_option
from harness.text import printable

_several = partial(click.option, multiple=True)


@click.command("ask")
@click.argument("source", metavar="RUN|PROFILE", shell_complete=completion.runs)
@results_option
@_several("--set", "settings", metavar="KEY=VALUE", help="One setting to change; repeatable.")
@_several("--grid", metavar="KEY=A,B,...", help="One axis to vary; repeatable.")
@_several("--model", "models", help="A model to ask (default: the run's, or whatif); repeatable.")
@click.option("--workload", help="The workload, where the run has several.")
@file_option("--csv", "table", help="Write all answers there.")
@picture_option
@json_option
def ask_models(
    source: str, results_dir: Path, workload: str | None, as_json: bool, **options: Any
) -> None:
    """
    Say what models expect of settings that nobody has measured; no job is run.

    The base is the largest scored cell of RUN.  Each --set changes one thing more, and is compared
    with the line above it; a --grid varies what they come to.  Keys are names of axes (input,
    workers, map_slots, ...), properties of Hadoop, or keys of an experiment file.  A PROFILE alone
    (profiles/WORKLOAD.json) has no base: it needs --set input=SIZE, and all else is as in an
    experiment file that leaves it out.

    \b
    Example:
        harness ask experiments/demo.yaml --set input='10 GiB' --set mapreduce.task.io.sort.mb=256
        harness ask 20261121T0323 --model whatif --grid mapreduce.job.reduces=1,2,4 -o reduces.svg
    """
    from harness.evaluate.ask import answers, basis_of_profile, basis_of_run, questions
    from harness.evaluate.own_code import kept_own, read_own
    from harness.evaluate.own_model import OwnModel
    from harness.models import require_models
    from harness.records.profile import Profile
    from harness.run.preflight import known_names
    from harness.store import os_error_as_machine_error
    from harness.store.opener import Opener

    settings = [*options["settings"]]
    models = options["models"]
    picture = options["picture"]
    own = {name: read_own(name) for name in models if ".py:" in name}
    require_models(sorted(set(models) - own.keys()), "--model")
    known = known_names()
    if source.endswith(".json"):
        path = Path(source)
        fix = "name the file profiles/WORKLOAD.json of a run"
        profile = Opener(path.parent).read_record(Profile, path, fix)
        basis = basis_of_profile(profile, settings, known)
    else:
        evaluation = open_evaluation(source, results_dir, asks=True)
        basis = basis_of_run(evaluation, workload or "")
        if not models:
            predict = evaluation.experiment.predict
            models = predict.models
            own = {n: kept_own(code) for n, code in predict.code.items()}
    show_text(f"base: {basis.note}")
    requests = questions(basis.resolved, settings, options["grid"], known)
    asked_models = [OwnModel(own[name]) if name in own else name for name in models or ["whatif"]]
    rows = [row for model in asked_models for row in answers(model, requests, basis)]
    if options["table"] is not None:
        import pandas as pd

        with os_error_as_machine_error(options["table"]):
            pd.json_normalize(rows).to_csv(options["table"], index=False)
    if picture is not None:
        with os_error_as_machine_error(picture):
            draw(picture, rows)
    if as_json:
        print_json({"base": basis.note, "answers": rows})
    else:
        show(rows, requests[len(settings)][0])


def show(rows: Sequence[dict[str, Any]], last_name: str) -> None:
    """Print *rows* for people; below them phases of the cell *last_name*, and what it rests on."""
    from harness.reports.wording import number, percent

    texts = list[tuple[str, ...]]()
    lines = list[str]()
    phases: dict[str, dict[str, str]] = {}
    for row in rows:
        model, cell, job_s, error = (row[name] for name in ("model", "cell", "job_s", "error"))
        ends = f"{number(row['low_80_s'])} to {number(row['high_80_s'])}" if row["low_80_s"] else ""
        times_s = [model, cell, number(job_s), ends]
        if row["change"] is None:
            times_s += ["", "", ""]
        else:
            times_s += [percent(row[each], signed=True) for each in ("change", "from_base")]
            word = "within" if abs(row["change"]) <= (error or 0.0) else "beyond"
            times_s.append(f"{word} {percent(error)}" if error else "")
        share = row["phases"][row["limits"]]["job_s"] / job_s if job_s else 0.0
        texts.append(
            (*times_s, row["range"], f"{row['limits']}, {percent(share)}" if job_s else "")
        )
        lines += [f"{model} is not applicable: {row['not_applicable']}"] * (job_s is None)
        if cell != last_name:
            continue
        for phase, times in row["phases"].items():
            task = f" ({number(times['task_s'])})" if "task_s" in times else ""
            phases.setdefault(phase, {})[model] = number(times["job_s"]) + task
        lines += [f"never profiled: {row['outside']}"] * bool(row["outside"])
        lines += [f"no model reads what {cell} changes"] * (not row["is_read"])
    times = ("job, s", "80 % interval, s", "change", "from base", "its error here")
    show_table(("model", "cell", *times, "range", "takes most"), texts)
    models = list(dict.fromkeys(row["model"] for row in rows))
    by_phase = [(n, *(times.get(model, "") for model in models)) for n, times in phases.items()]
    show_table((f"{last_name}: seconds of the job (of a task)", *models), by_phase)
    for line in dict.fromkeys(lines):
        click.echo(printable(line))


def draw(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Draw job times over the first setting that varies; a line for each value of the others."""
    import pandas as pd

    from harness.experiment.grid import meaning
    from harness.reports.drawing import SERIES, SURFACE, WIDE, Canvas, drawing, grid

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
        canvas.figure.savefig(path, dpi=200, facecolor=SURFACE)
