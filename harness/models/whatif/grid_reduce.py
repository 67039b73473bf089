"""
Shuffle and merges of the reduce task over a grid: `shuffle` and `reduce_task` on columns.

As in `grid_map` only equations with a case or a count are here.  Under mr2 rules the scalar form
simulates the merges on disk; here the simulation is solved (`merges_on_disk`, `simulated_steps`).
"""

from __future__ import annotations

import numpy as np

from harness.models.columns import Column, choose, finite
from harness.models.merge_grid import final_merge, inter_merge
from harness.models.whatif.inputs import Costs, Job
from harness.models.whatif.reduce_task import Eviction, LaterSteps
from harness.models.whatif.shuffle import DiskMerges, Segments, ShuffleFiles

# 5.5  Shuffle


def shuffle_files(seg: Segments, job: Job) -> ShuffleFiles:
    """
    Eqs. (44) to (49) for segments in memory, (50) to (54) for segments on disk.

    A segment on disk is a file of one segment that no combiner sees, so that one form serves both.
    """
    some = seg.segment_bytes != 0
    merged, maps = some & seg.segments_go_to_memory, job.config.num_maps
    s = choose(merged, segments_per_shuffle_file(seg, job), 1.0)
    bytes_sel = choose(merged, job.statistics.combine_bytes_selectivity, 1.0)
    records_sel = choose(merged, job.statistics.combine_records_selectivity, 1.0)
    files = choose(some, np.floor(maps / s), 0.0)  # (48), (53)
    return ShuffleFiles(
        s,
        choose(some, s * seg.segment_compressed_bytes * bytes_sel, 0.0),  # (46), (51)
        choose(some, s * seg.segment_records * records_sel, 0.0),  # (47), (52)
        files,
        choose(some, maps - files * s, 0.0),  # (49), (54)
    )


def segments_per_shuffle_file(seg: Segments, job: Job) -> Column:
    """
    Segments that are merged in memory into one file, Eqs. (44) and (45); at least 1 (W19).

    Their number is limited by `inmem_merge_segments` under paper rules only (W20).
    """
    x = finite(seg.merge_threshold_bytes / seg.segment_bytes)
    fits = np.ceil(x) * seg.segment_bytes <= seg.shuffle_buffer_bytes
    s = choose(fits, np.ceil(x), np.floor(x))
    if not job.mr2:
        limit: Column = job.config.inmem_merge_segments
        s = choose(limit > 0, np.minimum(s, limit), s)
    return np.maximum(1.0, s)


def disk_merges(files: ShuffleFiles, job: Job) -> DiskMerges:
    """Merges on disk during the shuffle, under the job's rules (W23, W24)."""
    factor = job.config.merge_factor
    return simulated_merges(files, factor) if job.mr2 else printed_merges(files, factor)


def printed_merges(files: ShuffleFiles, factor: Column) -> DiskMerges:
    """Eqs. (55) to (61) as printed: a merged file is never merged again."""
    q = files.num_shuffle_files
    merges = np.maximum(0.0, np.floor((q - 2 * factor + 1) / factor) + 1)  # (55)
    merged_bytes = factor * files.shuffle_file_bytes  # (57)
    merged_records = factor * files.shuffle_file_records  # (58)
    return DiskMerges(
        num_shuffle_merges=merges,
        num_merged_files=merges,  # (56)
        num_unmerged_files=q - factor * merges,  # (59)
        ondisk_merge_bytes=merges * merged_bytes,
        ondisk_merge_records=merges * merged_records,
        merged_file_bytes=merged_bytes,
        merged_file_records=merged_records,
        unmerged_file_bytes=files.shuffle_file_bytes,  # (60)
        unmerged_file_records=files.shuffle_file_records,  # (61)
    )


