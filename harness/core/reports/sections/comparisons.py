"""Models compared: the verdict on each pair, as a matrix of models by models."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.documents.document import Section, Table, Text, Value, table
from harness.base.documents.wording import QUANTITIES, UNKNOWN, count, percent
from harness.base.records.score import COMPARED, Comparison, Speed
from harness.core.reports.answer import interval_name
from harness.core.reports.data import ReportData

_NOTE = (
    "Above the diagonal: the verdict on two models, and by how many points of relative error the"
    " model of the row is nearer; below it, why. Nearer: its error is the smaller one; equal: they"
    " differ by less than two points; undecided: neither. The pairs of a table are one family: the"
    " signs of their cells are flipped together, and in at most 5 of 100 experiments a pair of"
    " equal models is called nearer. All pairs are explored; the question has a family of its own."
)


def section(results: ReportData) -> Section:
    """The pairs that were asked for, then verdicts on all pairs by the time of jobs."""
    score_book = results.score_book
    compared = {comparison.quantity for comparison in score_book.comparisons}
    matrices = [asked_table(score_book.asked())] if score_book.asked() else []
    for quantity in QUANTITIES:
        if quantity in compared:
            matrices += [matrix(results, quantity, speed) for speed in results.speeds()]
    return Section(
        id="comparisons",
        title="Models compared",
        blocks=[Text(_NOTE), *matrices],
        missing="No two models were compared.",
        values=lambda: {"rankings": score_book.rankings, "comparisons": score_book.comparisons},
    )


def asked_table(pairs: Sequence[Comparison]) -> Table:
    """A row for each pair that the question asks for."""
    rows: list[tuple[str | Value, ...]] = [
        (
            pair.better,
            pair.worse,
            *(percent(error) for error in pair.errors or ()),
            verdict_value(pair),
            pair.reason,
        )
        for pair in pairs
    ]
    caption = f"What was asked, over {count(pairs[0].cells, 'cell')}: whether the first is nearer"
    heads = ("Model", "Other", "Its error", "The other's", "By how many points", "Why")
    return table(caption, heads, "llrrll", rows)


def matrix(results: ReportData, quantity: str, speed: Speed) -> Table:
    """Pairs of models at one quantity and speed: above the diagonal verdicts, below reasons."""
    pairs: dict[tuple[str, str], Comparison] = {
        (comparison.better, comparison.worse): comparison
        for comparison in results.score_book.comparisons
        if (comparison.quantity, comparison.speed) == (quantity, speed)
        and comparison.family == "explored"
    }
    nearer_to = [better for better, _ in pairs]
    models = sorted(dict.fromkeys(sum(pairs, ())), key=lambda model: -nearer_to.count(model))
    table_rows = []
    for row_model in models:
        row = [Value(row_model)]
        for column_model in models:
            if pair := pairs.get((row_model, column_model)):
                row.append(verdict_value(pair))
            elif pair := pairs.get((column_model, row_model)):
                row.append(Value(pair.reason))
            else:
                row.append(Value(UNKNOWN))
        table_rows.append(row)
    cells = next((pair.cells for pair in pairs.values()), 0)
    caption = f"{QUANTITIES[quantity]}: by how many points the row's model is nearer"
    caption += f" ({interval_name(cells)}), over {count(cells, 'cell')}"
    caption += ", at reference speed" if speed == "reference" else ""
    heads = ("Model", *models)
    return table(caption, heads, "l" * len(heads), table_rows, folded=quantity != COMPARED)


def verdict_value(pair: Comparison) -> Value:
    """The verdict, and by how many points the better model is nearer, with the interval."""
    tone = "mark" if pair.verdict == "nearer" else ""
    if pair.low is None or pair.high is None:
        return Value(f"{pair.verdict}: {percent(-pair.difference).removesuffix(' %')}", tone)
    low, high = sorted((-pair.low, -pair.high))
    half_interval = (high - low) / 2 or None
    points = (-pair.difference, low, high)
    gain, *ends = (percent(point, half_interval).removesuffix(" %") for point in points)
    return Value(f"{pair.verdict}: {gain} ({' to '.join(ends)})", tone)
