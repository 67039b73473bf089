"""
Costs from phases: one robust non-negative fit over all phases of all tasks.

Tasks that were recorded bring the parts of the equations instead of the history's five phases.

A phase's residuals count relative to its median time.  Costs that no row shows are absent.  Costs
that the rows cannot distinguish (`harness.stats.collinear`) are given as a group with their sum;
inside it they divide by typical ratios and are marked *assumed*.
"""

from __future__ import annotations

import math
import statistics

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harness.models.whatif.inputs import SIDES
from harness.profiling.phases import KINDS, PHASES, PhaseRow
from harness.records.profile import CostGroup, FitDiagnostic, Statistic
from harness.stats.collinear import groups, proportional, soft_constraints
from harness.stats.robust import RobustFit, nnls_robust

# Phases shorter than this are not worth fitting more exactly: timers and schedulers are no finer.
_SHORTEST_S = 0.05
# Spans know nanoseconds; a part of a few milliseconds still holds some work per record.
_SHORTEST_PART_S = 0.001
_PARTS = frozenset(part for _, parts in KINDS for part in parts)

_OF_MAPS = frozenset(phase for phases in KINDS[0] for phase in phases)
# Costs that equations of maps and of reduces of one job have.
_OF_BOTH_SIDES = frozenset(
    {
        "local_read_s_per_byte", "local_write_s_per_byte", "merge_cpu_s_per_record",
        "combine_cpu_s_per_record", "map_output_decompress_s_per_byte",
        "map_output_compress_s_per_byte", "setup_cpu_s", "cleanup_cpu_s",
    }
)  # fmt: skip

_SOURCE = "typical ratios of harness/profiling/costs.py"

# Orders of magnitude of one core of a server of the 2020s with warm page cache and a gigabit
# network or better.  Only their ratios matter, and only inside a group of costs that the profiling
# trials cannot distinguish.
TYPICAL: dict[str, float] = {
    "hdfs_read_s_per_byte": 5e-9,
    "hdfs_write_s_per_byte": 2e-8,
    "local_read_s_per_byte": 3e-9,
    "local_write_s_per_byte": 6e-9,
    "network_s_per_byte": 1e-8,
    "map_cpu_s_per_record": 1e-6,
    "reduce_cpu_s_per_record": 5e-7,
    "combine_cpu_s_per_record": 3e-7,
    "partition_cpu_s_per_record": 5e-8,
    "serde_cpu_s_per_record": 3e-7,
    "sort_cpu_s_per_record": 3e-8,
    "merge_cpu_s_per_record": 3e-7,
    "input_decompress_s_per_byte": 5e-9,
    "map_output_decompress_s_per_byte": 5e-9,
    "map_output_compress_s_per_byte": 1e-8,
    "output_compress_s_per_byte": 1e-8,
    "setup_cpu_s": 1.5,
    "cleanup_cpu_s": 0.2,
}


def fit_costs(
    rows: Sequence[PhaseRow],
) -> tuple[dict[str, Statistic], tuple[CostGroup, ...], tuple[FitDiagnostic, ...]]:
    """
    Fit all costs that *rows* show, in the order of the table of typical costs.

    Returns costs by name, the groups among them, and how well each phase is explained.
    """
    shown = {cost_name for phase_row in rows for cost_name, term in phase_row.terms.items() if term}
    typical = {cost_name: value for cost_name, value in TYPICAL.items() if cost_name in shown}
    if not typical:
        return {}, (), ()
    common = {
        cost_name: np.array([phase_row.terms.get(cost_name, 0.0) for phase_row in rows])
        for cost_name in typical
    }
    target = np.array([phase_row.seconds for phase_row in rows])
    scale_s = {}
    for phase in {phase_row.phase for phase_row in rows}:
        shortest_s = _SHORTEST_PART_S if phase in _PARTS else _SHORTEST_S
        median_s = statistics.median(
            phase_row.seconds for phase_row in rows if phase_row.phase == phase
        )
        scale_s[phase] = max(median_s, shortest_s)
    weights = np.array([1 / scale_s[phase_row.phase] for phase_row in rows])
    sides = np.array([SIDES[phase_row.phase not in _OF_MAPS] for phase_row in rows])
    columns = _tell_apart(common, sides, weights)
    names = list(columns)
    design = np.column_stack(list(columns.values()))
    column_groups = groups(design * weights[:, None])
    base_names = [name.removesuffix("_map").removesuffix("_reduce") for name in names]
    fit = fit_by_typical(design, target, weights, np.array([typical[name] for name in base_names]))
    others = {
        names[column]: tuple(names[member] for member in members if member != column)
        for members in column_groups
        for column in members
    }
    costs = {}
    for cost_name in typical:
        places = [place for place, name in enumerate(base_names) if name == cost_name]
        counts = np.zeros(len(names))
        counts[places] = np.sum((design[:, places] * weights[:, None]) ** 2, axis=0)
        # A cost that was cut in two is their mean, by what each counts in the fit.
        means = {cost_name: counts / counts.sum()}
        means |= {names[place]: np.eye(len(names))[place] for place in places}
        for name, mean in means.items():
            source = f"fit of {_phases_of(rows, design @ mean)}"
            costs[name] = _cost(fit, mean, source, others.get(name, ()), design)
        if cost_name in _OF_BOTH_SIDES and cost_name in names:
            for side in sorted({*sides} - {*sides[common[cost_name] != 0]}):
                changes = {"source": f"the common cost: no {side} shows it", "group": ()}
                assumed = costs[cost_name].model_copy(update=changes | {"assumed": True})
                costs[f"{cost_name}_{side}"] = assumed
    cost_groups = tuple(_group(rows, names, members, design, fit) for members in column_groups)
    return costs, cost_groups, tuple(_diagnostics(rows, target, design @ fit.coefficients))


