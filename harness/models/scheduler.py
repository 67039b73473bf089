"""
The unified scheduler: job time with waves and slow start for every task-level model.

Specification: ``docs/models/README.md``, section 6; the numbers of steps below are those there.
One deterministic algorithm, no Hadoop: tasks go to the slot that is free first.

    here                     unit  meaning
    -----------------------  ----  -------------------------------------------------------------
    `map_times_s`            s     time of each map task, in the order in which they are started
    `shuffle_s`              s     time to copy all map output, once all of it is present
    `after_shuffle_s`        s     rest of a reduce task
    `slowstart`              1     share of maps that must be done before a reduce starts
    `task_overhead_s`        s     container launch and JVM start of every task
    `job_overhead_s`         s     submission, start of the application master, commit

Departures from the specification: none.  Step 6 copies map by map; its closed form is used here
(in `schedule`), so that M maps and R reduces take O((M + R) log slots) steps and not M x R.
"""

from __future__ import annotations

import heapq
import math

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from harness.models.checks import check_count, check_number, range_error
from harness.models.vectors import CaseInput, Evaluator, refuse_too_many_tasks
from harness.records.prediction import TaskSpan

POOLS = ("separate", "shared")
WHERE = "task scheduler"


def schedule(  # noqa: PLR0917 - the signature of the specification
    map_times_s: Sequence[float],
    num_reduces: int,
    shuffle_s: float,
    after_shuffle_s: float,
    map_slots: int,
    reduce_slots: int,
    slowstart: float,
    pool: str = "separate",
    task_overhead_s: float = 0.0,
    job_overhead_s: float = 0.0,
) -> dict[str, Any]:
    """
    Times of all tasks and of the job, in seconds from the start of the job.

    The answer holds `map_waves`, `map_finish_s` (ascending), `maps_end_s`, `reduce_waves`,
    `reduce_gate_s` (`None` without reduces), `reduce_start_s`, `shuffle_end_s`, `reduce_end_s` (in
    the order of the reduces) and `job_s`.
    """
    if pool not in POOLS:
        raise range_error("pool", pool, "separate or shared", WHERE)
    times = {
        "shuffle_s": shuffle_s,
        "after_shuffle_s": after_shuffle_s,
        "task_overhead_s": task_overhead_s,
        "job_overhead_s": job_overhead_s,
    }
    for name, time_s in [*(("map_times_s", each) for each in map_times_s), *times.items()]:
        check_number(name, time_s, where=WHERE)
    check_number("slowstart", slowstart, where=WHERE, high=1)
    check_count("num_reduces", num_reduces, where=WHERE)
    check_count("map_slots", map_slots, where=WHERE, low=1)
    if num_reduces and pool == "separate":
        check_count("reduce_slots", reduce_slots, where=WHERE, low=1)
    spans, free_at = place_maps(map_times_s, map_slots, task_overhead_s)
    finish = sorted(end for _, end in spans)
    maps_end = finish[-1] if finish else 0.0
    answer: dict[str, Any] = {
        "map_waves": math.ceil(len(finish) / map_slots),
        "map_finish_s": finish,
        "maps_end_s": maps_end,
        "reduce_waves": 0,
        "reduce_gate_s": None,
        "reduce_start_s": [],
        "shuffle_end_s": [],
        "reduce_end_s": [],
    }
    if num_reduces:
        slots = reduce_slots if pool == "separate" else map_slots
        maps_needed = math.ceil(slowstart * len(finish) - 1e-9)  # step 4
        may_start = finish[maps_needed - 1] if maps_needed > 0 else 0.0
        # The output of a map and of all that follow it: no shuffle ends before these are copied.
        share = shuffle_s / len(finish) if finish else 0.0
        behind_maps = max(
            (end + (len(finish) - index) * share for index, end in enumerate(finish)), default=0.0
        )
        copying = shuffle_s if finish else 0.0
        free_slots = _Slots(slots, () if pool == "separate" else free_at)
        for _ in range(int(num_reduces)):  # step 6
            start = max(free_slots.take(), may_start)
            # c = max(c, f) + shuffle_s/M over all maps, unrolled: the maximum of the start plus all
            # shares, and of each map's end plus the shares from that map on.
            shuffle_end = max(start + task_overhead_s + copying, behind_maps)
            free_slots.give_back(shuffle_end + after_shuffle_s)
            answer["reduce_start_s"].append(start)
            answer["shuffle_end_s"].append(shuffle_end)
            answer["reduce_end_s"].append(shuffle_end + after_shuffle_s)
        answer |= {"reduce_waves": math.ceil(num_reduces / slots), "reduce_gate_s": may_start}
    answer["job_s"] = max([maps_end, *answer["reduce_end_s"]]) + job_overhead_s
    return answer


def map_spans(
    map_times_s: Sequence[float], map_slots: int, task_overhead_s: float = 0.0
) -> list[tuple[float, float]]:
    """Start and end of every map, in the order given: step 1."""
    return place_maps(map_times_s, map_slots, task_overhead_s)[0]


def place_maps(
    map_times_s: Sequence[float], map_slots: int, task_overhead_s: float
) -> tuple[list[tuple[float, float]], list[float]]:
    """`map_spans`, and the times at which the slots that were used are free again."""
    slots, spans = _Slots(map_slots), []
    for map_time_s in map_times_s:
        start = slots.take()
        end = start + task_overhead_s + map_time_s
        slots.give_back(end)
        spans.append((start, end))
    return spans, slots.free_at


def task_spans(
    kind: Literal["map", "reduce"], spans: Iterable[tuple[float, float]], after_s: float = 0.0
) -> tuple[TaskSpan, ...]:
    """Tasks of a timeline from their starts and ends *after_s*, numbered in their order."""
    return tuple(
        TaskSpan(task=f"{kind} {number}", kind=kind, start_s=after_s + start, end_s=after_s + end)
        for number, (start, end) in enumerate(spans)
    )


class _Slots:
    """Slots: a heap of the times at which used ones are free again; all others are free at 0."""

    def __init__(self, number: int, free_at: Sequence[float] = ()) -> None:
        self.free_at = list(free_at)
        heapq.heapify(self.free_at)
        self.unused = number - len(self.free_at)

    def take(self) -> float:
        """Time at which the slot that is free first is free; the slot is taken out."""
        if self.unused:
            self.unused -= 1
            return 0.0
        return heapq.heappop(self.free_at)

    def give_back(self, time_s: float) -> None:
        """Put the slot back, free from *time_s* on."""
        heapq.heappush(self.free_at, time_s)


def _answer_case(case: CaseInput) -> dict[str, Any]:
    refuse_too_many_tasks(case.fields)
    return schedule(**case.fields)


EVALUATORS = (Evaluator("scheduler", frozenset({"map_times_s", "num_reduces"}), _answer_case),)
