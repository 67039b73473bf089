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
from dataclasses import dataclass
from typing import Any

from harness.models.checks import check_number
from harness.models.nearest import nearest_cell
from harness.models.ptc.physical import Quantities, local_io
from harness.models.whatif import evaluate
from harness.models.whatif.model import AFTER_SHUFFLE, one_node, statistics_and_costs
from harness.records.prediction import Cluster, JobConfig, JobInput
from harness.records.profile import Profile, ProfiledJob

OVERHEADS = ("task_overhead_s", "job_overhead_s")
# The rate of all disks together, and the cost of one stream.
_LOCAL_RATES = {
    "local_read_bps_total": "local_read_s_per_byte",
    "local_write_bps_total": "local_write_s_per_byte",
}


@dataclass(frozen=True, kw_only=True)
class ModelInputs:
    """All that a model is given for a cell."""

    profile: Profile
    configuration: JobConfig
    cluster: Cluster
    job_input: JobInput


def whatif_tasks(inputs: ModelInputs) -> tuple[dict[str, Any], list[str]]:
    """What-If's tasks of the job, rules mr2, with no reduce input kept in memory; its warnings."""
    config = inputs.configuration.model_dump() | {
        "num_maps": inputs.job_input.num_splits,
        "split_bytes": inputs.job_input.split_bytes,
        "reduce_buffer_percent": 0.0,
    }
    nodes = one_node(inputs.cluster.map_slots, inputs.cluster.reduce_slots)
    tasks = evaluate(*statistics_and_costs(inputs.profile), config, nodes, "mr2")
    # What-If's shuffle is not used, so neither is its network.
    return tasks, [text for text in tasks["warnings"] if "network_s_per_byte" not in text]


def estimate_quantities(
    inputs: ModelInputs, tasks: Mapping[str, Any]
) -> tuple[Quantities, list[str]]:
    """Quantities of section 4 from What-If's *tasks*, and warnings of what they rest on."""
    profile, config, cluster = inputs.profile, inputs.configuration, inputs.cluster
    gap_s = overhead(profile, "task_overhead_s")
    of_maps: dict[str, Any] = {
        "num_maps": inputs.job_input.num_splits,
        "num_reduces": config.num_reduces,
        "map_slots": cluster.map_slots,
        "reduce_slots": cluster.reduce_slots,
        "map_task_s": tasks["map_task_s"],
        "schedule_map_wave_s": gap_s,
        "slowstart": config.reduce_slowstart,
    }
    warnings = [f"no {name}: taken as 0" for name in OVERHEADS if name not in profile.overheads]
    rates: dict[str, Any] = {
        rate: _rate(_value(profile, cost) if cost in profile.costs else 0.0, cluster.reduce_slots)
        for rate, cost in _LOCAL_RATES.items()
    }
    if not config.num_reduces:
        nothing: dict[str, Any] = dict.fromkeys(
            (*rates, "copy_bps_total", "reduce_task_s", "shuffle_bytes_total"), 0.0
        )
        return Quantities(**nothing, **of_maps), warnings
    warnings += [
        f"{cost} is assumed: the profile knows only the sum of its group"
        for cost in _LOCAL_RATES.values()
        if cost in profile.costs and profile.costs[cost].assumed
    ]
    switching_s, switching_warnings = _context_switch(inputs, rates)
    job = Quantities(
        **of_maps,
        **rates,
        reduce_task_s=sum(tasks.get(name, 0.0) for name in AFTER_SHUFFLE),
        shuffle_bytes_total=tasks["map_final_bytes"] * inputs.job_input.num_splits,
        copy_bps_total=copy_rate(profile, config, cluster),
        schedule_reduce_wave_s=gap_s,
        reduce_buffer_bytes_per_wave=reduce_buffer_bytes(config, cluster.reduce_slots),
        context_switch_wave_s=switching_s,
    )
    return job, warnings + switching_warnings


