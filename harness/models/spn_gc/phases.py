"""
The nine phase means, Eqs. (5) to (14), under both rule sets.

Seconds and bytes; symbols in the package's docstring.  An equation whose form differs under mr2
rules is two functions, the second with an ``_mr2`` at its end.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from typing import Any

from harness.errors import ModelError
from harness.models.merge import inter_merge
from harness.models.spn_gc.inputs import MB, WHERE, Parameters, ceil_ratio, read_parameters

METADATA_BYTES = 16  # of the sort buffer, per record

PHASES = (
    "t1_load_s", "t2_read_s", "t3_to_gpu_s", "t4_gpu_s", "t5_from_gpu_s", "t6_spill_s",
    "t7_shuffle_s", "t8_merge_s", "t9_reduce_s",
)  # fmt: skip
_OF_REDUCES = PHASES[6:]

Numbers = dict[str, Any]


def spn_phases(parameters: Mapping[str, Any], rules: str = "paper") -> Numbers:
    """
    Phase means, their sum, and the quantities between, by the specification's names.

    *rules* are ``paper`` or ``mr2``.  ``ModelError`` names a parameter that is missing or outside
    its range.  Without reduces `t7_shuffle_s`, `t8_merge_s` and `t9_reduce_s` are 0.
    """
    p = read_parameters(parameters, rules)
    n = sizes(p)
    n |= _paper(p, n) if rules == "paper" else _mr2(p, n)
    if not p.num_reduces:
        n |= dict.fromkeys(_OF_REDUCES, 0.0)
    n["sum_of_means_s"] = sum(n[name] for name in PHASES)
    if not math.isfinite(n["sum_of_means_s"]):
        raise ModelError("the phase means are beyond all floats", where=WHERE)
    return n


def num_maps(p: Parameters) -> int:
    """Map tasks, Eq. (5)."""
    return ceil_ratio(p.input_bytes, p.split_bytes)


def local_read_fraction(p: Parameters) -> float:
    """A: probability that a split is on the local disk; 1 at most (S04)."""
    return min(1.0, p.replication / p.num_datanodes)


def sizes(p: Parameters) -> Numbers:
    """Bytes and counts that both rule sets share, [B]."""
    maps, reduces = num_maps(p), p.num_reduces
    shuffle = p.scale * p.test_map_output_bytes * p.m_test / reduces if reduces else 0.0
    return {
        "num_maps": maps,
        "local_read_fraction": local_read_fraction(p),
        "scale": p.scale,
        "t1_load_s": t1_load_s(p),
        "gpu_blocks_per_split": ceil_ratio(p.split_bytes, p.gpu_block_bytes),
        "gpu_block_s": gpu_block_s(p),
        "metadata_bytes": METADATA_BYTES * p.scale / maps * p.test_map_spilled_records,
        "map_out_bytes_per_task": p.scale * p.test_map_bytes / maps,
        "shuffle_bytes": shuffle,
        "reduce_out_bytes": p.scale * p.test_reduce_bytes / reduces if reduces else 0.0,
        "merge_threshold_bytes": (
            p.reduce_heap_bytes * p.shuffle_buffer_percent * p.shuffle_merge_percent
        ),
        "gpu_blocks_per_reduce": ceil_ratio(shuffle, p.gpu_block_bytes),
    }


def _paper(p: Parameters, n: Numbers) -> Numbers:
    found: Numbers = {
        "t2_read_s": t2_read_s(p),
        "t3_to_gpu_s": t3_to_gpu_s(p),
        "t4_gpu_s": n["gpu_block_s"],
        "t5_from_gpu_s": t5_from_gpu_s(p),
    }
    found |= spills(p, n)
    found["t6_spill_s"] = t6_spill_s(p, found)
    found["t7_shuffle_s"] = t7_shuffle_s(p)
    found["reduce_disk_passes"] = reduce_disk_passes(n)
    found["t8_merge_s"] = t8_merge_s(p, n["shuffle_bytes"], found["reduce_disk_passes"])
    found["t9_reduce_s"] = t9_reduce_s(p, n)
    return found


def _mr2(p: Parameters, n: Numbers) -> Numbers:
    found: Numbers = {
        "t2_read_s": t2_read_s_mr2(p),
        "t3_to_gpu_s": t3_to_gpu_s_mr2(p),
        "t4_gpu_s": t4_gpu_s_mr2(p, n),
        "t5_from_gpu_s": t5_from_gpu_s_mr2(p, n["map_out_bytes_per_task"]),
    }
    found |= spills_mr2(p, n)
    found["t6_spill_s"] = t6_spill_s_mr2(p, n, found["merge_passes_over_data"])
    found["t7_shuffle_s"] = t7_shuffle_s_mr2(p, n["shuffle_bytes"])
    found["reduce_disk_passes"] = reduce_disk_passes_mr2(p, n["shuffle_bytes"])
    found["t8_merge_s"] = t8_merge_s(p, n["shuffle_bytes"], found["reduce_disk_passes"])
    found["t9_reduce_s"] = t9_reduce_s_mr2(p, n)
    return found


# Phases 1 to 5: load, read, host to device, device, device to host


def t1_load_s(p: Parameters) -> float:
    """Loading, once per job, Eq. (6) [s]."""
    return p.load_s + p.upload_s


def t2_read_s(p: Parameters) -> float:
    """Reading a remote split, Eq. (7) [s]; the maximum over equal maps is one of them (S02)."""
    remote = 1 - local_read_fraction(p)
    return remote * p.split_bytes * (1 / p.disk_read_bps + 1 / p.network_bps + 1 / p.disk_write_bps)


def t2_read_s_mr2(p: Parameters) -> float:
    """Reading a remote split as a stream: nothing is written on the way (S03) [s]."""
    remote = 1 - local_read_fraction(p)
    return remote * p.split_bytes * (1 / p.disk_read_bps + 1 / p.network_bps)


def t3_to_gpu_s(p: Parameters) -> float:
    """Map function on the CPU, one block to the device, Eq. (8) [s]."""
    return (
        p.split_bytes * (1 / p.disk_read_bps + 1 / p.mem_read_bps)
        + p.cpu_ratio * p.map_s
        + p.gpu_block_bytes / p.gpu_h2d_bps
    )


def t3_to_gpu_s_mr2(p: Parameters) -> float:
    """The same with the local share of the disk's reads (S03) and the whole split (S05) [s]."""
    return (
        p.split_bytes * (local_read_fraction(p) / p.disk_read_bps + 1 / p.mem_read_bps)
        + p.cpu_ratio * p.map_s
        + p.split_bytes / p.gpu_h2d_bps
    )


