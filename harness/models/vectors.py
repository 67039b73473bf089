"""
Test vectors: their cases, the functions that answer them, and the comparison with what is expected.

A vector file names its model; the fields of a case's `input`, never the name of a file, decide
which of the model's functions answers it.  Format, tolerance: ``docs/models/README.md``, section 1.
"""

from __future__ import annotations

import math
import reprlib

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.base.errors import DataError, ModelError
from harness.base.text import read_json

TOLERANCE = 1e-9
MOST_TASKS = 100_000  # of a job in a vector: some models compute each of them


class NoImplementationError(ModelError):
    """No evaluator answers a case of this kind."""


@dataclass(frozen=True)
class CaseInput:
    """What an implementation may see of a case: everything but the expected answer."""

    name: str
    fields: Mapping[str, Any]
    rules: str | None = None
    method: str | None = None


@dataclass(frozen=True)
class Case:
    """The input of a case, and the answer that is expected for it."""

    input: CaseInput
    expected: Any


@dataclass(frozen=True)
class VectorFile:
    """A vector file: model, tolerances, cases."""

    model: str
    relative_tolerance: float
    absolute_tolerance: float
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Evaluator:
    """Function that answers the cases of *model* whose input has all *fields*."""

    model: str
    fields: frozenset[str]
    answer: Callable[[CaseInput], dict[str, Any]]


@dataclass(frozen=True)
class Mismatch:
    """A field whose value is outside the tolerance, or absent."""

    field: str
    answer: Any
    expected: Any


def read_vectors(text: str, source: str) -> VectorFile:
    """Read a vector file from its *text*; ``DataError`` at *source* where it is none."""
    try:
        document = read_json(text)
    except ValueError as error:
        raise DataError(f"not JSON: {error}", where=source) from None
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list) or not cases or not isinstance(document.get("model"), str):
        raise DataError("not a vector file: it names no model or holds no cases", where=source)
    relative = _read_tolerance(document, "relative_tolerance", source)
    absolute = _read_tolerance(document, "absolute_tolerance", source)
    read_cases = tuple(
        _read_case(case, number, source) for number, case in enumerate(cases, start=1)
    )
    return VectorFile(document["model"], relative, absolute, read_cases)


def _read_tolerance(document: Mapping[str, Any], name: str, source: str) -> float:
    """The tolerance of that *name* of a vector file; ``DataError`` for what is none."""
    value = document.get(name, TOLERANCE)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e300:
        shown = reprlib.repr(value)
        raise DataError(f"a tolerance of {shown} is not a number of at least 0", where=source)
    return float(value)


def _read_case(case: Any, number: int, source: str) -> Case:
    """The case of that *number* in its file; it may have a name of its own."""
    if not isinstance(case, dict) or not isinstance(case.get("input"), dict):
        raise DataError("a case without an object 'input'", where=f"{source}, case {number}")
    name = str(case.get("name", number))[:200]
    case_input = CaseInput(name, case["input"], case.get("rules"), case.get("method"))
    return Case(case_input, case.get("expected"))


def compute(model: str, case: CaseInput, evaluators: Iterable[Evaluator]) -> dict[str, Any]:
    """
    Answer a case with the first of *evaluators* that knows its kind.

    An input that the model refuses is answered by ``{"error": "ValueError", "message": ...}``.
    ``NoImplementationError`` where no evaluator knows the kind.
    """
    for evaluator in evaluators:
        if evaluator.model == model and evaluator.fields <= case.fields.keys():
            try:
                return evaluator.answer(case)
            except (ValueError, TypeError) as error:  # a field is missing, unknown or out of range
                return {"error": "ValueError", "message": str(error).partition("\n")[0]}
    names = ", ".join(sorted(case.fields))
    raise NoImplementationError(
        f"no implementation for {model} cases with the inputs {names}", where=f"case {case.name!r}"
    )


def compare(answer: Any, expected: Any, vectors: VectorFile) -> list[Mismatch]:
    """All mismatches of an answer, which may hold more fields than are expected."""
    if not isinstance(expected, Mapping):
        return [Mismatch("expected", "an answer", expected)]
    if "error" in expected:
        refused = isinstance(answer, Mapping) and "error" in answer
        return [] if refused else [Mismatch("error", "an answer", expected["error"])]
    if isinstance(answer, Mapping) and "error" in answer:
        return [Mismatch("error", answer["message"], "an answer")]
    return list(_differences("", answer, expected, vectors))


def _differences(path: str, answer: Any, expected: Any, vectors: VectorFile) -> Iterator[Mismatch]:
    """Yield the mismatches below *path*; fields of the answer that nobody expects are none."""
    if isinstance(expected, Mapping) and isinstance(answer, Mapping):
        for key, value in expected.items():
            inner = f"{path}.{key}" if path else str(key)
            if key in answer:
                yield from _differences(inner, answer[key], value, vectors)
            else:
                yield Mismatch(inner, "nothing", value)
    elif _are_equally_long(answer, expected):
        for index, (element, expected_element) in enumerate(zip(answer, expected, strict=True)):
            yield from _differences(f"{path}[{index}]", element, expected_element, vectors)
    elif not _is_same(answer, expected, vectors):
        yield Mismatch(path, answer, expected)


def _is_same(answer: Any, expected: Any, vectors: VectorFile) -> bool:
    """Section 1: integers, booleans, strings and null are equal, other numbers close."""
    if isinstance(expected, bool) or isinstance(answer, bool):
        return answer is expected
    if not isinstance(expected, float) or not isinstance(answer, int | float):
        return bool(answer == expected)
    if not math.isfinite(expected):
        return answer == expected
    tolerance = max(vectors.absolute_tolerance, vectors.relative_tolerance * abs(expected))
    return abs(answer - expected) <= tolerance


def _are_equally_long(answer: Any, expected: Any) -> bool:
    """Whether both are lists of so many elements."""
    for value in (answer, expected):
        if not isinstance(value, Sequence) or isinstance(value, str):
            return False
    return len(answer) == len(expected)


def object_in(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object *name* of a case, empty where it is absent; ``ModelError`` for anything else."""
    part = values.get(name, {})
    if not isinstance(part, dict):
        raise ModelError(f"{name} is not an object")
    return part


def objects_in(case: CaseInput, *names: str) -> dict[str, dict[str, Any]]:
    """Objects of a case by *names*; ``ModelError`` where its ``config`` has too many tasks."""
    objects = {name: object_in(case.fields, name) for name in names}
    refuse_too_many_tasks(objects["config"])
    return objects


def refuse_too_many(name: str, count: Any) -> None:
    """``ModelError`` where a case asks for more than a model can compute one by one."""
    if isinstance(count, int | float) and count > MOST_TASKS:
        raise ModelError(f"{name} is above {MOST_TASKS}")


def refuse_too_many_tasks(config: Mapping[str, Any]) -> None:
    """`refuse_too_many` for the tasks of a case."""
    for name in ("num_maps", "num_reduces"):
        refuse_too_many(name, config.get(name))
