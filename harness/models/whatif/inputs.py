"""
What the model is given: statistics, costs, configuration, cluster, in the paper's Tables 3 to 5.

Each field carries its default and its range (``docs/models/whatif.md``, sections 4.1 to 4.3 and
10).  `read_inputs` checks all fields, one value each or an array with one value per configuration;
`Inputs.select` applies Eq. (1) to some configurations.
"""

# ruff: noqa: RUF009 - the functions called in dataclass defaults make fields

from __future__ import annotations

import math

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, make_dataclass, replace
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from numpy.typing import NDArray

from harness.base.errors import ModelError
from harness.base.records.statistics import JOB_COSTS
from harness.base.units import MIB
from harness.models.checks import (
    LARGEST_COUNT,
    Counts,
    Flags,
    Numbers,
    check_count,
    count_field,
    flag_field,
    number_field,
    range_error,
)

RULES = ("paper", "engine", "mr2")

# Heap of a reduce task where none is given: mapred.child.java.opts of Hadoop 1, and Hadoop 3's
# share of the container.
HEAP_BYTES = {"paper": 200.0 * MIB, "engine": 200.0 * MIB, "mr2": 0.8 * 1024 * MIB}

# Fields of the specification's tables that no equation reads.
_UNUSED = frozenset(
    {
        "startup_mem_bytes", "setup_mem_bytes", "cleanup_mem_bytes",
        "mem_per_map_record_bytes", "mem_per_reduce_record_bytes", "parallel_copies",
    }
)  # fmt: skip


_Cost = TypeVar("_Cost")
_count_field = partial(count_field, high=LARGEST_COUNT)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Dataflow statistics, Table 3: bytes and records per record, selectivities, ratios."""

    input_record_bytes: Numbers = number_field(above=True)
    records_per_reduce_group: Numbers = number_field(1.0, above=True)
    map_bytes_selectivity: Numbers = number_field(1.0)
    map_records_selectivity: Numbers = number_field(1.0)
    reduce_bytes_selectivity: Numbers = number_field(1.0)
    reduce_records_selectivity: Numbers = number_field(1.0)
    combine_bytes_selectivity: Numbers = number_field(1.0, switch="use_combiner")
    combine_records_selectivity: Numbers = number_field(1.0, switch="use_combiner")
    # Ours (W42): records of which the two above are left, 0 where that is not known, and how what
    # is left grows with them, in bytes and in records.
    records_per_combine: Numbers = number_field(0.0)
    combine_bytes_exponent: Numbers = number_field(1.0, high=1.0)
    combine_records_exponent: Numbers = number_field(1.0, high=1.0)
    input_compression_ratio: Numbers = number_field(1.0, above=True, switch="input_compressed")
    map_output_compression_ratio: Numbers = number_field(
        1.0, above=True, switch="map_output_compressed"
    )
    output_compression_ratio: Numbers = number_field(1.0, above=True, switch="output_compressed")


# A field for each cost of a job in the table of statistics.
_COST_FIELDS: Any = make_dataclass(
    "_COST_FIELDS",
    [
        (row.name, Numbers, number_field(0.0, switch=row.switch or None))
        for row in JOB_COSTS.values()
    ],
    frozen=True,
    kw_only=True,
)


class Costs(_COST_FIELDS):  # type: ignore[misc]  # its fields are rows, which mypy does not read
    """Cost statistics, Table 4: seconds per byte, per record, per task."""


COSTS = tuple(JOB_COSTS)
SIDES = ("map", "reduce")


def side_costs(costs: Mapping[str, _Cost], side: str) -> dict[str, _Cost]:
    """*costs* as tasks of one of the `SIDES` have them: their own (`name_side`) or the common."""
    chosen = {}
    for name in COSTS:
        for key in (name, JOB_COSTS[name].side_name(side)):
            if key in costs:
                chosen[name] = costs[key]
    return chosen


@dataclass(frozen=True, kw_only=True)
class Config:
    """Configuration of the job, Table 5."""

    num_maps: Counts = _count_field()
    num_reduces: Counts = _count_field(1)
    split_bytes: Numbers = number_field(128.0 * MIB)
    sort_buffer_mb: Numbers = number_field(100.0)
    sort_spill_percent: Numbers = number_field(0.80, high=1.0, above=True)
    sort_record_percent: Numbers = number_field(0.05, high=1.0)
    merge_factor: Counts = _count_field(10, low=2)
    combine_min_spills: Counts = _count_field(3)
    inmem_merge_segments: Counts = _count_field(1000, low=-math.inf)
    shuffle_buffer_percent: Numbers = number_field(0.70, high=1.0, above=True)
    shuffle_merge_percent: Numbers = number_field(0.66, high=1.0)
    shuffle_segment_limit_percent: Numbers = number_field(0.25, high=1.0)
    reduce_buffer_percent: Numbers = number_field(0.0, high=1.0)
    reduce_slowstart: Numbers = number_field(0.05, high=1.0)
    reduce_heap_bytes: Numbers = number_field(200.0 * MIB)
    use_combiner: Flags = flag_field()
    map_output_compressed: Flags = flag_field()
    output_compressed: Flags = flag_field()
    input_compressed: Flags = flag_field()


@dataclass(frozen=True, kw_only=True)
class ClusterSize:
    """Nodes, and the tasks of each kind that one node runs at once, Table 5."""

    num_nodes: Counts = _count_field(low=1)
    map_slots_per_node: Counts = _count_field(2, low=1)
    reduce_slots_per_node: Counts = _count_field(2)


@dataclass(frozen=True)
class Job:
    """All that the dataflow depends on, after Eq. (1), and the rule set."""

    statistics: Statistics
    config: Config
    cluster: ClusterSize
    rules: str

    @property
    def mr2(self) -> bool:
        """Whether the mechanisms are those of Hadoop 3."""
        return self.rules == "mr2"

    @property
    def printed(self) -> bool:
        """Whether all is as printed: full spills, no setup and cleanup, fractions of waves."""
        return self.rules == "paper"

    @property
    def ratio(self) -> Numbers:
        """The paper's dsIntermCompressRatio, k: compressed / uncompressed map output."""
        return self.statistics.map_output_compression_ratio


