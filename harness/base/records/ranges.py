"""The range of values that was profiled, and where a cell lies in it."""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from harness.base.records.score import Range
from harness.base.records.trial import Cell

# By axis: the size of the input, or a numeric property; smallest and largest value.
Ranges = Mapping[str, tuple[float, float]]


def axis_numbers(cell: Cell) -> Iterator[tuple[str, float]]:
    """Yield the size of the input of *cell*, and each of its numeric properties, by name."""
    yield "input_bytes", float(cell.workload.input_bytes)
    for name, text in cell.configuration.items():
        with suppress(ValueError):
            yield name, float(text)


def ranges_of(cells: Iterable[Cell]) -> dict[str, tuple[float, float]]:
    """Smallest and largest value of each axis over *cells*."""
    values = defaultdict[str, list[float]](list)
    for cell in cells:
        for name, value in axis_numbers(cell):
            if math.isfinite(value):
                values[name].append(value)
    return {name: (min(numbers), max(numbers)) for name, numbers in values.items()}


def range_of(cell: Cell, profiled: Ranges) -> Range:
    """Where *cell* lies in the *profiled* ranges; an axis that has none does not count."""
    values = dict(axis_numbers(cell))
    in_ranges = [(values[name], *ends) for name, ends in profiled.items() if name in values]
    if not all(lowest <= value <= highest for value, lowest, highest in in_ranges):
        return "outside"
    is_at_edge = any(low < high and value in {low, high} for value, low, high in in_ranges)
    return "edge" if is_at_edge else "inside"
