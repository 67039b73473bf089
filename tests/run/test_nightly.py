"""
Tests for nights: from a run to its line, its code tried on an earlier night, and what is kept.
"""

import json
import math
import os
import shutil
import subprocess
import sys

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import DataError, MachineError, SpecError
from harness.cli import main
from harness.core.evaluate.flow import Evaluation
from harness.core.run import execute
from harness.core.store import Run, traces
from harness.models.whatif.model import WhatIf
from harness.nightly.alarms import Judge, judged
from harness.nightly.history import History
from harness.nightly.measure import accept, measure_night, replay, tell
from harness.nightly.nights import levels, night, points
from harness.nightly.records import Alarm, Night
from harness.observe.parsing.history import read_history
from harness.observe.storage.files import exclusive_lock
from tests.evaluate.test_alarms import CAUSES, nights
from tests.evaluate.test_flow import scored
from tests.run.fakes import Fault, RecordingConsole
from tests.run.test_session import EXPERIMENT, Interrupted, session  # noqa: F401 - a fixture

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    A scored run; not to be changed.
    """
    return scored(tmp_path_factory.mktemp("results"))


@pytest.fixture
def measure(session, tmp_path, monkeypatch):  # noqa: F811
    """
    Measures a night as a new process would.
    """

    def build(console=None, *overrides, text=EXPERIMENT):
        results = tmp_path / "results"
        return measure_night(text, "small.yaml", results, overrides, console or RecordingConsole())

    assert session
    monkeypatch.setattr(execute, "find_disturbance", lambda _: "")  # whatever else runs here
    return build


class TestLine:
    def test_all_that_was_measured_is_in_it(self, stored):
        """
        Times of scored cells, the probe, costs, residuals of all models, by names that stay.
        """
        evaluation = Evaluation.of(stored)
        line = night(evaluation)
        kinds = {kind: [p for p in line.points if p.kind == kind] for kind in
                 ("measured", "control", "cost", "residual")}  # fmt: skip
        # Wordcount has no profile here: it is a control.  No recorded job shows its frame.
        assert {p.workload for p in kinds["measured"]} == {"terasort"}
        assert {p.workload for p in kinds["control"]} == {"wordcount", ""}
        assert {p.model for p in kinds["residual"]} == {"whatif", "whatif-mr2"}
        jobs = [p for p in kinds["measured"] if p.quantity == "job_s"]
        assert [len(p.raw) for p in jobs] == [3, 3]
        assert len({point.name for point in line.points}) == len(line.points)
        inputs = [fact for name, fact in line.facts.items() if name.startswith("input of ")]
        assert all(fact.endswith("map output records") for fact in inputs)
        assert len(inputs) == 6
        scores = {(s.cell, s.model): s for s in stored.read_scores().scores
                  if (s.quantity, s.speed) == ("job_s", "raw")}  # fmt: skip
        for point in kinds["residual"]:
            score = next(s for key, s in scores.items() if key[1] == point.model
                         and evaluation.labels[key[0]] == point.cell)  # fmt: skip
            assert levels([point], {})[point.name] == pytest.approx(
                math.log(score.measured_s / score.predicted_s)
            )

    def test_what_is_missing_is_said(self, stored, tmp_path):
        """
        Half a night is in no comparison; it is no error.
        """
        run = Run(shutil.copytree(stored.path, tmp_path / stored.path.name))
        assert night(Evaluation.of(run)).lacks == ()
        records = [r for r in run.trials().values() if not r.trial.profiling]
        for record in records[: len(records) // 2 + 1]:
            shutil.rmtree(run.trial_dir(record.trial.id))
        line = night(Evaluation.of(run))
        assert not line.whole
        assert line.lacks[0].startswith("7 of 12 trials are not done: ")


class TestReplay:
    def test_the_same_code_changes_nothing(self, stored):
        """
        Every stage comes out as it is stored.
        """
        assert replay(stored) == ((), {})

    @pytest.mark.process
    def test_a_coefficient_is_named_with_what_it_changes(self, stored, monkeypatch):
        """
        The model alone, by the exact ratio; not the scoring that follows from it.
        """
        predict = WhatIf.predict

        def longer(model, *inputs):
            answer = predict(model, *inputs)
            return answer.model_copy(update={"body_s": 1.25 * answer.body_s})

        monkeypatch.setattr(WhatIf, "predict", longer)
        names, offsets = replay(stored)
        assert names == ("whatif", "whatif-mr2")  # which runs the same function
        of_model = {p.name for p in points(Evaluation.of(stored)) if p.model}
        assert offsets.keys() == of_model
        # A quarter more of the body is less of the job, which has its frame.
        assert all(-math.log(1.25) < size < -0.01 for size in offsets.values())

    @pytest.mark.process
    def test_another_parser_is_named(self, stored, monkeypatch):
        """
        As such, although all that follows differs too.
        """

        def late(*inputs):
            job = read_history(*inputs)
            return replace(job, finish_s=job.finish_s + 1)

        monkeypatch.setattr(traces, "read_history", late)
        names, offsets = replay(stored)
        assert names == ("parser",)
        assert any(name.startswith("measured") and size > 0 for name, size in offsets.items())


@pytest.mark.process
class TestNight:
    def test_each_has_another_order_and_adds_a_line(self, measure, tmp_path):
        """
        Of one series, in a chain, each with the code tried on the first one.
        """
        lines = [measure().night for _ in range(3)]
        runs = [Run(tmp_path / "results/small" / line.run) for line in lines]
        assert [run.read_manifest().seed for run in runs] == [7, 8, 9]
        assert {line.series for line in lines} == {lines[0].series}
        assert {line.baseline for line in lines} == {lines[0].run}
        assert [line.code for line in lines] == [()] * 3
        history = History(tmp_path / "results/small/nightly")
        assert [entry.run for entry in history.entries()] == [line.run for line in lines]

    def test_two_at_once_are_refused(self, measure, tmp_path):
        """
        The second one says which process measures, and leaves everything alone.
        """
        with (
            exclusive_lock(tmp_path / "results/small/nightly/lock", "it"),
            pytest.raises(MachineError, match=r"history\.jsonl is in use by process"),
        ):
            measure()
        assert not [*(tmp_path / "results/small").glob("2*")]

    def test_an_interrupted_night_is_gone_on_with(self, measure, tmp_path):
        """
        Nothing is measured twice, and its line is added once.
        """
        with pytest.raises(KeyboardInterrupt):
            measure(Interrupted(after=1))
        first = measure()
        assert len(History(tmp_path / "results/small/nightly").entries()) == 1
        assert len([*(tmp_path / "results/small").glob("2*")]) == 1
        assert first.failed == 0

    def test_a_night_that_was_killed_before_its_line_gets_it(self, measure, tmp_path):
        """
        By the next call, which measures nothing where it is still the same night.
        """
        line = measure().night
        history = History(tmp_path / "results/small/nightly")
        history.path.unlink()
        console = RecordingConsole()
        assert measure(console).night.run == line.run
        assert any("is not in the history yet" in each for each in console.lines)

    def test_an_old_unfinished_night_is_left_alone(self, measure, monkeypatch, tmp_path):
        """
        Its repeats are of another night: the line of the next one says that it is there.
        """
        with pytest.raises(KeyboardInterrupt):
            measure(Interrupted(after=1))
        monkeypatch.setattr("harness.nightly.measure.SAME_NIGHT_S", -1.0)
        line = measure().night
        assert "was left unfinished" in line.lacks[-1]
        assert len([*(tmp_path / "results/small").glob("2*")]) == 2

    def test_what_seems_to_have_moved_is_measured_again(self, measure, monkeypatch):
        """
        In turn with another cell, and the line says how many repeats it was.
        """
        monkeypatch.setattr(Judge, "suspected", lambda judge: [judge.table.points[0].cell])
        line = measure(None, "repeat=1", "nightly.confirm=2").night
        (point,) = [p for p in line.points if (p.kind, p.quantity) == ("measured", "job_s")]
        assert (len(point.raw), point.again) == (3, 2)

    def test_failed_trials_are_counted_and_their_cells_missing(self, measure, clusters):
        """
        The night is in the history and in no comparison.
        """
        clusters.faults["terasort"] = [Fault(), Fault(), *([Fault(status=1)] * 9)]
        line, _, failed, _ = measure()
        assert failed
        assert not line.whole


@pytest.fixture
def history(tmp_path):
    """
    Forty nights of which the last ten are slower, as written to a folder of results.
    """
    made = History(tmp_path / "results/nightly/nightly")
    for line in nights(CAUSES["cluster: disk"]):
        made.append(line)
    return made


def test_judge_prints_alarms_and_ends_with_1(history, capsys):
    """
    From the file, its folder, the experiment's folder or that of all results.
    """
    documents = []
    for path in (history.path, history.folder, history.folder.parent, history.folder.parents[1]):
        assert main(["nightly", "judge", str(path), "--json"]) == 1
        documents.append(json.loads(capsys.readouterr().out))
    assert documents == [documents[0]] * 4
    (alarm,) = documents[0]["alarms"]
    assert documents[0]["nights"] == 40
    assert (alarm["cause"], alarm["since"]) == ("cluster: disk", 31)
    assert main(["nightly", "judge", str(history.path)]) == 1
    assert "cluster: disk" in capsys.readouterr().out


def test_accepting_is_a_line_with_a_reason(history, capsys):
    """
    By the first characters of an id; what was accepted cannot be again.
    """
    main(["nightly", "judge", str(history.path), "--json"])
    alarm = Alarm.model_validate(json.loads(capsys.readouterr().out)["alarms"][0])
    first = history.entries()[-1]
    history.append(first.model_copy(update={"alarms": (alarm,), "run": "run41"}))
    results = str(history.folder.parents[1])
    command = ["nightly", "accept", alarm.id[:4], results, "--reason", "new disks"]
    assert main(command) == 0
    assert history.entries()[-1].reason == "new disks"
    assert main(["nightly", "judge", str(history.path)]) == 0
    with pytest.raises(DataError, match="is accepted already"):
        accept(history, alarm.id, "again")


def test_bad_data_ends_with_7(history, tmp_path, capsys):
    """
    With the line; nothing is judged.
    """
    history.path.write_bytes(history.path.read_bytes().replace(b"terasort", b"terasorT", 1))
    assert main(["nightly", "judge", str(history.path)]) == 7
    assert "line 2 does not follow" in capsys.readouterr().err
    for text in ("", "time,a\n1,x\n"):
        (tmp_path / "a.csv").write_text(text)
        assert main(["nightly", "judge", str(tmp_path / "a.csv")]) == 7
    assert main(["nightly", "judge", str(tmp_path / "none.csv")]) == 7
    assert main(["nightly", "judge", str(tmp_path)]) == 1 or "does not follow"


@pytest.mark.process
def test_doctor_says_what_nights_can_show(history, capsys):
    """
    Levels of variance, shifts by nights, what would help; too few nights are refused.
    """
    whole = History(history.folder.parents[1] / "whole/nightly")
    for line in nights():
        whole.append(line)
    assert main(["nightly", "doctor", str(whole.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    job = next(row for row in document["variance"] if row["what"] == "48 MiB")
    assert 1.0 < float(job["repeat, %"]) < 3.0  # repeats were drawn at 2 %
    (terasort,) = [row for row in document["shifts"] if row["what"] == "terasort"]
    sizes = [float(terasort[f"within {n} nights"]) for n in (3, 10, 30)]
    assert sizes == sorted(sizes, reverse=True)
    few = History(history.folder.parents[1] / "few/nightly")
    for line in nights(count=3):
        few.append(line)
    assert main(["nightly", "doctor", str(few.path)]) == 7


@pytest.mark.process
def test_real_nights_name_the_disk_and_the_model(capsys):
    """
    From night 8 on their cluster's disk was throttled, at night 11 a commit changed What-If.
    """
    example = PROJECT / "docs/nightly-example"
    assert main(["nightly", "judge", str(example), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)

    causes = {(alarm["cause"], alarm["since"]) for alarm in document["alarms"]}
    assert causes == {("cluster: disk", 8), ("code: whatif", 11)}
    assert document["nights"] == 14
    assert sum(file.stat().st_size for file in example.rglob("*.*")) < 2_000_000


@pytest.mark.process
def test_a_command_hears_of_new_alarms(tmp_path):
    """
    As JSON on its input, without a shell; its failure is one clear error.
    """
    (alarm,) = [Alarm(id="1f2e", cause="model", series="a", since=1, raised=2, change=0.1)]
    code = f"import sys; open({str(tmp_path / 'said')!r}, 'w').write(sys.stdin.read())"
    tell(f"{sys.executable} -c {json.dumps(code)}", [alarm])
    assert json.loads((tmp_path / "said").read_text())["alarms"][0]["id"] == "1f2e"
    tell("no-such-command", [])
    with pytest.raises(MachineError, match="did not end well"):
        tell("no-such-command", [alarm])


@pytest.mark.process
def test_bisect_refuses_what_no_commit_has(history, capsys):
    """
    An alarm that code did not cause, and nights on changed files.
    """
    assert main(["nightly", "bisect", "ffff", str(history.path)]) == 7
    assert "not one alarm whose cause is code\n" in capsys.readouterr().err
    assert subprocess.run([sys.executable, "-c", ""], check=True).returncode == 0
    last = history.entries()[-1]
    assert isinstance(last, Night)
    history.append(last.model_copy(update={"code": ("whatif",), "run": "run41"}))
    assert main(["nightly", "judge", str(history.path), "--json"]) == 1
    alarms = json.loads(capsys.readouterr().out)["alarms"]
    (code,) = [each for each in alarms if each["cause"] == "code: whatif"]
    history.append(last.model_copy(update={"alarms": (Alarm.model_validate(code),)}))
    assert main(["nightly", "bisect", code["id"], str(history.path)]) == 7
    assert "no commits lie between" in capsys.readouterr().err


@pytest.mark.process
def test_bisect_names_the_commit(stored, tmp_path):
    """
    Of four, between two nights, in a clone whose second commit doubles a coefficient.
    """
    clone = tmp_path / "clone"
    shutil.copytree(PROJECT / "harness", clone / "harness")
    model = clone / "harness/models/whatif/model.py"
    # As tests/conftest.py has it: what was stored by this process knows no in-sample misses.
    predict = clone / "harness/core/evaluate/predict.py"
    asks = "in_sample_miss(model, profile, profiled)"
    assert asks in predict.read_text()
    predict.write_text(predict.read_text().replace(f"name: {asks}", "name: None"))

    def commit(subject, old="", new=""):
        model.write_text(model.read_text().replace(old, new, 1) if old else model.read_text() + "#")
        git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", subject], check=True)
        done = subprocess.run([*git, "describe", "--always"], check=True, capture_output=True)
        return done.stdout.decode().strip()

    first = commit("the first")
    commit("nothing of note")
    commit("bodies count double", "body_s=body_s,", "body_s=2 * body_s,")
    last = commit("nothing again")
    folder = tmp_path / "results/recorded"
    shutil.copytree(stored.path, folder / stored.path.name)
    history, line = History(folder / "nightly"), night(Evaluation.of(stored))
    line = line.model_copy(update={"baseline": line.run, "facts": {"commit": first}})
    history.append(line)
    update = {"run": "run2", "facts": {"commit": last}, "code": ("whatif",)}
    changed = line.model_copy(update=update)
    alarm = judged([line, changed])[0][0]
    history.append(changed.model_copy(update={"alarms": (alarm,)}))
    code = "import sys; from harness.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "nightly", "bisect", alarm.id, str(history.path)]
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    done = subprocess.run(
        command, env=environment, cwd=clone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("bodies count double\n")
    assert len([*(clone / ".git/worktrees").glob("*")]) == 0


@pytest.mark.parametrize("design", ["latin", "sobol"])
def test_nights_of_other_cells_each_are_refused(measure, design):
    """
    Each night has its own seed, and with it such a design takes other cells.
    """
    with pytest.raises(SpecError, match=f"design: {design} takes others with each seed"):
        measure(None, f"design={{{design}: 2}}")
