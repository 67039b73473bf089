"""``harness profile``: fit statistics and costs on the profiling trials."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session


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
            f"assumed, with {', '.join(s.group)}" if s.assumed else s.source,
        )
        for name, p in profiles.items()
        for key, s in {**p.statistics, **p.costs, **p.overheads}.items()
    ]
    table(("workload", "statistic", "value", "spread", "count", "source"), rows)
