"""
Map function and spills of one map task: (u1) to (u17) and (1) to (5).

Statistics are lists with one value per machine; the paper takes plain means over machines, and
where it divides one statistic by another, the ratio of their means (section 3).
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_number, range_error
from harness.models.prophet.setting import too_large

MB = 2**20
METADATA_BYTES = 16  # of the sort buffer, per record
WHERE = "prophet map and spill"

REQUIRED = (
    "map_records_selectivity", "map_bytes_selectivity", "sort_s_per_record",
    "spill_write_s_per_byte", "map_s_per_record",
)  # fmt: skip


@dataclass(frozen=True)
class Means:
    """Means over machines of section 2.1's lists."""

    map_records_selectivity: float
    map_bytes_selectivity: float
    sort_s_per_record: float
    combine_s_per_record: float
    spill_write_s_per_byte: float
    combine_bytes_selectivity: float
    map_s_per_record: float
    map_while_spilling_s_per_record: float


@dataclass(frozen=True)
class MapTask:
    """What (u1) to (u17) need to know of a map task."""

    map_in_records: float
    map_in_bytes: float
    sort_buffer_mb: float
    sort_spill_percent: float
    means: Means


@dataclass(frozen=True)
class Spills:
    """Sizes of a map's output and of its spills, (u1) to (u6) and (u9)."""

    map_out_records: float
    map_out_bytes: float
    map_out_record_bytes: float
    records_per_spill: int
    num_spills: int
    spill_thread_spills: int
    last_spill_records: float
    headroom_records: float


def map_and_spill(given: Mapping[str, Any]) -> dict[str, Any]:
    """
    Every quantity of section 4 by name, and `warnings`.

    *given* holds the fields of section 2.1; the mean of its `combine_bytes_selectivity` is answered
    as `spill_bytes_selectivity`, for What-If's statistic of that name is another.  ``ModelError``
    (a ``ValueError``) names a field that is missing or outside its range.
    """
    task = read(given)
    try:
        answer = _answer(task)
    except OverflowError as error:  # infinity that should become a count
        raise too_large() from error
    if not math.isfinite(answer["map_and_spill_s"]):
        raise too_large()
    return answer | {"warnings": _warnings(task)}


def read(given: Mapping[str, Any]) -> MapTask:
    """Check section 2.1's fields and take the means over machines."""
    for name in ("map_in_records", "map_in_bytes", *REQUIRED):
        if name not in given:
            raise ModelError(f"{name} is missing", where=WHERE)
    return MapTask(
        map_in_records=check_number("map_in_records", given["map_in_records"], where=WHERE),
        map_in_bytes=check_number("map_in_bytes", given["map_in_bytes"], where=WHERE),
        sort_buffer_mb=check_number(
            "sort_buffer_mb", given.get("sort_buffer_mb", 100), where=WHERE
        ),
        sort_spill_percent=check_number(
            "sort_spill_percent",
            given.get("sort_spill_percent", 0.8),
            where=WHERE,
            high=1.0,
            above=True,
        ),
        means=_means(given),
    )


def _means(given: Mapping[str, Any]) -> Means:
    found = {name: _list(name, given[name]) for name in REQUIRED}
    machines = len(found["map_s_per_record"])
    defaults = {
        "combine_s_per_record": [0.0] * machines,
        "combine_bytes_selectivity": [1.0] * machines,
        "map_while_spilling_s_per_record": found["map_s_per_record"],
    }
    for name, default in defaults.items():
        found[name] = _list(name, given[name]) if name in given else default
    for name, values in found.items():
        if len(values) != machines:
            wanted = f"a list of {machines} numbers, one per machine as in map_s_per_record"
            raise range_error(name, values, wanted, WHERE)
    return Means(**{name: mean(values) for name, values in found.items()})


def mean(values: Sequence[float]) -> float:
    """Plain mean over machines, section 3."""
    return sum(values) / len(values)


def _list(name: str, values: Any) -> list[float]:
    if not isinstance(values, list | tuple) or not values:
        raise range_error(name, values, "a list of numbers, one per machine", WHERE)
    return [check_number(name, value, where=WHERE) for value in values]


def _answer(task: MapTask) -> dict[str, Any]:
    sizes = spills(task)
    if sizes.num_spills == 0:
        return _without_output(task, sizes)
    m, ns = task.means, sizes.spill_thread_spills
    full_bytes = spill_out_bytes(sizes, m)
    one = spill_cost_s(sizes.records_per_spill, full_bytes, m)  # (u8)
    while_one = map_while_one_spill_s(sizes, m)
    sleeps = ns > 0 and while_one < one  # (u11)
    function = map_times(task, sizes, one, sleeps=sleeps)
    map_s = function["map_while_spilling_s"] + function["map_while_not_spilling_s"]  # (4)
    overlap = function["map_while_spilling_s"]  # (5)
    thread, last = ns * one, last_spill_s(sizes, m)  # (2), (3)
    return {
        **vars(sizes),
        "spill_bytes_selectivity": m.combine_bytes_selectivity,
        "spill_out_bytes": full_bytes,
        "one_spill_s": one,
        "spill_s": thread,
        "last_spill_s": last,
        "map_while_one_spill_s": while_one,
        "main_thread_sleeps": sleeps,
        **function,
        "map_s": map_s,
        "overlap_s": overlap,
        "map_and_spill_s": thread + last + map_s - overlap,  # (1)
    }


def _without_output(task: MapTask, sizes: Spills) -> dict[str, Any]:
    """Nothing to spill (section 10): the map function is all there is."""
    alone = task.map_in_records * task.means.map_s_per_record
    nothing = ("spill_out_bytes", "one_spill_s", "spill_s", "last_spill_s", "map_while_one_spill_s",
               "map_while_spilling_s", "overlap_s")  # fmt: skip
    return {
        **vars(sizes),
        **dict.fromkeys(nothing, 0.0),
        "spill_bytes_selectivity": task.means.combine_bytes_selectivity,
        "main_thread_sleeps": False,
        "map_while_not_spilling_s": alone,
        "map_s": alone,
        "map_and_spill_s": alone,
    }


