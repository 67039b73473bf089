"""
The models against vectors made by other implementations (see README.md beside this file).
"""

import json

from pathlib import Path

import pytest

from harness.cli.commands.models import EVALUATORS
from harness.models.vectors import compare, compute, read_vectors

VECTORS = Path(__file__).parent / "vectors"
FILES = sorted(VECTORS.glob("*.json"))


def cases():
    """
    Every case of every file, with its file.
    """
    for path in FILES:
        document = read_vectors(path.read_text(), path.name)
        for case in document.cases:
            yield pytest.param(document, case, id=f"{path.stem}-{case.input.name}")


@pytest.mark.parametrize(("document", "case"), list(cases()))
def test_model_answers_as_expected(document, case):
    """
    Every expected quantity is there, within the file's tolerance.
    """
    answer = compute(document.model, case.input, EVALUATORS)

    assert compare(answer, case.expected, document) == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_copies_hold_cases(path):
    """
    Every copied file is a vector file with at least one case.
    """
    assert json.loads(path.read_text())["format"] == 1
    assert read_vectors(path.read_text(), path.name).cases
