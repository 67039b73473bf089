"""``harness export`` and ``harness plot``: a run for other programs, and for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.console import print_json, show_table
from harness.cli.reading import run_argument
from harness.cli.steps import json_option

if TYPE_CHECKING:
    from harness.evaluate.flow import Evaluation

# Format -> its name for the date, which is left out: equal runs give equal files.
_DATES = {".svg": "Date", ".pdf": "CreationDate", ".png": "Creation Time"}


@click.command("export")
@run_argument
@click.option("-o", "--output", "folder", required=True, type=click.Path(path_type=Path))
@json_option
def export(evaluation: Evaluation, folder: Path, as_json: bool) -> None:
    """
    Write RUN into a folder: CSV and Parquet, tables for LaTeX (booktabs), JUnit XML.

    JUnit has a test case per model and scored cell; it fails where the error is more than two noise
    floors of the cell. In CSV a text that a spreadsheet would run has an apostrophe before it.

    \b
    Example:
        harness export experiments/quick.yaml -o quick-tables
    """
    from harness.api.export import export as write
    from harness.api.run import Run

    paths = [*write(Run(evaluation), folder)]
    if as_json:
        print_json({"files": paths})
        return
    for path in paths:
        click.echo(path)


@click.command("plot")
@run_argument
@click.argument("name", default="")
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write: .svg, .pdf or .png.",
)
@click.option(
    "--width",
    type=click.FloatRange(1, 40),
    metavar="INCHES",
    help="Width (default: one column of a paper of two, 3.5; of wide figures both, 7.16).",
)
@json_option
def plot(
    evaluation: Evaluation, name: str, file: Path | None, width: float | None, as_json: bool
) -> None:
    """
    Write the figure NAME of the report of RUN; without a name list all.

    \b
    Example:
        harness plot experiments/quick.yaml
        harness plot experiments/quick.yaml errors -o errors.pdf
    """
    from harness.api.run import Run
    from harness.reports.drawing import drawing
    from harness.store import os_error_as_machine_error

    plots = Run(evaluation).plot
    if name:
        if file is None or file.suffix not in _DATES:
            endings = ", ".join(f"-o {name}{ending}" for ending in _DATES)
            raise click.UsageError(
                f"A figure is a file of one of these kinds. Choose from {endings}"
            )
        import matplotlib as mpl

        figure = plots.draw(name, width=width)
        with drawing(), os_error_as_machine_error(file):
            mpl.rc("svg", fonttype="path")
            mpl.rc("pdf", fonttype=42)
            figure.savefig(file, dpi=300, metadata={_DATES[file.suffix]: None})
    titles = {each: figure.title for each, figure in plots.figures.items()}
    if as_json:
        print_json({"file": file} if name else {"figures": titles})
    elif not name:
        show_table(("name", "figure"), titles.items())
