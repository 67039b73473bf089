"""
Algorithm 1 without its trace: the fast form of `harness.models.prophet.algorithm`.

Every sum is taken in the same order, so both forms give the same bits.  What costs time in the
obvious form is done otherwise:

    obvious                                       here
    --------------------------------------------  ------------------------------------------------
    search of the pending groups for a free host  `_Copiers`: the next group of each free host
    SHUCOST of every segment                      once for all equal ones
    merges in memory, all looked at each round    a queue: they end in the order of their begin
    an object for each round                      plain locals
"""

from __future__ import annotations

import heapq
import math

from bisect import insort
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from harness.models.prophet.algorithm import Shuffle
from harness.models.prophet.setting import (
    File,
    Group,
    Outcome,
    Segment,
    Setting,
    later,
    read_groups,
    read_setting,
)

_NONE = -1  # no place
_Sums = tuple[float, float, float]  # bytes, compressed bytes and records of a batch


def shuffle(
    groups: Any,
    config: Mapping[str, Any],
    costs: Mapping[str, Any],
    *,
    trace: bool = False,
) -> dict[str, Any]:
    """
    Every quantity of section 5 by name, with *trace* also Algorithm 1's rounds and waits.

    *groups* is a list of objects in the order of their maps; times count from the begin of the
    copying.
    ``ModelError`` (a ``ValueError``) names a field that is missing or outside its range.
    """
    found, setting = read_groups(groups), read_setting(config, costs)
    answer = run(found, setting).quantities()
    if trace:
        slow = Shuffle(found, setting)
        slow.run()
        answer["trace"] = slow.trace
    return answer


class _Copiers:
    """
    Groups by their place in the order of copying, and what each copier holds of them.

    Of each host the next group waits until the one before it is copied: *heads* are the first ones
    (the last of the list is next), *returned* a heap of those that follow.
    """

    def __init__(self, groups: Sequence[Group], setting: Setting) -> None:
        ordered = sorted(groups, key=attrgetter("finish_s"))
        kinds = {id(g.segment): g.segment for g in ordered}
        copy_s = {key: setting.copy_s(segment) for key, segment in kinds.items()}
        self.rows = [(g.segment, copy_s[id(g.segment)], g.count, g.finish_s) for g in ordered]
        self.heads, self.following = _chains([g.host for g in ordered])
        self.returned: list[int] = []
        number = min(setting.parallel_copies, len(self.heads))
        self.place, self.left, self.cost = [_NONE] * number, [0] * number, [0.0] * number
        self.segment = [Segment(0.0, 0.0, 0.0)] * number
        self.ready = [math.inf] * number
        self.idle, self.busy = list(range(number)), 0
        self.refill([])

    def refill(self, done: Sequence[int]) -> None:
        """Free the hosts of copiers that are *done*; the first of those without a host take one."""
        for t in done:
            if (place := self.following[self.place[t]]) != _NONE:
                heapq.heappush(self.returned, place)
        idle = sorted([*self.idle, *done]) if self.idle else done
        heads, returned, given = self.heads, self.returned, 0
        for t in idle:
            if returned and not (heads and heads[-1] < returned[0]):
                place = heapq.heappop(returned)
            elif heads:
                place = heads.pop()
            else:
                break
            self.place[t] = place
            self.segment[t], self.cost[t], self.left[t], self.ready[t] = self.rows[place]
            given += 1
        self.idle = list(idle[given:])
        self.busy += given - len(done)


def _chains(hosts: Sequence[str]) -> tuple[list[int], list[int]]:
    """First place of each host, the smallest last; and for each place the next of its host."""
    places = range(len(hosts) - 1, -1, -1)
    first = dict(zip(reversed(hosts), places, strict=True))
    following = [_NONE] * len(hosts)
    if len(first) < len(hosts):
        seen: dict[str, int] = {}
        for place, host in zip(places, reversed(hosts), strict=True):
            following[place] = seen.get(host, _NONE)
            seen[host] = place
    return sorted(first.values(), reverse=True), following


