"""
Models and workloads by path, in experiment files, overrides and options: where they are looked for,
and what of a stored run is never run.
"""

from pathlib import Path

import pytest

from harness.base.errors import DataError, SpecError
from harness.cli.console.asked import asked_anew
from harness.core.evaluate.own_code import read_own
from harness.core.experiment.grid import expand
from harness.core.run.session import Session
from harness.core.store import Store
from tests.run.fakes import VERSIONS, RecordingConsole

MODEL = "class Mine:\n    def predict(self, *given):\n        return {'body_s': 1.0}\n"
WORKLOAD = """
from harness.clusters.workloads.wordcount import WordCount

open({mark!r}, "a").close()

class Words(WordCount):
    pass
"""
TEXT = """schema: 1
name: own
question: q
cluster: {workers: 1}
workloads: [{name: ./mine.py:Words, input: [2 MiB, 4 MiB], text: zipf}]
predict: {models: [whatif, ./mine.py:Mine], profile_on: {input: 2 MiB}}
"""


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """
    A working directory beside the folder of an experiment and its code.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    mark = str(tmp_path / "mark")
    (tmp_path / "there" / "mine.py").write_text(MODEL + WORKLOAD.format(mark=mark))
    return tmp_path


def session(tmp_path, text=TEXT, overrides=()):
    """
    The session of an experiment file there.
    """
    source = str(tmp_path / "there" / "own.yaml")
    return Session(text, source, tmp_path / "results", overrides, RecordingConsole())


def problem(*arguments, **named):
    """
    What is said of an experiment that cannot be.
    """
    with pytest.raises(SpecError) as refused:
        _ = session(*arguments, **named).experiment
    return refused.value


def test_names_are_those_of_the_classes(folders):
    """
    Paths are relative to the file, and the rest of an entry is that of its workload.
    """
    experiment = session(folders).experiment
    (workload,) = experiment.workloads

    assert experiment.predict.models == ("whatif", "mine")
    assert experiment.predict.code["mine"].file == "mine.py"
    assert (workload.name, workload.parameters) == ("words", {"text": ("zipf",)})
    assert {cell.workload.code for cell in expand(experiment)} == {workload.code}


def test_cells_depend_on_the_content_of_the_file(folders):
    """
    Another byte is another cell; the place of the file is nothing to it.
    """
    before = {cell.id for cell in expand(session(folders).experiment)}
    source = (folders / "there" / "mine.py").read_text()
    (folders / "there" / "mine.py").write_text(f"{source}\n")
    changed = {cell.id for cell in expand(session(folders).experiment)}
    (folders / "here" / "mine.py").write_text(source)
    moved = session(folders, TEXT.replace("./mine.py:W", "../here/mine.py:W")).experiment

    assert not before & changed
    assert {cell.id for cell in expand(moved)} == before


def test_overrides_are_relative_to_the_working_directory(folders):
    """
    As every path that is typed.
    """
    (folders / "here" / "other.py").write_text(MODEL.replace("Mine", "Other"))

    experiment = session(folders, overrides=("predict.models=./other.py:Other",)).experiment

    assert experiment.predict.models == ("other",)


@pytest.mark.parametrize(
    ("old", "new", "what", "fix"),
    [
        ("py:Mine", "px.py:Mine", "'./mine.px.py:Mine' is no class in a file: No such", "relative"),
        ("py:Mine", "py:Mone", "predict.models.1: mine.py has no class 'Mone'", "you mean Mine?"),
        ("py:Words", "py:Mine", "workloads.0.name: mine.py:1: Mine is no subclass", ""),
        ("[whatif, ./", "[./mine.py:Mine, ../there/", "'../there/mine.py:Mine' is given twice", ""),
        ("text: zipf", "text: latin", "text of words is 'latin': it must be one of zipf", "zipf"),
        ("text: zipf", "txt: zipf", "unknown key 'txt' in workloads.0", "did you mean text?"),
    ],
)
def test_what_is_wrong_has_its_place(folders, old, new, what, fix):
    """
    In the experiment file, and in the file of the code where that is wrong.
    """
    refused = problem(folders, TEXT.replace(old, new))

    assert what in refused.what
    assert fix in refused.fix
    assert "own.yaml" in refused.where


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            "class Mine:\n    def predcit(self): ...",
            "predict.models.1: mine.py:1: Mine has no method predict: line 2 has predcit",
        ),
        ("class Mine:\n  x = (", "predict.models.1: mine.py:2: not Python: '(' was never closed"),
        (
            "class Mine:\n    name = 'whatif'\n    predict = print",
            "another of the models is called 'whatif'",
        ),
        (
            "class Mine:\n    name = 'my model'\n    predict = print",
            "'my model' cannot name a model",
        ),
    ],
)
def test_code_that_is_wrong(folders, source, what):
    """
    Nothing of it is run to see that.
    """
    (folders / "there" / "mine.py").write_text(source)

    refused = problem(folders, TEXT.replace("./mine.py:Words", "wordcount"))

    assert what in refused.what


def stored(folders, text=TEXT):
    """
    A run of the experiment, as it is stored.
    """
    opened = session(folders, text)
    return Store(folders / "results").open_run(opened.experiment, text, versions=VERSIONS)


def test_asks_a_run_anew(folders):
    """
    The option's paths are the user's; the run's own names mean its own code.
    """
    run = stored(folders)
    (folders / "here" / "other.py").write_text(MODEL.replace("Mine", "Other"))
    own = run.experiment().predict.code["mine"]

    other = asked_anew(run, "mine,./other.py:Other", ()).predict
    same = asked_anew(run, "", ("input=4 MiB",)).predict

    assert (other.models, other.code["mine"]) == (("mine", "other"), own)
    assert other.code["other"] == read_own("other.py:Other").code
    assert (same.models, same.code) == (("whatif", "mine"), {"mine": own})


def test_asks_others_beside_those_of_a_run(folders):
    """
    A file of the user's counts as it is now, in the place of what the run has of that name.
    """
    run = stored(folders)
    own = run.experiment().predict.code["mine"]
    (folders / "here" / "other.py").write_text(MODEL.replace("Mine", "Other"))
    (folders / "here" / "mine.py").write_text(MODEL + "# changed")

    other = asked_anew(run, "", (), ["./other.py:Other", "nearest"]).predict
    anew = asked_anew(run, "", (), ["./mine.py:Mine"]).predict
    again = asked_anew(run, "", (), ["whatif"]).predict

    assert (other.models, other.code["mine"]) == (("whatif", "mine", "other", "scaling"), own)
    assert (anew.models, anew.code["mine"] == own) == (("whatif", "mine"), False)
    assert again == run.experiment().predict


def test_code_of_a_run_of_somebody_else_is_not_run(folders, monkeypatch):
    """
    Neither where its path leads to a file, nor when other models are asked of it.
    """
    run = stored(folders)
    monkeypatch.setenv("XDG_STATE_HOME", str(folders / "another"))
    (folders / "here" / "mine.py").write_text((folders / "there" / "mine.py").read_text())
    Path(folders / "mark").unlink()

    with pytest.raises((DataError, SpecError), match=r"never ran here: mine\.py:Words"):
        asked_anew(run, "whatif", ())
    with pytest.raises(SpecError, match="is named by the experiment of a stored run"):
        _ = Session(TEXT, str(run.path / "experiment.yaml"), run.path, (), None).experiment

    assert not (folders / "mark").exists()