def overhead(profile: Profile, name: str) -> float:
    """One of `OVERHEADS` in seconds, 0 where the profile does not have it."""
    return _value(profile, name) if name in profile.overheads else 0.0


def copy_rate(profile: Profile, config: JobConfig, cluster: Cluster) -> float:
    """
    Network rate v of section 4, in bytes per second of a whole reduce wave.

    min(reduce slots x parallel copies x rate of one copy, nodes x rate of a node's network); the
    rate of copies of the same codec, where there are any.
    """
    names = ["copy_s_per_byte", "copy_s_per_byte_compressed"]
    if config.map_output_compressed:
        names.reverse()
    measured = next(name for name in names if name in profile.statistics)
    of_copiers = _rate(_value(profile, measured), cluster.reduce_slots * config.parallel_copies)
    node_bps = profile.statistics["network_bps"].value
    where = f"profile of {profile.workload!r}"
    of_network = cluster.num_nodes * check_number("network_bps", node_bps, where=where, above=True)
    return min(of_copiers, of_network)


def reduce_buffer_bytes(config: JobConfig, reduce_slots: int) -> float:
    """B_r: reduce input that one wave of reduces keeps in memory, in bytes."""
    buffer = config.reduce_heap_bytes * config.shuffle_buffer_percent
    return reduce_slots * config.reduce_buffer_percent * buffer


def _context_switch(inputs: ModelInputs, rates: Mapping[str, Any]) -> tuple[float, list[str]]:
    """
    Slow-down of a wave of maps by copying, from the nearest profiled job that shows one.

    Less the local I/O of its first reduce wave, which equation (2) counts.  No law is known that
    would bring it to another setting, so it is kept as measured, and a warning says so.
    """
    if inputs.configuration.reduce_slowstart >= 1 or inputs.job_input.num_splits == 0:
        return 0.0, []
    slowed = [job for job in inputs.profile.jobs if job.map_slowdown_s is not None]
    if not slowed:
        return 0.0, ["no profiled job has maps beside copying reduces: context_switch_s is 0"]
    cell, _ = nearest_cell(slowed, inputs.configuration, inputs.cluster, inputs.job_input)
    switching_s = [
        check_number("map_slowdown_s", job.map_slowdown_s, where="profile", low=-math.inf)
        - _local_io_of_first_wave(job, rates, inputs.cluster.reduce_slots)
        for job in slowed
        if job.cell == cell
    ]
    mean_s = math.fsum(switching_s) / len(switching_s)
    return max(0.0, mean_s), [f"context_switch_s as in cell {cell}"]


def _local_io_of_first_wave(job: ProfiledJob, rates: Mapping[str, Any], reduce_slots: int) -> float:
    """Seconds of local I/O per map wave of a profiled job, for its first reduce wave."""
    share = job.reduce_slots / reduce_slots  # of the streams that *rates* count
    profiled = Quantities(
        num_maps=job.num_splits,
        num_reduces=job.configuration.num_reduces,
        map_slots=job.map_slots,
        reduce_slots=job.reduce_slots,
        map_task_s=0.0,
        reduce_task_s=0.0,
        shuffle_bytes_total=job.shuffle_bytes_total,
        copy_bps_total=0.0,
        **{name: rate * share for name, rate in rates.items()},
    )
    waves = max(1, profiled.map_waves) * max(1, profiled.reduce_waves)
    return local_io(profiled, profiled.shuffle_bytes_total) / waves


def _rate(cost: float, streams: int) -> float:
    """Bytes per second of *streams* at *cost* seconds per byte; infinite where it costs nothing."""
    return streams / cost if cost > 0 else math.inf


def _value(profile: Profile, name: str) -> float:
    """A number of the profile; ``ModelError`` where it is negative or not finite."""
    known = {**profile.statistics, **profile.costs, **profile.overheads}
    return check_number(name, known[name].value, where=f"profile of {profile.workload!r}")
