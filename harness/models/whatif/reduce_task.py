"""
The rest of a reduce task, Eqs. (65) to (89): merge in three steps, reduce, write.

Step 1 evicts segments from memory, step 2 brings the files on disk down to the merge factor,
step 3 merges what is left into the reduce function.
"""

from __future__ import annotations

import math

from bisect import insort
from dataclasses import dataclass

from harness.models.merge import final_merge, first_pass, inter_merge
from harness.models.whatif.inputs import Costs, Job
from harness.models.whatif.shuffle import DiskMerges, Segments, ShuffleFiles, rewrite_s

File = tuple[float, float]  # compressed bytes, records


@dataclass(frozen=True)
class Eviction:
    """Step 1, Eqs. (65) to (70): segments that leave memory before the reduce function."""

    num_disk_files: int
    max_retained_bytes: float
    retained_candidate_bytes: float
    segments_evicted: int
    segments_retained: int
    files_from_memory: int
    file_from_memory_bytes: float
    file_from_memory_records: float
    step1_bytes: float
    step1_records: float


@dataclass(frozen=True)
class LaterSteps:
    """Steps 2 and 3, Eqs. (72) to (75), (77) to (80) and (87)."""

    step2_files: int
    step2_intermediate_reads: int
    step2_bytes: float
    step2_records: float
    step3_files: int
    step3_intermediate_reads: int
    step3_bytes: float
    step3_records: float
    reduce_disk_input_bytes: float
    step2_passes: int | None = None
    step2_read_bytes: float | None = None


@dataclass(frozen=True)
class ReduceFlow:
    """Input and output of the reduce function, Eqs. (83) to (86)."""

    reduce_in_bytes: float
    reduce_in_records: float
    reduce_in_groups: float
    reduce_out_bytes: float
    reduce_out_records: float


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
    of_one = (seg.segment_compressed_bytes, seg.segment_records) if evicted else (0.0, 0.0)
    if disk_files < job.config.merge_factor:
        file = (evicted * of_one[0], evicted * of_one[1])
        made, step1 = int(evicted > 0), file
    else:
        file = of_one
        made, step1 = evicted, (0.0, 0.0)
    return Eviction(
        disk_files, allowed, candidates, evicted, left - evicted, made, *file, *step1
    )  # fmt: skip


def segments_evicted(left: int, candidates: float, allowed: float, segment_bytes: float) -> int:
    """Segments that must leave memory, Eq. (68); never more than there are (W38)."""
    if candidates <= allowed:
        return 0
    return min(left, math.ceil((candidates - allowed) / segment_bytes))


def step1_s(ev: Eviction, job: Job, c: Costs) -> float:
    """Step 1, Eq. (71) [s]."""
    return (
        ev.step1_records * c.merge_cpu_s_per_record
        + ev.step1_bytes / job.ratio * c.map_output_compress_s_per_byte
        + ev.step1_bytes * c.local_write_s_per_byte
    )


def later_steps(
    seg: Segments, files: ShuffleFiles, merges: DiskMerges, ev: Eviction, job: Job
) -> LaterSteps:
    """Steps 2 and 3 under the job's rules."""
    if job.mr2:
        return simulated_steps(seg, files, merges.disk_file_units or [], ev, job)
    return printed_steps(seg, merges, ev, job)


def printed_steps(seg: Segments, merges: DiskMerges, ev: Eviction, job: Job) -> LaterSteps:
    """Eqs. (72) to (75), (77) to (80) and (87) as printed; 0 without files (W29)."""
    factor = job.config.merge_factor
    size, records = _on_disk(merges, ev)
    files2 = ev.num_disk_files + ev.files_from_memory  # (72)
    reads2 = inter_merge(files2, factor) if ev.num_disk_files else 0  # (73)
    again2 = reads2 / files2 if files2 else 0.0
    files3 = ev.segments_retained + final_merge(files2, factor)  # (77)
    reads3 = inter_merge(files3, factor)  # (78)
    again3 = reads3 / files3 if files3 else 0.0
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


def _on_disk(merges: DiskMerges, ev: Eviction) -> File:
    """Bytes and records of all disk files and of the files from memory."""
    merged, unmerged = merges.num_merged_files, merges.num_unmerged_files
    return (
        merged * (merges.merged_file_bytes or 0.0)
        + unmerged * (merges.unmerged_file_bytes or 0.0)
        + ev.files_from_memory * ev.file_from_memory_bytes,
        merged * (merges.merged_file_records or 0.0)
        + unmerged * (merges.unmerged_file_records or 0.0)
        + ev.files_from_memory * ev.file_from_memory_records,
    )


