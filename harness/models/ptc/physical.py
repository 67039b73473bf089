"""
Section 4 of the specification (ours): the times of a wave from tasks, bytes and rates.

All rates are those of the whole cluster while one wave of reduces copies, in bytes per second.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_count, check_number, range_error
from harness.models.ptc.equations import TIMES, check_method, ptc

WHERE = "ptc quantities"
SMALLEST = 2.3e-308  # a rate below it makes times that no float holds


def _count(low: int = 0) -> Any:
    return field(metadata={"check": check_count, "limits": {"low": low}})


def _number(default: Any = MISSING, **limits: Any) -> Any:
    return field(default=default, metadata={"check": check_number, "limits": limits})


def _rate() -> Any:
    """Field of a rate: 0 and less are refused where there is something to move."""
    return _number(low=-math.inf)


@dataclass(frozen=True, kw_only=True)
class Quantities:
    """
    A job in terms of the cluster: counts, seconds, bytes, bytes per second.

    `reduce_task_s` is a reduce task behind its shuffle; a rate that is infinite costs nothing.
    """

    num_maps: int = _count()
    num_reduces: int = _count()
    map_slots: int = _count(low=1)
    reduce_slots: int = _count()
    map_task_s: float = _number()
    reduce_task_s: float = _number()
    shuffle_bytes_total: float = _number()
    copy_bps_total: float = _rate()
    local_read_bps_total: float = _rate()
    local_write_bps_total: float = _rate()
    context_switch_wave_s: float = _number(0.0)
    schedule_map_wave_s: float = _number(0.0)
    schedule_reduce_wave_s: float = _number(0.0)
    reduce_buffer_bytes_per_wave: float = _number(0.0)
    slowstart: float | None = _number(None, high=1)

    @property
    def map_waves(self) -> int:
        """Waves of maps: m = ceil(num_maps / map_slots)."""
        return -(-self.num_maps // self.map_slots)

    @property
    def reduce_waves(self) -> int:
        """Waves of reduces: r = ceil(num_reduces / reduce_slots)."""
        return -(-self.num_reduces // self.reduce_slots) if self.num_reduces else 0


def predict_ptc(quantities: Mapping[str, Any], method: str = "wave") -> dict[str, Any]:
    """
    Every quantity of the model by name, from those of `Quantities`.

    ``ModelError`` (a ``ValueError``) names a field that is missing, unknown or outside its range.
    """
    return evaluate_quantities(read_quantities(quantities), method)


def read_quantities(given: Mapping[str, Any]) -> Quantities:
    """
    Check *given* quantities: their ranges, and that reduces have slots.

    Rates need to be above 0 only where there is something to move.
    """
    if unknown := given.keys() - {each.name for each in fields(Quantities)}:
        raise ModelError(f"{min(unknown)} is not a quantity of this model", where=WHERE)
    values: dict[str, Any] = {}
    for each in fields(Quantities):
        value = given.get(each.name, each.default)
        if value is MISSING:
            raise ModelError(f"{each.name} is missing", where=WHERE)
        check, limits = each.metadata["check"], each.metadata["limits"]
        is_absent = value is None and each.default is None
        values[each.name] = None if is_absent else check(each.name, value, where=WHERE, **limits)
    quantities = Quantities(**values)
    if quantities.num_reduces and quantities.reduce_slots < 1:
        raise range_error(
            "reduce_slots", quantities.reduce_slots, "a whole number of at least 1", WHERE
        )
    if quantities.shuffle_bytes_total > 0:
        for name in ("copy_bps_total", "local_read_bps_total", "local_write_bps_total"):
            check_number(name, values[name], where=WHERE, low=SMALLEST)
    return quantities


def evaluate_quantities(quantities: Quantities, method: str) -> dict[str, Any]:
    """`predict_ptc` for quantities that have been checked."""
    check_method(method)
    map_waves, reduce_waves = quantities.map_waves, quantities.reduce_waves
    wave_times = dict.fromkeys(
        ("network_copy_wave_s", "local_io_wave_s", "reduce_buffer_saving_wave_s"), 0.0
    )
    if map_waves == 0:
        no_waves = {"map_waves": 0, "reduce_waves": 0, "warnings": []}
        return no_waves | wave_times | dict.fromkeys(TIMES, 0.0)
    if reduce_waves:
        wave_times = {
            "network_copy_wave_s": network_copy(quantities) / map_waves,
            "local_io_wave_s": local_io(quantities, quantities.shuffle_bytes_total) / map_waves,
            "reduce_buffer_saving_wave_s": buffer_saving(quantities),
        }
    times = ptc(
        map_waves,
        reduce_waves,
        map_wave_s=quantities.map_task_s,
        reduce_s=reduce_waves * quantities.reduce_task_s,
        context_switch_wave_s=quantities.context_switch_wave_s,
        schedule_map_wave_s=quantities.schedule_map_wave_s,
        schedule_reduce_wave_s=quantities.schedule_reduce_wave_s,
        slowstart=quantities.slowstart,
        method=method,
        **wave_times,
    )
    return wave_times | times


def network_copy(quantities: Quantities) -> float:
    """D_s / v: seconds in which the network brings all map output, with nothing else going on."""
    return _seconds(quantities.shuffle_bytes_total, quantities.copy_bps_total)


def local_io(quantities: Quantities, size: float) -> float:
    """t_lrw(x): seconds to read *size* bytes of map output and to write them at the reduces."""
    return _seconds(size, quantities.local_read_bps_total) + _seconds(
        size, quantities.local_write_bps_total
    )


def buffer_saving(quantities: Quantities) -> float:
    """t_lrw(min(B_r, D_s / r)): local I/O that the reduce-side buffer saves in a wave (R17)."""
    most = quantities.shuffle_bytes_total / quantities.reduce_waves
    return local_io(quantities, min(quantities.reduce_buffer_bytes_per_wave, most))


def _seconds(size: float, rate: float) -> float:
    """Nothing to move takes no time, whatever the rate."""
    return size / rate if size > 0 else 0.0
