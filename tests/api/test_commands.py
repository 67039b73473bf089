"""Tests for what commands do, as functions: `harness.runs`, `compare`, `tune`, and so on."""

import json
import shutil

from datetime import UTC, datetime

import pytest

import harness

from harness.base.errors import DataError, SpecError
from harness.cli import main
from harness.core.reports.answer import headline
from tests.run.test_imports import put
from tests.run.test_upgrade import lasting

MINE = """
class Mine:
    def predict(self, profile, configuration, cluster, job_input):
        body_s = 2.0 * job_input.num_splits
        return {"body_s": body_s}
"""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """
    A state folder of its own, in which code of one's own is kept.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class TestRun:
    def test_says_what_it_is(self, folder, run):
        """
        Its id, its folder, its experiment, and the first sentence of its report.
        """
        assert run.path == folder / "recorded" / run.id
        assert run.experiment == "recorded"
        assert run.verdict == headline(run.evaluation.report_data())
        assert repr(run) == f"<run {run.id} of recorded>"

    def test_a_misspelt_model_is_an_error_that_names_the_nearest(self, run):
        """
        No prediction of nothing.
        """
        with pytest.raises(SpecError, match="there is no model 'watif'") as error:
            run.predict("watif", {"workload": "terasort"})
        assert "whatif" in error.value.fix

    @pytest.mark.process
    def test_a_model_of_ones_own_answers_by_its_path(self, run, tmp_path):
        """
        As its file is at that moment.
        """
        path = tmp_path / "mine.py"
        path.write_text(MINE)
        first = run.predict(f"{path}:Mine", {"workload": "terasort"})
        path.write_text(MINE.replace("body_s = ", "body_s = 2 * "))
        second = run.predict(f"{path}:Mine", {"workload": "terasort"})

        assert first.body_s > 0
        assert second.body_s == pytest.approx(2 * first.body_s)

    def test_a_class_that_is_no_model_is_an_error(self, run, tmp_path):
        """
        As the command refuses it; no prediction of nothing.
        """
        (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
        with pytest.raises(SpecError, match=r"^mine\.py:1: Mine has no method predict"):
            run.predict(f"{tmp_path}/mine.py:Mine", {"workload": "terasort"})

    def test_a_path_without_such_a_class_is_an_error(self, run, tmp_path):
        """
        With what it has.
        """
        (tmp_path / "mine.py").write_text(MINE)
        with pytest.raises(SpecError, match="has no class 'Mien'") as error:
            run.predict(f"{tmp_path}/mine.py:Mien", {"workload": "terasort"})
        assert "Mine" in error.value.fix


class TestRuns:
    def test_are_those_of_the_folder(self, folder, run):
        """
        As the command lists them.
        """
        assert [each.path for each in harness.runs(folder)] == [run.path]

    def test_what_cannot_be_opened_is_named(self, run, tmp_path):
        """
        In a warning; the others are there.
        """
        for number in "12":
            copy = tmp_path / "recorded" / f"{run.id[:-1]}{number}"
            shutil.copytree(run.path, copy)
        (copy / "manifest.json").write_text("{}")

        with pytest.warns(UserWarning, match=f"{copy} is left out: "):
            found = harness.runs(tmp_path)
        assert [each.id for each in found] == [f"{run.id[:-1]}1"]

    def test_of_nothing_are_none(self, tmp_path):
        """
        No error.
        """
        assert harness.runs(tmp_path) == []


class TestTune:
    def test_proposes_what_the_command_proposes(self, run, capsys):
        """
        The same properties, judge and times.
        """
        tuned = harness.tune(run, "terasort", optimizers=["rules", "mrtuner"], models=["ptc-wave"])
        words = ["tune", str(run.path), "--workload", "terasort", "--model", "ptc-wave", "--json"]
        assert main([*words, "--optimizer", "rules", "--optimizer", "mrtuner"]) == 0
        answer = json.loads(capsys.readouterr().out)

        assert (tuned.says, tuned.base) == (answer["says"], answer["base"])
        assert tuned.judge == answer["judge"]
        assert tuned.refused == answer["refused"]
        shown = [row["job_s"] for row in answer["proposals"]]
        assert [*tuned.proposals.job_s] == pytest.approx(shown)
        best = answer["proposals"][0]
        assert tuned.properties == (best["properties"] if (best["saved"] or 0) > 0 else {})

    def test_settings_change_the_job_first(self, run):
        """
        The base says so.
        """
        tuned = harness.tune(
            run, "terasort", settings={"input": "1 GiB"}, optimizers=["rules"], judge="whatif"
        )
        assert tuned.base.endswith(", with input=1 GiB")

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({"judge": "watif"}, "there is no model 'watif'"),
            ({"models": ["watif"]}, "there is no model 'watif'"),
            ({"optimizers": ["rule"]}, "there is no optimizer 'rule'"),
            ({"workload": "sort"}, "no profile is of workload 'sort'"),
        ],
    )
    def test_a_wrong_name_is_an_error(self, run, options, what):
        """
        With what there is.
        """
        with pytest.raises(SpecError, match=what):
            harness.tune(run, **options)


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    """
    Histories of two months; in the second one jobs take 1.5 times as long.
    """
    folder = tmp_path_factory.mktemp("months")
    for month, slower in {"before": 1.0, "after": 1.5}.items():
        for number in range(6):
            factor = slower * (1 + 0.01 * number)
            first = 60 * (month == "after")
            put(folder / month, first + number, size=1 + number % 3, change=lasting(factor))
    return folder


class TestPastJobs:
    def test_two_months_are_imported_and_compared(self, months, tmp_path):
        """
        As by the commands; what runs are is told by objects as by paths.
        """
        until = datetime(2100, 1, 1, tzinfo=UTC)
        before, _ = (
            harness.import_histories(months / name, into=tmp_path / name, profile_until=until)
            for name in ("before", "after")
        )
        changed = harness.compare(before.run, str(tmp_path / "after"))

        assert before.families.to_dict("records") == [
            {"family": "terasort", "jobs": 6, "cells": 3, "profiled": 6, "scored": 0}
        ]
        assert (before.left_out, len(before.notes)) == ({}, 1)
        assert changed.verdict.startswith("terasort is 1.5 times slower (1.4")
        assert set(changed.changes.verdict) == {"larger"}
        assert changed.changes.query("name == 'job_s' and cell == ''").change.item() == (
            pytest.approx(0.5, abs=0.01)
        )
        (shown,) = changed.would_show
        assert (shown.workload, shown.factor < 1.1) == ("terasort", True)
        assert len(changed.missing) == 4
        assert [*changed.differences] == ["what", "base", "other"]
        assert before.run.verdict.startswith("No answer yet: ")

    @pytest.mark.process
    def test_are_backtested(self, months, tmp_path):
        """
        The run is scored; other models asked later are an analysis of it.
        """
        past = harness.import_histories(months / "before", into=tmp_path / "past")
        first = harness.backtest(past.run, ["scaling"])
        second = harness.backtest(tmp_path / "past", ["ernest"])

        assert first.path == past.run.path
        assert set(first.scores.model) == {"scaling"}
        assert set(second.scores.model) == {"ernest"}
        assert second.path.parent.parent == first.path

    def test_names_can_be_left_out(self, months, tmp_path):
        """
        But not where logs have them.
        """
        past = harness.import_histories(months / "after", into=tmp_path / "past", anonymise=True)
        assert [*past.families.family] == ["job-1"]
        with pytest.raises(SpecError, match="logs of tasks name hosts"):
            harness.import_histories(
                months / "after", into=tmp_path / "other", logs="userlogs", anonymise=True
            )

    def test_nothing_to_import_is_an_error(self, tmp_path):
        """
        As of the command.
        """
        with pytest.raises(DataError, match="there is no job history"):
            harness.import_histories(tmp_path, into=tmp_path / "run")

    def test_a_run_is_not_compared_with_itself(self, run):
        """
        However it is named.
        """
        with pytest.raises(SpecError, match="compared with itself"):
            harness.compare(run, str(run.path))


def test_what_is_no_name_of_the_package_is_an_error():
    """
    As of every module.
    """
    with pytest.raises(AttributeError, match="module 'harness' has no attribute 'opne'"):
        _ = harness.opne
    assert set(harness.__all__) <= set(dir(harness))
