"""
Tests for `harness.models.vectors`: what a runner of test vectors must not do.
"""

import json

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.models import EVALUATORS
from harness.models.vectors import (
    CaseInput,
    Mismatch,
    NoImplementationError,
    VectorFile,
    compare,
    compute,
    read_vectors,
)

EXACT = VectorFile("whatif", 1e-9, 1e-9, ())
MERGE = {"num_segments": 28, "merge_factor": 10}


def text(**changes):
    """
    A vector file of one merge.
    """
    document = {"model": "whatif", "cases": [{"name": "a", "input": MERGE}]}
    return json.dumps(document | changes)


class TestRead:
    def test_input_does_not_hold_the_answer(self):
        """
        What is handed to an implementation has no way to what is expected.
        """
        case = {"name": "a", "input": MERGE, "rules": "mr2", "expected": {"first_pass": 1}}
        case_input = read_vectors(text(cases=[case]), "v.json").cases[0].input

        assert case_input == CaseInput("a", MERGE, "mr2", None)

    @pytest.mark.parametrize(
        "bad",
        [
            "", "nonsense", "[]", "{}", "[" * 100_000, text(model=3), text(cases=[]),
            text(cases=["a"]), text(cases=[{"input": 3}]), text(relative_tolerance="small"),
            text(absolute_tolerance=-1), text(absolute_tolerance=float("nan")),
        ],
        ids=range(12),
    )  # fmt: skip
    def test_foreign_text_is_refused_by_its_source(self, bad):
        """
        Whatever is no vector file is a `DataError` that names the file.
        """
        with pytest.raises(DataError, match=r"v\.json"):
            read_vectors(bad, "v.json")

    @given(st.text())
    def test_any_text_is_read_or_refused(self, anything):
        """
        Nothing but `DataError` comes out of a text that is no vector file.
        """
        with pytest.raises(DataError):
            read_vectors(anything, "v.json")


class TestCompute:
    def test_kind_follows_from_model_and_input(self):
        """
        Two kinds of merges share a model and a factor.
        """
        one = compute("whatif", CaseInput("a", MERGE), EVALUATORS)
        other = CaseInput("b", {"segment_bytes": [1, 2, 3], "merge_factor": 2})

        assert one["first_pass"] == 10
        assert compute("whatif", other, EVALUATORS)["intermediate_bytes"] == 3

    @pytest.mark.parametrize(("model", "data"), [("vet", MERGE), ("whatif", {"omega": 3})])
    def test_unknown_kinds_are_not_passed_over(self, model, data):
        """
        A kind without an implementation is an error.
        """
        with pytest.raises(NoImplementationError, match=f"no implementation for {model}"):
            compute(model, CaseInput("a", data), EVALUATORS)

    @pytest.mark.parametrize(
        ("model", "data"),
        [
            ("whatif", MERGE | {"merge_factor": 1}),
            ("whatif", {"statistics": [], "config": {}, "cluster": {}}),
            ("whatif", {"statistics": {}, "config": {"num_maps": 1}, "cluster": {}}),
            ("scheduler", {"map_times_s": [], "num_reduces": 1}),
        ],
    )
    def test_refused_input_is_an_answer(self, model, data):
        """
        What a model refuses is answered by the kind of error and its message.
        """
        answer = compute(model, CaseInput("a", data), EVALUATORS)

        assert answer["error"] == "ValueError"
        assert answer["message"]


class TestCompare:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            (1.0 + 5e-10, 1.0), (3, 3), (3.0, 3), (True, True), (None, None), ("a", "a"),
            ([1, [2.0]], [1, [2.0]]), (float("inf"), float("inf")), (1e12 + 1, 1e12),
        ],
    )  # fmt: skip
    def test_equal_enough(self, answer, expected):
        """
        Floats within the tolerance, everything else equal.
        """
        assert compare({"x": answer, "more": 1}, {"x": expected}, EXACT) == []

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            (1.0 + 5e-9, 1.0), (4, 3), (3 + 1e-12, 3), (1, True), (True, 1), (True, 1.0),
            (None, 0), (0.0, None), ("a", "b"), ([1], [1, 2]), (float("nan"), float("nan")),
            (float("inf"), 1.0), (1.0, float("inf")), ("1.0", 1.0), (1, "1"), ([1], 1),
        ],
    )  # fmt: skip
    def test_different(self, answer, expected):
        """
        A number out of tolerance, a count that is close, a value of another kind.
        """
        missed = compare({"x": answer}, {"x": expected}, EXACT)

        assert [m.field for m in missed] == ["x"]

    def test_names_the_place_within_lists_and_objects(self):
        """
        Each mismatch is named by its path; a field that is not there is one.
        """
        missed = compare({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}, "c": 4}, EXACT)

        assert missed == [Mismatch("a.b[1]", 2, 3), Mismatch("c", "nothing", 4)]

    def test_expected_errors(self):
        """
        An expected error is met by any refusal, and by nothing else.
        """
        error = {"error": "ValueError", "message": "merge_factor"}

        assert compare(error, {"error": "ValueError"}, EXACT) == []
        assert compare({"x": 1}, {"error": "ValueError"}, EXACT) != []
        assert compare(error, {"x": 1}, EXACT) == [Mismatch("error", "merge_factor", "an answer")]

    def test_wide_tolerance_is_taken_from_the_file(self):
        """
        The larger of absolute and relative tolerance holds.
        """
        wide = VectorFile("m", 0.1, 0.5, ())

        assert compare({"x": 1.4}, {"x": 1.0}, wide) == []
        assert compare({"x": 109.0}, {"x": 100.0}, wide) == []
        assert compare({"x": 111.0}, {"x": 100.0}, wide) != []
