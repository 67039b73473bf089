"""
Tests for `harness papers`.
"""

import json

from contextlib import redirect_stdout
from io import StringIO

import pytest

from harness.cli import main
from harness.cli.papers import WIDTH
from harness.scoring.papers import PAPERS, claims, summarise, tables


def shown(capsys, *names):
    """
    What `harness papers NAMES` prints.
    """
    assert main(["papers", *names]) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def everything():
    """
    What `harness papers` prints.
    """
    with redirect_stdout(StringIO()) as text:
        assert main(["papers"]) == 0
    return text.getvalue()


class TestText:
    def test_is_readable_at_100_columns(self, everything):
        """
        No line is longer, and no cell was cut.
        """
        assert max(map(len, everything.splitlines())) <= WIDTH == 100
        assert "…" not in everything

    @pytest.mark.parametrize("table", tables(), ids=lambda t: t.name)
    def test_shows_every_table_with_its_slips_below(self, table, everything):
        """
        The part under the table's title explains each mark.
        """
        part = everything.split(f"[{table.name}]")[1].split("\n\n\n")[0]

        assert [mark for mark in table.slips if mark not in part] == []
        assert [text for text in table.slips.values() if text not in part] == []

    @pytest.mark.parametrize("claim", claims(), ids=lambda c: c.text)
    def test_shows_every_claim_with_its_figures(self, claim, everything):
        """
        Line breaks aside.
        """
        words = " ".join(everything.split())

        assert " ".join(claim.text.split()[:6]) in words
        assert [figure for figure in claim.figures if figure not in words] == []

    def test_ends_with_the_summary(self, everything):
        """
        How many cells were recomputed, how many differ and why, how many claims are contradicted.
        """
        summary, end = summarise(tables(), claims()), everything.rpartition("\nSummary\n")[2]

        lines = [" ".join(line.split()) for line in end.splitlines()]
        assert (
            lines[0]
            == f"{summary.recomputed} printed cells recomputed from the others of their row"
        )
        assert f"{summary.outcomes['differs']} differs: PT3, PT4, PT5, V09" in lines
        assert f"{summary.verdicts['contradicted']} contradicted" in lines

    def test_shows_one_table(self, capsys):
        """
        Its own summary below it, and no claims.
        """
        text = shown(capsys, "vet-3")

        assert ("Jobd" in text, "Job1" in text, "claims" in text) == (True, False, False)
        assert " ".join(text.split()).endswith(
            "4 printed cells recomputed from the others of their row 2 within the bound 2 differs:"
            " V09 2 marks of slips 2 V09 vet_job lies outside what mean and deviation of PR and EI"
            " allow: one of them is wrong"
        )

    def test_shows_one_paper(self, capsys):
        """
        Its tables and its claims.
        """
        text = shown(capsys, "spn-gc")

        assert [name for name in PAPERS.values() if f"the paper on {name} claims" in text] == [
            "SPN-GC"
        ]
        assert "[spn-gc-2]" in text
        assert "[vet-2]" not in text


class TestJson:
    def test_is_one_document(self, capsys):
        """
        The tables by name with their cells unrounded, the claims, the summary.
        """
        document = json.loads(shown(capsys, "--json"))

        assert document["schema_version"] == 1
        assert [t["name"] for t in document["tables"]] == [t.name for t in tables()]
        assert [c["text"] for c in document["claims"]] == [c.text for c in claims()]
        assert document["summary"]["outcomes"]["differs"] == 5
        first = document["tables"][0]["rows"][0]
        assert (first["input_gb"], first["i_accu_percent"]) == (2, pytest.approx(20 / 7))

    def test_holds_what_was_asked_for(self, capsys):
        """
        Claims alone.
        """
        document = json.loads(shown(capsys, "claims", "--json"))

        assert document["tables"] == []
        assert len(document["claims"]) == len(claims())


def test_unknown_name_is_a_usage_error(capsys):
    """
    The nearest is offered.
    """
    assert main(["papers", "prophet2"]) == 2
    assert "did you mean 'prophet-2'?" in capsys.readouterr().err
