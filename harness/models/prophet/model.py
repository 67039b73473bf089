"""Prophet behind the contract of `harness.models.base`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from harness.models.prophet.job import POOLS, JobTimes, Plan, Reduce, Reducer, job_times
from harness.models.prophet.map_spill import waiting_for_spill_s
from harness.models.prophet.setting import Outcome, Segment, Setting, read_setting
from harness.models.prophet.tasks import after_shuffle, after_shuffle_s, map_task, task_job
from harness.models.prophet.vectors import EVALUATORS
from harness.models.prophet.view import COPY, SPILLS, View
from harness.models.whatif import map_task as m
from harness.models.whatif.inputs import Costs, Job, read_costs
from harness.records.prediction import Cluster, JobConfig, JobInput, Prediction, TaskSpan
from harness.records.profile import Profile

_MAP_ONLY = frozenset({"input_record_bytes", "map_cpu_s_per_record"})
_WITH_REDUCES = SPILLS | {
    "input_record_bytes", "map_records_selectivity", "map_bytes_selectivity", "map_s_per_record",
    COPY, "local_write_s_per_byte",
}  # fmt: skip

_MAP_PHASES = ("map_while_not_spilling_s", "spill_s", "last_spill_s", "map_merge_s")
_AFTER = ("reduce_merge_s", "reduce_function_s", "reduce_write_s")
_NO_DATAFLOW = frozenset({*_MAP_PHASES, *_AFTER, "map_task_s", "shuffle_s", "disk_files",
                          "warnings"})  # fmt: skip


class Prophet:
    """The published model; `required` are its statistics of a job with reduces."""

    name = "prophet"
    description = "MR. Prophet: overlap of map and spill, of copying and merging"
    required: frozenset[str] = _WITH_REDUCES
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
        if configuration.num_reduces == 0:
            view.demand(_MAP_ONLY)
            return _map_only(view, cluster, job_input)
        view.demand(self.required, combines=configuration.use_combiner)
        return _with_reduces(view, cluster, job_input)


def _map_only(view: View, cluster: Cluster, size: JobInput) -> Prediction:
    """What-If's (90) of a job without reduces, and the measured start of a task."""
    job = _job(view, size)
    costs = read_costs(view.costs(), job.config)
    flow = m.map_flow(job)
    phases = {
        "startup_s": view.value("map_startup_s"),
        "map_read_s": m.map_read_s(size.split_bytes, costs),
        "map_function_s": m.map_function_s(flow.map_in_records, costs),
        "map_write_s": m.write_s(
            flow.map_out_bytes, job.statistics.output_compression_ratio, costs
        ),
    }
    plan = _plan(view, cluster, size, sum(phases.values()))
    times = {pool: job_times(plan, pool, _no_reducer) for pool in POOLS}
    measurable = {"map_main_s": plan.map_task_s, "map_tail_s": 0.0}
    return _prediction(
        times, plan, phases, measurable, flow=vars(flow), warnings=_map_only_notes(view)
    )


def _map_only_notes(view: View) -> list[str]:
    """Costs of the map function alone."""
    names = ("hdfs_read_s_per_byte", "hdfs_write_s_per_byte")
    return [f"no {name}: taken as 0" for name in names if not view.find(name)] + view.absent()


def _no_reducer(_: Sequence[tuple[float, float]]) -> Reducer:
    raise AssertionError("a map-only job has no reduces")


def _with_reduces(view: View, cluster: Cluster, size: JobInput) -> Prediction:
    job = _job(view, size)
    costs = read_costs(view.costs(), job.config)
    setting = _setting(view, job)
    side = _map_side(view, job)
    answer = map_task(side, job, costs, view.value("map_startup_s"))
    plan = _plan(view, cluster, size, answer["map_task_s"])
    times = _all_times(plan, answer, setting, job, costs)
    reduces = times["separate"].reduces
    startup = view.value("map_startup_s")
    phases = {"startup_s": startup, **{n: answer[n] for n in _MAP_PHASES},
              "reduce_startup_s": plan.reduce_startup_s, **_reduce_phases(reduces)}  # fmt: skip
    flow = {n: v for n, v in {**answer, **_reduce_flow(reduces)}.items() if n not in _NO_DATAFLOW}
    return _prediction(times, plan, phases, _measurable(answer, phases, reduces), flow=flow,
                       warnings=[*answer["warnings"], *view.notes()])  # fmt: skip


def _job(view: View, size: JobInput) -> Job:
    config = view.config.model_dump() | {
        "num_maps": size.num_splits, "split_bytes": size.split_bytes
    }  # fmt: skip
    return task_job(view.statistics(), config)


def _setting(view: View, job: Job) -> Setting:
    """Section 5's setting, with What-If's statistics of codec and combiner."""
    config = view.config.model_dump() | {
        name: getattr(job.statistics, name)
        for name in ("map_output_compression_ratio", "combine_bytes_selectivity",
                     "combine_records_selectivity")
    }  # fmt: skip
    return read_setting(config, view.shuffle_costs())


