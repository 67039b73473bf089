"""SPN-GC's answers to the cases of test vectors."""

from __future__ import annotations

from typing import Any

from harness.errors import ModelError
from harness.models.spn_gc.estimates import (
    expectations,
    expected_net_time,
    simulate_net,
    time_cost_ratio,
)
from harness.models.spn_gc.inputs import warnings_of
from harness.models.spn_gc.net import build_net
from harness.models.spn_gc.phases import spn_phases
from harness.models.vectors import CaseInput, Evaluator, refuse_too_many_tasks

_MOST_REPLICATIONS = 1_000_000


def evaluate(parameters: dict[str, Any], rules: str) -> dict[str, Any]:
    """Phase means, the quantities between, and the estimates of both nets."""
    answer = spn_phases(parameters, rules)
    tasks = answer["num_maps"], parameters.get("num_reduces", 1)
    answer |= expectations(answer, *tasks)
    answer["simulated_s"] = simulate_net(answer, *tasks)["simulated_s"]
    other = simulate_net(answer, *tasks, variant="shared_shuffle")
    answer["shared_shuffle_simulated_s"] = other["simulated_s"]
    answer["warnings"] = warnings_of(parameters)
    return answer


def _evaluate(case: CaseInput) -> dict[str, Any]:
    return evaluate(dict(case.fields), case.rules or "paper")


def _net(case: CaseInput) -> dict[str, Any]:
    names = ("num_maps", "num_reduces", "variant")
    return build_net(**{name: case.fields[name] for name in names if name in case.fields})


def _simulate(case: CaseInput) -> dict[str, Any]:
    data = dict(case.fields)
    phases = data.pop("phases")
    if not isinstance(phases, dict):
        raise ModelError("phases is not an object")
    refuse_too_many_tasks(data)
    if isinstance(data.get("replications"), int) and data["replications"] > _MOST_REPLICATIONS:
        raise ModelError(f"replications is above {_MOST_REPLICATIONS}")
    net = {k: data[k] for k in ("num_maps", "num_reduces", "variant") if k in data}
    return expected_net_time(phases, **net) | simulate_net(phases, **data)


def _time_cost(case: CaseInput) -> dict[str, Any]:
    return {"time_cost_ratio_percent": time_cost_ratio(**case.fields)}


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("spn-gc", frozenset({"phases", "num_maps"}), _simulate),
    Evaluator("spn-gc", frozenset({"model_seconds", "job_seconds"}), _time_cost),
    Evaluator("spn-gc", frozenset({"test_input_bytes"}), _evaluate),
    Evaluator("spn-gc", frozenset({"input_bytes"}), _evaluate),
    Evaluator("spn-gc", frozenset({"num_maps"}), _net),
    Evaluator("spn-gc", frozenset({"num_reduces"}), _net),
)
