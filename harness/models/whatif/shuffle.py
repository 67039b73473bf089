"""
The shuffle of a reduce task, Eqs. (37) to (64): segments, shuffle files, merges meanwhile.

A *segment* is what one map leaves for one reduce.  Segments go to memory, where several are merged
into one *shuffle file*, or straight to disk; too many files on disk are merged while the shuffle
goes on.
"""

from __future__ import annotations

import math

from bisect import insort
from dataclasses import dataclass

from harness.models.whatif.inputs import Config, Costs, Job
from harness.models.whatif.map_task import MapMerge


@dataclass(frozen=True)
class Segments:
    """Segments of one reduce task and the buffer that takes them, Eqs. (37) to (43)."""

    segment_compressed_bytes: float
    segment_bytes: float
    segment_records: float
    shuffle_bytes: float
    shuffle_records: float
    shuffle_buffer_bytes: float
    merge_threshold_bytes: float
    segments_go_to_memory: bool


@dataclass(frozen=True)
class ShuffleFiles:
    """Shuffle files, and segments that stay in memory, Eqs. (44) to (54)."""

    segments_per_shuffle_file: int
    shuffle_file_bytes: float
    shuffle_file_records: float
    num_shuffle_files: int
    segments_left_in_memory: int


@dataclass(frozen=True)
class DiskMerges:
    """
    Merges on disk during the shuffle, Eqs. (55) to (61), and the files that they leave.

    Sizes of merged and unmerged files exist under paper rules, *disk_file_units* (ascending, in
    shuffle files) under mr2 rules; the others are `None`.
    """

    num_shuffle_merges: int
    num_merged_files: int
    num_unmerged_files: int
    ondisk_merge_bytes: float
    ondisk_merge_records: float
    merged_file_bytes: float | None = None
    merged_file_records: float | None = None
    unmerged_file_bytes: float | None = None
    unmerged_file_records: float | None = None
    disk_file_units: list[int] | None = None


def segments(merge: MapMerge, job: Job) -> Segments:
    """
    Eqs. (37) to (43), partitions being equal (W37).

    The limit is compared with `<` under paper rules, with `<=` under mr2 rules (W18).
    """
    g = job.config
    compressed = merge.map_final_bytes / g.num_reduces  # (37)
    size = compressed / job.ratio  # (38)
    records = merge.map_final_records / g.num_reduces  # (39)
    buffer = g.shuffle_buffer_percent * g.reduce_heap_bytes  # (42)
    limit = g.shuffle_segment_limit_percent * buffer
    return Segments(
        compressed, size, records,
        shuffle_bytes=g.num_maps * compressed,  # (40)
        shuffle_records=g.num_maps * records,  # (41)
        shuffle_buffer_bytes=buffer,
        merge_threshold_bytes=g.shuffle_merge_percent * buffer,  # (43)
        segments_go_to_memory=size <= limit if job.mr2 else size < limit,
    )  # fmt: skip


def shuffle_files(seg: Segments, job: Job) -> ShuffleFiles:
    """Eqs. (44) to (49) for segments in memory, (50) to (54) for segments on disk."""
    if seg.segment_bytes == 0:
        return ShuffleFiles(1, 0.0, 0.0, 0, 0)
    maps = job.config.num_maps
    if not seg.segments_go_to_memory:
        return ShuffleFiles(1, seg.segment_compressed_bytes, seg.segment_records, maps, 0)
    s = segments_per_shuffle_file(seg, job)
    return ShuffleFiles(
        s,
        s * seg.segment_compressed_bytes * job.statistics.combine_bytes_selectivity,  # (46)
        s * seg.segment_records * job.statistics.combine_records_selectivity,  # (47)
        maps // s,  # (48)
        maps % s,  # (49)
    )


def segments_per_shuffle_file(seg: Segments, job: Job) -> int:
    """
    Segments that are merged in memory into one file, Eqs. (44) and (45); at least 1 (W19).

    Their number is limited by `inmem_merge_segments` under paper rules only (W20).
    """
    x = seg.merge_threshold_bytes / seg.segment_bytes
    fits = math.ceil(x) * seg.segment_bytes <= seg.shuffle_buffer_bytes
    s = math.ceil(x) if fits else math.floor(x)
    limit = job.config.inmem_merge_segments
    if limit > 0 and not job.mr2:
        s = min(s, limit)
    return max(1, s)