def _map_side(view: View, job: Job) -> dict[str, Any]:
    flow = m.map_flow(job)
    return {
        "map_in_records": flow.map_in_records,
        "map_in_bytes": flow.map_in_bytes,
        "sort_buffer_mb": job.config.sort_buffer_mb,
        "sort_spill_percent": job.config.sort_spill_percent,
        **view.lists(),
    }


def _plan(view: View, cluster: Cluster, size: JobInput, map_task_s: float) -> Plan:
    return Plan(
        map_task_s=map_task_s,
        num_maps=size.num_splits,
        num_reduces=view.config.num_reduces,
        num_nodes=cluster.num_nodes,
        map_slots=cluster.map_slots,
        reduce_slots=cluster.reduce_slots,
        slowstart=view.config.reduce_slowstart,
        reduce_startup_s=view.value("reduce_startup_s"),
        **view.overheads(),
    )


def _all_times(
    plan: Plan,
    answer: Mapping[str, Any],
    setting: Setting,
    job: Job,
    costs: Costs,
) -> dict[str, JobTimes]:
    """Both pools."""

    def after(outcome: Outcome) -> tuple[dict[str, Any], float]:
        found = after_shuffle(outcome, job, costs)
        return found, after_shuffle_s(found)

    segment = _segment(answer, job) if answer["num_spills"] else None
    reducer = partial(
        Reducer, num_nodes=plan.num_nodes, segment=segment, setting=setting, after=after
    )
    return {pool: job_times(plan, pool, reducer) for pool in POOLS}


def _segment(answer: Mapping[str, Any], job: Job) -> Segment:
    """What a map leaves for each reduce: What-If's (37) to (39)."""
    compressed = answer["map_final_bytes"] / job.config.num_reduces
    records = answer["map_final_records"] / job.config.num_reduces
    return Segment(compressed / job.ratio, compressed, records)


def _reduce_phases(reduces: Sequence[Reduce]) -> dict[str, float]:
    """Means over the reduces."""
    return {
        "shuffle_s": fmean(r.outcome.shuffle_s for r in reduces),
        **{name: fmean(r.after[name] for r in reduces) for name in _AFTER},
    }


def _reduce_flow(reduces: Sequence[Reduce]) -> dict[str, Any]:
    """Quantities of the first reduce, which waits for maps."""
    first = reduces[0]
    shuffle = first.outcome.quantities()
    return {"num_disk_files": len(shuffle["disk_files"]), **shuffle, **first.after}


def _measurable(
    answer: Mapping[str, Any], phases: Mapping[str, float], reduces: Sequence[Reduce]
) -> dict[str, float]:
    """
    Phases as a job history shows them.

    A map function ends for it before the flush, which waits for a spill that is still running; a
    shuffle ends with the last copy, and merges that are still running are part of the sort.
    """
    waiting = waiting_for_spill_s(answer)
    tail = answer["last_spill_s"] + waiting
    copying = fmean(r.outcome.copy_clock_s for r in reduces)
    return {
        "map_main_s": phases["startup_s"] + max(0.0, answer["map_and_spill_s"] - tail),
        "map_tail_s": tail + answer["map_merge_s"],
        "shuffle_s": phases["reduce_startup_s"] + copying,
        "sort_s": phases["shuffle_s"] - copying + phases["reduce_merge_s"],
        "reduce_rest_s": phases["reduce_function_s"] + phases["reduce_write_s"],
    }


def _prediction(
    times: Mapping[str, JobTimes],
    plan: Plan,
    phases: Mapping[str, float],
    measurable: Mapping[str, float],
    *,
    flow: Mapping[str, Any],
    warnings: Sequence[str],
) -> Prediction:
    chosen = times["separate"]
    reduce_task = [r.end_s - r.start_s - plan.task_overhead_s for r in chosen.reduces]
    return Prediction(
        model="prophet",
        cell="",
        job_s=chosen.job_s,
        map_task_s=plan.map_task_s,
        reduce_task_s=fmean(reduce_task) if reduce_task else None,
        map_waves=chosen.map_waves,
        reduce_waves=chosen.reduce_waves,
        phases=dict(phases),
        measurable=dict(measurable),
        dataflow={n: v for n, v in flow.items() if v is not None},
        estimates={f"scheduler_{pool}_s": t.job_s for pool, t in times.items()},
        timeline=_timeline(chosen),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _timeline(times: JobTimes) -> tuple[TaskSpan, ...]:
    spans = [("map", i, *span) for i, span in enumerate(times.maps)]
    spans += [("reduce", i, r.start_s, r.end_s) for i, r in enumerate(times.reduces)]
    return tuple(
        TaskSpan(task=f"{kind} {i}", kind="map" if kind == "map" else "reduce",
                 start_s=start, end_s=end)
        for kind, i, start, end in spans
    )  # fmt: skip
