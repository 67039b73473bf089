"""``harness vet``: how much of the time of finished tasks was overhead."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli import completion
from harness.cli.console import print_json, show_table, show_text
from harness.cli.steps import json_option, results_option
from harness.errors import DataError


@click.command("vet")
@click.argument("target", metavar="TRIAL|RUN", shell_complete=completion.trials)
@results_option
@json_option
def vet(target: str, results_dir: Path, as_json: bool) -> None:
    """
    Measure the overhead of finished tasks from the times of their records.

    TRIAL is an id or its first characters, RUN the folder of a run.  Times of records exist if
    the experiment had 'trace: units'.  Vet is their sum over the ideal sum: 1 means no overhead.

    \b
    Example:
        harness vet 3f0a
        harness vet 3f0a --json
    """
    from harness.evaluate.flow import Evaluation
    from harness.experiment.grid import label, varying
    from harness.reports.data import ReportData
    from harness.reports.document import Table, Text
    from harness.reports.sections import vet as vet_section
    from harness.store import Run, Store

    run, trial_id = Run(Path(target)), None
    if not Path(target).is_dir():
        run, trial_id = Store(results_dir).find_trial(target)
    evaluation = Evaluation(run, run.experiment(), run.read_plan())
    axes = varying(evaluation.cells.values())
    trials = [one for key, one in evaluation.done.items() if trial_id in (None, key)]
    data = ReportData(
        experiment=evaluation.experiment,
        cells={key: (cell, label(cell, axes)) for key, cell in evaluation.cells.items()},
        trials=trials,
        vet=evaluation.vet(trials),
    )
    if not data.vet.jobs:
        raise DataError(
            "no finished task has times of its records",
            where=str(run.path if trial_id is None else run.trial_dir(trial_id)),
            fix="measure it with 'trace: units' in the experiment",
        )
    section = vet_section.section(data)
    if as_json:
        print_json(dict(section.values()["vet"]))
        return
    for block in section.shown():
        if isinstance(block, Table):
            show_table(block.columns, block.texts(), title=block.caption)
    for block in section.shown():
        if isinstance(block, Text):
            show_text(block.text)