def _cost(
    fit: RobustFit, mean: np.ndarray, source: str, group: tuple[str, ...], design: np.ndarray
) -> Statistic:
    """The cost that is a *mean* of columns, not distinguished from those of its *group*."""
    value = float(mean @ fit.coefficients)
    error = fit.error(mean)
    if group:
        source += f"; share of its group's sum by {_SOURCE}, known to its own size at best"
        error = max(error, value)
    if not math.isfinite(error):
        source += "; no row to spare, so the spread is the value"
    return Statistic(
        value=value,
        count=int(np.count_nonzero(design @ mean)),
        spread=error if math.isfinite(error) else value,
        source=source,
        assumed=bool(group),
        group=group,
    )


def _tell_apart(
    common: Mapping[str, np.ndarray], sides: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """
    Columns of the fit by name: those of *common* costs, in two where the rows tell sides apart.

    One cost after the other is cut, unless that leaves costs that cannot be distinguished.
    """
    columns = dict(common)
    joined = _grouped(common, weights)
    for cost_name, column in common.items():
        halves = {f"{cost_name}_{side}": column * (sides == side) for side in SIDES}
        if all(half.any() for half in halves.values()):
            apart = {name: kept for name, kept in columns.items() if name != cost_name} | halves
            if (of_apart := _grouped(apart, weights)) <= joined:
                columns = apart
                joined = of_apart
    return columns


def _grouped(columns: Mapping[str, np.ndarray], weights: np.ndarray) -> set[str]:
    names = list(columns)
    design = np.column_stack(list(columns.values()))
    return {names[place] for members in groups(design * weights[:, None]) for place in members}


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
    rows: Sequence[PhaseRow],
    names: Sequence[str],
    columns: tuple[int, ...],
    design: np.ndarray,
    fit: RobustFit,
) -> CostGroup:
    """Seconds of the group in the mean map and the mean reduce task together."""
    mean_terms = np.zeros(len(names))
    member_terms = design[:, list(columns)]
    for phases, parts in KINDS:
        # A task has a row of each phase of the history, or of those parts its recording has.
        phase_rows, part_rows = (
            [row_numbers for phase in kind if (row_numbers := _rows_of(rows, phase))]
            for kind in (phases, parts)
        )
        history_tasks = max(map(len, phase_rows), default=0)
        all_tasks = history_tasks + max(map(len, part_rows), default=0)
        for row_numbers in phase_rows:
            mean_terms[list(columns)] += (
                member_terms[row_numbers].mean(axis=0) * history_tasks / all_tasks
            )
        for row_numbers in part_rows:
            mean_terms[list(columns)] += member_terms[row_numbers].sum(axis=0) / all_tasks
    members = tuple(names[column] for column in columns)
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


def _phases_of(rows: Sequence[PhaseRow], terms: np.ndarray) -> str:
    touched = {phase_row.phase for phase_row, term in zip(rows, terms, strict=True) if term}
    return ", ".join(phase for phase in PHASES if phase in touched)
