"""
What a shuffle is given: groups of map outputs, settings, costs; and what one step of it takes.

The functions of the specification's table in section 5.2 that are plain arithmetic stand here, for
both forms of Algorithm 1 share them.
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, check_number, range_error

WHERE = "prophet shuffle"
HEAP_BYTES = 0.8 * 1024 * 2**20  # of a reduce task where none is given: Hadoop 3's share
DOMINANT = ("network_s_per_byte", "local_write_s_per_byte")  # never taken as 0 in silence

File = tuple[float, float]  # compressed bytes, records


class Segment(NamedTuple):
    """What one map leaves for the reduce."""

    bytes: float
    compressed_bytes: float
    records: float


@dataclass(frozen=True, slots=True)
class Group:
    """The outputs of *count* maps on one *host*, all there at *finish_s*."""

    host: str
    count: int
    finish_s: float
    segment: Segment


@dataclass(frozen=True, slots=True)
class ShuffleCosts:
    """Costs of a copy and of the merges, in seconds per (compressed) byte and per record."""

    network_s_per_byte: float
    local_write_s_per_byte: float
    local_read_s_per_byte: float = 0.0
    map_output_decompress_s_per_byte: float = 0.0
    map_output_compress_s_per_byte: float = 0.0
    merge_cpu_s_per_record: float = 0.0
    combine_cpu_s_per_record: float = 0.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings and costs of a shuffle, after Eq. (1) of What-If: what is off changes nothing."""

    parallel_copies: int
    merge_factor: int
    limit: float
    threshold: float
    single: float
    ratio: float
    combine_bytes_selectivity: float
    combine_records_selectivity: float
    costs: ShuffleCosts

    def copy_s(self, segment: Segment) -> float:
        """Seconds of one copier for one segment: a term of SHUCOST."""
        c = self.costs
        kept = segment.bytes <= self.single
        after = c.map_output_decompress_s_per_byte if kept else c.local_write_s_per_byte
        size = segment.compressed_bytes
        return size * c.network_s_per_byte + size * after

    def memory_merge_s(self, compressed_bytes: float, records: float) -> float:
        """MEMMERGE of a batch [s]."""
        c, out = self.costs, compressed_bytes * self.combine_bytes_selectivity
        return (
            records * (c.merge_cpu_s_per_record + c.combine_cpu_s_per_record)
            + out / self.ratio * c.map_output_compress_s_per_byte
            + out * c.local_write_s_per_byte
        )

    def merged(self, compressed_bytes: float, records: float) -> File:
        """MERGED: the file that a merge in memory writes."""
        return (
            compressed_bytes * self.combine_bytes_selectivity,
            records * self.combine_records_selectivity,
        )

    def disk_merge_s(self, size: float, records: float) -> float:
        """DISKMERGE of files of so many bytes and records [s]."""
        c = self.costs
        moved = (
            c.local_read_s_per_byte + c.map_output_decompress_s_per_byte + c.local_write_s_per_byte
        )
        return (
            size * moved
            + records * c.merge_cpu_s_per_record
            + size / self.ratio * c.map_output_compress_s_per_byte
        )


@dataclass(frozen=True)
class Outcome:
    """What a shuffle comes to; *left* are the segments still in memory, in order of arrival."""

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
        """Seconds until the last of the three is done."""
        return max(self.copy_clock_s, self.memory_merge_clock_s, self.disk_merge_clock_s)

    def quantities(self) -> dict[str, Any]:
        """Outputs of section 5 by name; ``ModelError`` where they are not finite."""
        if not math.isfinite(self.shuffle_s):
            raise too_large()
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "left"}
        return named | {
            "shuffle_s": self.shuffle_s,
            "segments_left_in_memory": len(self.left),
            "bytes_left_in_memory": sum((s.bytes for s in self.left), 0.0),
            "disk_files": [list(file) for file in self.disk_files],
        }


