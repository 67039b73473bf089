"""Prophet behind the contract of `harness.models.Model`: its profile, its answers to vectors."""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from statistics import fmean
from typing import Any

from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, Statistic
from harness.base.records.statistics import TASK_TIMES, compressed_name
from harness.models.adapter import cell_inputs, leave_out, pick, published_inputs_of_cell
from harness.models.checks import check_number, require_statistics
from harness.models.prophet.map_spill import map_and_spill, waiting_for_spill_s
from harness.models.prophet.shuffle import (
    COSTS_OF_CODEC,
    Segment,
    ShuffleCosts,
    read_setting,
    shuffle,
)
from harness.models.prophet.tasks import (
    ANY_CLUSTER,
    Plan,
    Reduce,
    ReduceSide,
    after_shuffle,
    job_times,
    map_task,
    tasks,
)
from harness.models.scheduler import POOLS, timeline
from harness.models.vectors import (
    CaseInput,
    Evaluator,
    object_in,
    objects_in,
    refuse_too_many,
)
from harness.models.whatif import map_task as m
from harness.models.whatif.evaluation import map_only_times
from harness.models.whatif.inputs import Costs, Dataflow, Job, read_job, side_costs
from harness.models.whatif.model import AFTER_SHUFFLE

COPY = "copy_s_per_byte"  # section 5's network
SPILLS = frozenset({"sort_s_per_record", "spill_write_s_per_byte"})

# They have a second name, for jobs that compress.
_WITH_CODEC = frozenset(name for name, row in TASK_TIMES.items() if row.codec == "map_output")
_COSTS = tuple(cost.name for cost in fields(ShuffleCosts))
_OF_COMBINER = frozenset(
    {"combine_s_per_record", "spill_bytes_selectivity", "combine_records_selectivity"}
)
_OF_MAP_ONLY_JOBS = frozenset({"input_record_bytes", "map_cpu_s_per_record"})
_OF_JOBS_WITH_REDUCES = SPILLS | {
    "input_record_bytes", "map_records_selectivity", "map_bytes_selectivity", "map_s_per_record",
    COPY, "local_write_s_per_byte",
}  # fmt: skip

_MAP_PHASES = ("map_while_not_spilling_s", "spill_s", "last_spill_s", "map_merge_s")
_MAP_ONLY_PHASES = ("map_read_s", "map_function_s", "map_write_s")
_PLANNED = tuple(planned.name for planned in fields(Plan))


