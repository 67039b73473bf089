"""
Tests for ``harness show`` of runs that lie elsewhere than those that were measured here.
"""

import json
import shutil

import pytest

from harness.base.records.trial import Versions
from harness.cli import main
from harness.cli.commands.runs import known_versions
from tests.evaluate.test_flow import scored


@pytest.fixture
def run(tmp_path):
    """
    A scored run of the experiment `recorded`, in a folder of another name.
    """
    run = scored(tmp_path / "results")
    return shutil.copytree(run.path, tmp_path / "bundle/runs" / run.path.name)


def test_a_run_of_a_bundle_names_its_experiment(run, capsys):
    """
    The folder around it has another name.
    """
    assert main(["show", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["experiment", "recorded"]


def test_a_manifest_that_cannot_be_read_leaves_the_folder(run, capsys):
    """
    It is all that is known then.
    """
    (run / "manifest.json").write_text("{")

    assert main(["runs", "--results-dir", str(run.parent.parent), "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["runs"]
    assert facts["experiment"] == "runs"


@pytest.mark.parametrize(
    ("versions", "known"),
    [
        (None, {}),
        (Versions(hadoop="unknown", java="unknown"), {}),
        (Versions(hadoop="2.7.3", java="unknown"), {"hadoop": "2.7.3"}),
        (
            Versions(hadoop="3.5.0", java="17", jars={"a.jar": "0f"}),
            {"hadoop": "3.5.0", "java": "17", "jars": ["a.jar 0f"]},
        ),
    ],
)
def test_versions_are_those_that_are_known(versions, known):
    """
    An imported run may know none.
    """
    assert known_versions(versions) == known
