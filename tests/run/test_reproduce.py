"""
Tests for `harness reproduce`: a stored run made again, and what differs named.
"""

import json
import shutil

import pytest

from harness.cli import main
from harness.core.run.reproduce import STAGES, reproduce
from harness.core.store import Run
from harness.models.whatif.model import WhatIf
from tests.evaluate.test_flow import evaluation, scored


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    A scored run; not to be changed.
    """
    return scored(tmp_path_factory.mktemp("results"))


@pytest.fixture
def copy(stored, tmp_path):
    """
    The same run, to be changed, without the evidence that would show it.
    """
    run = Run(shutil.copytree(stored.path, tmp_path / stored.path.name))
    for path in [run.path / "trials.jsonl", *run.path.glob("trials/*/evidence.json")]:
        path.unlink()
    return run


def differing(run, tmp_path, given):
    """
    What differs in each stage.
    """
    return dict(reproduce(run, tmp_path / "again", given))


@pytest.mark.parametrize("given", ["raw", "trace", "profiles", "predictions"])
def test_all_comes_out_equal(stored, tmp_path, given):
    """
    From whatever is taken as it is stored; nothing of the run is touched.
    """
    before = {path: path.stat().st_mtime_ns for path in stored.path.rglob("*")}
    stages = list(STAGES)

    assert differing(stored, tmp_path, given) == {
        stage: [] for stage in stages[["raw", *stages].index(given) :]
    }
    assert {path: path.stat().st_mtime_ns for path in stored.path.rglob("*")} == before


def test_another_answer_is_named(stored, tmp_path, monkeypatch):
    """
    By model, place, both values and their relative difference; what follows from it as well.
    """
    predict = WhatIf.predict

    def doubled(model, *inputs):
        answer = predict(model, *inputs)
        return answer.model_copy(update={"body_s": 2 * answer.body_s})

    monkeypatch.setattr(WhatIf, "predict", doubled)
    stages = differing(stored, tmp_path, "profiles")

    answers = stored.read_predictions()["whatif"]
    old = {p.cell: p.body_s for p in answers if p.body_s is not None}
    named = {d.name: (d.old, d.new, d.relative) for d in stages["predictions"]
             if d.model == "whatif" and d.name.endswith(".body_s")}  # fmt: skip
    assert named == {f"{cell}.body_s": (s, 2 * s, 1.0) for cell, s in old.items()}
    assert {d.model for d in stages["scores"]} >= {"whatif", "whatif-mr2"}


def test_a_time_in_a_table_is_named(copy, tmp_path):
    """
    Where no hash shows it, the raw logs do.
    """
    record = next(r for r in evaluation(copy).done.values() if not r.trial.profiling)
    path = copy.trial_dir(record.trial.id) / "trace" / "job.json"
    jobs = json.loads(path.read_text())
    jobs["jobs"][0]["finish_s"] -= 5
    path.write_text(json.dumps(jobs))

    (difference,) = differing(copy, tmp_path, "raw")["trace"]
    assert difference.name == f"trials/{record.trial.id}/trace/job.json.jobs.0.finish_s"
    assert difference.new - difference.old == pytest.approx(5)


def test_the_command_prints_one_document(stored, capsys):
    """
    Exit status 0: all is equal.
    """
    assert main(["reproduce", str(stored.path), "--given", "predictions", "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    stage = {"stage": "scores", "equal": True, "by": "bytes", "differs": []}
    summary = "made again: everything is equal"
    assert document == {"schema_version": 1, "stages": [stage], "summary": summary}


def test_the_command_ends_with_1_where_something_differs(copy, capsys):
    """
    And shows it to people.
    """
    path = copy.path / "profiles" / "terasort.json"
    path.write_text(path.read_text().replace('"count": 4', '"count": 5', 1))
    copy.seal.add()

    assert main(["reproduce", str(copy.path), "--given", "trace"]) == 1
    assert "profiles/terasort.json." in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["tampered", "no run"])
def test_the_command_ends_with_7_without_a_sound_run(stored, tmp_path, broken, capsys):
    """
    Tampered evidence, or no run at all.
    """
    path = tmp_path / "run"
    if broken == "tampered":
        shutil.copytree(stored.path, path)
        (path / "trials.jsonl").unlink()

    assert main(["reproduce", str(path)]) == 7
    assert "fix:" in capsys.readouterr().err