def read_setting(config: Mapping[str, Any], costs: Mapping[str, Any]) -> Setting:
    """
    Check *config* (the fields of section 5, codec and combiner statistics among them) and *costs*.

    ``ModelError`` names the field that is missing or outside its range.
    """
    limit, threshold, single = _marks(config)
    combiner = check_flag("use_combiner", config.get("use_combiner", False), where=WHERE)
    codec = check_flag(
        "map_output_compressed", config.get("map_output_compressed", False), where=WHERE
    )
    records = _number("combine_records_selectivity", config, 1.0)
    size = _number("combine_bytes_selectivity", config, records)
    ratio = _number("map_output_compression_ratio", config, 1.0, above=True)
    return Setting(
        parallel_copies=check_count(
            "parallel_copies", config.get("parallel_copies", 5), where=WHERE, low=1
        ),
        merge_factor=check_count(
            "merge_factor", config.get("merge_factor", 10), where=WHERE, low=2
        ),
        limit=limit,
        threshold=threshold,
        single=single,
        ratio=ratio if codec else 1.0,
        combine_bytes_selectivity=size if combiner else 1.0,
        combine_records_selectivity=records if combiner else 1.0,
        costs=_costs(costs, combiner=combiner, codec=codec),
    )


def _number(name: str, config: Mapping[str, Any], default: float, **limits: Any) -> float:
    return check_number(name, config.get(name, default), where=WHERE, **limits)


def _marks(config: Mapping[str, Any]) -> tuple[float, float, float]:
    """Bytes of the shuffle buffer, those that start a merge, those of the largest segment in it."""
    heap = _number("reduce_heap_bytes", config, HEAP_BYTES)
    limit = heap * _number("shuffle_buffer_percent", config, 0.70, high=1.0, above=True)
    merge = _number("shuffle_merge_percent", config, 0.66, high=1.0)
    segment = _number("shuffle_segment_limit_percent", config, 0.25, high=1.0)
    if merge * limit <= 0:
        name = "shuffle_merge_percent" if heap else "reduce_heap_bytes"
        raise range_error(name, merge if heap else heap, "above 0", WHERE)
    if segment >= merge:
        wanted = f"below shuffle_merge_percent ({merge:g})"
        raise range_error("shuffle_segment_limit_percent", segment, wanted, WHERE)
    return limit, merge * limit, segment * limit


def _costs(costs: Mapping[str, Any], *, combiner: bool, codec: bool) -> ShuffleCosts:
    off = set() if combiner else {"combine_cpu_s_per_record"}
    off |= set() if codec else {
        "map_output_decompress_s_per_byte", "map_output_compress_s_per_byte"
    }  # fmt: skip
    for name in DOMINANT:
        if name not in costs:
            raise ModelError(f"{name} is missing", where=WHERE)
    found = {f.name: _number(f.name, costs, 0.0) for f in fields(ShuffleCosts)}
    return ShuffleCosts(**{name: 0.0 if name in off else cost for name, cost in found.items()})


def read_groups(given: Any) -> list[Group]:
    """Check groups of map outputs; those without a segment are left out."""
    if not isinstance(given, list | tuple):
        raise range_error("groups", given, "a list of groups", WHERE)
    groups = [_group(group, f"{WHERE}, group {place}") for place, group in enumerate(given)]
    return [group for group in groups if group.count]


def _group(given: Any, where: str) -> Group:
    if not isinstance(given, Mapping):
        raise range_error("groups", given, "a list of groups", where)
    names = ("host", "count", "finish_s", "segment_bytes", "segment_compressed_bytes",
             "segment_records")  # fmt: skip
    for name in names:
        if name not in given:
            raise ModelError(f"{name} is missing", where=where)
    if not isinstance(given["host"], str):
        raise range_error("host", given["host"], "a host's name", where)
    return Group(
        host=given["host"],
        count=check_count("count", given["count"], where=where),
        finish_s=check_number("finish_s", given["finish_s"], where=where, low=-math.inf),
        segment=Segment(*(check_number(name, given[name], where=where) for name in names[3:])),
    )


def later(clock: float, seconds: float) -> float:
    """*clock* so many seconds later; ``ModelError`` where it leaves the numbers."""
    clock += seconds
    if not clock < math.inf:
        raise too_large()
    return clock


def too_large() -> ModelError:
    """Error for inputs whose answer is infinite or no number."""
    return ModelError("the numbers are so large that the answer is not finite", where="prophet")
