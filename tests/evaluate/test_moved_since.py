"""
Tests for `harness.core.evaluate.moved`: what has moved since an earlier run, as an answer.
"""

from types import SimpleNamespace

import pytest

from harness.base.errors import DataError
from harness.base.records.question import Question
from harness.core.evaluate import moved
from harness.core.evaluate.moved import answer_moved, outcome_of

ASKED = Question(moved_since="earlier")


def changed(*verdicts):
    """
    Changes of two cells in turn with these verdicts.
    """
    return [
        SimpleNamespace(verdict=verdict, cell=f"c{place % 2}")
        for place, verdict in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [(("equal", "larger"), "yes"), (("smaller", "undecided"), "yes"), (("equal",), "no"),
     (("equal", "undecided"), "cannot tell"), ((), "cannot tell")],
)  # fmt: skip
def test_one_change_is_enough(verdicts, outcome):
    """
    Nothing has moved only where all is equal.
    """
    assert outcome_of(changed(*verdicts)) == outcome


def test_says_what_a_comparison_says(monkeypatch, tmp_path):
    """
    Of the run that is named, and of this one.
    """
    run = SimpleNamespace(path=tmp_path / "x/now")
    run.measured = run
    sides = []
    monkeypatch.setattr(moved, "Store", lambda folder: SimpleNamespace(find=lambda name: name))
    monkeypatch.setattr(moved, "StoredTrials", SimpleNamespace(of=lambda given: given))
    monkeypatch.setattr(moved, "Side", lambda given: sides.append(given) or given)
    monkeypatch.setattr(moved, "changes", lambda *_: changed("larger", "equal", "equal"))
    monkeypatch.setattr(moved, "sentence", lambda *_: "terasort is 12 % longer in run now: why")

    found = answer_moved(run, ASKED, "sealed")

    assert sides == ["earlier", run]
    assert (found.outcome, found.asked, found.cells) == ("yes", "sealed", 2)
    assert found.sentence == "Terasort is 12 % longer in run now: why."


def test_a_run_that_is_gone_leaves_no_answer(monkeypatch, tmp_path):
    """
    And no number from nothing.
    """
    run = SimpleNamespace(path=tmp_path / "x/now")
    run.measured = run

    def find(name):
        raise DataError(f"there is no run {name}", where="results", fix="name one")

    monkeypatch.setattr(moved, "Store", lambda folder: SimpleNamespace(find=find))

    found = answer_moved(run, ASKED, "afterwards")

    assert (found.outcome, found.error) == ("cannot tell", None)
    assert found.sentence == "It cannot be told: there is no run earlier."
