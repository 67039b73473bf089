"""
Whole tasks, section 6: map function and spills with their merge; shuffle, merge, reduce, write.

What Prophet does not model is What-If's under mr2 rules: Eqs. (24) to (36) with n equal spill
files, and Eqs. (65) to (89) from the files and segments that Algorithm 1 leaves.
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from typing import Any

from harness.models.checks import check_number
from harness.models.merge import File, simulate_merge
from harness.models.prophet.map_spill import map_and_spill
from harness.models.prophet.setting import (
    Outcome,
    Segment,
    read_groups,
    read_setting,
    too_large,
)
from harness.models.prophet.shuffle import run
from harness.models.whatif import map_task as m
from harness.models.whatif import reduce_task as r
from harness.models.whatif.evaluation import python_numbers
from harness.models.whatif.inputs import Costs, Job, read_costs, read_job

# Slots are no part of a task.
_ANY_CLUSTER = {"num_nodes": 1, "map_slots_per_node": 1, "reduce_slots_per_node": 1}


def tasks(  # noqa: PLR0917 - the parts of a case
    map_side: Mapping[str, Any],
    reduce_side: Mapping[str, Any],
    statistics: Mapping[str, float],
    costs: Mapping[str, float],
    config: Mapping[str, Any],
    startup_s: float = 0.0,
) -> dict[str, Any]:
    """
    One map and one reduce task: quantities of section 4, of the merge, `map_task_s`; `shuffle`,
    `after_shuffle`, `reduce_task_s`.

    *map_side* holds the fields of section 4, *reduce_side* those of section 5 with its `costs` and
    `groups`; the rest has What-If's names.  ``ModelError`` names a field that is missing or outside
    its range.
    """  # noqa: D205
    job = task_job(statistics, config)
    checked = read_costs(costs, job.config)
    answer = map_task(map_side, job, checked, startup_s)
    groups = read_groups(reduce_side.get("groups"))
    outcome = run(groups, read_setting(reduce_side, reduce_side.get("costs", {})))
    after = after_shuffle(outcome, job, checked)
    shuffle = outcome.quantities()
    return answer | {
        "shuffle": shuffle,
        "after_shuffle": after,
        "reduce_task_s": shuffle["shuffle_s"] + after_shuffle_s(after),
    }


def task_job(statistics: Mapping[str, float], config: Mapping[str, Any]) -> Job:
    """Inputs of What-If's equations, checked, after its Eq. (1)."""
    return read_job(statistics, config, _ANY_CLUSTER, "mr2")


def map_task(
    given: Mapping[str, Any], job: Job, costs: Costs, startup_s: float = 0.0
) -> dict[str, Any]:
    """Section 4's quantities, the map-side merge, and `map_task_s`."""
    startup = check_number("startup_s", startup_s, where="prophet map task")
    answer = map_and_spill(given)
    return answer | _merge(answer, job, costs, startup + answer["map_and_spill_s"])


def _merge(answer: Mapping[str, Any], job: Job, costs: Costs, before_s: float) -> dict[str, Any]:
    """Eqs. (24) to (36) with equal spill files."""
    files = spill_files(answer, job)
    merge = m.map_merge(files, job)
    passes = float(m.map_intermediate_merge_s(files, merge, job, costs))
    last = float(m.map_final_merge_s(files, merge, job, costs))
    if not math.isfinite(before_s + passes + last):
        raise too_large()
    return {
        "spill_file_bytes": files.spill_file_bytes,
        "spill_file_records": files.spill_file_records,
        **python_numbers(vars(merge)),
        "map_intermediate_merge_s": passes,
        "map_final_merge_s": last,
        "map_merge_s": passes + last,
        "map_task_s": before_s + (passes + last),
    }


def spill_files(answer: Mapping[str, Any], job: Job) -> m.Spills:
    """Equal files: codec and combiner are in the bytes, What-If's combiner in the records."""
    n, records, size = answer["num_spills"], answer["map_out_records"], answer["map_out_bytes"]
    share = 1 / n if n else 0.0
    return m.Spills(
        map_out_record_bytes=answer["map_out_record_bytes"],
        spill_buffer_records=answer["records_per_spill"],
        num_spills=n,
        records_per_spill=records * share,
        spill_buffer_bytes=size * share,
        spill_file_records=records * job.statistics.combine_records_selectivity * share,
        spill_file_bytes=size * answer["spill_bytes_selectivity"] * share,
    )


