"""Models compared: their order where all of them answer, and the verdict on each pair."""

from __future__ import annotations

from harness.reports.answer import gain_points, interval_name
from harness.reports.data import ReportData
from harness.reports.document import Section, Table, table
from harness.reports.wording import QUANTITIES

_JOB_QUANTITIES = ("job_s", "body_s")
_NOTE = (
    "Nearer: proved to have the smaller error; equal: proved to differ by less than two points;"
    " undecided: neither. The pairs of one quantity and speed are corrected together (Holm): in at"
    " most 5 of 100 experiments a pair of equal models is called nearer. From four profiling cells"
    " on, this holds for other profiles, too: each pair is compared again without one of them."
)


def section(results: ReportData) -> Section:
    """Verdicts on the job time; those on all other quantities on demand."""
    score_book = results.score_book
    return Section(
        id="comparisons",
        title="Models compared",
        blocks=[
            comparison_table(results),
            comparison_table(results, all_quantities=True),
        ],
        missing="No two models were compared.",
        values=lambda: {
            "rankings": [ranking.model_dump(mode="json") for ranking in score_book.rankings],
            "comparisons": [
                comparison.model_dump(mode="json") for comparison in score_book.comparisons
            ],
        },
    )


def comparison_table(results: ReportData, *, all_quantities: bool = False) -> Table:
    """
    Pairs of models: by how much one is nearer, the verdict and its reason.

    Nine models are 36 pairs, so only those of the job time, unless *all_quantities* are wanted.
    """
    table_rows = []
    for comparison in results.score_book.comparisons:
        if not all_quantities and comparison.quantity not in _JOB_QUANTITIES:
            continue
        gain, low, high = gain_points(comparison)
        table_rows.append(
            (
                f"{comparison.better} against {comparison.worse}",
                QUANTITIES.get(comparison.quantity, comparison.quantity),
                comparison.speed,
                str(comparison.cells),
                gain,
                f"{low} to {high} ({interval_name(comparison.cells)})",
                comparison.verdict,
                comparison.reason,
            )
        )
    columns = (
        "Pair", "Quantity", "Speed", "Cells", "Gain, points", "Interval", "Verdict", "Reason",
    )  # fmt: skip
    caption = "Models in pairs: by how much the mean error of the first is smaller"
    caption += ", all quantities" if all_quantities else ""
    note = "" if all_quantities else _NOTE
    return table(caption, columns, "lllrrrll", table_rows, folded=all_quantities, note=note)
