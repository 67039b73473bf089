"""
Tests for `harness.scoring.papers`: what holds for every table and claim.
"""

import re

from pathlib import Path

import pytest

from harness.errors import DataError
from harness.scoring.papers import (
    PAPERS,
    Outcome,
    Verdict,
    claims,
    marks,
    printed,
    summarise,
    tables,
)

DOCS = Path(__file__).parents[3] / "docs"
SPECIFICATIONS = {p: (DOCS / "models" / f"{p}.md").read_text() for p in PAPERS}
PAGE = DOCS / "papers.md"


def identifiers():
    """
    Every identifier of a slip or an erratum, with its paper.
    """
    in_tables = {(t.paper, mark) for t in tables() for mark in t.slips}
    in_claims = {(c.paper, mark) for c in claims() for mark in c.erratum.split()}
    return sorted(in_tables | in_claims)


@pytest.mark.parametrize("table", tables(), ids=lambda t: t.name)
class TestTables:
    def test_rows_fit_the_columns(self, table):
        """
        A row has a value for each column; numbers stand where digits are said, and nowhere else.
        """
        for row in table.rows:
            assert len(row) == len(table.columns)
            for column, value in zip(table.columns, row, strict=True):
                assert column.digits is not None or not isinstance(value, float)

    def test_marks_are_explained(self, table):
        """
        What is marked is explained below the table, and nothing else.
        """
        assert set(marks(table)) == set(table.slips)

    def test_cells_that_differ_are_marked(self, table):
        """
        A cell that does not agree has an identifier; one that agrees has none.
        """
        fine = (Outcome.AGREES, Outcome.PLAUSIBLE)

        assert [c.row for c in table.checks if bool(c.slip) == (c.outcome in fine)] == []


@pytest.mark.parametrize(("paper", "mark"), identifiers())
def test_identifiers_are_those_of_the_documentation(paper, mark):
    """
    An erratum of the specification has its number there; a slip of a cell stands on the page.
    """
    text = PAGE.read_text() if mark[1] == "T" else SPECIFICATIONS[paper]

    assert re.search(rf"^\| {mark} \|", text, re.MULTILINE)


def test_claims_have_figures():
    """
    Whatever is said of a claim, the figures stand with it.
    """
    assert all(all(claim.figures) and claim.figures for claim in claims())


def test_summary_counts_everything_once():
    """
    Cells by outcome and claims by verdict add up to what there is.
    """
    summary = summarise(tables(), claims())

    assert summary.recomputed == sum(len(t.checks) for t in tables())
    assert sum(summary.outcomes.values()) == summary.recomputed
    assert sum(summary.verdicts[verdict] for verdict in Verdict) == len(claims())


class TestPrinted:
    @pytest.mark.parametrize("table", ["prophet_table1_job", "vet_table2_varying_map_slots"])
    def test_gives_only_what_the_paper_prints(self, table):
        """
        Columns that others computed are for tests; the code does not see them.
        """
        columns = printed.printed(table)[0]

        assert [c for c in columns if "computed" in c or c == "check"] == []

    def test_missing_table_is_an_error_with_its_place(self):
        """
        An installation without its data says so.
        """
        with pytest.raises(DataError, match=r"papers/tables/no_such\.csv"):
            printed.printed("no_such")

    @pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1\n", "a,b\n1,2,3\n", 'a,b\n"1'])
    def test_damaged_table_is_an_error(self, text, monkeypatch):
        """
        Empty, without rows, short rows, long rows, an open quote.
        """
        monkeypatch.setattr(printed, "_text", lambda _: text)

        with pytest.raises(DataError, match=r"t\.csv"):
            printed.printed("t")

    def test_foreign_number_is_an_error(self):
        """
        The error shows what is no number.
        """
        with pytest.raises(DataError, match="'1O' is no number"):
            printed.number("1O", "t")
