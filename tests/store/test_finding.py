"""
Tests for `harness.core.store.Store`: runs and trials found by what a user writes of them.
"""

import shutil

import pytest

from harness.base.errors import DataError
from harness.core.store import Run, Store, new_analysis


@pytest.fixture
def shelf(tmp_path):
    """
    A store whose runs are an hour apart.
    """
    hours = iter(range(0, 100 * 3600, 3600))
    return Store(tmp_path / "results", clock=lambda: float(next(hours)))


@pytest.fixture
def runs(shelf, make):
    """
    Three runs, by the time of their opening, of two experiments; the middle one has two trials.
    """
    opened = [
        shelf.open_run(make.experiment(name), "", new=True) for name in ("small", "big", "small")
    ]
    for trial in make.trials()[:2]:
        make.commit(opened[1], trial)
    return opened


def refusal(find, text):
    """
    The error that *find* raises of *text*.
    """
    with pytest.raises(DataError) as caught:
        find(text)
    return caught.value


class TestFind:
    def test_a_run_is_its_folder_its_id_or_the_start_of_that(self, shelf, runs):
        """
        As long as one run alone has it.
        """
        _, second, _ = runs
        for text in (str(second.path), second.id, second.id[:11]):
            assert shelf.find(text).path == second.path

    def test_an_experiment_is_its_newest_run_with_a_trial(self, shelf, runs, make):
        """
        By its name or its folder, from any results; without any trial it is the newest run.
        """
        first, second, third = runs
        elsewhere = Store(shelf.results_dir / "none")

        assert shelf.find("big").path == second.path
        assert shelf.find("small").path == third.path
        make.commit(first, make.trials()[0])
        assert shelf.find("small").path == first.path
        assert elsewhere.find(str(first.path.parent)).path == first.path

    def test_a_folder_is_an_experiment_by_its_runs_alone(self, shelf, runs, monkeypatch):
        """
        Where one is, other folders in it do not matter; `.` is the folder that it stands for.
        """
        (runs[1].path.parent / "notes").mkdir()
        monkeypatch.chdir(runs[1].path.parent)

        assert shelf.find(".").id == runs[1].id
        assert shelf.find("big").id == runs[1].id

    def test_an_analysis_is_found_like_a_run(self, shelf, runs, make):
        """
        By the first characters of its id, which no run has.
        """
        with new_analysis(runs[1], make.experiment("big"), [], "1.0") as analysis:
            pass
        name = analysis.id.removeprefix(".")

        assert shelf.find(name).path == runs[1].path / "analyses" / name
        assert shelf.find(name[:13]).path == runs[1].path / "analyses" / name

    def test_several_that_fit_are_named(self, shelf, runs):
        """
        By the time of their opening, whatever their experiments are called.
        """
        error = refusal(shelf.find, "19700101T")

        paths = ", ".join(str(run.path) for run in runs)
        assert error.what == f"'19700101T' are the first characters of 3 runs: {paths}"
        assert (error.where, error.fix) == (str(shelf.results_dir), "write more of the id")

    def test_the_newest_six_are_named(self, shelf, make):
        """
        A hundred runs are no help.
        """
        opened = [shelf.open_run(make.experiment(), "", new=True) for _ in range(8)]

        named = refusal(shelf.find, "1970").what.split(": ")[1]
        assert named == ", ".join(str(run.path) for run in opened[2:])

    @pytest.mark.parametrize("text", ["nobody", ""])
    def test_what_fits_none_is_told_which_there_are(self, shelf, runs, text):
        """
        An empty name is no first character of all.
        """
        error = refusal(shelf.find, text)

        paths = ", ".join(str(run.path) for run in runs)
        rest = "harness runs --results-dir FOLDER lists those of another folder"
        assert error.what == f"no run is called '{text}'"
        assert error.where == str(shelf.results_dir.absolute())
        assert error.fix == f"there are {paths}; {rest}"

    def test_where_there_is_none_the_command_is_named(self, shelf):
        """
        That makes the first.
        """
        assert refusal(shelf.find, "x").fix == (
            "there is none: harness run FILE makes one;"
            " harness runs --results-dir FOLDER lists those of another folder"
        )

    def test_a_folder_without_a_run_is_said_to_have_none(self, shelf, tmp_path, make):
        """
        It may be half copied; what may be meant instead is named where there is anything.
        """
        empty = tmp_path / "empty"
        empty.mkdir()

        error = refusal(shelf.find, str(empty))
        assert error.what == (
            "this folder holds no run: it has no manifest.json, or is only half copied"
        )
        assert error.where == str(empty)
        assert error.fix == "harness runs --results-dir FOLDER lists them"
        run = shelf.open_run(make.experiment(), "")
        assert refusal(shelf.find, str(empty)).fix == f"name one of {run.path}"

    def test_what_is_no_run_among_results_is_passed_over(self, shelf, runs):
        """
        Files, folders of other names, and folders that cannot be of an experiment.
        """
        (shelf.results_dir / "-other").mkdir()
        shutil.copytree(runs[0].path, shelf.results_dir / "-other" / runs[0].id)
        (runs[0].path.parent / "20240101T000000Z").mkdir()
        (runs[0].path.parent / "20240101T000000Z-00000").mkdir()
        (shelf.results_dir / "file").write_text("")

        assert [run.id for run in shelf.all_runs()] == [run.id for run in runs]


