"""
The models against vectors made by other implementations (see README.md beside this file).
"""

import json

from pathlib import Path

import pytest

from harness.cli.vectors import EVALUATORS
from harness.models.vectors import compare, compute, read_vectors

VECTORS = Path(__file__).parent / "vectors"
IMPLEMENTED = [
    "mrtuner_ptc_examples",
    "mrtuner_ptc_physical",
    "prophet_accuracy_indicator",
    "prophet_map_spill",
    "prophet_shuffle",
    "prophet_tasks",
    "scheduler",
    "spn_gc_net",
    "spn_gc_phases",
    "vet_buckets",
    "vet_jobs",
    "vet_tail",
    "vet_tasks",
    "whatif_jobs",
    "whatif_merge_functions",
    "whatif_merge_simulation",
]


def cases():
    """
    Every case of the implemented models, with its file.
    """
    for name in IMPLEMENTED:
        document = read_vectors((VECTORS / f"{name}.json").read_text(), name)
        for case in document.cases:
            yield pytest.param(document, case, id=f"{name}-{case.question.name}")


@pytest.mark.parametrize(("document", "case"), list(cases()))
def test_model_answers_as_expected(document, case):
    """
    Every expected quantity is there, within the file's tolerance.
    """
    got = compute(document.model, case.question, EVALUATORS)

    assert compare(got, case.expected, document) == []


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.json")), ids=lambda p: p.stem)
def test_copies_hold_cases(path):
    """
    Every copied file is a vector file with at least one case.
    """
    assert json.loads(path.read_text())["format"] == 1
    assert read_vectors(path.read_text(), path.name).cases
