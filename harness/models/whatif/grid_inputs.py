"""
What the grid form is given: every field one value, or one value per configuration.

`read_grid` checks them as `inputs.read_job` does, field by field in the same order and in the same
words, and names the first configuration that a field is wrong in.  `Grid.job` is the scalar form's
`Job` of some configurations, its fields columns, after Eq. (1).
"""

from __future__ import annotations

import math

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from numpy.typing import NDArray

from harness.errors import ModelError
from harness.models.checks import check_count, check_flag, range_error
from harness.models.columns import LARGEST_COUNT, Column, choose
from harness.models.whatif.inputs import (
    HEAP_BYTES,
    RULES,
    ClusterSize,
    Config,
    Costs,
    Job,
    Statistics,
    check_together,
)

Given: TypeAlias = Mapping[str, Any]
Columns: TypeAlias = dict[str, Column]
Rows: TypeAlias = slice | NDArray[np.intp]
_Part = TypeVar("_Part", Config, ClusterSize)


@dataclass(frozen=True)
class Grid:
    """Checked inputs of *size* configurations, each field a column."""

    statistics: Columns
    costs: Columns
    config: Columns
    cluster: Columns
    mr2: bool
    size: int

    def job(self, rows: Rows) -> tuple[Job, Costs]:
        """Inputs of the configurations *rows*, after Eq. (1)."""
        config = Config(**_of(rows, self.config))
        data = _initialised(Statistics(**_of(rows, self.statistics)), config)
        costs = _charged(Costs(**_of(rows, self.costs)), config)
        return Job(data, config, ClusterSize(**_of(rows, self.cluster)), self.mr2), costs


def read_grid(statistics: Given, costs: Given, config: Given, cluster: Given, rules: str) -> Grid:
    """
    Check all inputs.

    ``ModelError`` names the field that is missing or outside its range, or whose length is not that
    of the others.
    """
    if rules not in RULES:
        raise range_error("rules", rules, "paper or mr2", "what-if")
    settings = _read(Config, {"reduce_heap_bytes": HEAP_BYTES[rules], **config}, "configuration")
    nodes = _read(ClusterSize, cluster, "cluster")
    _common_size({**settings, **nodes})
    _check_together(settings, nodes, rules)
    data = _read(Statistics, statistics, "statistics")
    if "combine_bytes_selectivity" not in statistics:
        data["combine_bytes_selectivity"] = data["combine_records_selectivity"]
    prices = _read(Costs, costs, "costs")
    size = _common_size({**settings, **nodes, **data, **prices})
    return Grid(data, prices, settings, nodes, rules == "mr2", size)


def in_grid(where: str, index: int) -> str:
    """*where*, with the number of the configuration, counted from 0."""
    return f"{where}, configuration {index} of the grid"


def _read(part: type[Any], given: Given, kind: str) -> Columns:
    where = f"what-if {kind}"
    columns = {}
    for f in fields(part):
        value = given.get(f.name, f.default)
        if value is MISSING:
            raise ModelError(f"{f.name} is missing", where=where)
        columns[f.name] = _column(f, value, where)
    return columns


def _column(f: Field[Any], value: Any, where: str) -> Column:
    """
    *value* as a column, if all of it is what the field takes.

    An array whose smallest and largest value are inside the range is taken as it is.  Lists, arrays
    of Python objects, and whatever is wrong go value by value through the scalar form's checks.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            wanted = "one value, or a row of values"
            raise range_error(f.name, f"an array of shape {value.shape}", wanted, where)
        if value.ndim == 1 and _inside(f, value):
            return value
        value = value.tolist()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return np.array([_checked(f, value, where)])
    checked = [_checked(f, one, in_grid(where, index)) for index, one in enumerate(value)]
    return np.array(checked, dtype=bool if f.metadata["check"] is check_flag else float)


def _inside(f: Field[Any], values: NDArray[Any]) -> bool:
    """Whether all *values* of an array pass the field's check, told from the extremes."""
    check, limits = f.metadata["check"], f.metadata["limits"]
    if check is check_flag or values.dtype.kind not in "iuf":
        return check is check_flag and values.dtype.kind == "b"
    if values.size == 0:
        return True
    if check is check_count and values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return False
    least, most = values.min().item(), values.max().item()  # NaN if any is
    low = limits.get("low", 0.0)
    high = min(limits.get("high", math.inf), LARGEST_COUNT if check is check_count else math.inf)
    above = limits.get("above", False) and least == low
    return low <= least and most <= high and math.isfinite(most - least) and not above


