"""
A whole evaluation: tasks and job, Eqs. (90) to (94), and the counters of section 7.

`evaluate` is the model as a function of mappings; `read_flow` and `times` are its two halves.  The
dataflow does not depend on the costs, and every time is linear in them.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import ModelError
from harness.models.whatif import map_task as m
from harness.models.whatif import reduce_task as r
from harness.models.whatif import shuffle as sh
from harness.models.whatif.inputs import Costs, Job, read_costs, read_job, warnings_of


@dataclass(frozen=True)
class Flow:
    """Dataflow of a map and a reduce task, stage by stage."""

    map: m.MapFlow
    spills: m.Spills
    merge: m.MapMerge
    segments: sh.Segments
    files: sh.ShuffleFiles
    disk: sh.DiskMerges
    eviction: r.Eviction
    steps: r.LaterSteps
    reduce: r.ReduceFlow


def evaluate(
    statistics: Mapping[str, float],
    costs: Mapping[str, float],
    config: Mapping[str, Any],
    cluster: Mapping[str, int],
    rules: str = "mr2",
) -> dict[str, Any]:
    """
    Every quantity of the model by name: bytes, records, files, and seconds.

    *rules* is ``paper`` for the published model, ``mr2`` for Hadoop 3's mechanics.  The answer
    holds the outputs that the rules and the job have (a map-only job has no reduce side), and
    `warnings`, a list of texts.  Absent fields take the defaults of the specification, absent costs
    are 0 with a warning.  ``ModelError`` (a ``ValueError``) names a field that is missing or
    outside its range.
    """
    job = read_job(statistics, config, cluster, rules)
    checked = read_costs(costs, job.config)
    try:
        flow = dataflow(job)
        answer = quantities(flow, job) | times(flow, job, checked)
    except (OverflowError, ValueError) as error:  # infinity or NaN that should become a count
        raise too_large() from error
    if not math.isfinite(answer["job_s"]):
        raise too_large()
    return answer | {"warnings": warnings_of(job, statistics, costs, config)}


def dataflow(job: Job) -> Flow | m.MapFlow:
    """Dataflow of the job's tasks; of a map-only job the map function's alone."""
    flow = m.map_flow(job)
    if job.config.num_reduces == 0:
        return flow
    spills = m.spills(flow, job)
    merge = m.map_merge(spills, job)
    segments = sh.segments(merge, job)
    files = sh.shuffle_files(segments, job)
    disk = sh.disk_merges(files, job)
    eviction = r.eviction(segments, files, disk, job)
    steps = r.later_steps(segments, files, disk, eviction, job)
    reduce = r.reduce_flow(segments, files, job)
    return Flow(flow, spills, merge, segments, files, disk, eviction, steps, reduce)


def quantities(flow: Flow | m.MapFlow, job: Job) -> dict[str, Any]:
    """Every quantity that is no time, by name."""
    waves = {"map_waves": _waves(job.config.num_maps, map_slots(job), job)}
    if isinstance(flow, m.MapFlow):
        written = flow.map_out_bytes * job.statistics.output_compression_ratio
        return {
            **vars(flow),
            "map_hdfs_bytes_read": job.config.split_bytes,
            "map_hdfs_bytes_written": written,
            **waves,
            "reduce_waves": 0,
        }
    waves["reduce_waves"] = _waves(job.config.num_reduces, reduce_slots(job), job)
    stages: dict[str, Any] = {}
    for stage in vars(flow).values():
        stages |= {k: v for k, v in vars(stage).items() if v is not None}
    return stages | map_counters(flow, job) | reduce_counters(flow, job) | waves


def map_counters(flow: Flow, job: Job) -> dict[str, float]:
    """What the counters of a map task should show, section 7 (W03)."""
    sp, merge, n = flow.spills, flow.merge, flow.spills.num_spills
    reads, merged = merge.intermediate_merge_spills, n > 1
    combine, again = job.config.use_combiner, merge.combine_in_final_merge
    return {
        "combine_in_records": combine
        * (sp.records_per_spill * n + again * sp.spill_file_records * n),
        "combine_out_records": combine
        * (sp.spill_file_records * n + again * merge.map_final_records),
        "map_local_bytes_read": merged * (reads + n) * sp.spill_file_bytes,
        "map_local_bytes_written": n * sp.spill_file_bytes
        + reads * sp.spill_file_bytes
        + merged * merge.map_final_bytes,
        "map_hdfs_bytes_read": job.config.split_bytes,
    }


def reduce_counters(flow: Flow, job: Job) -> dict[str, float]:
    """What the counters of a reduce task should show, section 7 (W03)."""
    steps, files = flow.steps, flow.files
    read2 = steps.step2_bytes if steps.step2_read_bytes is None else steps.step2_read_bytes
    ratio = job.statistics.output_compression_ratio
    return {
        "reduce_local_bytes_read": flow.disk.ondisk_merge_bytes
        + read2
        + steps.step3_bytes
        + steps.reduce_disk_input_bytes,
        "reduce_local_bytes_written": files.num_shuffle_files * files.shuffle_file_bytes
        + flow.disk.ondisk_merge_bytes
        + flow.eviction.step1_bytes
        + steps.step2_bytes
        + steps.step3_bytes,
        "reduce_hdfs_bytes_written": flow.reduce.reduce_out_bytes * ratio,
    }


def times(flow: Flow | m.MapFlow, job: Job, c: Costs) -> dict[str, float]:
    """Every time in seconds, by name; setup and cleanup under mr2 rules only (W04)."""
    if isinstance(flow, m.MapFlow):
        tasks = map_only_times(flow, job, c)
    else:
        tasks = map_times(flow, job, c) | reduce_times(flow, job, c)
    own = c.setup_cpu_s + c.cleanup_cpu_s if job.mr2 else 0.0
    for task in ("map_task_s", "reduce_task_s"):
        if task in tasks:
            tasks[task] += own
    if job.mr2:
        tasks |= {"setup_cpu_s": c.setup_cpu_s, "cleanup_cpu_s": c.cleanup_cpu_s}
    return tasks | job_times(tasks, job)


def map_only_times(flow: m.MapFlow, job: Job, c: Costs) -> dict[str, float]:
    """Phases of a map-only job's task, and the first form of Eq. (90)."""
    read = m.map_read_s(job.config.split_bytes, c)
    function = m.map_function_s(flow.map_in_records, c)
    write = m.map_write_s(flow.map_out_bytes, job.statistics.output_compression_ratio, c)
    return {
        "map_read_s": read,
        "map_function_s": function,
        "map_write_s": write,
        "map_task_s": read + function + write,
    }


