"""``harness collect``: make the trace tables again from the raw logs."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("collect")
@experiment_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: Path, results_dir: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """
    Make the trace tables of the newest run of FILE again from its raw logs.

    \b
    Example:
        harness collect experiments/quick.yaml
    """
    from harness.cli.console import print_json, talk

    count = session(file, results_dir, overrides).collect()
    talk(f"trace tables of {count} trials made")
    if as_json:
        print_json({"trials": count})
