"""``harness score``: compare the sealed predictions with what was measured."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("score")
@experiment_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: Path, results_dir: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """
    Score the sealed predictions of the newest run of FILE, each beside the noise of its cell.

    \b
    Example:
        harness score experiments/quick.yaml
    """
    from harness.cli.console import print_json
    from harness.reports import REPORTS

    evaluation = session(file, results_dir, overrides).evaluation()
    book = evaluation.score()
    if as_json:
        print_json(book.model_dump(mode="json"))
        return
    click.echo(REPORTS["terminal"].render(evaluation.report_data()))