def spills(task: MapTask) -> Spills:
    """(u1) to (u6) and (u9); all 0 but the bytes where no record comes out."""
    m = task.means
    records = task.map_in_records * m.map_records_selectivity  # (u1)
    size = task.map_in_bytes * m.map_bytes_selectivity  # (u2)
    if records == 0:
        return Spills(records, size, 0.0, 0, 0, 0, 0.0, 0.0)
    width = size / records  # (u3)
    full = records_per_spill(task, width)
    n = math.ceil(records / full)  # (u5)
    return Spills(
        records, size, width, full, n, n - 1,
        last_spill_records=records - (n - 1) * full,  # (u6)
        headroom_records=headroom_records(task, width),
    )  # fmt: skip


def records_per_spill(task: MapTask, width: float) -> int:
    """Records that fill the buffer to its threshold, (u4); at least one."""
    space = task.sort_buffer_mb * MB * task.sort_spill_percent
    return max(1, math.floor(space / (width + METADATA_BYTES)))


def headroom_records(task: MapTask, width: float) -> float:
    """Records for which a buffer at its threshold has room, (u9), not rounded (P01)."""
    space = task.sort_buffer_mb * MB * (1 - task.sort_spill_percent)
    return space / (width + METADATA_BYTES)


def spill_out_bytes(sizes: Spills, m: Means) -> float:
    """Bytes of a full spill's file, (u7)."""
    return sizes.records_per_spill * sizes.map_out_record_bytes * m.combine_bytes_selectivity


def spill_cost_s(records: float, file_bytes: float, m: Means) -> float:
    """Seconds of one spill, (u8): sort, combine, write."""
    return (
        records * m.sort_s_per_record
        + records * m.combine_s_per_record
        + file_bytes * m.spill_write_s_per_byte
    )


def last_spill_s(sizes: Spills, m: Means) -> float:
    """Seconds of the spill that the main thread makes when the map function is over, (3) (P02)."""
    last = sizes.last_spill_records
    file_bytes = sizes.map_out_record_bytes * last * m.combine_bytes_selectivity
    return spill_cost_s(last, file_bytes, m)


def while_spilling_s_per_output(m: Means) -> float:
    """a: seconds per *output* record while a spill runs (P07, P10)."""
    return m.map_while_spilling_s_per_record / m.map_records_selectivity


def map_while_one_spill_s(sizes: Spills, m: Means) -> float:
    """Seconds in which the map function fills the headroom, (u10) (P03)."""
    return sizes.headroom_records * while_spilling_s_per_output(m)


def map_times(task: MapTask, sizes: Spills, one: float, *, sleeps: bool) -> dict[str, float]:
    """Seconds of the map function beside spills and alone, (u12) to (u17)."""
    m = task.means
    if sizes.spill_thread_spills == 0:  # nothing overlaps (P06)
        alone = task.map_in_records * m.map_s_per_record
        return {"map_while_spilling_s": 0.0, "map_while_not_spilling_s": alone}
    if m.map_while_spilling_s_per_record == 0:
        wanted = "above 0 in its mean, with spills beside the map function"
        raise range_error("map_while_spilling_s_per_record", 0.0, wanted, WHERE)
    return _sleeping(sizes, m) if sleeps else _awake(task, sizes, one)


def _sleeping(sizes: Spills, m: Means) -> dict[str, float]:
    """The buffer is full before a spill ends, (u12) and (u13)."""
    room, last, before = (
        sizes.headroom_records, sizes.last_spill_records, sizes.spill_thread_spills - 1
    )  # fmt: skip
    a, b = while_spilling_s_per_output(m), m.map_s_per_record / m.map_records_selectivity
    beside = room * a * before + min(room, last) * a
    alone = (sizes.map_out_records - before * room - min(last, room)) * b
    return {"map_while_spilling_s": beside, "map_while_not_spilling_s": alone}


def _awake(task: MapTask, sizes: Spills, one: float) -> dict[str, float]:
    """The map function never waits, (u14) to (u17)."""
    m, before = task.means, sizes.spill_thread_spills - 1
    of_one = one / m.map_while_spilling_s_per_record
    of_last = sizes.last_spill_records / m.map_records_selectivity
    calls = of_one * before + min(of_one, of_last)
    rest = task.map_in_records - calls
    return {
        "map_calls_while_spilling": calls,
        "map_calls_while_not_spilling": rest,
        "map_while_spilling_s": calls * m.map_while_spilling_s_per_record,
        "map_while_not_spilling_s": rest * m.map_s_per_record,
    }


def waiting_for_spill_s(answer: Mapping[str, Any]) -> float:
    """
    Seconds that the last spill of the spill thread goes on when the map function is over.

    In `map_and_spill_s` it is no term of its own: it tells where the history's "map finish" lies.
    """
    room, last = answer["headroom_records"], answer["last_spill_records"]
    if answer["spill_thread_spills"] == 0 or last > room:
        return 0.0
    beside = last / room * answer["map_while_one_spill_s"]
    return float(max(0.0, answer["one_spill_s"] - beside))


def _warnings(task: MapTask) -> list[str]:
    m, found = task.means, []
    if task.sort_spill_percent < 0.5:
        found.append("sort_spill_percent is below 0.5: Hadoop's spills grow while one is running")
    if m.map_while_spilling_s_per_record < m.map_s_per_record:
        found.append("map_while_spilling_s_per_record is below map_s_per_record: noise")
    return found
