"""
Tests for anchors of runs that are measured: by `harness.core.run.session`, on clusters in memory.
"""

import pytest

from harness.core.store import ledger
from harness.core.store.anchors import end_problem, order_words, read_anchor, unanchored_why
from tests.run.fakes import RecordingConsole
from tests.run.test_session import Interrupted, session  # noqa: F401 (a fixture)

pytestmark = pytest.mark.process


@pytest.fixture
def notary(tmp_path):
    """
    Command that notes what it is told.
    """
    path = tmp_path / "notary.sh"
    path.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/told\necho noted\n')
    path.chmod(0o755)
    return str(path)


def test_seal_and_end_are_told_by_name(session, notary, tmp_path):  # noqa: F811
    """
    The end is that of the chain at that moment.
    """
    console = RecordingConsole()
    run, _ = session(console=console).measure(anchor_command=notary, anchor_name="Example Notary")

    assert order_words(run) == "blind, anchored by Example Notary"
    assert (unanchored_why(run), end_problem(run)) == ("", "")
    told = (tmp_path / "told").read_text().split()
    assert told == [read_anchor(run, about).sha256 for about in ("seal", "end")]
    assert not [text for text in console.lines if "readers will see" in text]


def test_a_name_that_nobody_knows_is_warned_of(session, notary):  # noqa: F811
    """
    Before the first trial.
    """
    console = RecordingConsole()
    run, _ = session(console=console).measure(anchor_command=notary)

    warning = "warning: readers will see 'anchored by notary.sh'; give --anchor-name"
    place = next(n for n, text in enumerate(console.lines) if text.startswith("run "))
    assert warning in console.lines[:place]
    assert order_words(run) == "blind, anchored by notary.sh"


def test_an_authority_that_prints_no_stamp(session, notary):  # noqa: F811
    """
    The run goes on, and says that it is not anchored.
    """
    console = RecordingConsole()
    run, _ = session(console=console).measure(anchor_command=f"{notary} anchor tsa")

    assert "no time stamp" in unanchored_why(run)
    assert any("this counts as no anchor" in text for text in console.lines)


def test_an_interrupted_run_was_sealed(session, tmp_path, monkeypatch):  # noqa: F811
    """
    The ledger has it from the seal on, not from the end.
    """
    (tmp_path / "state").mkdir()
    monkeypatch.setattr(ledger, "ledger_file", lambda: tmp_path / "state/runs.jsonl")
    with pytest.raises(KeyboardInterrupt):
        session(console=Interrupted(3)).measure()

    at_seal, at_interrupt = ledger.entries()
    assert at_seal.sealed == at_interrupt.sealed != ""
    assert at_seal.lines < at_interrupt.lines
    (row,) = ledger.registered()
    assert (row.sealed, row.finished) == (at_seal.sealed, False)


def test_news_come_too_late_for_a_sealed_run(session):  # noqa: F811
    """
    It is said.
    """
    with pytest.raises(KeyboardInterrupt):
        session(console=Interrupted(3)).measure()
    console = RecordingConsole()
    session(console=console).measure(not_before="snow in Rome")
    assert any("--not-before comes too late" in text for text in console.lines)
