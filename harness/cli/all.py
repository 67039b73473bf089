"""``harness all``: every step from an experiment file to its report."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.experiment import experiment_arguments, session
from harness.cli.plan import show_plan
from harness.cli.run import measure, run_options


@click.command("all")
@experiment_arguments
@run_options
@click.option("--dry-run", is_flag=True, help="Print the plan and start nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    file: Path,
    results_dir: Path,
    overrides: tuple[str, ...],
    on_error: tuple[str, int],
    new: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """
    Run FILE to its end: measure, profile, predict, score, report.

    The same as the commands run, profile, predict, score and report, one after the other.

    \b
    Example:
        harness all experiments/demo.yaml
        harness all experiments/quick.yaml --set cluster.workers=2 --dry-run
    """
    from harness.cli.console import talk
    from harness.reports import REPORTS
    from harness.run.plan import plan_json

    opened = session(file, results_dir, overrides)
    if dry_run:
        show_plan(plan_json(opened.plan()), as_json=as_json)
        return
    run, failed = measure(opened, on_error, new=new)
    evaluation = opened.evaluation(run)
    evaluation.profile()
    evaluation.predict()
    evaluation.score()
    paths = evaluation.report()
    data = evaluation.report_data()
    click.echo(REPORTS["json" if as_json else "terminal"].render(data))
    talk(f"report: {paths[0]}")
    if failed:
        raise SystemExit(6)
