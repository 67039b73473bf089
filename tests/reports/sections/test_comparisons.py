"""
Tests for `harness.core.reports.sections.comparisons`.
"""

import dataclasses

from harness.base.documents.document import Table
from harness.core.reports.sections.comparisons import matrix, section


def changed(data, **changes):
    """
    The run with so changed comparisons.
    """
    compared = tuple(c.model_copy(update=changes) for c in data.score_book.comparisons)
    score_book = data.score_book.model_copy(update={"comparisons": compared})
    return dataclasses.replace(data, score_book=score_book)


def test_a_pair_has_its_verdict_and_the_reason(whole):
    """
    Once each: above the diagonal the verdict with its interval, below it the reason.
    """
    reason = "4 more repeats would tell"
    data = changed(
        whole, verdict="undecided", reason=reason, difference=-0.05, low=-0.12, high=0.02
    )

    shown = matrix(data, "job_s", "raw")

    assert shown.columns == ("Model", "whatif-mr2", "whatif")
    assert shown.texts() == [
        ["whatif-mr2", "\u2013", "undecided: 5 (-2 to 12)"],
        ["whatif", reason, "\u2013"],
    ]
    assert "95 % interval" in shown.caption


def test_few_cells_have_a_range(whole):
    """
    Nothing is called an interval there.
    """
    assert "(range), over 3 cells" in matrix(changed(whole, cells=3), "job_s", "raw").caption


def test_other_quantities_are_folded(whole):
    """
    The job time first, everything on demand; at both speeds where times differ.
    """

    def folded(data):
        return [block.folded for block in section(data).shown() if isinstance(block, Table)]

    equal = [m.model_copy(update={"reference_s": m.raw_s}) for m in whole.measurements]

    assert folded(whole) == [False, False]
    assert folded(changed(whole, quantity="sort_s")) == [True, True]
    assert folded(dataclasses.replace(whole, measurements=equal)) == [False]


def test_the_document_has_rankings_and_comparisons(whole):
    """
    As they are stored.
    """
    values = section(whole).values()

    assert [r.nearest for r in values["rankings"]] == [("whatif-mr2",)] * 2
    assert [c.verdict for c in values["comparisons"]] == ["nearer"] * 2
