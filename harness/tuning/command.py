"""`harness tune`: the settings with the shortest job, by a model, and what its choice is worth."""

from __future__ import annotations

import shlex
import time

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import SpecError
from harness.cli.console import completion
from harness.cli.console.command import FirstByDefault, group
from harness.cli.console.options import (
    catalog_option,
    file_option,
    folder_option,
    json_option,
    model_option,
    open_evaluation,
    results_option,
    run_argument,
    setting_option,
    workload_option,
)
from harness.cli.console.present import Note, Part, Rows, present, show
from harness.cli.console.talk import QUIET_S, Progress

if TYPE_CHECKING:
    from harness.base.records.trial import ClusterSpec, NodeSpec
    from harness.core.evaluate.basis import Basis
    from harness.core.evaluate.flow import Evaluation
    from harness.tuning.closed_loop import Outcome, Tuning


_SHOWN = 10  # of the plans for a cluster


@group("tune", cls=FirstByDefault)
def tune() -> None:
    """
    Choose the settings of a job by a model; say what such choices are worth.

    \b
    Example:
        harness tune 20261121T0323 --workload terasort -o job.xml
        harness tune regret 20261121T0323
    """


@tune.command("job")
@click.argument("source", metavar="RUN|JOB", shell_complete=completion.runs)
@results_option
@catalog_option
@workload_option
@setting_option(help="Change the job first; repeatable.")
@model_option(help="A model to search by; repeatable.")
@click.option(
    "--optimizer",
    "optimizers",
    type=click.Choice(["hadoop", "rules", "rules-1.75", "mrtuner", "search"]),
    multiple=True,
    help="Who chooses (default: all); repeatable.",
)
@click.option(
    "--judge",
    metavar="MODEL",
    shell_complete=completion.models,
    help="The model that prices all choices (default: the run's nearest).",
)
@click.option("--evaluations", type=click.IntRange(0, 10_000_000), default=0, help="Of a search.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, help="Of a search.")
@click.option("--try", "steps", type=click.IntRange(1, 100), help="Measure so many proposals.")
@click.option("--repeats", type=click.IntRange(2, 20), default=2, help="Of each cell, with --try.")
@click.option("--new", "anew", is_flag=True, help="Measure steps anew that are there, with --try.")
@file_option("-o", "--output", help="Write the best one's properties there, as a job.xml.")
@json_option
def tune_job(
    source: str,
    results_dir: Path,
    folder: Path,
    workload: str | None,
    settings: tuple[str, ...],
    models: tuple[str, ...],
    optimizers: tuple[str, ...],
    judge: str | None,
    steps: int | None,
    repeats: int,
    anew: bool,
    output: Path | None,
    as_json: bool,
    **search_options: int,
) -> None:
    """
    Choose settings for the largest scored cell of RUN; no job is run without --try.

    JOB is the id of a job in the catalog: its own settings are the base, and the histories of its
    family make the profile.
    Each --setting changes one thing of it before, as 'harness ask' does: its input, the slots.
    Hadoop's defaults, the rules of thumb, MRTuner's four factors by PTC, and a search over each
    model are priced by one model, the judge: by default that with the smallest error in RUN.
    With --try the best proposal is measured beside RUN's own cell and the best one so far, by
    interleaved repeats, what was measured feeds the next proposal, and so on: until it is expected
    to save less than the noise.  What was interrupted goes on.

    \b
    Example:
        harness tune 20261121T0323 --workload terasort -o job.xml
        harness tune job 20261121T0323 --model prophet --optimizer search
        harness tune 20261121T0323 --workload wordcount --setting input='10 GiB'
        harness tune job_1795224441974_0001
        harness tune 20261121T0323 --workload wordcount --try 4
        harness tune regret 20261121T0323
    """
    from harness.catalog.catalog import Catalog
    from harness.catalog.sources import JOB
    from harness.core.evaluate.basis import basis_of_run
    from harness.core.run.preflight import known_names
    from harness.models import require_models
    from harness.tuning.closed_loop import Tuning
    from harness.tuning.past_basis import basis_of_past_job
    from harness.tuning.proposals import changed_basis, nearest_model

    require_models(models, "--model")
    require_models(filter(None, [judge]), "--judge")
    if output is not None:
        from harness.observe.storage.files import refuse_unwritable

        refuse_unwritable(output)
    if JOB.fullmatch(source):
        if steps:
            fix = "try its properties there, or name a run that was measured"
            raise SpecError("its cluster cannot be started from here", where="--try", fix=fix)
        basis = basis_of_past_job(Catalog(folder), source)
    else:
        evaluation = open_evaluation(source, results_dir, asks=True)
        basis = basis_of_run(evaluation, workload or "")
    if settings:
        basis = changed_basis(basis, settings, known_names())
    judge = judge or nearest_model(basis)
    properties: Mapping[str, str] | None
    if not steps:
        properties = _propose(basis, judge, optimizers, models, search_options, as_json=as_json)
    elif models or optimizers or search_options["evaluations"]:
        what = "--try proposes by MRTuner's factors and a search over the judge"
        fix = "leave out --model, --optimizer, --evaluations; --judge MODEL is used"
        raise SpecError(what, where="--try", fix=fix)
    else:
        loop = Tuning(evaluation, basis, judge, repeats, results_dir, Progress(), anew=anew)
        properties = _try(loop, steps, as_json=as_json)
    if properties is not None:
        _finish(properties, output, as_json=as_json)


def _propose(
    basis: Basis,
    judge: str,
    optimizers: Sequence[str],
    models: Sequence[str],
    search_options: Mapping[str, int],
    *,
    as_json: bool,
) -> dict[str, str]:
    """Show what the optimizers propose; the properties of the best, none where it is not faster."""
    from harness.tuning.optimizers import OPTIMIZERS
    from harness.tuning.proposals import limits_of, proposals, says

    proposed, refused = proposals(
        basis, optimizers or [*OPTIMIZERS], models or [judge], judge, None, **search_options
    )
    known_judge = basis.judge(judge)
    documents = [proposal.document(basis.profile, known_judge) for proposal in proposed]
    answer = {
        "says": says(proposed[0], basis, known_judge),
        **known_judge.document(),
        "base": basis.note,
        "limits": limits_of(basis, judge),
        "proposals": documents,
        "refused": refused,
    }
    present(answer, shown_proposals(answer), as_json=as_json)
    best = documents[0]
    properties: dict[str, str] = best["properties"]
    return properties if (best["saved"] or 0.0) > 0 else {}


def _finish(properties: Mapping[str, str], output: Path | None, *, as_json: bool) -> None:
    """
    Show *properties* as arguments of a job, then write them as a job.xml, unless there are none.

    They are shown first, so that a full disk loses none.  Without any, what the job has is the best
    that is known.
    """
    from harness.base.hadoop.site import render_xml
    from harness.observe.storage.files import write_file

    if not as_json:
        words = list[str]()
        for name, value in properties.items():
            words += ("-D", f"{name}={value}")
        show(shlex.join(words) or "nothing is faster than the job's own settings: keep them")
    if output is not None and properties:
        write_file(output, render_xml(properties).encode(), output.absolute().parent)


def _try(loop: Tuning, limit: int, *, as_json: bool) -> Mapping[str, str] | None:
    """Take *limit* steps of the loop at most, and show them; the properties of the best cell."""
    steps = list(loop.steps(limit))
    if not steps and not loop.cells:
        judge = loop.basis.judge(loop.judge)
        says = f"nothing was measured; {judge.clause}"
        present({"says": says, **judge.document(), "steps": []}, [says], as_json=as_json)
        return None
    outcome = loop.outcome(steps)
    document = {**loop.basis.judge(loop.judge).document(), **outcome.document()}
    present(document, shown_outcome(outcome), as_json=as_json)
    return outcome.properties


def shown_outcome(outcome: Outcome) -> Iterator[Part]:
    """Each step, and what the best cell is worth."""
    if outcome.says:
        yield outcome.says
    columns = ("step", "optimizer", "predicted, s", "measured, s", "own, s", "best, s", "run")
    texts = [
        (number, step.optimizer, *(f"{time_s:.1f}" for time_s in step[2:]), step.run)
        for number, step in enumerate(outcome.steps, start=1)
    ]
    yield Rows(columns, texts)
    if outcome.properties:
        ratio, low, high = outcome.speed_up
        ends = _interval(low, high) or "no interval: too few repeats"
        yield f"{ratio:.2f} times as fast ({ends})"
    if outcome.over_defaults:
        ratio, low, high = outcome.over_defaults
        ends = _interval(low, high) or "no interval"
        yield f"{ratio:.2f} times as fast as with Hadoop's defaults ({ends})"
    for kind, (before, after) in outcome.vet.items():
        yield f"vet of its {kind}s: {before:.2f} before, {after:.2f} after"


def _interval(low: float | None, high: float | None) -> str:
    """A 95 % interval in words; empty where there is none."""
    return f"{low:.2f} to {high:.2f}, 95 %" if low and high else ""


def shown_proposals(answer: Mapping[str, Any]) -> Iterator[Part]:
    """All proposals; of the best one each property, with its reason; who had no choice to make."""
    from harness.base.documents.wording import number, percent

    documents = answer["proposals"]
    yield answer["says"]
    yield Note(f"base: {answer['base']}; judged by {answer['judge']}")
    rows = [
        (
            document["optimizer"],
            document["model"],
            number(document["own_job_s"]),
            number(document["job_s"]),
            " to ".join(map(number, document["intervals"].get("80") or ())),
            saved_text(document),
            " to ".join(percent(end, signed=True) for end in document["saved_ends"] or ()),
            document["evaluations"] or "",
            f"{1000 * document['seconds']:.0f}",
        )
        for document in documents
    ]
    times = ("by it, s", "job, s", "80 % interval, s", "saved", "by refits")
    yield Rows(("optimizer", "model", *times, "evaluations", "ms"), rows)
    best = documents[0]
    reasons = [best["reasons"][name] for name in best["values"]]
    settings = [
        (name, value, f"never: {best['profiled'][name]}" if name in best["profiled"] else "", why)
        for (name, value), why in zip(best["properties"].items(), reasons, strict=True)
    ]
    yield Rows((f"{best['optimizer']} by {best['model']}", "value", "profiled", "why"), settings)
    yield from limit_lines(answer)
    yield from best["bounds"]
    yield from (f"never profiled: {text}" for text in best["never_profiled"])
    yield from (f"no choice: {text}" for text in answer["refused"])


def saved_text(document: Mapping[str, Any]) -> str:
    """What a proposal saves; marked where its judge was as far off."""
    from harness.base.documents.wording import percent

    text = percent(document["saved"], signed=True)
    is_gain = (document["saved"] or 0.0) > 0
    return f"{text}, may be none" if is_gain and document["within_error"] else text


def limit_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield which limit of the job decides how many tasks run at once, and the base without it."""
    from harness.base.documents.wording import percent, seconds

    limits = answer["limits"]
    if limits["job_limit"]:
        without = seconds(limits["without_limits_s"])
        change = percent(limits["without_limits"], signed=True)
        yield f"{limits['job_limit']}; without a limit the base takes {without} ({change})"


@tune.command("cluster")
@click.argument("source", metavar="RUN", shell_complete=completion.runs)
@results_option
@click.option("--weight", "weights", multiple=True, metavar="WORKLOAD=N", help="Runs of a job.")
@click.option("--cores", type=click.IntRange(1, 64), help="Of a node (default: its most slots).")
@click.option("--memory", metavar="SIZE", help="For all tasks of a node (default: as it is).")
@click.option(
    "--judge",
    metavar="MODEL",
    shell_complete=completion.models,
    default="whatif-mr2",
    help="The model that prices each job.",
)
@folder_option(
    "-o",
    "--output",
    metavar="FOLDER",
    help="Write the best one's part of site files into a new folder.",
)
@json_option
def tune_cluster(
    source: str,
    results_dir: Path,
    weights: tuple[str, ...],
    cores: int | None,
    memory: str | None,
    judge: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """
    Choose slots, memory of a task and block size for the mix of RUN's jobs; no job is run.

    Each workload counts once, or --weight times, with its largest scored cell, tuned by MRTuner's
    factors for each cluster.  No kind of task has more slots than a node has cores.  With -o the
    best one's slots, memory and block size are also written as parts of Hadoop's site files.

    \b
    Example:
        harness tune cluster 20261121T0323 --weight terasort=3 --memory '4 GiB' --cores 4
    """
    from harness.core.evaluate.basis import basis_of_run
    from harness.core.evaluate.judge import joint_judge
    from harness.models import require_models
    from harness.tuning.proposals import cluster_plans, mix_limits, mix_says, present_seconds

    require_models([judge], "--judge")
    evaluation = open_evaluation(source, results_dir, asks=True)
    names = [*evaluation.run.read_profiles()] or [""]  # whose error says what is missing
    bases = {name: basis_of_run(evaluation, name) for name in names}
    runs_of_job = _parse_weights(weights, names)
    node = bases[names[0]].base.cluster.node
    node_bytes = _node_bytes(memory, node)
    most_slots = cores or max(node.map_slots, node.reduce_slots)
    shown_s = time.monotonic()

    def report(done: int, count: int) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s > QUIET_S:
            shown_s = time.monotonic()
            show(Note(f"priced: {done} of {count} clusters"))

    plans = cluster_plans(
        bases, runs_of_job, judge, cores=most_slots, memory=node_bytes, report=report
    )
    if not plans:
        what = "no cluster has room for all of these jobs"
        raise SpecError(what, where="--memory", fix="give its nodes more")
    rows = [plan.document() for plan in plans]
    known_judge = joint_judge(judge, [basis.judge(judge) for basis in bases.values()])
    present_s = present_seconds(bases, runs_of_job, judge)
    answer = {
        "says": mix_says(plans[0], present_s, known_judge),
        **known_judge.document(),
        "present_s": present_s,
        "limits": mix_limits(bases, runs_of_job, judge, plans[0]),
        "plans": rows,
    }
    present(answer, shown_plans(answer, names), as_json=as_json)
    if output is not None:  # what was shown is not lost where this fails
        _write_site_files(output, plans[0].cluster)


def _parse_weights(weights: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Runs of each job by its workload, one of *names*, as --weight has them."""
    numbers = dict[str, float]()
    for text in weights:
        name, _, number = text.partition("=")
        if name not in names or not number.replace(".", "", 1).isdigit():
            fix = f"write WORKLOAD=N, of {', '.join(names)}"
            raise SpecError(f"'{text[:80]}' is no weight", where="--weight", fix=fix)
        numbers[name] = float(number)
    return numbers


def _node_bytes(memory: str | None, node: NodeSpec) -> int:
    """Bytes for all tasks of a node: as --memory has them, or as many as *node* has."""
    from harness.base.units import parse_bytes

    if not memory:
        return (node.map_slots + node.reduce_slots) * node.task_memory_bytes
    try:
        return parse_bytes(memory)
    except ValueError as error:
        raise SpecError(str(error), where="--memory", fix="write a size such as 4 GiB") from error


def _write_site_files(folder: Path, cluster: ClusterSpec) -> None:
    """Write what *cluster* says of Hadoop's site files into a new *folder*."""
    from harness.base.hadoop.site import planned_files, render_xml
    from harness.observe.storage.files import os_error_as_machine_error, write_file

    with os_error_as_machine_error(folder):
        folder.mkdir()
        for name, properties in planned_files(cluster).items():
            write_file(folder / name, render_xml(properties).encode(), folder)


def shown_plans(answer: Mapping[str, Any], names: Sequence[str]) -> Iterator[Part]:
    """The best plans for the jobs *names*; the first as a block for an experiment."""
    from harness.base.documents.wording import seconds

    yield answer["says"]
    rows = answer["plans"]
    columns = ("map_slots", "reduce_slots", "task_memory", "dfs.blocksize")
    texts = [
        (
            *(row[column] for column in columns),
            *(f"{row['job_s'][name]:.1f}" for name in names),
            f"{row['total_s']:.1f}",
        )
        for row in rows[:_SHOWN]
    ]
    yield Rows((*columns, *(f"{name}, s" for name in names), "mix, s"), texts)
    yield from answer["limits"]["job_limits"]
    if answer["limits"]["job_limits"]:
        without = seconds(answer["limits"]["without_limits_s"])
        yield f"more slots than that are idle; without a limit the first mix takes {without}"
    maps, reduces, task, block = texts[0][:4]
    yield "cluster:"
    yield f"  node: {{map_slots: {maps}, reduce_slots: {reduces}, task_memory: {task}}}"
    yield f"  site: {{dfs.blocksize: {block}}}"


@tune.command("regret")
@run_argument
@json_option
def regret(evaluation: Evaluation, *, as_json: bool) -> None:
    """
    Say how much slower the cell that each model of RUN would choose is than the fastest one.

    Chosen by the predictions, paid by the clock: over the scored cells of each input.

    \b
    Example:
        harness tune regret 20261121T0323
    """
    from harness.base.errors import DataError
    from harness.tuning.regret import answer_of, regrets

    rows = [*regrets(evaluation)]
    if not rows:
        what = "no input of the run has two scored cells to choose from"
        raise DataError(what, where=str(evaluation.run.path), fix="score a grid of settings")
    answer = answer_of(rows, evaluation.run.read_scores())
    present(answer, shown_regrets(answer), as_json=as_json)


def readable_input(name: str) -> str:
    """
    The *name* of an input as cells have it, with its size for people.

    >>> readable_input("terasort 234881024")
    'terasort 224 MiB'
    """
    from harness.base.units import format_bytes

    workload, _, size = name.rpartition(" ")
    return f"{workload} {format_bytes(int(size))}" if size.isdecimal() else name


def shown_regrets(answer: Mapping[str, Any]) -> Iterator[Part]:
    """What each model's choice cost for each input, and the mean of each model."""
    from harness.base.documents.wording import percent

    columns = (
        "input",
        "model",
        "cells",
        "chosen",
        "regret",
        "noise",
        "saved",
        "curse",
        "ranks",
        "measured",
    )
    yield answer["says"]
    texts = []
    for row in answer["regrets"]:
        curse = "" if row["curse"] is None else percent(row["curse"], signed=True)
        ranks = "" if row["ranks"] is None else f"{row['ranks']:.2f}"
        text = (
            readable_input(row["input"]),
            row["model"],
            f"{row['cells']} of {row['of']}",
            row["chosen"] or "any",
            percent(row["regret"]),
            "not known" if row["noise"] is None else percent(row["noise"]),
            percent(row["from_default"], signed=True),
            curse,
            ranks,
            f"{row['measured']:.3g}",
        )
        texts.append(text)
    yield Rows(columns, texts)
    means = ", ".join(f"{model} {percent(value)}" for model, value in answer["mean"].items())
    yield f"mean regret: {means}"