def simulated_merges(files: ShuffleFiles, factor: Column) -> DiskMerges:
    """Hadoop 3: at 2F - 1 files the F smallest are merged, whatever they are."""
    merges, merged_units, merged_files = merges_on_disk(files.num_shuffle_files, factor)
    on_disk = files.num_shuffle_files - merges * (factor - 1)
    return DiskMerges(
        num_shuffle_merges=merges,
        num_merged_files=merged_files,
        num_unmerged_files=on_disk - merged_files,
        ondisk_merge_bytes=merged_units * files.shuffle_file_bytes,
        ondisk_merge_records=merged_units * files.shuffle_file_records,
    )


def merges_on_disk(arrivals: Column, factor: Column) -> tuple[Column, Column, Column]:
    """
    Merges, units merged, and files of more than one unit left, as `shuffle.merge_on_disk` ends.

    Begin with F files of one unit.  Whenever F - 1 more have come, they are the smallest but one,
    and are merged with the smallest of the F: which grows by F - 1 units and becomes the largest.
    So the F files grow in turn, one after the other, and after r rounds and i merges F - i files
    have 1 + r (F - 1) units, and i files F - 1 more.
    """
    merges = np.maximum(0.0, np.floor((arrivals - factor) / (factor - 1)))
    rounds = np.floor(merges / factor)
    more = merges - rounds * factor
    units = merges + (factor - 1) * (rounds + 1) * (factor * rounds / 2 + more)
    return merges, units, choose(rounds > 0, factor, more)


def smallest_merged(merges: Column, factor: Column) -> Column:
    """Units of the smallest of the F files that took part in merges, or waited for one."""
    return 1 + np.floor(merges / factor) * (factor - 1)


def inmem_merge_s(seg: Segments, files: ShuffleFiles, job: Job, c: Costs) -> Column:
    """
    In-memory merges and the write of their files, Eq. (62) [s].

    Paper rules charge merging and combining per record after the combiner, mr2 rules before it
    (W25).  Segments that go straight to disk still pay the write.
    """
    q = files.num_shuffle_files
    written = q * files.shuffle_file_bytes * c.local_write_s_per_byte
    merged = files.segments_per_shuffle_file * seg.segment_records
    records = merged if job.mr2 else files.shuffle_file_records
    seconds = (
        seg.shuffle_bytes * c.map_output_decompress_s_per_byte
        + q * records * c.merge_cpu_s_per_record
        + q * records * c.combine_cpu_s_per_record
        + q * files.shuffle_file_bytes / job.ratio * c.map_output_compress_s_per_byte
        + written
    )
    return choose(seg.segments_go_to_memory, seconds, written)


# 5.6  Merge


def eviction(seg: Segments, files: ShuffleFiles, merges: DiskMerges, job: Job) -> Eviction:
    """
    Eqs. (65) to (70).

    `reduce_buffer_percent` is a share of the heap under paper rules, of the shuffle buffer under
    mr2 rules (W26).  Nothing evicted makes no file (W27).
    """
    disk_files = merges.num_merged_files + merges.num_unmerged_files  # (65)
    memory = seg.shuffle_buffer_bytes if job.mr2 else job.config.reduce_heap_bytes
    allowed = job.config.reduce_buffer_percent * memory  # (66)
    left = files.segments_left_in_memory
    candidates = left * seg.segment_bytes  # (67)
    evicted = segments_evicted(left, candidates, allowed, seg.segment_bytes)
    some, one_file = evicted > 0, disk_files < job.config.merge_factor
    of_one = choose(one_file, evicted, some)  # segments of one file
    file = of_one * seg.segment_compressed_bytes, of_one * seg.segment_records
    made = choose(one_file, some, evicted)
    step1 = one_file * file[0], one_file * file[1]
    return Eviction(
        disk_files, allowed, candidates, evicted, left - evicted, made, *file, *step1
    )  # fmt: skip


def segments_evicted(
    left: Column, candidates: Column, allowed: Column, segment_bytes: Column
) -> Column:
    """Segments that must leave memory, Eq. (68); never more than there are (W38)."""
    needed = np.ceil(finite((candidates - allowed) / segment_bytes))
    return choose(candidates <= allowed, 0.0, np.minimum(left, needed))


