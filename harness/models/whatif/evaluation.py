"""
A whole evaluation: tasks and job, Eqs. (90) to (94), and the counters of section 7.

`evaluate` answers one configuration, `evaluate_grid` very many; for the equations one configuration
is an array of length 1.  The dataflow does not depend on the costs, and every time is linear in
them.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.models.checks import LARGEST_COUNT, Counts, Numbers, not_finite_error, range_error
from harness.models.whatif import map_task as m
from harness.models.whatif import reduce_task as r
from harness.models.whatif import shuffle as sh
from harness.models.whatif.inputs import (
    Costs,
    Dataflow,
    Given,
    Inputs,
    Job,
    Quantities,
    Rows,
    in_grid,
    input_warnings,
    read_inputs,
)

# Configurations at once: some fifty arrays of 64 KiB stay in the processor's cache together.
BLOCK = 8192

_COUNTS = frozenset(
    {
        "num_spills", "max_serialization_records", "max_accounting_records", "max_buffer_records",
        "first_pass_spills", "intermediate_merge_spills", "merge_passes", "final_merge_spills",
        "segments_per_shuffle_file", "num_shuffle_files", "segments_left_in_memory",
        "num_shuffle_merges", "num_merged_files", "num_unmerged_files", "num_disk_files",
        "segments_evicted", "segments_retained", "files_from_memory", "step2_files",
        "step2_intermediate_reads", "step2_passes", "step3_files", "step3_intermediate_reads",
    }
)  # fmt: skip


def evaluate(
    statistics: Given, costs: Given, config: Given, cluster: Given, rules: str = "mr2"
) -> dict[str, Any]:
    """
    Every quantity of the model by name, of one configuration: bytes, records, files, and seconds.

    But in the printed form a cost may have a value for the tasks of one side alone, by its name and
    ``_map`` or ``_reduce`` (W40).  *rules* is ``paper`` for the printed form, ``engine`` for the
    mechanics of its author's engine (W04, W10, W34, W40), ``mr2`` for those of Hadoop 3.  The
    answer holds the outputs that the rules and the job have (a map-only job has no reduce side),
    and `warnings`, a list of texts.  Absent fields take the defaults of the specification, absent
    costs are 0 with a warning.
    """
    inputs = read_inputs(statistics, costs, config, cluster, rules)
    answer = python_numbers(evaluate_rows(inputs))
    if rules == "mr2" and "num_shuffle_files" in answer:
        factor = int(inputs.config["merge_factor"].item())
        answer["disk_file_units"] = sh.disk_file_units(answer["num_shuffle_files"], factor)
    return answer | {"warnings": input_warnings(inputs, statistics, costs, config)}


def evaluate_grid(
    statistics: Given,
    costs: Given,
    config: Given,
    cluster: Given,
    rules: str = "mr2",
    *,
    quantities: Iterable[str] = ("job_s",),
) -> dict[str, NDArray[np.float64]]:
    """
    *quantities* of very many configurations, by name: arrays with one value per configuration.

    Each field of the four mappings is one value or an array of n values; with no array n is 1.  The
    values are those of `evaluate` for each configuration (counts and flags as floats), NaN where
    that answer does not have the quantity, as the reduce side of a map-only job.  There are no
    warnings.

    ``ModelError`` as from `evaluate`, with the number of a configuration that is refused.
    """
    inputs = read_inputs(statistics, costs, config, cluster, rules)
    answer = {name: np.full(inputs.size, np.nan) for name in quantities}
    for rows in _blocks(inputs):
        values = evaluate_rows(inputs, rows, answer.keys())
        for name in answer.keys() & values.keys():
            answer[name][rows] = values[name]
    return answer


def _blocks(inputs: Inputs) -> Iterator[Rows]:
    """Rows of one block of configurations after the other, those of map-only jobs apart."""
    reduces = inputs.config["num_reduces"]
    for start in range(0, inputs.size, BLOCK):
        block = slice(start, start + BLOCK)
        with_reduces = reduces[block] > 0 if reduces.size > 1 else reduces > 0
        if with_reduces.all() or not with_reduces.any():
            yield block
        else:
            yield start + np.flatnonzero(with_reduces)
            yield start + np.flatnonzero(~with_reduces)


def evaluate_rows(
    inputs: Inputs, rows: Rows = slice(None), names: Iterable[str] | None = None
) -> Quantities:
    """
    Quantities of some configurations, all map-only or none; the times alone where *names* are.

    ``ModelError`` for the first configuration whose job time is not finite, or whose spills are
    too many for floats to count.
    """
    # 0/0 where a case does not apply; what is left of it makes the job's time NaN.
    with np.errstate(all="ignore"):
        job, map_costs, reduce_costs = inputs.select(rows)
        dataflow = m.map_flow(job)
        spills = np.zeros(1)
        if np.any(job.config.num_reduces):
            for stage in (
                m.spill_flow,
                m.map_merge,
                sh.segment_flow,
                sh.file_flow,
                sh.repeated_merges if job.mr2 else sh.printed_merges,
                r.eviction_flow,
                r.single_pass_steps if job.mr2 else r.printed_steps,
                r.reduce_input,
                r.reduce_output,
            ):
                vars(dataflow).update(stage(dataflow, job))
            spills = dataflow.num_spills
            tasks = map_times(dataflow, job, map_costs) | reduce_times(dataflow, job, reduce_costs)
            answer = job_times(tasks, job, map_costs, reduce_costs)
            if names is None or not answer.keys() >= set(names):
                counters = map_counters(dataflow, job) | reduce_counters(dataflow, job)
                answer = vars(dataflow) | counters | answer
        else:
            tasks = map_only_times(dataflow, job, map_costs)
            answer = job_times(tasks, job, map_costs, reduce_costs)
            ratio = job.statistics.output_compression_ratio
            answer |= vars(dataflow) | {
                "map_hdfs_bytes_read": job.config.split_bytes,
                "map_hdfs_bytes_written": dataflow.map_out_bytes * ratio,
            }

    def place(refused: NDArray[np.bool_]) -> str:
        index = np.arange(inputs.size)[rows][refused.argmax()]
        return in_grid("what-if", int(index), inputs.size)

    if (refused := ~np.isfinite(answer["job_s"])).any():
        raise not_finite_error(place(refused))
    if (refused := spills > LARGEST_COUNT).any():
        value = float(spills[refused][0])
        raise range_error("num_spills", value, f"at most {LARGEST_COUNT}", place(refused))
    return answer


def python_numbers(values: Mapping[str, Numbers]) -> dict[str, Any]:
    """*values* of one configuration as Python's numbers, without those that are NaN."""
    numbers = {}
    for name, value in values.items():
        number = np.asarray(value).item()
        if not math.isnan(number):
            is_whole = name in _COUNTS and math.isfinite(number)
            numbers[name] = int(number) if is_whole else number
    return numbers


