"""
The model's phases as a job history shows them.

A history has five times per pair of tasks: the map function's end cuts a map task in two, the ends
of shuffle and sort cut a reduce task in three.  Spills before the last run behind the map function
and count as its time; the last spill and the merge follow it.

    history          phases of the model
    ---------------  -----------------------------------------------------------------
    `map_main_s`     [setup] + read + map + collect + spill (n-1)/n; map-only: read + map + write
    `map_tail_s`     spill/n + merge [+ cleanup]
    `shuffle_s`      [setup] + shuffle
    `sort_s`         merge of the reduce task
    `reduce_rest_s`  reduce + write [+ cleanup]

Setup and cleanup exist under mr2 rules only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from harness.models.whatif.evaluation import dataflow, quantities, times
from harness.models.whatif.inputs import Costs, read_job, unused_costs

COSTS = tuple(f.name for f in fields(Costs))
MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")

_ZERO = Costs()
_UNIT = {name: Costs(**{name: 1.0}) for name in COSTS}


def measurable(answer: Mapping[str, Any]) -> dict[str, float]:
    """Phases of an evaluation as the history shows them, in seconds per task."""
    setup, cleanup = answer.get("setup_cpu_s", 0.0), answer.get("cleanup_cpu_s", 0.0)
    function = answer["map_read_s"] + answer["map_function_s"]
    if "map_write_s" in answer:
        return {"map_main_s": setup + function + answer["map_write_s"], "map_tail_s": cleanup}
    last_spill = answer["spill_s"] / max(1, answer["num_spills"])
    earlier = answer["spill_s"] - last_spill
    return {
        "map_main_s": setup + function + answer["collect_s"] + earlier,
        "map_tail_s": last_spill + answer["map_merge_s"] + cleanup,
        "shuffle_s": setup + answer["shuffle_s"],
        "sort_s": answer["reduce_merge_s"],
        "reduce_rest_s": answer["reduce_function_s"] + answer["reduce_write_s"] + cleanup,
    }


def phase_terms(
    statistics: Mapping[str, float], config: Mapping[str, Any], cluster: Mapping[str, int]
) -> dict[str, dict[str, float]]:
    """
    Coefficient of every cost in every measurable phase, under mr2 rules.

    A phase is the sum of coefficient x cost over all costs: its coefficients are the phase at that
    cost 1 and all others 0.  Costs that the job cannot show (a codec that is off) have 0.
    """
    job = read_job(statistics, config, cluster, "mr2")
    flow = dataflow(job)
    sizes = quantities(flow, job)
    unused = unused_costs(job.config)
    terms: dict[str, dict[str, float]] = {}
    for cost in COSTS:
        unit = times(flow, job, _ZERO if cost in unused else _UNIT[cost])
        for phase, seconds in measurable({**sizes, **unit}).items():
            terms.setdefault(phase, {})[cost] = seconds
    return terms
