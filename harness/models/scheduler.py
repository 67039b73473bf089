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

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.base.records.prediction import TaskSpan
from harness.base.records.trace import TaskKind
from harness.models.checks import check_count, check_number, range_error
from harness.models.vectors import CaseInput, Evaluator, refuse_too_many_tasks

Span = tuple[float, float]  # start and end of a task

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
    the order of the reduces) and `job_s`; also `map_spans`, start and end of each map in its order,
    and `reduce_spans`.
    """
    if pool not in POOLS:
        raise range_error("pool", pool, "separate or shared", WHERE)
    _check_times(
        map_times_s,
        shuffle_s=shuffle_s,
        after_shuffle_s=after_shuffle_s,
        task_overhead_s=task_overhead_s,
        job_overhead_s=job_overhead_s,
    )
    check_number("slowstart", slowstart, where=WHERE, high=1)
    check_count("num_reduces", num_reduces, where=WHERE)
    check_count("map_slots", map_slots, where=WHERE, low=1)
    if num_reduces and pool == "separate":
        check_count("reduce_slots", reduce_slots, where=WHERE, low=1)
    spans, free_at = place_tasks(
        len(map_times_s),
        map_slots,
        lambda task, start: start + task_overhead_s + map_times_s[task],
    )
    finish = sorted(end for _, end in spans)
    maps_end = max(finish, default=0.0)
    reduce_waves = 0
    shuffle_ends = list[float]()
    reduce_spans = list[Span]()
    may_start: float | None = None
    if num_reduces:
        slots = map_slots
        if pool == "separate":
            slots = reduce_slots
            free_at = []
        may_start = reduce_gate_s(finish, slowstart)
        copying = shuffle_s if finish else 0.0
        last_copied = copied_behind_maps_s(finish, shuffle_s)

        def end_of_reduce(_: int, start: float) -> float:  # step 6
            # c = max(c, f) + shuffle_s/M over all maps, unrolled: the maximum of the start plus all
            # shares, and of each map's end plus the shares from that map on.
            shuffle_ends.append(max(start + task_overhead_s + copying, last_copied))
            return shuffle_ends[-1] + after_shuffle_s

        reduces = int(num_reduces)
        reduce_spans, _ = place_tasks(reduces, slots, end_of_reduce, free_at, may_start)
        reduce_waves = math.ceil(num_reduces / slots)
    reduce_ends = [end for _, end in reduce_spans]
    return {
        "map_spans": spans,
        "reduce_spans": reduce_spans,
        "map_waves": math.ceil(len(finish) / map_slots),
        "map_finish_s": finish,
        "maps_end_s": maps_end,
        "reduce_waves": reduce_waves,
        "reduce_gate_s": may_start,
        "reduce_start_s": [start for start, _ in reduce_spans],
        "shuffle_end_s": shuffle_ends,
        "reduce_end_s": reduce_ends,
        "job_s": max([maps_end, *reduce_ends]) + job_overhead_s,
    }


def _check_times(map_times_s: Sequence[float], **times_s: float) -> None:
    """``ModelError`` for the first that is no time."""
    for map_s in map_times_s:
        check_number("map_times_s", map_s, where=WHERE)
    for name, time_s in times_s.items():
        check_number(name, time_s, where=WHERE)


def reduce_gate_s(map_ends: Sequence[float], slowstart: float) -> float:
    """
    When reduces may start, step 4: the end of the map with which this share of maps is done [s].

    *map_ends* are in ascending order.
    """
    maps_needed = math.ceil(slowstart * len(map_ends) - 1e-9)
    return map_ends[maps_needed - 1] if maps_needed > 0 else 0.0


def copied_behind_maps_s(map_ends: Sequence[float], shuffle_s: float) -> float:
    """
    When a shuffle ends at the earliest, however early its reduce starts.

    The output of each map, and of all that end after it, is copied behind its end.
    """
    share = shuffle_s / len(map_ends) if map_ends else 0.0
    return max(
        (end + (len(map_ends) - index) * share for index, end in enumerate(map_ends)), default=0.0
    )


def place_tasks(
    count: int,
    slots: int,
    end_of: Callable[[int, float], float],
    free_at: Iterable[float] = (),
    not_before: float = 0.0,
) -> tuple[list[Span], list[float]]:
    """
    Place *count* tasks in their order, each on the slot that is free first.

    *end_of* gives the end of a task from its number and its start.  *free_at* are the times at
    which slots in use become free; all others are free at 0.  Returned are start and end of each
    task, and when the slots are free behind them.
    """
    free = list(free_at)
    free += [0.0] * min(slots - len(free), count)
    heapq.heapify(free)
    spans = []
    for task in range(count):
        start = max(free[0], not_before)
        end = end_of(task, start)
        heapq.heapreplace(free, end)
        spans.append((start, end))
    return spans, free


def timeline(maps: Iterable[Span], reduces: Iterable[Span] = ()) -> tuple[TaskSpan, ...]:
    """Tasks from their starts and ends, numbered in their order."""
    kinds: list[tuple[TaskKind, Iterable[Span]]] = [("map", maps), ("reduce", reduces)]
    tasks = list[TaskSpan]()
    for kind, spans in kinds:
        tasks += [
            TaskSpan(task=f"{kind} {number}", kind=kind, start_s=start, end_s=end)
            for number, (start, end) in enumerate(spans)
        ]
    return tuple(tasks)


def _answer_case(case: CaseInput) -> dict[str, Any]:
    refuse_too_many_tasks(case.fields)
    return schedule(**case.fields)


EVALUATORS = (Evaluator("scheduler", frozenset({"map_times_s", "num_reduces"}), _answer_case),)
