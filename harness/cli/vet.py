"""``harness vet``: how much of the time of finished tasks was overhead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli.console import print_json, table, talk
from harness.cli.experiment import results_option
from harness.errors import DataError

if TYPE_CHECKING:
    from harness.reports.data import ReportData
    from harness.store import Run


@click.command("vet")
@click.argument("target", metavar="TRIAL|RUN", shell_complete=completion.trials)
@results_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(target: str, results_dir: Path, as_json: bool) -> None:
    """
    Measure the overhead of finished tasks from the times of their records.

    TRIAL is an id or its begin, RUN the folder of a run.  The records' times are there where the
    experiment said 'trace: units'.  Vet is what they took over their ideal: 1 is without overhead.

    \b
    Example:
        harness vet 3f0a
        harness vet 3f0a --json
    """
    from harness.reports.document import Table, Text
    from harness.reports.sections import vet

    run, trial = _found(target, results_dir)
    data = _data(run, trial)
    section = vet.section(data)
    if as_json:
        print_json(dict(section.values()["vet"]))
        return
    for block in section.shown():
        if isinstance(block, Table):
            table(block.columns, block.texts(), title=block.caption)
    for block in section.shown():
        if isinstance(block, Text):
            talk(block.text)


def _found(target: str, results_dir: Path) -> tuple[Run, str | None]:
    """Run that is meant, and one of its trials where only that is."""
    from harness.store import Run, Store

    if Path(target).is_dir():
        return Run(Path(target)), None
    return Store(results_dir).find_trial(target)


def _data(run: Run, trial: str | None) -> ReportData:
    from harness.evaluate.flow import Evaluation
    from harness.experiment.grid import label, varying
    from harness.reports.data import ReportData

    evaluation = Evaluation(run, run.experiment(), run.read_plan())
    axes = varying(evaluation.cells.values())
    chosen = [r for i, r in evaluation.done.items() if trial in (None, i)]
    data = ReportData(
        experiment=evaluation.experiment,
        cells={i: (cell, label(cell, axes)) for i, cell in evaluation.cells.items()},
        trials=chosen,
        vet=evaluation.vet(chosen),
    )
    if not data.vet.jobs:
        raise DataError(
            "no finished task has times of its records",
            where=str(run.path if trial is None else run.trial_dir(trial)),
            fix="measure it with 'trace: units' in the experiment",
        )
    return data
