"""
Job time, section 6.1: the scheduler of all task-level models with Algorithm 1 for each reduce.

Steps 1 to 5 and 7 are those of `harness.models.scheduler`; in step 6 the copying of every reduce is
simulated from the moment it begins, so that the first reduces wait for maps and later ones find all
outputs there.  Map i runs on node i mod `num_nodes`.
"""

from __future__ import annotations

import heapq
import math

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.models.checks import check_count, check_number, range_error
from harness.models.prophet.setting import Group, Outcome, Segment, Setting
from harness.models.prophet.shuffle import run

POOLS = ("separate", "shared")
WHERE = "prophet job"

Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Tasks, and where they run; *reduce_startup_s* passes before a reduce copies."""

    map_task_s: float
    num_maps: int
    num_reduces: int
    num_nodes: int
    map_slots: int
    reduce_slots: int
    slowstart: float
    task_overhead_s: float = 0.0
    job_overhead_s: float = 0.0
    reduce_startup_s: float = 0.0


@dataclass(frozen=True)
class Reduce:
    """One reduce: slot taken, end of its shuffle, end; its shuffle, and what follows it."""

    start_s: float
    shuffle_end_s: float
    end_s: float
    outcome: Outcome
    after: dict[str, Any]


@dataclass(frozen=True)
class JobTimes:
    """A job under one pool."""

    maps: list[Span]
    reduces: list[Reduce]
    map_waves: int
    reduce_waves: int
    job_s: float


class Reducer:
    """
    Algorithm 1 and what follows it, for reduces that begin to copy at any time.

    *after* gives the quantities behind a shuffle, of which *after_s* are the seconds.  Reduces that
    begin together, and all that begin when the last map is over, are computed once.
    """

    def __init__(
        self,
        maps: Sequence[Span],
        num_nodes: int,
        segment: Segment | None,
        setting: Setting,
        after: Callable[[Outcome], tuple[dict[str, Any], float]],
    ) -> None:
        ends = Counter((end, i % num_nodes) for i, (_, end) in enumerate(maps))
        self.groups = sorted(ends.items()) if segment else []
        self.maps_end = max((end for _, end in maps), default=0.0)
        self.segment, self.setting, self.after = segment, setting, after
        self.known: dict[float, tuple[Outcome, dict[str, Any], float]] = {}

    def reduce(self, begin: float) -> tuple[Outcome, dict[str, Any], float]:
        """Shuffle that begins at *begin*, what follows, and the seconds of that."""
        begin = min(begin, self.maps_end)
        if begin not in self.known:
            outcome = run(self._groups(begin), self.setting)
            self.known[begin] = (outcome, *self.after(outcome))
        return self.known[begin]

    def _groups(self, begin: float) -> list[Group]:
        if self.segment is None:
            return []
        segment = self.segment
        return [
            Group(f"node {node}", count, end - begin, segment) for (end, node), count in self.groups
        ]


def map_spans(plan: Plan) -> tuple[list[Span], list[float]]:
    """Steps 1 and 2: each map's start and end, and the heap of times at which slots are free."""
    free = [0.0] * min(plan.map_slots, plan.num_maps + plan.num_reduces)
    spans = []
    for _ in range(plan.num_maps):
        start = free[0]
        end = start + plan.task_overhead_s + plan.map_task_s
        heapq.heapreplace(free, end)
        spans.append((start, end))
    return spans, free


def job_times(plan: Plan, pool: str, reducer: Callable[[Sequence[Span]], Reducer]) -> JobTimes:
    """
    Steps 1 to 7 under a *pool*; *reducer* makes the reduces' side from the maps' spans.

    ``ModelError`` for a slot count below 1 that is used, a slow start outside [0, 1], a time or
    count that is negative or not finite.
    """
    _check(plan, pool)
    maps, free = map_spans(plan)
    maps_end = max((end for _, end in maps), default=0.0)
    if plan.num_reduces == 0:
        waves = math.ceil(plan.num_maps / plan.map_slots)
        return JobTimes(maps, [], waves, 0, maps_end + plan.job_overhead_s)
    slots = plan.map_slots if pool == "shared" else plan.reduce_slots
    if pool == "separate":
        free = [0.0] * min(slots, plan.num_reduces)
    reduces = _reduces(plan, free, gate(maps, plan.slowstart), reducer(maps))
    last = max([maps_end, *(r.end_s for r in reduces)])
    return JobTimes(
        maps,
        reduces,
        math.ceil(plan.num_maps / plan.map_slots),
        math.ceil(plan.num_reduces / slots),
        last + plan.job_overhead_s,
    )


def gate(maps: Sequence[Span], slowstart: float) -> float:
    """Step 4: time from which reduces may start."""
    need = math.ceil(slowstart * len(maps) - 1e-9)
    return sorted(end for _, end in maps)[need - 1] if need > 0 else 0.0


def _reduces(plan: Plan, free: list[float], gate_s: float, reducer: Reducer) -> list[Reduce]:
    """Step 6: each reduce takes the slot that is free first."""
    placed = []
    for _ in range(plan.num_reduces):
        start = max(free[0], gate_s)
        begin = start + plan.task_overhead_s + plan.reduce_startup_s
        outcome, after, after_s = reducer.reduce(begin)
        shuffle_end = begin + outcome.shuffle_s
        end = shuffle_end + after_s
        heapq.heapreplace(free, end)
        placed.append(Reduce(start, shuffle_end, end, outcome, after))
    return placed


def _check(plan: Plan, pool: str) -> None:
    if pool not in POOLS:
        raise range_error("pool", pool, "separate or shared", WHERE)
    for name in ("map_task_s", "task_overhead_s", "job_overhead_s", "reduce_startup_s"):
        check_number(name, getattr(plan, name), where=WHERE)
    check_number("reduce_slowstart", plan.slowstart, where=WHERE, high=1)
    for name in ("num_maps", "num_reduces"):
        check_count(name, getattr(plan, name), where=WHERE)
    for name in ("num_nodes", "map_slots"):
        check_count(name, getattr(plan, name), where=WHERE, low=1)
    if plan.num_reduces and pool == "separate":
        check_count("reduce_slots", plan.reduce_slots, where=WHERE, low=1)
