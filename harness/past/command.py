"""``harness import`` and ``harness backtest``: models tried on jobs that have run before."""

from __future__ import annotations

import shlex
import sys

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from harness.base.documents.wording import by_number, count
from harness.base.errors import SpecError
from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    folder_option,
    json_option,
    model_option,
    results_option,
    rules_option,
)
from harness.cli.console.present import Note, Part, Rows, present, require_answer, show
from harness.past.catalog_command import shown_left_out

if TYPE_CHECKING:
    from harness.past.imports import Imported

_moment = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@command("import")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@folder_option("-o", "--output", required=True, metavar="RUN", help="A new folder.")
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
    help="Logs of their tasks: a folder, a file of many, or http://HISTORYSERVER:19888.",
)
@rules_option
@click.option("--anonymise", is_flag=True, help="Store pseudonyms of hosts, users, queues, jobs.")
@json_option
def import_histories(
    sources: tuple[str, ...],
    output: Path,
    share: float,
    until: datetime | None,
    logs: str | None,
    rules: Path | None,
    anonymise: bool,
    as_json: bool,
) -> None:
    """
    Make a run of jobs that have run before, from their histories: without Hadoop or a cluster.

    A SOURCE is a folder of .jhist files with the _conf.xml of each beside it, a copy of Hadoop's
    done tree, or a run, of which the histories and configurations alone are taken.  Jobs of the
    same name and classes are a family: its earlier jobs feed the profile, and 'harness backtest'
    scores the later ones.  What cannot be used is named with its reason, Tez and Spark applications
    are counted, and the rest goes on: exit status 6.

    With --logs the models that need times from inside tasks (prophet, ptc) are scored, too: PLACE
    has container_.../syslog below it, as yarn.nodemanager.log-dirs of the nodes have, or what YARN
    has aggregated or 'yarn logs' printed, or is a history server.  Logs that are not whole are
    counted by what they lack, and not used.

    \b
    Example:
        harness import done/2026/11 -o results/november
        harness import done --logs http://history:19888 -o results/november
        harness import done --logs yarn-logs.txt -o results/november
        harness import done --profile-until 2026-11-01 --anonymise -o results/november
    """
    from harness.base.hadoop.secrets import SECRETS
    from harness.catalog.families import read_rules
    from harness.past.container_logs import ContainerLogs
    from harness.past.imports import import_jobs

    if logs and anonymise:
        what = "logs of tasks name hosts and paths"
        raise SpecError(what, where="--anonymise", fix="leave --logs out")

    def anonymiser(files: Iterable[bytes], names: Mapping[str, str]) -> Callable[[bytes], bytes]:
        from harness.pseudonyms.names import Pseudonyms

        return Pseudonyms.of_files(files, names).data

    anonymous_command = "harness import SOURCE... --anonymise"  # paths may name somebody
    typed_command = SECRETS.clean(shlex.join(["harness", *sys.argv[1:]]))
    with TemporaryDirectory(prefix="harness-logs-") as scratch:
        container_logs = ContainerLogs(logs, Path(scratch)) if logs else None
        imported = import_jobs(
            sources,
            output,
            share=share,
            until_s=until.replace(tzinfo=UTC).timestamp() if until else None,
            logs=container_logs,
            rules=read_rules(rules) if rules else None,
            command=anonymous_command if anonymise else typed_command,
            anonymiser=anonymiser if anonymise else None,
        )
    answer = {**imported._asdict(), "run": imported.run.path}
    if container_logs is not None:
        answer["logs"] = {"tasks": container_logs.counts.total(), **container_logs.counts}
    present(answer, shown_import(imported, output), as_json=as_json)
    if imported.left_out or imported.applications:
        raise SystemExit(6)


def shown_import(imported: Imported, output: Path) -> Iterator[Part]:
    """How many jobs make a run, its families, notes on them, what was left out, what is next."""
    yield imported_sentence(imported)
    yield Rows([*imported.families[0]], [[*family.values()] for family in imported.families])
    for note in imported.notes:
        yield Note(note)
    yield from shown_left_out([*imported.left_out.items()], len(imported.left_out))
    yield from map(Note, next_steps(imported, output))


def imported_sentence(imported: Imported) -> str:
    """How many jobs there are, of how many families, how many are scored, and what is left out."""
    jobs, profiled, scored = (
        sum(family[use] for family in imported.families) for use in ("jobs", "profiled", "scored")
    )
    number = len(imported.families)
    families = f"{number} {by_number(number, 'family', 'families')}"
    other_number = sum(found["count"] for found in imported.applications.values())
    applications = f", and {count(other_number, 'application')} that are no jobs"
    applications *= bool(other_number)
    left_out = f"{count(len(imported.left_out), 'file')} left out{applications}"
    return (
        f"{count(jobs, 'job')} of {families}: {profiled} feed profiles, {scored} are to be scored;"
        f" {left_out}"
    )


def next_steps(imported: Imported, output: Path) -> Iterator[str]:
    """What can be asked of a run that was made: where nothing is scored, how to tune its jobs."""
    if any(family["scored"] for family in imported.families):
        yield f"next: harness backtest {output}"
    else:
        yield f"next: harness profile {output}"
        named = "" if len(imported.families) == 1 else " --workload NAME"
        yield f"then: harness tune {output}{named}"


@command("backtest")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@results_option
@model_option(help="A model to try (default: all); repeatable.")
@json_option
def backtest(run: str, results_dir: Path, models: tuple[str, ...], as_json: bool) -> None:
    """
    Profile, predict and score a RUN of imported jobs, and write its report.

    Predictions follow from the earlier jobs alone, and are sealed; a report says that the later
    ones had run by then.  A model that needs what no history has is not applicable, by the name of
    that; where no model is applicable the exit status is 7.  Where other models are sealed already,
    the answer is an analysis of the run.

    \b
    Example:
        harness backtest results/november
        harness backtest results/november --model whatif --model ernest --json
    """
    from harness.core.store import Store
    from harness.past.imports import backtest as try_models

    imported = Store(results_dir).find(run)
    document = try_models(imported, models)
    present(document, as_json=as_json)
    show(Note(f"run: {imported.path}"))
    require_answer(document, imported.path)
