"""``harness vectors``: run the models on test vectors."""

from __future__ import annotations

import json
import sys

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from harness import models
from harness.cli.console import clean, talk
from harness.errors import DataError, HarnessError
from harness.models import vectors as v
from harness.scoring.accuracy import i_accu


def _accuracy(case: v.CaseInput) -> dict[str, Any]:
    data = case.fields
    return i_accu(data["actual_s"], data["prophet_s"], data["whatif_s"])


# The accuracy indicator belongs to the scores, which models do not know.
EVALUATORS = (
    *models.EVALUATORS,
    v.Evaluator("prophet", frozenset({"actual_s", "prophet_s", "whatif_s"}), _accuracy),
)


@click.group("vectors")
def command() -> None:
    """
    Run the models on test vectors (docs/models/README.md, section 1).

    \b
    Example:
        harness vectors check tests/validation/vectors/whatif_*.json
    """


@command.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path())
def check(files: tuple[str, ...]) -> None:
    """
    Compare the models with the vectors in FILES.

    Prints one line per mismatch.  Exit status 1 after a mismatch; 2 for a file that cannot be read
    or a case that no model here answers.

    \b
    Example:
        harness vectors check tests/validation/vectors/whatif_*.json
    """
    mismatches: list[bool] = []

    def run(name: str, document: v.VectorFile) -> None:
        found = 0
        for case in document.cases:
            answer = v.compute(document.model, case.input, EVALUATORS)
            for miss in v.compare(answer, case.expected, document):
                found += 1
                click.echo(_line(name, case.input.name, miss))
        mismatches.append(found > 0)
        talk(f"{name}: {len(document.cases)} cases, {found} mismatches")

    readable = _each(files, run)
    if any(mismatches):
        sys.exit(1)
    if not readable:
        sys.exit(2)


@command.command("compute")
@click.argument("files", nargs=-1, required=True, type=click.Path())
def compute(files: tuple[str, ...]) -> None:
    """
    Print the models' answers to the vectors in FILES, a line of JSON per case.

    Expected values are not looked at.  Exit status 2 for a file that cannot be read or a case that
    no model here answers.

    \b
    Example:
        harness vectors compute tests/validation/vectors/scheduler.json
    """

    def run(name: str, document: v.VectorFile) -> None:
        for case in document.cases:
            answer = v.compute(document.model, case.input, EVALUATORS)
            click.echo(json.dumps({"file": name, "case": case.input.name, "output": answer}))

    if not _each(files, run):
        sys.exit(2)


def _each(files: Sequence[str], run: Callable[[str, v.VectorFile], None]) -> bool:
    """Run every file, telling of those that cannot be; whether all could."""
    whole = True
    for name in files:
        try:
            run(name, v.read_vectors(_text(name), name))
        except HarnessError as error:
            whole = False
            click.echo("\n".join(clean(line) for line in f"{name}: {error}".splitlines()), err=True)
    return whole


def _text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror or "the system refuses"
    except ValueError:
        why = "it is no UTF-8 text"
    raise DataError(
        f"the file cannot be read: {why}",
        where=name,
        fix="name a file of test vectors, such as tests/validation/vectors/scheduler.json",
    )


def _line(name: str, case: str, miss: v.Mismatch) -> str:
    answer, expected = json.dumps(miss.answer), json.dumps(miss.expected)
    return clean(f"{name}: {case}: {miss.field}: got {answer}, expected {expected}")