# Counters


def map_counters(dataflow: Dataflow, job: Job) -> Quantities:
    """What the counters of a map task should show, section 7 (W03)."""
    uses_combiner = job.config.use_combiner
    combines_again = dataflow.combine_in_final_merge
    file_records = dataflow.num_spills * dataflow.spill_file_records
    is_merged = dataflow.num_spills > 1
    files = dataflow.intermediate_merge_spills + dataflow.num_spills
    return {
        "combine_in_records": uses_combiner
        * (dataflow.num_spills * dataflow.records_per_spill + combines_again * file_records),
        "combine_out_records": uses_combiner
        * (file_records + combines_again * dataflow.map_final_records),
        "map_local_bytes_read": is_merged * files * dataflow.spill_file_bytes,
        "map_local_bytes_written": files * dataflow.spill_file_bytes
        + is_merged * dataflow.map_final_bytes,
        "map_hdfs_bytes_read": job.config.split_bytes,
    }


def reduce_counters(dataflow: Dataflow, job: Job) -> Quantities:
    """What the counters of a reduce task should show, section 7 (W03)."""
    step2_read = dataflow.step2_read_bytes if job.mr2 else dataflow.step2_bytes
    rewritten = dataflow.ondisk_merge_bytes + dataflow.step3_bytes
    written = dataflow.num_shuffle_files * dataflow.shuffle_file_bytes + dataflow.step1_bytes
    ratio = job.statistics.output_compression_ratio
    return {
        "reduce_local_bytes_read": rewritten + step2_read + dataflow.reduce_disk_input_bytes,
        "reduce_local_bytes_written": rewritten + written + dataflow.step2_bytes,
        "reduce_hdfs_bytes_written": dataflow.reduce_out_bytes * ratio,
    }


# 5.8  Tasks and job


