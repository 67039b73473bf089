"""
Map function and spills of one map task: (u1) to (u17) and (1) to (5).

Statistics are lists with one value per machine; the paper takes plain means over machines, and
where it divides one statistic by another, the ratio of their means (section 3).
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any

from harness.base.hadoop.constants import METADATA_BYTES
from harness.base.units import MIB
from harness.models.checks import (
    check_number,
    not_finite_error,
    number_field,
    range_error,
    read_fields,
)

WHERE = "prophet map and spill"


def _check_machines(name: str, value: Any, *, where: str) -> list[float]:
    """*value*, if it is a list of numbers of at least 0 with an entry for each machine."""
    if not isinstance(value, list | tuple) or not value:
        raise range_error(name, value, "a list of numbers, one per machine", where)
    return [check_number(name, number, where=where) for number in value]


def _machines_field(default: Any = MISSING) -> Any:
    """Field of a statistic, given with one value per machine; its mean counts."""
    return field(default=default, metadata={"check": _check_machines, "limits": {}})


@dataclass(frozen=True, kw_only=True)
class MapTask:
    """What (u1) to (u17) need to know of a map task; its statistics are means over machines."""

    map_in_records: float = number_field()
    map_in_bytes: float = number_field()
    sort_buffer_mb: float = number_field(100.0)
    sort_spill_percent: float = number_field(0.8, high=1.0, above=True)
    map_records_selectivity: float = _machines_field()
    map_bytes_selectivity: float = _machines_field()
    sort_s_per_record: float = _machines_field()
    combine_s_per_record: float = _machines_field(0.0)
    spill_write_s_per_byte: float = _machines_field()
    combine_bytes_selectivity: float = _machines_field(1.0)
    map_s_per_record: float = _machines_field()
    map_while_spilling_s_per_record: float = _machines_field(None)


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


def map_and_spill(values: Mapping[str, Any]) -> dict[str, Any]:
    """
    Every quantity of section 4 by name, and `warnings`, from the fields of section 2.1.

    The mean of `combine_bytes_selectivity` is answered as `spill_bytes_selectivity`, for What-If's
    statistic of that name is another.
    """
    checked = read_fields(MapTask, values, WHERE)
    machines = len(checked["map_s_per_record"])
    for name, numbers in checked.items():
        if isinstance(numbers, list):
            if len(numbers) != machines:
                wanted = f"a list of {machines} numbers, one per machine as in map_s_per_record"
                raise range_error(name, numbers, wanted, WHERE)
            checked[name] = sum(numbers) / machines  # the plain mean over machines, section 3
    if checked["map_while_spilling_s_per_record"] is None:
        checked["map_while_spilling_s_per_record"] = checked["map_s_per_record"]
    map_task = MapTask(**checked)
    try:
        spills = spill_sizes(map_task)
        answer = {**vars(spills), "spill_bytes_selectivity": map_task.combine_bytes_selectivity}
        answer |= spill_times(map_task, spills)
    except OverflowError as error:  # an infinite number of records or spills
        raise not_finite_error("prophet") from error
    if not math.isfinite(answer["map_and_spill_s"]):
        raise not_finite_error("prophet")
    warnings = []
    if map_task.sort_spill_percent < 0.5:
        warnings.append(
            "sort_spill_percent is below 0.5: Hadoop's spills grow while one is running"
        )
    if map_task.map_while_spilling_s_per_record < map_task.map_s_per_record:
        warnings.append("map_while_spilling_s_per_record is below map_s_per_record: noise")
    return answer | {"warnings": warnings}


def spill_times(map_task: MapTask, spills: Spills) -> dict[str, Any]:
    """Seconds of spills and map function, (1) to (5); without output the function is all."""
    if not spills.num_spills:  # section 10
        map_s = map_task.map_in_records * map_task.map_s_per_record
        zero = (
            "spill_out_bytes",
            "one_spill_s",
            "spill_s",
            "last_spill_s",
            "map_while_one_spill_s",
            "map_while_spilling_s",
            "overlap_s",
        )
        times = dict.fromkeys(("map_while_not_spilling_s", "map_s", "map_and_spill_s"), map_s)
        return {**dict.fromkeys(zero, 0.0), "main_thread_sleeps": False, **times}
    thread_spills = spills.spill_thread_spills
    full_bytes = spill_out_bytes(spills, map_task)
    one_spill_s = spill_cost_s(spills.records_per_spill, full_bytes, map_task)  # (u8)
    while_one_s = map_while_one_spill_s(spills, map_task)
    sleeps = thread_spills > 0 and while_one_s < one_spill_s  # (u11)
    if thread_spills == 0:  # nothing overlaps (P06)
        alone_s = map_task.map_in_records * map_task.map_s_per_record
        function = {"map_while_spilling_s": 0.0, "map_while_not_spilling_s": alone_s}
    elif map_task.map_while_spilling_s_per_record == 0:
        wanted = "above 0 in its mean, with spills beside the map function"
        raise range_error("map_while_spilling_s_per_record", 0.0, wanted, WHERE)
    elif sleeps:
        function = map_times_with_waits(spills, map_task)
    else:
        function = map_times_without_waits(map_task, spills, one_spill_s)
    overlap_s = function["map_while_spilling_s"]  # (5)
    map_s = overlap_s + function["map_while_not_spilling_s"]  # (4)
    spill_s = thread_spills * one_spill_s
    last_s = last_spill_s(spills, map_task)  # (2), (3)
    return {
        "spill_out_bytes": full_bytes,
        "one_spill_s": one_spill_s,
        "spill_s": spill_s,
        "last_spill_s": last_s,
        "map_while_one_spill_s": while_one_s,
        "main_thread_sleeps": sleeps,
        **function,
        "map_s": map_s,
        "overlap_s": overlap_s,
        "map_and_spill_s": spill_s + last_s + map_s - overlap_s,  # (1)
    }


def spill_sizes(map_task: MapTask) -> Spills:
    """(u1) to (u6) and (u9); all 0 but the bytes where no record comes out."""
    out_records = map_task.map_in_records * map_task.map_records_selectivity  # (u1)
    out_bytes = map_task.map_in_bytes * map_task.map_bytes_selectivity  # (u2)
    if out_records == 0:
        return Spills(out_records, out_bytes, 0.0, 0, 0, 0, 0.0, 0.0)
    record_bytes = out_bytes / out_records  # (u3)
    full_records = records_per_spill(map_task, record_bytes)
    num_spills = math.ceil(out_records / full_records)  # (u5)
    return Spills(
        map_out_records=out_records,
        map_out_bytes=out_bytes,
        map_out_record_bytes=record_bytes,
        records_per_spill=full_records,
        num_spills=num_spills,
        spill_thread_spills=num_spills - 1,
        last_spill_records=out_records - (num_spills - 1) * full_records,  # (u6)
        headroom_records=headroom_records(map_task, record_bytes),
    )


def records_per_spill(map_task: MapTask, record_bytes: float) -> int:
    """Records that fill the buffer to its threshold, (u4); at least one."""
    full_bytes = map_task.sort_buffer_mb * MIB * map_task.sort_spill_percent
    return max(1, math.floor(full_bytes / (record_bytes + METADATA_BYTES)))


def headroom_records(map_task: MapTask, record_bytes: float) -> float:
    """Records for which a buffer at its threshold has room, (u9), not rounded (P01)."""
    free_bytes = map_task.sort_buffer_mb * MIB * (1 - map_task.sort_spill_percent)
    return free_bytes / (record_bytes + METADATA_BYTES)


def spill_out_bytes(spills: Spills, map_task: MapTask) -> float:
    """Bytes of a full spill's file, (u7)."""
    full_bytes = spills.records_per_spill * spills.map_out_record_bytes
    return full_bytes * map_task.combine_bytes_selectivity