@dataclass(frozen=True)
class View:
    """A profile as a cell with *config* sees it: one codec, machine by machine, what it lacks."""

    profile: Profile
    config: JobConfig

    def statistic(self, name: str) -> Statistic | None:
        """Statistic for this cell's codec, else a reduce's cost; `None` where there is neither."""
        statistics = self.profile.statistics
        costs = side_costs(self.profile.costs, "reduce")
        if name in _WITH_CODEC and self.config.map_output_compressed:
            # A byte takes the network no longer for being part of something compressed.
            fallback = statistics.get(name) if name == COPY else None
            return statistics.get(compressed_name(name)) or fallback
        return statistics.get(name) or costs.get(name)

    def value(self, name: str) -> float:
        """Its value, 0 where it is unknown; ``ModelError`` unless it is finite and at least 0."""
        statistic = self.statistic(name)
        if statistic is None:
            return 0.0
        return check_number(name, statistic.value, where="prophet statistics")

    def require_statistics(self) -> None:
        """``MissingStatistic`` for what the cell needs and the profile neither has nor implies."""
        names = _OF_MAP_ONLY_JOBS
        compressed = self.config.map_output_compressed
        if self.config.num_reduces:
            names = _OF_JOBS_WITH_REDUCES
            if self.config.use_combiner:
                names |= _OF_COMBINER
            if compressed:
                names |= {"spill_bytes_selectivity", "map_output_compression_ratio"}
        if self.statistic("spill_s_per_record"):  # logs show whole spills
            names -= SPILLS | {"combine_s_per_record"}
        suffixed = _WITH_CODEC - {COPY} if compressed else frozenset()
        lacking = {name for name in names if not self.statistic(name)}
        # Named as the profile would have them.
        lacking = lacking - suffixed | {compressed_name(name) for name in lacking & suffixed}
        require_statistics(frozenset(lacking), (), self.profile, "prophet")

    def reduce_side(self, answer: Mapping[str, Any], job: Job, costs: Costs) -> ReduceSide:
        """The reduces of a job whose map task is *answer*, with the *costs* of reduces."""
        shuffle_costs = {name: self.value(name) for name in _COSTS if self.statistic(name)}
        # Section 5's network is a copier's own time per byte while the others copy beside it: the
        # profile's `copy_s_per_byte`, not What-If's cost, in which the copiers share one network.
        copy_s = self.value(COPY)
        if self.config.map_output_compressed and compressed_name(COPY) in self.profile.statistics:
            # What a measured copy took to unpack is not counted again.
            copy_s -= shuffle_costs.get("map_output_decompress_s_per_byte", 0.0)
        shuffle_costs["network_s_per_byte"] = max(0.0, copy_s)
        setting = read_setting(self.config.model_dump() | vars(job.statistics), shuffle_costs)
        segment = None
        if answer["num_spills"]:  # what a map leaves for each reduce: What-If's (37) to (39)
            compressed_bytes = answer["map_final_bytes"] / job.config.num_reduces
            records = answer["map_final_records"] / job.config.num_reduces
            segment = Segment(compressed_bytes / job.ratio, compressed_bytes, records)
        return ReduceSide(segment, setting, partial(after_shuffle, job=job, costs=costs))

    def has_spill_parts(self) -> bool:
        """Whether sort, combine and write of a spill are known apart."""
        names = SPILLS
        if self.config.use_combiner:
            names |= {"combine_s_per_record"}
        return all(self.statistic(name) for name in names)

    def warnings(self) -> list[str]:
        """What a reader of the answer should know of the profile."""
        if self.config.num_reduces:
            names = [*_COSTS, "hdfs_write_s_per_byte", "reduce_cpu_s_per_record"]
        else:
            names = ["hdfs_read_s_per_byte", "hdfs_write_s_per_byte"]
        unused = {"network_s_per_byte"}
        if not self.config.use_combiner:
            unused.add("combine_cpu_s_per_record")
        if not self.config.map_output_compressed:
            unused |= COSTS_OF_CODEC
        warnings = [
            f"no {name}: taken as 0"
            for name in names
            if name not in unused and not self.statistic(name)
        ]
        if self.config.num_reduces:
            if not self.statistic("map_while_spilling_s_per_record"):
                warnings.append("no map_while_spilling_s_per_record: taken as map_s_per_record")
            if not self.has_spill_parts():
                text = "the parts of spills are not known: spill_s_per_record stands for all"
                warnings.append(text)
        return warnings

    def machine_statistics(self) -> dict[str, Statistic]:
        """Statistics of section 2.1 that the profile has, by their names in that section."""
        sources = {
            "map_records_selectivity": "map_records_selectivity",
            "map_bytes_selectivity": "map_bytes_selectivity",
            "map_s_per_record": "map_s_per_record",
            "combine_bytes_selectivity": "spill_bytes_selectivity",
        }
        if self.has_spill_parts():
            sources["sort_s_per_record"] = "sort_s_per_record"
            sources["spill_write_s_per_byte"] = "spill_write_s_per_byte"
            if self.config.use_combiner:
                sources["combine_s_per_record"] = "combine_s_per_record"
        else:
            sources["sort_s_per_record"] = "spill_s_per_record"
        return {
            name: statistic
            for name, source in sources.items()
            if (statistic := self.statistic(source)) is not None
        }

    def machine_lists(self) -> dict[str, list[float]]:
        """Section 2.1's lists: one value per machine that ran maps, which all of them know."""
        statistics = self.machine_statistics()
        # Hosts that all statistics know; none where one was not taken apart.
        known_hosts = [set(statistic.nodes) for statistic in statistics.values()]
        host_names = sorted(set.intersection(*known_hosts))
        lists = {
            name: [statistic.nodes[host] for host in host_names] or [statistic.value]
            for name, statistic in statistics.items()
        }
        alone = lists["map_s_per_record"]
        lists.setdefault("spill_write_s_per_byte", [0.0] * len(alone))
        beside_spill = self.statistic("map_while_spilling_s_per_record")
        if beside_spill is not None:
            # A machine whose maps were never beside a spill has its cost without one (section 13).
            while_spilling = [
                beside_spill.nodes.get(host, seconds)
                for host, seconds in zip(host_names, alone, strict=bool(host_names))
            ]
            lists["map_while_spilling_s_per_record"] = while_spilling or [beside_spill.value]
        return lists

    def map_side(self, map_flow: Dataflow, job: Job) -> dict[str, Any]:
        """Fields of section 4 for the map tasks of the cell."""
        return vars(map_flow) | vars(job.config) | self.machine_lists()


