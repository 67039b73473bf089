"""
What-If behind the contract of `harness.models.Model`, its phases, and its answers to test vectors.

A job history has five times per pair of tasks: the map function's end cuts a map task in two, the
ends of shuffle and sort cut a reduce task in three.  Spills before the last run behind the map
function and count as its time; the last spill and the merge follow it.

    history          phases of the model
    ---------------  -----------------------------------------------------------------
    `map_main_s`     [setup] + read + map + collect + spill (n-1)/n; map-only: read + map + write
    `map_tail_s`     spill/n + merge [+ cleanup]
    `shuffle_s`      [setup] + shuffle
    `sort_s`         merge of the reduce task
    `reduce_rest_s`  reduce + write [+ cleanup]

Setup and cleanup are no part of what is compared: a task is compared without the start and the end
of its JVM.  They are in the fit of the costs, and in the published job time.

A recording (spans) has the equations one by one: `MAP_PARTS` and `REDUCE_PARTS`.  The spill, Eq.
(20), is in two there, for sorting and the rest of it are timed apart; combining is not, for the
combiner writes the file.
"""

from __future__ import annotations

import math

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile
from harness.models import merge
from harness.models.adapter import (
    AROUND_TASKS,
    CellInputs,
    all_slots,
    around_tasks_s,
    cell_inputs,
    config_of_cell,
    inputs_of_cell,
    inputs_of_profile,
    leave_out,
    pick,
)
from harness.models.checks import (
    LARGEST_COUNT,
    Numbers,
    check_count,
    check_number,
    require_statistics,
)
from harness.models.scheduler import POOLS, schedule, timeline
from harness.models.vectors import CaseInput, Evaluator, objects_in
from harness.models.whatif.evaluation import evaluate, evaluate_grid, evaluate_rows
from harness.models.whatif.inputs import COSTS, SIDES, read_inputs

# Costs that dominate a job with reduces: never silently taken as 0.
_OF_REDUCES = frozenset({"network_s_per_byte", "local_write_s_per_byte"})

PHASES = (
    "map_read_s", "map_function_s", "collect_s", "spill_s", "map_merge_s", "map_write_s",
    "shuffle_s", "reduce_merge_s", "reduce_function_s", "reduce_write_s",
)  # fmt: skip
MAP_FUNCTION_PARTS = ("map_read_s", "map_function_s", "collect_s")
AFTER_SHUFFLE = ("reduce_merge_s", "reduce_function_s", "reduce_write_s")
MAP_PARTS = (
    "map_setup_s", "map_read_s", "map_function_s", "collect_s", "spill_sort_s", "spill_write_s",
    "map_merge_s", "map_write_s", "map_cleanup_s",
)  # fmt: skip
REDUCE_PARTS = (
    "reduce_setup_s", "copy_s", "inmem_merge_s", "ondisk_merge_s", "reduce_merge_s",
    "reduce_function_s", "reduce_write_s", "reduce_cleanup_s",
)  # fmt: skip

_OF_MANY = ("job_s", "map_task_s", "reduce_task_s", "map_waves", "reduce_waves", *PHASES)
_NOT_DATAFLOW = frozenset({*_OF_MANY, *AROUND_TASKS, "warnings"})

# What the scheduler takes of a cell.
_SCHEDULED = ("num_reduces", "map_slots", "reduce_slots", "slowstart")

Terms: TypeAlias = dict[str, dict[str, float]]

# One configuration for each cost, in which that cost is 1 and all others are 0.
_SORT_COST = "sort_cpu_s_per_record"
_UNIT_COSTS = dict(zip(COSTS, np.eye(len(COSTS)), strict=True))


