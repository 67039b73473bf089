"""
The rest of a reduce task, Eqs. (65) to (89): merge in three steps, reduce, write.

Step 1 evicts segments from memory, step 2 brings the files on disk down to the merge factor,
step 3 merges what is left into the reduce function.
"""

from __future__ import annotations

import numpy as np

from harness.models.checks import Counts, Numbers, nan_if_infinite
from harness.models.merge import final_merge, inter_merge
from harness.models.whatif.inputs import Costs, Dataflow, Job, Quantities
from harness.models.whatif.map_task import rewrite_s
from harness.models.whatif.shuffle import smallest_merged_units

# 5.6  Merge


def segments_evicted(
    left: Counts, candidate_bytes: Numbers, allowed_bytes: Numbers, segment_bytes: Numbers
) -> Counts:
    """Segments that must leave memory, Eq. (68); never more than there are (W38)."""
    needed = np.ceil(nan_if_infinite((candidate_bytes - allowed_bytes) / segment_bytes))
    return np.where(candidate_bytes <= allowed_bytes, 0.0, np.minimum(left, needed))


def eviction_flow(dataflow: Dataflow, job: Job) -> Quantities:
    """
    Step 1, Eqs. (65) to (70): segments that leave memory before the reduce function.

    `reduce_buffer_percent` is a share of the heap under paper rules, of the shuffle buffer under
    mr2 rules (W26).  Nothing evicted makes no file (W27).
    """
    disk_files = dataflow.num_merged_files + dataflow.num_unmerged_files  # (65)
    memory = dataflow.shuffle_buffer_bytes if job.mr2 else job.config.reduce_heap_bytes
    allowed = job.config.reduce_buffer_percent * memory  # (66)
    left = dataflow.segments_left_in_memory
    candidates = left * dataflow.segment_bytes  # (67)
    evicted = segments_evicted(left, candidates, allowed, dataflow.segment_bytes)
    is_evicted = evicted > 0
    one_file = disk_files < job.config.merge_factor
    segments_per_file = np.where(one_file, evicted, is_evicted)
    file_bytes = segments_per_file * dataflow.segment_compressed_bytes
    file_records = segments_per_file * dataflow.segment_records
    return {
        "num_disk_files": disk_files,
        "max_retained_bytes": allowed,
        "retained_candidate_bytes": candidates,
        "segments_evicted": evicted,
        "segments_retained": left - evicted,  # (69)
        "files_from_memory": np.where(one_file, is_evicted, evicted),  # (70)
        "file_from_memory_bytes": file_bytes,
        "file_from_memory_records": file_records,
        "step1_bytes": one_file * file_bytes,
        "step1_records": one_file * file_records,
    }