def later_steps(
    seg: Segments, files: ShuffleFiles, merges: DiskMerges, ev: Eviction, job: Job
) -> LaterSteps:
    """Steps 2 and 3 under the job's rules."""
    if job.mr2:
        return simulated_steps(seg, files, merges, ev, job)
    return printed_steps(seg, merges, ev, job)


def printed_steps(seg: Segments, merges: DiskMerges, ev: Eviction, job: Job) -> LaterSteps:
    """Eqs. (72) to (75), (77) to (80) and (87) as printed; 0 without files (W29)."""
    factor = job.config.merge_factor
    size, records = _on_disk(merges, ev)
    files2 = ev.num_disk_files + ev.files_from_memory  # (72)
    reads2 = (ev.num_disk_files > 0) * inter_merge(files2, factor)  # (73)
    again2 = reads2 / np.maximum(1.0, files2)
    files3 = ev.segments_retained + final_merge(files2, factor)  # (77)
    reads3 = inter_merge(files3, factor)  # (78)
    again3 = reads3 / np.maximum(1.0, files3)
    return LaterSteps(
        step2_files=files2,
        step2_intermediate_reads=reads2,
        step2_bytes=again2 * size,  # (74)
        step2_records=again2 * records,  # (75)
        step3_files=files3,
        step3_intermediate_reads=reads3,
        step3_bytes=again3 * seg.shuffle_bytes,  # (79)
        step3_records=again3 * seg.shuffle_records,  # (80)
        reduce_disk_input_bytes=size,  # (87)
    )


def _on_disk(merges: DiskMerges, ev: Eviction) -> tuple[Column, Column]:
    """Bytes and records of all disk files and of the files from memory."""
    merged, unmerged = merges.num_merged_files, merges.num_unmerged_files
    sizes: Column = merges  # all sizes are there under paper rules
    return (
        merged * sizes.merged_file_bytes
        + unmerged * sizes.unmerged_file_bytes
        + ev.files_from_memory * ev.file_from_memory_bytes,
        merged * sizes.merged_file_records
        + unmerged * sizes.unmerged_file_records
        + ev.files_from_memory * ev.file_from_memory_records,
    )


def simulated_steps(
    seg: Segments, files: ShuffleFiles, merges: DiskMerges, ev: Eviction, job: Job
) -> LaterSteps:
    """
    Hadoop 3: evicted segments join the first pass from memory (W28), step 3 only reads (W30).

    The shuffle leaves at most 2F - 2 files, so that the first pass brings them to F and is the
    only one.  It takes the files that came after the last merge, the smallest of the others, and
    what lies in memory.  With fewer than F files there is none, and step 1 made a file at most.
    """
    factor, n, q = job.config.merge_factor, ev.num_disk_files, files.num_shuffle_files
    one_pass = n > factor
    taken = choose(one_pass, n - factor + 1, 0.0)
    units = choose(one_pass, n - factor + smallest_merged(merges.num_shuffle_merges, factor), 0.0)
    waiting = choose(n >= factor, ev.segments_evicted, 0.0)
    joined = choose(one_pass, waiting, 0.0)
    from_step1 = choose(n >= factor, 0.0, ev.files_from_memory)
    read, added = units * files.shuffle_file_bytes, joined * seg.segment_compressed_bytes
    return LaterSteps(
        step2_files=n + ev.files_from_memory,  # (72)
        step2_intermediate_reads=taken,
        step2_bytes=read + added,
        step2_records=units * files.shuffle_file_records + joined * seg.segment_records,
        step3_files=ev.segments_retained + (waiting - joined) + np.minimum(factor, n + from_step1),
        step3_intermediate_reads=0,
        step3_bytes=0.0,
        step3_records=0.0,
        reduce_disk_input_bytes=q * files.shuffle_file_bytes + ev.step1_bytes + added,
        step2_passes=one_pass,
        step2_read_bytes=read,
    )
