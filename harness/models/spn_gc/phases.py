"""
What SPN-GC is given, and the nine phase means, Eqs. (5) to (14), under both rule sets.

Seconds and bytes; symbols, defaults and ranges of the inputs in ``docs/models/spn-gc.md``, sections
2 and 8.  One function has an equation's printed form and that under mr2 rules.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from harness.base.errors import ModelError
from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.units import MIB
from harness.models.checks import (
    count_field,
    flag_field,
    number_field,
    range_error,
    read_fields,
)
from harness.models.merge import inter_merge

RULES = ("paper", "mr2")
WHERE = "spn-gc"

PHASES = (
    "t1_load_s", "t2_read_s", "t3_to_gpu_s", "t4_gpu_s", "t5_from_gpu_s", "t6_spill_s",
    "t7_shuffle_s", "t8_merge_s", "t9_reduce_s",
)  # fmt: skip

Numbers = dict[str, Any]  # by the names of the specification


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Symbols of section 2: sizes in bytes, rates in bytes/s, times in s; and the rule set."""

    mr2: bool = False

    input_bytes: float = number_field(above=True)
    test_input_bytes: float = number_field(above=True)
    split_bytes: float = number_field(128.0 * MIB, above=True)
    gpu_block_bytes: float = number_field(above=True)
    num_reduces: int = count_field(1)
    num_datanodes: int = count_field(low=1)
    replication: int = count_field(3, low=1)
    m_test: float = number_field(1.0)

    load_s: float = number_field()
    upload_s: float = number_field(0.0)
    map_s: float = number_field()
    map_gpu_s: float = number_field()
    reduce_s: float = number_field()
    reduce_gpu_s: float = number_field(0.0)
    reduce_uses_gpu: bool = flag_field()
    cpu_ratio: float = number_field(1.0, above=True)
    gpu_ratio: float = number_field(1.0, above=True)

    test_map_bytes: float = number_field()
    test_map_output_bytes: float = number_field()
    test_reduce_bytes: float = number_field()
    test_map_spilled_records: float = number_field()

    disk_read_bps: float = number_field(above=True)
    disk_write_bps: float = number_field(above=True)
    mem_read_bps: float = number_field(above=True)
    mem_write_bps: float = number_field(above=True)
    network_bps: float = number_field(above=True)
    gpu_h2d_bps: float = number_field(above=True)
    gpu_mem_read_bps: float = number_field(above=True)
    gpu_d2h_bps: float = number_field(above=True)

    sort_buffer_mb: float = number_field(100.0, above=True)
    sort_spill_percent: float = number_field(0.8, high=1.0, above=True)
    sort_record_percent: float = number_field(0.05, low=-math.inf)
    merge_factor: int = count_field(10, low=2)
    reduce_heap_bytes: float = number_field(1024.0 * MIB, above=True)
    shuffle_buffer_percent: float = number_field(0.7, high=1.0, above=True)
    shuffle_merge_percent: float = number_field(0.66, high=1.0, above=True)
    reduce_buffer_percent: float = number_field(0.0, high=1.0)
    gpu_block_concurrency: int = count_field(1, low=1)

    @property
    def scale(self) -> float:
        """D_input/D_test."""
        return self.input_bytes / self.test_input_bytes


FIELDS = {parameter.name: parameter for parameter in fields(Parameters) if parameter.metadata}
REQUIRED = frozenset(name for name, parameter in FIELDS.items() if parameter.default is MISSING)


