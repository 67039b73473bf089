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
(`_Reduce.copied`), so that M maps and R reduces take O((M + R) log slots) steps and not M x R.
"""

from __future__ import annotations

import heapq
import math

from collections.abc import Sequence
from typing import Any

from harness.models.checks import check_count, check_number, range_error
from harness.models.vectors import CaseInput, Evaluator, refuse_too_many_tasks

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
    the order of the reduces) and `job_s`.  ``ModelError`` (a ``ValueError``) for a slot count
    below 1 that is used, a slow start outside [0, 1], a time or count that is negative or not
    finite, an unknown pool.
    """
    if pool not in POOLS:
        raise range_error("pool", pool, "separate or shared", WHERE)
    _check_times(map_times_s, shuffle_s, after_shuffle_s, task_overhead_s, job_overhead_s)
    _check_counts(num_reduces, map_slots, reduce_slots, slowstart, pool)
    maps, free = _place_maps(map_times_s, map_slots, task_overhead_s)
    finish = sorted(end for _, end in maps)
    answer: dict[str, Any] = {
        "map_waves": math.ceil(len(finish) / map_slots),
        "map_finish_s": finish,
        "maps_end_s": finish[-1] if finish else 0.0,
        "reduce_waves": 0,
        "reduce_gate_s": None,
        "reduce_start_s": [],
        "shuffle_end_s": [],
        "reduce_end_s": [],
    }
    if num_reduces:
        slots = reduce_slots if pool == "separate" else map_slots
        gate = _gate(finish, slowstart)
        after_maps = _Slots(slots, [] if pool == "separate" else free)
        work = _Reduce(task_overhead_s, shuffle_s, after_shuffle_s, finish)
        rows = [_place(work, after_maps, gate) for _ in range(int(num_reduces))]
        starts, shuffled, ends = (list(column) for column in zip(*rows, strict=True))
        answer |= {
            "reduce_waves": math.ceil(num_reduces / slots),
            "reduce_gate_s": gate,
            "reduce_start_s": starts,
            "shuffle_end_s": shuffled,
            "reduce_end_s": ends,
        }
    last = max([answer["maps_end_s"], *answer["reduce_end_s"]])
    answer["job_s"] = last + job_overhead_s
    return answer


def job_times(**arguments: Any) -> dict[str, float]:
    """
    Job time in seconds under both pools: the bracket in which a YARN cluster lies.

    Takes what `schedule` takes, but the pool.
    """
    return {pool: schedule(**arguments, pool=pool)["job_s"] for pool in POOLS}


def map_spans(
    map_times_s: Sequence[float], map_slots: int, task_overhead_s: float = 0.0
) -> list[tuple[float, float]]:
    """Start and end of every map, in the order given: step 1."""
    return _place_maps(map_times_s, map_slots, task_overhead_s)[0]


class _Slots:
    """Slots: a heap of the times at which used ones are free again; all others are free at 0."""

    def __init__(self, number: int, free: Sequence[float] = ()) -> None:
        self.free = list(free)
        heapq.heapify(self.free)
        self.unused = number - len(self.free)

    def take(self) -> float:
        """Time at which the slot that is free first is free; the slot is taken out."""
        if self.unused:
            self.unused -= 1
            return 0.0
        return heapq.heappop(self.free)

    def give_back(self, at: float) -> None:
        """Put the slot back, free from *at* on."""
        heapq.heappush(self.free, at)


def _place_maps(
    times: Sequence[float], slots: int, overhead: float
) -> tuple[list[tuple[float, float]], list[float]]:
    """Step 1: (start, end) of each map, and the times at which the used slots are free again."""
    pool, spans = _Slots(slots), []
    for time in times:
        start = pool.take()
        end = start + overhead + time
        pool.give_back(end)
        spans.append((start, end))
    return spans, pool.free


def _gate(finish: Sequence[float], slowstart: float) -> float:
    """Step 4: time from which reduces may start."""
    need = math.ceil(slowstart * len(finish) - 1e-9)
    return finish[need - 1] if need > 0 else 0.0


class _Reduce:
    """What every reduce of a job has to do, and the maps that it waits for."""

    def __init__(
        self, overhead_s: float, shuffle_s: float, after_s: float, finish: Sequence[float]
    ) -> None:
        self.overhead_s, self.after_s = overhead_s, after_s
        self.shuffle_s = shuffle_s if finish else 0.0
        # Of a map's output and of all that follow it: no shuffle ends before these are copied.
        m = len(finish)
        ends = (f + (m - i) * (shuffle_s / m) for i, f in enumerate(finish))
        self.behind_maps = max(ends, default=0.0)

    def copied(self, ready: float) -> float:
        """
        End of the copying: c = max(c, f) + shuffle_s/M over all maps, in closed form.

        Unrolled, it is the maximum of *ready* plus all shares and of each f plus the shares from
        that map on.
        """
        return max(ready + self.shuffle_s, self.behind_maps)


def _place(work: _Reduce, slots: _Slots, gate: float) -> tuple[float, float, float]:
    """Step 6 for the next reduce: its start, the end of its shuffle, its end."""
    start = max(slots.take(), gate)
    shuffled = work.copied(start + work.overhead_s)
    end = shuffled + work.after_s
    slots.give_back(end)
    return start, shuffled, end


def _check_times(map_times_s: Sequence[float], *others: float) -> None:
    for time in map_times_s:
        check_number("map_times_s", time, where=WHERE)
    names = ("shuffle_s", "after_shuffle_s", "task_overhead_s", "job_overhead_s")
    for name, time in zip(names, others, strict=True):
        check_number(name, time, where=WHERE)


def _check_counts(
    num_reduces: int, map_slots: int, reduce_slots: int, slowstart: float, pool: str
) -> None:
    check_number("slowstart", slowstart, where=WHERE, high=1)
    check_count("num_reduces", num_reduces, where=WHERE)
    check_count("map_slots", map_slots, where=WHERE, low=1)
    if num_reduces and pool == "separate":
        check_count("reduce_slots", reduce_slots, where=WHERE, low=1)


def _answer_case(case: CaseInput) -> dict[str, Any]:
    refuse_too_many_tasks(case.fields)
    return schedule(**case.fields)


EVALUATORS = (Evaluator("scheduler", frozenset({"map_times_s", "num_reduces"}), _answer_case),)
