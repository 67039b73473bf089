"""
Tests for Prophet's answers to cases of test vectors.
"""

import json

from pathlib import Path

import pytest

from harness.models.prophet.model import EVALUATORS
from harness.models.vectors import MOST_TASKS, CaseInput, compute

VECTORS = Path(__file__).parents[2] / "validation" / "vectors"


def answer_to(kind, change):
    """
    Answer to the first case of *kind*, after *change* was made to its input.
    """
    case = json.loads((VECTORS / f"prophet_{kind}.json").read_text())["cases"][0]
    change(case["input"])
    return compute("prophet", CaseInput("changed", case["input"]), EVALUATORS)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("map_spill", "map_in_records"),
        ("map_spill", "sort_s_per_record"),
        ("shuffle", "groups"),
        ("tasks", "config"),
        ("tasks", "statistics"),
        ("tasks", "costs"),
    ],
)
def test_a_case_that_lacks_a_part_is_refused(kind, field):
    """
    It is a bad case of its kind, not one that nobody knows; costs alone are 0 where absent.
    """
    answer = answer_to(kind, lambda case: case.pop(field))

    assert ("error" in answer) == (field != "costs")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("shuffle", lambda case: case["groups"][0].update(count=MOST_TASKS)),
        ("shuffle", lambda case: case.update(groups="n1")),
        ("shuffle", lambda case: case.update(groups=7)),
        ("shuffle", lambda case: case.update(costs=[])),
        ("tasks", lambda case: case["shuffle"].update(groups=[None])),
        ("tasks", lambda case: case["config"].update(num_maps=MOST_TASKS + 1)),
        ("map_spill", lambda case: case.update(map_in_records="many")),
    ],
)
def test_bad_cases_are_refused(kind, change):
    """
    Whatever stands in a case, the answer is one, or says that there is none.
    """
    assert answer_to(kind, change)["error"] == "ValueError"


def test_the_trace_is_given_beside_the_quantities():
    """
    One entry for each round and each wait.
    """
    answer = answer_to("shuffle", lambda _: None)

    assert len(answer["trace"]) == answer["rounds"] + answer["waits"]
