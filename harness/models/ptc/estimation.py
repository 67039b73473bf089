"""
Section 4's quantities of a job, from the cluster and the profile (ours; the paper's are lost).

    quantity                     from
    ---------------------------  --------------------------------------------------------------
    `map_task_s`                 What-If (90), rules mr2, for this split, buffer and codec
    `reduce_task_s`              What-If's reduce merge, function and write, setup and cleanup,
                                 with nothing kept in memory (`reduce_buffer_percent` = 0)
    `shuffle_bytes_total`        What-If (32) x number of maps
    `copy_bps_total`             min(reduce slots x `parallel_copies` / `copy_s_per_byte`,
                                 nodes x `network_bps`), both measured inside tasks
    `local_read_bps_total`, ...  reduce slots / What-If's local costs: so many streams at once
    `schedule_*_wave_s`          `task_overhead_s`, the gap between two tasks of a slot
    `context_switch_wave_s`      measured in the nearest profiled job (distance: `nearest`) that
                                 shows it, less the local I/O that equation (2) counts by itself
    `reduce_buffer_bytes...`     reduce slots x share kept x shuffle buffer of a task
    `slowstart`                  the configuration's; at 1.0 nothing overlaps
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from harness.models.checks import check_number
from harness.models.nearest import nearest_cell
from harness.models.ptc.physical import Quantities, local_io
from harness.models.whatif.evaluation import evaluate
from harness.models.whatif.inputs import Statistics
from harness.records.prediction import Cluster, JobConfig, JobInput
from harness.records.profile import Profile, ProfiledJob

OVERHEADS = ("task_overhead_s", "job_overhead_s")
_OF_LOCAL_IO = ("local_read_s_per_byte", "local_write_s_per_byte")
_COPYING = (
    "copy_bps_total", "local_read_bps_total", "local_write_bps_total", "reduce_task_s",
    "shuffle_bytes_total",
)  # fmt: skip
_AFTER_SHUFFLE = (
    "reduce_merge_s", "reduce_function_s", "reduce_write_s", "setup_cpu_s", "cleanup_cpu_s",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question: what a model is given."""

    profile: Profile
    configuration: JobConfig
    cluster: Cluster
    job_input: JobInput


def whatif_tasks(asked: Asked) -> tuple[dict[str, Any], list[str]]:
    """What-If's tasks of the job, rules mr2, with no reduce input kept in memory; its warnings."""
    config = asked.configuration.model_dump() | {
        "num_maps": asked.job_input.num_splits,
        "split_bytes": asked.job_input.split_bytes,
        "reduce_buffer_percent": 0.0,
    }
    size = {
        "num_nodes": 1,
        "map_slots_per_node": asked.cluster.map_slots,
        "reduce_slots_per_node": asked.cluster.reduce_slots,
    }
    mine = {f.name for f in fields(Statistics)}
    flow = {n: s.value for n, s in asked.profile.statistics.items() if n in mine}
    costs = {n: s.value for n, s in asked.profile.costs.items()}
    answer = evaluate(flow, costs, config, size, "mr2")
    # What-If's shuffle is not used, so neither is its network.
    notes = [n for n in answer["warnings"] if "network_s_per_byte" not in n]
    return answer, notes


def quantities(asked: Asked, tasks: Mapping[str, Any]) -> tuple[Quantities, list[str]]:
    """Quantities of section 4, and warnings of what they rest on."""
    config, cluster = asked.configuration, asked.cluster
    gap = overhead(asked.profile, "task_overhead_s")
    around: dict[str, Any] = {
        "num_maps": asked.job_input.num_splits,
        "num_reduces": config.num_reduces,
        "map_slots": cluster.map_slots,
        "reduce_slots": cluster.reduce_slots,
        "map_task_s": tasks["map_task_s"],
        "schedule_map_wave_s": gap,
        "slowstart": config.reduce_slowstart,
    }
    notes = [f"no {n}: taken as 0" for n in OVERHEADS if n not in asked.profile.overheads]
    if not config.num_reduces:
        return Quantities(**(dict.fromkeys(_COPYING, 0.0) | around)), notes
    rates = _local_rates(asked.profile, cluster.reduce_slots)
    job = Quantities(
        **around,
        **rates,
        reduce_task_s=sum(tasks.get(name, 0.0) for name in _AFTER_SHUFFLE),
        shuffle_bytes_total=tasks["map_final_bytes"] * asked.job_input.num_splits,
        copy_bps_total=copy_rate(asked.profile, config, cluster),
        schedule_reduce_wave_s=gap,
        reduce_buffer_bytes_per_wave=reduce_buffer_bytes(config, cluster.reduce_slots),
    )
    switching, told = _context_switch(asked, rates)
    notes += _local_notes(asked.profile)
    return replace(job, context_switch_wave_s=switching), [*notes, *told]


