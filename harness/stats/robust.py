"""
Non-negative least squares that outliers do not bend.

Iteratively reweighted: absolute deviations first, which find the bulk, then Tukey's biweight,
which forgets what lies far from it.  Each step is scipy's `nnls` on columns of length 1.

    minimise  sum_i rho(w_i (y_i - x_i b) / s)  over b >= 0,  with ties b = 0

s is the scale of the residuals: their median absolute value, without as many of the smallest as
there are coefficients, for a fit of absolute deviations passes through so many points exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.stats.spread import NORMAL_MAD

# Tukey's constant: 95 % as efficient as least squares where the errors are normal.
TUKEY = 4.685

# An outlier keeps this weight, so that a coefficient which only outliers tell of stays defined.
_FORGOTTEN = 1e-6
_TIE = 1e4
_FIRST_STEPS = 30
_STEPS = 100
_CLOSE = 1e-10


@dataclass(frozen=True)
class RobustFit:
    """
    Coefficients of a robust fit, 0 or more.

    *covariance* is the sandwich estimate (Huber 1981, 7.6: heteroscedasticity-consistent, with
    n / (n - rank)), of the coefficients as if they could be negative, given the ties.  It is
    infinite where no row is left over.  *outliers* marks rows that the fit has all but forgotten.
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    outliers: np.ndarray
    scale: float

    def error(self, combination: np.ndarray) -> float:
        """Standard error of the sum of *combination* x coefficients."""
        named = np.flatnonzero(combination)
        part, factor = self.covariance[np.ix_(named, named)], combination[named]
        return float(np.sqrt(max(0.0, factor @ part @ factor))) if len(named) else 0.0


def nnls_robust(
    design: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    ties: np.ndarray | None = None,
) -> RobustFit:
    """
    Fit *target* = *design* x coefficients, coefficients 0 or more.

    *weights* multiply the residuals (a row of weight 2 counts as if measured twice as exactly).
    Rows of *ties* times the coefficients are held at 0.  Columns that are zero in every row get
    coefficient 0 and an infinite variance.  ``ValueError`` for shapes that do not fit, no rows, or
    numbers that are not finite.
    """
    rows, values = _weighted(design, target, weights)
    lengths = np.linalg.norm(rows, axis=0)
    used = lengths > 0
    unit = rows[:, used] / lengths[used]
    bound = _bound(ties, used, lengths)
    size = float(np.abs(values).max()) or 1.0
    found, scale = _reweighted(unit, values / size, bound)
    coefficients = np.zeros(design.shape[1])
    coefficients[used] = found * size / lengths[used]
    residuals = values / size - unit @ found
    covariance = np.full((design.shape[1],) * 2, 0.0)
    stretch = size / lengths[used]
    spread = _sandwich(unit, bound, residuals, scale) * np.outer(stretch, stretch)
    covariance[np.ix_(used, used)] = spread
    covariance[~used, ~used] = np.inf
    return RobustFit(coefficients, covariance, np.abs(residuals) > TUKEY * scale, scale * size)


def _weighted(
    design: np.ndarray, target: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    factor = np.ones(len(target)) if weights is None else np.asarray(weights, dtype=float)
    if design.ndim != 2 or design.shape[0] != len(target) or len(factor) != len(target):
        raise ValueError(f"a design of {design.shape} does not fit {len(target)} values")
    if len(target) == 0:
        raise ValueError("no rows: a fit needs at least one")
    rows: np.ndarray = design * factor[:, None]
    values: np.ndarray = target * factor
    if not (np.isfinite(rows).all() and np.isfinite(values).all()):
        raise ValueError("a number is not finite")
    return rows, values


def _bound(ties: np.ndarray | None, used: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Ties in the coordinates of unit columns, as rows that weigh more than all data."""
    if ties is None or not len(ties):
        return np.zeros((0, int(used.sum())))
    rows: np.ndarray = ties[:, used] / lengths[used]
    rows *= (_TIE / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))[:, None]
    return rows


def _reweighted(
    unit: np.ndarray, values: np.ndarray, bound: np.ndarray
) -> tuple[np.ndarray, float]:
    rank = int(np.linalg.matrix_rank(np.vstack([unit, bound]))) - len(bound)
    tiny = 1e-9 * float(np.median(np.abs(values))) or 1e-12
    found = _solve(unit, values, bound, np.ones(len(values)))
    scale = tiny
    for step in range(_FIRST_STEPS + _STEPS):
        distance = np.abs(values - unit @ found)
        scale = max(_scale(distance, rank), tiny)
        if step < _FIRST_STEPS:
            weights = scale / np.maximum(distance, 1e-3 * scale)
        else:
            weights = np.clip(1 - (distance / (TUKEY * scale)) ** 2, 0, None) ** 2
        before, found = found, _solve(unit, values, bound, np.maximum(weights, _FORGOTTEN))
        if step > _FIRST_STEPS and np.abs(found - before).max() <= _CLOSE * np.abs(found).max():
            break
    return found, scale


def _solve(
    unit: np.ndarray, values: np.ndarray, bound: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    design = np.vstack([unit * root[:, None], bound])
    found, _ = nnls(design, np.concatenate([values * root, np.zeros(len(bound))]))
    return np.asarray(found)


def _scale(distance: np.ndarray, rank: int) -> float:
    left = np.sort(distance)[rank:]
    return float(np.median(left)) / NORMAL_MAD if len(left) else 0.0


def _sandwich(
    unit: np.ndarray, bound: np.ndarray, residuals: np.ndarray, scale: float
) -> np.ndarray:
    """A^-1 B A^-1 with A = mean(psi') X'X and B = sum of psi^2 x x', where the ties hold."""
    allowed = _allowed(bound)
    inner = unit @ allowed
    count = len(residuals)
    free = count - int(np.linalg.matrix_rank(inner))
    if free <= 0:
        return np.full((unit.shape[1],) * 2, np.inf)
    square = (residuals / (TUKEY * scale)) ** 2
    inside = square < 1
    psi = np.where(inside, residuals * (1 - square) ** 2, 0.0)
    slope = max(0.1, float(np.mean(np.where(inside, (1 - square) * (1 - 5 * square), 0.0))))
    bread = np.linalg.pinv(slope * inner.T @ inner, rcond=1e-12)
    meat = (inner * psi[:, None]).T @ (inner * psi[:, None])
    covariance: np.ndarray = allowed @ bread @ meat @ bread @ allowed.T * (count / free)
    return covariance


def _allowed(bound: np.ndarray) -> np.ndarray:
    """Directions that keep all ties, as columns."""
    _, values, rows = np.linalg.svd(bound, full_matrices=True)
    kept: np.ndarray = rows[int((values > _TIE * 1e-9).sum()) :].T
    return kept
