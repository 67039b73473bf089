"""
The shuffle of a reduce task: Algorithm 1 of section 5, its inputs, and what one step of it takes.

The pseudocode's T_c, T_m and T_d are the clocks of the copiers, of the merger in memory and of the
one on disk.  What would cost time in the form that is printed is done otherwise:

    printed                                       here
    --------------------------------------------  ------------------------------------------------
    search of the pending groups for a free host  `_Copiers`: the next group of each free host
    SHUCOST of every segment                      once for all equal ones
    all merges in memory looked at in each round  a queue: they end in the order of their start
    an object for each round                      plain locals
"""

from __future__ import annotations

import heapq
import math

from bisect import insort
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, NamedTuple

from harness.models.checks import (
    check_count,
    check_flag,
    check_number,
    count_field,
    not_finite_error,
    number_field,
    range_error,
    read_fields,
)
from harness.models.merge import File  # compressed bytes, records
from harness.models.whatif.inputs import HEAP_BYTES

WHERE = "prophet shuffle"

COSTS_OF_CODEC = frozenset({"map_output_decompress_s_per_byte", "map_output_compress_s_per_byte"})
_NO_PLACE = -1
_Batch = tuple[float, float, float, int]  # bytes, compressed bytes, records; segments


class Segment(NamedTuple):
    """What one map leaves for the reduce."""

    bytes: float
    compressed_bytes: float
    records: float


@dataclass
class _GroupFields:
    """Numbers of a group of map outputs."""

    count: int = count_field()
    finish_s: float = number_field(low=-math.inf)
    segment_bytes: float = number_field()
    segment_compressed_bytes: float = number_field()
    segment_records: float = number_field()


@dataclass(frozen=True, slots=True)
class Group:
    """The outputs of *count* maps on one *host*, all there at *finish_s*."""

    host: str
    count: int
    finish_s: float
    segment: Segment


