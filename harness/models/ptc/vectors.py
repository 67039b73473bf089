"""PTC's answers to the cases of test vectors."""

from __future__ import annotations

from typing import Any

from harness.models.ptc.equations import ptc
from harness.models.ptc.physical import predict_ptc
from harness.models.vectors import CaseInput, Evaluator


def _waves(case: CaseInput) -> dict[str, Any]:
    return ptc(**_input(case), method=case.method or "wave")


def _physical(case: CaseInput) -> dict[str, Any]:
    return predict_ptc(_input(case), case.method or "wave")


def _input(case: CaseInput) -> dict[str, Any]:
    """Input under the names of the functions: a configuration calls the slow start by another."""
    names = {"reduce_slowstart": "slowstart"}
    return {names.get(name, name): value for name, value in case.fields.items()}


EVALUATORS: tuple[Evaluator, ...] = (
    # Each also where the number of tasks or of waves, which tells them apart, is forgotten.
    Evaluator("mrtuner-ptc", frozenset({"num_maps"}), _physical),
    Evaluator("mrtuner-ptc", frozenset({"map_waves"}), _waves),
    Evaluator("mrtuner-ptc", frozenset({"map_task_s"}), _physical),
    Evaluator("mrtuner-ptc", frozenset({"map_wave_s"}), _waves),
)
