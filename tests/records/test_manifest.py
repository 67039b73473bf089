"""
Tests for `harness.base.records.manifest`.
"""

from harness.base.records.manifest import Manifest
from harness.base.records.trial import SCHEMA_VERSION


def test_a_document_holds_what_was_given_and_is_not_empty():
    """
    Entries that do not concern a run are left out, a zero is none of them, and the version of the
    format stands first of all; the document read again gives the same document.
    """
    manifest = Manifest(
        run="r", created_s=1.5, experiment_id="0f", experiment={"name": "x"}, commit="", seed=0,
        machine={}, overrides=(), limitations=("one",), gpus=None,
    )  # fmt: skip

    assert manifest.document() == {
        "schema_version": SCHEMA_VERSION, "run": "r", "created_s": 1.5, "experiment_id": "0f",
        "experiment": {"name": "x"}, "seed": 0, "limitations": ["one"],
    }  # fmt: skip
    assert Manifest.model_validate(manifest.document()).document() == manifest.document()
