"""``harness report``: write the report of a run."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("report")
@experiment_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: Path, results_dir: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """
    Write report.html, report.md and report.json of the newest run of FILE.

    \b
    Example:
        harness report experiments/quick.yaml
        harness report experiments/quick.yaml --json
    """
    from harness.cli.console import print_json

    paths = session(file, results_dir, overrides).evaluation().report()
    if as_json:
        print_json({"files": paths})
        return
    for path in paths:
        click.echo(path)
