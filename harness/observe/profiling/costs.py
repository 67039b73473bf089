"""
Costs from phases: one robust non-negative fit over all phases of all tasks.

Tasks that were recorded bring the parts of the equations instead of the history's five phases.

A phase's residuals count relative to its median time.  Costs that no row shows are absent.  Costs
that the rows cannot distinguish (`harness.base.stats.collinear`) are given as a group with their
sum; inside it they divide by typical ratios and are marked *assumed*.
"""

from __future__ import annotations

import math
import statistics

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.base.records.profile import CostGroup, FitDiagnostic, Statistic
from harness.base.records.statistics import JOB_COSTS, typical_values
from harness.base.stats.collinear import groups, proportional, soft_constraints
from harness.base.stats.robust import RobustFit, nnls_robust
from harness.models.whatif.inputs import SIDES
from harness.models.whatif.model import MAP_PARTS, REDUCE_PARTS
from harness.observe.profiling.measured import MAP_PHASES
from harness.observe.profiling.phases import KINDS, PHASES, PhaseRow

# Phases shorter than this are not worth fitting more exactly: timers and schedulers are no finer.
_SHORTEST_S = 0.05
# Spans know nanoseconds; a part of a few milliseconds still holds some work per record.
_SHORTEST_PART_S = 0.001
_PARTS = frozenset({*MAP_PARTS, *REDUCE_PARTS})
_MAP_SIDE = frozenset({*MAP_PHASES, *MAP_PARTS})
_SOURCE = "typical ratios of harness/observe/profiling/costs.py"

# In their order, which is that of the columns of the fit.
TYPICAL = typical_values("job cost")


@dataclass(frozen=True, slots=True)
class _Columns:
    """
    The columns of a fit: their *names*, one cost or its half of a side each, and the *design*.

    *costs* are the names of the costs that they are of.  *weights* are those of the rows.
    """

    names: tuple[str, ...]
    costs: tuple[str, ...]
    design: np.ndarray
    weights: np.ndarray

    def mean_of(self, cost_name: str) -> np.ndarray:
        """The columns of a cost as their mean, by what each counts in the fit."""
        places = [place for place, name in enumerate(self.costs) if name == cost_name]
        counts = np.zeros(len(self.names))
        counts[places] = np.sum((self.design[:, places] * self.weights[:, None]) ** 2, axis=0)
        mean: np.ndarray = counts / counts.sum()
        return mean

    def means_of(self, cost_name: str) -> dict[str, np.ndarray]:
        """Each name under which a cost is given, and which mean of the columns that is."""
        means = {cost_name: self.mean_of(cost_name)}
        for place, name in enumerate(self.names):
            if self.costs[place] == cost_name:
                means[name] = np.eye(len(self.names))[place]
        return means


def fit_costs(
    rows: Sequence[PhaseRow],
) -> tuple[dict[str, Statistic], tuple[CostGroup, ...], tuple[FitDiagnostic, ...]]:
    """
    Fit all costs that *rows* show, in the order of the table of statistics.

    Returns costs by name, the groups among them, and how well each phase is explained.
    """
    common = _common_columns(rows)
    if not common:
        return {}, (), ()
    target = np.array([phase_row.seconds for phase_row in rows])
    weights = _weights(rows)
    sides = np.array([SIDES[phase_row.phase not in _MAP_SIDE] for phase_row in rows])
    columns = _tell_apart(common, sides, weights)
    typical = np.array([TYPICAL[name] for name in columns.costs])
    fit = fit_by_typical(columns.design, target, weights, typical)
    column_groups = groups(columns.design * weights[:, None])
    costs = dict[str, Statistic]()
    for cost_name in common:
        costs |= _costs_of(cost_name, rows, columns, column_groups, fit)
        if JOB_COSTS[cost_name].side == "both" and cost_name in columns.names:
            for side in sorted({*sides} - {*sides[common[cost_name] != 0]}):
                source = f"the common cost: no {side} shows it"
                changes = {"source": source, "group": (), "assumed": True}
                assumed = costs[cost_name].model_copy(update=changes)
                costs[JOB_COSTS[cost_name].side_name(side)] = assumed
    cost_groups = tuple(_group(rows, columns, members, fit) for members in column_groups)
    fitted = columns.design @ fit.coefficients
    return costs, cost_groups, tuple(_diagnostics(rows, target, fitted))


