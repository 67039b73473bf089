"""
The JSON Schema of report.json.
"""

import copy
import dataclasses
import json
import runpy

from pathlib import Path

import jsonschema
import pytest

from harness.base.documents.formats import render_json
from harness.base.records.manifest import Manifest
from harness.base.records.score import ScoreBook
from harness.core.reports.data import ReportData
from harness.core.reports.sections import make_document
from tests.reports.conftest import START
from tests.reports.sections.test_vet import measured  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "harness/core/reports/report.schema.json"


@pytest.fixture(scope="module")
def validator():
    """What a user's program makes of the file."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def values(data):
    """The report of *data* as a program reads it, with a manifest and a seal as runs have them."""
    manifest = Manifest(run="r", created_s=START, experiment_id="e", experiment={}).document()
    seal = {"not_blind": [], "order": "blind by the owner's word"}
    known = dataclasses.replace(data, manifest=manifest, seal=seal)
    return json.loads(render_json(make_document(known)))


def complaints(validator, document):
    """Where the schema refuses a document."""
    return [(list(error.absolute_path), error.message) for error in validator.iter_errors(document)]


def test_is_made_from_the_records():
    """
    The file is what the script prints.
    """
    script = runpy.run_path(str(ROOT / "scripts/report-schema"))

    assert SCHEMA.read_text() == script["text"]() + "\n"


@pytest.mark.process
def test_reports_are_valid(validator, whole, measured):  # noqa: F811
    """
    Of a whole run, of one with vet, and of one in which nothing ran or was scored.
    """
    runs = [whole, measured, ReportData(whole.experiment)]
    runs.append(dataclasses.replace(whole, score_book=ScoreBook(), predictions=(), profiles={}))

    assert [complaints(validator, values(data)) for data in runs] == [[]] * len(runs)


@pytest.mark.parametrize(
    "path",
    [[], ["answer"], ["experiment"], ["scores", 0], ["summaries", 0, "metrics", "mape"],
     ["manifest"], ["profiles", "terasort"], ["trials", 0], ["inside", 0, "parts", 0]],
)  # fmt: skip
def test_an_unknown_key_is_refused(validator, whole, path):
    """
    Wherever it stands; of each list the first row is enough.
    """
    document = {
        key: copy.deepcopy(value[:1] if isinstance(value, list) else value)
        for key, value in values(whole).items()
    }
    place = document
    for step in path:
        place = place[step]
    place["surprise"] = 1

    (complaint,) = complaints(validator, document)
    assert complaint[0] == path