def measurable(answer: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Phases of an evaluation as the history shows them, in seconds per task."""
    setup = answer.get("setup_cpu_s", 0.0)
    cleanup = answer.get("cleanup_cpu_s", 0.0)
    function = answer["map_read_s"] + answer["map_function_s"]
    if "map_write_s" in answer:
        return {"map_main_s": setup + function + answer["map_write_s"], "map_tail_s": cleanup}
    spill = answer["spill_s"]
    spills = answer["num_spills"]
    last_spill = spill / (spills + (spills == 0))
    return {
        "map_main_s": setup + function + answer["collect_s"] + (spill - last_spill),
        "map_tail_s": last_spill + answer["map_merge_s"] + cleanup,
        "shuffle_s": setup + answer["shuffle_s"],
        "sort_s": answer["reduce_merge_s"],
        "reduce_rest_s": answer["reduce_function_s"] + answer["reduce_write_s"] + cleanup,
    }


def parts_of(answer: Mapping[str, Numbers], sort_s: Numbers) -> dict[str, Numbers]:
    """Seconds of single equations as recordings show them, *sort_s* of the spills for sorting."""
    parts = pick(answer, (*MAP_PARTS, *REDUCE_PARTS))
    if "spill_s" in answer:
        parts |= {"spill_sort_s": sort_s, "spill_write_s": answer["spill_s"] - sort_s}
        merges_s = answer["inmem_merge_s"] + answer["ondisk_merge_s"]
        parts["copy_s"] = answer["shuffle_s"] - merges_s
    return parts


def cost_terms(
    statistics: Mapping[str, float],
    config: Mapping[str, Any],
    cluster: Mapping[str, int],
    *,
    of_parts: bool,
) -> Terms:
    """
    Coefficient of every cost in every measurable phase, under mr2 rules.

    A phase is the sum of coefficient x cost over all costs: its coefficients are the phase at that
    cost 1 and all others 0.  Costs that the job cannot show (a codec that is off) have 0.  With
    *of_parts* those of the parts that a recording times: they add up to the tasks, Eqs. (90) and
    (91), too, and those that the job does not have (the write of a map with reduces) are absent.
    """
    answer = evaluate_rows(read_inputs(statistics, _UNIT_COSTS, config, cluster, "mr2"))
    phases = measurable(answer)
    if of_parts:
        phases = parts_of(answer, answer.get("spill_s", 0.0) * _UNIT_COSTS[_SORT_COST])
        for kind in SIDES if "spill_s" in answer else SIDES[:1]:
            phases |= {f"{kind}_setup_s": answer["setup_cpu_s"]}
            phases |= {f"{kind}_cleanup_s": answer["cleanup_cpu_s"]}
    return {
        phase: dict(zip(COSTS, np.broadcast_to(seconds, len(COSTS)).tolist(), strict=True))
        for phase, seconds in phases.items()
    }


# Answers to test vectors


def _answer_job(case: CaseInput) -> dict[str, Any]:
    parts = objects_in(case, "statistics", "costs", "config", "cluster")
    return evaluate(**parts, rules=case.rules or "mr2")


def _answer_merge_functions(case: CaseInput) -> dict[str, Any]:
    limits: dict[str, Any] = {"where": "multi-pass merge", "high": LARGEST_COUNT}
    segments = check_count("num_segments", case.fields["num_segments"], **limits)
    factor = check_count("merge_factor", case.fields["merge_factor"], low=2, **limits)
    functions = {
        "first_pass": merge.first_pass,
        "intermediate_merge": merge.inter_merge,
        "final_merge": merge.final_merge,
        "merge_passes": merge.merge_passes,
    }
    return {name: int(count(float(segments), float(factor))) for name, count in functions.items()}


def _answer_merge_simulation(case: CaseInput) -> dict[str, Any]:
    where = "multi-pass merge"
    factor = check_count("merge_factor", case.fields["merge_factor"], where=where, low=2)
    sizes = [
        check_number("segment_bytes", size, where=where) for size in case.fields["segment_bytes"]
    ]
    # One record for each segment: then records count the original files that passes read.
    simulated = merge.simulate_merge([(size, 1.0) for size in sizes], factor)
    return {
        "passes": simulated.passes + (len(sizes) > 1),
        "intermediate_bytes": simulated.read_bytes,
        "intermediate_units": int(simulated.written_records),
        "final_fan_in": len(simulated.files_left),
    }


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("whatif", frozenset({"statistics", "config", "cluster"}), _answer_job),
    Evaluator("whatif", frozenset({"num_segments", "merge_factor"}), _answer_merge_functions),
    Evaluator("whatif", frozenset({"segment_bytes", "merge_factor"}), _answer_merge_simulation),
)


@dataclass(eq=False)
class WhatIf:
    """What the author's engine computes (``engine``), the printed form, or that of Hadoop 3."""

    name: str
    rules: str
    description: str
    required = _OF_REDUCES | {"input_record_bytes", "map_cpu_s_per_record"}
    evaluators = EVALUATORS

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell: the body without setup and cleanup, the published time with them.

        Both are Eq. (94), but those of the engine are the scheduler's with separate pools: it
        simulates its waves.  The printed form has neither setup nor cleanup.
        """
        self._require(profile, has_reduces=bool(configuration.num_reduces))
        inputs = inputs_of_cell(profile, configuration, cluster, job_input)
        around_s = dict.fromkeys(SIDES, 0.0)
        if self.rules != "paper":
            around_s = {side: around_tasks_s(profile, side) for side in SIDES}
        answer = evaluate(*inputs, self.rules)
        num_maps = job_input.num_splits
        after_shuffle_s = sum(answer.get(name, 0.0) for name in AFTER_SHUFFLE)
        tasks: dict[str, Any] = {
            "map_times_s": [answer["map_task_s"]] * num_maps,
            "shuffle_s": answer.get("shuffle_s", 0.0),
            "after_shuffle_s": after_shuffle_s,
            **pick(cell_inputs(configuration, cluster, job_input), _SCHEDULED),
        }
        schedules = {pool: schedule(**tasks, pool=pool) for pool in POOLS}
        separate = schedules["separate"]
        if self.rules == "engine":
            longer_tasks = tasks | {
                "map_times_s": [answer["map_task_s"] + around_s["map"]] * num_maps,
                "after_shuffle_s": after_shuffle_s + around_s["reduce"],
            }
            body_s = separate["job_s"]
            published_s = schedule(**longer_tasks)["job_s"]
        else:
            body_s = answer["job_s"]
            published_s = body_s + sum(answer[f"{side}_waves"] * around_s[side] for side in SIDES)
        return Prediction(
            model=self.name,
            body_s=body_s,
            published_s=published_s,
            map_task_s=answer["map_task_s"],
            reduce_task_s=answer.get("reduce_task_s"),
            map_waves=answer["map_waves"],
            reduce_waves=answer["reduce_waves"],
            phases=pick(answer, PHASES),
            measurable=measurable(answer),
            parts=self._parts(inputs, answer),
            dataflow=leave_out(answer, _NOT_DATAFLOW),
            estimates={
                "equation_94_s": answer["job_s"],
                **{f"scheduler_{pool}_s": plan["job_s"] for pool, plan in schedules.items()},
            },
            timeline=timeline(separate["map_spans"], separate["reduce_spans"]),
            warnings=tuple(answer["warnings"]),
        )

    def _require(self, profile: Profile, *, has_reduces: bool) -> None:
        """``MissingStatistic`` where *profile* lacks what such a job needs."""
        needed = self.required if has_reduces else self.required - _OF_REDUCES
        require_statistics(needed, profile.statistics | profile.costs, profile, self.name)

    def _parts(self, inputs: CellInputs, answer: Mapping[str, Any]) -> dict[str, float]:
        """Seconds of single equations in *answer*, that of *inputs*, as recordings show them."""
        statistics, costs, config, nodes = inputs
        sorting = {name: cost for name, cost in costs.items() if name.startswith(_SORT_COST)}
        sorted_alone = evaluate(statistics, sorting, config, nodes, self.rules)
        parts = parts_of(answer, sorted_alone.get("spill_s", 0.0))
        parts["map_s"] = sum(answer.get(name, 0.0) for name in MAP_FUNCTION_PARTS)
        if not answer.get("segments_go_to_memory", True):  # they are written while they are copied
            parts["copy_s"] += parts.pop("inmem_merge_s")
        return parts

    def predict_many(
        self, profile: Profile, cells: Sequence[tuple[JobConfig, Cluster, JobInput]]
    ) -> Iterator[Prediction]:
        """Yield `predict` of very many cells: body, tasks and phases.  It refuses one or none."""
        has_reduces = any(configuration.num_reduces for configuration, _, _ in cells)
        self._require(profile, has_reduces=has_reduces)
        statistics, costs = inputs_of_profile(profile)
        config = _stacked([config_of_cell(*cell) for cell in cells])
        nodes = _stacked([all_slots(cluster) for _, cluster, _ in cells])
        columns = evaluate_grid(statistics, costs, config, nodes, self.rules, quantities=_OF_MANY)
        if self.rules == "engine":
            columns["job_s"] = _simulated_s(columns, config, nodes["map_slots_per_node"])
        for values in np.stack([*columns.values()], axis=1).tolist():
            pairs = zip(columns, values, strict=True)
            answer = {name: value for name, value in pairs if not math.isnan(value)}
            phases = {name: answer.pop(name) for name in PHASES if name in answer}
            body_s = answer.pop("job_s")
            yield Prediction(model=self.name, body_s=body_s, phases=phases, **answer)

    def bodies(
        self,
        profile: Profile,
        cell: tuple[JobConfig, Cluster, JobInput],
        fields: Mapping[str, Numbers],
    ) -> Numbers:
        """`body_s` of *cell* with each of very many values of *fields*, arrays by name, in s."""
        configuration, _, _ = cell
        self._require(profile, has_reduces=bool(configuration.num_reduces))
        statistics, costs, config, nodes = inputs_of_cell(profile, *cell)
        config |= fields
        names = _OF_MANY if self.rules == "engine" else ("job_s",)
        columns = evaluate_grid(statistics, costs, config, nodes, self.rules, quantities=names)
        if self.rules == "engine":
            return _simulated_s(columns, config, np.array(nodes["map_slots_per_node"]))
        return columns["job_s"]


def _stacked(rows: Sequence[Mapping[str, Any]]) -> dict[str, Numbers]:
    """Arrays by name, with one value of each of *rows*, which have the names of the first."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _simulated_s(
    columns: Mapping[str, Numbers], config: Mapping[str, Numbers], map_slots: Numbers
) -> Numbers:
    """
    The `job_s` of `schedule` with separate pools, of equal tasks in waves: a closed form [s].

    *columns* hold times and waves of many jobs, and *config* their configurations.
    """
    map_s = columns["map_task_s"]
    shuffle_s = columns["shuffle_s"]
    map_waves = columns["map_waves"]
    num_maps = config["num_maps"]
    after_s = sum(columns[name] for name in AFTER_SHUFFLE)
    maps_end_s = map_waves * map_s
    maps_needed = np.ceil(config["reduce_slowstart"] * num_maps - 1e-9)
    may_start_s = np.ceil(maps_needed / map_slots) * map_s
    # Of the ends of waves and the shares of the shuffle behind them, the first or last is latest.
    last_share = 1 - (map_waves - 1) * map_slots / num_maps
    first_s = np.maximum(np.maximum(may_start_s, map_s), maps_end_s + (last_share - 1) * shuffle_s)
    waves_s = columns["reduce_waves"] * (shuffle_s + after_s)
    return np.fmax(maps_end_s, first_s + waves_s)  # without reduces, all else is NaN