def _common_columns(rows: Sequence[PhaseRow]) -> dict[str, np.ndarray]:
    """Column of each cost that some row shows, one for both sides."""
    shown = set[str]()
    for phase_row in rows:
        shown |= {cost_name for cost_name, term in phase_row.terms.items() if term}
    return {
        cost_name: np.array([phase_row.terms.get(cost_name, 0.0) for phase_row in rows])
        for cost_name in TYPICAL
        if cost_name in shown
    }


def _weights(rows: Sequence[PhaseRow]) -> np.ndarray:
    """What the residual of each row is multiplied by: it counts relative to its phase's median."""
    scale_s = {}
    for phase in {phase_row.phase for phase_row in rows}:
        shortest_s = _SHORTEST_PART_S if phase in _PARTS else _SHORTEST_S
        median_s = statistics.median(
            phase_row.seconds for phase_row in rows if phase_row.phase == phase
        )
        scale_s[phase] = max(median_s, shortest_s)
    return np.array([1 / scale_s[phase_row.phase] for phase_row in rows])


def _costs_of(
    cost_name: str,
    rows: Sequence[PhaseRow],
    columns: _Columns,
    column_groups: Sequence[tuple[int, ...]],
    fit: RobustFit,
) -> dict[str, Statistic]:
    """
    A cost as the fit has it; with those of its sides, where they were told apart.

    Each is a mean of columns, and may not be distinguished from those of its group.
    """
    costs = {}
    for name, mean in columns.means_of(cost_name).items():
        group: tuple[str, ...] = ()
        for members in column_groups:
            names = tuple(columns.names[member] for member in members)
            if name in names:
                group = tuple(member for member in names if member != name)
        terms = columns.design @ mean
        value = float(mean @ fit.coefficients)
        error = fit.error(mean)
        source = f"fit of {_phases_of(rows, terms)}"
        if group:
            source += f"; share of its group's sum by {_SOURCE}, known to its own size at best"
            error = max(error, value)
        if not math.isfinite(error):
            source += "; no row to spare, so the spread is the value"
            error = value
        costs[name] = Statistic(
            value=value,
            count=int(np.count_nonzero(terms)),
            spread=error,
            source=source,
            assumed=bool(group),
            group=group,
        )
    return costs


def _tell_apart(
    common: Mapping[str, np.ndarray], sides: np.ndarray, weights: np.ndarray
) -> _Columns:
    """
    Columns of the fit: those of *common* costs, in two where the rows tell sides apart.

    One cost after the other is cut, unless that leaves costs that cannot be distinguished.
    """
    columns = dict(common)
    cost_names = {name: name for name in common}
    joined = _grouped(common, weights)
    for cost_name, column in common.items():
        row = JOB_COSTS[cost_name]
        halves = {row.side_name(side): column * (sides == side) for side in SIDES}
        if not all(half.any() for half in halves.values()):
            continue
        cut = {name: kept for name, kept in columns.items() if name != cost_name} | halves
        joined_when_cut = _grouped(cut, weights)
        if joined_when_cut <= joined:
            columns = cut
            joined = joined_when_cut
            cost_names |= dict.fromkeys(halves, cost_name)
    design = np.column_stack(list(columns.values()))
    return _Columns(tuple(columns), tuple(cost_names[name] for name in columns), design, weights)


def _grouped(columns: Mapping[str, np.ndarray], weights: np.ndarray) -> set[str]:
    """Names of all columns that cannot be distinguished from some other."""
    names = list(columns)
    design = np.column_stack(list(columns.values()))
    grouped = set[str]()
    for members in groups(design * weights[:, None]):
        grouped |= {names[place] for place in members}
    return grouped