class _Disk:
    """Files on disk and the merger's clock."""

    def __init__(self, setting: Setting) -> None:
        self.files: list[File] = []
        self.setting, self.most = setting, 2 * setting.merge_factor - 1
        self.clock, self.merges = 0.0, 0

    def add(self, file: File, start: float) -> None:
        """One more file; at 2F - 1 of them the F smallest are merged, from *start* on."""
        insort(self.files, file)
        factor = self.setting.merge_factor
        while len(self.files) >= self.most:
            taken = self.files[:factor]
            del self.files[:factor]
            size, records = sum(f[0] for f in taken), sum(f[1] for f in taken)
            self.clock = max(self.clock, start) + self.setting.disk_merge_s(size, records)
            self.merges += 1
            insort(self.files, (size, records))


class _Mergers:
    """The merger in memory and, behind it, the one on disk."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.disk = setting, _Disk(setting)
        self.clock, self.merges = 0.0, 0
        self.running: deque[tuple[float, float]] = deque()  # release, bytes

    def settle(self, direct: Iterable[Segment], batches: Iterable[_Sums], now: float) -> None:
        """Store what a round that ended *now* has left to them."""
        for _, size, records in direct:
            self.disk.add((size, records), now)
        for in_memory, *content in batches:
            self.clock = max(now, self.clock) + self.setting.memory_merge_s(*content)
            self.running.append((self.clock, in_memory))
            self.merges += 1
            self.disk.add(self.setting.merged(*content), self.clock)

    def outcome(
        self, clock: float, rounds: int, waits: int, stalls: int, left: list[Segment]
    ) -> Outcome:
        """Name what has been counted."""
        disk = self.disk
        return Outcome(
            clock, self.clock, disk.clock, rounds, waits, stalls,
            self.merges, disk.merges, disk.files, left,
        )  # fmt: skip


def run(groups: Sequence[Group], setting: Setting) -> Outcome:  # noqa: PLR0915 - calls cost time
    """
    Copy all *groups*: `Shuffle.run` without the trace.

    ``ModelError`` where a clock leaves the numbers.
    """
    copiers, mergers = _Copiers(groups, setting), _Mergers(setting)
    single, limit, threshold = setting.single, setting.limit, setting.threshold
    held, cost, ready, left = copiers.segment, copiers.cost, copiers.ready, copiers.left
    places, running = range(len(held)), mergers.running
    clock = used = committed = compressed = records = 0.0
    rounds = waits = stalls = 0
    commit: list[Segment] = []
    batches: list[_Sums] = []
    direct: list[Segment] = []
    done: list[int] = []
    while copiers.busy:
        while running and running[0][0] <= clock:
            used -= running.popleft()[1]
        slowest, full = -1.0, False
        for t in places:
            if clock < ready[t]:
                continue
            segment = held[t]
            size = segment[0]
            if cost[t] > slowest:  # noqa: PLR1730 - twice as fast as a call
                slowest = cost[t]
            if size <= single:
                used += size
                committed += size
                compressed += segment[1]
                records += segment[2]
                commit.append(segment)
                if committed >= threshold:
                    batches.append((committed, compressed, records))
                    committed = compressed = records = 0.0
                    commit = []
            else:
                direct.append(segment)
            left[t] -= 1
            if not left[t]:
                ready[t] = math.inf
                done.append(t)
            if used > limit:
                full = True
                break
        if slowest < 0:
            clock, waits = max(clock, min(ready)), waits + 1
            continue
        rounds, clock = rounds + 1, later(clock, slowest)
        if direct or batches:
            mergers.settle(direct, batches, clock)
            direct, batches = [], []
        if full:
            clock, stalls = max(clock, mergers.clock), stalls + 1
        if done:
            copiers.refill(done)
            done.clear()
    return mergers.outcome(clock, rounds, waits, stalls, commit)
