"""
Whole tasks, section 6, and the job they make, section 6.1.

A task is map function and spills with their merge, or shuffle, merge, reduce and write.  What
Prophet does not model is What-If's under mr2 rules: Eqs. (24) to (36) with n equal spill files, and
Eqs. (65) to (89) from the files and segments that Algorithm 1 leaves.

The job is that of `harness.models.scheduler` (steps 1 to 5 and 7); in step 6 the copying of every
reduce is simulated from the moment it starts, so that the first reduces wait for maps and later
ones have all outputs at once.  Map i runs on node i mod `num_nodes`.
"""

from __future__ import annotations

import math

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.models.checks import check_count, not_finite_error
from harness.models.merge import File, simulate_merge
from harness.models.prophet.map_spill import map_and_spill
from harness.models.prophet.shuffle import (
    Group,
    Outcome,
    Segment,
    Setting,
    read_groups,
    read_setting,
    run_shuffle,
)
from harness.models.scheduler import Span, place_tasks, reduce_gate_s
from harness.models.whatif import map_task as m
from harness.models.whatif import reduce_task as r
from harness.models.whatif.evaluation import python_numbers
from harness.models.whatif.inputs import Costs, Dataflow, Job, read_job

WHERE = "prophet job"

# A task does not depend on slots.
ANY_CLUSTER = {"num_nodes": 1, "map_slots_per_node": 1, "reduce_slots_per_node": 1}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Tasks, and where they run."""

    map_task_s: float
    num_maps: int
    num_reduces: int
    num_nodes: int
    map_slots: int
    reduce_slots: int
    slowstart: float
    task_overhead_s: float = 0.0
    job_overhead_s: float = 0.0


@dataclass(frozen=True)
class Reduce:
    """One reduce: start in its slot, end; its shuffle, and what follows it."""

    start_s: float
    end_s: float
    outcome: Outcome
    after: dict[str, Any]


@dataclass(frozen=True)
class JobTimes:
    """A job under one pool."""

    maps: list[Span]
    reduces: list[Reduce]
    map_waves: int
    reduce_waves: int
    job_s: float


def tasks(
    map_side: Mapping[str, Any],
    reduce_side: Mapping[str, Any],
    statistics: Mapping[str, float],
    costs: Mapping[str, float],
    config: Mapping[str, Any],
) -> dict[str, Any]:
    """
    One map and one reduce task: quantities of section 4, of the merge, `map_task_s`; `shuffle`,
    `after_shuffle`, `reduce_task_s`.

    *map_side* holds the fields of section 4, *reduce_side* those of section 5 with its `costs` and
    `groups`; the rest has What-If's names.  ``ModelError`` names a field that is missing or outside
    its range.
    """  # noqa: D205
    job, map_costs, reduce_costs = read_job(statistics, costs, config, ANY_CLUSTER, "mr2")
    answer = map_task(map_side, job, map_costs)
    groups = read_groups(reduce_side.get("groups"))
    outcome = run_shuffle(groups, read_setting(reduce_side, reduce_side.get("costs", {})))
    after = after_shuffle(outcome, job, reduce_costs)
    shuffle = outcome.quantities()
    return answer | {
        "shuffle": shuffle,
        "after_shuffle": after,
        "reduce_task_s": shuffle["shuffle_s"] + after_shuffle_s(after),
    }


# Map task


def map_task(values: Mapping[str, Any], job: Job, costs: Costs) -> dict[str, Any]:
    """Section 4's quantities, the merge of equal spill files, Eqs. (24) to (36); `map_task_s`."""
    answer = map_and_spill(values)
    # Codec and combiner are in the bytes of a file, What-If's combiner in its records.
    num_spills = answer["num_spills"]
    out_records = answer["map_out_records"]
    share = 1 / num_spills if num_spills else 0.0
    _, combined = m.combined_shares(out_records * share, job)
    dataflow = Dataflow(
        num_spills=num_spills,
        spill_file_bytes=answer["map_out_bytes"] * answer["spill_bytes_selectivity"] * share,
        spill_file_records=float(out_records * combined * share),
    )
    vars(dataflow).update(m.map_merge(dataflow, job))
    passes_s = float(m.map_intermediate_merge_s(dataflow, job, costs))
    final_s = float(m.map_final_merge_s(dataflow, job, costs))
    merge_s = passes_s + final_s
    if not math.isfinite(map_task_s := answer["map_and_spill_s"] + merge_s):
        raise not_finite_error("prophet")
    return answer | {
        **python_numbers(vars(dataflow)),
        "map_intermediate_merge_s": passes_s,
        "map_final_merge_s": final_s,
        "map_merge_s": merge_s,
        "map_task_s": map_task_s,
    }


