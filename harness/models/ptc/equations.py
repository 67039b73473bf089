"""
Equations (1) to (4): a job's producer, transporter and consumer from the times of its waves.

m waves of maps, r of reduces; the copying starts when wave f of the maps has ended (f = 1 in the
paper, more where the slow start of the reduces is late: specification, section 7).
"""

from __future__ import annotations

import math

from dataclasses import dataclass
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_count, check_number, range_error
from harness.models.ptc.per_wave import PerWave, read_per_wave

METHODS = ("wave", "closed")
WHERE = "ptc waves"

# Outputs of a job with reduces; all but the producer's are 0 without them.
TIMES = (
    "map_s", "context_switch_s", "schedule_map_s", "producer_s", "overlap_window_s",
    "overlap_capacity_s", "leftover_s", "nonoverlap_first_wave_s", "rest_transfer_s", "local_io_s",
    "transporter_s", "consumer_s", "total_s",
)  # fmt: skip


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
    def equal(self) -> bool:
        """Whether all waves of maps are equal."""
        each = (self.maps, self.context_switch, self.schedule_map, self.copy, self.local_io)
        return all(per_wave.equal for per_wave in each)


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
    reduce starts; without it copying starts behind the first wave.  ``ModelError`` (a
    ``ValueError``) names a field that is missing or outside its range.
    """
    check_method(method)
    m, r = check_count("map_waves", map_waves, where=WHERE, low=1), read_reduce_waves(reduce_waves)
    needed = {
        "network_copy_wave_s": network_copy_wave_s,
        "local_io_wave_s": local_io_wave_s,
        "reduce_s": reduce_s,
    }
    for name, value in needed.items():
        if value is None and r:
            raise ModelError(f"{name} is missing", where=WHERE)
    copy, local_io, reduce_s = (0.0 if value is None else value for value in needed.values())
    waves = Waves(
        m=m,
        r=r,
        f=first_wave(m, slowstart),
        maps=read_per_wave("map_wave_s", map_wave_s, m, where=WHERE),
        context_switch=read_per_wave(
            "context_switch_wave_s", context_switch_wave_s, m, where=WHERE, from_second=True
        ),
        schedule_map=read_per_wave("schedule_map_wave_s", schedule_map_wave_s, m, where=WHERE),
        copy=read_per_wave("network_copy_wave_s", copy, m, where=WHERE),
        local_io=read_per_wave("local_io_wave_s", local_io, m, where=WHERE),
        reduce_s=check_number("reduce_s", reduce_s, where=WHERE),
        schedule_reduce_s=check_number(
            "schedule_reduce_wave_s", schedule_reduce_wave_s, where=WHERE
        ),
        saving_s=check_number(
            "reduce_buffer_saving_wave_s", reduce_buffer_saving_wave_s, where=WHERE
        ),
    )
    return answer(waves, method)


def answer(waves: Waves, method: str) -> dict[str, Any]:
    """Every quantity of the model for *waves* that have been checked, by name."""
    if method == "closed" and not waves.equal:
        raise ModelError("times of single waves need the method wave", where=f"{WHERE}, closed")
    times = _map_only(waves) if waves.r == 0 else _with_reduces(waves, method)
    if not math.isfinite(times["total_s"]):
        raise ModelError("the times are too large for a finite job time", where=WHERE)
    counts = {"map_waves": waves.m, "reduce_waves": waves.r}
    return counts | dict.fromkeys(TIMES, 0.0) | times | {"warnings": _warnings(waves)}


def _with_reduces(waves: Waves, method: str) -> dict[str, float]:
    """Equation (4), T_PTC = T_producer + T_transporter + T_consumer, with all that it rests on."""
    made = producer(waves)
    moved = transporter(waves, made["producer_s"], method)
    used = consumer(waves)
    total = made["producer_s"] + moved["transporter_s"] + used
    return made | moved | {"consumer_s": used, "total_s": total}


def _map_only(waves: Waves) -> dict[str, float]:
    """Section 3.4 (ours): without reduces nobody copies, and nobody slows the maps down."""
    map_s, schedule_s = waves.maps.total, waves.schedule_map.total
    made = map_s + schedule_s
    return {"map_s": map_s, "schedule_map_s": schedule_s, "producer_s": made, "total_s": made}


def producer(waves: Waves) -> dict[str, float]:
    """
    Equation (1): the map stage.

    T_producer = t_map + t_schedule(m) + t_cs, the last in the waves in which reduces copy.
    """
    parts = {
        "map_s": waves.maps.total,
        "context_switch_s": waves.context_switch.between(waves.f, waves.m),
        "schedule_map_s": waves.schedule_map.total,
    }
    return parts | {"producer_s": sum(parts.values())}


def transporter(waves: Waves, producer_s: float, method: str) -> dict[str, float]:
    """
    Equation (2): what copying adds to the job.

    T_transporter = leftover + (m r - m + 1)/(m r) D_s/v + t_lrw(D_s).
    """
    m, r = waves.m, waves.r
    capacity = waves.copy.between(0, m - 1) / r
    if method == "closed":
        window = closed_window(waves, producer_s)
        leftover = max(capacity - window, 0.0)
    else:
        window = wave_window(waves)
        leftover = max(capacity - window, 0.0) if waves.equal else leftover_by_waves(waves)
    last = waves.copy.of(m)
    # (m r - m + 1)/(m r) D_s/v: the last map wave for all reduces, the others for waves 2 to r.
    rest = last + capacity * (r - 1)
    local_io_s = waves.local_io.total
    return {
        "overlap_window_s": window,
        "overlap_capacity_s": capacity,
        "leftover_s": leftover,
        "nonoverlap_first_wave_s": leftover + last / r,
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
    m, f = waves.m, waves.f
    running = (waves.maps, waves.context_switch, waves.schedule_map)
    local_io = waves.local_io.between(f - 1, m - 1) / waves.r
    return sum(times.between(f, m) for times in running) + local_io


def leftover_by_waves(waves: Waves) -> float:
    """
    Copying that the window was too short for, followed from wave to wave (section 3.2).

    The output of wave i - 1 is copied while wave i runs.  Equal waves need no such walk: what is
    left grows by the same amount in each wave, or falls to 0, so that
    max(`overlap_capacity_s` - `overlap_window_s`, 0) is left in the end.
    """
    left = waves.copy.between(0, waves.f - 1) / waves.r
    for i in range(waves.f + 1, waves.m + 1):
        running = waves.maps.of(i) + waves.context_switch.of(i) + waves.schedule_map.of(i)
        window = running + waves.local_io.of(i - 1) / waves.r
        left = max(left + waves.copy.of(i - 1) / waves.r - window, 0.0)
    return left


def consumer(waves: Waves) -> float:
    """Equation (3): T_consumer = t_reduce + t_schedule(r) - t_lrw(B_r) r."""
    reducing = max(waves.reduce_s - waves.r * waves.saving_s, 0.0)
    return reducing + waves.r * waves.schedule_reduce_s


def first_wave(m: int, slowstart: Any) -> int:
    """Wave behind whose end the first reduces start, f of section 7; 1 without a *slowstart*."""
    if slowstart is None:
        return 1
    share = check_number("slowstart", slowstart, where=WHERE, high=1)
    return min(m, max(1, math.ceil(share * m - 1e-9)))


def read_reduce_waves(value: Any) -> int:
    """*value* as a number of reduce waves."""
    return check_count("reduce_waves", value, where=WHERE)


def check_method(method: Any) -> None:
    """``ModelError`` for a method that is none."""
    if method not in METHODS:
        raise range_error("method", method, "wave or closed", WHERE)


def _warnings(waves: Waves) -> list[str]:
    saved = waves.r * waves.saving_s
    if waves.reduce_s >= saved:
        return []
    what = f"reduce_s = {waves.reduce_s:g} is less than the {saved:g} s that the buffer saves"
    return [f"{what}: reduce_s and the buffer are inconsistent"]
