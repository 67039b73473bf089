"""
Section 4 of the specification (ours; the paper's is lost): a job in terms of the cluster.

The times of a wave follow from `Quantities`.  All rates are those of the whole cluster while one
wave of reduces copies, in bytes per second.  The quantities of a cell come from the cluster and
the profile, with What-If's tasks and bytes: ``docs/models/mrtuner-ptc.md``, section 12.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile
from harness.models.adapter import around_tasks_s, cell_inputs, pick, profile_number
from harness.models.checks import check_number, count_field, number_field, range_error
from harness.models.ptc.equations import TIMES, Waves, evaluate_waves, read_known
from harness.models.scaling import nearest_cell
from harness.models.whatif.inputs import side_costs
from harness.models.whatif.model import AFTER_SHUFFLE

WHERE = "ptc quantities"
SMALLEST = 2.3e-308  # a rate below it makes times that no float holds
# The rate of all disks together, the cost of one stream, and on which side: what maps have written
# is read there, and written by reduces.
_LOCAL_RATES = {
    "local_read_bps_total": ("local_read_s_per_byte", "map"),
    "local_write_bps_total": ("local_write_s_per_byte", "reduce"),
}


@dataclass(frozen=True, kw_only=True)
class Quantities:
    """
    A job in terms of the cluster: counts, seconds, bytes, bytes per second.

    `reduce_task_s` is a reduce task behind its shuffle; a rate that is infinite costs nothing, and
    one of 0 or less is refused where there is something to move.
    """

    num_maps: int = count_field()
    num_reduces: int = count_field()
    map_slots: int = count_field(low=1)
    reduce_slots: int = count_field()
    map_task_s: float = number_field()
    reduce_task_s: float = number_field()
    shuffle_bytes_total: float = number_field()
    copy_bps_total: float = number_field(low=-math.inf)
    local_read_bps_total: float = number_field(low=-math.inf)
    local_write_bps_total: float = number_field(low=-math.inf)
    context_switch_wave_s: float = number_field(0.0)
    schedule_map_wave_s: float = number_field(0.0)
    schedule_reduce_wave_s: float = number_field(0.0)
    reduce_buffer_bytes_per_wave: float = number_field(0.0)
    slowstart: float | None = number_field(None, high=1)

    @property
    def map_waves(self) -> int:
        """Waves of maps: m = ceil(num_maps / map_slots)."""
        return -(-self.num_maps // self.map_slots)

    @property
    def reduce_waves(self) -> int:
        """Waves of reduces: r = ceil(num_reduces / reduce_slots)."""
        return -(-self.num_reduces // self.reduce_slots) if self.num_reduces else 0


_QUANTITIES = tuple(quantity.name for quantity in fields(Quantities))


def predict_ptc(given: Mapping[str, Any], method: str = "wave") -> dict[str, Any]:
    """Every quantity of the model by name, from those of `Quantities`, which are checked."""
    quantities = read_known(Quantities, given, WHERE)
    if quantities.num_reduces and quantities.reduce_slots < 1:
        wanted = "a whole number of at least 1"
        raise range_error("reduce_slots", quantities.reduce_slots, wanted, WHERE)
    if quantities.shuffle_bytes_total > 0:
        for name in ("copy_bps_total", "local_read_bps_total", "local_write_bps_total"):
            check_number(name, getattr(quantities, name), where=WHERE, low=SMALLEST)
    return evaluate_quantities(quantities, method)


def evaluate_quantities(quantities: Quantities, method: str) -> dict[str, Any]:
    """`predict_ptc` for quantities that have been checked."""
    map_waves = quantities.map_waves
    reduce_waves = quantities.reduce_waves
    wave_times = dict.fromkeys(
        ("network_copy_wave_s", "local_io_wave_s", "reduce_buffer_saving_wave_s"), 0.0
    )
    if map_waves == 0:
        no_waves = {"map_waves": 0, "reduce_waves": 0, "warnings": []}
        return no_waves | wave_times | dict.fromkeys(TIMES, 0.0)
    if reduce_waves:
        wave_times = {
            "network_copy_wave_s": network_copy(quantities) / map_waves,
            "local_io_wave_s": local_io(quantities.shuffle_bytes_total, quantities) / map_waves,
            "reduce_buffer_saving_wave_s": buffer_saving(quantities),
        }
    waves = Waves(
        map_waves=map_waves,
        reduce_waves=reduce_waves,
        map_wave_s=quantities.map_task_s,
        reduce_s=reduce_waves * quantities.reduce_task_s,
        context_switch_wave_s=quantities.context_switch_wave_s,
        schedule_map_wave_s=quantities.schedule_map_wave_s,
        schedule_reduce_wave_s=quantities.schedule_reduce_wave_s,
        slowstart=quantities.slowstart,
        **wave_times,
    )
    return wave_times | evaluate_waves(waves, method)


def network_copy(quantities: Quantities) -> float:
    """D_s / v: seconds in which the network brings all map output, with nothing else going on."""
    return moving_s(quantities.shuffle_bytes_total, quantities.copy_bps_total)


def local_io(size: float, quantities: Quantities) -> float:
    """t_lrw(x): seconds to read *size* bytes of map output and to write them at the reduces."""
    return moving_s(size, quantities.local_read_bps_total, quantities.local_write_bps_total)


def buffer_saving(quantities: Quantities) -> float:
    """t_lrw(min(B_r, D_s / r)): local I/O that the reduce-side buffer saves in a wave (R17)."""
    wave_bytes = quantities.shuffle_bytes_total / quantities.reduce_waves
    return local_io(min(quantities.reduce_buffer_bytes_per_wave, wave_bytes), quantities)


def moving_s(size: float, *rates: float) -> float:
    """Seconds for *size* bytes at each of *rates*: nothing to move takes no time."""
    return sum(size / rate for rate in rates) if size > 0 else 0.0


# Quantities of a cell


def estimate_quantities(
    profile: Profile,
    configuration: JobConfig,
    cluster: Cluster,
    job_input: JobInput,
    tasks: Mapping[str, Any],
) -> tuple[Quantities, list[str]]:
    """Quantities of section 4 from What-If's *tasks*, and warnings of what they rest on."""
    tasks_and_slots = pick(cell_inputs(configuration, cluster, job_input), _QUANTITIES)
    tasks_and_slots["map_task_s"] = tasks["map_task_s"]
    warnings = list[str]()
    rates = dict[str, Any]()
    for rate, (name, side) in _LOCAL_RATES.items():
        cost = side_costs(profile.costs, side).get(name)
        rates[rate] = _rate_of(profile_number(profile, name, cost), cluster.reduce_slots)
        if cost and cost.assumed and configuration.num_reduces:
            warnings.append(f"{name} is assumed: {cost.source}")
    if not configuration.num_reduces:
        nothing: dict[str, Any] = dict.fromkeys(
            (*rates, "copy_bps_total", "reduce_task_s", "shuffle_bytes_total"), 0.0
        )
        return Quantities(**nothing, **tasks_and_slots), warnings
    switching_s, switching_warnings = _context_switch(
        profile, configuration, cluster, job_input, rates
    )
    job = Quantities(
        **tasks_and_slots,
        **rates,
        reduce_task_s=sum(tasks.get(name, 0.0) for name in AFTER_SHUFFLE),
        shuffle_bytes_total=tasks["map_final_bytes"] * job_input.num_splits,
        copy_bps_total=copy_rate(profile, configuration, cluster),
        reduce_buffer_bytes_per_wave=reduce_buffer_bytes(configuration, cluster.reduce_slots),
        context_switch_wave_s=switching_s,
    )
    return job, warnings + switching_warnings