Quantities: TypeAlias = dict[str, Numbers]


class Dataflow(SimpleNamespace):
    """Dataflow of a map and a reduce task: quantities by name, as far as they are known."""


Given: TypeAlias = Mapping[str, Any]
Arrays: TypeAlias = dict[str, NDArray[Any]]
Rows: TypeAlias = slice | NDArray[np.intp]
_Part = TypeVar("_Part", Statistics, Costs, Config, ClusterSize)


@dataclass(frozen=True)
class Inputs:
    """
    Checked inputs of *size* configurations, each field an array of one value or of *size*.

    *costs* are those of maps and those of reduces.
    """

    statistics: Arrays
    costs: tuple[Arrays, Arrays]
    config: Arrays
    cluster: Arrays
    rules: str
    size: int

    def select(self, rows: Rows = slice(None)) -> tuple[Job, Costs, Costs]:
        """
        Inputs of the configurations *rows*, numbers as 64-bit floats, after Eq. (1).

        The job, the costs of its maps, those of its reduces.
        """

        def choose(arrays: Arrays) -> Arrays:
            chosen = {}
            for name, values in arrays.items():
                chosen[name] = values if values.size == 1 else values[rows]
            return chosen

        config = Config(**choose(self.config))
        statistics = drop_unused(Statistics(**choose(self.statistics)), config)
        job = Job(statistics, config, ClusterSize(**choose(self.cluster)), self.rules)
        maps, reduces = (drop_unused(Costs(**choose(costs)), config) for costs in self.costs)
        return job, maps, reduces


def drop_unused(record: _Part, config: Config) -> _Part:
    """Eq. (1): statistics and costs of a combiner or a codec that is off change nothing."""
    neutral = 1.0 if isinstance(record, Statistics) else 0.0
    changed: dict[str, Any] = {
        field.name: np.where(
            getattr(config, field.metadata["switch"]), getattr(record, field.name), neutral
        )
        for field in fields(record)
        if field.metadata["switch"]
    }
    return replace(record, **changed)


def read_inputs(
    statistics: Given, costs: Given, config: Given, cluster: Given, rules: str
) -> Inputs:
    """
    Check all inputs; arrays are values of many configurations.

    ``ModelError`` names also a configuration in which a field is outside its range.
    """
    if rules not in RULES:
        raise range_error("rules", rules, "paper, engine or mr2", "what-if")
    heap = {"reduce_heap_bytes": HEAP_BYTES[rules]}
    settings = _read(Config, {**heap, **config}, "configuration")
    nodes = _read(ClusterSize, cluster, "cluster")
    _check_together(settings, nodes, rules)
    flow = _read(Statistics, statistics, "statistics")
    if "combine_bytes_selectivity" not in statistics:
        # Without a statistic of its own, a combiner shrinks bytes as it shrinks records.
        flow["combine_bytes_selectivity"] = flow["combine_records_selectivity"]
    given_costs: list[Given] = [costs, costs]  # the printed form has one cost for both (W40)
    if rules != "paper":
        given_costs = [side_costs(costs, side) for side in SIDES]
    map_costs, reduce_costs = (_read(Costs, given, "costs") for given in given_costs)
    parts = (flow, map_costs, reduce_costs, settings, nodes)
    sizes = [values.size for values in chain.from_iterable(part.values() for part in parts)]
    return Inputs(flow, (map_costs, reduce_costs), settings, nodes, rules, max(sizes))


