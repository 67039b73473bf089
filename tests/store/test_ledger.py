"""
Tests for `harness.core.store.ledger`: a run that was measured on this machine cannot be cut unseen.
"""

import json
import shutil

import pytest

from harness.base.errors import EvidenceError
from harness.cli import main
from harness.core.store import ledger
from harness.core.store.evidence import CHAIN, Chain
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
    with found.lock(measures=True):
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
    return Chain(Run(run.path).opener).lines().values()


def test_a_run_that_is_whole_agrees(run):
    """
    And is noted once, however often it is let go.
    """
    with run.lock(measures=True):
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
    with run.lock(measures=True):
        pass


@pytest.mark.process
def test_a_forged_copy_is_no_witness(run, tmp_path):
    """
    It may be scored and opened: the ledger says the same of the genuine run as before.
    """
    known = ledger.ledger_file().read_bytes()
    copy = Run(tmp_path / "elsewhere" / run.id)
    shutil.copytree(run.path, copy.path)
    assert main(["score", str(copy.path)]) == 0
    assert main(["report", str(copy.path)]) == 0
    with copy.lock():
        pass

    assert ledger.ledger_file().read_bytes() == known
    assert Run(run.path).check_evidence()


@pytest.mark.process
def test_a_copy_that_was_measured_on_is_no_witness_either(run, tmp_path):
    """
    Each stands for its own folder; where one was moved to, it has to agree with one of them.
    """
    copy = Run(tmp_path / "elsewhere" / run.id)
    shutil.copytree(run.path, copy.path)
    cut(copy, 4)
    with (copy.path / CHAIN).open("ab") as chain:
        previous = next(reversed(Chain(Run(copy.path).opener).lines()))
        line = {"schema_version": 14, "name": "manifest.json", "sha256": "ab" * 32}
        chain.write(json.dumps({**line, "stored_s": 1.0, "previous": previous}).encode() + b"\n")
    with copy.lock(measures=True):
        pass
    assert len([*ledger.entries(run.id)]) == 2
    assert Run(run.path).check_evidence()

    moved = tmp_path / "moved" / run.id
    shutil.copytree(run.path, moved)
    assert Run(moved).check_evidence()


@pytest.mark.process
def test_a_copy_that_was_cut_is_missed_elsewhere(run, tmp_path):
    """
    To move it does not help.
    """
    copy = Run(tmp_path / "elsewhere" / run.id)
    shutil.copytree(run.path, copy.path)
    cut(copy, 4)
    with pytest.raises(EvidenceError, match="this machine knows more of this run"):
        Run(copy.path).check_evidence()


def test_what_was_sealed_elsewhere_is_not_registered(run):
    """
    Whoever unpacks, scores or publishes it has not sealed it here.
    """
    ledger.ledger_file().unlink()
    with run.lock():
        pass
    run.note_in_ledger("ab" * 32)
    assert ledger.registered() == []


def test_a_run_was_sealed_when_its_seal_says(run, capsys):
    """
    Not when it was noted first; an older ledger has that moment alone.
    """
    (registered,) = ledger.registered()
    assert registered.sealed_s == run.seal.record().sealed_s < registered.first_s
    capsys.readouterr()
    assert main(["runs", "--registered"]) == 0
    assert " by " not in capsys.readouterr().out

    path = ledger.ledger_file()
    entry = json.loads(path.read_bytes())
    del entry["sealed_s"], entry["folder"]
    path.write_text(f"{json.dumps(entry)}\n")
    assert main(["runs", "--registered"]) == 0
    assert "by 20" in capsys.readouterr().out
    (run.path / FINISHED).unlink()
    with pytest.raises(EvidenceError, match="it had ended"):
        Run(run.path).check_evidence()


def test_another_seal_is_another_row(run):
    """
    A copy with predictions of its own takes nothing from the run that was sealed first.
    """
    (entry,) = ledger.entries()
    ledger.note(entry.model_copy(update={"sealed": "cd" * 32, "folder": "/x", "finished": False}))
    first, second = ledger.registered()
    assert (first.sealed, first.finished) == (entry.sealed, True)
    assert (second.sealed, second.finished) == ("cd" * 32, False)
