"""``harness import`` and ``harness backtest``: models tried on jobs that have run before."""

from __future__ import annotations

import shlex
import sys

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import SpecError
from harness.cli.commands.steps import json_option, results_option
from harness.cli.console import completion
from harness.cli.console.talk import print_json, show_table, show_text
from harness.past.catalog_command import show_left_out

if TYPE_CHECKING:
    from harness.past.imports import Imported

_folder = click.Path(path_type=Path, file_okay=False)
_moment = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.command("import")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=_folder, metavar="RUN", help="A new folder.")
@click.option(
    "--profile-share",
    "share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.5,
    help="Share of the jobs of each family, the earliest, that feeds its profile.",
)
@click.option(
    "--profile-until",
    "until",
    type=_moment,
    metavar="MOMENT",
    help="Feed it with those submitted before that moment (UTC) instead.",
)
@click.option(
    "--logs",
    metavar="PLACE",
    help="Logs of their tasks: a folder, or http://HISTORYSERVER:19888.",
)
@click.option("--anonymise", is_flag=True, help="Store pseudonyms of hosts, users, queues, jobs.")
@json_option
def import_histories(
    sources: tuple[str, ...],
    output: Path,
    share: float,
    until: datetime | None,
    logs: str | None,
    anonymise: bool,
    as_json: bool,
) -> None:
    """
    Make a run of jobs that have run before, from their histories: without Hadoop or a cluster.

    A SOURCE is a folder of .jhist files with the _conf.xml of each beside it, a copy of Hadoop's
    done tree, or a run, of which the histories and configurations alone are taken.  Jobs of the
    same name and classes are a family: its earlier jobs feed the profile, and 'harness backtest'
    scores the later ones.  What cannot be used is named with its reason, and the rest goes on: exit
    status 6.

    With --logs the models that need times from inside tasks (prophet, ptc) are scored, too: PLACE
    has container_.../syslog below it, as yarn.nodemanager.log-dirs of the nodes have, or is a
    history server with what YARN has aggregated.

    \b
    Example:
        harness import done/2026/11 -o results/november
        harness import done --logs http://history:19888 -o results/november
        harness import done --profile-until 2026-11-01 --anonymise -o results/november
    """
    from harness.base.hadoop.secrets import SECRETS
    from harness.past.container_logs import ContainerLogs
    from harness.past.imports import import_jobs

    if logs and anonymise:
        what = "logs of tasks name hosts and paths"
        raise SpecError(what, where="--anonymise", fix="leave --logs out")

    def anonymiser(files: Iterable[bytes], names: Mapping[str, str]) -> Callable[[bytes], bytes]:
        from harness.core.pseudonyms import Pseudonyms

        return Pseudonyms.of_files(files, names).data

    command = "harness import SOURCE... --anonymise"  # paths may name somebody
    imported = import_jobs(
        sources,
        output,
        share=share,
        until_s=until.replace(tzinfo=UTC).timestamp() if until else None,
        logs=ContainerLogs(logs) if logs else None,
        command=command if anonymise else SECRETS.clean(shlex.join(["harness", *sys.argv[1:]])),
        anonymiser=anonymiser if anonymise else None,
    )
    if as_json:
        print_json({**imported._asdict(), "run": imported.run.path})
    else:
        _show_imported(imported)
        show_text(f"next: harness backtest {output}")
    if imported.left_out:
        raise SystemExit(6)


def _show_imported(imported: Imported) -> None:
    """Show the families of a run that was made, notes on them, and what was left out."""
    show_table([*imported.families[0]], [[*family.values()] for family in imported.families])
    for note in imported.notes:
        show_text(note)
    show_left_out([*imported.left_out.items()], len(imported.left_out))


@click.command("backtest")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@results_option
@click.option("--model", "models", multiple=True, help="A model to try (default: all); repeatable.")
@json_option
def backtest(run: str, results_dir: Path, models: tuple[str, ...], as_json: bool) -> None:
    """
    Profile, predict and score a RUN of imported jobs, and write its report.

    Predictions follow from the earlier jobs alone, and are sealed; a report says that the later
    ones had run by then.  A model that needs what no history has is not applicable, by the name of
    that.  Where other models are sealed already, the answer is an analysis of the run.

    \b
    Example:
        harness backtest results/november
        harness backtest results/november --model whatif --model ernest --json
    """
    from harness.core.reports import REPORTS
    from harness.core.store import Store
    from harness.past.imports import backtest as try_models

    imported = Store(results_dir).find(run)
    document = try_models(imported, models)
    click.echo(REPORTS["json" if as_json else "terminal"].render(document))
    show_text(f"run: {imported.path}")
