"""Vet's answers to the cases of test vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import ModelError
from harness.models.vectors import MOST_TASKS, Evaluator, Question
from harness.models.vet.job import ks_two_sample, vet_job
from harness.models.vet.tail import hills
from harness.models.vet.task import vet_task


def _task(question: Question) -> dict[str, Any]:
    return asdict(vet_task(**question.input))


def _tail(question: Question) -> dict[str, Any]:
    found = hills(question.input["unit_seconds"], question.input["k_values"])
    return {"hill": [asdict(point) for point in found]}


def _job(question: Question) -> dict[str, Any]:
    tasks = question.input["tasks"]
    if isinstance(tasks, list) and len(tasks) > MOST_TASKS:
        raise ModelError(f"tasks are more than {MOST_TASKS}")
    return asdict(vet_job(**question.input))


def _ks(question: Question) -> dict[str, Any]:
    return {"ks": asdict(ks_two_sample(question.input["sample_a"], question.input["sample_b"]))}


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("vet", frozenset({"unit_seconds", "k_values"}), _tail),
    Evaluator("vet", frozenset({"unit_seconds"}), _task),
    Evaluator("vet", frozenset({"tasks"}), _job),
    Evaluator("vet", frozenset({"sample_a", "sample_b"}), _ks),
)
