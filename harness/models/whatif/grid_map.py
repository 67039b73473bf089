"""
The map task over a grid: what `map_task` decides case by case, on columns.

Only equations with a case, a count or a logarithm are here, under the names and in the order of the
scalar form; the others are plain arithmetic, and the scalar form's functions take columns.
"""

from __future__ import annotations

import numpy as np

from harness.models.columns import Column, choose, finite
from harness.models.merge_grid import final_merge, first_pass, inter_merge, merge_passes
from harness.models.whatif.inputs import MB, Config, Costs, Job
from harness.models.whatif.map_task import METADATA_BYTES, MapFlow, MapMerge, Spills

# 5.3  Collect and spill


def map_out_record_bytes(out_bytes: Column, out_records: Column) -> Column:
    """Width of an output record, Eq. (11) [B/record]; 0 without records (W07)."""
    return choose(out_records == 0, 0.0, out_bytes / out_records)


def max_serialization_records(config: Config, width: Column) -> Column:
    """Records that fill the data part of the buffer, Eq. (12); no bound if they have no width."""
    space = config.sort_buffer_mb * MB * (1 - config.sort_record_percent)
    records = np.floor(finite(space * config.sort_spill_percent / width))
    return choose(width == 0, np.inf, records)


def max_accounting_records(config: Config) -> Column:
    """Records that fill the metadata part of the buffer, Eq. (13)."""
    space = config.sort_buffer_mb * MB * config.sort_record_percent
    return np.floor(finite(space * config.sort_spill_percent / METADATA_BYTES))


def max_buffer_records(config: Config, width: Column) -> Column:
    """Records that fill Hadoop 3's one buffer, Eq. (12') (W09)."""
    space = config.sort_buffer_mb * MB * config.sort_spill_percent
    return np.floor(finite(space / (width + METADATA_BYTES)))


def num_spills(out_records: Column, spill_buffer_records: Column) -> Column:
    """Spills, Eq. (16)."""
    return np.ceil(out_records / spill_buffer_records)


def spills(flow: MapFlow, job: Job) -> Spills:
    """Eqs. (11) to (18), W08 and W10; all 0 and the bounds NaN without records (W07)."""
    out: Column = flow.map_out_records
    some = out != 0
    width = map_out_record_bytes(flow.map_out_bytes, out)
    data, metadata, buffer = _bounds(job, width)
    cap = np.maximum(1.0, buffer if job.mr2 else np.minimum(data, metadata))
    full = choose(some, np.minimum(cap, out), 0.0)  # (14)
    n = choose(some, num_spills(out, full), 0.0)
    records = choose(some, out / n, 0.0) if job.mr2 else full
    size = records * width  # (15)
    s = job.statistics
    return Spills(
        map_out_record_bytes=width,
        max_serialization_records=_where_some(some, data),
        max_accounting_records=_where_some(some, metadata),
        max_buffer_records=_where_some(some, buffer),
        spill_buffer_records=full,
        num_spills=n,
        records_per_spill=records,
        spill_buffer_bytes=size,
        spill_file_records=records * s.combine_records_selectivity,  # (17)
        spill_file_bytes=size * s.combine_bytes_selectivity * job.ratio,  # (18)
    )


def _bounds(job: Job, width: Column) -> tuple[Column, Column, Column]:
    if job.mr2:
        return None, None, max_buffer_records(job.config, width)
    return max_serialization_records(job.config, width), max_accounting_records(job.config), None


def _where_some(some: Column, bound: Column) -> Column:
    return None if bound is None else choose(some, bound, np.nan)


def spill_s(sp: Spills, job: Job, c: Costs) -> Column:
    """Spill phase, Eq. (20) [s]; no sort levels where records are fewer than reduces (W11)."""
    levels = np.log2(np.maximum(1.0, sp.records_per_spill / job.config.num_reduces))
    combined_bytes = sp.spill_buffer_bytes * job.statistics.combine_bytes_selectivity
    return sp.num_spills * (
        sp.records_per_spill * levels * c.sort_cpu_s_per_record
        + sp.records_per_spill * c.combine_cpu_s_per_record
        + combined_bytes * c.map_output_compress_s_per_byte
        + sp.spill_file_bytes * c.local_write_s_per_byte
    )


# 5.4  Merge


def combine_in_final_merge(spilled: Column, final_spills: Column, job: Job) -> Column:
    """Whether the combiner runs again, Eq. (28): the paper tests the fan-in, Hadoop 3 n (W13)."""
    tested = spilled if job.mr2 else final_spills
    enough = tested >= job.config.combine_min_spills
    return (spilled > 1) & job.config.use_combiner & enough


def map_merge(sp: Spills, job: Job) -> MapMerge:
    """Eqs. (24) to (33); one spill is renamed, not merged (W14)."""
    n, factor = sp.num_spills, job.config.merge_factor
    reads, fan_in = inter_merge(n, factor), final_merge(n, factor)  # (25), (27)
    combine = combine_in_final_merge(n, fan_in, job)
    bytes_sel = choose(combine, job.statistics.combine_bytes_selectivity, 1.0)  # (29)
    records_sel = choose(combine, job.statistics.combine_records_selectivity, 1.0)  # (30)
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


def map_final_merge_s(sp: Spills, merge: MapMerge, job: Job, c: Costs) -> Column:
    """Final pass, Eq. (35) [s]; none with one spill (W15), combiner only if it runs (W16)."""
    seconds = (
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
    return choose(sp.num_spills <= 1, 0.0, seconds)