def fit_by_typical(
    design: np.ndarray, target: np.ndarray, weights: np.ndarray, typical: np.ndarray
) -> RobustFit:
    """
    Fit with what the data leave open decided by *typical* costs.

    Proportional columns are one column, in typical ratios; among those that are left, typical
    ratios are soft constraints, for a strict ratio over several phases could contradict the data.
    """
    proportional_columns = proportional(design * weights[:, None])
    shares = np.zeros((len(typical), len(proportional_columns)))
    for merged_column, columns in enumerate(proportional_columns):
        shares[list(columns), merged_column] = typical[list(columns)]
    merged = design @ shares
    weighted = merged * weights[:, None]
    constraints = [
        soft_constraints(weighted, columns, np.ones(len(columns))) for columns in groups(weighted)
    ]
    fit = nnls_robust(merged, target, weights, np.vstack(constraints) if constraints else None)
    covariance = np.full((len(shares),) * 2, np.inf)
    if np.isfinite(fit.covariance).all():
        covariance = shares @ fit.covariance @ shares.T
    return RobustFit(shares @ fit.coefficients, covariance)


def _group(
    rows: Sequence[PhaseRow], columns: _Columns, group: tuple[int, ...], fit: RobustFit
) -> CostGroup:
    """Seconds of the group in the mean map and the mean reduce task together."""
    places = list(group)
    mean_terms = np.zeros(len(columns.names))
    member_terms = columns.design[:, places]
    for phases, parts in KINDS:
        # A task has a row of each phase of the history, or of those parts its recording has.
        phase_rows = _rows_of_each(rows, phases)
        part_rows = _rows_of_each(rows, parts)
        history_tasks = max(map(len, phase_rows), default=0)
        all_tasks = history_tasks + max(map(len, part_rows), default=0)
        for row_numbers in phase_rows:
            mean_terms[places] += member_terms[row_numbers].mean(axis=0) * history_tasks / all_tasks
        for row_numbers in part_rows:
            mean_terms[places] += member_terms[row_numbers].sum(axis=0) / all_tasks
    members = tuple(columns.names[place] for place in places)
    total_s = float(mean_terms @ fit.coefficients)
    error_s = fit.error(mean_terms)
    return CostGroup(
        names=members,
        sum_s=total_s,
        spread_s=error_s if math.isfinite(error_s) else total_s,
        note=f"seconds in {_phases_of(rows, np.sum(member_terms, axis=1))} of a mean map and a mean"
        f" reduce task; divided by {_SOURCE}",
    )


def _diagnostics(
    rows: Sequence[PhaseRow], target: np.ndarray, fitted: np.ndarray
) -> Iterator[FitDiagnostic]:
    """How well each phase is explained; R2 is 0 where a phase does not vary."""
    for phase in PHASES:
        if not (row_numbers := _rows_of(rows, phase)):
            continue
        measured = target[row_numbers]
        explained = fitted[row_numbers]
        residual = float(np.sum((measured - explained) ** 2))
        total = float(np.sum((measured - measured.mean()) ** 2))
        relative = np.abs(measured - explained) / np.maximum(measured, 1e-3)
        yield FitDiagnostic(
            phase=phase,
            count=len(measured),
            r2=1 - residual / total if total > 0 else 0.0,
            median_residual=float(np.median(relative)),
        )


def _rows_of(rows: Sequence[PhaseRow], phase: str) -> list[int]:
    return [number for number, phase_row in enumerate(rows) if phase_row.phase == phase]


def _rows_of_each(rows: Sequence[PhaseRow], phases: Iterable[str]) -> list[list[int]]:
    """Numbers of the rows of each of *phases* that has some."""
    numbers = [_rows_of(rows, phase) for phase in phases]
    return [row_numbers for row_numbers in numbers if row_numbers]


def _phases_of(rows: Sequence[PhaseRow], terms: np.ndarray) -> str:
    touched = {phase_row.phase for phase_row, term in zip(rows, terms, strict=True) if term}
    return ", ".join(phase for phase in PHASES if phase in touched)
