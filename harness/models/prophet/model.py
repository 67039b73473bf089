"""Prophet behind the contract of `harness.models.Model`, and its answers to test vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from harness.errors import ModelError
from harness.models.prophet.map_spill import map_and_spill, waiting_for_spill_s
from harness.models.prophet.shuffle import Segment, read_setting, shuffle
from harness.models.prophet.tasks import (
    JobTimes,
    Plan,
    Reduce,
    ReduceSide,
    after_shuffle,
    job_times,
    map_task,
    task_job,
    tasks,
)
from harness.models.prophet.view import COPY, SPILLS, View
from harness.models.scheduler import POOLS, task_spans
from harness.models.vectors import MOST_TASKS, CaseInput, Evaluator, refuse_too_many_tasks
from harness.models.whatif import map_task as m
from harness.models.whatif.inputs import Costs, Job, read_costs
from harness.models.whatif.model import statistics_and_costs
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.records.profile import Profile

_OF_MAP_ONLY_JOBS = frozenset({"input_record_bytes", "map_cpu_s_per_record"})
_OF_JOBS_WITH_REDUCES = SPILLS | {
    "input_record_bytes", "map_records_selectivity", "map_bytes_selectivity", "map_s_per_record",
    COPY, "local_write_s_per_byte",
}  # fmt: skip
_OF_SHUFFLE = ("map_output_compression_ratio", "combine_bytes_selectivity",
               "combine_records_selectivity")  # fmt: skip

_MAP_PHASES = ("map_while_not_spilling_s", "spill_s", "last_spill_s", "map_merge_s")
_AFTER_SHUFFLE = ("reduce_merge_s", "reduce_function_s", "reduce_write_s")
_NOT_DATAFLOW = frozenset({*_MAP_PHASES, *_AFTER_SHUFFLE, "map_task_s", "shuffle_s", "disk_files",
                           "warnings"})  # fmt: skip


def _answer_map_and_spill(case: CaseInput) -> dict[str, Any]:
    return map_and_spill(case.fields)


def _answer_shuffle(case: CaseInput) -> dict[str, Any]:
    _refuse_too_many_segments(case.fields)
    costs = _case_part(case.fields, "costs")
    return shuffle(case.fields.get("groups"), case.fields, costs, trace=True)


def _answer_tasks(case: CaseInput) -> dict[str, Any]:
    names = ("map_and_spill", "shuffle", "statistics", "costs", "config")
    parts = [_case_part(case.fields, name) for name in names]
    map_side, reduce_side, statistics, costs, config = parts
    refuse_too_many_tasks(config)
    _refuse_too_many_segments(reduce_side)
    startup_s = case.fields.get("startup_s", 0.0)
    return tasks(map_side, reduce_side, statistics, costs, config, startup_s)


def _case_part(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = values.get(name, {})
    if not isinstance(part, dict):
        raise ModelError(f"{name} is not an object")
    return part


def _refuse_too_many_segments(values: Mapping[str, Any]) -> None:
    groups = values.get("groups") or ()
    counts = [group.get("count") for group in groups if isinstance(group, dict)]
    if sum(count for count in counts if isinstance(count, int | float)) > MOST_TASKS:
        raise ModelError(f"the counts of groups are above {MOST_TASKS} together")


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("prophet", frozenset({"map_and_spill", "shuffle"}), _answer_tasks),
    # Cases that lack a field of their kind are answered all the same: it is refused by name.
    Evaluator("prophet", frozenset({"groups"}), _answer_shuffle),
    Evaluator("prophet", frozenset({"parallel_copies"}), _answer_shuffle),
    Evaluator("prophet", frozenset({"map_in_records"}), _answer_map_and_spill),
    Evaluator("prophet", frozenset({"map_s_per_record"}), _answer_map_and_spill),
)


class Prophet:
    """The published model; `required` are its statistics of a job with reduces."""

    name = "prophet"
    description = "MR. Prophet: overlap of map and spill, of copying and merging"
    required: frozenset[str] = _OF_JOBS_WITH_REDUCES
    evaluators = EVALUATORS

    def predict(
        self, profile: Profile, configuration: JobConfig, cluster: Cluster, job_input: JobInput
    ) -> Prediction:
        """
        Times for one cell: `job_s` is section 6.1 with separate pools, both pools are estimates.

        ``MissingStatistic`` names what the profile lacks: of `required`, of a combiner, of the
        codec where the cell compresses its map output; a map-only job needs What-If's statistics of
        the map function alone.  ``ModelError`` names a field outside its range.
        """
        view = View(profile, configuration)
        if configuration.num_reduces:
            view.require(self.required, uses_combiner=configuration.use_combiner)
        else:
            view.require(_OF_MAP_ONLY_JOBS)
        config = configuration.model_dump() | {
            "num_maps": job_input.num_splits,
            "split_bytes": job_input.split_bytes,
        }
        statistics, costs = statistics_and_costs(profile)
        job = task_job(statistics, config)
        job_plan = partial(
            Plan,
            num_maps=job_input.num_splits,
            num_reduces=configuration.num_reduces,
            num_nodes=cluster.num_nodes,
            map_slots=cluster.map_slots,
            reduce_slots=cluster.reduce_slots,
            slowstart=configuration.reduce_slowstart,
            reduce_startup_s=view.value("reduce_startup_s"),
            **view.overheads(),
        )
        predict = _predict_with_reduces if configuration.num_reduces else _predict_map_only
        return predict(view, job, read_costs(costs, job.config), job_plan)


def _predict_map_only(view: View, job: Job, costs: Costs, make_plan: partial[Plan]) -> Prediction:
    """What-If's (90) of a job without reduces, and the measured start of a task."""
    map_flow = m.map_flow(job)
    ratio = job.statistics.output_compression_ratio
    phases = {
        "startup_s": view.value("map_startup_s"),
        "map_read_s": m.map_read_s(job.config.split_bytes, costs),
        "map_function_s": m.map_function_s(map_flow.map_in_records, costs),
        "map_write_s": m.write_s(map_flow.map_out_bytes, ratio, costs),
    }
    job_plan = make_plan(map_task_s=sum(phases.values()))
    pool_times = {pool: job_times(job_plan, pool) for pool in POOLS}
    warnings = [
        f"no {name}: taken as 0"
        for name in ("hdfs_read_s_per_byte", "hdfs_write_s_per_byte")
        if not view.statistic(name)
    ]
    measurable = {"map_main_s": job_plan.map_task_s, "map_tail_s": 0.0}
    warnings += view.absent_overheads()
    return _prediction(
        pool_times, job_plan, phases, measurable, map_flow=vars(map_flow), warnings=warnings
    )


