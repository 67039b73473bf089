"""
Algorithm 1 as it is printed in section 5.2, line by line: what the product's form is compared with.

T_c, T_m and T_d are the clocks of the copiers, of the merger in memory and of the one on disk.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.models.merge import File
from harness.models.prophet.shuffle import Group, Outcome, Segment, Setting


@dataclass
class _Copied:
    """A group that a copier has, and how many of its segments are left."""

    group: Group
    left: int


@dataclass
class _Batch:
    """Segments in memory that are not yet merged, and their sums."""

    segments: list[Segment] = field(default_factory=list)
    bytes: float = 0.0
    compressed_bytes: float = 0.0
    records: float = 0.0

    def add(self, segment: Segment) -> None:
        """Take one more."""
        self.segments.append(segment)
        self.bytes += segment.bytes
        self.compressed_bytes += segment.compressed_bytes
        self.records += segment.records


@dataclass
class _Round:
    """What the copiers did side by side."""

    fetched: list[Group] = field(default_factory=list)
    batches: list[_Batch] = field(default_factory=list)
    direct: list[Segment] = field(default_factory=list)
    full: bool = False


class ObviousShuffle:
    """A reduce task's shuffle; `run` gives its outcome, `trace` then has one entry per pass."""

    def __init__(self, groups: Sequence[Group], setting: Setting) -> None:
        """Take the groups that are to be copied, in any order."""
        self.setting, self.trace = setting, list[dict[str, Any]]()
        self.pending = sorted(groups, key=lambda g: g.finish_s)
        hosts = len({g.host for g in groups})  # no more copiers than hosts are ever busy
        self.dest: list[_Copied | None] = [None] * min(setting.parallel_copies, hosts)
        self.T_c = self.T_m = self.T_d = 0.0
        self.used = 0.0
        self.commit = _Batch()
        self.merging: list[tuple[float, float]] = []
        self.disk: list[File] = []
        self.rounds = self.waits = self.stalls = self.memory_merges = self.disk_merges = 0

    def run(self) -> Outcome:
        """Copy all groups."""
        self._refill()
        while any(self.dest):
            self._release()
            done = self._fetch()
            if done.fetched:
                self._pay(done)
                self._refill()
            else:
                self._wait()
        return Outcome(
            self.T_c, self.T_m, self.T_d, self.rounds, self.waits, self.stalls,
            self.memory_merges, self.disk_merges, self.disk, self.commit.segments,
        )  # fmt: skip

    def _refill(self) -> None:
        """UPDATECOPYDEST: the first pending group of a host that no copier works on."""
        for copier, copied in enumerate(self.dest):
            if copied is not None:
                continue
            busy = {d.group.host for d in self.dest if d is not None}
            free = (k for k, g in enumerate(self.pending) if g.host not in busy)
            if (place := next(free, None)) is not None:
                group = self.pending.pop(place)
                self.dest[copier] = _Copied(group, group.count)

    def _release(self) -> None:
        """REMOVEMEMOUTS: memory is free when its merge has ended."""
        for release, size in self.merging:
            if release <= self.T_c:
                self.used -= size
        self.merging = [m for m in self.merging if m[0] > self.T_c]

    def _fetch(self) -> _Round:
        """One segment for each copier whose maps are finished, until memory is full."""
        done = _Round()
        for t, d in enumerate(self.dest):
            if d is None or self.T_c < d.group.finish_s:
                continue
            d.left -= 1
            done.fetched.append(d.group)
            self._store(d.group.segment, done)
            if d.left == 0:
                self.dest[t] = None
            if self.used > self.setting.limit:  # ISFULL
                done.full = True
                break
        return done

    def _store(self, segment: Segment, done: _Round) -> None:
        if segment.bytes > self.setting.largest_in_memory:
            done.direct.append(segment)
            return
        self.used += segment.bytes
        self.commit.add(segment)
        if self.commit.bytes >= self.setting.threshold:  # ISMERGE
            done.batches.append(self.commit)
            self.commit = _Batch()

    def _wait(self) -> None:
        """LASTEDCLOCK: nothing is there to copy."""
        self.T_c = max(self.T_c, min(d.group.finish_s for d in self.dest if d is not None))
        self.waits += 1
        self.trace.append({"wait_until_s": self.T_c})

    def _pay(self, done: _Round) -> None:
        """Copies, then what they start on disk and in memory."""
        self.rounds += 1
        self.T_c += max(self.setting.copy_s(g.segment) for g in done.fetched)  # SHUCOST
        for segment in done.direct:
            insort(self.disk, (segment.compressed_bytes, segment.records))
            self._check_disk(self.T_c)
        for batch in done.batches:
            self._merge(batch)
        if done.full:
            self.T_c = max(self.T_c, self.T_m)
            self.stalls += 1
        self._record(done)

    def _merge(self, batch: _Batch) -> None:
        content = batch.compressed_bytes, batch.records
        self.T_m = max(self.T_c, self.T_m) + self.setting.memory_merge_s(*content)
        self.merging.append((self.T_m, batch.bytes))
        self.memory_merges += 1
        insort(self.disk, self.setting.merged_file(*content))
        self._check_disk(self.T_m)

    def _check_disk(self, start: float) -> None:
        """DISKCHECK: at 2F - 1 files the F smallest become one (P32, P35)."""
        factor = self.setting.merge_factor
        while len(self.disk) >= 2 * factor - 1:
            smallest, self.disk = self.disk[:factor], self.disk[factor:]
            size, records = sum(f[0] for f in smallest), sum(f[1] for f in smallest)
            self.T_d = max(self.T_d, start) + self.setting.disk_merge_s(size, records)
            self.disk_merges += 1
            insort(self.disk, (size, records))

    def _record(self, done: _Round) -> None:
        self.trace.append(
            {
                "round": self.rounds,
                "fetched": [g.host for g in done.fetched],
                "copy_clock_s": self.T_c,
                "memory_merge_clock_s": self.T_m,
                "disk_merge_clock_s": self.T_d,
                "used_bytes": self.used,
                "committed_bytes": self.commit.bytes,
                "disk_files": len(self.disk),
                "full": done.full,
                "merged_segments": [len(batch.segments) for batch in done.batches],
            }
        )
