"""``harness profile``: fit statistics and costs on the profiling trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.experiment import experiment_arguments, session

if TYPE_CHECKING:
    from harness.records.profile import Statistic


@click.command("profile")
@experiment_arguments
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: Path, results_dir: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """
    Fit one profile per workload on the profiling trials of the newest run of FILE.

    \b
    Example:
        harness profile experiments/quick.yaml
    """
    from harness.cli.console import print_json, table

    profiles = session(file, results_dir, overrides).evaluation().profile()
    if as_json:
        print_json({"profiles": [p.model_dump(mode="json") for p in profiles.values()]})
        return
    rows = [
        (
            name,
            key,
            f"{s.value:.4g}",
            f"{s.spread:.2g}",
            s.count,
            _source(s),
        )
        for name, p in profiles.items()
        for key, s in {**p.statistics, **p.costs, **p.overheads}.items()
    ]
    table(("workload", "statistic", "value", "spread", "count", "source"), rows)
    for name, p in profiles.items():
        for group in p.groups:
            click.echo(
                f"{name}: one sum stands for {', '.join(group.names)}."
                " The profiling cells cannot tell them apart: how it is shared is assumed.\n"
            )


def _source(s: Statistic) -> str:
    return f"assumed: its share of {len(s.group) + 1} costs" if s.assumed else s.source
