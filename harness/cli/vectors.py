"""``harness vectors``: run the models on test vectors."""

from __future__ import annotations

import json
import sys

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from harness import models
from harness.cli.console import show_text
from harness.errors import DataError, HarnessError
from harness.models.vectors import CaseInput, Evaluator, VectorFile, compare, compute, read_vectors
from harness.scoring import i_accu
from harness.text import printable


def _accuracy(case: CaseInput) -> dict[str, Any]:
    return i_accu(case.fields["actual_s"], case.fields["prophet_s"], case.fields["whatif_s"])


# The accuracy indicator belongs to the scores, which models do not know.
EVALUATORS = (
    *models.EVALUATORS,
    Evaluator("prophet", frozenset({"actual_s", "prophet_s", "whatif_s"}), _accuracy),
)


@click.group("vectors")
def vectors() -> None:
    """
    Run the models on test vectors (docs/models/README.md, section 1).

    \b
    Example:
        harness vectors check tests/validation/vectors/whatif_*.json
    """


@vectors.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path())
def check(files: tuple[str, ...]) -> None:
    """
    Compare the models with the vectors in FILES.

    Prints one line per mismatch.  Exit status 1 after a mismatch; 2 for a file that cannot be read
    or a case that no model here implements.

    \b
    Example:
        harness vectors check tests/validation/vectors/whatif_*.json
    """
    mismatch_counts: list[int] = []

    def compare_file(name: str, document: VectorFile) -> None:
        count = 0
        for case in document.cases:
            output = compute(document.model, case.input, EVALUATORS)
            for mismatch in compare(output, case.expected, document):
                count += 1
                answer, expected = json.dumps(mismatch.answer), json.dumps(mismatch.expected)
                where = f"{name}: {case.input.name}: {mismatch.field}"
                click.echo(printable(f"{where}: got {answer}, expected {expected}"))
        mismatch_counts.append(count)
        show_text(f"{name}: {len(document.cases)} cases, {count} mismatches")

    all_read = for_each_file(files, compare_file)
    if any(mismatch_counts):
        sys.exit(1)
    if not all_read:
        sys.exit(2)


@vectors.command("compute")
@click.argument("files", nargs=-1, required=True, type=click.Path())
def compute_answers(files: tuple[str, ...]) -> None:
    """
    Print the models' results for the vectors in FILES, one line of JSON per case.

    Expected values are ignored.  Exit status 2 for a file that cannot be read or a case that
    no model here implements.

    \b
    Example:
        harness vectors compute tests/validation/vectors/scheduler.json
    """

    def print_file(name: str, document: VectorFile) -> None:
        for case in document.cases:
            output = compute(document.model, case.input, EVALUATORS)
            click.echo(json.dumps({"file": name, "case": case.input.name, "output": output}))

    if not for_each_file(files, print_file):
        sys.exit(2)


def for_each_file(files: Sequence[str], process: Callable[[str, VectorFile], None]) -> bool:
    """*process* every file, showing the error of each that fails; whether all succeeded."""
    all_processed = True
    for name in files:
        try:
            try:
                text = Path(name).read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                why = "it is not UTF-8 text"
                if isinstance(error, OSError):
                    why = error.strerror or "the system refuses"
                raise DataError(
                    f"the file cannot be read: {why}",
                    where=name,
                    fix="name a file of test vectors,"
                    " such as tests/validation/vectors/scheduler.json",
                ) from error
            process(name, read_vectors(text, name))
        except HarnessError as error:
            all_processed = False
            show_text(f"{name}: {error}")
    return all_processed
