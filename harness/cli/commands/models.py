"""``harness check``, ``vectors`` and ``net``: models without an experiment."""

from __future__ import annotations

import json
import sys

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from harness import models
from harness.base.documents.wording import seconds
from harness.base.errors import DataError, HarnessError, SpecError
from harness.cli.console import completion
from harness.cli.console.command import command, group
from harness.cli.console.options import (
    choice_option,
    json_option,
    open_evaluation,
    results_option,
    workload_option,
)
from harness.cli.console.present import Note, present, show
from harness.models.spn_gc.phases import PHASES
from harness.models.vectors import Case, Evaluator, VectorFile, compare, compute, read_vectors
from harness.scoring import i_accu

if TYPE_CHECKING:
    from harness.base.records.prediction import Prediction
    from harness.core.evaluate.basis import Basis
    from harness.models import Model

# The accuracy indicator belongs to the scores, which models do not know.
_TIMES = ("actual_s", "prophet_s", "whatif_s")
EVALUATORS = (
    *models.EVALUATORS,
    Evaluator(
        "prophet", frozenset(_TIMES), lambda case: i_accu(*(case.fields[name] for name in _TIMES))
    ),
)


@group("vectors")
def vectors() -> None:
    """
    Run the models on test vectors: inputs, and what the equations give for them.

    \b
    Example:
        harness vectors check tests/validation/vectors/whatif_*.json
    """


@vectors.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@json_option
def check(files: tuple[str, ...], as_json: bool) -> None:
    """
    Compare the models with the vectors in FILES.

    Prints one line per mismatch.  Exit status 1 after a mismatch; 2 for a file that cannot be read
    or a case that no model here implements.

    \b
    Example:
        harness vectors check tests/validation/vectors/whatif_*.json
    """
    failed = list[str]()
    case_count = 0
    mismatches = list[dict[str, Any]]()
    for name, document, case, output in answered_cases(files, failed):
        case_count += 1
        for mismatch in compare(output, case.expected, document):
            found = {"file": name, "case": case.input.name, **asdict(mismatch)}
            mismatches.append(found)
            if not as_json:  # at once: there may be many cases
                show(mismatch_line(found))
    summary = [Note(f"{case_count} cases, {len(mismatches)} mismatches")]
    present({"cases": case_count, "mismatches": mismatches}, summary, as_json=as_json)
    if mismatches:
        sys.exit(1)
    sys.exit(2 if failed else 0)


def mismatch_line(found: Mapping[str, Any]) -> str:
    """What a model answered, and what was expected."""
    answer = json.dumps(found["answer"])
    expected = json.dumps(found["expected"])
    where = f"{found['file']}: {found['case']}: {found['field']}"
    return f"{where}: got {answer}, expected {expected}"


@vectors.command("compute")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@json_option
def compute_answers(files: tuple[str, ...], as_json: bool) -> None:
    """
    Print the models' results for the vectors in FILES, one line of JSON per case.

    Expected values are ignored.  Exit status 2 for a file that cannot be read or a case that
    no model here implements.

    \b
    Example:
        harness vectors compute tests/validation/vectors/scheduler.json
    """
    failed = list[str]()
    cases = list[dict[str, Any]]()
    for name, _, case, output in answered_cases(files, failed):
        answer = {"file": name, "case": case.input.name, "output": output}
        if as_json:
            cases.append(answer)
        else:
            show(json.dumps(answer))  # at once: there may be many
    present({"cases": cases}, as_json=as_json)
    sys.exit(2 if failed else 0)


def answered_cases(
    files: Sequence[str], failed: list[str]
) -> Iterator[tuple[str, VectorFile, Case, dict[str, Any]]]:
    """Yield each case, its file, and what the models answer; *failed* names files with an error."""
    for name in files:
        try:
            try:
                text = Path(name).read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                what = f"the file cannot be read: {getattr(error, 'strerror', error)}"
                fix = "name a file of test vectors, such as tests/validation/vectors/scheduler.json"
                raise DataError(what, where=name, fix=fix) from error
            document = read_vectors(text, name)
            for case in document.cases:
                yield name, document, case, compute(document.model, case.input, EVALUATORS)
        except HarnessError as error:
            failed.append(name)
            show(Note(f"{name}: {error}"))


