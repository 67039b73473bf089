"""
Tests for ``harness show`` of runs that lie elsewhere than those that were measured here.
"""

import json
import shutil

import pytest

from harness.base.records.trial import Versions
from harness.cli import main
from harness.cli.commands.runs import known_versions
from harness.core.evaluate.provenance import blind_refusals
from harness.core.evaluate.stored import StoredTrials
from harness.core.store.run import Run
from tests.evaluate.test_flow import fill, scored
from tests.evaluate.test_laws import change_chain
from tests.hostile.whole import whole_run


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


def shown(run, capsys):
    """
    What `harness show` says about the order of a run: as a document, and in its line; or neither.
    """
    assert main(["show", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["show", str(run)]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    return document["order"], next((line[1] for line in lines if line[0] == "order"), "")


def test_why_a_run_is_not_blind_is_a_line(run, capsys):
    """
    The first reason is enough.
    """
    (first, *_) = blind_refusals(Run(run), StoredTrials.of(Run(run)).done.values())
    said = f"not blind: {first}"

    assert said.endswith(" was measured before the predictions were sealed")
    assert shown(run, capsys) == (said, said)


def test_by_whose_word_a_run_is_blind_is_a_line(tmp_path, capsys):
    """
    That of whom its owner told, and without an answer the owner's.
    """
    run = whole_run(tmp_path / "results")
    told = "blind, anchored by notary"
    assert shown(run.path, capsys) == (told, told)

    (run.path / "anchors/seal.json").unlink()
    change_chain(run, lambda lines: [line for line in lines if "anchors/" not in line["name"]])
    owners = "blind by the owner's word"
    assert shown(run.path, capsys) == (owners, owners)


def test_of_what_was_not_sealed_no_order_is_told(tmp_path, capsys):
    """
    There is no line.
    """
    assert shown(fill(tmp_path / "results").path, capsys) == ("", "")


def test_a_run_without_evidence_says_so(run, capsys):
    """
    Whoever strips it takes the word away with it.
    """
    for path in [run / "trials.jsonl", *run.glob("trials/*/evidence.json")]:
        path.unlink()
    said = "not blind: it has no evidence"
    assert shown(run, capsys) == (said, said)


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
