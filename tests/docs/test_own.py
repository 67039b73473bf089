"""
The pages about models and workloads of one's own: what they show is tried, what they list is all.
"""

import re

from pathlib import Path

import pytest

from harness.cli import main
from harness.core.evaluate.own_code import read_own
from harness.core.experiment.file import read_experiment
from harness.core.run.preflight import known_names
from tests.contracts.profiles import NAMES

DOCS = Path(__file__).parents[2] / "docs"
MODEL, WORKLOAD = ((DOCS / f"own-{name}.md").read_text() for name in ("model", "workload"))


def blocks(page, language):
    """
    The code of a page.
    """
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """
    The working directory of a reader who has saved what the pages show.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(blocks(MODEL, "python")[0])
    Path("mean.py").write_text(blocks(WORKLOAD, "python")[-1])


@pytest.mark.process
def test_model_of_the_page(capsys):
    """
    It keeps the contract; without what it requires it says so.
    """
    assert main(["check", "./mine.py:Mine"]) == 0
    assert capsys.readouterr().out == "the model mine keeps its contract\n"


def test_workload_of_the_page(capsys):
    """
    The empty class is refused as the page says, the whole one is good.
    """
    whole = Path("mean.py").read_text()
    Path("mean.py").write_text(blocks(WORKLOAD, "python")[0])
    assert main(["check", "mean.py:WordMean"]) == 2
    (shown,) = re.findall(r"`(mean\.py:1: .*?)`", WORKLOAD)
    assert capsys.readouterr().err.startswith(f"error: {shown}\n")

    Path("mean.py").write_text(whole)
    assert main(["check", "mean.py:WordMean"]) == 0
    assert capsys.readouterr().out == "the workload wordmean keeps its contract\n"


def test_experiment_of_the_page():
    """
    The file is read; its cells have the code.
    """
    (text,) = blocks(WORKLOAD, "yaml")

    experiment = read_experiment(
        text, "mean.yaml", known=known_names(lambda path, _: read_own(path))
    )

    assert experiment.workloads[0].name == "wordmean"
    assert experiment.workloads[0].code.class_name == "WordMean"


def test_list_of_statistics_is_all():
    """
    Each row of the page has a name that the code gives, and each name has a row.
    """
    cells = re.findall(r"^\| (`[^|]*`) \| ", MODEL.partition("## All statistics")[2], re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(listed) == sorted(NAMES - {"jobs"})
