"""
The survey of all readers: some inputs of each find nothing, and the stored table is complete.
"""

import json

from pathlib import Path

import pytest

from tests.hostile import survey
from tests.hostile.hunt import SEED, Finding, hunt
from tests.hostile.targets import targets

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "data" / "survey.json"
PAGE = ROOT / "docs" / "faults.md"
SOME = 30
# Whose files are hunted by tests/hostile/test_mutations.py, too.
NEW = ("answers", "witnesses", "bundles", "later steps")


@pytest.mark.process
@pytest.mark.parametrize("group", NEW)
def test_some_inputs_of_every_reader(group):
    """
    Each gives a record or the documented error, in time.
    """
    names = [name for of in survey.GROUPS[group].values() for name in of]
    with targets(names) as made:
        assert {target.name for target in made} == {*names}
        hunts = [hunt(target, SEED + 1, range(SOME)) for target in made]

    found = [(done.target, finding) for done in hunts for finding in done.findings]
    assert found == []
    assert {done.count for done in hunts} == {SOME}


def test_every_target_belongs_to_a_reader():
    """
    One that is added is surveyed.
    """
    surveyed = {name for of in survey.READERS.values() for name in of}
    assert {*survey.NAMES, *survey.GENERATED, *survey.STORED} <= surveyed


def test_the_table_counts_what_adds_up():
    """
    Inputs are refused or accepted, and bugs are counted as often as they were met.
    """
    finding = Finding("KeyError", "x.py:1", 3, times=2, target="a")
    row = survey.Row("a", inputs=10, accepted=4, followed=1, findings=(finding,))
    *_, line, total = survey.table([row])

    assert line.startswith("| `a` | 10 | 6 | 4 | 1 | 2 |")
    assert total.startswith("| 1 readers | 10 |")
    (problem,) = survey.problems([row])
    assert problem.startswith("2x KeyError at x.py:1: python -m tests.hostile")
    assert survey.row_of(json.loads(json.dumps(survey.asdict(row)))) == row


def test_the_stored_table_is_that_of_the_page():
    """
    The page shows what was stored; nothing in it was a bug.
    """
    document = json.loads(STORED.read_text())
    rows = [survey.row_of(row) for row in document["rows"]]
    shown = (
        PAGE.read_text().partition("<!-- survey -->\n")[2].partition("<!-- end of survey -->")[0]
    )

    assert shown.strip().splitlines() == [*survey.table(rows)]
    assert [row.reader for row in rows if row.bugs] == []
    assert {row.reader for row in rows} <= {*survey.READERS}
