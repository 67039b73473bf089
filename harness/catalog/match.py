"""
The matcher: past jobs that are most like another, and why.

First come jobs of the same program, then those that share classes, then all others; among equals,
the closest in selectivities and widths of records, whatever their sizes.
"""

from __future__ import annotations

import math

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.catalog.catalog import NUMBERS, Catalog
from harness.catalog.jobs import FEATURES

LEVELS = ("same program", "same classes", "same mapper", "same reducer", "other program")
_PARTS = ("mapper", "combiner", "reducer")
_MOST = math.log(10)  # what one field adds at most: ten times as much is as far as a hundred
_UNKNOWN = math.log(2)  # what a field adds that only one of the two jobs has
_STEP = 0.05  # distances are equal that round to the same: counters of equal jobs vary by as much
_TEXTS = ["job_id", "is_current", "state", "family", *_PARTS]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of both jobs, and what it adds to their distance: the logarithm of their ratio."""

    field: str
    job: float | None
    match: float | None
    adds: float


@dataclass(frozen=True, slots=True)
class Match:
    """A past job that is like another; *distance* is the sum of what *differences* add."""

    job_id: str
    family: str
    level: str
    distance: float
    job_s: float
    input_bytes: float | None
    differences: tuple[Difference, ...]


def similar(catalog: Catalog, job_id: str, limit: int) -> list[Match]:
    """
    Give the jobs of *catalog* that are most like the job *job_id*, *limit* at most, the best first.

    Only jobs that succeeded are offered.  Of equal distances the closer input comes first, then
    the later job.
    """
    import pyarrow as arrow

    from pyarrow import compute

    table = catalog.table([*_TEXTS, *NUMBERS])
    place = catalog.position(table, job_id)
    (job,) = table.take([place]).to_pylist()

    def equals(column: str, text: str | None) -> Any:
        scalar = arrow.scalar(text, arrow.string())
        return compute.equal(table[column], scalar).fill_null(False).to_numpy()  # noqa: FBT003

    same = {part: equals(part, job[part]) for part in _PARTS}
    conditions = [equals("family", job["family"]), np.logical_and.reduce([*same.values()])]
    # That two jobs set no class says little.
    conditions += [same[part] & bool(job[part]) for part in ("mapper", "reducer")]
    levels = np.select(conditions, range(len(conditions)), len(conditions))
    is_offered = equals("state", "SUCCEEDED") & table["is_current"].to_numpy()
    is_offered[place] = False
    counts = np.bincount(levels[is_offered], minlength=len(LEVELS)).cumsum()
    last_level = np.searchsorted(counts, min(limit, counts[-1]))
    chosen = np.flatnonzero(is_offered & (levels <= last_level))
    numbers = {name: table[name].take(chosen).to_numpy() for name in NUMBERS}
    adds = {name: gaps(job[name], numbers[name]) for name in FEATURES}
    distances = sum(adds.values())
    size_gaps = gaps(job["input_bytes"], numbers["input_bytes"])
    steps = np.round(distances / _STEP)
    order = np.lexsort((-numbers["submit_s"], size_gaps, steps, levels[chosen]))[:limit]
    matches = []
    for index, row in zip(order, table.take(chosen[order]).to_pylist(), strict=True):
        differences = tuple(
            Difference(name, job[name], row[name], float(adds[name][index])) for name in FEATURES
        )
        match = Match(
            **{name: row[name] for name in ("job_id", "family", "job_s", "input_bytes")},
            level=LEVELS[levels[chosen[index]]],
            distance=float(distances[index]),
            differences=differences,
        )
        matches.append(match)
    return matches


def gaps(value: float | None, values: Any) -> Any:
    """
    By how much each of *values*, an array with NaN where nothing is known, is away from *value*.

    It is the size of the logarithm of their ratio, up to that of ten; of equal values 0, and of one
    that only one side has that of two.
    """
    reference = math.nan if value is None else value
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.minimum(np.abs(np.log(values / reference)), _MOST)
    is_unknown = np.isnan(values)
    distances[is_unknown != math.isnan(reference)] = _UNKNOWN
    distances[(values == reference) | (is_unknown & math.isnan(reference))] = 0.0
    return distances
