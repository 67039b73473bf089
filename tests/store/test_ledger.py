"""
Tests for `harness.core.store.ledger`: a run that was measured on this machine cannot be cut unseen.
"""

import shutil

import pytest

from harness.base.errors import EvidenceError
from harness.cli import main
from harness.core.store import ledger
from harness.core.store.evidence import CHAIN
from harness.core.store.run import FINISHED, Run
from tests.evaluate.test_laws import NEWEST


@pytest.fixture
def run(tmp_path, monkeypatch):
    """
    A whole run that this machine has let go of.
    """
    (tmp_path / "state").mkdir()
    monkeypatch.setattr(ledger, "ledger_file", lambda: tmp_path / "state/runs.jsonl")
    results = tmp_path / "results"
    assert main(["unpack", str(NEWEST), "--results-dir", str(results)]) == 0
    (manifest,) = results.glob("*/*/manifest.json")
    found = Run(manifest.parent)
    with found.lock():
        pass
    return found


def cut(run, lines):
    """
    Take the last *lines* off the chain, what they name, and the mark of the end.
    """
    path = run.path / CHAIN
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept[:-lines]))
    named = {line.name for line in run_lines(run)}
    for folder in (run.path / "trials").iterdir():
        if f"trials/{folder.name}" not in named:
            shutil.rmtree(folder)
    if "scores" not in named:
        shutil.rmtree(run.path / "scores", ignore_errors=True)
    (run.path / FINISHED).unlink()


def run_lines(run):
    """
    Lines of its chain, read anew.
    """
    from harness.core.store.evidence import Chain

    return Chain(Run(run.path).opener).lines().values()


def test_a_run_that_is_whole_agrees(run):
    """
    And is noted once, however often it is let go.
    """
    with run.lock():
        pass
    assert len([*ledger.entries(run.id)]) == 1
    assert Run(run.path).check_evidence()


@pytest.mark.process
def test_what_was_cut_off_is_missed(run):
    """
    With `rm` and `head`, and no hash made anew.
    """
    cut(run, 4)
    with pytest.raises(EvidenceError, match="this machine knows more of this run"):
        Run(run.path).check_evidence()


def test_the_mark_of_the_end_is_missed(run):
    """
    A finished run stays finished.
    """
    (run.path / FINISHED).unlink()
    with pytest.raises(EvidenceError, match="it had ended, and its mark of that is gone"):
        Run(run.path).check_evidence()


def test_without_a_ledger_nothing_is_missed(run):
    """
    As on any other machine.
    """
    ledger.ledger_file().unlink()
    (run.path / FINISHED).unlink()
    assert Run(run.path).check_evidence()


def test_a_ledger_that_cannot_be_written_stops_nothing(run):
    """
    Measuring goes on.
    """
    ledger.ledger_file().unlink()
    ledger.ledger_file().mkdir()
    with run.lock():
        pass
