"""
Costs from phases: one robust non-negative fit over all phases of all tasks.

Tasks that were recorded bring the parts of the equations instead of the history's five phases.

A phase's residuals count relative to its median time.  Costs that no row shows are absent.  Costs
that the rows cannot tell apart (`harness.stats.collinear`) are given as a group with their sum;
inside it they divide by typical ratios and are marked *assumed*.
"""

from __future__ import annotations

import math
import statistics

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.profiling.phases import KINDS, PHASES, PhaseRow
from harness.profiling.typical import SOURCE, TYPICAL
from harness.records.profile import CostGroup, FitDiagnostic, Statistic
from harness.stats.collinear import groups, proportional, ties
from harness.stats.robust import RobustFit, nnls_robust

# Phases shorter than this are not worth fitting more exactly: timers and schedulers are no finer.
_SHORTEST_S = 0.05
# Spans know nanoseconds; a part of a few milliseconds still holds some work per record.
_SHORTEST_PART_S = 0.001
_PARTS = frozenset(part for _, parts in KINDS for part in parts)


@dataclass(frozen=True)
class CostFit:
    """Costs by name, the groups among them, and how well each phase is explained."""

    costs: dict[str, Statistic]
    groups: tuple[CostGroup, ...]
    diagnostics: tuple[FitDiagnostic, ...]


def fit_costs(rows: Sequence[PhaseRow]) -> CostFit:
    """Fit all costs that *rows* show."""
    names = _shown(rows)
    if not names:
        return CostFit({}, (), ())
    design = np.array([[row.terms.get(name, 0.0) for name in names] for row in rows])
    target = np.array([row.seconds for row in rows])
    weights = _weights(rows)
    found = groups(design * weights[:, None])
    fit = _fit(design, target, weights, np.array([TYPICAL[name] for name in names]))
    return CostFit(
        costs=_costs(rows, names, found, fit),
        groups=tuple(_group(rows, names, g, design, fit) for g in found),
        diagnostics=_diagnostics(rows, target, design @ fit.coefficients),
    )


def _fit(
    design: np.ndarray, target: np.ndarray, weights: np.ndarray, typical: np.ndarray
) -> RobustFit:
    """
    Fit with what the data leave open decided by *typical* costs.

    Proportional columns are one column, in typical ratios; among those that are left, typical
    ratios are weak observations, for a strict ratio over several phases could contradict the data.
    """
    alike = proportional(design * weights[:, None])
    shares = np.zeros((len(typical), len(alike)))
    for k, columns in enumerate(alike):
        shares[list(columns), k] = typical[list(columns)]
    merged = design @ shares
    weighted = merged * weights[:, None]
    bound = [ties(weighted, group, np.ones(len(group))) for group in groups(weighted)]
    fit = nnls_robust(merged, target, weights, np.vstack(bound) if bound else None)
    return RobustFit(
        coefficients=shares @ fit.coefficients,
        covariance=_spread(shares, fit.covariance),
        outliers=fit.outliers,
        scale=fit.scale,
    )


