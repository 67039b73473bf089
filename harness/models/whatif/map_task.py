"""
The map task, Eqs. (2) to (36): read, map, collect, spill, merge.

Bytes, records and seconds of one task, as a number or as an array with one per configuration;
symbols in ``docs/models/whatif.md``, section 4.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.units import MIB
from harness.models.checks import Counts, Flags, Numbers, nan_if_infinite
from harness.models.merge import final_merge, first_pass, inter_merge, merge_passes
from harness.models.whatif.inputs import Config, Costs, Dataflow, Job, Quantities

# 5.1 and 5.2  Read, map, and the write of a map-only job


def map_in_bytes(job: Job) -> Numbers:
    """Uncompressed input, Eq. (2) [B]."""
    return job.config.split_bytes / job.statistics.input_compression_ratio


def map_in_records(in_bytes: Numbers, job: Job) -> Numbers:
    """Input records, Eq. (3) [records]."""
    return in_bytes / job.statistics.input_record_bytes


def map_read_s(split_bytes: Numbers, costs: Costs) -> Numbers:
    """Read phase, Eq. (4) [s]: stored bytes from HDFS, decompressed."""
    return (
        split_bytes * costs.hdfs_read_s_per_byte + split_bytes * costs.input_decompress_s_per_byte
    )


def map_function_s(in_records: Numbers, costs: Costs) -> Numbers:
    """Map phase, Eq. (5) [s]."""
    return in_records * costs.map_cpu_s_per_record


def map_out_bytes(in_bytes: Numbers, job: Job) -> Numbers:
    """Uncompressed output of the map function, Eqs. (6) and (9) [B]."""
    return in_bytes * job.statistics.map_bytes_selectivity


def map_out_records(in_records: Numbers, job: Job) -> Numbers:
    """Output records of the map function, Eqs. (7) and (10) [records]."""
    return in_records * job.statistics.map_records_selectivity


def write_s(out_bytes: Numbers, output_compression_ratio: Numbers, costs: Costs) -> Numbers:
    """Write phase of a map-only job, Eq. (8), and of a reduce task, Eq. (89) [s]."""
    return (
        out_bytes * costs.output_compress_s_per_byte
        + out_bytes * output_compression_ratio * costs.hdfs_write_s_per_byte
    )


def map_flow(job: Job) -> Dataflow:
    """Eqs. (2), (3), (6) and (7)."""
    in_bytes = map_in_bytes(job)
    in_records = map_in_records(in_bytes, job)
    return Dataflow(
        map_in_bytes=in_bytes,
        map_in_records=in_records,
        map_out_bytes=map_out_bytes(in_bytes, job),
        map_out_records=map_out_records(in_records, job),
    )


# 5.3  Collect and spill


def map_out_record_bytes(out_bytes: Numbers, out_records: Numbers) -> Numbers:
    """Width of an output record, Eq. (11) [B/record]; 0 without records (W07)."""
    return np.where(out_records == 0, 0.0, out_bytes / out_records)


def max_serialization_records(config: Config, record_bytes: Numbers) -> Counts:
    """Records that fill the data part of the buffer, Eq. (12); no bound if they have no width."""
    space = config.sort_buffer_mb * MIB * (1 - config.sort_record_percent)
    records = np.floor(nan_if_infinite(space * config.sort_spill_percent / record_bytes))
    return np.where(record_bytes == 0, np.inf, records)


def max_accounting_records(config: Config) -> Counts:
    """Records that fill the metadata part of the buffer, Eq. (13)."""
    space = config.sort_buffer_mb * MIB * config.sort_record_percent
    return np.floor(nan_if_infinite(space * config.sort_spill_percent / METADATA_BYTES))


def max_buffer_records(config: Config, record_bytes: Numbers) -> Counts:
    """Records that fill Hadoop 3's one buffer, Eq. (12') (W09)."""
    space = config.sort_buffer_mb * MIB * config.sort_spill_percent
    return np.floor(nan_if_infinite(space / (record_bytes + METADATA_BYTES)))


def num_spills(out_records: Numbers, spill_buffer_records: Numbers) -> Counts:
    """Spills, Eq. (16)."""
    return np.ceil(out_records / spill_buffer_records)


def has_combine_law(job: Job) -> Flags:
    """
    Whether what a combiner leaves is known as a function of the records that it sees (W42).

    Under mr2 rules alone: the printed forms count Hadoop 1's spills, which are many more, and
    their constant share of the bytes forgives that.
    """
    return job.config.use_combiner & (job.statistics.records_per_combine > 0) & job.mr2


def grown_share(share: Numbers, size_ratio: Numbers, exponent: Numbers) -> Numbers:
    """
    Share that a combiner leaves of so many times the records of which it leaves *share* (W42).

    All are left at most.
    """
    return np.minimum(np.maximum(share, 1.0), share * size_ratio ** (exponent - 1))


def combined_shares(records: Numbers, job: Job) -> tuple[Numbers, Numbers]:
    """Shares of bytes and of records that a spill's combiner leaves of *records* (W42)."""
    statistics = job.statistics
    has_law = has_combine_law(job)
    bytes_share = statistics.combine_bytes_selectivity
    records_share = statistics.combine_records_selectivity
    if not np.any(has_law):
        return bytes_share, records_share
    size_ratio = np.maximum(records, 1.0) / np.where(has_law, statistics.records_per_combine, 1.0)
    grown_bytes = grown_share(bytes_share, size_ratio, statistics.combine_bytes_exponent)
    grown_records = grown_share(records_share, size_ratio, statistics.combine_records_exponent)
    return (
        np.where(has_law, grown_bytes, bytes_share),
        np.where(has_law, grown_records, records_share),
    )


