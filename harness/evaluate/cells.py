"""What a cell asks of Hadoop, its workload's own word included."""

from __future__ import annotations

from collections.abc import Iterator

from harness.hadoop.site import block_bytes
from harness.records.trial import Cell
from harness.workloads import WORKLOADS
from harness.workloads.base import JobCommand


def configured(cell: Cell) -> dict[str, str]:
    """Job properties of *cell*: its configuration, and over it what its workload sets itself."""
    return {**cell.configuration, **WORKLOADS[cell.workload.name].properties(cell.workload)}


def overruled(cell: Cell) -> Iterator[tuple[str, str]]:
    """Properties of *cell* that its workload sets to another value, and that value."""
    asked = cell.configuration
    for name, value in WORKLOADS[cell.workload.name].properties(cell.workload).items():
        if asked.get(name, value) != value:
            yield name, value


def jars_of(cell: Cell) -> Iterator[str]:
    """Names of our own jars that the jobs of *cell*, or what makes their input, are in."""
    workload, spec = WORKLOADS[cell.workload.name], cell.workload
    made = workload.generate(spec, block_bytes(cell.cluster), "/input")
    commands = (*workload.submit(spec, "/input", "/output"), made)
    yield from (c.jar for c in commands if isinstance(c, JobCommand) and c.jar)
