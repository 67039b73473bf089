"""
What the model is given: statistics, costs, configuration, cluster, in the paper's Tables 3 to 5.

Each field carries its default and its range (``docs/models/whatif.md``, sections 4.1 to 4.3 and
10); `read_job` checks all of them, then applies Eq. (1).
"""

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, TypeVar

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, check_number, range_error

MB = 2**20
RULES = ("paper", "mr2")

# Heap of a reduce task where none is given: mapred.child.java.opts of Hadoop 1, and Hadoop 3's
# share of the container.
HEAP_BYTES = {"paper": 200.0 * MB, "mr2": 0.8 * 1024 * MB}

# Fields of the specification's tables that no equation reads.
_UNUSED = frozenset(
    {
        "startup_mem_bytes", "setup_mem_bytes", "cleanup_mem_bytes",
        "mem_per_map_record_bytes", "mem_per_reduce_record_bytes", "parallel_copies",
    }
)  # fmt: skip


def _number(default: Any = MISSING, **limits: Any) -> Any:
    return field(default=default, metadata={"check": check_number, "limits": limits})


def _positive(default: Any = MISSING) -> Any:
    return _number(default, above=True)


def _share(default: float, *, above: bool = False) -> Any:
    return _number(default, high=1.0, above=above)


def _count(default: Any = MISSING, low: float = 0) -> Any:
    return field(default=default, metadata={"check": check_count, "limits": {"low": low}})


def _flag() -> Any:
    return field(default=False, metadata={"check": check_flag, "limits": {}})


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Dataflow statistics, Table 3: bytes and records per record, selectivities, ratios."""

    input_record_bytes: float = _positive()
    records_per_reduce_group: float = _positive(1.0)
    map_bytes_selectivity: float = _number(1.0)
    map_records_selectivity: float = _number(1.0)
    reduce_bytes_selectivity: float = _number(1.0)
    reduce_records_selectivity: float = _number(1.0)
    combine_bytes_selectivity: float = _number(1.0)
    combine_records_selectivity: float = _number(1.0)
    input_compression_ratio: float = _positive(1.0)
    map_output_compression_ratio: float = _positive(1.0)
    output_compression_ratio: float = _positive(1.0)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Cost statistics, Table 4: seconds per byte, per record, per task."""

    hdfs_read_s_per_byte: float = _number(0.0)
    hdfs_write_s_per_byte: float = _number(0.0)
    local_read_s_per_byte: float = _number(0.0)
    local_write_s_per_byte: float = _number(0.0)
    network_s_per_byte: float = _number(0.0)
    map_cpu_s_per_record: float = _number(0.0)
    reduce_cpu_s_per_record: float = _number(0.0)
    combine_cpu_s_per_record: float = _number(0.0)
    partition_cpu_s_per_record: float = _number(0.0)
    serde_cpu_s_per_record: float = _number(0.0)
    sort_cpu_s_per_record: float = _number(0.0)
    merge_cpu_s_per_record: float = _number(0.0)
    input_decompress_s_per_byte: float = _number(0.0)
    map_output_decompress_s_per_byte: float = _number(0.0)
    map_output_compress_s_per_byte: float = _number(0.0)
    output_compress_s_per_byte: float = _number(0.0)
    setup_cpu_s: float = _number(0.0)
    cleanup_cpu_s: float = _number(0.0)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Configuration of the job, Table 5."""

    num_maps: int = _count()
    num_reduces: int = _count(1)
    split_bytes: float = _number(128.0 * MB)
    sort_buffer_mb: float = _number(100.0)
    sort_spill_percent: float = _share(0.80, above=True)
    sort_record_percent: float = _share(0.05)
    merge_factor: int = _count(10, low=2)
    combine_min_spills: int = _count(3)
    inmem_merge_segments: int = _count(1000, low=-math.inf)
    shuffle_buffer_percent: float = _share(0.70, above=True)
    shuffle_merge_percent: float = _share(0.66)
    shuffle_segment_limit_percent: float = _share(0.25)
    reduce_buffer_percent: float = _share(0.0)
    reduce_slowstart: float = _share(0.05)
    reduce_heap_bytes: float = _number(200.0 * MB)
    use_combiner: bool = _flag()
    map_output_compressed: bool = _flag()
    output_compressed: bool = _flag()
    input_compressed: bool = _flag()


@dataclass(frozen=True, kw_only=True)
class ClusterSize:
    """Nodes, and the tasks of each kind that one node runs at once, Table 5."""

    num_nodes: int = _count(low=1)
    map_slots_per_node: int = _count(2, low=1)
    reduce_slots_per_node: int = _count(2)


@dataclass(frozen=True)
class Job:
    """All that the dataflow depends on, after Eq. (1); `mr2` tells the rule set."""

    statistics: Statistics
    config: Config
    cluster: ClusterSize
    mr2: bool

    @property
    def ratio(self) -> float:
        """The paper's dsIntermCompressRatio, k: compressed / uncompressed map output."""
        return self.statistics.map_output_compression_ratio


