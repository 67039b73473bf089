"""Tests for `harness.open`: frames, profiles, predictions and figures of a run."""

import shutil
import subprocess
import sys

import pytest

import harness

from harness.base.errors import DataError, HarnessError
from harness.cli.console.options import open_evaluation
from harness.core.evaluate.flow import Evaluation
from harness.export.tables import FRAMES

FACTOR = "mapreduce.task.io.sort.factor"


class TestOpen:
    def test_finds_a_run_by_any_of_its_names(self, folder, run):
        """
        The folder of its experiment or its own, its id or the first characters of that.
        """
        named = (run.run.path, str(run.run.path), folder / "recorded")
        opened = [harness.open(name) for name in named]
        opened += [harness.open(name, folder) for name in (run.run.id, run.run.id[:9])]

        assert {each.run.path for each in opened} == {run.run.path}

    def test_says_what_there_is(self, folder):
        """
        A name that is none of a run.
        """
        with pytest.raises(DataError, match="no run is called 'nothing'") as error:
            harness.open("nothing", folder)
        assert "recorded" in error.value.fix

    @pytest.mark.parametrize("name", ["x" * 5000, "x/" * 2045, "x\0"])
    def test_a_name_that_no_file_can_have_is_that_of_no_run(self, folder, name):
        """
        As a command is told, too.
        """
        with pytest.raises(DataError, match="no run is called 'x"):
            harness.open(name, folder)
        with pytest.raises(DataError, match="no run is called 'x"):
            open_evaluation(name, folder)

    @pytest.mark.process
    def test_imports_what_is_needed_when_it_is_needed(self):
        """
        A program that imports the package pays for neither pandas nor matplotlib.
        """
        heavy = "{'pandas', 'numpy', 'matplotlib', 'pydantic'}"
        code = f"import sys, harness; print(sorted({heavy} & sys.modules.keys()))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert (done.stdout.strip(), done.stderr) == ("[]", "")


class TestFrames:
    @pytest.mark.parametrize("name", [name for name in FRAMES if name != "comparisons"])
    def test_begin_with_the_settings(self, run, name):
        """
        Each axis that varies has a column by its own name, of numbers where its values are.
        """
        frame = getattr(run, name)

        assert list(frame)[:3] == ["workload", "input", FACTOR]
        assert frame.columns.is_unique
        if len(frame):
            assert set(frame.workload) <= {"terasort", "wordcount"}
            assert set(frame.input) == {6_000_000}
            assert set(frame[FACTOR]) <= {3, 5, 10, 20}

    def test_are_the_stored_records(self, run):
        """
        Nothing is left out and nothing counted twice.
        """
        score_book = run.run.read_scores()
        trials = run.run.trials()
        predictions = run.run.read_predictions().values()
        attempts = [a for t in trials for job in _jobs(run, t) for a in job.attempts]

        assert len(run.trials) == len(trials) == 24
        assert len(run.attempts) == len(attempts)
        assert len(run.predictions) == sum(map(len, predictions))
        assert len(run.scores) == len(score_book.scores)
        assert len(run.comparisons) == len(score_book.comparisons)
        assert run.spans.empty

    def test_of_trials_say_how_they_ended(self, run):
        """
        Failed ones have no time, done ones that of their jobs.
        """
        frame = run.trials.set_index("trial")
        failed = frame[frame.state == "failed"]

        assert (len(failed), set(failed.use), failed.job_s.count()) == (6, {"profile"}, 0)
        for trial in frame[frame.state == "done"].index:
            assert frame.job_s[trial] == sum(job.job_s for job in _jobs(run, trial))

    def test_of_measurements_have_both_speeds(self, run):
        """
        The seconds that were scored, whether the scores are there or not.
        """
        times = {each.trial: each for each in run.run.read_scores().measurements}
        frame = run.measurements.set_index("trial")

        assert set(frame.index) == set(times)
        for trial, each in times.items():
            assert frame.job_s[trial] == each.raw_s["job_s"]
            assert frame.reference_job_s[trial] == each.reference_s["job_s"]

    def test_join_by_trial_and_cell(self, run):
        """
        What a mean of the scores says is what the measurements say.
        """
        job = run.scores.query("quantity == 'job_s' and speed == 'raw' and model == 'whatif'")
        means = run.measurements.groupby("cell").job_s.mean()

        assert job.set_index("cell").measured_s.to_dict() == pytest.approx(
            means[job.cell].to_dict()
        )

    def test_are_read_when_they_are_asked_for(self, folder, monkeypatch):
        """
        Once, and not before.
        """
        monkeypatch.setattr(Evaluation, "report_data", None)
        fresh = harness.open(folder / "recorded")
        monkeypatch.setattr(fresh.run, "read_scores", lambda: pytest.fail("scores were read"))

        assert fresh.trials is fresh.trials

    def test_what_is_not_there_yet_is_named(self, run, tmp_path):
        """
        With the command that makes it.
        """
        copied = harness.open(_copy(run, tmp_path, without="scores"))

        with pytest.raises(DataError, match="is missing") as error:
            _ = copied.scores
        assert "harness score" in error.value.fix
        assert len(copied.measurements) == len(run.measurements)


