"""``harness run``: measure the trials of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completion
from harness.cli.experiment import F, experiment_arguments, session

if TYPE_CHECKING:
    from harness.run.session import Session
    from harness.store import Run


class OnError(click.ParamType[tuple[str, int]]):
    """``stop``, ``skip`` or ``retry:N``; converts to a policy and a number of retries."""

    name = "stop|skip|retry:N"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, int]:
        """Read the policy; usage error for anything else."""
        if isinstance(value, tuple):
            return value
        if value in {"stop", "skip"}:
            return value, 0
        word, _, number = str(value).partition(":")
        if word == "retry" and number.isdecimal() and 1 <= int(number) <= 10:
            return "skip", int(number)
        return self.fail(f"{value!r} is not stop, skip or retry:N with N from 1 to 10", param, ctx)


def run_options(function: F) -> F:
    """Add what decides how trials are run."""
    for decorate in (
        click.option("--new", is_flag=True, help="Open a new run even if one is unfinished."),
        click.option(
            "--on-error",
            type=OnError(),
            default="skip",
            show_default=True,
            help="What to do when a trial fails.",
            shell_complete=completion.policies,
        ),
    ):
        function = decorate(function)
    return function


def measure(opened: Session, on_error: tuple[str, int], *, new: bool) -> tuple[Run, int]:
    """Run what is missing, and say what came of it."""
    from harness.cli.console import talk

    policy, retries = on_error
    run, failed = opened.measure(
        on_error="stop" if policy == "stop" else "skip", retries=retries, new=new
    )
    talk(f"run {run.path}: {len(opened.trials) - failed} trials done, {failed} failed")
    return run, failed


@click.command("run")
@experiment_arguments
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    file: Path,
    results_dir: Path,
    overrides: tuple[str, ...],
    on_error: tuple[str, int],
    new: bool,
    as_json: bool,
) -> None:
    """
    Measure the trials of FILE that are not done yet, on a cluster of its own.

    Continues the newest unfinished run of the experiment, or opens one. A run can be interrupted
    at any moment: the next call goes on where it was.

    \b
    Example:
        harness run experiments/quick.yaml --on-error retry:1
    """
    from harness.cli.console import print_json

    opened = session(file, results_dir, overrides)
    run, failed = measure(opened, on_error, new=new)
    if as_json:
        print_json({"run": run.path, "done": len(opened.trials) - failed, "failed": failed})
    if failed:
        raise SystemExit(6)