def _predict_with_reduces(
    view: View, job: Job, costs: Costs, make_plan: partial[Plan]
) -> Prediction:
    shuffle_config = {name: getattr(job.statistics, name) for name in _OF_SHUFFLE}
    setting = read_setting(view.config.model_dump() | shuffle_config, view.shuffle_costs())
    map_flow = m.map_flow(job)
    map_side = {
        "map_in_records": map_flow.map_in_records,
        "map_in_bytes": map_flow.map_in_bytes,
        "sort_buffer_mb": job.config.sort_buffer_mb,
        "sort_spill_percent": job.config.sort_spill_percent,
        **view.machine_lists(),
    }
    startup_s = view.value("map_startup_s")
    answer = map_task(map_side, job, costs, startup_s)
    job_plan = make_plan(map_task_s=answer["map_task_s"])
    segment = None
    if answer["num_spills"]:  # what a map leaves for each reduce: What-If's (37) to (39)
        compressed_bytes = answer["map_final_bytes"] / job.config.num_reduces
        records = answer["map_final_records"] / job.config.num_reduces
        segment = Segment(compressed_bytes / job.ratio, compressed_bytes, records)

    side = ReduceSide(segment, setting, partial(after_shuffle, job=job, costs=costs))
    pool_times = {pool: job_times(job_plan, pool, side) for pool in POOLS}
    reduces = pool_times["separate"].reduces
    phases = {
        "startup_s": startup_s,
        **{name: answer[name] for name in _MAP_PHASES},
        "reduce_startup_s": job_plan.reduce_startup_s,
        "shuffle_s": fmean(reduce.outcome.shuffle_s for reduce in reduces),
        **{name: fmean(reduce.after[name] for reduce in reduces) for name in _AFTER_SHUFFLE},
    }
    first_reduce = reduces[0]  # the one that waits for maps
    dataflow = {
        **answer,
        "num_disk_files": len(first_reduce.outcome.disk_files),
        **first_reduce.outcome.quantities(),
        **first_reduce.after,
    }
    return _prediction(
        pool_times,
        job_plan,
        phases,
        measurable_phases(answer, phases, reduces),
        map_flow={name: value for name, value in dataflow.items() if name not in _NOT_DATAFLOW},
        warnings=[*answer["warnings"], *view.warnings()],
    )


def measurable_phases(
    answer: Mapping[str, Any], phases: Mapping[str, float], reduces: Sequence[Reduce]
) -> dict[str, float]:
    """
    Phases as a job history shows them [s].

    A map function ends for it before the flush, which waits for a spill that is still running; a
    shuffle ends with the last copy, and merges that are still running are part of the sort.
    """
    tail_s = answer["last_spill_s"] + waiting_for_spill_s(answer)
    copying_s = fmean(reduce.outcome.copy_clock_s for reduce in reduces)
    return {
        "map_main_s": phases["startup_s"] + max(0.0, answer["map_and_spill_s"] - tail_s),
        "map_tail_s": tail_s + answer["map_merge_s"],
        "shuffle_s": phases["reduce_startup_s"] + copying_s,
        "sort_s": phases["shuffle_s"] - copying_s + phases["reduce_merge_s"],
        "reduce_rest_s": phases["reduce_function_s"] + phases["reduce_write_s"],
    }


def _prediction(
    pool_times: Mapping[str, JobTimes],
    job_plan: Plan,
    phases: Mapping[str, float],
    measurable: Mapping[str, float],
    *,
    map_flow: Mapping[str, Any],
    warnings: Sequence[str],
) -> Prediction:
    separate = pool_times["separate"]
    reduces = separate.reduces
    reduce_task_s = None
    if reduces:
        reduce_task_s = fmean(
            reduce.end_s - reduce.start_s - job_plan.task_overhead_s for reduce in reduces
        )
    reduce_spans = [(reduce.start_s, reduce.end_s) for reduce in reduces]
    return Prediction(
        model="prophet",
        cell="",
        job_s=separate.job_s,
        map_task_s=job_plan.map_task_s,
        reduce_task_s=reduce_task_s,
        map_waves=separate.map_waves,
        reduce_waves=separate.reduce_waves,
        phases=dict(phases),
        measurable=dict(measurable),
        dataflow={name: value for name, value in map_flow.items() if value is not None},
        estimates={f"scheduler_{pool}_s": job.job_s for pool, job in pool_times.items()},
        timeline=(*task_spans("map", separate.maps), *task_spans("reduce", reduce_spans)),
        warnings=tuple(dict.fromkeys(warnings)),
    )