def gpu_block_s(p: Parameters) -> float:
    """One block on the device: phase 4 of the paper, whose blocks run side by side, Eq. (9) [s]."""
    share = p.gpu_block_bytes / p.test_input_bytes
    return p.gpu_block_bytes / p.gpu_mem_read_bps + share * p.gpu_ratio * p.map_gpu_s


def t4_gpu_s_mr2(p: Parameters, n: Numbers) -> float:
    """All blocks of a split, so many at once (S06) [s]."""
    rounds: int = ceil_ratio(n["gpu_blocks_per_split"], p.gpu_block_concurrency)
    return float(rounds * n["gpu_block_s"])


def t5_from_gpu_s(p: Parameters) -> float:
    """Device to host, Eq. (10) [s]."""
    return p.split_bytes * (1 / p.gpu_d2h_bps + 1 / p.disk_write_bps + 1 / p.mem_write_bps)


def t5_from_gpu_s_mr2(p: Parameters, out: float) -> float:
    """The map's output, not its split; the spill writes the disk (S08) [s]."""
    return out * (1 / p.gpu_d2h_bps + 1 / p.mem_write_bps)


# Phase 6: spill and merge


def spills(p: Parameters, n: Numbers) -> Numbers:
    """Buffers, spills and merges before Eq. (11) (S11)."""
    metadata = n["metadata_bytes"]
    data = max(0.0, n["map_out_bytes_per_task"] - metadata)
    space = p.sort_buffer_mb * MB
    for_metadata = space * p.sort_record_percent * p.sort_spill_percent
    for_data = space * (1 - p.sort_record_percent) * p.sort_spill_percent
    number = max(ceil_ratio(metadata, for_metadata), ceil_ratio(data, for_data))
    return {
        "metadata_buffer_bytes": for_metadata,
        "data_buffer_bytes": for_data,
        "data_bytes": data,
        "spill_total_bytes": metadata + data,
        "num_spills": number,
        "num_merges": ceil_ratio(number, p.merge_factor),
    }


def t6_spill_s(p: Parameters, s: Numbers) -> float:
    """Spills and merges, each of the whole volume, Eq. (11) (S12, S13) [s]."""
    spill = 1 / p.mem_read_bps + 1 / p.disk_write_bps
    volume = s["spill_total_bytes"]
    return float(volume * (s["num_spills"] * spill + s["num_merges"] * _around(p)))


