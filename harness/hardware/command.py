"""`harness calibrate` and `harness hardware`: what a machine costs, measured within a budget."""

from __future__ import annotations

import math
import os

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import MachineError, SpecError
from harness.base.text import printable
from harness.base.units import parse_duration
from harness.cli.commands.steps import file_option, json_option, results_option
from harness.cli.console import completion
from harness.cli.console.talk import Progress, print_json, show_table, show_text
from harness.clusters import PROVIDERS

_LEAST_S = 120.0  # a start, a warm-up and two jobs, on a machine that is not slow

if TYPE_CHECKING:
    from harness.base.documents.document import Block, Document
    from harness.base.records.hardware import MachineCosts
    from harness.hardware.calibrate import Calibration, CheckedCost


def _seconds(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """Seconds of a duration; an error of the command line where it is none, or too short."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if seconds < _LEAST_S:
        raise click.BadParameter(f"{text} is too short for a cluster and a job; write 2m or more")
    return seconds


@click.command("calibrate")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@results_option
@click.option("--provider", type=click.Choice(list(PROVIDERS)), default="local")
@click.option("--workers", type=click.IntRange(1, 1000), default=3)
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Override one value.")
@click.option(
    "--budget",
    "budget_s",
    callback=_seconds,
    default="10m",
    metavar="TIME",
    help="How long it may take, all in all.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file.")
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Say within a minute which costs of FILE hold here, in the place of a calibration.",
)
@click.option("--dry-run", is_flag=True, help="Show the jobs that it chooses from; start nothing.")
@json_option
def calibrate(
    file: Path | None,
    results_dir: Path,
    provider: str,
    workers: int,
    overrides: tuple[str, ...],
    budget_s: float,
    output: Path | None,
    checked: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """
    Measure what a machine costs by small jobs, until the budget ends, and write it as a file.

    Each job is chosen to narrow most what is not known yet, for each second it takes.  The cluster
    is that of FILE, an experiment, or of the options.  What was interrupted goes on.

    \b
    Example:
        harness calibrate --provider local --budget 10m -o hardware.json
        harness calibrate --set "cluster.node.disk=10 MiB/s" --budget 4m -o slow.json
        harness calibrate --check slow.json
    """
    from harness.core.experiment.file import cluster_text
    from harness.core.run.experiment_file import read_experiment_file
    from harness.core.run.session import Session
    from harness.hardware.calibrate import TEXT, Calibration
    from harness.hardware.transfer import read_hardware

    cluster = f"{{provider: {provider}, workers: {workers}, site: {{dfs.blocksize: 32 MiB}}}}"
    if file is not None:
        cluster = cluster_text(read_experiment_file(file), str(file))
    session = Session(
        TEXT.format(cluster=cluster), str(file or "calibrate"), results_dir, overrides, Progress()
    )
    if output:
        _refuse_unwritable(output)
    hardware = read_hardware(checked) if checked else None
    calibration = Calibration(session, budget_s)
    if dry_run:
        show_table(("job", "tells of"), calibration.offers())
    elif hardware is not None:
        costs = calibration.check(hardware)
        _show_checked(costs, as_json=as_json)
        raise SystemExit(int(any(cost.verdict == "moved" for cost in costs)))
    elif output is None:
        raise click.UsageError("-o FILE names the file to write")
    else:
        _measure(calibration, output, as_json=as_json)


def _refuse_unwritable(output: Path) -> None:
    """`SpecError` for a file that could not be written once the jobs have run."""
    from harness.observe.storage.files import refuse_special

    if not os.access(output.absolute().parent, os.W_OK | os.X_OK):
        fix = "name a file in a folder that is there, and that you may write to"
        raise SpecError("its folder cannot be written to", where=str(output), fix=fix)
    refuse_special(output)


def _show_checked(costs: Sequence[CheckedCost], *, as_json: bool) -> None:
    """Show which costs of a file hold here."""
    columns = ("cost", "verdict", "from", "to")
    if as_json:
        values = [(cost.cost, cost.verdict, cost.from_file, cost.now) for cost in costs]
        print_json({"costs": [dict(zip(columns, row, strict=True)) for row in values]})
    else:
        rows = [
            (cost.cost, cost.verdict, f"{cost.from_file:.3g}", f"{cost.now:.3g}") for cost in costs
        ]
        show_table(columns, rows)


def _measure(calibration: Calibration, output: Path, *, as_json: bool) -> None:
    """Run the jobs of *calibration*, and write what they say into *output*."""
    from harness.hardware.page import machine_document

    run, hardware = calibration.measure()
    try:
        _write(hardware, output)
    except MachineError as error:
        fix = f"free some space, then: harness hardware fit {run.path} -o FILE"
        raise MachineError(error.what, where=error.where, fix=fix) from error
    if as_json:
        print_json(hardware.model_dump(mode="json"))
    else:
        _show(machine_document(output.name, hardware))
    show_text(f"{len(hardware.chosen)} jobs in {hardware.spent_s:.0f} s: {output}")


@click.group("hardware")
def hardware_group() -> None:
    """Show what machines cost, as `harness calibrate` measured it."""


def _write(hardware: MachineCosts, output: Path) -> None:
    from harness.observe.storage.files import json_bytes, write_file

    write_file(output, json_bytes(hardware.model_dump(mode="json")), output.absolute().parent)


@hardware_group.command("fit")
@click.argument("name", metavar="RUN", shell_complete=completion.runs)
@results_option
@click.option(
    "--budget",
    "within_s",
    callback=_seconds,
    metavar="TIME",
    help="Of its jobs take those that had ended then, as if it had ended.",
)
@click.option("--workloads", metavar="A,B", default="", help="Of its jobs take those of these.")
@click.option("--logs", "by_logs", is_flag=True, help="As on a cluster that already runs.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
def fit(
    name: str,
    results_dir: Path,
    within_s: float | None,
    workloads: str,
    by_logs: bool,
    output: Path,
) -> None:
    """
    Write what the recorded jobs of RUN, a calibration or any other, say of its machine.

    \b
    Example:
        harness hardware fit results/calibrate/20261126T024405Z-d1db -o plain.json
        harness hardware fit results/calibrate/20261126T024405Z-d1db --budget 2m -o 2m.json
        harness hardware fit results/calibrate/20261126T024405Z-d1db --workloads sort -o sort.json
    """
    from harness.core.store import Store
    from harness.hardware.calibrate import hardware_of

    run = Store(results_dir).find(name)
    names = [name.strip() for name in workloads.split(",") if name.strip()]
    within_s = within_s or math.inf
    _write(hardware_of(run, within_s=within_s, workloads=names, by_logs=by_logs), output)


_page_option = file_option("--page", help="Write it as a page (HTML).")


@hardware_group.command("show")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--tasks", "name", metavar="RUN", help="What parts of its tasks took, and by FILE.")
@results_option
@_page_option
@json_option
def show(file: Path, name: str | None, results_dir: Path, page: Path | None, as_json: bool) -> None:
    """
    Show the costs in FILE, each with its interval and what it comes from.

    With --tasks, what the parts of recorded tasks took, at the speed of their run, beside what
    their work costs by FILE.

    \b
    Example:
        harness hardware show hardware.json
        harness hardware show hardware.json --tasks 20261121T0323
    """
    from harness.core.store import Store
    from harness.hardware.page import machine_document
    from harness.hardware.transfer import explained, read_hardware

    hardware = read_hardware(file)
    if name:
        rows = explained(hardware, Store(results_dir).find(name))
        columns = ("workload", "part", "took_s", "by_file_s")
        if as_json:
            print_json({"parts": [dict(zip(columns, row, strict=True)) for row in rows]})
        else:
            show_table(
                ("workload", "part", "took, s", "by FILE, s"),
                [(*row[:2], *(f"{seconds:.2f}" for seconds in row[2:])) for row in rows],
            )
        return
    document = machine_document(file.name, hardware)
    if page:
        _write_page(document, page)
    if as_json:
        print_json(hardware.model_dump(mode="json"))
    elif not page:
        _show(document)


@hardware_group.command("compare")
@click.argument("files", metavar="A B", nargs=2, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--profile", "name", metavar="RUN", help="Show where the time of its tasks goes.")
@_page_option
@results_option
@json_option
def compare(
    files: tuple[Path, Path],
    name: str | None,
    page: Path | None,
    results_dir: Path,
    as_json: bool,
) -> None:
    """
    Say which costs of two machines differ beyond their intervals, and on what they were measured.

    \b
    Example:
        harness hardware compare plain.json slow.json
        harness hardware compare plain.json slow.json --profile 20261121T0323
    """
    from harness.core.store import Store
    from harness.hardware.page import pair_document, pairs
    from harness.hardware.transfer import read_hardware, times_by_resource

    old, new = map(read_hardware, files)
    costs = pairs(old, new)
    differing = {
        fact: (old.conditions.get(fact), new.conditions.get(fact))
        for fact in {**old.conditions, **new.conditions}
        if old.conditions.get(fact) != new.conditions.get(fact)
    }
    times = times_by_resource(Store(results_dir).find(name), old, new) if name else []
    document = pair_document([file.name for file in files], costs, differing, times)
    if page:
        _write_page(document, page)
    if as_json:
        places = ("workload", "resource", "one_s", "other_s")
        shares = [dict(zip(places, row, strict=True)) for row in times]
        shown = [cost._asdict() for cost in costs]
        print_json({"costs": shown, "conditions": differing, "times": shares})
    elif not page:
        _show(document)


def _write_page(document: Document, page: Path) -> None:
    from harness.core.reports import REPORTS
    from harness.observe.storage.files import write_file

    write_file(page, REPORTS["html"].render(document).encode(), page.absolute().parent)
    show_text(f"page: {page}")


def _show(document: Document) -> None:
    """Show what is not folded in *document*."""
    from harness.base.documents.document import Table, Text

    blocks: list[Block] = [document.overview] if document.overview else []
    for section in document.sections:
        blocks += section.shown()
    for block in blocks:
        if isinstance(block, Table) and not block.folded:
            show_table(block.columns, block.texts())
            if block.note:
                click.echo(block.note)
        elif isinstance(block, Text):
            click.echo(printable(block.text))


@hardware_group.command("ladder")
@click.argument("name", metavar="RUN")
@click.option("--from", "origin", required=True, metavar="RUN", help="The run on the old machine.")
@click.option(
    "--hardware",
    nargs=2,
    required=True,
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="A B",
    help="The costs of the old machine and of the new one; repeatable, as of several budgets.",
)
@click.option(
    "--with",
    "profiled",
    metavar="RUN",
    multiple=True,
    help="A run of these jobs on the new machine, with profiles of its own; repeatable.",
)
@file_option("--plot", help="Draw it: a line for each model (.svg, .pdf, .png).")
@results_option
@json_option
def show_ladder(
    name: str,
    origin: str,
    hardware: tuple[tuple[Path, Path], ...],
    profiled: tuple[str, ...],
    plot: Path | None,
    results_dir: Path,
    as_json: bool,
) -> None:
    """
    Say what each way of predicting RUN, on a new machine, from an earlier run is worth.

    \b
    Example:
        harness hardware ladder 20261122T0411 --from 20261121T0323 --hardware plain.json slow.json
    """
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Store
    from harness.hardware.ladder import (
        draw_ladder,
        ladder,
        ladder_table,
        profiled_way,
        transferred_ways,
    )

    store = Store(results_dir)
    target = Evaluation.of(store.find(name))
    source = store.find(origin)
    moved, differing = transferred_ways(source, hardware, target.cells.values())
    for run_name in profiled:
        way, profiles = profiled_way(store.find(run_name))
        moved[way] = profiles
    for difference in differing:
        show_text(f"warning: costs of another machine: {difference}")
    rungs = [*ladder(target, source, moved)]
    if plot:
        draw_ladder(plot, rungs)
    if as_json:
        numbers = [
            {**rung._asdict(), "error": rung.error, "covered": rung.covered} for rung in rungs
        ]
        print_json({"rungs": numbers})
    else:
        show_table(*ladder_table(target, rungs))