def combined_again(outputs: Numbers, job: Job) -> tuple[Numbers, Numbers]:
    """Shares of bytes and of records that a combiner leaves of so many of its own *outputs*."""
    statistics = job.statistics
    has_law = has_combine_law(job)
    bytes_share = statistics.combine_bytes_selectivity
    records_share = statistics.combine_records_selectivity
    if not np.any(has_law):
        return bytes_share, records_share
    count = np.maximum(outputs, 1.0)
    grown_bytes = count ** (statistics.combine_bytes_exponent - 1)
    grown_records = count ** (statistics.combine_records_exponent - 1)
    return (
        np.where(has_law, grown_bytes, bytes_share),
        np.where(has_law, grown_records, records_share),
    )


def spill_flow(dataflow: Dataflow, job: Job) -> Quantities:
    """
    Eqs. (11) to (18); all 0, and the bounds NaN, without records (W07).

    A record wider than the buffer is spilled alone (W08).  The printed form counts every spill
    full; the author's engine and mr2 rules take the mean spill: no data is created (W10).
    """
    out_records = dataflow.map_out_records
    has_output = out_records != 0
    record_bytes = map_out_record_bytes(dataflow.map_out_bytes, out_records)
    if job.mr2:
        bounds = {"max_buffer_records": max_buffer_records(job.config, record_bytes)}
    else:
        bounds = {
            "max_serialization_records": max_serialization_records(job.config, record_bytes),
            "max_accounting_records": max_accounting_records(job.config),
        }
    fitting = reduce(np.minimum, bounds.values())
    full = np.where(has_output, np.minimum(np.maximum(1.0, fitting), out_records), 0.0)  # (14)
    spills = np.where(has_output, num_spills(out_records, full), 0.0)
    records = full if job.printed else np.where(has_output, out_records / spills, 0.0)
    size = records * record_bytes  # (15)
    bytes_share, records_share = combined_shares(records, job)
    return {
        "map_out_record_bytes": record_bytes,
        "spill_buffer_records": full,
        "num_spills": spills,
        "records_per_spill": records,
        "spill_buffer_bytes": size,
        "spill_file_records": records * records_share,  # (17)
        "spill_file_bytes": size * bytes_share * job.ratio,  # (18)
        **{name: np.where(has_output, bound, np.nan) for name, bound in bounds.items()},
    }


def collect_s(out_records: Numbers, costs: Costs) -> Numbers:
    """Collect phase, Eq. (19) [s]."""
    return (
        out_records * costs.partition_cpu_s_per_record + out_records * costs.serde_cpu_s_per_record
    )


