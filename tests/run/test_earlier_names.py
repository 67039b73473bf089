"""
Models that had another name: experiment files and stored runs have it, and are answered.
"""

import pytest

from harness.base.errors import SpecError
from harness.cli.console.asked import asked_anew
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.provenance import model_code
from harness.core.experiment.file import read_experiment
from harness.core.run.asking import with_models, with_present_names
from harness.core.run.reproduce import reproduce
from harness.core.run.session import Session
from harness.models import EARLIER_NAMES, MODELS, find, reads_settings, require_models
from tests.evaluate.test_flow import scored
from tests.run.fakes import RecordingConsole

TEXT = """schema: 1
name: earlier
question: q
cluster: {workers: 1}
workloads: [{name: wordcount, input: [2 MiB, 4 MiB]}]
predict: {models: [whatif, nearest], profile_on: {input: 2 MiB}}
"""
NAMES = ("whatif", "nearest")
NOTE = "note: the model nearest is called scaling now, and is asked as that"


def session(tmp_path, text=TEXT, overrides=()):
    """
    The session of an experiment file.
    """
    source = str(tmp_path / "earlier.yaml")
    return Session(text, source, tmp_path / "results", overrides, RecordingConsole())


@pytest.fixture
def stored(tmp_path):
    """
    A scored run of an experiment that has the earlier name, as it was when the model had that.
    """
    run = scored(tmp_path / "results")
    experiment = run.experiment()
    predict = experiment.predict.model_copy(update={"models": ("whatif", "nearest")})
    document = experiment.model_copy(update={"predict": predict}).model_dump(mode="json")
    run.update_manifest(experiment=document)
    run.seal.path.unlink()
    for path in (run.path / "predictions").glob("*.jsonl"):
        path.unlink()
    evaluation = Evaluation(run, run.experiment(), run.read_plan())
    evaluation.predict()
    evaluation.score()
    return run


def test_names_lead_to_models_that_there_are():
    """
    And none of them is the name of another.
    """
    assert set(EARLIER_NAMES.values()) <= set(MODELS)
    assert not set(EARLIER_NAMES) & set(MODELS)
    assert find("nearest") is find("scaling") is MODELS["scaling"]
    assert find("farthest") is None
    assert model_code("nearest") == model_code("scaling") != ""
    assert not reads_settings("nearest")


def test_a_file_is_read_with_the_present_name(tmp_path):
    """
    With a note; so is an option.
    """
    opened = session(tmp_path)
    overridden = session(tmp_path, TEXT.replace("nearest", "ernest"), ("predict.models=nearest",))

    assert opened.experiment.predict.models == ("whatif", "scaling")
    assert opened.console.lines == [NOTE]
    assert overridden.experiment.predict.models == ("scaling",)
    assert overridden.console.lines == [NOTE]


def test_both_names_are_one_model(tmp_path):
    """
    Which is given twice.
    """
    with pytest.raises(SpecError, match="given twice"):
        _ = session(tmp_path, TEXT.replace("whatif", "scaling")).experiment


def test_a_model_of_ones_own_has_another_name(tmp_path, monkeypatch):
    """
    Else nobody would know which of the two an older run was asked.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source = "class Nearest:\n    def predict(self, *given):\n        return {'body_s': 1.0}\n"
    (tmp_path / "mine.py").write_text(source)

    with pytest.raises(SpecError, match="another of the models is called 'nearest'"):
        _ = session(tmp_path, TEXT.replace("nearest", "./mine.py:Nearest")).experiment


def test_who_asks_for_it_elsewhere_is_told():
    """
    The name that it has.
    """
    with pytest.raises(SpecError) as refused:
        require_models(["nearest"], "--judge")
    assert refused.value.fix == "it is called scaling now"


def test_a_stored_run_keeps_the_name_and_is_reproduced(stored, tmp_path):
    """
    Its predictions are those of the model today.
    """
    predictions = stored.read_predictions()
    asked = Evaluation(stored, with_models(stored.experiment(), ["scaling"]), stored.read_plan())
    compared = dict(reproduce(stored, tmp_path / "again", "profiles"))

    assert sorted(predictions) == ["nearest", "whatif"]
    assert {row.model for row in predictions["nearest"]} == {"nearest"}
    assert any(row.job_s for row in predictions["nearest"])
    assert compared == {"predictions": [], "scores": []}
    renamed = {"model": "scaling"}
    assert [row.model_copy(update=renamed) for row in predictions["nearest"]] == asked.predict()


@pytest.mark.parametrize("models", ["", "whatif,nearest", "whatif,scaling"])
def test_a_stored_run_is_asked_anew_by_the_present_name(stored, models):
    """
    Whichever name is typed.
    """
    profile_on = [] if models else ["mapreduce.task.io.sort.factor=3,10"]

    assert asked_anew(stored, models, profile_on).predict.models == ("whatif", "scaling")
    for asked in (with_present_names(stored.experiment()), with_models(stored.experiment(), NAMES)):
        assert asked.predict.models == ("whatif", "scaling")


def test_text_without_known_names_is_left_as_it_is():
    """
    Nothing is looked up where no name is checked.
    """
    assert read_experiment(TEXT, "e.yaml").predict.models == ("whatif", "nearest")
