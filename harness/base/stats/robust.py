"""
Non-negative least squares that outliers do not bend.

Iteratively reweighted: absolute deviations first, which find the bulk, then Tukey's biweight,
which forgets what lies far from it.  Each step is scipy's `nnls` on columns of length 1.

    minimise  sum_i rho(w_i (y_i - x_i b) / s) + sum_k ((t_k b) / g_k)^2  over b >= 0

s is the scale of the residuals: their median absolute value, without as many of the smallest as
there are coefficients, for a fit of absolute deviations passes through so many points exactly.
t_k are *soft constraints*: combinations of coefficients that should be 0 where the data do not
show otherwise.  Each counts as one observation whose error g_k is as large as all that its columns
explain, so it decides only what the data leave open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.base.stats.spread import NORMAL_MAD

# Tukey's constant: 95 % as efficient as least squares where the errors are normal.
TUKEY = 4.685

# An outlier keeps this weight, so that a coefficient which only outliers show stays defined.
_FORGOTTEN = 1e-6

# Soft constraints still decide what exact data leave open.
_LEAST_WEIGHT = 1e-6
_FIRST_STEPS = 30
_STEPS = 100
_CLOSE = 1e-10


@dataclass(frozen=True)
class RobustFit:
    """
    Coefficients of a robust fit, 0 or more.

    *covariance* is the sandwich estimate (Huber 1981, 7.6: heteroscedasticity-consistent, with
    n / (n - rank)) of the coefficients as if they could be negative, with soft constraints as
    observations.  It is infinite where no row is left over.
    """

    coefficients: np.ndarray
    covariance: np.ndarray

    def error(self, combination: np.ndarray) -> float:
        """Standard error of the sum of *combination* x coefficients."""
        columns = np.flatnonzero(combination)
        part = self.covariance[np.ix_(columns, columns)]
        factors = combination[columns]
        return float(np.sqrt(max(0.0, factors @ part @ factors))) if len(columns) else 0.0


def nnls_robust(
    design: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    constraints: np.ndarray | None = None,
) -> RobustFit:
    """
    Fit *target* = *design* x coefficients, coefficients 0 or more.

    *weights* multiply the residuals (a row of weight 2 counts as if measured twice as exactly).
    Rows of *constraints* times the coefficients are brought to 0 where the data leave them open.
    Columns that are zero in every row get coefficient 0 and an infinite variance.
    """
    factor = np.ones(len(target)) if weights is None else np.asarray(weights, dtype=float)
    rows = design * factor[:, None]
    values = target * factor
    lengths = np.linalg.norm(rows, axis=0)
    used_columns = lengths > 0
    unit = rows[:, used_columns] / lengths[used_columns]
    # Soft constraints in the coordinates of unit columns, as rows of length 1.
    unit_constraints = np.zeros((0, int(used_columns.sum())))
    if constraints is not None and len(constraints):
        unit_constraints = constraints[:, used_columns] / lengths[used_columns]
        norms = np.linalg.norm(unit_constraints, axis=1)
        unit_constraints /= np.maximum(norms, 1e-300)[:, None]
    size = float(np.abs(values).max()) or 1.0
    solution, scale = _reweighted(unit, values / size, unit_constraints)
    coefficients = np.zeros(design.shape[1])
    coefficients[used_columns] = solution * size / lengths[used_columns]
    residuals = values / size - unit @ solution
    covariance = np.full((design.shape[1],) * 2, 0.0)
    stretch = size / lengths[used_columns]
    weighted = _weighted_constraints(unit_constraints, unit, solution, scale)
    sandwich = _sandwich(unit, weighted, residuals, scale) * np.outer(stretch, stretch)
    covariance[np.ix_(used_columns, used_columns)] = sandwich
    covariance[~used_columns, ~used_columns] = np.inf
    return RobustFit(coefficients, covariance)


def _weighted_constraints(
    constraints: np.ndarray, unit: np.ndarray, solution: np.ndarray, scale: float
) -> np.ndarray:
    """Soft constraints as observations: each one's error is what its columns explain together."""
    explained = [np.linalg.norm(unit @ (solution * (np.abs(row) > 1e-9))) for row in constraints]
    weights = scale / np.maximum(explained, 1e-300)
    rows: np.ndarray = constraints * np.clip(weights, _LEAST_WEIGHT, 1.0)[:, None]
    return rows


def _reweighted(
    unit: np.ndarray, values: np.ndarray, constraints: np.ndarray
) -> tuple[np.ndarray, float]:
    """Coefficients of unit columns, and the scale of the residuals."""
    rank = int(np.linalg.matrix_rank(unit))
    scale = smallest = 1e-9 * float(np.median(np.abs(values))) or 1e-12
    solution = _solve(unit, values, constraints * _LEAST_WEIGHT, np.ones(len(values)))
    for iteration in range(_FIRST_STEPS + _STEPS):
        distance = np.abs(values - unit @ solution)
        remaining = np.sort(distance)[rank:]
        scale = max(float(np.median(remaining)) / NORMAL_MAD if len(remaining) else 0.0, smallest)
        if iteration < _FIRST_STEPS:
            weights = scale / np.maximum(distance, 1e-3 * scale)
        else:
            weights = np.clip(1 - (distance / (TUKEY * scale)) ** 2, 0, None) ** 2
        weighted = _weighted_constraints(constraints, unit, solution, scale)
        previous = solution
        solution = _solve(unit, values, weighted, np.maximum(weights, _FORGOTTEN))
        change = np.abs(solution - previous).max()
        if iteration > _FIRST_STEPS and change <= _CLOSE * np.abs(solution).max():
            break
    return solution, scale


def _solve(
    unit: np.ndarray, values: np.ndarray, constraints: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Weighted non-negative least squares; rows of *constraints* are brought to 0 beside it."""
    from scipy.optimize import nnls

    root_weights = np.sqrt(weights)
    design = np.vstack([unit * root_weights[:, None], constraints])
    solution, _ = nnls(design, np.concatenate([values * root_weights, np.zeros(len(constraints))]))
    return np.asarray(solution)


def _sandwich(
    unit: np.ndarray, constraints: np.ndarray, residuals: np.ndarray, scale: float
) -> np.ndarray:
    """A^-1 B A^-1 with A = mean(psi') X'X + T'T and B = sum of psi^2 x x' + s^2 T'T."""
    row_count = len(residuals)
    free = row_count - int(np.linalg.matrix_rank(unit))
    if free <= 0:
        return np.full((unit.shape[1],) * 2, np.inf)
    square = (residuals / (TUKEY * scale)) ** 2
    is_near = square < 1
    psi = np.where(is_near, residuals * (1 - square) ** 2, 0.0)
    slopes = np.where(is_near, (1 - square) * (1 - 5 * square), 0.0)
    slope = max(0.1, float(np.mean(slopes)))
    squares = constraints.T @ constraints
    bread = np.linalg.pinv(slope * unit.T @ unit + squares, rcond=1e-15, hermitian=True)
    meat = (unit * psi[:, None]).T @ (unit * psi[:, None]) * (row_count / free)
    covariance: np.ndarray = bread @ (meat + scale**2 * constraints.T @ constraints) @ bread
    return covariance