def disk_merges(files: ShuffleFiles, job: Job) -> DiskMerges:
    """Merges on disk during the shuffle, under the job's rules (W23, W24)."""
    return simulated_merges(files, job.config) if job.mr2 else printed_merges(files, job.config)


def printed_merges(files: ShuffleFiles, config: Config) -> DiskMerges:
    """Eqs. (55) to (61) as printed: a merged file is never merged again."""
    q, factor = files.num_shuffle_files, config.merge_factor
    merges = 0 if q < 2 * factor - 1 else (q - 2 * factor + 1) // factor + 1  # (55)
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


def simulated_merges(files: ShuffleFiles, config: Config) -> DiskMerges:
    """Hadoop 3: at 2F - 1 files the F smallest are merged, whatever they are."""
    units, merges, merged_units = merge_on_disk(files.num_shuffle_files, config.merge_factor)
    return DiskMerges(
        num_shuffle_merges=merges,
        num_merged_files=sum(u > 1 for u in units),
        num_unmerged_files=sum(u == 1 for u in units),
        ondisk_merge_bytes=merged_units * files.shuffle_file_bytes,
        ondisk_merge_records=merged_units * files.shuffle_file_records,
        disk_file_units=units,
    )


def merge_on_disk(arrivals: int, factor: int) -> tuple[list[int], int, int]:
    """
    Files left (ascending, in units of an arriving file), merges, units merged.

    >>> merge_on_disk(38, 10)
    ([1, 1, 1, 1, 1, 1, 1, 1, 10, 10, 10], 3, 30)
    """
    files: list[int] = []
    merges = merged_units = 0
    while arrivals:
        arriving = min(arrivals, 2 * factor - 1 - len(files))
        files[:0] = [1] * arriving
        arrivals -= arriving
        if len(files) == 2 * factor - 1:
            units = sum(files[:factor])
            del files[:factor]
            insort(files, units)
            merges, merged_units = merges + 1, merged_units + units
    return files, merges, merged_units


def inmem_merge_s(seg: Segments, files: ShuffleFiles, job: Job, c: Costs) -> float:
    """
    In-memory merges and the write of their files, Eq. (62) [s].

    Paper rules charge merging and combining per record after the combiner, mr2 rules before it
    (W25).  Segments that go straight to disk still pay the write.
    """
    q = files.num_shuffle_files
    written = q * files.shuffle_file_bytes * c.local_write_s_per_byte
    if not seg.segments_go_to_memory:
        return written
    merged = files.segments_per_shuffle_file * seg.segment_records
    records = merged if job.mr2 else files.shuffle_file_records
    return (
        seg.shuffle_bytes * c.map_output_decompress_s_per_byte
        + q * records * c.merge_cpu_s_per_record
        + q * records * c.combine_cpu_s_per_record
        + q * files.shuffle_file_bytes / job.ratio * c.map_output_compress_s_per_byte
        + written
    )


def ondisk_merge_s(merges: DiskMerges, job: Job, c: Costs) -> float:
    """Merges on disk during the shuffle, Eq. (63) [s]."""
    return rewrite_s(merges.ondisk_merge_bytes, merges.ondisk_merge_records, job, c)


def rewrite_s(size: float, records: float, job: Job, c: Costs) -> float:
    """Read, decompress, merge, compress and write again: the form of Eqs. (63), (76), (81) [s]."""
    return (
        size * c.local_read_s_per_byte
        + size * c.map_output_decompress_s_per_byte
        + records * c.merge_cpu_s_per_record
        + size / job.ratio * c.map_output_compress_s_per_byte
        + size * c.local_write_s_per_byte
    )


def shuffle_s(seg: Segments, inmem_s: float, ondisk_s: float, c: Costs) -> float:
    """Shuffle phase, Eq. (64) [s]."""
    return seg.shuffle_bytes * c.network_s_per_byte + inmem_s + ondisk_s