_Part = TypeVar("_Part", Statistics, Costs, Config, ClusterSize)


def read_job(
    statistics: Mapping[str, float],
    config: Mapping[str, Any],
    cluster: Mapping[str, int],
    rules: str,
) -> Job:
    """
    Check the inputs of the dataflow and apply Eq. (1) to them.

    ``ModelError`` names the field that is missing or outside its range.
    """
    if rules not in RULES:
        raise range_error("rules", rules, "paper or mr2", "what-if")
    settings = _read(Config, {"reduce_heap_bytes": HEAP_BYTES[rules], **config}, "configuration")
    size = _read(ClusterSize, cluster, "cluster")
    check_together(settings, size, rules)
    data = _read(Statistics, statistics, "statistics")
    if "combine_bytes_selectivity" not in statistics:
        # Without a statistic of its own, a combiner shrinks bytes as it shrinks records.
        data = replace(data, combine_bytes_selectivity=data.combine_records_selectivity)
    return Job(_initialised(data, settings), settings, size, rules == "mr2")


def read_costs(costs: Mapping[str, float], config: Config) -> Costs:
    """Check the costs, absent ones being 0, and apply Eq. (1) to them."""
    return replace(_read(Costs, costs, "costs"), **dict.fromkeys(unused_costs(config), 0.0))


def unused_costs(config: Config) -> list[str]:
    """Costs that Eq. (1) sets to 0: of a combiner or a codec that the job does not use."""
    off: list[str] = []
    if not config.use_combiner:
        off += ["combine_cpu_s_per_record"]
    if not config.input_compressed:
        off += ["input_decompress_s_per_byte"]
    if not config.map_output_compressed:
        off += ["map_output_compress_s_per_byte", "map_output_decompress_s_per_byte"]
    if not config.output_compressed:
        off += ["output_compress_s_per_byte"]
    return off


def warnings_of(
    job: Job,
    statistics: Mapping[str, float],
    costs: Mapping[str, float],
    config: Mapping[str, Any],
) -> list[str]:
    """What a reader of the answer should know of its inputs."""
    found = [
        f"{f.name} is {value:g}, above 1"
        for f in fields(Statistics)
        if ("selectivity" in f.name or "ratio" in f.name)
        and (value := getattr(job.statistics, f.name)) > 1
    ]
    found += [f"no {f.name}: taken as 0" for f in fields(Costs) if f.name not in costs]
    parts = ((statistics, Statistics), (costs, Costs), (config, Config))
    for given, part in parts:
        strange = set(given) - {f.name for f in fields(part)} - _UNUSED
        found += [f"{name} is not used by the model" for name in sorted(strange)]
    return found


def _read(part: type[_Part], given: Mapping[str, Any], kind: str) -> _Part:
    where = f"what-if {kind}"
    values = {}
    for f in fields(part):
        if f.name in given:
            check = f.metadata["check"]
            values[f.name] = check(f.name, given[f.name], where=where, **f.metadata["limits"])
        elif f.default is MISSING:
            raise ModelError(f"{f.name} is missing", where=where)
    return part(**values)


def check_together(config: Config, cluster: ClusterSize, rules: str) -> None:
    """Ranges that depend on the rules or on another field."""
    where = f"what-if configuration, {rules} rules"
    if config.num_reduces and cluster.reduce_slots_per_node < 1:
        slots = cluster.reduce_slots_per_node
        raise range_error(
            "reduce_slots_per_node", slots, "a whole number from 1 on", "what-if cluster"
        )
    if rules == "mr2" and config.sort_buffer_mb > 2047:
        raise range_error("sort_buffer_mb", config.sort_buffer_mb, "at most 2047", where)
    limit, merge = config.shuffle_segment_limit_percent, config.shuffle_merge_percent
    if rules == "mr2" and config.num_reduces and not 0 < limit < merge:
        wanted = f"above 0 and below shuffle_merge_percent ({merge:g})"
        raise range_error("shuffle_segment_limit_percent", limit, wanted, where)


def _initialised(statistics: Statistics, config: Config) -> Statistics:
    """Eq. (1): what is not used changes nothing."""
    neutral: dict[str, float] = {}
    if not config.use_combiner:
        neutral |= {"combine_bytes_selectivity": 1.0, "combine_records_selectivity": 1.0}
    if not config.input_compressed:
        neutral |= {"input_compression_ratio": 1.0}
    if not config.map_output_compressed:
        neutral |= {"map_output_compression_ratio": 1.0}
    if not config.output_compressed:
        neutral |= {"output_compression_ratio": 1.0}
    return replace(statistics, **neutral)