def _answer_shuffle(case: CaseInput) -> dict[str, Any]:
    _refuse_too_many_segments(case.fields)
    return shuffle(case.fields.get("groups"), case.fields, object_in(case.fields, "costs"))


def _answer_tasks(case: CaseInput) -> dict[str, Any]:
    parts = objects_in(case, "map_and_spill", "shuffle", "statistics", "costs", "config")
    _refuse_too_many_segments(parts["shuffle"])
    return tasks(*parts.values())


def _refuse_too_many_segments(values: Mapping[str, Any]) -> None:
    """`refuse_too_many` for the map outputs of a case, each of which is copied alone."""
    groups = values.get("groups") or ()
    counts = [group.get("count") for group in groups if isinstance(group, dict)]
    total = sum(count for count in counts if isinstance(count, int | float))
    refuse_too_many("the sum of the counts of groups", total)


EVALUATORS: tuple[Evaluator, ...] = (
    Evaluator("prophet", frozenset({"map_and_spill", "shuffle"}), _answer_tasks),
    # Cases that lack a field of their kind are answered all the same: it is refused by name.
    Evaluator("prophet", frozenset({"groups"}), _answer_shuffle),
    Evaluator("prophet", frozenset({"parallel_copies"}), _answer_shuffle),
    Evaluator("prophet", frozenset({"map_in_records"}), lambda case: map_and_spill(case.fields)),
    Evaluator("prophet", frozenset({"map_s_per_record"}), lambda case: map_and_spill(case.fields)),
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
        Times for one cell: the body is section 6.1 with separate pools; both are estimates.

        What is published is k x `map_task_s` + `reduce_task_s` (P22): k whole waves of maps until
        the reduces start, and what these take from then on.
        """
        view = View(profile, configuration)
        view.require_statistics()
        inputs = published_inputs_of_cell(profile, configuration, cluster, job_input)
        statistics, costs, config, _ = inputs
        job, map_costs, reduce_costs = read_job(statistics, costs, config, ANY_CLUSTER, "mr2")
        map_flow = m.map_flow(job)
        side = None
        if configuration.num_reduces:
            answer = map_task(view.map_side(map_flow, job), job, map_costs)
            side = view.reduce_side(answer, job, reduce_costs)
        else:  # What-If's (90)
            answer = vars(map_flow) | map_only_times(map_flow, job, map_costs)
        planned = pick(cell_inputs(configuration, cluster, job_input), _PLANNED)
        plan = Plan(map_task_s=answer["map_task_s"], **planned)
        pool_times = {pool: job_times(plan, pool, side) for pool in POOLS}
        separate = pool_times["separate"]
        reduces = separate.reduces
        reduce_task_s = None
        waves_before = separate.map_waves
        details: dict[str, Any]
        if reduces:
            details = _reduce_details(view, answer, reduces)
            reduce_task_s = fmean(reduce.end_s - reduce.start_s for reduce in reduces)
            maps_needed = math.ceil(plan.slowstart * plan.num_maps - 1e-9)
            waves_before = -(-maps_needed // plan.map_slots)
        else:
            details = {
                "phases": pick(answer, _MAP_ONLY_PHASES),
                "measurable": {"map_main_s": plan.map_task_s, "map_tail_s": 0.0},
                "dataflow": vars(map_flow),
            }
        reduce_spans = [(reduce.start_s, reduce.end_s) for reduce in reduces]
        return Prediction(
            model=self.name,
            body_s=separate.job_s,
            published_s=waves_before * plan.map_task_s
            + separate.reduce_waves * (reduce_task_s or 0.0),
            map_task_s=plan.map_task_s,
            reduce_task_s=reduce_task_s,
            map_waves=separate.map_waves,
            reduce_waves=separate.reduce_waves,
            estimates={f"scheduler_{pool}_s": times.job_s for pool, times in pool_times.items()},
            timeline=timeline(separate.maps, reduce_spans),
            warnings=tuple(dict.fromkeys([*answer.get("warnings", ()), *view.warnings()])),
            **details,
        )


def _reduce_details(
    view: View, answer: Mapping[str, Any], reduces: Sequence[Reduce]
) -> dict[str, Any]:
    """Phases, parts and dataflow of the tasks of a job with reduces."""
    phases = pick(answer, _MAP_PHASES)
    phases["shuffle_s"] = fmean(reduce.outcome.shuffle_s for reduce in reduces)
    for name in AFTER_SHUFFLE:
        phases[name] = fmean(reduce.after[name] for reduce in reduces)
    first_reduce = reduces[0]  # the one that waits for maps
    dataflow = {
        **answer,
        "num_disk_files": len(first_reduce.outcome.disk_files),
        **first_reduce.outcome.quantities(),
        **first_reduce.after,
    }
    unknown = {name for name, value in dataflow.items() if value is None}
    not_dataflow = {*phases, *unknown, "map_task_s", "disk_files", "warnings"}
    return {
        "phases": phases,
        "measurable": _measurable(answer, phases, reduces),
        "parts": _parts(view, answer, phases),
        "dataflow": leave_out(dataflow, not_dataflow),
    }


def _parts(view: View, answer: Mapping[str, Any], phases: Mapping[str, float]) -> dict[str, float]:
    """Parts of the tasks that have an equation of their own, in seconds."""
    parts = pick(answer, ("map_s", "map_merge_s")) | pick(phases, AFTER_SHUFFLE)
    if view.has_spill_parts():
        sort_s = answer["map_out_records"] * fmean(view.machine_lists()["sort_s_per_record"])
        spills_s = answer["spill_s"] + answer["last_spill_s"]
        parts |= {"spill_sort_s": sort_s, "spill_write_s": spills_s - sort_s}
    return parts


def _measurable(
    answer: Mapping[str, Any], phases: Mapping[str, float], reduces: Sequence[Reduce]
) -> dict[str, float]:
    """
    Phases as a job history shows them, in seconds.

    A map function ends for it before the flush, which waits for a spill that is still running; a
    shuffle ends with the last copy, and merges that are still running are part of the sort.
    """
    tail_s = answer["last_spill_s"] + waiting_for_spill_s(answer)
    copying_s = fmean(reduce.outcome.copy_clock_s for reduce in reduces)
    return {
        "map_main_s": max(0.0, answer["map_and_spill_s"] - tail_s),
        "map_tail_s": tail_s + answer["map_merge_s"],
        "shuffle_s": copying_s,
        "sort_s": phases["shuffle_s"] - copying_s + phases["reduce_merge_s"],
        "reduce_rest_s": phases["reduce_function_s"] + phases["reduce_write_s"],
    }
