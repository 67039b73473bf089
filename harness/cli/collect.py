"""``harness collect``: make the trace tables again from the raw logs."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("collect")
@experiment_arguments
def command(file: Path, results_dir: Path, overrides: tuple[str, ...]) -> None:
    """
    Make the trace tables of the newest run of FILE again from its raw logs.

    \b
    Example:
        harness collect experiments/quick.yaml
    """
    from harness.cli.console import talk

    count = session(file, results_dir, overrides).collect()
    talk(f"trace tables of {count} trials made")