def _checked(f: Field[Any], value: Any, where: str) -> Any:
    """*value*, if it passes the scalar form's check, and is no count beyond those of floats."""
    checked = f.metadata["check"](f.name, value, where=where, **f.metadata["limits"])
    if f.metadata["check"] is check_count and checked > LARGEST_COUNT:
        raise range_error(f.name, value, "within 2**53, where a grid's counts end", where)
    return checked


def _common_size(columns: Columns) -> int:
    size, first = 1, ""
    for name, column in columns.items():
        if column.size in {1, size}:
            continue
        if first:
            raise ModelError(
                f"{name} has {column.size} values, {first} has {size}",
                where="what-if grid",
                fix="give every field one value, or one for each configuration",
            )
        size, first = column.size, name
    return size


def _check_together(config: Columns, cluster: Columns, rules: str) -> None:
    """Ranges that depend on the rules or on another field, in the scalar form's words."""
    reduces = config["num_reduces"] > 0
    bad = reduces & (cluster["reduce_slots_per_node"] < 1)
    if rules == "mr2":
        limit, merge = config["shuffle_segment_limit_percent"], config["shuffle_merge_percent"]
        bad = bad | (config["sort_buffer_mb"] > 2047) | (reduces & ~((limit > 0) & (limit < merge)))
    if not bad.any():
        return
    index = int(bad.argmax())
    try:
        check_together(_one(index, Config, config), _one(index, ClusterSize, cluster), rules)
    except ModelError as error:
        raise ModelError(error.what, where=in_grid(error.where, index)) from None


def _one(index: int, part: type[_Part], columns: Columns) -> _Part:
    """A record of the scalar form."""
    values = {name: c[index if c.size > 1 else 0].item() for name, c in columns.items()}
    return part(**{f.name: _checked(f, values[f.name], "") for f in fields(part)})


def _of(rows: Rows, columns: Columns) -> Columns:
    """Columns of some configurations; numbers as 64-bit floats."""
    taken = {name: c if c.size == 1 else c[rows] for name, c in columns.items()}
    return {n: c if c.dtype == bool else c.astype(float, copy=False) for n, c in taken.items()}


def _initialised(statistics: Statistics, config: Config) -> Statistics:
    """Eq. (1): what is not used changes nothing."""
    s, g = statistics, config
    return replace(
        s,
        combine_bytes_selectivity=choose(g.use_combiner, s.combine_bytes_selectivity, 1.0),
        combine_records_selectivity=choose(g.use_combiner, s.combine_records_selectivity, 1.0),
        input_compression_ratio=choose(g.input_compressed, s.input_compression_ratio, 1.0),
        map_output_compression_ratio=choose(
            g.map_output_compressed, s.map_output_compression_ratio, 1.0
        ),
        output_compression_ratio=choose(g.output_compressed, s.output_compression_ratio, 1.0),
    )


def _charged(c: Costs, g: Config) -> Costs:
    """Eq. (1): a combiner or a codec that the job does not use costs nothing."""
    return replace(
        c,
        combine_cpu_s_per_record=g.use_combiner * c.combine_cpu_s_per_record,
        input_decompress_s_per_byte=g.input_compressed * c.input_decompress_s_per_byte,
        map_output_compress_s_per_byte=g.map_output_compressed * c.map_output_compress_s_per_byte,
        map_output_decompress_s_per_byte=g.map_output_compressed
        * c.map_output_decompress_s_per_byte,
        output_compress_s_per_byte=g.output_compressed * c.output_compress_s_per_byte,
    )