def spills_mr2(p: Parameters, n: Numbers) -> Numbers:
    """Spills of one buffer, and how often the merge passes over the data (S13)."""
    space = p.sort_buffer_mb * MB * p.sort_spill_percent
    number = ceil_ratio(n["map_out_bytes_per_task"] + n["metadata_bytes"], space)
    reads = float(inter_merge(float(number), float(p.merge_factor)))
    passes = 0.0 if number <= 1 else 1 + reads / number
    return {"num_spills": number, "merge_passes_over_data": passes}


def t6_spill_s_mr2(p: Parameters, n: Numbers, passes: float) -> float:
    """Each byte once, and once per pass of the merge (S12) [s]."""
    out = n["map_out_bytes_per_task"]
    return float(out * (1 / p.mem_read_bps + 1 / p.disk_write_bps + passes * _around(p)))


# Phases 7 to 9: shuffle, merge, reduce


def t7_shuffle_s(p: Parameters) -> float:
    """Copying the input of a reduce, Eq. (12) [s] (S28)."""
    if not p.num_reduces:
        return 0.0
    volume = p.scale / p.num_reduces * p.test_map_output_bytes
    return _copied(p, volume, local_read_fraction(p))


def t7_shuffle_s_mr2(p: Parameters, shuffle_bytes: float) -> float:
    """The same; one node's share of the map output is local (S15) [s]."""
    return _copied(p, shuffle_bytes, 1 / p.num_datanodes)


def reduce_disk_passes(n: Numbers) -> int:
    """Times that the merge goes over the disk, Eq. (13) (S16)."""
    return ceil_ratio(n["shuffle_bytes"], n["merge_threshold_bytes"])


def reduce_disk_passes_mr2(p: Parameters, shuffle_bytes: float) -> int:
    """Once, or never where all fits into the reduce's input buffer (S17)."""
    kept = p.reduce_buffer_percent * p.reduce_heap_bytes * p.shuffle_buffer_percent
    return 0 if shuffle_bytes <= kept else 1


def t8_merge_s(p: Parameters, shuffle_bytes: float, passes: int) -> float:
    """Merge of a reduce, Eq. (13) [s]."""
    in_memory = 1 / p.mem_read_bps + 1 / p.mem_write_bps
    return shuffle_bytes * (in_memory + passes * _around(p))


def t9_reduce_s(p: Parameters, n: Numbers) -> float:
    """Reduce function and its output, Eq. (14) [s]; on the device, one block of the map (S18)."""
    on_device = 0.0
    if p.reduce_uses_gpu:
        share = p.gpu_block_bytes / p.test_input_bytes
        on_device = (
            p.gpu_block_bytes / p.gpu_h2d_bps
            + share * p.gpu_ratio * p.map_gpu_s
            + n["shuffle_bytes"] / p.gpu_d2h_bps
        )
    return on_device + _reduced(p, n)


def t9_reduce_s_mr2(p: Parameters, n: Numbers) -> float:
    """The same with all blocks of the reduce, at its own time on the device (S18) [s]."""
    on_device = 0.0
    if p.reduce_uses_gpu:
        rounds = ceil_ratio(n["gpu_blocks_per_reduce"], p.gpu_block_concurrency)
        block = p.gpu_block_bytes / p.gpu_h2d_bps
        if p.test_map_output_bytes:
            share = p.gpu_block_bytes / p.test_map_output_bytes
            block += share * p.gpu_ratio * p.reduce_gpu_s
        on_device = rounds * block + n["shuffle_bytes"] / p.gpu_d2h_bps
    return on_device + _reduced(p, n)


def _around(p: Parameters) -> float:
    """A byte from the disk through the memory and back [s/B]."""
    return 1 / p.disk_read_bps + 1 / p.disk_write_bps + 1 / p.mem_read_bps + 1 / p.mem_write_bps


def _copied(p: Parameters, volume: float, local: float) -> float:
    remote = 1 - local
    return volume * (local / p.disk_read_bps + remote / p.network_bps + remote / p.disk_write_bps)


def _reduced(p: Parameters, n: Numbers) -> float:
    """Reading, the function on the CPU, writing: the terms that Eq. (14) always has."""
    function = 0.0
    if p.test_map_output_bytes:
        function = n["shuffle_bytes"] / p.test_map_output_bytes * p.cpu_ratio * p.reduce_s
    written = n["reduce_out_bytes"] * (1 / p.disk_write_bps + 1 / p.mem_read_bps)
    return float(n["shuffle_bytes"] / p.mem_read_bps + function + written)