def published_quantities(profile: Profile, body: Quantities) -> Quantities:
    """Quantities of the job as published: with start and end of its tasks and gaps between them."""
    gap_s = profile_number(profile, "task_gap_s", profile.frame.get("task_gap_s"))
    around_reduce_s = around_tasks_s(profile, "reduce") if body.num_reduces else 0.0
    return replace(
        body,
        map_task_s=body.map_task_s + around_tasks_s(profile, "map"),
        reduce_task_s=body.reduce_task_s + around_reduce_s,
        schedule_map_wave_s=gap_s,
        schedule_reduce_wave_s=gap_s,
    )


def copy_rate(profile: Profile, configuration: JobConfig, cluster: Cluster) -> float:
    """
    Network rate v of section 4, in bytes per second of a whole reduce wave.

    min(reduce slots x parallel copies x rate of one copy, nodes x rate of a node's network); the
    rate of copies of the same codec, where there are any.
    """
    names = ["copy_s_per_byte", "copy_s_per_byte_compressed"]
    if configuration.map_output_compressed:
        names.reverse()
    measured = next(name for name in names if name in profile.statistics)
    copiers = cluster.reduce_slots * configuration.parallel_copies
    copy_s_per_byte = profile_number(profile, measured, profile.statistics[measured])
    node_bps = profile_number(profile, "network_bps", profile.statistics["network_bps"], above=True)
    return min(_rate_of(copy_s_per_byte, copiers), cluster.num_nodes * node_bps)


def reduce_buffer_bytes(configuration: JobConfig, reduce_slots: int) -> float:
    """B_r: reduce input that one wave of reduces keeps in memory, in bytes."""
    buffer = configuration.reduce_heap_bytes * configuration.shuffle_buffer_percent
    return reduce_slots * configuration.reduce_buffer_percent * buffer


def _context_switch(
    profile: Profile,
    configuration: JobConfig,
    cluster: Cluster,
    job_input: JobInput,
    rates: Mapping[str, float],
) -> tuple[float, list[str]]:
    """
    Slow-down of a wave of maps by copying, from the nearest profiled job that shows one.

    Less the local I/O of its first reduce wave, which equation (2) counts.  No law is known that
    would bring it to another setting, so it is kept as measured, and a warning says so.
    """
    if configuration.reduce_slowstart >= 1 or job_input.num_splits == 0:
        return 0.0, []
    slowed = [job for job in profile.jobs if job.map_slowdown_s is not None]
    if not slowed:
        return 0.0, ["no profiled job has maps beside copying reduces: context_switch_s is 0"]
    cell, _ = nearest_cell(slowed, configuration, cluster, job_input)
    switching_s = []
    for job in slowed:
        if job.cell == cell:
            share = job.reduce_slots / cluster.reduce_slots  # of the streams that *rates* count
            num_reduces = job.configuration.num_reduces
            reduce_waves = -(-num_reduces // job.reduce_slots) if num_reduces else 1
            waves = max(1, -(-job.num_splits // job.map_slots)) * reduce_waves
            io_s = moving_s(job.shuffle_bytes_total, *(rate * share for rate in rates.values()))
            slowdown_s = check_number(
                "map_slowdown_s", job.map_slowdown_s, where="profile", low=-math.inf
            )
            switching_s.append(slowdown_s - io_s / waves)
    mean_s = math.fsum(switching_s) / len(switching_s)
    return max(0.0, mean_s), [f"context_switch_s as in cell {cell}"]


def _rate_of(cost: float, streams: int) -> float:
    """Bytes per second of *streams* at *cost* seconds per byte; infinite where it costs nothing."""
    return streams / cost if cost > 0 else math.inf