def simulated_steps(
    seg: Segments, files: ShuffleFiles, units: list[int], ev: Eviction, job: Job
) -> LaterSteps:
    """
    Hadoop 3: evicted segments join the first pass from memory (W28), step 3 only reads (W30).

    Each file left on disk is read once by the reduce function, (87) (W32).
    """
    disk = [(u * files.shuffle_file_bytes, u * files.shuffle_file_records) for u in units]
    evicted: list[File] = []
    if ev.num_disk_files >= job.config.merge_factor:
        evicted = [(seg.segment_compressed_bytes, seg.segment_records)] * ev.segments_evicted
    elif ev.segments_evicted:
        disk.append((ev.file_from_memory_bytes, ev.file_from_memory_records))
    step2 = merge_to_factor(disk, evicted, job.config.merge_factor)
    step2_files = ev.num_disk_files + ev.files_from_memory  # (72)
    return merged_steps(step2_files, ev.segments_retained, step2)


def merged_steps(files: int, retained: int, step2: FactorMerge) -> LaterSteps:
    """Steps 2 and 3 under mr2 rules: *files* merged down, *retained* segments left in memory."""
    return LaterSteps(
        step2_files=files,
        step2_intermediate_reads=step2.files_read,
        step2_bytes=step2.written[0],
        step2_records=step2.written[1],
        step3_files=retained + len(step2.in_memory) + len(step2.left),
        step3_intermediate_reads=0,
        step3_bytes=0.0,
        step3_records=0.0,
        reduce_disk_input_bytes=sum((size for size, _ in step2.left), 0.0),
        step2_passes=step2.passes,
        step2_read_bytes=step2.read_bytes,
    )


@dataclass(frozen=True)
class FactorMerge:
    """
    Merging files down to the factor: passes, files and bytes read from disk, bytes and records
    written, files left on disk, segments still in memory.
    """  # noqa: D205

    passes: int
    files_read: int
    read_bytes: float
    written: File
    left: list[File]
    in_memory: list[File]


def merge_to_factor(disk: list[File], in_memory: list[File], factor: int) -> FactorMerge:
    """Step 2 under mr2 rules: the first pass takes all segments *in_memory* beside its files."""
    disk = sorted(disk, key=_bytes_of)
    passes = files_read = 0
    read_bytes, written_bytes, written_records = 0.0, 0.0, 0.0
    while True:
        take = factor if passes or len(disk) <= factor else first_pass(len(disk), factor)
        # With the segments in memory, both sides of the test grow alike on the first pass.
        if len(disk) <= take:
            break
        taken, disk = disk[:take], disk[take:]
        files_read += take
        read_bytes += sum(size for size, _ in taken)
        taken, in_memory = taken + in_memory, []
        merged = (sum(size for size, _ in taken), sum(records for _, records in taken))
        written_bytes, written_records = written_bytes + merged[0], written_records + merged[1]
        insort(disk, merged, key=_bytes_of)
        passes += 1
    return FactorMerge(
        passes, files_read, read_bytes, (written_bytes, written_records), disk, in_memory
    )


def _bytes_of(file: File) -> float:
    return file[0]


def step2_s(steps: LaterSteps, job: Job, c: Costs) -> float:
    """Step 2, Eq. (76); under mr2 rules (76'): segments from memory are not read [s]."""
    read = steps.step2_bytes if steps.step2_read_bytes is None else steps.step2_read_bytes
    return (
        read * (c.local_read_s_per_byte + c.map_output_decompress_s_per_byte)
        + steps.step2_records * c.merge_cpu_s_per_record
        + steps.step2_bytes / job.ratio * c.map_output_compress_s_per_byte
        + steps.step2_bytes * c.local_write_s_per_byte
    )


def step3_s(steps: LaterSteps, job: Job, c: Costs) -> float:
    """Step 3, Eq. (81) [s]."""
    return rewrite_s(steps.step3_bytes, steps.step3_records, job, c)


def reduce_flow(seg: Segments, files: ShuffleFiles, job: Job) -> ReduceFlow:
    """Eqs. (83) to (86), and the groups that Table 1 lists without an equation (W03)."""
    q, left = files.num_shuffle_files, files.segments_left_in_memory
    s = job.statistics
    in_bytes = (
        q * files.shuffle_file_bytes / job.ratio + left * seg.segment_compressed_bytes / job.ratio
    )  # (83)
    in_records = q * files.shuffle_file_records + left * seg.segment_records  # (84)
    return ReduceFlow(
        in_bytes,
        in_records,
        in_records / s.records_per_reduce_group,
        in_bytes * s.reduce_bytes_selectivity,  # (85)
        in_records * s.reduce_records_selectivity,  # (86)
    )


def reduce_function_s(disk_bytes: float, in_records: float, c: Costs) -> float:
    """Reduce phase, Eq. (88) [s]: what lies on disk is read, all records are reduced."""
    return (
        disk_bytes * c.local_read_s_per_byte
        + disk_bytes * c.map_output_decompress_s_per_byte
        + in_records * c.reduce_cpu_s_per_record
    )


def reduce_write_s(out_bytes: float, output_compression_ratio: float, c: Costs) -> float:
    """Write phase, Eq. (89) [s]."""
    return (
        out_bytes * c.output_compress_s_per_byte
        + out_bytes * output_compression_ratio * c.hdfs_write_s_per_byte
    )
