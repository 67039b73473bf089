"""The page on the papers' numbers, held against what `harness papers` prints."""

import re

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from harness.cli import main
from harness.scoring.papers import PAPERS, Verdict, claims, summarise, tables

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text()


@pytest.fixture(scope="module")
def output():
    """
    What `harness papers` prints.
    """
    with redirect_stdout(StringIO()) as text:
        assert main(["papers"]) == 0
    return text.getvalue()


def table_rows(heading):
    """
    Rows of the page's table whose head begins with *heading*, as lists of cells.
    """
    body = PAGE.split(f"| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def test_excerpts_are_what_the_command_prints(output):
    """
    Every line of the blocks without a language, as it is.
    """
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if not language]

    assert blocks
    printed = output.splitlines()
    assert [line for block in blocks for line in block.splitlines() if line not in printed] == []


def test_contradictions_are_all_there():
    """
    Claim, figures and identifier, in the command's order.
    """
    expected = [
        [f"{PAPERS[c.paper]}: {c.text}", "; ".join(c.figures), c.erratum]
        for c in claims()
        if c.verdict is Verdict.CONTRADICTED
    ]

    assert table_rows("claim") == expected


def test_slips_are_all_there():
    """
    Those that the specifications do not list.
    """
    slips = {m: text for table in tables() for m, text in table.slips.items() if m[1] == "T"}

    assert table_rows("id") == [[mark, slips[mark]] for mark in sorted(slips)]


def test_tables_are_all_named():
    """
    Each by the name under which the command shows it.
    """
    assert [table.name for table in tables() if f"`{table.name}`" not in PAGE] == []


def test_counts_of_claims():
    """
    How many are judged, hold, are contradicted, cannot be checked.
    """
    found = summarise(tables(), claims()).verdicts

    counts = re.search(
        r"Of (\d+) claims.* (\d+) hold, (\d+) are .* and (\d+) cannot", PAGE
    ).groups()

    assert [int(n) for n in counts] == [sum(found.values()), *(found[v] for v in Verdict)]


def test_numbers_of_the_text_are_in_the_output(output):
    """
    Every number with a decimal point that the text speaks of.
    """
    prose = re.sub(r"^(```.*?^```|\|.*?)$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    numbers = re.findall(r"\d+\.\d+", prose)

    assert len(numbers) > 4
    assert [n for n in numbers if n not in output] == []
