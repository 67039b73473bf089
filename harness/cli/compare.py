"""`harness compare`: what changed between runs, and whether budgets allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli.console import print_json, show_table, show_text
from harness.cli.reading import open_evaluation
from harness.cli.steps import file_option, json_option, results_option
from harness.errors import SpecError
from harness.text import excerpt, printable

if TYPE_CHECKING:
    from harness.evaluate.changes import Change


@click.command("compare")
@click.argument(
    "names", metavar="RUN RUN...", nargs=-1, required=True, shell_complete=completion.runs
)
@results_option
@click.option(
    "--budgets",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A YAML file of what may change, and by how much.",
)
@click.option("--strict", is_flag=True, help="A budget that cannot be decided is broken, too.")
@file_option("--junit", help="Write a test case for each budget.")
@file_option("--csv", "table", help="Write a line for each number.")
@json_option
def compare(
    names: tuple[str, ...],
    results_dir: Path,
    budgets: Path | None,
    strict: bool,
    junit: Path | None,
    table: Path | None,
    as_json: bool,
) -> int:
    """
    Say what changed since the first RUN: cluster, configuration, times, costs, models' errors.

    Compared are cells with the same workload, input, and values on all that varies within a run;
    what each run has one value of may differ, and is named.  Every number has its 95 % interval
    and a verdict.  Exit status 1: a budget is broken, beyond the noise.  Bundles (harness publish)
    are set side by side, and ranked only where rules, experiment, division and system are the same.

    \b
    Example:
        harness compare 20261121T0323 20261122T0315
        harness compare 20261121T0323 20261122T0315 --budgets experiments/budgets.yaml --strict
        harness compare bundle-a bundle-b
    """
    from harness.api.export import junit_xml
    from harness.evaluate.budgets import judge, read_budgets
    from harness.evaluate.changes import Change, Side, changes, differences, sentence
    from harness.store import os_error_as_machine_error

    are_bundles = [(Path(name) / "SHA256SUMS").is_file() for name in names]
    if all(are_bundles):
        return compare_bundles(names, as_json=as_json)
    if any(are_bundles):
        fix = "compare runs with runs, and bundles with bundles"
        raise SpecError("a bundle and a run are named", where=" ".join(names), fix=fix)
    if junit and not budgets:
        raise click.UsageError("--junit has a test case for each budget: give --budgets FILE")
    evaluations = [open_evaluation(name, results_dir) for name in names]
    different = len({evaluation.run.path.resolve() for evaluation in evaluations})
    if not 2 <= different == len(names):
        what = f"{len(names)} named, {different} of them different: two or more are compared"
        raise SpecError(what, where=" ".join(names), fix="'harness runs' lists what there is")
    base, *others = sides = [*map(Side, evaluations)]
    text = budgets.read_text(encoding="utf-8", errors="replace") if budgets else ""
    wanted = read_budgets(text, str(budgets), sides) if budgets else []
    by_run = {other: changes(base, other) for other in others}
    every = [*chain(*by_run.values())]
    judged = [judge(budget, every, strict=strict) for budget in wanted]
    is_broken = any(each.verdict == "broken" for each in judged)
    if table:
        import pandas as pd

        with os_error_as_machine_error(table):
            pd.DataFrame(every, columns=Change._fields).to_csv(table, index=False)
    if junit:
        outcomes = {"broken": "failure", "undecided": "skipped", "kept": ""}
        cases = [(each.name, outcomes[each.verdict], each.reason) for each in judged]
        with os_error_as_machine_error(junit):
            junit.write_text(junit_xml({"budgets": cases}), encoding="utf-8")
    verdict = "; ".join(sentence(base, other, changed) for other, changed in by_run.items())
    missing = [*chain(*(side.missing for side in sides))]
    if as_json:
        document = {
            "verdict": verdict,
            "missing": missing,
            "differences": {other.run.id: differences(base, other) for other in others},
            "changes": [each._asdict() for each in every],
            "budgets": [each._asdict() for each in judged],
        }
        print_json(document)
        return int(is_broken)
    click.echo(printable(verdict))
    for text in missing:
        show_text(f"not compared: {text}")
    for other, changed in by_run.items():
        ids = base.run.id, other.run.id
        show_table(("what differs", *ids), differences(base, other))
        show_table(("what", "of", *ids, "change, %", "95 %", "verdict"), _rows(changed))
    if judged:
        show_table(("budget", "verdict", "why"), [(each.name, *each[-2:]) for each in judged])
    show_text("--csv FILE has what did not move, and each cell")
    return int(is_broken)


def compare_bundles(names: Sequence[str], *, as_json: bool) -> int:
    """Show bundles side by side: what differs, errors of models, and how to quote each."""
    from harness.publish.compare import side_by_side

    comparison = side_by_side([*map(Path, names)])
    if as_json:
        rows = [row._asdict() for row in comparison.rows]
        print_json({**comparison._asdict(), "rows": rows})
        return 0
    show_table(
        ("what differs", *comparison.bundles),
        [(key, *map(excerpt, each)) for key, each in comparison.head.items()],
    )
    for bundle, reasons in comparison.why_open.items():
        show_text(f"{bundle} is open: {'; '.join(reasons)}")
    if comparison.not_ranked:
        show_text(comparison.not_ranked)
    columns = ("experiment", "model", "quantity", "bundle", "mean relative error", "95 % or range")
    lines = []
    for row in comparison.rows:
        ends = [f"{100 * end:.1f}" for end in (row.low, row.high) if end is not None]
        lines.append((*row[:4], f"{100 * row.error:.1f} %", " to ".join(ends)))
    show_table(columns, lines)
    for sentences, footnote in comparison.quotes.values():
        click.echo(printable("\n".join(f"\u201c{sentence}\u201d [1]" for sentence in sentences)))
        click.echo(printable(f"  [1] {footnote}"))
    return 0


def _rows(changed: Sequence[Change]) -> Iterator[tuple[str, ...]]:
    """What moved, and in any case the times of jobs and the errors of models."""
    for each in changed:
        is_job = (each.kind, each.name) == ("time", "job_s")
        is_main = each.verdict in ("larger", "smaller") or each.name in ("job_s", "body_s")
        if is_job or (is_main and not each.cell):
            percent = 100 if each.kind == "error" else 1
            pairs = ((each.base, each.base_spread), (each.other, each.other_spread))
            numbers = [
                " ± ".join(f"{percent * number:.3g}" for number in pair if number is not None)
                for pair in pairs
            ]
            what = f"error of {each.name}, %" if each.kind == "error" else each.name
            ends = (f"{100 * end:+.3g}" for end in (each.low, each.high) if end is not None)
            of = f"{each.model} {each.cell or each.workload}".strip()
            unknown = ": the noise is not known" if each.chance is None else ""
            change = f"{100 * each.change:+.3g}"
            yield what, of, *numbers, change, " to ".join(ends), each.verdict + unknown
