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

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from harness.models.whatif.evaluation import dataflow, quantities, times
from harness.models.whatif.inputs import Costs, read_job, unused_costs

COSTS = tuple(f.name for f in fields(Costs))
MAP_PHASES = ("map_main_s", "map_tail_s")
REDUCE_PHASES = ("shuffle_s", "sort_s", "reduce_rest_s")
MAP_PARTS = (
    "map_setup_s", "map_read_s", "map_function_s", "collect_s", "spill_sort_s", "spill_write_s",
    "map_merge_s", "map_write_s", "map_cleanup_s",
)  # fmt: skip
REDUCE_PARTS = (
    "reduce_setup_s", "copy_s", "inmem_merge_s", "ondisk_merge_s", "reduce_merge_s",
    "reduce_function_s", "reduce_write_s", "reduce_cleanup_s",
)  # fmt: skip

Terms = dict[str, dict[str, float]]

_SORT = "sort_cpu_s_per_record"
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
) -> Terms:
    """
    Coefficient of every cost in every measurable phase, under mr2 rules.

    A phase is the sum of coefficient x cost over all costs: its coefficients are the phase at that
    cost 1 and all others 0.  Costs that the job cannot show (a codec that is off) have 0.
    """
    terms: Terms = {}
    for cost, answer in _unit_answers(statistics, config, cluster):
        for phase, seconds in measurable(answer).items():
            terms.setdefault(phase, {})[cost] = seconds
    return terms


def part_terms(
    statistics: Mapping[str, float], config: Mapping[str, Any], cluster: Mapping[str, int]
) -> Terms:
    """
    Coefficient of every cost in every part that a recording times, under mr2 rules.

    Parts add up to the tasks, Eqs. (90) and (91), as the measurable phases do.  Those that the job
    does not have (the write of a map with reduces) are absent.
    """
    terms: Terms = {}
    for cost, answer in _unit_answers(statistics, config, cluster):
        for part, seconds in _parts(answer, cost).items():
            terms.setdefault(part, {})[cost] = seconds
    return terms


def _parts(answer: Mapping[str, float], cost: str) -> dict[str, float]:
    """Parts of the tasks at this *cost* 1 and all others 0."""
    setup, cleanup = answer["setup_cpu_s"], answer["cleanup_cpu_s"]
    found = {"map_setup_s": setup, "map_cleanup_s": cleanup}
    found |= {name: answer[name] for name in (*MAP_PARTS, *REDUCE_PARTS) if name in answer}
    if "map_write_s" in answer:
        return found
    spill, merges = answer["spill_s"], answer["inmem_merge_s"] + answer["ondisk_merge_s"]
    return found | {
        "spill_sort_s": spill if cost == _SORT else 0.0,
        "spill_write_s": 0.0 if cost == _SORT else spill,
        "reduce_setup_s": setup,
        "copy_s": answer["shuffle_s"] - merges,
        "reduce_cleanup_s": cleanup,
    }


def _unit_answers(
    statistics: Mapping[str, float], config: Mapping[str, Any], cluster: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each cost, and the evaluation at this cost 1 and all others 0."""
    job = read_job(statistics, config, cluster, "mr2")
    flow = dataflow(job)
    sizes = quantities(flow, job)
    unused = unused_costs(job.config)
    for cost in COSTS:
        yield cost, {**sizes, **times(flow, job, _ZERO if cost in unused else _UNIT[cost])}