class TestPredict:
    def test_of_a_row_is_what_is_sealed(self, run):
        """
        The same model, the same profile, the same cell: the same seconds.
        """
        for _, row in run.predictions.iterrows():
            again = run.predict(row.model, row)

            assert float(again.job_s or "nan") == pytest.approx(row.job_s, nan_ok=True)

    def test_of_settings_is_of_a_cell_with_these(self, run):
        """
        Named as in a frame or an experiment file; what they leave out is as in the run.
        """
        row = run.predictions.query("workload == 'terasort'").iloc[0]
        of_row = run.predict("whatif", row)
        larger = run.predict("whatif", {**row, "input": 10**9})
        named = {"workload": "terasort", "input": "1000000000 B", FACTOR: row[FACTOR]}

        assert larger.job_s > of_row.job_s
        assert run.predict("whatif", named).job_s == larger.job_s
        assert run.predict("whatif", {"workload": "terasort", "mapreduce.job.reduces": 7}).job_s

    @pytest.mark.parametrize(
        ("settings", "what"),
        [
            ({"workload": "sort"}, "no profile is of workload 'sort'"),
            ({"workload": "terasort", "inptu": 1}, "there is no setting 'inptu'"),
            ({"workload": "terasort", "input": "much"}, "'much'"),
        ],
    )
    def test_of_a_wrong_setting_is_an_error(self, run, settings, what):
        """
        That names it; nothing is predicted in its place.
        """
        with pytest.raises(HarnessError, match=what):
            run.predict("whatif", settings)

    def test_profile_is_found_by_its_workload(self, run):
        """
        One that is not there is named with those that are.
        """
        assert run.profile("terasort").workload == "terasort"
        with pytest.raises(DataError, match="no profile of 'wordcount'") as error:
            run.profile("wordcount")
        assert error.value.fix == "choose from terasort"


@pytest.mark.process
class TestPlot:
    def test_draws_what_the_report_draws(self, run):
        """
        A method for each kind of figure; where there are several, what it is of decides.
        """
        from matplotlib.figure import Figure

        figures = [
            run.plot.errors(),
            run.plot.scatter("whatif:", width=5),
            run.plot.speed(),
        ]

        assert {type(each) for each in figures} == {Figure}
        assert {"errors", "scatter", "speed"} <= set(dir(run.plot))
        assert [each.get_figwidth() for each in figures] == [7.16, 5, 7.16]

    def test_names_what_there_is(self, run):
        """
        Of several of one kind none is taken in silence.
        """
        with pytest.raises(DataError, match="2 figures are called 'scatter'") as error:
            run.plot.scatter()
        assert "scatter1 (whatif-mr2: " in error.value.fix
        with pytest.raises(DataError, match="no figures are called 'pie'") as error:
            run.plot.pie()
        assert "errors" in error.value.fix


def _jobs(run, trial):
    """
    Traces of the jobs of a trial; none of one that failed.
    """
    return run.run.read_trace(trial) if run.run.trials()[trial].state == "done" else ()


def _copy(run, folder, without):
    """
    A copy of the run without one of its folders.
    """
    return shutil.copytree(
        run.run.path, folder / run.run.id, ignore=shutil.ignore_patterns(without)
    )