# Reduce task


def after_shuffle(outcome: Outcome, job: Job, costs: Costs) -> dict[str, Any]:
    """Merge in three steps, reduce, write: Eqs. (65) to (89) for files and segments of any size."""
    dataflow = merge_steps(outcome, job)
    files = outcome.disk_files
    segments = outcome.left
    stored_bytes = sum((size for size, _ in files), 0.0)
    stored_bytes += sum((segment.compressed_bytes for segment in segments), 0.0)
    in_records = sum((records for _, records in files), 0.0)
    in_records += sum((segment.records for segment in segments), 0.0)
    dataflow.reduce_in_bytes = stored_bytes / job.ratio  # (83)
    dataflow.reduce_in_records = in_records  # (84)
    vars(dataflow).update(r.reduce_output(dataflow, job))
    step1_s = r.step1_s(dataflow, job, costs)
    step2_s = r.step2_s(dataflow, job, costs)
    ratio = job.statistics.output_compression_ratio
    return {
        **vars(dataflow),
        "step1_s": step1_s,
        "step2_s": step2_s,
        "step3_s": 0.0,
        "reduce_merge_s": step1_s + step2_s,  # (82)
        "reduce_function_s": r.reduce_function_s(dataflow, costs),
        "reduce_write_s": m.write_s(dataflow.reduce_out_bytes, ratio, costs),
    }


def after_shuffle_s(after: Mapping[str, float]) -> float:
    """Seconds of a reduce task behind its shuffle."""
    return after["reduce_merge_s"] + after["reduce_function_s"] + after["reduce_write_s"]


def merge_steps(outcome: Outcome, job: Job) -> Dataflow:
    """
    Step 1: one file of the evicted segments where files are fewer than F, else none.

    Step 2: the evicted segments that no file holds join the first pass from memory (W28).
    """
    segments = outcome.left
    files = list(outcome.disk_files)
    config = job.config
    in_memory = list[File]()
    max_retained_bytes = config.reduce_buffer_percent * (
        config.shuffle_buffer_percent * config.reduce_heap_bytes
    )  # (66)
    evicted = num_evicted(segments, max_retained_bytes)
    written = segments[:evicted] if len(files) < config.merge_factor else []
    written_bytes = sum((segment.compressed_bytes for segment in written), 0.0)
    written_records = sum((segment.records for segment in written), 0.0)
    num_disk_files = len(files)
    if written:
        files.append((written_bytes, written_records))
    else:
        in_memory = [(segment.compressed_bytes, segment.records) for segment in segments[:evicted]]
    disk_merge = simulate_merge(files, config.merge_factor, in_memory)
    retained = len(segments) - evicted
    return Dataflow(
        num_disk_files=num_disk_files,
        max_retained_bytes=max_retained_bytes,
        retained_candidate_bytes=sum((segment.bytes for segment in segments), 0.0),
        segments_evicted=evicted,
        segments_retained=retained,
        files_from_memory=int(bool(written)),
        file_from_memory_bytes=written_bytes,
        file_from_memory_records=written_records,
        step1_bytes=written_bytes,
        step1_records=written_records,
        step2_files=len(files) + len(in_memory),
        step2_intermediate_reads=disk_merge.files_read,
        step2_bytes=disk_merge.written_bytes,
        step2_records=disk_merge.written_records,
        step3_files=retained + len(disk_merge.left_in_memory) + len(disk_merge.files_left),
        step3_intermediate_reads=0,
        step3_bytes=0.0,
        step3_records=0.0,
        reduce_disk_input_bytes=sum((size for size, _ in disk_merge.files_left), 0.0),
        step2_passes=disk_merge.passes,
        step2_read_bytes=disk_merge.read_bytes,
    )