def step1_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Step 1, Eq. (71) [s]."""
    return (
        dataflow.step1_records * costs.merge_cpu_s_per_record
        + dataflow.step1_bytes / job.ratio * costs.map_output_compress_s_per_byte
        + dataflow.step1_bytes * costs.local_write_s_per_byte
    )


def printed_steps(dataflow: Dataflow, job: Job) -> Quantities:
    """Eqs. (72) to (75), (77) to (80) and (87) as printed; 0 without files (W29)."""
    merge_factor = job.config.merge_factor
    from_memory = dataflow.files_from_memory
    disk_bytes = (
        dataflow.num_merged_files * dataflow.merged_file_bytes
        + dataflow.num_unmerged_files * dataflow.unmerged_file_bytes
        + from_memory * dataflow.file_from_memory_bytes
    )
    disk_records = (
        dataflow.num_merged_files * dataflow.merged_file_records
        + dataflow.num_unmerged_files * dataflow.unmerged_file_records
        + from_memory * dataflow.file_from_memory_records
    )
    step2_files = dataflow.num_disk_files + from_memory  # (72)
    step2_reads = (dataflow.num_disk_files > 0) * inter_merge(step2_files, merge_factor)  # (73)
    step2_share = step2_reads / np.maximum(1.0, step2_files)
    step3_files = dataflow.segments_retained + final_merge(step2_files, merge_factor)  # (77)
    step3_reads = inter_merge(step3_files, merge_factor)  # (78)
    step3_share = step3_reads / np.maximum(1.0, step3_files)
    return {
        "step2_files": step2_files,
        "step2_intermediate_reads": step2_reads,
        "step2_bytes": step2_share * disk_bytes,  # (74)
        "step2_records": step2_share * disk_records,  # (75)
        "step3_files": step3_files,
        "step3_intermediate_reads": step3_reads,
        "step3_bytes": step3_share * dataflow.shuffle_bytes,  # (79)
        "step3_records": step3_share * dataflow.shuffle_records,  # (80)
        "reduce_disk_input_bytes": disk_bytes,  # (87)
    }


def single_pass_steps(dataflow: Dataflow, job: Job) -> Quantities:
    """
    Hadoop 3: evicted segments join the first pass from memory (W28), step 3 only reads (W30).

    The shuffle leaves at most 2F - 2 files, so that the first pass brings them to F and is the
    only one.  It takes the files that came after the last merge, the smallest of the others, and
    the evicted segments.  With fewer than F files there is none, and step 1 made a file at most.
    Each file left on disk is read once by the reduce function, (87) (W32).
    """
    merge_factor = job.config.merge_factor
    on_disk = dataflow.num_disk_files
    one_pass = on_disk > merge_factor
    waits = on_disk >= merge_factor
    smallest = smallest_merged_units(dataflow.num_shuffle_merges, merge_factor)
    units = np.where(one_pass, on_disk - merge_factor + smallest, 0.0)
    waiting = np.where(waits, dataflow.segments_evicted, 0.0)
    joined = np.where(one_pass, waiting, 0.0)
    from_step1 = np.where(waits, 0.0, dataflow.files_from_memory)
    read_bytes = units * dataflow.shuffle_file_bytes
    read_records = units * dataflow.shuffle_file_records
    joined_bytes = joined * dataflow.segment_compressed_bytes
    all_bytes = dataflow.num_shuffle_files * dataflow.shuffle_file_bytes
    files_left = np.minimum(merge_factor, on_disk + from_step1)
    return {
        "step2_files": on_disk + dataflow.files_from_memory,  # (72)
        "step2_intermediate_reads": np.where(one_pass, on_disk - merge_factor + 1, 0.0),
        "step2_bytes": read_bytes + joined_bytes,
        "step2_records": read_records + joined * dataflow.segment_records,
        "step3_files": dataflow.segments_retained + (waiting - joined) + files_left,
        "step3_intermediate_reads": 0.0,
        "step3_bytes": 0.0,
        "step3_records": 0.0,
        "reduce_disk_input_bytes": all_bytes + dataflow.step1_bytes + joined_bytes,
        "step2_passes": one_pass,
        "step2_read_bytes": read_bytes,
    }


def step2_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Step 2, Eq. (76); under mr2 rules (76'): segments from memory are not read [s]."""
    read_bytes = dataflow.step2_read_bytes if job.mr2 else dataflow.step2_bytes
    return (
        read_bytes * (costs.local_read_s_per_byte + costs.map_output_decompress_s_per_byte)
        + dataflow.step2_records * costs.merge_cpu_s_per_record
        + dataflow.step2_bytes / job.ratio * costs.map_output_compress_s_per_byte
        + dataflow.step2_bytes * costs.local_write_s_per_byte
    )


def step3_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Step 3, Eq. (81) [s]."""
    return rewrite_s(dataflow.step3_bytes, dataflow.step3_records, job, costs)


# 5.7  Reduce and write


def reduce_input(dataflow: Dataflow, job: Job) -> Quantities:
    """Input of the reduce function, Eqs. (83) and (84)."""
    file_count = dataflow.num_shuffle_files
    left = dataflow.segments_left_in_memory
    return {
        "reduce_in_bytes": file_count * dataflow.shuffle_file_bytes / job.ratio
        + left * dataflow.segment_compressed_bytes / job.ratio,
        "reduce_in_records": file_count * dataflow.shuffle_file_records
        + left * dataflow.segment_records,
    }


def reduce_output(dataflow: Dataflow, job: Job) -> Quantities:
    """Eqs. (85) and (86), and the groups that Table 1 lists without an equation (W03)."""
    selectivity = job.statistics.reduce_records_selectivity
    return {
        "reduce_in_groups": dataflow.reduce_in_records / job.statistics.records_per_reduce_group,
        "reduce_out_bytes": dataflow.reduce_in_bytes
        * job.statistics.reduce_bytes_selectivity,  # (85)
        "reduce_out_records": dataflow.reduce_in_records * selectivity,  # (86)
    }


def reduce_function_s(dataflow: Dataflow, costs: Costs) -> Numbers:
    """Reduce phase, Eq. (88) [s]: what is on disk is read, all records are reduced."""
    return (
        dataflow.reduce_disk_input_bytes * costs.local_read_s_per_byte
        + dataflow.reduce_disk_input_bytes * costs.map_output_decompress_s_per_byte
        + dataflow.reduce_in_records * costs.reduce_cpu_s_per_record
    )
