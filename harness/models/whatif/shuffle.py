"""
The shuffle of a reduce task, Eqs. (37) to (64): segments, shuffle files, merges meanwhile.

A *segment* is what one map leaves for one reduce.  Segments go to memory, where several are merged
into one *shuffle file*, or straight to disk; too many files on disk are merged while the shuffle
goes on.
"""

from __future__ import annotations

import numpy as np

from harness.models.checks import Counts, Numbers, nan_if_infinite
from harness.models.whatif.inputs import Costs, Dataflow, Job, Quantities
from harness.models.whatif.map_task import combined_again, rewrite_s


def segment_flow(dataflow: Dataflow, job: Job) -> Quantities:
    """
    Eqs. (37) to (43), partitions being equal (W37).

    The limit is compared with `<` under paper rules, with `<=` under mr2 rules (W18).
    """
    config = job.config
    compressed = dataflow.map_final_bytes / config.num_reduces  # (37)
    size = compressed / job.ratio  # (38)
    records = dataflow.map_final_records / config.num_reduces  # (39)
    buffer = config.shuffle_buffer_percent * config.reduce_heap_bytes  # (42)
    limit = config.shuffle_segment_limit_percent * buffer
    return {
        "segment_compressed_bytes": compressed,
        "segment_bytes": size,
        "segment_records": records,
        "shuffle_bytes": config.num_maps * compressed,  # (40)
        "shuffle_records": config.num_maps * records,  # (41)
        "shuffle_buffer_bytes": buffer,
        "merge_threshold_bytes": config.shuffle_merge_percent * buffer,  # (43)
        "segments_go_to_memory": size <= limit if job.mr2 else size < limit,
    }


def segments_per_shuffle_file(dataflow: Dataflow, job: Job) -> Counts:
    """
    Segments that are merged in memory into one file, Eqs. (44) and (45); at least 1 (W19).

    Their number is limited by `inmem_merge_segments` under paper rules only (W20).
    """
    fill = nan_if_infinite(dataflow.merge_threshold_bytes / dataflow.segment_bytes)  # (44)
    fits = np.ceil(fill) * dataflow.segment_bytes <= dataflow.shuffle_buffer_bytes
    segment_count: Counts = np.where(fits, np.ceil(fill), np.floor(fill))
    if not job.mr2:
        limit = job.config.inmem_merge_segments
        segment_count = np.where(limit > 0, np.minimum(segment_count, limit), segment_count)
    return np.maximum(1.0, segment_count)


def file_flow(dataflow: Dataflow, job: Job) -> Quantities:
    """
    Eqs. (44) to (49) for segments in memory, (50) to (54) for segments on disk.

    A segment on disk is a file of one segment that no combiner sees, so that one form serves both.
    """
    has_output = dataflow.segment_bytes != 0
    merged = has_output & dataflow.segments_go_to_memory
    maps = job.config.num_maps
    file_segments = np.where(merged, segments_per_shuffle_file(dataflow, job), 1.0)
    bytes_share, records_share = combined_again(file_segments, job)
    bytes_selectivity = np.where(merged, bytes_share, 1.0)
    records_selectivity = np.where(merged, records_share, 1.0)
    file_bytes = file_segments * dataflow.segment_compressed_bytes * bytes_selectivity  # (46), (51)
    file_records = file_segments * dataflow.segment_records * records_selectivity  # (47), (52)
    file_count = np.where(has_output, np.floor(maps / file_segments), 0.0)  # (48), (53)
    left = np.where(has_output, maps - file_count * file_segments, 0.0)  # (49), (54)
    return {
        "segments_per_shuffle_file": file_segments,
        "shuffle_file_bytes": np.where(has_output, file_bytes, 0.0),
        "shuffle_file_records": np.where(has_output, file_records, 0.0),
        "num_shuffle_files": file_count,
        "segments_left_in_memory": left,
    }


def printed_merges(dataflow: Dataflow, job: Job) -> Quantities:
    """Eqs. (55) to (61) as printed: a merged file is never merged again."""
    file_count = dataflow.num_shuffle_files
    merge_factor = job.config.merge_factor
    beyond_first = np.floor((file_count - 2 * merge_factor + 1) / merge_factor)
    merge_count = np.maximum(0.0, beyond_first + 1)  # (55)
    merged_bytes = merge_factor * dataflow.shuffle_file_bytes  # (57)
    merged_records = merge_factor * dataflow.shuffle_file_records  # (58)
    return {
        "num_shuffle_merges": merge_count,
        "num_merged_files": merge_count,  # (56)
        "num_unmerged_files": file_count - merge_factor * merge_count,  # (59)
        "ondisk_merge_bytes": merge_count * merged_bytes,
        "ondisk_merge_records": merge_count * merged_records,
        "merged_file_bytes": merged_bytes,
        "merged_file_records": merged_records,
        "unmerged_file_bytes": dataflow.shuffle_file_bytes,  # (60)
        "unmerged_file_records": dataflow.shuffle_file_records,  # (61)
    }


