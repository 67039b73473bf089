"""``harness predict``: ask every model for every scored cell, and seal the answers."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("predict")
@experiment_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: Path, results_dir: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """
    Predict every scored cell of the newest run of FILE with every model, and seal the answers.

    \b
    Example:
        harness predict experiments/quick.yaml --json
    """
    from harness.cli.console import print_json, table
    from harness.experiment.grid import label, varying

    evaluation = session(file, results_dir, overrides).evaluation()
    predictions = evaluation.predict()
    if as_json:
        print_json({"predictions": [p.model_dump(mode="json") for p in predictions]})
        return
    axes = varying(evaluation.cells.values())
    names = {i: label(cell, axes) for i, cell in evaluation.cells.items()}
    table(
        ("cell", "model", "job, s", "map task, s", "reduce task, s"),
        [
            (
                names[p.cell],
                p.model,
                *(_seconds(s) for s in (p.job_s, p.map_task_s, p.reduce_task_s)),
            )
            for p in predictions
        ],
    )


def _seconds(value: float | None) -> str:
    return "not applicable" if value is None else f"{value:.2f}"
