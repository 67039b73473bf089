"""``harness report``: write the report of a run."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("report")
@experiment_arguments
def command(file: Path, results_dir: Path, overrides: tuple[str, ...]) -> None:
    """
    Write report.html, report.md and report.json of the newest run of FILE.

    \b
    Example:
        harness report experiments/quick.yaml
    """
    for path in session(file, results_dir, overrides).evaluation().report():
        click.echo(path)
