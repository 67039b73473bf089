"""
Test vectors: cases, who answers them, and the comparison with what is expected.

A vector file names its model; which of the model's functions a case asks for is told by the fields
of its `input`, never by a file's name.  Format and tolerance: ``docs/models/README.md``, section 1.
"""

from __future__ import annotations

import math
import reprlib

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import DataError, ModelError
from harness.records.jsontext import read_json

Input = Mapping[str, Any]
TOLERANCE = 1e-9
MOST_TASKS = 100_000  # of a job in a vector: the models look at each of them


class NoImplementationError(ModelError):
    """No evaluator answers a case of this kind."""


@dataclass(frozen=True)
class Question:
    """What an implementation may see of a case: everything but the answer."""

    name: str
    input: Input
    rules: str | None = None
    method: str | None = None


@dataclass(frozen=True)
class Case:
    """A case: its question, and the answer that is expected of it."""

    question: Question
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
    """Implementation of the cases of *model* whose input has all *fields*."""

    model: str
    fields: frozenset[str]
    answer: Callable[[Question], dict[str, Any]]


@dataclass(frozen=True)
class Mismatch:
    """A field whose value is outside the tolerance, or absent."""

    field: str
    got: Any
    expected: Any


def read_vectors(text: str, source: str) -> VectorFile:
    """
    Read a vector file from its *text*; *source* names it in errors.

    ``DataError`` for a text that is no such file.
    """
    try:
        # Expected values may be infinite, and inputs as large as they like.
        document = read_json(text, bounded=False)
    except ValueError as error:
        raise DataError(f"not JSON: {error}", where=source) from None
    cases = document.get("cases") if isinstance(document, dict) else None
    if not isinstance(cases, list) or not cases or not isinstance(document.get("model"), str):
        raise DataError("not a vector file: it names no model or holds no cases", where=source)
    relative, absolute = (
        _tolerance(document.get(f"{kind}_tolerance", TOLERANCE), source)
        for kind in ("relative", "absolute")
    )
    read = tuple(_case(case, number, source) for number, case in enumerate(cases, start=1))
    return VectorFile(document["model"], relative, absolute, read)


def compute(model: str, question: Question, evaluators: Iterable[Evaluator]) -> dict[str, Any]:
    """
    Answer a question with the first of *evaluators* that knows its kind.

    An input that the model refuses is answered by ``{"error": "ValueError", "message": ...}``.
    ``NoImplementationError`` where no evaluator knows the kind.
    """
    for evaluator in evaluators:
        if evaluator.model == model and evaluator.fields <= question.input.keys():
            try:
                return evaluator.answer(question)
            except (ValueError, TypeError) as error:  # a field that is missing, strange or bad
                return {"error": "ValueError", "message": str(error).partition("\n")[0]}
    fields = ", ".join(sorted(question.input))
    raise NoImplementationError(
        f"no implementation for {model} cases with the inputs {fields}",
        where=f"case {question.name!r}",
    )


def compare(got: Any, expected: Any, vectors: VectorFile) -> list[Mismatch]:
    """All mismatches of an answer, which may hold more fields than are expected."""
    if not isinstance(expected, Mapping):
        return [Mismatch("expected", "an answer", expected)]
    if "error" in expected:
        refused = isinstance(got, Mapping) and "error" in got
        return [] if refused else [Mismatch("error", "an answer", expected["error"])]
    if isinstance(got, Mapping) and "error" in got:
        return [Mismatch("error", got["message"], "an answer")]
    return list(_differences("", got, expected, vectors))


def _differences(path: str, got: Any, expected: Any, v: VectorFile) -> Iterator[Mismatch]:
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key, value in expected.items():
            inner = f"{path}.{key}" if path else str(key)
            if key in got:
                yield from _differences(inner, got[key], value, v)
            else:
                yield Mismatch(inner, "nothing", value)
    elif _is_list(expected) and _is_list(got) and len(expected) == len(got):
        for index, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            yield from _differences(f"{path}[{index}]", mine, theirs, v)
    elif not _same(got, expected, v):
        yield Mismatch(path, got, expected)


def _same(got: Any, expected: Any, v: VectorFile) -> bool:
    """Section 1: integers, booleans, strings and null are equal, other numbers close."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return got is expected
    if not isinstance(expected, float) or not isinstance(got, int | float):
        return bool(got == expected)
    if not math.isfinite(expected):
        return got == expected
    return abs(got - expected) <= max(v.absolute_tolerance, v.relative_tolerance * abs(expected))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _case(case: Any, number: int, source: str) -> Case:
    if not isinstance(case, dict) or not isinstance(case.get("input"), dict):
        raise DataError("a case without an object 'input'", where=f"{source}, case {number}")
    name = str(case.get("name", number))[:200]
    question = Question(name, case["input"], case.get("rules"), case.get("method"))
    return Case(question, case.get("expected"))


def _tolerance(value: Any, source: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e300:
        shown = reprlib.repr(value)
        raise DataError(f"a tolerance of {shown} is no number from 0 on", where=source)
    return float(value)


def refuse_too_many(config: Mapping[str, Any]) -> None:
    """``ModelError`` where a case has more tasks than anybody should look at one by one."""
    for name in ("num_maps", "num_reduces"):
        count = config.get(name)
        if isinstance(count, int | float) and count > MOST_TASKS:
            raise ModelError(f"{name} is above {MOST_TASKS}")