def spill_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Spill phase, Eq. (20) [s]; no sort levels where records are fewer than reduces (W11)."""
    levels = np.log2(np.maximum(1.0, dataflow.records_per_spill / job.config.num_reduces))
    bytes_share, _ = combined_shares(dataflow.records_per_spill, job)
    combined_bytes = dataflow.spill_buffer_bytes * bytes_share
    return dataflow.num_spills * (
        dataflow.records_per_spill * levels * costs.sort_cpu_s_per_record
        + dataflow.records_per_spill * costs.combine_cpu_s_per_record
        + combined_bytes * costs.map_output_compress_s_per_byte
        + dataflow.spill_file_bytes * costs.local_write_s_per_byte
    )


# 5.4  Merge


def combine_in_final_merge(spills: Counts, final_spills: Counts, job: Job) -> Flags:
    """Whether the combiner runs again, Eq. (28): the paper tests the fan-in, Hadoop 3 n (W13)."""
    tested = spills if job.mr2 else final_spills
    return (spills > 1) & job.config.use_combiner & (tested >= job.config.combine_min_spills)


def map_merge(dataflow: Dataflow, job: Job) -> Quantities:
    """Eqs. (24) to (33); one spill is renamed, not merged (W14)."""
    spill_count = dataflow.num_spills
    merge_factor = job.config.merge_factor
    reads = inter_merge(spill_count, merge_factor)  # (25)
    fan_in = final_merge(spill_count, merge_factor)  # (27)
    combine = combine_in_final_merge(spill_count, fan_in, job)
    bytes_share, records_share = combined_again(spill_count, job)
    bytes_selectivity = np.where(combine, bytes_share, 1.0)  # (29)
    records_selectivity = np.where(combine, records_share, 1.0)  # (30)
    final_records = spill_count * dataflow.spill_file_records * records_selectivity  # (33)
    return {
        "first_pass_spills": first_pass(spill_count, merge_factor),  # (24)
        "intermediate_merge_spills": reads,
        "merge_passes": merge_passes(spill_count, merge_factor),  # (26)
        "final_merge_spills": fan_in,
        "combine_in_final_merge": combine,
        "merge_combine_bytes_selectivity": bytes_selectivity,
        "merge_combine_records_selectivity": records_selectivity,
        "spilled_records": dataflow.spill_file_records * spill_count
        + dataflow.spill_file_records * reads
        + (spill_count > 1) * final_records,  # (31)
        "map_final_bytes": spill_count * dataflow.spill_file_bytes * bytes_selectivity,  # (32)
        "map_final_records": final_records,
    }


def rewrite_s(size: Numbers, records: Numbers, job: Job, costs: Costs) -> Numbers:
    """Read, decompress, merge, compress, write: the form of Eqs. (34), (63), (76), (81) [s]."""
    return (
        size * costs.local_read_s_per_byte
        + size * costs.map_output_decompress_s_per_byte
        + records * costs.merge_cpu_s_per_record
        + size / job.ratio * costs.map_output_compress_s_per_byte
        + size * costs.local_write_s_per_byte
    )


def map_intermediate_merge_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Intermediate passes, Eq. (34) [s]: each spill read is decompressed, merged, written again."""
    rewritten_s = rewrite_s(dataflow.spill_file_bytes, dataflow.spill_file_records, job, costs)
    return dataflow.intermediate_merge_spills * rewritten_s


def map_final_merge_s(dataflow: Dataflow, job: Job, costs: Costs) -> Numbers:
    """Final pass, Eq. (35) [s]; none with one spill (W15), combiner only if it runs (W16)."""
    combined_records = dataflow.combine_in_final_merge * dataflow.spill_file_records
    seconds = (
        dataflow.num_spills
        * (
            dataflow.spill_file_bytes * costs.local_read_s_per_byte
            + dataflow.spill_file_bytes * costs.map_output_decompress_s_per_byte
            + dataflow.spill_file_records * costs.merge_cpu_s_per_record
            + combined_records * costs.combine_cpu_s_per_record
        )
        + dataflow.map_final_bytes / job.ratio * costs.map_output_compress_s_per_byte
        + dataflow.map_final_bytes * costs.local_write_s_per_byte
    )
    return np.where(dataflow.num_spills <= 1, 0.0, seconds)
