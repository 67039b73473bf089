"""``harness reproduce``: the stored results of a run, made again by the present code."""

from __future__ import annotations

import tempfile

from pathlib import Path

import click

from harness.cli.console import print_json, show_table, show_text
from harness.cli.steps import json_option

_MOST_SHOWN = 20
_GIVEN = ("raw", "trace", "profiles", "predictions")


@click.command("reproduce")
@click.argument("run_path", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "given",
    type=click.Choice(_GIVEN),
    default="raw",
    show_default=True,
    help="What is taken as it is stored; all that follows is made again.",
)
@json_option
def reproduce(run_path: Path, given: str, as_json: bool) -> int:
    """
    Make the results of RUN, the folder of a run, again, and compare them with what is stored.

    The present code makes traces, profiles, predictions and scores in a scratch folder; RUN stays
    as it is.  Needs neither Hadoop nor Java.  Exit status 1: something differs; 7: the run cannot
    be read, or was tampered with.

    \b
    Example:
        harness reproduce results/quick/20261121T032309Z-4f26
        harness reproduce results/quick/20261121T032309Z-4f26 --from profiles --json
    """
    from harness.run.reproduce import reproduce as reproduce_stages
    from harness.store import Run

    with tempfile.TemporaryDirectory(prefix="harness-reproduce-") as folder:
        stages = list(reproduce_stages(Run(run_path), Path(folder), given))
    differs = [difference for _, differences in stages for difference in differences]
    if as_json:
        documents = [
            {"stage": stage, "equal": not several, "differs": [each._asdict() for each in several]}
            for stage, several in stages
        ]
        print_json({"stages": documents})
        return int(bool(differs))
    counts = [(stage, "no" if several else "yes", len(several)) for stage, several in stages]
    show_table(("stage", "equal", "differences"), counts)
    if differs:
        columns = ("model", "name", "stored", "made again", "relative difference")
        show_table(columns, differs[:_MOST_SHOWN])
    if len(differs) > _MOST_SHOWN:
        show_text(f"{len(differs) - _MOST_SHOWN} more: --json has them")
    return int(bool(differs))
