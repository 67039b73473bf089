"""``harness plan``: the trials of an experiment, and what they will take."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


@click.command("plan")
@experiment_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: Path, results_dir: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """
    List every trial of FILE, done ones marked, with a time estimate; start nothing.

    \b
    Example:
        harness plan experiments/quick.yaml
        harness plan experiments/quick.yaml --set repeat=1 --json
    """
    from harness.run.plan import plan_json

    show_plan(plan_json(session(file, results_dir, overrides).plan()), as_json=as_json)


def show_plan(document: dict[str, object], *, as_json: bool) -> None:
    """Print a plan as JSON or as a table."""
    from harness.cli.console import print_json, table
    from harness.units import format_duration

    if as_json:
        print_json(document)
        return
    trials = document["trials"]
    assert isinstance(trials, list)
    table(
        ("trial", "cell", "repetition", "use", "state"),
        [
            (
                t["id"],
                t["label"],
                t["repetition"],
                "profile" if t["profiling"] else "score",
                t["state"],
            )
            for t in trials
        ],
    )
    estimate = document["estimate_s"]
    assert isinstance(estimate, float | int)
    click.echo(f"{len(trials)} trials, about {format_duration(estimate)} to go")
