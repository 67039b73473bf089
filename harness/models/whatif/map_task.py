"""
The map task, Eqs. (2) to (36): read, map, collect, spill, merge.

Bytes, records and seconds of one task; symbols in the package's docstring.
"""

from __future__ import annotations

import math

from dataclasses import dataclass

from harness.models.merge import final_merge, first_pass, inter_merge, merge_passes
from harness.models.whatif.inputs import MB, Config, Costs, Job

METADATA_BYTES = 16  # of the sort buffer, per record


@dataclass(frozen=True)
class MapFlow:
    """Input and output of the map function, Eqs. (2), (3) and (6), (7) = (9), (10)."""

    map_in_bytes: float
    map_in_records: float
    map_out_bytes: float
    map_out_records: float


@dataclass(frozen=True)
class Spills:
    """Spills of one map task, Eqs. (11) to (18); bounds of the other rule set are `None`."""

    map_out_record_bytes: float
    max_serialization_records: float | None
    max_accounting_records: int | None
    max_buffer_records: int | None
    spill_buffer_records: float
    num_spills: int
    records_per_spill: float
    spill_buffer_bytes: float
    spill_file_records: float
    spill_file_bytes: float


@dataclass(frozen=True)
class MapMerge:
    """Merge of the spills, Eqs. (24) to (33)."""

    first_pass_spills: int
    intermediate_merge_spills: int
    merge_passes: int
    final_merge_spills: int
    combine_in_final_merge: bool
    merge_combine_bytes_selectivity: float
    merge_combine_records_selectivity: float
    spilled_records: float
    map_final_bytes: float
    map_final_records: float


# 5.1 and 5.2  Read, map, and the write of a map-only job


def map_in_bytes(job: Job) -> float:
    """Uncompressed input, Eq. (2) [B]."""
    return job.config.split_bytes / job.statistics.input_compression_ratio


def map_in_records(in_bytes: float, job: Job) -> float:
    """Input records, Eq. (3) [records]."""
    return in_bytes / job.statistics.input_record_bytes


def map_read_s(split_bytes: float, c: Costs) -> float:
    """Read phase, Eq. (4) [s]: stored bytes from HDFS, decompressed."""
    return split_bytes * c.hdfs_read_s_per_byte + split_bytes * c.input_decompress_s_per_byte


def map_function_s(in_records: float, c: Costs) -> float:
    """Map phase, Eq. (5) [s]."""
    return in_records * c.map_cpu_s_per_record


def map_out_bytes(in_bytes: float, job: Job) -> float:
    """Uncompressed output of the map function, Eqs. (6) and (9) [B]."""
    return in_bytes * job.statistics.map_bytes_selectivity


def map_out_records(in_records: float, job: Job) -> float:
    """Output records of the map function, Eqs. (7) and (10) [records]."""
    return in_records * job.statistics.map_records_selectivity


def map_write_s(out_bytes: float, output_compression_ratio: float, c: Costs) -> float:
    """Write phase of a map-only job, Eq. (8) [s]."""
    return (
        out_bytes * c.output_compress_s_per_byte
        + out_bytes * output_compression_ratio * c.hdfs_write_s_per_byte
    )


def map_flow(job: Job) -> MapFlow:
    """Eqs. (2), (3), (6) and (7)."""
    in_bytes = map_in_bytes(job)
    in_records = map_in_records(in_bytes, job)
    return MapFlow(in_bytes, in_records, map_out_bytes(in_bytes, job),
                   map_out_records(in_records, job))  # fmt: skip


# 5.3  Collect and spill


def map_out_record_bytes(out_bytes: float, out_records: float) -> float:
    """Width of an output record, Eq. (11) [B/record]; 0 without records (W07)."""
    return out_bytes / out_records if out_records else 0.0


def max_serialization_records(config: Config, width: float) -> float:
    """Records that fill the data part of the buffer, Eq. (12); no bound if they have no width."""
    if width == 0:
        return math.inf
    space = config.sort_buffer_mb * MB * (1 - config.sort_record_percent)
    return math.floor(space * config.sort_spill_percent / width)


def max_accounting_records(config: Config) -> int:
    """Records that fill the metadata part of the buffer, Eq. (13)."""
    space = config.sort_buffer_mb * MB * config.sort_record_percent
    return math.floor(space * config.sort_spill_percent / METADATA_BYTES)


def max_buffer_records(config: Config, width: float) -> int:
    """Records that fill Hadoop 3's one buffer, Eq. (12') (W09)."""
    space = config.sort_buffer_mb * MB * config.sort_spill_percent
    return math.floor(space / (width + METADATA_BYTES))


def num_spills(out_records: float, spill_buffer_records: float) -> int:
    """Spills, Eq. (16)."""
    return math.ceil(out_records / spill_buffer_records)


