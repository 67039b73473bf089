"""What the commands that work on an experiment file share: their arguments, their session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.cli import completion

if TYPE_CHECKING:
    from harness.run.session import Session

F = TypeVar("F", bound=Callable[..., Any])

results_option = click.option(
    "--results-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    envvar="HARNESS_RESULTS_DIR",
    help="Folder of all results.",
)


def experiment_arguments(function: F) -> F:
    """Add FILE, --results-dir and --set to a command."""
    for decorate in (
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="A.B=C",
            help="Override one value of the file; repeatable.",
            shell_complete=completion.overrides,
        ),
        results_option,
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        function = decorate(function)
    return function


def session(file: Path, results_dir: Path, overrides: tuple[str, ...]) -> Session:
    """Open the session of an experiment file; `SpecError` where the file cannot be read."""
    from harness.cli.console import Progress
    from harness.run.session import Session, read_experiment_file

    text = read_experiment_file(file)
    return Session(text, str(file), results_dir, overrides, Progress())
