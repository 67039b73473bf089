"""Vet's answers to the cases of test vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import ModelError
from harness.models.vectors import MOST_TASKS, CaseInput, Evaluator
from harness.models.vet.job import ks_two_sample, vet_job
from harness.models.vet.tail import hills
from harness.models.vet.task import vet_task


def _task(case: CaseInput) -> dict[str, Any]:
    return asdict(vet_task(**case.fields))


def _tail(case: CaseInput) -> dict[str, Any]:
    found = hills(case.fields["unit_seconds"], case.fields["k_values"])
    return {"hill": [asdict(point) for point in found]}


def _job(case: CaseInput) -> dict[str, Any]:
    tasks = case.fields["tasks"]
    if isinstance(tasks, list) and len(tasks) > MOST_TASKS:
        raise ModelError(f"tasks are more than {MOST_TASKS}")
    return asdict(vet_job(**case.fields))


def _ks(case: CaseInput) -> dict[str, Any]:
    return {"ks": asdict(ks_two_sample(case.fields["sample_a"], case.fields["sample_b"]))}


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("vet", frozenset({"unit_seconds", "k_values"}), _tail),
    Evaluator("vet", frozenset({"unit_seconds"}), _task),
    Evaluator("vet", frozenset({"tasks"}), _job),
    Evaluator("vet", frozenset({"sample_a", "sample_b"}), _ks),
)