def spills(flow: MapFlow, job: Job) -> Spills:
    """
    Eqs. (11) to (18).

    A record wider than the buffer is spilled alone (W08).  The paper counts every spill full, mr2
    rules take the mean spill, so that no data is created (W10).
    """
    width = map_out_record_bytes(flow.map_out_bytes, flow.map_out_records)
    if flow.map_out_records == 0:
        return Spills(width, None, None, None, 0.0, 0, 0.0, 0.0, 0.0, 0.0)
    data, metadata, buffer = _bounds(job, width)
    cap = max(1, min(b for b in (data, metadata, buffer) if b is not None))
    full = min(cap, flow.map_out_records)  # (14)
    n = num_spills(flow.map_out_records, full)
    records = flow.map_out_records / n if job.mr2 else full
    size = records * width  # (15)
    s = job.statistics
    return Spills(
        width, data, metadata, buffer, full, n, records, size,
        spill_file_records=records * s.combine_records_selectivity,  # (17)
        spill_file_bytes=size * s.combine_bytes_selectivity * job.ratio,  # (18)
    )  # fmt: skip


def _bounds(job: Job, width: float) -> tuple[float | None, int | None, int | None]:
    if job.mr2:
        return None, None, max_buffer_records(job.config, width)
    return max_serialization_records(job.config, width), max_accounting_records(job.config), None


def collect_s(out_records: float, c: Costs) -> float:
    """Collect phase, Eq. (19) [s]."""
    return out_records * c.partition_cpu_s_per_record + out_records * c.serde_cpu_s_per_record


def spill_s(sp: Spills, job: Job, c: Costs) -> float:
    """Spill phase, Eq. (20) [s]; no sort levels where records are fewer than reduces (W11)."""
    levels = math.log2(max(1.0, sp.records_per_spill / job.config.num_reduces))
    combined_bytes = sp.spill_buffer_bytes * job.statistics.combine_bytes_selectivity
    return sp.num_spills * (
        sp.records_per_spill * levels * c.sort_cpu_s_per_record
        + sp.records_per_spill * c.combine_cpu_s_per_record
        + combined_bytes * c.map_output_compress_s_per_byte
        + sp.spill_file_bytes * c.local_write_s_per_byte
    )


# 5.4  Merge


def combine_in_final_merge(spilled: int, final_spills: int, job: Job) -> bool:
    """Whether the combiner runs again, Eq. (28): the paper tests the fan-in, Hadoop 3 n (W13)."""
    tested = spilled if job.mr2 else final_spills
    enough = tested >= job.config.combine_min_spills
    return spilled > 1 and job.config.use_combiner and enough


def map_merge(sp: Spills, job: Job) -> MapMerge:
    """Eqs. (24) to (33); one spill is renamed, not merged (W14)."""
    n, factor = sp.num_spills, job.config.merge_factor
    reads, fan_in = inter_merge(n, factor), final_merge(n, factor)  # (25), (27)
    combine = combine_in_final_merge(n, fan_in, job)
    bytes_sel = job.statistics.combine_bytes_selectivity if combine else 1.0  # (29)
    records_sel = job.statistics.combine_records_selectivity if combine else 1.0  # (30)
    final_records = n * sp.spill_file_records * records_sel  # (33)
    return MapMerge(
        first_pass_spills=first_pass(n, factor),  # (24)
        intermediate_merge_spills=reads,
        merge_passes=merge_passes(n, factor),  # (26)
        final_merge_spills=fan_in,
        combine_in_final_merge=combine,
        merge_combine_bytes_selectivity=bytes_sel,
        merge_combine_records_selectivity=records_sel,
        spilled_records=sp.spill_file_records * n
        + sp.spill_file_records * reads
        + (n > 1) * sp.spill_file_records * n * records_sel,  # (31)
        map_final_bytes=n * sp.spill_file_bytes * bytes_sel,  # (32)
        map_final_records=final_records,
    )


def map_intermediate_merge_s(sp: Spills, merge: MapMerge, job: Job, c: Costs) -> float:
    """Intermediate passes, Eq. (34) [s]: each spill read is decompressed, merged, written again."""
    return merge.intermediate_merge_spills * (
        sp.spill_file_bytes * c.local_read_s_per_byte
        + sp.spill_file_bytes * c.map_output_decompress_s_per_byte
        + sp.spill_file_records * c.merge_cpu_s_per_record
        + sp.spill_file_bytes / job.ratio * c.map_output_compress_s_per_byte
        + sp.spill_file_bytes * c.local_write_s_per_byte
    )


def map_final_merge_s(sp: Spills, merge: MapMerge, job: Job, c: Costs) -> float:
    """Final pass, Eq. (35) [s]; none with one spill (W15), combiner only if it runs (W16)."""
    if sp.num_spills <= 1:
        return 0.0
    return (
        sp.num_spills
        * (
            sp.spill_file_bytes * c.local_read_s_per_byte
            + sp.spill_file_bytes * c.map_output_decompress_s_per_byte
            + sp.spill_file_records * c.merge_cpu_s_per_record
            + merge.combine_in_final_merge * sp.spill_file_records * c.combine_cpu_s_per_record
        )
        + merge.map_final_bytes / job.ratio * c.map_output_compress_s_per_byte
        + merge.map_final_bytes * c.local_write_s_per_byte
    )