def in_grid(where: str, index: int, size: int) -> str:
    """*where*, with the number of the configuration, counted from 0, if there are several."""
    return where if size == 1 else f"{where}, configuration {index} of the grid"


def _read(part: type[Any], given: Given, kind: str) -> Arrays:
    """Fields of the dataclass *part* as arrays: those *given*, checked, else their defaults."""
    where = f"what-if {kind}"
    arrays: Arrays = {}
    for field in fields(part):
        value = given.get(field.name, field.default)
        if value is MISSING:
            raise ModelError(f"{field.name} is missing", where=where)
        check = partial(field.metadata["check"], field.name, **field.metadata["limits"])
        if isinstance(value, np.ndarray):
            # The extremes, which are NaN if any is, and the first fraction stand for all values.
            places = value.argmin(), value.argmax(), (value == np.trunc(value)).argmin()
            for place in sorted(map(int, places)):
                check(value[place].item(), where=in_grid(where, place, value.size))
        else:
            value = np.array([check(value, where=where)])
        arrays[field.name] = value if value.dtype.kind == "b" else value.astype(float, copy=False)
    return arrays


def _check_together(config: Arrays, cluster: Arrays, rules: str) -> None:
    """Ranges that depend on the rules or on another field."""
    where = f"what-if configuration, {rules} rules"
    mr2 = rules == "mr2"
    reduces = config["num_reduces"] > 0
    slots = cluster["reduce_slots_per_node"]
    limit = config["shuffle_segment_limit_percent"]
    merge = config["shuffle_merge_percent"]
    buffer_mb = config["sort_buffer_mb"]
    no_limit = reduces & ~((limit > 0) & (limit < merge))
    wanted_limit = "above 0 and below shuffle_merge_percent"
    for name, values, refused, wanted, place in (
        ("reduce_slots_per_node", slots, reduces & (slots < 1), "at least 1", "what-if cluster"),
        ("sort_buffer_mb", buffer_mb, (buffer_mb > 2047) & mr2, "at most 2047", where),
        ("shuffle_segment_limit_percent", limit, no_limit & mr2, wanted_limit, where),
    ):
        if refused.any():
            index = int(refused.argmax())
            value = float(values[index if values.size > 1 else 0])
            raise range_error(name, value, wanted, in_grid(place, index, refused.size))


def read_job(
    statistics: Given, costs: Given, config: Given, cluster: Given, rules: str
) -> tuple[Job, Costs, Costs]:
    """`Inputs.select` of one configuration in Python's numbers, for models that share equations."""
    inputs = read_inputs(statistics, costs, config, cluster, rules)
    arrays, map_costs, reduce_costs = inputs.select()
    job = Job(
        _single(arrays.statistics), _single(arrays.config), _single(arrays.cluster), arrays.rules
    )
    return job, _single(map_costs), _single(reduce_costs)


def _single(record: _Part) -> _Part:
    """*record* of arrays of one value in Python's numbers."""
    values = {}
    for field in fields(record):
        value = np.asarray(getattr(record, field.name)).item()
        values[field.name] = int(value) if field.metadata["check"] is check_count else value
    return replace(record, **values)


def input_warnings(inputs: Inputs, statistics: Given, costs: Given, config: Given) -> list[str]:
    """What a reader of one configuration's answer should know of its inputs."""
    job, _, _ = inputs.select()
    warnings = []
    for field in fields(Statistics):
        value = getattr(job.statistics, field.name).item()
        if ("selectivity" in field.name or "ratio" in field.name) and value > 1:
            warnings.append(f"{field.name} is {value:g}, above 1")
    given_costs = set(side_costs(costs, "map")) | set(side_costs(costs, "reduce"))
    warnings += [f"no {cost}: taken as 0" for cost in COSTS if cost not in given_costs]
    side_names = {JOB_COSTS[cost].side_name(side) for cost in COSTS for side in SIDES}
    for given, part in ((statistics, Statistics), (costs, Costs), (config, Config)):
        field_names = {field.name for field in fields(part)}
        unknown = set(given) - field_names - _UNUSED - side_names
        warnings += [f"{name} is not used by the model" for name in sorted(unknown)]
    return warnings