def repeated_merges(dataflow: Dataflow, job: Job) -> Quantities:
    """
    Hadoop 3: at 2F - 1 files the F smallest are merged, whatever they are (W23, W24).

    That needs no simulation.  Start with F files of one unit, which is a shuffle file.  Whenever
    F - 1 more have come, they are the smallest but one, and are merged with the smallest of the F:
    which grows by F - 1 units and becomes the largest.  So the F files grow in turn, one after the
    other, and after r rounds and i merges F - i files have 1 + r (F - 1) units, and i files F - 1
    more.
    """
    arrivals = dataflow.num_shuffle_files
    merge_factor = job.config.merge_factor
    merge_count = np.maximum(0.0, np.floor((arrivals - merge_factor) / (merge_factor - 1)))
    rounds = np.floor(merge_count / merge_factor)
    larger = merge_count - rounds * merge_factor
    grown = (rounds + 1) * (merge_factor * rounds / 2 + larger)  # in steps of F - 1 units
    merged_units = merge_count + (merge_factor - 1) * grown
    merged_files = np.where(rounds > 0, merge_factor, larger)
    return {
        "num_shuffle_merges": merge_count,
        "num_merged_files": merged_files,
        "num_unmerged_files": arrivals - merge_count * (merge_factor - 1) - merged_files,
        "ondisk_merge_bytes": merged_units * dataflow.shuffle_file_bytes,
        "ondisk_merge_records": merged_units * dataflow.shuffle_file_records,
    }


def smallest_merged_units(merge_count: Counts, merge_factor: Counts) -> Counts:
    """Units of the smallest of the F files that took part in `repeated_merges`, or could have."""
    return 1 + np.floor(merge_count / merge_factor) * (merge_factor - 1)


def disk_file_units(arrivals: int, merge_factor: int) -> list[int]:
    """
    Files that `repeated_merges` leave on disk, ascending, in units of a shuffle file.

    >>> disk_file_units(38, 10)
    [1, 1, 1, 1, 1, 1, 1, 1, 10, 10, 10]
    """
    if arrivals < merge_factor:
        return [1] * arrivals
    merge_count, waiting = divmod(arrivals - merge_factor, merge_factor - 1)
    rounds, larger = divmod(merge_count, merge_factor)
    units = 1 + rounds * (merge_factor - 1)
    return [1] * waiting + [units] * (merge_factor - larger) + [units + merge_factor - 1] * larger


def inmem_merge_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """
    In-memory merges and the write of their files, Eq. (62) [s].

    Paper rules charge merging and combining per record after the combiner, mr2 rules before it
    (W25).  Segments that go straight to disk still pay the write.
    """
    file_count = dataflow.num_shuffle_files
    file_bytes = file_count * dataflow.shuffle_file_bytes
    written = file_bytes * costs.local_write_s_per_byte
    merged = dataflow.segments_per_shuffle_file * dataflow.segment_records
    records = merged if job.mr2 else dataflow.shuffle_file_records
    seconds = (
        dataflow.shuffle_bytes * costs.map_output_decompress_s_per_byte
        + file_count * records * costs.merge_cpu_s_per_record
        + file_count * records * costs.combine_cpu_s_per_record
        + file_bytes / job.ratio * costs.map_output_compress_s_per_byte
        + written
    )
    return np.where(dataflow.segments_go_to_memory, seconds, written)


def ondisk_merge_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Merges on disk during the shuffle, Eq. (63) [s]."""
    return rewrite_s(dataflow.ondisk_merge_bytes, dataflow.ondisk_merge_records, job, costs)


def shuffle_s(dataflow: Dataflow, inmem_s: Numbers, ondisk_s: Numbers, costs: Costs) -> Numbers:
    """Shuffle phase, Eq. (64) [s]."""
    return dataflow.shuffle_bytes * costs.network_s_per_byte + inmem_s + ondisk_s