def overhead(profile: Profile, name: str) -> float:
    """One of `OVERHEADS` in seconds, 0 where the profile does not have it."""
    return _value(profile, name) if name in profile.overheads else 0.0


def _value(profile: Profile, name: str) -> float:
    """A number of the profile; ``ModelError`` where it is negative or not finite."""
    found = {**profile.statistics, **profile.costs, **profile.overheads}[name]
    return check_number(name, found.value, where=f"profile of {profile.workload!r}")


def copy_rate(profile: Profile, config: JobConfig, cluster: Cluster) -> float:
    """
    Network rate v of section 4, in bytes per second of a whole reduce wave.

    min(reduce slots x parallel copies x rate of one copy, nodes x rate of a node's network); copies
    of the same codec tell, where there are any.
    """
    names = ("copy_s_per_byte", "copy_s_per_byte_compressed")
    order = names[::-1] if config.map_output_compressed else names
    known = next(n for n in order if n in profile.statistics)
    copiers = cluster.reduce_slots * config.parallel_copies
    of_copiers = _rate(_value(profile, known), copiers)
    of_node = profile.statistics["network_bps"].value
    where = f"profile of {profile.workload!r}"
    of_network = cluster.num_nodes * check_number("network_bps", of_node, where=where, above=True)
    return min(of_copiers, of_network)


def reduce_buffer_bytes(config: JobConfig, reduce_slots: int) -> float:
    """B_r: reduce input that one wave of reduces keeps in memory, in bytes."""
    buffer = config.reduce_heap_bytes * config.shuffle_buffer_percent
    return reduce_slots * config.reduce_buffer_percent * buffer


def _local_rates(profile: Profile, streams: int) -> dict[str, Any]:
    """Rates of all disks together, from the costs of one of *streams* tasks that share them."""
    costs = [_value(profile, n) if n in profile.costs else 0.0 for n in _OF_LOCAL_IO]
    names = ("local_read_bps_total", "local_write_bps_total")
    return {name: _rate(cost, streams) for name, cost in zip(names, costs, strict=True)}


def _rate(cost: float, streams: int) -> float:
    """Bytes per second of *streams* at *cost* seconds per byte; infinite where it costs nothing."""
    return streams / cost if cost > 0 else math.inf


def _local_notes(profile: Profile) -> list[str]:
    return [
        f"{n} is assumed: the profile knows only the sum of its group"
        for n in _OF_LOCAL_IO
        if n in profile.costs and profile.costs[n].assumed
    ]


def _context_switch(asked: Asked, rates: Mapping[str, Any]) -> tuple[float, list[str]]:
    """
    Slow-down of a wave of maps by copying, from the nearest profiled job that shows one.

    No law is known that would bring it to another setting, so it is kept as measured, and said so.
    """
    if asked.configuration.reduce_slowstart >= 1 or asked.job_input.num_splits == 0:
        return 0.0, []
    told = [job for job in asked.profile.jobs if job.map_slowdown_s is not None]
    if not told:
        return 0.0, ["no profiled job has maps beside copying reduces: context_switch_s is 0"]
    cell, _ = nearest_cell(told, asked.configuration, asked.cluster, asked.job_input)
    same = [_switching(job, rates, asked.cluster.reduce_slots) for job in told if job.cell == cell]
    return max(0.0, math.fsum(same) / len(same)), [f"context_switch_s as in cell {cell}"]


def _switching(job: ProfiledJob, rates: Mapping[str, Any], streams: int) -> float:
    """Maps' slow-down in *job*, less the local I/O of its first reduce wave that (2) counts."""
    share = job.reduce_slots / streams
    profiled = Quantities(
        num_maps=job.num_splits,
        num_reduces=job.configuration.num_reduces,
        map_slots=job.map_slots,
        reduce_slots=job.reduce_slots,
        map_task_s=0.0,
        reduce_task_s=0.0,
        shuffle_bytes_total=job.shuffle_bytes_total,
        copy_bps_total=0.0,
        local_read_bps_total=rates["local_read_bps_total"] * share,
        local_write_bps_total=rates["local_write_bps_total"] * share,
    )
    waves = max(1, profiled.map_waves) * max(1, profiled.reduce_waves)
    slower = check_number("map_slowdown_s", job.map_slowdown_s, where="profile", low=-math.inf)
    return slower - local_io(profiled, profiled.shuffle_bytes_total) / waves
