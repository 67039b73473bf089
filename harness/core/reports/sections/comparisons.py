"""Models compared: the verdict on each pair, as a matrix of models by models."""

from __future__ import annotations

from harness.base.documents.document import Section, Table, Text, Value, table
from harness.base.documents.wording import QUANTITIES, UNKNOWN, count, percent
from harness.base.records.score import Comparison, Speed
from harness.core.reports.answer import interval_name
from harness.core.reports.data import ReportData

_JOB_QUANTITIES = ("job_s", "body_s")
_NOTE = (
    "Above the diagonal: the verdict on two models, and by how many points of relative error the"
    " model of the row is nearer; below it, why. Nearer: proved to have the smaller error; equal:"
    " proved to differ by less than two points; undecided: neither. The pairs of one quantity and"
    " speed are corrected together (Holm): in at most 5 of 100 experiments a pair of equal models"
    " is called nearer. From four profiling cells on, this holds for other profiles, too: each pair"
    " is compared again without one of them."
)


def section(results: ReportData) -> Section:
    """Verdicts on the job time and the body; those on all other quantities on demand."""
    score_book = results.score_book
    compared = {comparison.quantity for comparison in score_book.comparisons}
    matrices = []
    for quantity in dict.fromkeys((*_JOB_QUANTITIES, *QUANTITIES)):
        if quantity in compared:
            matrices += [matrix(results, quantity, speed) for speed in results.speeds()]
    return Section(
        id="comparisons",
        title="Models compared",
        blocks=[Text(_NOTE), *matrices],
        missing="No two models were compared.",
        values=lambda: {"rankings": score_book.rankings, "comparisons": score_book.comparisons},
    )


def matrix(results: ReportData, quantity: str, speed: Speed) -> Table:
    """Pairs of models at one quantity and speed: above the diagonal verdicts, below reasons."""
    pairs: dict[tuple[str, str], Comparison] = {
        (comparison.better, comparison.worse): comparison
        for comparison in results.score_book.comparisons
        if (comparison.quantity, comparison.speed) == (quantity, speed)
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
    is_folded = quantity not in _JOB_QUANTITIES
    return table(caption, heads, "l" * len(heads), table_rows, folded=is_folded)


def verdict_value(pair: Comparison) -> Value:
    """The verdict, and by how many points the better model is nearer, with the interval."""
    low, high = sorted((-pair.low, -pair.high))
    half_interval = (high - low) / 2 or None
    points = (abs(pair.difference), low, high)
    gain, *ends = (percent(point, half_interval).removesuffix(" %") for point in points)
    tone = "mark" if pair.verdict == "nearer" else ""
    return Value(f"{pair.verdict}: {gain} ({' to '.join(ends)})", tone)
