"""The range of values that was profiled, and where a cell lies in it."""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from harness.base.records.prediction import JobInput
from harness.base.records.question import Range
from harness.base.records.trial import Cell

# By axis: the size of the input, or a numeric property; smallest and largest value.
Ranges = Mapping[str, tuple[float, float]]
Numbers = Mapping[str, float]  # of one cell, by axis


def axis_numbers(cell: Cell, job_input: JobInput) -> dict[str, float]:
    """
    Numbers of *cell*, whose jobs read *job_input*, by the names of their axes.

    They are the size and the splits of the input, workers and slots of a node, and each property
    and argument that is a number; a job's property hides the cluster's.
    """
    node = cell.cluster.node
    numbers = {
        "input_bytes": float(cell.workload.input_bytes),
        "num_splits": float(job_input.num_splits),
        "workers": float(cell.cluster.workers),
        "map_slots": float(node.map_slots),
        "reduce_slots": float(node.reduce_slots),
    }
    settings = {**cell.cluster.site, **cell.configuration, **cell.workload.parameters}
    for name, value in settings.items():
        with suppress(ValueError):
            numbers[name] = float(value)
    return numbers


def ranges_of(cells: Iterable[Numbers]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each axis over *cells*."""
    values = defaultdict[str, list[float]](list)
    for numbers in cells:
        for name, value in numbers.items():
            if math.isfinite(value):
                values[name].append(value)
    return {name: (min(numbers), max(numbers)) for name, numbers in values.items()}


def outside_axes(numbers: Numbers, profiled: Ranges) -> Iterator[str]:
    """Yield the axes on which *numbers* lie outside of what was *profiled*, if that has them."""
    for name, (lowest, highest) in profiled.items():
        if name in numbers and not lowest <= numbers[name] <= highest:
            yield name


def range_of(numbers: Numbers, profiled: Ranges) -> Range:
    """Where *numbers* lie in the *profiled* ranges; an axis that has none does not count."""
    if any(outside_axes(numbers, profiled)):
        return "outside"
    ends = {name: {low, high} for name, (low, high) in profiled.items() if low < high}
    is_at_edge = any(numbers.get(name) in axis_ends for name, axis_ends in ends.items())
    return "edge" if is_at_edge else "inside"
