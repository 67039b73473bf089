"""Prophet's answers to the cases of test vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import ModelError
from harness.models.prophet.map_spill import map_and_spill
from harness.models.prophet.shuffle import shuffle
from harness.models.prophet.tasks import tasks
from harness.models.vectors import MOST_TASKS, CaseInput, Evaluator, refuse_too_many_tasks


def _map_and_spill(case: CaseInput) -> dict[str, Any]:
    return map_and_spill(case.fields)


def _shuffle(case: CaseInput) -> dict[str, Any]:
    data = case.fields
    _refuse_too_many_segments(data)
    return shuffle(data.get("groups"), data, _part(data, "costs"), trace=True)


def _tasks(case: CaseInput) -> dict[str, Any]:
    data = case.fields
    names = ("map_and_spill", "shuffle", "statistics", "costs", "config")
    map_side, reduce_side, statistics, costs, config = (_part(data, name) for name in names)
    refuse_too_many_tasks(config)
    _refuse_too_many_segments(reduce_side)
    startup = data.get("startup_s", 0.0)
    return tasks(map_side, reduce_side, statistics, costs, config, startup)


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name, {})
    if not isinstance(part, dict):
        raise ModelError(f"{name} is not an object")
    return part


def _refuse_too_many_segments(data: Mapping[str, Any]) -> None:
    groups = data.get("groups")
    counts = [g.get("count") for g in groups if isinstance(g, dict)] if groups else []
    if sum(c for c in counts if isinstance(c, int | float)) > MOST_TASKS:
        raise ModelError(f"the counts of groups are above {MOST_TASKS} together")


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("prophet", frozenset({"map_and_spill", "shuffle"}), _tasks),
    # A case that lacks a field of its kind is a case of it all the same, and refused by its name.
    *(Evaluator("prophet", frozenset({name}), _shuffle) for name in ("groups", "parallel_copies")),
    *(
        Evaluator("prophet", frozenset({name}), _map_and_spill)
        for name in ("map_in_records", "map_s_per_record")
    ),
)