def map_times(flow: Flow, job: Job, c: Costs) -> dict[str, float]:
    """Phases of a map task."""
    spill = m.spill_s(flow.spills, job, c)
    return map_phases(flow, job, c, spill, m.map_final_merge_s(flow.spills, flow.merge, job, c))


def map_phases(flow: Flow, job: Job, c: Costs, spill: float, last: float) -> dict[str, float]:
    """Eq. (36) and the second form of Eq. (90), given the seconds of spills and last merge."""
    read = m.map_read_s(job.config.split_bytes, c)
    function = m.map_function_s(flow.map.map_in_records, c)
    collect = m.collect_s(flow.map.map_out_records, c)
    passes = m.map_intermediate_merge_s(flow.spills, flow.merge, job, c)
    return {
        "map_read_s": read,
        "map_function_s": function,
        "collect_s": collect,
        "spill_s": spill,
        "map_intermediate_merge_s": passes,
        "map_final_merge_s": last,
        "map_merge_s": passes + last,  # (36)
        "map_task_s": read + function + collect + spill + (passes + last),
    }


def reduce_times(flow: Flow, job: Job, c: Costs) -> dict[str, float]:
    """Phases of a reduce task."""
    return reduce_phases(flow, job, c, sh.inmem_merge_s(flow.segments, flow.files, job, c))


def reduce_phases(flow: Flow, job: Job, c: Costs, inmem: float) -> dict[str, float]:
    """Eq. (82), and Eq. (91) with the write phase (W33), with the seconds of merges in memory."""
    ondisk = sh.ondisk_merge_s(flow.disk, job, c)
    shuffle = sh.shuffle_s(flow.segments, inmem, ondisk, c)
    step1 = r.step1_s(flow.eviction, job, c)
    step2 = r.step2_s(flow.steps, job, c)
    step3 = r.step3_s(flow.steps, job, c)
    merge = step1 + step2 + step3  # (82)
    function = r.reduce_function_s(
        flow.steps.reduce_disk_input_bytes, flow.reduce.reduce_in_records, c
    )
    ratio = job.statistics.output_compression_ratio
    write = r.reduce_write_s(flow.reduce.reduce_out_bytes, ratio, c)
    return {
        "inmem_merge_s": inmem,
        "ondisk_merge_s": ondisk,
        "shuffle_s": shuffle,
        "step1_s": step1,
        "step2_s": step2,
        "step3_s": step3,
        "reduce_merge_s": merge,
        "reduce_function_s": function,
        "reduce_write_s": write,
        "reduce_task_s": shuffle + merge + function + write,
    }


def job_times(tasks: Mapping[str, float], job: Job) -> dict[str, float]:
    """Map stage, reduce stage and job, Eqs. (92) to (94): the stages one after the other (W35)."""
    maps = _stage_s(job.config.num_maps, tasks["map_task_s"], map_slots(job), job)
    if job.config.num_reduces == 0:
        return {"maps_s": maps, "reduces_s": 0.0, "job_s": maps}
    reduces = _stage_s(job.config.num_reduces, tasks["reduce_task_s"], reduce_slots(job), job)
    return {"maps_s": maps, "reduces_s": reduces, "job_s": maps + reduces}


def map_slots(job: Job) -> int:
    """Map tasks at once in the cluster."""
    return job.cluster.num_nodes * job.cluster.map_slots_per_node


def reduce_slots(job: Job) -> int:
    """Reduce tasks at once in the cluster."""
    return job.cluster.num_nodes * job.cluster.reduce_slots_per_node


def _stage_s(tasks: int, task_s: float, slots: int, job: Job) -> float:
    """Eqs. (92) and (93): fractions of a wave as printed, whole waves under mr2 rules (W34)."""
    return math.ceil(tasks / slots) * task_s if job.mr2 else tasks * task_s / slots


def _waves(tasks: int, slots: int, job: Job) -> float:
    return math.ceil(tasks / slots) if job.mr2 else tasks / slots


def too_large() -> ModelError:
    """Error for inputs whose answer is infinite or no number."""
    return ModelError("the numbers are so large that the answer is not finite", where="what-if")
