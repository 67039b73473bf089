"""
Tests for `harness.reports.sections.comparisons`.
"""

import dataclasses

from harness.reports.sections.comparisons import comparison_table, section


def changed(data, **changes):
    """
    The run with so changed comparisons.
    """
    compared = tuple(c.model_copy(update=changes) for c in data.score_book.comparisons)
    score_book = data.score_book.model_copy(update={"comparisons": compared})
    return dataclasses.replace(data, score_book=score_book)


def test_a_pair_has_its_verdict_and_the_reason(whole):
    """
    Beside the gain with its interval, at both speeds.
    """
    reason = "4 more repeats would tell"
    data = changed(
        whole, verdict="undecided", reason=reason, difference=-0.05, low=-0.12, high=0.02
    )

    rows = comparison_table(data).texts()

    assert rows == [
        ["whatif-mr2 against whatif", "job", speed, "10", "5", "-2 to 12 (95 % interval)",
         "undecided", reason]
        for speed in ("raw", "reference")
    ]  # fmt: skip


def test_few_cells_have_a_range(whole):
    """
    Nothing is called an interval there.
    """
    rows = comparison_table(changed(whole, cells=3)).texts()

    assert all(row[5].endswith("(range)") for row in rows)


def test_other_quantities_are_folded(whole):
    """
    The job time first, everything on demand.
    """
    data = changed(whole, quantity="sort_s")

    assert comparison_table(data).texts() == []
    assert len(comparison_table(data, all_quantities=True).texts()) == 2


def test_the_document_has_rankings_and_comparisons(whole):
    """
    As they are stored.
    """
    values = section(whole).values()

    assert [r["nearest"] for r in values["rankings"]] == [["whatif-mr2"]] * 2
    assert [c["verdict"] for c in values["comparisons"]] == ["nearer"] * 2
