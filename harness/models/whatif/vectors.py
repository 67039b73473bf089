"""What-If's answers to the cases of test vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.errors import ModelError
from harness.models import merge
from harness.models.vectors import CaseInput, Evaluator, refuse_too_many_tasks
from harness.models.whatif.evaluation import evaluate


def _evaluate(case: CaseInput) -> dict[str, Any]:
    data = {k: case.fields.get(k, {}) for k in ("statistics", "costs", "config", "cluster")}
    for name, part in data.items():
        if not isinstance(part, dict):
            raise ModelError(f"{name} is not an object")
    refuse_too_many_tasks(data["config"])
    return evaluate(**data, rules=case.rules or "mr2")


def _merge_functions(case: CaseInput) -> dict[str, Any]:
    sizes = case.fields["num_segments"], case.fields["merge_factor"]
    return {
        "first_pass": merge.first_pass(*sizes),
        "intermediate_merge": merge.inter_merge(*sizes),
        "final_merge": merge.final_merge(*sizes),
        "merge_passes": merge.merge_passes(*sizes),
    }


def _simulate_merge(case: CaseInput) -> dict[str, Any]:
    data = case.fields
    return asdict(merge.simulate_merge(data["segment_bytes"], data["merge_factor"]))


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("whatif", frozenset({"statistics", "config", "cluster"}), _evaluate),
    Evaluator("whatif", frozenset({"num_segments", "merge_factor"}), _merge_functions),
    Evaluator("whatif", frozenset({"segment_bytes", "merge_factor"}), _simulate_merge),
)