def map_only_times(dataflow: Dataflow, job: Job, costs: Costs) -> Quantities:
    """Phases of a map-only job's task, and the first form of Eq. (90) [s]."""
    ratio = job.statistics.output_compression_ratio
    phases = {
        "map_read_s": m.map_read_s(job.config.split_bytes, costs),
        "map_function_s": m.map_function_s(dataflow.map_in_records, costs),
        "map_write_s": m.write_s(dataflow.map_out_bytes, ratio, costs),
    }
    return phases | {"map_task_s": sum(phases.values())}  # (90)


def map_times(dataflow: Dataflow, job: Job, costs: Costs) -> Quantities:
    """Phases of a map task, Eq. (36), and the second form of Eq. (90) [s]."""
    passes = m.map_intermediate_merge_s(dataflow, job, costs)
    final = m.map_final_merge_s(dataflow, job, costs)
    phases = {
        "map_read_s": m.map_read_s(job.config.split_bytes, costs),
        "map_function_s": m.map_function_s(dataflow.map_in_records, costs),
        "collect_s": m.collect_s(dataflow.map_out_records, costs),
        "spill_s": m.spill_s(dataflow, job, costs),
        "map_merge_s": passes + final,  # (36)
    }
    return phases | {
        "map_intermediate_merge_s": passes,
        "map_final_merge_s": final,
        "map_task_s": sum(phases.values()),  # (90)
    }


def reduce_times(dataflow: Dataflow, job: Job, costs: Costs) -> Quantities:
    """Phases of a reduce task, Eq. (82), and Eq. (91) with the write phase (W33) [s]."""
    inmem = sh.inmem_merge_s(dataflow, job, costs)
    ondisk = sh.ondisk_merge_s(dataflow, job, costs)
    steps = {
        "step1_s": r.step1_s(dataflow, job, costs),
        "step2_s": r.step2_s(dataflow, job, costs),
        "step3_s": r.step3_s(dataflow, job, costs),
    }
    ratio = job.statistics.output_compression_ratio
    phases = {
        "shuffle_s": sh.shuffle_s(dataflow, inmem, ondisk, costs),
        "reduce_merge_s": sum(steps.values()),  # (82)
        "reduce_function_s": r.reduce_function_s(dataflow, costs),
        "reduce_write_s": m.write_s(dataflow.reduce_out_bytes, ratio, costs),
    }
    merges = {"inmem_merge_s": inmem, "ondisk_merge_s": ondisk}
    return merges | steps | phases | {"reduce_task_s": sum(phases.values())}  # (91)


def wave_count(tasks: Counts, slots: Counts, job: Job) -> Numbers:
    """Waves of Eqs. (92) and (93): fractions as printed, otherwise whole ones (W34)."""
    return tasks / slots if job.printed else np.ceil(tasks / slots)


def job_times(
    tasks: Mapping[str, Numbers], job: Job, map_costs: Costs, reduce_costs: Costs
) -> Quantities:
    """
    The times of *tasks*, of map stage, reduce stage and job, Eqs. (92) to (94) [s]; the waves.

    Stages run one after the other (W35).  But in the printed form tasks have setup and cleanup
    (W04); those of maps are in the answer.
    """
    times = dict(tasks)
    config = job.config
    cluster = job.cluster
    if not job.printed:
        for task, costs in (("map_task_s", map_costs), ("reduce_task_s", reduce_costs)):
            if task in times:
                times[task] = times[task] + (costs.setup_cpu_s + costs.cleanup_cpu_s)
        times |= {"setup_cpu_s": map_costs.setup_cpu_s, "cleanup_cpu_s": map_costs.cleanup_cpu_s}
    map_waves = wave_count(config.num_maps, cluster.num_nodes * cluster.map_slots_per_node, job)
    maps_s = map_waves * times["map_task_s"]  # (92)
    reduce_waves = reduces_s = 0.0
    if "reduce_task_s" in times:
        slots = cluster.num_nodes * cluster.reduce_slots_per_node
        reduce_waves = wave_count(config.num_reduces, slots, job)
        reduces_s = reduce_waves * times["reduce_task_s"]  # (93)
    return times | {
        "map_waves": map_waves,
        "reduce_waves": reduce_waves,
        "maps_s": maps_s,
        "reduces_s": reduces_s,
        "job_s": maps_s + reduces_s,  # (94)
    }
