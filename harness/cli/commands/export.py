"""``harness export`` and ``harness plot``: a run for other programs, and for a paper."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import SpecError
from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    PICTURES,
    chosen_results,
    folder_option,
    json_option,
    open_evaluation,
    outputs_option,
    run_argument,
)
from harness.cli.console.present import Note, Rows, present, save, show

if TYPE_CHECKING:
    from harness.core.evaluate.flow import Evaluation

# Format -> its name for the date, which is left out: equal runs give equal files.
_DATES = {".svg": "Date", ".pdf": "CreationDate", ".png": "Creation Time"}


@command("export")
@run_argument
@click.argument("further", metavar="[RUN]...", nargs=-1, shell_complete=completion.runs)
@folder_option("-o", "--output", "folder", required=True, help="Write the files there.")
@json_option
def export(evaluation: Evaluation, further: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """
    Write RUN into a folder: CSV and Parquet, tables for LaTeX (booktabs), JUnit XML.

    JUnit has a test case per model and scored cell; it fails where the error is more than two noise
    floors of the cell. In CSV a text that a spreadsheet would run has an apostrophe before it.
    Further runs are rows of otava.csv alone, with RUN's in the order of time.

    \b
    Example:
        harness export experiments/quick.yaml -o quick-tables
        harness export 20261122T0315 20261121T0323 20261120T0308 -o three-nights
    """
    from harness.core.frames import Frames
    from harness.export.tables import export as write
    from harness.nightly.nights import night
    from harness.nightly.page import comparable, otava_csv

    runs = [evaluation, *(open_evaluation(name, chosen_results()) for name in further)]
    nights = sorted(map(night, runs), key=attrgetter("time_s"))
    for row in nights:
        if row not in comparable(nights):
            reason = f"it is not whole: {'; '.join(row.lacks)}"
            if row.whole:
                reason = (
                    "it is of another machine, experiment, Hadoop or number of workers than the"
                    " last"
                )
            show(Note(f"otava.csv leaves out {row.run}: {reason}"))
    files = {"otava.csv": [otava_csv(nights).encode()]}
    if not evaluation.has_traces:
        what = "attempts, spans and the trace for Rumen"
        show(Note(f"left out, as the run was published without its traces: {what}"))
    paths = [*write(Frames(evaluation), folder, files)]
    present({"files": paths}, paths, as_json=as_json)


@command("plot")
@run_argument
@click.argument("name", default="")
@outputs_option("Write it there: .svg, .pdf or .png.", *PICTURES)
@click.option(
    "--width",
    type=click.FloatRange(1, 40),
    metavar="INCHES",
    help="Width (default: one column of a paper of two, 3.5; of wide figures both, 7.16).",
)
@json_option
def plot(
    evaluation: Evaluation,
    name: str,
    outputs: dict[str, Path],
    width: float | None,
    as_json: bool,
) -> None:
    """
    Write the figure NAME of the report of RUN; without a name and a file list all.

    \b
    Example:
        harness plot experiments/quick.yaml
        harness plot experiments/quick.yaml errors -o errors.pdf
    """
    from harness.api.run import Run
    from harness.base.documents.drawing import drawing, drawn_file

    plots = Run(evaluation).plot
    if not name and outputs:
        names = ", ".join(plots.figures)
        file = next(iter(outputs.values()))
        what = "a file is given and no name of a figure"
        raise SpecError(what, where=f"-o {file}", fix=f"write one of these before -o: {names}")
    if not name:
        titles = [(figure_name, figure.title) for figure_name, figure in plots.figures.items()]
        shown = Rows(("name", "figure"), titles)
        present({"figures": shown.records()}, [shown], as_json=as_json)
        return
    if not outputs:
        raise click.UsageError(f"A figure needs a file to be written to, such as -o {name}.svg")
    import matplotlib as mpl

    figure = plots.draw(name, width=width)
    with drawing():
        mpl.rc("svg", fonttype="path")
        mpl.rc("pdf", fonttype=42)
        for ending, file in outputs.items():
            metadata = {_DATES[ending]: None}
            data = drawn_file(figure, ending, dpi=300, metadata=metadata)
            save(file, partial(Path.write_bytes, data=data))
    present({"files": [*outputs.values()]}, as_json=as_json)