class TestLatest:
    def test_an_unknown_experiment_is_told_how_to_start(self, shelf):
        """
        With the folder that was looked into.
        """
        error = refusal(shelf.latest, "small")

        assert error.what == "no run of experiment small"
        assert error.where == str(shelf.results_dir / "small")
        assert error.fix == (
            "start one with 'harness run FILE', or name the folder with --results-dir"
        )


class TestTrials:
    def test_all_ids_are_given_once(self, shelf, runs, make):
        """
        By the time of the runs, then by their names.
        """
        trials = make.trials()
        for trial in (trials[0], trials[2]):
            make.commit(runs[2], trial)

        first, second = sorted(trial.id for trial in trials[:2])
        assert shelf.trial_ids() == [first, second, trials[2].id]

    def test_a_trial_is_that_of_the_newest_run(self, shelf, runs, make):
        """
        By the first characters of its id.
        """
        trial = make.trials()[0]
        found, trial_id = shelf.find_trial(trial.id[:-1])
        assert (found.path, trial_id) == (runs[1].path, trial.id)

        make.commit(runs[2], trial)
        found, trial_id = shelf.find_trial(trial.id)
        assert (found.path, trial_id) == (runs[2].path, trial.id)

    def test_an_unknown_trial_is_refused(self, shelf, runs):
        """
        With the command that names them.
        """
        error = refusal(shelf.find_trial, "zz")

        assert error.what == "no trial 'zz'"
        assert error.where == str(shelf.results_dir)
        assert error.fix == "harness plan FILE names the trials"

    def test_several_trials_are_named_up_to_four(self, shelf, runs, make):
        """
        Sorted; an empty name is all of them, even where there is one.
        """
        for trial in make.trials()[2:6]:
            make.commit(runs[0], trial)
        ids = sorted(shelf.trial_ids())

        error = refusal(shelf.find_trial, "")
        assert len(ids) == 6
        assert error.what == f"'' matches several trials: {', '.join(ids[:4])}"
        assert error.where == str(shelf.results_dir)
        assert error.fix == "write more of its id"

    def test_an_empty_name_is_no_trial(self, shelf, make):
        """
        Even where there is one trial alone.
        """
        make.commit(shelf.open_run(make.experiment(), ""), make.trials()[0])

        assert "matches several" in refusal(shelf.find_trial, "").what


def test_a_note_says_why_a_run_is_new(shelf, make):
    """
    Another experiment; the run that was left is named.
    """
    first = shelf.open_run(make.experiment(), "")
    other = shelf.open_run(make.experiment(repeat=7), "")

    assert other.note == (
        f"the experiment differs from that of the unfinished run {first.id}: new run"
    )
    assert Run(other.path).note == ""