@command("check")
@click.argument("path", metavar="PATH:CLASS")
@click.option(
    "--from",
    "origin",
    metavar="RUN",
    shell_complete=completion.runs,
    help="Ask a model about a cell of this run or bundle, too, by its profile.",
)
@workload_option
@click.option(
    "--cell",
    "cell_name",
    default="",
    metavar="CELL",
    help="The cell, as tables call it, or the first characters of its id (default: the largest).",
)
@results_option
@json_option
def check_own(
    path: str,
    origin: str | None,
    workload: str | None,
    cell_name: str,
    results_dir: Path,
    as_json: bool,
) -> int:
    """
    Check a model or a workload of your own: a class in a file, such as ./mine.py:Mine.

    A model is asked about a made-up profile, and with --from about a real cell; the check of a
    workload's output has to refuse wrong ones.  What is missing is named with file and line: exit
    status 1.  From then on runs that name this very file may have it run here.

    \b
    Example:
        harness check ./mine.py:Mine
        harness check ./mine.py:Mine --from results/published/quick --workload terasort
        harness check ./mean.py:WordMean --json
    """
    from harness.base.records.trial import WorkloadSpec
    from harness.base.units import MIB
    from harness.clusters.workloads import WORKLOADS
    from harness.core.evaluate.basis import basis_of_run
    from harness.core.evaluate.contract import model_complaints, own_workload_complaints
    from harness.core.evaluate.own_code import is_own_model, own_workload, read_own
    from harness.core.evaluate.own_model import OwnModel

    code = read_own(path)
    is_model = is_own_model(code)
    if code.name in ({*models.MODELS, *models.EARLIER_NAMES} if is_model else WORKLOADS):
        what = f"another {'model' if is_model else 'workload'} is called '{code.name}'"
        fix = 'write name = "..." into the class, or call it otherwise'
        raise SpecError(what, where=path, fix=fix)
    if (workload or cell_name) and not origin:
        raise click.UsageError("--workload and --cell are of a run: --from RUN")
    if origin and not is_model:
        raise click.UsageError(f"--from RUN is for a model, and {code.name} is a workload")
    tried = None
    if is_model:
        noun = "model"
        model = OwnModel(code)
        complaints = [*model_complaints(model)]
        if origin:
            evaluation = open_evaluation(origin, results_dir)
            tried = tried_on(model, basis_of_run(evaluation, workload or "", cell_name))
            complaints += tried.complaints
        if model.printed:
            show(Note(model.printed))
    else:
        noun = "workload"
        workload_made = own_workload(code.code)
        spec = WorkloadSpec(name=code.name, input_bytes=64 * MIB, code=code.code)
        complaints = [*own_workload_complaints(workload_made, spec)]
    answer = {"name": code.name, "kind": noun, "code": code.code, "complaints": complaints}
    lines = complaints or [f"the {noun} {code.name} keeps its contract"]
    if tried is not None:
        answer["tried"] = tried.document()
        lines = [*lines, tried.says]
    present(answer, lines, as_json=as_json)
    return int(bool(complaints))


class Tried(NamedTuple):
    """What a model predicts of a real cell, which the *note* names, and the *complaints* of it."""

    note: str
    prediction: Prediction
    complaints: Sequence[str]

    @property
    def says(self) -> str:
        """The same in one sentence."""
        body_s = self.prediction.body_s
        job_s = self.prediction.job_s
        if body_s is None and job_s is None:
            return f"of {self.note}, it has no answer"
        body = "" if body_s is None else f"a body of {seconds(body_s)}"
        job = "" if job_s is None else f"a job of {seconds(job_s)}"
        if self.prediction.frame_s is not None:
            job += f" with the frame that it is lent, {seconds(self.prediction.frame_s)}"
        return f"of {self.note}, it says {' and '.join(filter(None, (body, job)))}"

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        names = ("cell", "body_s", "frame_s", "job_s", "not_applicable", "warnings")
        return {name: getattr(self.prediction, name) for name in names} | {"note": self.note}


def tried_on(model: Model, basis: Basis) -> Tried:
    """Ask *model* about the cell of *basis*, by its profile; show what it warns of."""
    from harness.core.evaluate.contract import cell_complaints

    prediction, complaints = cell_complaints(model, basis.profile, basis.resolved)
    for warning in prediction.warnings:
        show(Note(f"warning: {warning}"))
    return Tried(basis.note, prediction, complaints)


@command("net")
@click.option("--maps", type=click.IntRange(1), default=3, help="Map tasks.")
@click.option("--reduces", type=click.IntRange(0), default=2, help="Reduces.")
@choice_option(
    "--variant", choices=["shared_read", "shared_shuffle"], text="Which phase all maps share."
)
@choice_option(
    "--format",
    "format_name",
    choices=["mermaid", "pnml"],
    text="A flowchart for Markdown, or standard PNML.",
)
@click.option(
    "--mean",
    "means",
    type=(click.Choice(PHASES), click.FloatRange(0)),
    metavar="PHASE SECONDS",
    multiple=True,
    help="Mean of a phase, such as t3_to_gpu_s 6.5 (default: 1 s); repeatable.",
)
@json_option
def net(
    maps: int,
    reduces: int,
    variant: str,
    format_name: str,
    means: tuple[tuple[str, float], ...],
    as_json: bool,
) -> None:
    """
    Print the Petri net of the model SPN-GC.

    \b
    Example:
        harness net --maps 3 --reduces 2
        harness net --maps 16 --reduces 4 --format pnml --mean t3_to_gpu_s 6.5
    """
    from harness.models.sim.petri import to_mermaid, to_pnml
    from harness.models.spn_gc.net import timed_net

    timed = timed_net(dict.fromkeys(PHASES, 1.0) | dict(means), maps, reduces, variant)
    title = f"SPN-GC, {variant}: {maps} maps, {reduces} reduces"
    text = to_pnml(timed, title) if format_name == "pnml" else to_mermaid(timed)
    answer = {"title": title, "format": format_name, "net": text}
    present(answer, [text.removesuffix("\n")], as_json=as_json)
