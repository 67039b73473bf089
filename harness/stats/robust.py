"""
Non-negative least squares that outliers do not bend.

Iteratively reweighted: absolute deviations first, which find the bulk, then Tukey's biweight,
which forgets what lies far from it.  Each step is scipy's `nnls` on columns of length 1.

    minimise  sum_i rho(w_i (y_i - x_i b) / s) + sum_k ((t_k b) / g_k)^2  over b >= 0

s is the scale of the residuals: their median absolute value, without as many of the smallest as
there are coefficients, for a fit of absolute deviations passes through so many points exactly.
t_k are *ties*: combinations of coefficients that should be 0 where the data do not say otherwise.
Each counts as one observation whose error g_k is as large as all that its columns explain, so it
decides only what the data leave open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.stats.spread import NORMAL_MAD

# Tukey's constant: 95 % as efficient as least squares where the errors are normal.
TUKEY = 4.685

# An outlier keeps this weight, so that a coefficient which only outliers tell of stays defined.
_FORGOTTEN = 1e-6

# Ties still decide what exact data leave open.
_LEAST_TIE = 1e-6
_FIRST_STEPS = 30
_STEPS = 100
_CLOSE = 1e-10


@dataclass(frozen=True)
class RobustFit:
    """
    Coefficients of a robust fit, 0 or more.

    *covariance* is the sandwich estimate (Huber 1981, 7.6: heteroscedasticity-consistent, with
    n / (n - rank)) of the coefficients as if they could be negative, with ties as observations.
    It is infinite where no row is left over.  *outliers* marks rows that the fit has all but
    forgotten.
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
    Rows of *ties* times the coefficients are brought to 0 where the data leave them open.  Columns
    that are zero in every row get coefficient 0 and an infinite variance.  ``ValueError`` for
    shapes that do not fit, no rows, or numbers that are not finite.
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
    tied = _weighed(bound, unit, found, scale)
    spread = _sandwich(unit, tied, residuals, scale) * np.outer(stretch, stretch)
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
    """Ties in the coordinates of unit columns, as rows of length 1."""
    if ties is None or not len(ties):
        return np.zeros((0, int(used.sum())))
    rows: np.ndarray = ties[:, used] / lengths[used]
    rows /= np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, None]
    return rows


def _weighed(bound: np.ndarray, unit: np.ndarray, found: np.ndarray, scale: float) -> np.ndarray:
    """Ties as observations: the error of each is what its columns explain together."""
    explained = [np.linalg.norm(unit @ (found * (np.abs(row) > 1e-9))) for row in bound]
    weights = scale / np.maximum(explained, 1e-300)
    rows: np.ndarray = bound * np.clip(weights, _LEAST_TIE, 1.0)[:, None]
    return rows


def _reweighted(
    unit: np.ndarray, values: np.ndarray, bound: np.ndarray
) -> tuple[np.ndarray, float]:
    rank = _rank(unit)
    scale = tiny = 1e-9 * float(np.median(np.abs(values))) or 1e-12
    found = _solve(unit, values, bound * _LEAST_TIE, np.ones(len(values)))
    for step in range(_FIRST_STEPS + _STEPS):
        distance = np.abs(values - unit @ found)
        scale = max(_scale(distance, rank), tiny)
        if step < _FIRST_STEPS:
            weights = scale / np.maximum(distance, 1e-3 * scale)
        else:
            weights = np.clip(1 - (distance / (TUKEY * scale)) ** 2, 0, None) ** 2
        tied = _weighed(bound, unit, found, scale)
        before, found = found, _solve(unit, values, tied, np.maximum(weights, _FORGOTTEN))
        if step > _FIRST_STEPS and np.abs(found - before).max() <= _CLOSE * np.abs(found).max():
            break
    return found, scale


def _rank(unit: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(unit))


def _solve(
    unit: np.ndarray, values: np.ndarray, tied: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    design = np.vstack([unit * root[:, None], tied])
    found, _ = nnls(design, np.concatenate([values * root, np.zeros(len(tied))]))
    return np.asarray(found)


def _scale(distance: np.ndarray, rank: int) -> float:
    left = np.sort(distance)[rank:]
    return float(np.median(left)) / NORMAL_MAD if len(left) else 0.0


def _sandwich(
    unit: np.ndarray, tied: np.ndarray, residuals: np.ndarray, scale: float
) -> np.ndarray:
    """A^-1 B A^-1 with A = mean(psi') X'X + T'T and B = sum of psi^2 x x' + s^2 T'T."""
    count = len(residuals)
    free = count - _rank(unit)
    if free <= 0:
        return np.full((unit.shape[1],) * 2, np.inf)
    square = (residuals / (TUKEY * scale)) ** 2
    inside = square < 1
    psi = np.where(inside, residuals * (1 - square) ** 2, 0.0)
    slope = max(0.1, float(np.mean(np.where(inside, (1 - square) * (1 - 5 * square), 0.0))))
    bread = np.linalg.pinv(slope * unit.T @ unit + tied.T @ tied, rcond=1e-15, hermitian=True)
    meat = (unit * psi[:, None]).T @ (unit * psi[:, None]) * (count / free)
    covariance: np.ndarray = bread @ (meat + scale**2 * tied.T @ tied) @ bread
    return covariance
