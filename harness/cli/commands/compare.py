"""`harness compare`: what changed between runs, and whether budgets allow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import SpecError
from harness.base.text import excerpt
from harness.cli.console import completion
from harness.cli.console.command import command
from harness.cli.console.options import (
    json_option,
    open_evaluation,
    outputs_option,
    results_option,
)
from harness.cli.console.present import Note, Part, Rows, present, save, save_rows

if TYPE_CHECKING:
    from harness.core.evaluate.budgets import Budget
    from harness.core.evaluate.changes import Change, Side
    from harness.publish.compare import SideBySide

_OF_SYSTEM = "system: "  # what the names of a system's facts begin with
_OUTCOMES = {"broken": "failure", "undecided": "skipped", "kept": ""}  # of a budget, in JUnit


@command("compare")
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
@click.option(
    "--facts", is_flag=True, help="Show each fact in which the systems of bundles differ."
)
@outputs_option(
    "Write a line for each number (.csv), a test case for each budget (.xml, JUnit); repeatable.",
    ".csv",
    ".xml",
)
@json_option
def compare(
    names: tuple[str, ...],
    results_dir: Path,
    budgets: Path | None,
    strict: bool,
    facts: bool,
    outputs: Mapping[str, Path],
    as_json: bool,
) -> int:
    """
    Say what changed since the first RUN: cluster, configuration, times, costs, models' errors.

    Compared are cells with the same workload, input, and values on all that varies within a run;
    what each run has one value of may differ, and is named.  Every number has its 95 % interval
    and a verdict; where nothing moved, it is said which change would have shown.  Exit status 1: a
    budget is broken, beyond the noise.  Bundles (harness publish) are set side by side, and ranked
    only where rules, experiment, division and system are the same.

    \b
    Example:
        harness compare 20261121T0323 20261122T0315
        harness compare 20261121T0323 20261122T0315 --budgets experiments/budgets.yaml --strict
        harness compare bundle-a bundle-b
    """
    from harness.core.evaluate.budgets import judge
    from harness.core.evaluate.changes import Change, changes

    if are_bundles(names):
        refuse_options_for_runs({"--budgets": budgets, "--strict": strict, "-o": outputs})
        return compare_bundles(names, shows_facts=facts, as_json=as_json)
    if facts:
        raise click.UsageError("--facts: for bundles only, and runs are compared")
    if ".xml" in outputs and not budgets:
        raise click.UsageError("-o FILE.xml has a test case for each budget: give --budgets FILE")
    base, *later_sides = sides = open_sides(names, results_dir)
    wanted = wanted_budgets(budgets, sides) if budgets else []
    by_side = {side: changes(base, side) for side in later_sides}
    all_changes = [*chain(*by_side.values())]
    judged = [judge(budget, all_changes, strict=strict) for budget in wanted]
    answer = comparison_document(base, by_side, judged)
    save_rows(outputs.get(".csv"), answer["changes"], Change._fields)
    save(outputs.get(".xml"), partial(write_junit, judged))
    present(answer, shown_changes(answer, base, by_side, judged), as_json=as_json)
    return int(any(budget.verdict == "broken" for budget in judged))


def are_bundles(names: Sequence[str]) -> bool:
    """Whether *names* are those of bundles; `SpecError` where only some are."""
    from harness.core.store.packed import is_bundle

    found = [is_bundle(Path(name)) for name in names]
    if any(found) and not all(found):
        fix = "compare runs with runs, and bundles with bundles"
        raise SpecError("a bundle and a run are named", where=" ".join(names), fix=fix)
    return all(found)


def refuse_options_for_runs(options: Mapping[str, object]) -> None:
    """An error of the command line where one of the *options* is given beside bundles."""
    given = ", ".join(name for name, value in options.items() if value)
    if given:
        raise click.UsageError(f"{given}: for runs only, and bundles are compared")


def wanted_budgets(budgets: Path, sides: Sequence[Side]) -> list[Budget]:
    """What the file *budgets* allows to change."""
    from harness.core.evaluate.budgets import read_budgets

    text = budgets.read_text(encoding="utf-8", errors="replace")
    return read_budgets(text, str(budgets), sides)


def comparison_document(
    base: Side, by_side: Mapping[Side, Sequence[Change]], judged: Sequence[Budget]
) -> dict[str, Any]:
    """What programs are told: the verdict, what was not compared, and each change since *base*."""
    from harness.core.evaluate.changes import differences, sensitivities, sentence

    sentences = [sentence(base, side, changed) for side, changed in by_side.items()]
    all_changes = chain(*by_side.values())
    would_show = {
        side.run.id: [shown._asdict() for shown in sensitivities(base, side, changed)]
        for side, changed in by_side.items()
    }
    return {
        "verdict": "; ".join(sentences),
        "would_show": would_show,
        "missing": [*chain(*(side.missing for side in (base, *by_side)))],
        "differences": {side.run.id: differences(base, side) for side in by_side},
        "changes": [change._asdict() for change in all_changes],
        "budgets": [budget._asdict() for budget in judged],
    }


def open_sides(names: Sequence[str], results_dir: Path) -> list[Side]:
    """Open the runs to compare, the base first; `SpecError` unless they are two different ones."""
    from harness.core.evaluate.changes import Side

    evaluations = [open_evaluation(name, results_dir) for name in names]
    different = len({evaluation.run.path.resolve() for evaluation in evaluations})
    if not 2 <= different == len(names):
        what = f"{len(names)} named, {different} of them different: two or more are compared"
        raise SpecError(what, where=" ".join(names), fix="'harness runs' lists what there is")
    return [*map(Side, evaluations)]


def write_junit(judged: Sequence[Budget], path: Path) -> None:
    """Write a test case for each budget, which fails where it is broken."""
    from harness.base.documents.junit import junit_xml

    cases = [(budget.name, _OUTCOMES[budget.verdict], budget.reason) for budget in judged]
    path.write_text(junit_xml({"budgets": cases}), encoding="utf-8")


def shown_changes(
    answer: Mapping[str, Any],
    base: Side,
    by_side: Mapping[Side, Sequence[Change]],
    judged: Sequence[Budget],
) -> Iterator[Part]:
    """The verdict; for each run beside *base* what differs and what changed; the budgets."""
    yield answer["verdict"]
    for reason in answer["missing"]:
        yield Note(f"not compared: {reason}")
    for side, changed in by_side.items():
        ids = (base.run.id, side.run.id)
        yield Rows(("what differs", *ids), answer["differences"][side.run.id])
        texts = [change_texts(change) for change in changed if is_main(change)]
        yield Rows(("what", "of", *ids, "change, %", "95 %", "verdict"), texts)
    if judged:
        verdicts = [(budget.name, budget.verdict, budget.reason) for budget in judged]
        yield Rows(("budget", "verdict", "why"), verdicts)
    yield Note("-o FILE.csv has what did not move, and each cell")


def compare_bundles(names: Sequence[str], *, shows_facts: bool, as_json: bool) -> int:
    """Show bundles side by side: whether they are ranked, errors of models, quotes, differences."""
    from harness.publish.compare import side_by_side

    comparison = side_by_side([*map(Path, names)])
    rows = [row._asdict() for row in comparison.rows]
    parts = shown_bundles(comparison, shows_facts=shows_facts)
    present({**comparison._asdict(), "rows": rows}, parts, as_json=as_json)
    return 0


def shown_bundles(comparison: SideBySide, *, shows_facts: bool) -> Iterator[Part]:
    """
    The answer, errors of models, quotations, why some are open, and what differs.

    Of the systems, which differ in a hundred facts where one was another machine, all are shown
    only where the reader asks for them: *shows_facts*.
    """
    yield comparison.not_ranked or "ranked: rules, experiment, division and system are the same"
    columns = ("experiment", "model", "quantity", "bundle", "mean relative error", "95 % or range")
    errors = []
    for row in comparison.rows:
        ends = [f"{100 * end:.1f}" for end in (row.low, row.high) if end is not None]
        errors.append((*row[:4], f"{100 * row.error:.1f} %", " to ".join(ends)))
    yield Rows(columns, errors)
    for number, (sentences, footnote) in enumerate(comparison.quotes.values(), 1):
        yield "\n".join(f"\u201c{sentence}\u201d [{number}]" for sentence in sentences)
        yield f"  [{number}] {footnote}"
    for bundle, reasons in comparison.why_open.items():
        yield Note(f"{bundle} is open: {'; '.join(reasons)}")
    facts = [name for name in comparison.head if name.startswith(_OF_SYSTEM)]
    shown = [name for name in comparison.head if shows_facts or name not in facts]
    differing = [(name, *map(excerpt, comparison.head[name])) for name in shown]
    if differing:
        yield Rows(("what differs", *comparison.bundles), differing)
    if facts and not shows_facts:
        from harness.base.documents.wording import count

        yield Note(f"the systems differ in {count(len(facts), 'fact')}: --facts shows them")


def is_main(change: Change) -> bool:
    """Whether people want to see it: it moved, or is the time of jobs or a model's mean error."""
    if (change.kind, change.name) == ("time", "job_s"):
        return True
    has_moved = change.verdict in ("larger", "smaller")
    return not change.cell and (has_moved or change.name in ("job_s", "body_s"))


def change_texts(change: Change) -> tuple[str, ...]:
    """*change* as a row for people; errors of models in per cent."""
    is_error = change.kind == "error"
    scale = 100 if is_error else 1
    verdict = change.verdict
    if change.chance is None:
        verdict += ": the noise is not known"
    ends = [f"{100 * end:+.3g}" for end in (change.low, change.high) if end is not None]
    return (
        f"error of {change.name}, %" if is_error else change.name,
        f"{change.model} {change.cell or change.workload}".strip(),
        _with_spread(change.base, change.base_spread, scale),
        _with_spread(change.other, change.other_spread, scale),
        f"{100 * change.change:+.3g}",
        " to ".join(ends),
        verdict,
    )


def _with_spread(value: float | None, spread: float | None, scale: int) -> str:
    """*value* with its *spread*, in units of one in *scale*; nothing of what is not known."""
    numbers = (value, spread)
    return " \u00b1 ".join(f"{scale * number:.3g}" for number in numbers if number is not None)