@dataclass(frozen=True, slots=True)
class ShuffleCosts:
    """
    Costs of a copy and of the merges, in seconds per (compressed) byte and per record.

    The first two dominate, and are never silently taken as 0.
    """

    network_s_per_byte: float = number_field()
    local_write_s_per_byte: float = number_field()
    local_read_s_per_byte: float = number_field(0.0)
    map_output_decompress_s_per_byte: float = number_field(0.0)
    map_output_compress_s_per_byte: float = number_field(0.0)
    merge_cpu_s_per_record: float = number_field(0.0)
    combine_cpu_s_per_record: float = number_field(0.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """
    Settings and costs of a shuffle, after Eq. (1) of What-If: what is off changes nothing.

    Bytes of the shuffle buffer (*limit*), of a batch that is merged in memory (*threshold*) and of
    the largest segment that is copied to memory (*largest_in_memory*).
    """

    parallel_copies: int
    merge_factor: int
    limit: float
    threshold: float
    largest_in_memory: float
    ratio: float
    combine_bytes_selectivity: float
    combine_records_selectivity: float
    costs: ShuffleCosts

    def copy_s(self, segment: Segment) -> float:
        """Seconds of one copier for one segment: a term of SHUCOST."""
        in_memory = segment.bytes <= self.largest_in_memory
        store_s_per_byte = (
            self.costs.map_output_decompress_s_per_byte
            if in_memory
            else self.costs.local_write_s_per_byte
        )
        size = segment.compressed_bytes
        return size * self.costs.network_s_per_byte + size * store_s_per_byte

    def memory_merge_s(self, compressed_bytes: float, records: float) -> float:
        """MEMMERGE of a batch [s]."""
        costs = self.costs
        written_bytes, _ = self.merged_file(compressed_bytes, records)
        return (
            records * (costs.merge_cpu_s_per_record + costs.combine_cpu_s_per_record)
            + written_bytes / self.ratio * costs.map_output_compress_s_per_byte
            + written_bytes * costs.local_write_s_per_byte
        )

    def merged_file(self, compressed_bytes: float, records: float) -> File:
        """MERGED: the file that a merge in memory writes."""
        return (
            compressed_bytes * self.combine_bytes_selectivity,
            records * self.combine_records_selectivity,
        )

    def disk_merge_s(self, size: float, records: float) -> float:
        """DISKMERGE of files of so many bytes and records [s]."""
        costs = self.costs
        per_byte = (
            costs.local_read_s_per_byte
            + costs.map_output_decompress_s_per_byte
            + costs.local_write_s_per_byte
        )
        return (
            size * per_byte
            + records * costs.merge_cpu_s_per_record
            + size / self.ratio * costs.map_output_compress_s_per_byte
        )


@dataclass(frozen=True)
class Outcome:
    """Result of a shuffle; *left* are the segments still in memory, in order of arrival."""

    copy_clock_s: float = 0.0
    memory_merge_clock_s: float = 0.0
    disk_merge_clock_s: float = 0.0
    rounds: int = 0
    waits: int = 0
    stalls: int = 0
    memory_merges: int = 0
    disk_merges: int = 0
    disk_files: list[File] = field(default_factory=list)
    left: list[Segment] = field(default_factory=list)

    @property
    def shuffle_s(self) -> float:
        """Seconds until copiers, merger in memory and merger on disk are all done."""
        return max(self.copy_clock_s, self.memory_merge_clock_s, self.disk_merge_clock_s)

    def quantities(self) -> dict[str, Any]:
        """Outputs of section 5 by name; ``ModelError`` where they are not finite."""
        if not math.isfinite(self.shuffle_s):
            raise not_finite_error("prophet")
        named = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        del named["left"]
        return named | {
            "shuffle_s": self.shuffle_s,
            "segments_left_in_memory": len(self.left),
            "bytes_left_in_memory": sum((segment.bytes for segment in self.left), 0.0),
            "disk_files": [list(file) for file in self.disk_files],
        }


def shuffle(groups: Any, config: Mapping[str, Any], costs: Mapping[str, Any]) -> dict[str, Any]:
    """
    Every quantity of section 5 by name, and the `trace` of Algorithm 1's rounds and waits.

    *groups* are in the order of their maps; times count from the start of the copying.
    """
    trace: list[dict[str, Any]] = []
    outcome = run_shuffle(read_groups(groups), read_setting(config, costs), trace)
    return outcome.quantities() | {"trace": trace}


# Inputs


def read_setting(config: Mapping[str, Any], costs: Mapping[str, Any]) -> Setting:
    """
    Setting of a shuffle from the fields of section 5 and its *costs*, all of them checked.

    *config* holds also whether there is a combiner and a codec, and their statistics.  What is
    off changes nothing, but it is checked all the same.
    """

    def read_number(name: str, default: float, **limits: Any) -> float:
        return check_number(name, config.get(name, default), where=WHERE, **limits)

    def read_count(name: str, default: int, low: int) -> int:
        return check_count(name, config.get(name, default), where=WHERE, low=low)

    def read_flag(name: str) -> bool:
        return check_flag(name, config.get(name, False), where=WHERE)

    heap_bytes = read_number("reduce_heap_bytes", HEAP_BYTES["mr2"])
    limit = heap_bytes * read_number("shuffle_buffer_percent", 0.70, high=1.0, above=True)
    merge_share = read_number("shuffle_merge_percent", 0.66, high=1.0)
    segment_share = read_number("shuffle_segment_limit_percent", 0.25, high=1.0)
    if not heap_bytes:
        raise range_error("reduce_heap_bytes", heap_bytes, "above 0", WHERE)
    if merge_share * limit <= 0:
        raise range_error("shuffle_merge_percent", merge_share, "above 0", WHERE)
    if segment_share >= merge_share:
        wanted = f"below shuffle_merge_percent ({merge_share:g})"
        raise range_error("shuffle_segment_limit_percent", segment_share, wanted, WHERE)
    uses_combiner = read_flag("use_combiner")
    compressed = read_flag("map_output_compressed")
    records_selectivity = read_number("combine_records_selectivity", 1.0)
    bytes_selectivity = read_number("combine_bytes_selectivity", records_selectivity)
    ratio = read_number("map_output_compression_ratio", 1.0, above=True)
    used_costs = read_fields(ShuffleCosts, costs, WHERE)
    if not uses_combiner:
        records_selectivity = 1.0
        bytes_selectivity = 1.0
        used_costs["combine_cpu_s_per_record"] = 0.0
    if not compressed:
        ratio = 1.0
        used_costs |= dict.fromkeys(COSTS_OF_CODEC, 0.0)
    return Setting(
        parallel_copies=read_count("parallel_copies", 5, low=1),
        merge_factor=read_count("merge_factor", 10, low=2),
        limit=limit,
        threshold=merge_share * limit,
        largest_in_memory=segment_share * limit,
        ratio=ratio,
        combine_bytes_selectivity=bytes_selectivity,
        combine_records_selectivity=records_selectivity,
        costs=ShuffleCosts(**used_costs),
    )


def read_groups(values: Any) -> list[Group]:
    """Check groups of map outputs; those without a segment are left out."""
    if not isinstance(values, list | tuple):
        raise range_error("groups", values, "a list of groups", WHERE)
    groups = []
    for place, group_fields in enumerate(values):
        where = f"{WHERE}, group {place}"
        if not isinstance(group_fields, Mapping):
            raise range_error("groups", group_fields, "a list of groups", where)
        host = group_fields.get("host")
        if not isinstance(host, str):
            raise range_error("host", host, "a host's name", where)
        count, finish_s, *sizes = read_fields(_GroupFields, group_fields, where).values()
        if count:
            groups.append(Group(host, count, finish_s, Segment(*sizes)))
    return groups


# Algorithm 1


class _Copiers:
    """
    Groups by their place in the order of copying, and the one that each copier works on.

    Of each host the next group waits until the one before it is copied: *heads* are the first ones
    (the last of the list is next), *returned* a heap of those that follow.  Lists from *place* to
    *ready* have one entry per copier.
    """

    def __init__(self, groups: Sequence[Group], setting: Setting) -> None:
        ordered = sorted(groups, key=attrgetter("finish_s"))
        segments = {id(group.segment): group.segment for group in ordered}
        copy_s = {key: setting.copy_s(segment) for key, segment in segments.items()}
        self.rows = [
            (group.segment, copy_s[id(group.segment)], group.count, group.finish_s)
            for group in ordered
        ]
        self.hosts = [group.host for group in ordered]
        # For each place the next place of its host; first places, the smallest last.
        self.following = [_NO_PLACE] * len(ordered)
        first_place: dict[str, int] = {}
        for place in range(len(ordered) - 1, -1, -1):
            host = self.hosts[place]
            self.following[place] = first_place.get(host, _NO_PLACE)
            first_place[host] = place
        self.heads = sorted(first_place.values(), reverse=True)
        self.returned: list[int] = []
        number = min(setting.parallel_copies, len(self.heads))  # no more than hosts are ever busy
        self.place = [_NO_PLACE] * number
        self.outputs_left = [0] * number
        self.copy_s = [0.0] * number
        self.segment = [Segment(0.0, 0.0, 0.0)] * number
        self.ready = [math.inf] * number
        self.idle = list(range(number))
        self.busy = 0
        self.refill([])

    def refill(self, done_copiers: Sequence[int]) -> None:
        """UPDATECOPYDEST: free the hosts of copiers that are done; idle ones get a group."""
        for copier in done_copiers:
            self.ready[copier] = math.inf
            next_place = self.following[self.place[copier]]
            if next_place != _NO_PLACE:
                heapq.heappush(self.returned, next_place)
        idle = sorted([*self.idle, *done_copiers]) if self.idle else done_copiers
        heads = self.heads
        returned = self.returned
        assigned = 0
        for copier in idle:
            if returned and not (heads and heads[-1] < returned[0]):
                place = heapq.heappop(returned)
            elif heads:
                place = heads.pop()
            else:
                break
            self.place[copier] = place
            segment, copy_s, count, ready = self.rows[place]
            self.segment[copier] = segment
            self.copy_s[copier] = copy_s
            self.outputs_left[copier] = count
            self.ready[copier] = ready
            assigned += 1
        self.idle = list(idle[assigned:])
        self.busy += assigned - len(done_copiers)

    def hosts_of_round(self, start: float, last: int) -> list[str]:
        """Hosts from which the copiers up to *last* fetched in a round that started at *start*."""
        return [
            self.hosts[self.place[copier]]
            for copier in range(last + 1)
            if self.ready[copier] <= start
        ]


class _Mergers:
    """The merger in memory and, after it, the one on disk."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.memory_clock = self.disk_clock = 0.0
        self.memory_merges = self.disk_merges = 0
        self.running: deque[tuple[float, float]] = deque()  # end, bytes that are free then
        self.files: list[File] = []

    def store(self, direct: Iterable[Segment], batches: Iterable[_Batch], now: float) -> None:
        """Take in what a round that ended *now* copied to disk, and merge its *batches*."""
        setting = self.setting
        for _, size, records in direct:
            self._add_file((size, records), now)
        for in_memory, size, records, _ in batches:
            merge_s = setting.memory_merge_s(size, records)
            self.memory_clock = max(now, self.memory_clock) + merge_s
            self.running.append((self.memory_clock, in_memory))
            self.memory_merges += 1
            self._add_file(setting.merged_file(size, records), self.memory_clock)

    def state_after(self, batches: Iterable[_Batch]) -> dict[str, Any]:
        """What the trace of a round shows of the mergers, its *batches* already stored."""
        return {
            "memory_merge_clock_s": self.memory_clock,
            "disk_merge_clock_s": self.disk_clock,
            "disk_files": len(self.files),
            "merged_segments": [segments for _, _, _, segments in batches],
        }

    def outcome(
        self, copy_clock: float, rounds: int, waits: int, stalls: int, left: list[Segment]
    ) -> Outcome:
        """Result of the shuffle, its last copy ended; ``ModelError`` where that is never."""
        if not copy_clock < math.inf:
            raise not_finite_error("prophet")
        return Outcome(
            copy_clock_s=copy_clock,
            memory_merge_clock_s=self.memory_clock,
            disk_merge_clock_s=self.disk_clock,
            rounds=rounds,
            waits=waits,
            stalls=stalls,
            memory_merges=self.memory_merges,
            disk_merges=self.disk_merges,
            disk_files=self.files,
            left=left,
        )

    def _add_file(self, file: File, start: float) -> None:
        """DISKCHECK: at 2F - 1 files the F smallest become one, from *start* on (P32, P35)."""
        insort(self.files, file)
        factor = self.setting.merge_factor
        while len(self.files) >= 2 * factor - 1:
            smallest = self.files[:factor]
            del self.files[:factor]
            size = sum(file_bytes for file_bytes, _ in smallest)
            records = sum(file_records for _, file_records in smallest)
            self.disk_clock = max(self.disk_clock, start) + self.setting.disk_merge_s(size, records)
            self.disk_merges += 1
            insort(self.files, (size, records))


def run_shuffle(
    groups: Sequence[Group], setting: Setting, trace: list[dict[str, Any]] | None = None
) -> Outcome:
    """
    Copy all *groups*; *trace* gains one entry for each round and each wait.

    What follows costs time in every round: it is one loop over plain locals, without calls where
    nothing happens.
    """
    copiers = _Copiers(groups, setting)
    mergers = _Mergers(setting)
    largest = setting.largest_in_memory
    limit = setting.limit
    threshold = setting.threshold
    segments = copiers.segment
    copy_s = copiers.copy_s
    ready = copiers.ready
    outputs_left = copiers.outputs_left
    all_copiers = range(len(segments))
    running = mergers.running
    copy_clock = used_bytes = committed_bytes = compressed_bytes = records = 0.0
    rounds = waits = stalls = 0
    commit = list[Segment]()
    direct = list[Segment]()
    batches = list[_Batch]()
    done_copiers = list[int]()
    while copiers.busy:
        while running and running[0][0] <= copy_clock:  # REMOVEMEMOUTS
            used_bytes -= running.popleft()[1]
        slowest = -1.0
        is_full = False
        for copier in all_copiers:
            if copy_clock < ready[copier]:
                continue
            size, compressed_size, record_count = segment = segments[copier]
            if copy_s[copier] > slowest:  # noqa: PLR1730 - twice as fast as a call
                slowest = copy_s[copier]
            if size <= largest:
                used_bytes += size
                committed_bytes += size
                compressed_bytes += compressed_size
                records += record_count
                commit.append(segment)
                if committed_bytes >= threshold:  # ISMERGE
                    batches.append((committed_bytes, compressed_bytes, records, len(commit)))
                    committed_bytes = compressed_bytes = records = 0.0
                    commit = []
            else:
                direct.append(segment)
            outputs_left[copier] -= 1
            if not outputs_left[copier]:
                done_copiers.append(copier)
            if is_full := used_bytes > limit:  # ISFULL
                break
        if slowest < 0:  # LASTEDCLOCK: nothing is there to copy
            copy_clock = max(copy_clock, min(ready))
            waits += 1
            if trace is not None:
                trace.append({"wait_until_s": copy_clock})
            continue
        rounds += 1
        start = copy_clock
        copy_clock += slowest
        if direct or batches:
            mergers.store(direct, batches, copy_clock)
        if is_full:
            copy_clock = max(copy_clock, mergers.memory_clock)
            stalls += 1
        if trace is not None:
            entry = {
                "round": rounds,
                "fetched": copiers.hosts_of_round(start, copier),
                "full": is_full,
                "copy_clock_s": copy_clock,
                "used_bytes": used_bytes,
                "committed_bytes": committed_bytes,
            }
            trace.append(entry | mergers.state_after(batches))
        direct = []
        batches = []
        if done_copiers:
            copiers.refill(done_copiers)
            done_copiers.clear()
    return mergers.outcome(copy_clock, rounds, waits, stalls, commit)