def ceil_ratio(numerator: float, denominator: float) -> int:
    """
    ceil(a/b), where a ratio within 1e-9 of an integer is that integer.

    >>> ceil_ratio(3, 2), ceil_ratio(0.3, 0.1), ceil_ratio(2**70, 3)
    (2, 3, 393530540239137101142)
    """
    if float(numerator).is_integer() and float(denominator).is_integer():
        return -(-int(numerator) // int(denominator))
    ratio = numerator / denominator
    if not math.isfinite(ratio):
        raise ModelError(f"{numerator:g}/{denominator:g} is beyond all counts", where=WHERE)
    nearest_count = round(ratio)
    return nearest_count if abs(ratio - nearest_count) <= 1e-9 * ratio else math.ceil(ratio)


def spn_phases(parameters: Mapping[str, Any], rules: str = "paper") -> Numbers:
    """
    Phase means, their sum, and the quantities between, by the specification's names.

    Without reduces `t7_shuffle_s`, `t8_merge_s` and `t9_reduce_s` are 0.  ``ModelError`` names a
    parameter that is missing or out of its range.
    """
    if rules not in RULES:
        raise range_error("rules", rules, "paper or mr2", WHERE)
    inputs = Parameters(**read_fields(Parameters, parameters, WHERE), mr2=rules == "mr2")
    share = inputs.sort_record_percent
    where = f"{WHERE}, paper rules"
    if not inputs.mr2 and not 0 < share < 1:
        raise range_error("sort_record_percent", share, "between 0 and 1", where)
    num_map_tasks = num_maps(inputs)
    num_reduces = inputs.num_reduces or math.inf
    shuffle_bytes = inputs.scale * inputs.test_map_output_bytes * inputs.m_test / num_reduces
    sizes: Numbers = {
        "num_maps": num_map_tasks,
        "local_read_fraction": local_read_fraction(inputs),
        "scale": inputs.scale,
        "t1_load_s": t1_load_s(inputs),
        "gpu_blocks_per_split": ceil_ratio(inputs.split_bytes, inputs.gpu_block_bytes),
        "gpu_block_s": gpu_block_s(inputs),
        "metadata_bytes": METADATA_BYTES
        * inputs.scale
        / num_map_tasks
        * inputs.test_map_spilled_records,
        "map_out_bytes_per_task": inputs.scale * inputs.test_map_bytes / num_map_tasks,
        "shuffle_bytes": shuffle_bytes,
        "reduce_out_bytes": inputs.scale * inputs.test_reduce_bytes / num_reduces,
        "merge_threshold_bytes": (
            inputs.reduce_heap_bytes * inputs.shuffle_buffer_percent * inputs.shuffle_merge_percent
        ),
        "gpu_blocks_per_reduce": ceil_ratio(shuffle_bytes, inputs.gpu_block_bytes),
    }
    sizes |= spills_mr2(inputs, sizes) if inputs.mr2 else spills(inputs, sizes)
    sizes |= {
        "t2_read_s": t2_read_s(inputs),
        "t3_to_gpu_s": t3_to_gpu_s(inputs),
        "t4_gpu_s": t4_gpu_s(inputs, sizes),
        "t5_from_gpu_s": t5_from_gpu_s(inputs, sizes),
        "t6_spill_s": t6_spill_s(inputs, sizes),
        "t7_shuffle_s": t7_shuffle_s(inputs, sizes),
        "reduce_disk_passes": reduce_disk_passes(inputs, sizes),
        "t9_reduce_s": t9_reduce_s(inputs, sizes),
    }
    sizes["t8_merge_s"] = t8_merge_s(inputs, sizes)
    if not inputs.num_reduces:
        sizes |= dict.fromkeys(PHASES[6:], 0.0)
    sizes["sum_of_means_s"] = sum(sizes[name] for name in PHASES)
    if not math.isfinite(sizes["sum_of_means_s"]):
        raise ModelError("the phase means are beyond all floats", where=WHERE)
    return sizes


def num_maps(inputs: Parameters) -> int:
    """Map tasks, Eq. (5)."""
    return ceil_ratio(inputs.input_bytes, inputs.split_bytes)


def local_read_fraction(inputs: Parameters) -> float:
    """A: probability that a split is on the local disk; 1 at most (S04)."""
    return min(1.0, inputs.replication / inputs.num_datanodes)


# Phases 1 to 5: load, read, host to device, device, device to host


def t1_load_s(inputs: Parameters) -> float:
    """Loading, once per job, Eq. (6) [s]."""
    return inputs.load_s + inputs.upload_s


def t2_read_s(inputs: Parameters) -> float:
    """
    Reading a remote split, Eq. (7) [s]; the maximum over equal maps is one of them (S02).

    Under mr2 rules it is a stream: nothing is written on the way (S03).
    """
    remote_share = 1 - local_read_fraction(inputs)
    written = 0.0 if inputs.mr2 else 1 / inputs.disk_write_bps
    return (
        remote_share
        * inputs.split_bytes
        * (1 / inputs.disk_read_bps + 1 / inputs.network_bps + written)
    )


def t3_to_gpu_s(inputs: Parameters) -> float:
    """
    Map function on the CPU, one block to the device, Eq. (8) [s].

    Under mr2 rules with the local share of the disk's reads (S03) and the whole split (S05).
    """
    local_share = 1.0
    copied_bytes = inputs.gpu_block_bytes
    if inputs.mr2:
        local_share = local_read_fraction(inputs)
        copied_bytes = inputs.split_bytes
    return (
        inputs.split_bytes * (local_share / inputs.disk_read_bps + 1 / inputs.mem_read_bps)
        + inputs.cpu_ratio * inputs.map_s
        + copied_bytes / inputs.gpu_h2d_bps
    )


def gpu_block_s(inputs: Parameters) -> float:
    """One block on the device, Eq. (9) [s]."""
    block_share = inputs.gpu_block_bytes / inputs.test_input_bytes
    return (
        inputs.gpu_block_bytes / inputs.gpu_mem_read_bps
        + block_share * inputs.gpu_ratio * inputs.map_gpu_s
    )


def t4_gpu_s(inputs: Parameters, sizes: Numbers) -> float:
    """The paper's blocks of a split run side by side; under mr2 rules so many at once (S06) [s]."""
    gpu_rounds = 1
    if inputs.mr2:
        gpu_rounds = ceil_ratio(sizes["gpu_blocks_per_split"], inputs.gpu_block_concurrency)
    return float(gpu_rounds * sizes["gpu_block_s"])


def t5_from_gpu_s(inputs: Parameters, sizes: Numbers) -> float:
    """
    Device to host, Eq. (10) [s].

    Under mr2 rules the map's output, not its split; the spill writes the disk (S08).
    """
    copied_bytes = inputs.split_bytes
    written = 1 / inputs.disk_write_bps
    if inputs.mr2:
        copied_bytes = sizes["map_out_bytes_per_task"]
        written = 0.0
    return copied_bytes * (1 / inputs.gpu_d2h_bps + written + 1 / inputs.mem_write_bps)


# Phase 6: spill and merge


def spills(inputs: Parameters, sizes: Numbers) -> Numbers:
    """Buffers, spills and merges before Eq. (11) (S11)."""
    metadata_bytes = sizes["metadata_bytes"]
    data_bytes = max(0.0, sizes["map_out_bytes_per_task"] - metadata_bytes)
    buffer_bytes = inputs.sort_buffer_mb * MIB
    metadata_buffer = buffer_bytes * inputs.sort_record_percent * inputs.sort_spill_percent
    data_buffer = buffer_bytes * (1 - inputs.sort_record_percent) * inputs.sort_spill_percent
    num_spills = max(
        ceil_ratio(metadata_bytes, metadata_buffer), ceil_ratio(data_bytes, data_buffer)
    )
    return {
        "metadata_buffer_bytes": metadata_buffer,
        "data_buffer_bytes": data_buffer,
        "data_bytes": data_bytes,
        "spill_total_bytes": metadata_bytes + data_bytes,
        "num_spills": num_spills,
        "num_merges": ceil_ratio(num_spills, inputs.merge_factor),
    }


def spills_mr2(inputs: Parameters, sizes: Numbers) -> Numbers:
    """Spills of one buffer, and how often the merge passes over the data (S13)."""
    buffer_bytes = inputs.sort_buffer_mb * MIB * inputs.sort_spill_percent
    num_spills = ceil_ratio(sizes["map_out_bytes_per_task"] + sizes["metadata_bytes"], buffer_bytes)
    reads = float(inter_merge(float(num_spills), float(inputs.merge_factor)))
    disk_passes = 0.0 if num_spills <= 1 else 1 + reads / num_spills
    return {"num_spills": num_spills, "merge_passes_over_data": disk_passes}


def t6_spill_s(inputs: Parameters, sizes: Numbers) -> float:
    """
    Spills and merges, each of the whole volume, Eq. (11) (S12, S13) [s].

    Under mr2 rules each byte once, and once per pass of the merge.
    """
    spill = 1 / inputs.mem_read_bps + 1 / inputs.disk_write_bps
    if inputs.mr2:
        volume_bytes = sizes["map_out_bytes_per_task"]
        count = 1
        disk_passes = sizes["merge_passes_over_data"]
    else:
        volume_bytes = sizes["spill_total_bytes"]
        count = sizes["num_spills"]
        disk_passes = sizes["num_merges"]
    return float(volume_bytes * (count * spill + disk_passes * _round_trip_s_per_byte(inputs)))


# Phases 7 to 9: shuffle, merge, reduce


def t7_shuffle_s(inputs: Parameters, sizes: Numbers) -> float:
    """
    Copying the input of a reduce, Eq. (12) [s] (S28).

    Under mr2 rules one node's share of the map output is local (S15).
    """
    volume_bytes = inputs.scale / max(1, inputs.num_reduces) * inputs.test_map_output_bytes
    local_share = local_read_fraction(inputs)
    if inputs.mr2:
        volume_bytes = sizes["shuffle_bytes"]
        local_share = 1 / inputs.num_datanodes
    remote_share = 1 - local_share
    return volume_bytes * (
        local_share / inputs.disk_read_bps
        + remote_share / inputs.network_bps
        + remote_share / inputs.disk_write_bps
    )


def reduce_disk_passes(inputs: Parameters, sizes: Numbers) -> int:
    """
    Times that the merge goes over the disk, Eq. (13) (S16).

    Under mr2 rules once, or never where all fits into the reduce's input buffer (S17).
    """
    if not inputs.mr2:
        return ceil_ratio(sizes["shuffle_bytes"], sizes["merge_threshold_bytes"])
    buffer_bytes = (
        inputs.reduce_buffer_percent * inputs.reduce_heap_bytes * inputs.shuffle_buffer_percent
    )
    return int(sizes["shuffle_bytes"] > buffer_bytes)


def t8_merge_s(inputs: Parameters, sizes: Numbers) -> float:
    """Merge of a reduce, Eq. (13) [s]."""
    in_memory = 1 / inputs.mem_read_bps + 1 / inputs.mem_write_bps
    passes_s = sizes["reduce_disk_passes"] * _round_trip_s_per_byte(inputs)
    return float(sizes["shuffle_bytes"] * (in_memory + passes_s))


def t9_reduce_s(inputs: Parameters, sizes: Numbers) -> float:
    """
    Reduce function and its output, Eq. (14) [s]; on the device, one block of the map (S18).

    Under mr2 rules all blocks of the reduce, at its own time on the device.  The device's time of
    a block is its share of that of the test job.
    """
    shuffle_bytes = sizes["shuffle_bytes"]
    device_seconds = 0.0
    function_seconds = 0.0
    if inputs.reduce_uses_gpu:
        gpu_rounds = 1
        test_bytes = inputs.test_input_bytes
        test_seconds = inputs.map_gpu_s
        if inputs.mr2:
            gpu_rounds = ceil_ratio(sizes["gpu_blocks_per_reduce"], inputs.gpu_block_concurrency)
            test_bytes = inputs.test_map_output_bytes
            test_seconds = inputs.reduce_gpu_s
        block_seconds = inputs.gpu_block_bytes / inputs.gpu_h2d_bps
        if test_bytes:
            block_share = inputs.gpu_block_bytes / test_bytes
            block_seconds += block_share * inputs.gpu_ratio * test_seconds
        device_seconds = gpu_rounds * block_seconds + shuffle_bytes / inputs.gpu_d2h_bps
    if inputs.test_map_output_bytes:
        output_share = shuffle_bytes / inputs.test_map_output_bytes
        function_seconds = output_share * inputs.cpu_ratio * inputs.reduce_s
    write_seconds = sizes["reduce_out_bytes"] * (
        1 / inputs.disk_write_bps + 1 / inputs.mem_read_bps
    )
    read_seconds = shuffle_bytes / inputs.mem_read_bps
    return float(device_seconds + (read_seconds + function_seconds + write_seconds))


def _round_trip_s_per_byte(inputs: Parameters) -> float:
    """A byte from the disk through the memory and back to the disk [s/B]."""
    return (
        1 / inputs.disk_read_bps
        + 1 / inputs.disk_write_bps
        + 1 / inputs.mem_read_bps
        + 1 / inputs.mem_write_bps
    )
