"""Cells of a run or an experiment, resolved when it is opened: here alone users' code is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from harness.base.errors import DataError, HarnessError
from harness.base.records.trial import Cell
from harness.clusters.workloads import WORKLOADS, workload_for
from harness.clusters.workloads.base import Workload
from harness.clusters.workloads.history import PastJobs
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.own_code import own_workload


def resolve_cells(cells: Iterable[Cell]) -> dict[str, ResolvedCell]:
    """Resolve *cells*, each once; by their ids, in their order."""
    return {resolved.id: resolved for resolved in map(resolve_cell, cells)}


def resolve_cell(cell: Cell) -> ResolvedCell:
    """
    Find the workload of *cell*: a user's own, of past jobs, or one of ours.

    Where a stored run has one that is not known here, only who asks for it gets the error.
    """
    found: Workload | HarnessError
    try:
        found = find_workload(cell)
    except HarnessError as error:
        found = error
    return ResolvedCell(cell, found)


def find_workload(cell: Cell) -> Workload:
    """Look up the workload of *cell*; `DataError` where a stored run has one that is not known."""
    if cell.workload.code is not None:
        return own_workload(cell.workload.code)
    if cell.was_imported:
        return PastJobs(cell.configuration)
    if cell.workload.name not in WORKLOADS:
        raise unknown_name_error("workload", cell.workload.name)
    return workload_for(cell.workload)


def unknown_name_error(what: str, name: str) -> DataError:
    """The error for the *name* of a model or workload in a stored run, which is not known here."""
    return DataError(
        f"this harness has no {what} {name[:80]!r}",
        where="the run's plan and manifest",
        fix="use the harness that measured this run, or a later one",
    )
