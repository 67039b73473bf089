"""
Equations (1) to (4): a job's producer, transporter and consumer from the times of its waves.

m waves of maps, r of reduces; the copying starts when wave f of the maps has ended (f = 1 in the
paper, more where the slow start of the reduces is late: specification, section 7).
"""

from __future__ import annotations

import math

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_count, check_number, range_error

METHODS = ("wave", "closed")
WHERE = "ptc waves"

# Outputs of a job with reduces; all but the producer's are 0 without them.
TIMES = (
    "map_s", "context_switch_s", "schedule_map_s", "producer_s", "overlap_window_s",
    "overlap_capacity_s", "leftover_s", "nonoverlap_first_wave_s", "rest_transfer_s", "local_io_s",
    "transporter_s", "consumer_s", "total_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PerWave:
    """Seconds of *waves* waves of maps, which count from 1: one number for all, or a tuple."""

    waves: int
    seconds: float | tuple[float, ...]

    @property
    def is_equal(self) -> bool:
        """Whether all waves have the same time."""
        return isinstance(self.seconds, float)

    @property
    def total(self) -> float:
        """Sum over all waves."""
        return self.between(0, self.waves)

    def between(self, after: int, last: int) -> float:
        """Sum over the waves behind wave *after* up to wave *last*."""
        if isinstance(self.seconds, float):
            return (last - after) * self.seconds
        return math.fsum(self.seconds[after:last])

    def of(self, wave: int) -> float:
        """Time of one wave."""
        return self.seconds if isinstance(self.seconds, float) else self.seconds[wave - 1]


@dataclass(frozen=True, kw_only=True)
class Waves:
    """What the equations read: m, r, f, and seconds per wave (`reduce_s`: of all reduce waves)."""

    m: int
    r: int
    f: int
    maps: PerWave
    context_switch: PerWave
    schedule_map: PerWave
    copy: PerWave
    local_io: PerWave
    reduce_s: float
    schedule_reduce_s: float
    saving_s: float

    @property
    def are_equal(self) -> bool:
        """Whether all waves of maps are equal."""
        each = (self.maps, self.context_switch, self.schedule_map, self.copy, self.local_io)
        return all(per_wave.is_equal for per_wave in each)


def ptc(
    map_waves: Any,
    reduce_waves: Any,
    *,
    map_wave_s: Any,
    network_copy_wave_s: Any = None,
    local_io_wave_s: Any = None,
    reduce_s: Any = None,
    context_switch_wave_s: Any = 0.0,
    schedule_map_wave_s: Any = 0.0,
    schedule_reduce_wave_s: Any = 0.0,
    reduce_buffer_saving_wave_s: Any = 0.0,
    slowstart: Any = None,
    method: str = "wave",
) -> dict[str, Any]:
    """
    Every quantity of the model by name, in seconds; `warnings` is a list of texts.

    Times of map waves are one number, or (``method="wave"``) lists of `map_waves` numbers;
    `context_switch_wave_s` then has one less, for waves 2 to m.  Without reduce waves the times of
    copying and reducing may be absent.  *slowstart* is the share of maps that must be done before a
    reduce starts; without it copying starts behind the first wave.
    """
    check_method(method)
    number = check_count("map_waves", map_waves, where=WHERE, low=1)
    reduces = check_count("reduce_waves", reduce_waves, where=WHERE)
    of_reduces = {
        "network_copy_wave_s": network_copy_wave_s,
        "local_io_wave_s": local_io_wave_s,
        "reduce_s": reduce_s,
    }
    for name, value in of_reduces.items():
        if value is None and reduces:
            raise ModelError(f"{name} is missing", where=WHERE)
    copy_s, local_io_s, all_reduces_s = (
        0.0 if value is None else value for value in of_reduces.values()
    )

    def check(name: str, value: Any) -> float:
        return check_number(name, value, where=WHERE)

    waves = Waves(
        m=number,
        r=reduces,
        f=first_copied_wave(number, slowstart),
        reduce_s=check("reduce_s", all_reduces_s),
        schedule_reduce_s=check("schedule_reduce_wave_s", schedule_reduce_wave_s),
        saving_s=check("reduce_buffer_saving_wave_s", reduce_buffer_saving_wave_s),
        maps=_read_per_wave("map_wave_s", map_wave_s, number),
        context_switch=_read_per_wave(
            "context_switch_wave_s", context_switch_wave_s, number, from_second=True
        ),
        schedule_map=_read_per_wave("schedule_map_wave_s", schedule_map_wave_s, number),
        copy=_read_per_wave("network_copy_wave_s", copy_s, number),
        local_io=_read_per_wave("local_io_wave_s", local_io_s, number),
    )
    return evaluate_waves(waves, method)


def _read_per_wave(name: str, value: Any, waves: int, *, from_second: bool = False) -> PerWave:
    """*value* as the times of *waves* waves; those *from_second* on have none for the first."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return PerWave(waves, check_number(name, value, where=WHERE))
    seconds = tuple(check_number(name, each, where=WHERE) for each in value)
    needed = waves - from_second
    if len(seconds) != needed:
        what = f"{name} has {len(seconds)} values, and {waves} waves of maps need {needed}"
        raise ModelError(what, where=WHERE)
    return PerWave(waves, (0.0, *seconds) if from_second else seconds)


def check_method(method: Any) -> None:
    """``ModelError`` for an unknown method."""
    if method not in METHODS:
        raise range_error("method", method, "wave or closed", WHERE)


def first_copied_wave(map_waves: int, slowstart: Any) -> int:
    """Wave behind whose end the first reduces start, f of section 7; 1 without a *slowstart*."""
    if slowstart is None:
        return 1
    share = check_number("slowstart", slowstart, where=WHERE, high=1)
    return min(map_waves, max(1, math.ceil(share * map_waves - 1e-9)))


def evaluate_waves(waves: Waves, method: str) -> dict[str, Any]:
    """
    Every quantity of the model for *waves* that have been checked, by name.

    Equation (4): T_PTC = T_producer + T_transporter + T_consumer.  Without reduces nothing is
    copied, and nothing slows the maps down: section 3.4 (ours).
    """
    if method == "closed" and not waves.are_equal:
        raise ModelError("times of single waves need the method wave", where=f"{WHERE}, closed")
    if waves.r == 0:
        map_s, schedule_s = waves.maps.total, waves.schedule_map.total
        total = map_s + schedule_s
        times = {"map_s": map_s, "schedule_map_s": schedule_s, "producer_s": total}
    else:
        times = producer(waves)
        times |= transporter(waves, times["producer_s"], method)
        times["consumer_s"] = consumer(waves)
        total = times["producer_s"] + times["transporter_s"] + times["consumer_s"]
    if not math.isfinite(total):
        raise ModelError("the times are too large for a finite job time", where=WHERE)
    warnings = []
    saved = waves.r * waves.saving_s
    if waves.reduce_s < saved:
        warnings.append(
            f"reduce_s = {waves.reduce_s:g} is less than the {saved:g} s that the buffer saves:"
            " reduce_s and the buffer are inconsistent"
        )
    answer = {"map_waves": waves.m, "reduce_waves": waves.r} | dict.fromkeys(TIMES, 0.0)
    return answer | times | {"total_s": total, "warnings": warnings}


def producer(waves: Waves) -> dict[str, float]:
    """Equation (1): T_producer = t_map + t_schedule(m) + t_cs, the last where reduces copy."""
    parts = {
        "map_s": waves.maps.total,
        "context_switch_s": waves.context_switch.between(waves.f, waves.m),
        "schedule_map_s": waves.schedule_map.total,
    }
    return parts | {"producer_s": sum(parts.values())}


def transporter(waves: Waves, producer_s: float, method: str) -> dict[str, float]:
    """Equation (2): T_transporter = leftover + (m r - m + 1)/(m r) D_s/v + t_lrw(D_s)."""
    capacity = waves.copy.between(0, waves.m - 1) / waves.r
    window = closed_window(waves, producer_s) if method == "closed" else wave_window(waves)
    leftover = max(capacity - window, 0.0) if waves.are_equal else leftover_by_waves(waves)
    last = waves.copy.of(waves.m)
    # (m r - m + 1)/(m r) D_s/v: the last map wave for all reduces, the others for waves 2 to r.
    rest = last + capacity * (waves.r - 1)
    local_io_s = waves.local_io.total
    return {
        "overlap_window_s": window,
        "overlap_capacity_s": capacity,
        "leftover_s": leftover,
        "nonoverlap_first_wave_s": leftover + last / waves.r,
        "rest_transfer_s": rest,
        "local_io_s": local_io_s,
        "transporter_s": leftover + rest + local_io_s,
    }


def closed_window(waves: Waves, producer_s: float) -> float:
    """Time to copy in, closed form of (2): (m-1)/m T_producer + t_lrw(D_s (m-1)/(m r))."""
    open_share = (waves.m - waves.f) / waves.m
    return open_share * producer_s + open_share * waves.local_io.total / waves.r


def wave_window(waves: Waves) -> float:
    """Time to copy in, wave by wave: the length of all waves behind wave f (section 3.2)."""
    running = (waves.maps, waves.context_switch, waves.schedule_map)
    local_io = waves.local_io.between(waves.f - 1, waves.m - 1) / waves.r
    return sum(times.between(waves.f, waves.m) for times in running) + local_io


def leftover_by_waves(waves: Waves) -> float:
    """
    Copying that the window was too short for, followed from wave to wave (section 3.2).

    The output of wave i - 1 is copied while wave i runs.  Equal waves need no such walk: what is
    left grows by the same amount in each wave, or falls to 0, so that
    max(`overlap_capacity_s` - `overlap_window_s`, 0) is left in the end.
    """
    left = waves.copy.between(0, waves.f - 1) / waves.r
    for wave in range(waves.f + 1, waves.m + 1):
        running = waves.maps.of(wave) + waves.context_switch.of(wave) + waves.schedule_map.of(wave)
        window = running + waves.local_io.of(wave - 1) / waves.r
        left = max(left + waves.copy.of(wave - 1) / waves.r - window, 0.0)
    return left


def consumer(waves: Waves) -> float:
    """Equation (3): T_consumer = t_reduce + t_schedule(r) - t_lrw(B_r) r."""
    reducing = max(waves.reduce_s - waves.r * waves.saving_s, 0.0)
    return reducing + waves.r * waves.schedule_reduce_s
