"""The page of all keys of an experiment file."""

import runpy

from pathlib import Path

import pytest

from harness.base.records.question import KINDS
from harness.core.experiment.file import read_experiment
from tests.experiment.editor_schema import experiment_schema

PROJECT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "experiment-keys"))
TEXT = """\
schema: 1
name: n
question: q
cluster: {hosts: [a, b]}
workloads: [{name: terasort, input: [16 MiB, 32 MiB, 96 MiB, 128 MiB]}]
predict: {models: [ernest, scaling], profile_on: {input: [16 MiB, 96 MiB]}}
"""
CONTROLS = "[{name: dfsio, input: 8 MiB}, {name: sleep, input: 19200 B}, "


def test_page_is_what_the_schema_says():
    """
    After a change of a key: ``.venv/bin/python scripts/experiment-keys > docs/experiment.md``.
    """
    assert (PROJECT / "docs" / "experiment.md").read_text() == SCRIPT["page"]()


def test_every_key_has_a_meaning():
    """
    The schema describes each key, for editors and for the page.
    """
    schema = experiment_schema()
    keys = {key: "description" in entry for key, entry, _ in SCRIPT["keys"](schema, schema)}

    assert keys.keys() == SCRIPT["KEYS"].keys()
    assert [key for key, is_described in keys.items() if not is_described] == []


@pytest.mark.parametrize(("key", "example"), [(k, each[1]) for k, each in SCRIPT["KEYS"].items()])
def test_examples_are_read(key, example):
    """
    An example of the page is good in an experiment; what cannot stand beside it is left out.
    """
    path = key.replace("WORKER", "worker1").replace("workloads.", "workloads.0.")
    text = TEXT if "ssh" in key else TEXT.replace("cluster: {hosts: [a, b]}\n", "")
    if key.startswith("workloads"):
        text = text.partition("predict:")[0]
    if key == "predict":
        example = example.replace("32 MiB", "16 MiB")
    overrides = [f"{path}={example}"]
    if key.startswith("question."):  # a mapping in the place of the file's text
        name = key.partition(".")[2]
        kind = "" if name in KINDS else ", how_far: best"
        overrides = [f"question={{{name}: {example}{kind}}}"]
        text = text.replace("[ernest, scaling]", "[whatif, prophet]")
    if key == "starts":
        overrides.append("cluster.workers=[2, 3]")
    if key in ("predict.from", "predict.hardware"):  # in the place of cells of the grid
        other = "from: earlier, hardware: [a.json, b.json]"
        text = text.replace("profile_on: {input: [16 MiB, 96 MiB]}", other)
    if key.startswith("nightly"):  # its controls are workloads of the file
        text = text.partition("predict:")[0].replace("[", CONTROLS, 1)

    assert read_experiment(text, "f.yaml", overrides).schema_version == 1
