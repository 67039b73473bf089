"""
Equations (1) to (4): a job's producer, transporter and consumer from the times of its waves.

m waves of maps, r of reduces; the copying starts when wave f of the maps has ended (f = 1 in the
paper, more where the slow start of the reduces is late: specification, section 7).
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.base.errors import ModelError
from harness.models.checks import count_field, number_field, range_error, read_fields

METHODS = ("wave", "closed")
WHERE = "ptc waves"

# Outputs of a job with reduces; all but the producer's are 0 without them.
TIMES = (
    "map_s", "context_switch_s", "schedule_map_s", "producer_s", "overlap_window_s",
    "overlap_capacity_s", "leftover_s", "nonoverlap_first_wave_s", "rest_transfer_s", "local_io_s",
    "transporter_s", "consumer_s", "total_s",
)  # fmt: skip
_OF_REDUCES = ("network_copy_wave_s", "local_io_wave_s", "reduce_s")
_PARTS = ("producer_s", "transporter_s", "consumer_s")

_Part = TypeVar("_Part")


@dataclass(frozen=True, kw_only=True)
class Waves:
    """
    Waves of maps and of reduces, and seconds of each of them (`reduce_s`: of all reduce waves).

    *slowstart* is the share of maps that must be done before a reduce starts; without it copying
    starts behind the first wave.
    """

    map_waves: int = count_field(low=1)
    reduce_waves: int = count_field()
    map_wave_s: float = number_field()
    network_copy_wave_s: float = number_field(0.0)
    local_io_wave_s: float = number_field(0.0)
    reduce_s: float = number_field(0.0)
    context_switch_wave_s: float = number_field(0.0)
    schedule_map_wave_s: float = number_field(0.0)
    schedule_reduce_wave_s: float = number_field(0.0)
    reduce_buffer_saving_wave_s: float = number_field(0.0)
    slowstart: float | None = number_field(None, high=1)

    @property
    def open_waves(self) -> int:
        """Waves of maps beside which outputs are copied, m - f; none without reduces."""
        if not self.reduce_waves:
            return 0
        return self.map_waves - first_copied_wave(self.map_waves, self.slowstart)


def first_copied_wave(map_waves: int, slowstart: float | None) -> int:
    """Wave behind whose end the first reduces start, f of section 7; 1 without a *slowstart*."""
    return min(map_waves, max(1, math.ceil((slowstart or 0.0) * map_waves - 1e-9)))


def read_known(part: type[_Part], given: Mapping[str, Any], where: str) -> _Part:
    """The dataclass *part* of *given* fields, checked; ``ModelError`` for one it does not have."""
    checked = read_fields(part, given, where)
    if unknown := given.keys() - checked.keys():
        raise ModelError(f"{min(unknown)} is not a quantity of this model", where=where)
    return part(**checked)


def ptc(given: Mapping[str, Any], method: str = "wave") -> dict[str, Any]:
    """
    Every quantity of the model by name, in seconds, from the fields of `Waves`.

    Without reduce waves the times of copying and reducing may be absent.
    """
    waves = read_known(Waves, given, WHERE)
    for name in _OF_REDUCES:
        if waves.reduce_waves and name not in given:
            raise ModelError(f"{name} is missing", where=WHERE)
    return evaluate_waves(waves, method)


def evaluate_waves(waves: Waves, method: str) -> dict[str, Any]:
    """
    Every quantity of the model for *waves* that have been checked; `warnings` is a list of texts.

    Equation (4): T_PTC = T_producer + T_transporter + T_consumer.  Without reduces nothing is
    copied, and nothing slows the maps down: section 3.4 (ours).
    """
    if method not in METHODS:
        raise range_error("method", method, "wave or closed", WHERE)
    times = producer(waves)
    if waves.reduce_waves:
        times |= transporter(waves, times["producer_s"], method)
        times["consumer_s"] = consumer(waves)
    times["total_s"] = sum(times.get(part, 0.0) for part in _PARTS)
    if not math.isfinite(times["total_s"]):
        raise ModelError("the times are too large for a finite job time", where=WHERE)
    warnings = []
    saved = waves.reduce_waves * waves.reduce_buffer_saving_wave_s
    if waves.reduce_s < saved:
        warnings.append(
            f"reduce_s = {waves.reduce_s:g} is less than the {saved:g} s that the buffer saves:"
            " reduce_s and the buffer are inconsistent"
        )
    counts = {"map_waves": waves.map_waves, "reduce_waves": waves.reduce_waves}
    return counts | dict.fromkeys(TIMES, 0.0) | times | {"warnings": warnings}


def producer(waves: Waves) -> dict[str, float]:
    """Equation (1): T_producer = t_map + t_schedule(m) + t_cs, the last where reduces copy."""
    parts = {
        "map_s": waves.map_waves * waves.map_wave_s,
        "context_switch_s": waves.open_waves * waves.context_switch_wave_s,
        "schedule_map_s": waves.map_waves * waves.schedule_map_wave_s,
    }
    return parts | {"producer_s": sum(parts.values())}


def transporter(waves: Waves, producer_s: float, method: str) -> dict[str, float]:
    """Equation (2): T_transporter = leftover + (m r - m + 1)/(m r) D_s/v + t_lrw(D_s)."""
    last = waves.network_copy_wave_s
    reduce_waves = waves.reduce_waves
    capacity = (waves.map_waves - 1) * last / reduce_waves
    window = closed_window(waves, producer_s) if method == "closed" else wave_window(waves)
    leftover = max(capacity - window, 0.0)
    # (m r - m + 1)/(m r) D_s/v: the last map wave for all reduces, the others for waves 2 to r.
    rest = last + capacity * (reduce_waves - 1)
    local_io_s = waves.map_waves * waves.local_io_wave_s
    return {
        "overlap_window_s": window,
        "overlap_capacity_s": capacity,
        "leftover_s": leftover,
        "nonoverlap_first_wave_s": leftover + last / reduce_waves,
        "rest_transfer_s": rest,
        "local_io_s": local_io_s,
        "transporter_s": leftover + rest + local_io_s,
    }


def closed_window(waves: Waves, producer_s: float) -> float:
    """Time to copy in, closed form of (2): (m-1)/m T_producer + t_lrw(D_s (m-1)/(m r))."""
    open_share = waves.open_waves / waves.map_waves
    local_io_s = waves.map_waves * waves.local_io_wave_s
    return open_share * producer_s + open_share * local_io_s / waves.reduce_waves


def wave_window(waves: Waves) -> float:
    """Time to copy in, wave by wave: the length of all waves behind wave f (section 3.2)."""
    open_waves = waves.open_waves
    wave_parts = (waves.map_wave_s, waves.context_switch_wave_s, waves.schedule_map_wave_s)
    running_s = sum(open_waves * part_s for part_s in wave_parts)
    return running_s + open_waves * waves.local_io_wave_s / waves.reduce_waves


def consumer(waves: Waves) -> float:
    """Equation (3): T_consumer = t_reduce + t_schedule(r) - t_lrw(B_r) r."""
    saved_s = waves.reduce_waves * waves.reduce_buffer_saving_wave_s
    return max(waves.reduce_s - saved_s, 0.0) + waves.reduce_waves * waves.schedule_reduce_wave_s