def spill_cost_s(records: float, file_bytes: float, map_task: MapTask) -> float:
    """Seconds of one spill, (u8): sort, combine, write."""
    return (
        records * map_task.sort_s_per_record
        + records * map_task.combine_s_per_record
        + file_bytes * map_task.spill_write_s_per_byte
    )


def last_spill_s(spills: Spills, map_task: MapTask) -> float:
    """Seconds of the spill that the main thread makes when the map function is over, (3) (P02)."""
    records = spills.last_spill_records
    file_bytes = spills.map_out_record_bytes * records * map_task.combine_bytes_selectivity
    return spill_cost_s(records, file_bytes, map_task)


def while_spilling_s_per_output(map_task: MapTask) -> float:
    """a: seconds per *output* record while a spill runs (P07, P10)."""
    return map_task.map_while_spilling_s_per_record / map_task.map_records_selectivity


def map_while_one_spill_s(spills: Spills, map_task: MapTask) -> float:
    """Seconds in which the map function fills the headroom, (u10) (P03)."""
    return spills.headroom_records * while_spilling_s_per_output(map_task)


def map_times_with_waits(spills: Spills, map_task: MapTask) -> dict[str, float]:
    """Seconds of a map function whose buffer is full before a spill ends, (u12) and (u13)."""
    headroom = spills.headroom_records
    last_records = spills.last_spill_records
    before_last = spills.spill_thread_spills - 1
    a = while_spilling_s_per_output(map_task)
    b = map_task.map_s_per_record / map_task.map_records_selectivity
    beside_s = headroom * a * before_last + min(headroom, last_records) * a
    alone = spills.map_out_records - before_last * headroom - min(last_records, headroom)
    return {"map_while_spilling_s": beside_s, "map_while_not_spilling_s": alone * b}


def map_times_without_waits(
    map_task: MapTask, spills: Spills, one_spill_s: float
) -> dict[str, float]:
    """Seconds of a map function that never waits, (u14) to (u17)."""
    calls_of_one = one_spill_s / map_task.map_while_spilling_s_per_record
    calls_of_last = spills.last_spill_records / map_task.map_records_selectivity
    calls = calls_of_one * (spills.spill_thread_spills - 1) + min(calls_of_one, calls_of_last)
    other_calls = map_task.map_in_records - calls
    return {
        "map_calls_while_spilling": calls,
        "map_calls_while_not_spilling": other_calls,
        "map_while_spilling_s": calls * map_task.map_while_spilling_s_per_record,
        "map_while_not_spilling_s": other_calls * map_task.map_s_per_record,
    }


def waiting_for_spill_s(answer: Mapping[str, Any]) -> float:
    """
    Seconds that the last spill of the spill thread goes on when the map function is over.

    It is not a term of `map_and_spill_s`, but says where the history's "map finish" is.
    """
    headroom = answer["headroom_records"]
    last_records = answer["last_spill_records"]
    if answer["spill_thread_spills"] == 0 or last_records > headroom:
        return 0.0
    beside_s = last_records / headroom * answer["map_while_one_spill_s"]
    return float(max(0.0, answer["one_spill_s"] - beside_s))
