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

A recording (spans) has the equations one by one: `MAP_PARTS` and `REDUCE_PARTS`.  The spill, Eq.
(20), is in two there, for sorting and the rest of it are timed apart; combining is not, for the
combiner writes the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from harness.models.checks import Numbers
from harness.models.whatif.evaluation import evaluate_rows
from harness.models.whatif.inputs import COSTS, read_inputs

MAP_PARTS = (
    "map_setup_s", "map_read_s", "map_function_s", "collect_s", "spill_sort_s", "spill_write_s",
    "map_merge_s", "map_write_s", "map_cleanup_s",
)  # fmt: skip
REDUCE_PARTS = (
    "reduce_setup_s", "copy_s", "inmem_merge_s", "ondisk_merge_s", "reduce_merge_s",
    "reduce_function_s", "reduce_write_s", "reduce_cleanup_s",
)  # fmt: skip

Terms: TypeAlias = dict[str, dict[str, float]]

# One configuration for each cost, in which that cost is 1 and all others are 0.
_UNIT_COSTS = dict(zip(COSTS, np.eye(len(COSTS)), strict=True))


def measurable(answer: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Phases of an evaluation as the history shows them, in seconds per task."""
    setup, cleanup = answer.get("setup_cpu_s", 0.0), answer.get("cleanup_cpu_s", 0.0)
    function = answer["map_read_s"] + answer["map_function_s"]
    if "map_write_s" in answer:
        return {"map_main_s": setup + function + answer["map_write_s"], "map_tail_s": cleanup}
    spill, spills = answer["spill_s"], answer["num_spills"]
    last_spill = spill / (spills + (spills == 0))
    return {
        "map_main_s": setup + function + answer["collect_s"] + (spill - last_spill),
        "map_tail_s": last_spill + answer["map_merge_s"] + cleanup,
        "shuffle_s": setup + answer["shuffle_s"],
        "sort_s": answer["reduce_merge_s"],
        "reduce_rest_s": answer["reduce_function_s"] + answer["reduce_write_s"] + cleanup,
    }


def phase_terms(
    statistics: Mapping[str, float], config: Mapping[str, Any], cluster: Mapping[str, int]
) -> Terms:
    """
    Coefficient of every cost in every measurable phase, under mr2 rules.

    A phase is the sum of coefficient x cost over all costs: its coefficients are the phase at that
    cost 1 and all others 0.  Costs that the job cannot show (a codec that is off) have 0.
    """
    return _terms(measurable(_unit_answers(statistics, config, cluster)))


def part_terms(
    statistics: Mapping[str, float], config: Mapping[str, Any], cluster: Mapping[str, int]
) -> Terms:
    """
    Coefficient of every cost in every part that a recording times, under mr2 rules.

    Parts add up to the tasks, Eqs. (90) and (91), as the measurable phases do.  Those that the job
    does not have (the write of a map with reduces) are absent.
    """
    answer = _unit_answers(statistics, config, cluster)
    setup, cleanup = answer["setup_cpu_s"], answer["cleanup_cpu_s"]
    parts = {"map_setup_s": setup, "map_cleanup_s": cleanup}
    parts |= {name: answer[name] for name in (*MAP_PARTS, *REDUCE_PARTS) if name in answer}
    if "map_write_s" not in answer:
        spill, sort_cost = answer["spill_s"], _UNIT_COSTS["sort_cpu_s_per_record"]
        merges = answer["inmem_merge_s"] + answer["ondisk_merge_s"]
        parts |= {
            "spill_sort_s": spill * sort_cost,
            "spill_write_s": spill * (1 - sort_cost),
            "reduce_setup_s": setup,
            "copy_s": answer["shuffle_s"] - merges,
            "reduce_cleanup_s": cleanup,
        }
    return _terms(parts)


def _unit_answers(
    statistics: Mapping[str, float], config: Mapping[str, Any], cluster: Mapping[str, int]
) -> dict[str, Numbers]:
    return evaluate_rows(read_inputs(statistics, _UNIT_COSTS, config, cluster, "mr2", grid=True))


def _terms(parts: Mapping[str, Numbers]) -> Terms:
    return {
        part: dict(zip(COSTS, np.broadcast_to(seconds, len(COSTS)).tolist(), strict=True))
        for part, seconds in parts.items()
    }