def after_shuffle(outcome: Outcome, job: Job, costs: Costs) -> dict[str, Any]:
    """Merge in three steps, reduce, write: Eqs. (65) to (89) for files and segments of any size."""
    left, disk = outcome.left, outcome.disk_files
    allowed = job.config.reduce_buffer_percent * (
        job.config.shuffle_buffer_percent * job.config.reduce_heap_bytes
    )  # (66)
    gone = evicted(left, allowed)
    eviction = _eviction(left, gone, allowed, len(disk), job)
    steps = _later_steps(outcome, gone, eviction, job)
    flow = _reduce_flow(outcome, job)
    step1, step2 = r.step1_s(eviction, job, costs), r.step2_s(steps, job, costs)
    ratio = job.statistics.output_compression_ratio
    return {
        **vars(eviction),
        **vars(steps),
        **vars(flow),
        "step1_s": step1,
        "step2_s": step2,
        "step3_s": 0.0,
        "reduce_merge_s": step1 + step2,  # (82)
        "reduce_function_s": r.reduce_function_s(
            steps.reduce_disk_input_bytes, flow.reduce_in_records, costs
        ),
        "reduce_write_s": m.write_s(flow.reduce_out_bytes, ratio, costs),
    }


def after_shuffle_s(after: Mapping[str, float]) -> float:
    """Seconds of a reduce task behind its shuffle."""
    return after["reduce_merge_s"] + after["reduce_function_s"] + after["reduce_write_s"]


def evicted(left: Sequence[Segment], allowed: float) -> int:
    """How many segments leave memory, in the order of arrival, until the rest is *allowed*."""
    rest = sum((s.bytes for s in left), 0.0)
    for gone, segment in enumerate(left):
        if rest <= allowed:
            return gone
        rest -= segment.bytes
    return len(left)


def _eviction(
    left: Sequence[Segment], gone: int, allowed: float, disk_files: int, job: Job
) -> r.Eviction:
    """Step 1: one file of the evicted where files are fewer than F, else none."""
    written = gone if disk_files < job.config.merge_factor else 0
    size = sum((s.compressed_bytes for s in left[:written]), 0.0)
    records = sum((s.records for s in left[:written]), 0.0)
    return r.Eviction(
        num_disk_files=disk_files,
        max_retained_bytes=allowed,
        retained_candidate_bytes=sum((s.bytes for s in left), 0.0),
        segments_evicted=gone,
        segments_retained=len(left) - gone,
        files_from_memory=int(written > 0),
        file_from_memory_bytes=size,
        file_from_memory_records=records,
        step1_bytes=size,
        step1_records=records,
    )


def _later_steps(outcome: Outcome, gone: int, eviction: r.Eviction, job: Job) -> r.LaterSteps:
    """Step 2: the evicted that no file holds join the first pass from memory (W28)."""
    disk, in_memory = list(outcome.disk_files), list[File]()
    if eviction.files_from_memory:
        disk.append((eviction.step1_bytes, eviction.step1_records))
    else:
        in_memory = [(s.compressed_bytes, s.records) for s in outcome.left[:gone]]
    merge = simulate_merge(disk, job.config.merge_factor, in_memory)
    return r.LaterSteps(
        step2_files=len(disk) + len(in_memory),
        step2_intermediate_reads=merge.files_read,
        step2_bytes=merge.written_bytes,
        step2_records=merge.written_records,
        step3_files=eviction.segments_retained + len(merge.left_in_memory) + len(merge.files_left),
        step3_intermediate_reads=0,
        step3_bytes=0.0,
        step3_records=0.0,
        reduce_disk_input_bytes=sum((size for size, _ in merge.files_left), 0.0),
        step2_passes=merge.passes,
        step2_read_bytes=merge.read_bytes,
    )


def _reduce_flow(outcome: Outcome, job: Job) -> r.ReduceFlow:
    """Input and output of the reduce function."""
    files, left, s = outcome.disk_files, outcome.left, job.statistics
    size = sum((f[0] for f in files), 0.0) + sum((g.compressed_bytes for g in left), 0.0)
    records = sum((f[1] for f in files), 0.0) + sum((g.records for g in left), 0.0)
    in_bytes = size / job.ratio  # (83)
    return r.ReduceFlow(
        in_bytes, records,
        reduce_in_groups=records / s.records_per_reduce_group,
        reduce_out_bytes=in_bytes * s.reduce_bytes_selectivity,  # (85)
        reduce_out_records=records * s.reduce_records_selectivity,  # (86)
    )  # fmt: skip