def _spread(shares: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    if not np.isfinite(covariance).all():
        return np.full((len(shares),) * 2, np.inf)
    found: np.ndarray = shares @ covariance @ shares.T
    return found


def _shown(rows: Sequence[PhaseRow]) -> list[str]:
    """Costs with a term in some row, in the order of the table of typical costs."""
    seen = {name for row in rows for name, term in row.terms.items() if term}
    return [name for name in TYPICAL if name in seen]


def _weights(rows: Sequence[PhaseRow]) -> np.ndarray:
    shortest = {row.phase: _SHORTEST_PART_S if row.phase in _PARTS else _SHORTEST_S for row in rows}
    scale = {
        phase: max(statistics.median(r.seconds for r in rows if r.phase == phase), least)
        for phase, least in shortest.items()
    }
    return np.array([1 / scale[row.phase] for row in rows])


def _phases_of(rows: Sequence[PhaseRow], names: Sequence[str]) -> str:
    touched = {row.phase for row in rows if any(row.terms.get(name) for name in names)}
    return ", ".join(phase for phase in PHASES if phase in touched)


def _costs(
    rows: Sequence[PhaseRow], names: Sequence[str], found: Sequence[tuple[int, ...]], fit: RobustFit
) -> dict[str, Statistic]:
    member = {k: [names[j] for j in group if j != k] for group in found for k in group}
    costs = {}
    for k, name in enumerate(names):
        value = float(fit.coefficients[k])
        error = fit.error(np.eye(len(names))[k])
        source = f"fit of {_phases_of(rows, [name])}"
        if k in member:
            source += f"; share of its group's sum by {SOURCE}, known to its own size at best"
            error = max(error, value)
        if not math.isfinite(error):
            source += "; no row to spare, so the spread is the value"
        costs[name] = Statistic(
            value=value,
            count=sum(1 for row in rows if row.terms.get(name)),
            spread=error if math.isfinite(error) else value,
            source=source,
            assumed=k in member,
            group=tuple(member.get(k, ())),
        )
    return costs


def _group(
    rows: Sequence[PhaseRow],
    names: Sequence[str],
    group: tuple[int, ...],
    design: np.ndarray,
    fit: RobustFit,
) -> CostGroup:
    """Seconds of the group in the mean map task and the mean reduce task."""
    mean = np.zeros(len(names))
    mean[list(group)] = _mean_tasks(rows, design[:, list(group)])
    members = tuple(names[k] for k in group)
    total, error = float(mean @ fit.coefficients), fit.error(mean)
    return CostGroup(
        names=members,
        sum_s=total,
        spread_s=error if math.isfinite(error) else total,
        note=f"seconds in {_phases_of(rows, members)} of a mean map and a mean reduce task;"
        f" divided by {SOURCE}",
    )


def _mean_tasks(rows: Sequence[PhaseRow], design: np.ndarray) -> np.ndarray:
    """
    Coefficients of the mean map and the mean reduce task together.

    A task has a row of each phase of the history, or of those parts that its recording has.
    """
    mean = np.zeros(design.shape[1])
    for phases, parts in KINDS:
        told = _rows_of(rows, phases)
        recorded = _rows_of(rows, parts)
        by_history = max(map(len, told), default=0)
        by_recording = max(map(len, recorded), default=0)
        for of_phase in told:
            mean += design[of_phase].mean(axis=0) * by_history / (by_history + by_recording)
        for of_part in recorded:
            mean += design[of_part].sum(axis=0) / (by_history + by_recording)
    return mean


def _rows_of(rows: Sequence[PhaseRow], phases: Sequence[str]) -> list[list[int]]:
    """Places of the rows of each phase that has any."""
    places = ([k for k, row in enumerate(rows) if row.phase == phase] for phase in phases)
    return [found for found in places if found]


def _diagnostics(
    rows: Sequence[PhaseRow], target: np.ndarray, told: np.ndarray
) -> tuple[FitDiagnostic, ...]:
    found = []
    for phase in PHASES:
        chosen = [k for k, row in enumerate(rows) if row.phase == phase]
        if chosen:
            found.append(_diagnostic(phase, target[chosen], told[chosen]))
    return tuple(found)


def _diagnostic(phase: str, measured: np.ndarray, told: np.ndarray) -> FitDiagnostic:
    """R2 is 0 where the phase does not vary: then there is nothing to explain."""
    left = float(np.sum((measured - told) ** 2))
    total = float(np.sum((measured - measured.mean()) ** 2))
    relative = np.abs(measured - told) / np.maximum(measured, 1e-3)
    return FitDiagnostic(
        phase=phase,
        count=len(measured),
        r2=1 - left / total if total > 0 else 0.0,
        median_residual=float(np.median(relative)),
    )