def num_evicted(segments: Sequence[Segment], max_retained_bytes: float) -> int:
    """Number of segments that leave memory, in the order of arrival, until the rest may stay."""
    rest_bytes = sum((segment.bytes for segment in segments), 0.0)
    for evicted, segment in enumerate(segments):
        if rest_bytes <= max_retained_bytes:
            return evicted
        rest_bytes -= segment.bytes
    return len(segments)


# Job


@dataclass(frozen=True)
class ReduceSide:
    """What each map leaves for a reduce, its shuffle, and the quantities that follow a shuffle."""

    segment: Segment | None
    setting: Setting
    after: Callable[[Outcome], dict[str, Any]]


class ReduceTimes:
    """Times of reduces once they have a start, step 6; *maps* are the spans of all maps."""

    def __init__(self, plan: Plan, side: ReduceSide, maps: Sequence[Span]) -> None:
        self.side = side
        self.task_overhead_s = plan.task_overhead_s
        self.maps_end = max((end for _, end in maps), default=0.0)
        outputs = Counter((end, place % plan.num_nodes) for place, (_, end) in enumerate(maps))
        # Moment and node, and how many maps ended there and then.
        self.outputs = sorted(outputs.items())
        # Reduces that start together, and all that start after the last map, are computed once.
        self.shuffles: dict[float, tuple[Outcome, dict[str, Any]]] = {}
        self.reduces: list[Reduce] = []

    def end_of(self, _: int, start: float) -> float:
        """End of a reduce that gets its slot at *start*; it is added to the reduces."""
        copy_start = start + self.task_overhead_s
        outcome, after = self.shuffle_from(min(copy_start, self.maps_end))
        end = copy_start + outcome.shuffle_s + after_shuffle_s(after)
        self.reduces.append(Reduce(start, end, outcome, after))
        return end

    def shuffle_from(self, moment: float) -> tuple[Outcome, dict[str, Any]]:
        """The shuffle of a reduce that copies from that *moment* on, and what follows it."""
        if moment not in self.shuffles:
            groups = list[Group]()
            if self.side.segment is not None:
                groups = [
                    Group(f"node {node}", count, end - moment, self.side.segment)
                    for (end, node), count in self.outputs
                ]
            outcome = run_shuffle(groups, self.side.setting)
            self.shuffles[moment] = outcome, self.side.after(outcome)
        return self.shuffles[moment]


def job_times(plan: Plan, pool: str, side: ReduceSide | None = None) -> JobTimes:
    """The job by steps 1 to 7 with slots of that *pool*; without a *side* no reduce runs."""
    if plan.num_reduces and pool == "separate":
        check_count("reduce_slots", plan.reduce_slots, where=WHERE, low=1)
    maps, free_at = place_tasks(
        plan.num_maps,
        plan.map_slots,
        lambda _, start: start + plan.task_overhead_s + plan.map_task_s,
    )
    map_waves = math.ceil(plan.num_maps / plan.map_slots)
    if plan.num_reduces == 0 or side is None:
        maps_end = max((end for _, end in maps), default=0.0)
        return JobTimes(maps, [], map_waves, 0, maps_end + plan.job_overhead_s)
    slots = plan.map_slots
    if pool == "separate":
        slots = plan.reduce_slots
        free_at = []
    may_start = reduce_gate_s(sorted(end for _, end in maps), plan.slowstart)
    times = ReduceTimes(plan, side, maps)
    place_tasks(plan.num_reduces, slots, times.end_of, free_at, may_start)
    job_end = max([times.maps_end, *(reduce.end_s for reduce in times.reduces)])
    reduce_waves = math.ceil(plan.num_reduces / slots)
    return JobTimes(maps, times.reduces, map_waves, reduce_waves, job_end + plan.job_overhead_s)
