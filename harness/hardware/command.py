"""`harness calibrate` and `harness hardware`: what a machine costs, measured within a budget."""

from __future__ import annotations

import math

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.documents.wording import count
from harness.base.errors import MachineError
from harness.cli.console import completion
from harness.cli.console.command import command, group
from harness.cli.console.options import (
    PICTURES,
    duration_s,
    file_option,
    json_option,
    open_evaluation,
    outputs_option,
    results_option,
    set_option,
    workloads_option,
)
from harness.cli.console.present import Note, Part, Rows, block_parts, present, save, show
from harness.cli.console.talk import Progress
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
    seconds = duration_s(text)
    if seconds < _LEAST_S:
        raise click.BadParameter(f"{text} is too short for a cluster and a job; write 2m or more")
    return seconds


@command("calibrate")
@click.argument(
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=False,
    shell_complete=completion.experiments,
)
@results_option
@click.option(
    "--provider",
    type=click.Choice(list(PROVIDERS)),
    default="local",
    help="What makes the cluster (harness list providers).",
)
@click.option("--workers", type=click.IntRange(1, 1000), default=3, help="Number of worker nodes.")
@set_option
@click.option(
    "--budget",
    "budget_s",
    callback=_seconds,
    default="10m",
    metavar="TIME",
    help="How long it may take, all in all.",
)
@file_option("-o", "--output", help="Write the costs there.")
@file_option(
    "--check",
    "checked",
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
    from harness.hardware.words import check_says

    cluster = f"{{provider: {provider}, workers: {workers}, site: {{dfs.blocksize: 32 MiB}}}}"
    if file is not None:
        cluster = cluster_text(read_experiment_file(file), str(file))
    session = Session(
        TEXT.format(cluster=cluster), str(file or "calibrate"), results_dir, overrides, Progress()
    )
    if output:
        from harness.observe.storage.files import refuse_unwritable

        refuse_unwritable(output)
    hardware = read_hardware(checked) if checked else None
    calibration = Calibration(session, budget_s)
    if dry_run:
        offers = Rows(("job", "tells of"), [*calibration.offers()])
        present({"jobs": offers.records()}, [offers], as_json=as_json)
    elif hardware is not None:
        costs = calibration.check(hardware)
        says = check_says(costs)
        judge = {"judge": None, "judge_error": None, "rests_on": {"jobs": 2}}
        answer = {"says": says, **judge, "costs": checked_table(costs).records()}
        present(answer, [says, shown_checked(costs)], as_json=as_json)
        raise SystemExit(int(any(cost.verdict == "moved" for cost in costs)))
    elif output is None:
        raise click.UsageError("-o FILE names the file to write")
    else:
        _measure(calibration, output, as_json=as_json)


def checked_table(costs: Sequence[CheckedCost]) -> Rows:
    """Which costs of a file hold here."""
    columns = ("cost", "verdict", "from", "to")
    return Rows(columns, [(cost.cost, cost.verdict, cost.from_file, cost.now) for cost in costs])


def shown_checked(costs: Sequence[CheckedCost]) -> Rows:
    """The same for people."""
    from harness.base.records.statistics import MACHINE_COSTS
    from harness.hardware.words import readable

    rows = []
    for cost in costs:
        unit = MACHINE_COSTS[cost.cost].unit
        values = [readable(value, [cost.cost], unit) for value in (cost.from_file, cost.now)]
        rows.append((cost.cost, cost.verdict, *values))
    return Rows(checked_table(costs).columns, rows)


def _measure(calibration: Calibration, output: Path, *, as_json: bool) -> None:
    """Run the jobs of *calibration*, and write what they say into *output*."""
    from harness.hardware.page import machine_document

    run, hardware = calibration.measure()
    try:
        _write(hardware, output)
    except MachineError as error:
        fix = f"free some space, then: harness hardware fit {run.path} -o FILE"
        raise MachineError(error.what, where=error.where, fix=fix) from error
    shown = shown_document(machine_document(output.name, hardware))
    present(_machine_answer(hardware), shown, as_json=as_json)
    show(Note(f"{count(len(hardware.chosen), 'job')} in {hardware.spent_s:.0f} s: {output}"))


def _machine_answer(hardware: MachineCosts) -> dict[str, Any]:
    """The costs of a machine as JSON has them, in SI units, with what they say and rest on."""
    from harness.hardware.words import machine_says

    rests_on = {"jobs": len(hardware.chosen), "seconds": hardware.spent_s}
    judge = {"judge": None, "judge_error": None, "rests_on": rests_on}
    return {"says": machine_says(hardware), **judge, **hardware.model_dump(mode="json")}


@group("hardware")
def hardware_group() -> None:
    """
    Show what machines cost, as `harness calibrate` measured it.

    \b
    Example:
        harness hardware show hardware.json
        harness hardware compare plain.json slow.json
    """


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
@workloads_option(help="Of its jobs take those of this workload; repeatable.")
@click.option(
    "--logs-only", "by_logs", is_flag=True, help="As on a cluster that already runs: no recordings."
)
@file_option("-o", "--output", required=True, help="Write the costs there.")
@json_option
def fit(
    name: str,
    results_dir: Path,
    within_s: float | None,
    workloads: tuple[str, ...],
    by_logs: bool,
    output: Path,
    as_json: bool,
) -> None:
    """
    Write what the recorded jobs of RUN, a calibration or any other, say of its machine.

    \b
    Example:
        harness hardware fit results/calibrate/20261126T024405Z-d1db -o plain.json
        harness hardware fit results/calibrate/20261126T024405Z-d1db --budget 2m -o 2m.json
        harness hardware fit results/calibrate/20261126T024405Z-d1db --workload sort -o sort.json
    """
    from harness.hardware.calibrate import hardware_of

    run = open_evaluation(name, results_dir, asks=True).run
    within_s = within_s or math.inf
    hardware = hardware_of(run, within_s=within_s, workloads=workloads, by_logs=by_logs)
    _write(hardware, output)
    present(partial(hardware.model_dump, mode="json"), as_json=as_json)


_tasks_option = partial(
    click.option, "--tasks", "name", metavar="RUN", shell_complete=completion.runs
)
_page_option = outputs_option("Write it as a page (.html).", ".html")


@hardware_group.command("show")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_tasks_option(help="What parts of its tasks took, and by FILE.")
@results_option
@_page_option
@json_option
def show_costs(
    file: Path,
    name: str | None,
    results_dir: Path,
    outputs: Mapping[str, Path],
    as_json: bool,
) -> None:
    """
    Show the costs in FILE, each with its interval and what it comes from.

    With --tasks, what the parts of recorded tasks took, at the speed of their run, beside what
    their work costs by FILE.

    \b
    Example:
        harness hardware show hardware.json
        harness hardware show hardware.json --tasks 20261121T0323
    """
    from harness.hardware.page import machine_document
    from harness.hardware.transfer import explained, read_hardware

    hardware = read_hardware(file)
    if name:
        rows = explained(hardware, open_evaluation(name, results_dir, asks=True).run)
        parts = Rows(("workload", "part", "took_s", "by_file_s"), rows)
        texts = [(*row[:2], *(f"{seconds:.2f}" for seconds in row[2:])) for row in rows]
        shown = Rows(("workload", "part", "took, s", "by FILE, s"), texts)
        present({"parts": parts.records()}, [shown], as_json=as_json)
        return
    document = machine_document(file.name, hardware)
    _write_page(document, outputs)
    present(
        _machine_answer(hardware),
        () if outputs else shown_document(document),
        as_json=as_json,
    )


@hardware_group.command("compare")
@click.argument("files", metavar="A B", nargs=2, type=click.Path(path_type=Path, dir_okay=False))
@_tasks_option(help="Show where the time of its tasks goes.")
@_page_option
@results_option
@json_option
def compare(
    files: tuple[Path, Path],
    name: str | None,
    outputs: Mapping[str, Path],
    results_dir: Path,
    as_json: bool,
) -> None:
    """
    Say which costs of two machines differ beyond their intervals, and on what they were measured.

    \b
    Example:
        harness hardware compare plain.json slow.json
        harness hardware compare plain.json slow.json --tasks 20261121T0323
    """
    from harness.hardware.page import pair_document
    from harness.hardware.rows import pairs
    from harness.hardware.transfer import read_hardware, times_by_resource
    from harness.hardware.words import pair_says

    old, new = map(read_hardware, files)
    costs = pairs(old, new)
    differing = {
        fact: (old.conditions.get(fact), new.conditions.get(fact))
        for fact in {**old.conditions, **new.conditions}
        if old.conditions.get(fact) != new.conditions.get(fact)
    }
    times = []
    if name:
        times = times_by_resource(open_evaluation(name, results_dir, asks=True).run, old, new)
    names = [file.name for file in files]
    jobs = " and ".join(str(len(machine.chosen)) for machine in (old, new))
    says = pair_says(names, costs, f"it rests on {jobs} jobs")
    document = pair_document(names, costs, differing, times, says)
    _write_page(document, outputs)
    shares = Rows(("workload", "resource", "one_s", "other_s"), times)
    answer = {
        "says": says,
        "judge": None,
        "judge_error": None,
        "rests_on": {"jobs": [len(machine.chosen) for machine in (old, new)]},
        "costs": [cost.document() for cost in costs],
        "conditions": differing,
        "times": shares.records(),
    }
    present(answer, () if outputs else shown_document(document), as_json=as_json)


def _write_page(document: Document, outputs: Mapping[str, Path]) -> None:
    """Write *document* where the user named a page among the *outputs*."""
    from harness.core.reports import REPORTS
    from harness.observe.storage.files import write_file

    page = outputs.get(".html")
    if page is not None:
        write_file(page, REPORTS["html"].render(document).encode(), page.absolute().parent)
        show(Note(f"page: {page}"))


def shown_document(document: Document) -> Iterator[Part]:
    """What it says in one sentence, and what is not folded in *document*."""
    yield document.headline
    blocks: list[Block] = [document.overview] if document.overview else []
    for section in document.sections:
        blocks += section.shown()
    yield from block_parts(blocks)


@hardware_group.command("ladder")
@click.argument("name", metavar="RUN", shell_complete=completion.runs)
@click.option(
    "--from",
    "origin",
    required=True,
    metavar="RUN",
    shell_complete=completion.runs,
    help="Take the profiles of this run, on the old machine.",
)
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
    shell_complete=completion.runs,
    help="A run of these jobs on the new machine, with profiles of its own; repeatable.",
)
@outputs_option("Draw it: a line for each model (.svg, .pdf, .png).", *PICTURES)
@results_option
@json_option
def show_ladder(
    name: str,
    origin: str,
    hardware: tuple[tuple[Path, Path], ...],
    profiled: tuple[str, ...],
    outputs: Mapping[str, Path],
    results_dir: Path,
    as_json: bool,
) -> None:
    """
    Say what each way of predicting RUN, on a new machine, from an earlier run is worth.

    \b
    Example:
        harness hardware ladder 20261122T0411 --from 20261121T0323 --hardware plain.json slow.json
    """
    from harness.hardware.ladder import (
        draw_ladder,
        ladder,
        ladder_answer,
        ladder_table,
        profiled_way,
        transferred_ways,
    )

    target = open_evaluation(name, results_dir)
    source = open_evaluation(origin, results_dir).run
    moved, differing = transferred_ways(source, hardware, target.cells.values())
    for run_name in profiled:
        way, profiles = profiled_way(open_evaluation(run_name, results_dir).run)
        moved[way] = profiles
    for difference in differing:
        show(Note(f"warning: costs of another machine: {difference}"))
    rungs = [*ladder(target, source, moved)]
    for picture in outputs.values():
        save(picture, partial(draw_ladder, rungs=rungs))
    numbers = [{**rung._asdict(), "error": rung.error, "covered": rung.covered} for rung in rungs]
    columns, rows = ladder_table(target, rungs)
    answer = ladder_answer(rungs, target)
    present({**answer, "rungs": numbers}, [answer["says"], Rows(columns, rows)], as_json=as_json)
