r"""
Sums of exponential delays, and the maximum of many of them.

    here       meaning
    ---------  -------------------------------------------------------------------------------
    `means`    means t_1..t_k of the delays in series; those of 0 are left out
    F(t)       distribution function of their sum X: the hypoexponential distribution
    S(t)       1 - F(t)
    n          number of independent copies of X, of which the last one counts

F comes from the generator Q of the chain 1 -> 2 -> .. -> k -> done (bidiagonal, rates 1/t_k), as
the first row of exp(Q t): F is its last element, S the sum of the others.  Partial fractions would
be shorter and cancel where two means are close.  Here nothing is ever subtracted: a power series
with positive terms for a short time, and exp(2 Q t) = exp(Q t)^2 for longer ones, with the
diagonal, whose error would double each time, set to exp(-t/t_k).  So F is right to about 1e-14 of
itself near 0, and S is in the far tail, where the maximum of many copies lies.

    E[max]   = integral of 1 - F^n                 (0 to infinity)
    E[max^2] = integral of 2 t (1 - F^n)

by Gauss-Legendre quadrature on panels that double with t.  1 - F^n is -expm1(n log F), where log F
is log1p(-S) as soon as S is the smaller of the two.

`quantiles` inverts F on the same panels: log t is interpolated (cubic, with the derivative known)
against the log of -log S, of which it is nearly a straight line at both ends; off by 1e-9 of t at
most, which no number of random draws can tell.
"""

from __future__ import annotations

import math

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from numpy.typing import NDArray

from harness.errors import ModelError

Floats = NDArray[np.float64]
WHERE = "maximum of exponential delays"

# A delay shorter than this share of the sum is lost in the rounding of the others.
NEGLIGIBLE = 1e-14
_FIRST = 2.0**-2  # the first panel ends at this share of the shortest mean,
_FIRST_OF_TABLE = 2.0**-20  # and that of the inverse here: below it, F is one power of t
_PARTS, _NODES = 4, 16  # of a panel, and of a part
_BEYOND = 1e-18  # the panels end where n S is below this,
_LAST_OF_TABLE = 1e-60  # and those of the inverse where S is


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation."""

    mean: float
    std: float


@lru_cache(maxsize=1)
def _rule() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]: Gauss-Legendre in each part."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    left = np.arange(_PARTS)[:, None] / _PARTS
    nodes = left + (x + 1) / 2 / _PARTS
    return nodes.ravel(), np.tile(w / 2 / _PARTS, _PARTS)


# Knots of the inverse on [0, 1].
_KNOTS = (np.arange(32) + 1) / 32


def maximum(groups: Iterable[tuple[Sequence[float], int]]) -> Moments:
    """
    Moments of the maximum of independent sums of exponential delays.

    Each group is the means of the delays of a sum, and how many copies of it there are.
    ``ModelError`` for a mean or a number that is negative or not finite.
    """
    kept = [(_positive(means), n) for means, n in groups if _count(n)]
    kept = [(means, n) for means, n in kept if len(means)]
    if not kept:
        return Moments(0.0, 0.0)
    if len(kept) == 1 and kept[0][1] == 1:  # no maximum: known in closed form
        ((means, _),) = kept
        return Moments(float(means.sum()), float(np.sqrt((means**2).sum())))
    scale = max(float(means.sum()) for means, _ in kept)
    first, second = _integrals([(means / scale, n) for means, n in kept])
    return Moments(scale * first, scale * math.sqrt(max(0.0, second - first**2)))


def _integrals(groups: Sequence[tuple[Floats, int]]) -> tuple[float, float]:
    nodes, weights = _rule()
    start = _FIRST * min(float(means.min()) for means, _ in groups)
    panels = [_Panels(means, start, nodes) for means, _ in groups]
    first = second = left = 0.0
    width = start
    while True:
        t = left + width * nodes
        shapes = [p.next()[:2] for p in panels]
        logs = [n * _log_reached(*shape) for (_, n), shape in zip(groups, shapes, strict=True)]
        beyond = -np.expm1(sum(logs))
        first += width * float(weights @ beyond)
        second += width * float(weights @ (2 * t * beyond))
        if beyond[-1] < _BEYOND:
            return first, second
        left, width = left + width, width if left == 0 else 2 * width


def _log_reached(tail: Floats, reached: Floats) -> Floats:
    """Log F, from S where S is small, else from F itself."""
    return np.where(tail < 0.5, np.log1p(-np.minimum(tail, 0.5)), np.log(reached))


def _hazard(tail: Floats, reached: Floats) -> Floats:
    """-log S, from F where F is small, else from S itself."""
    return np.where(reached < 0.5, -np.log1p(-np.minimum(reached, 0.5)), -np.log(tail))


class _Panels:
    """exp(Q t) at the nodes of one panel after the other: [0, h], [h, 2h], [2h, 4h], ..."""

    def __init__(self, means: Floats, start: float, nodes: Floats) -> None:
        self.rates = 1 / means
        self.times = start * nodes
        self.powers: Floats | None = None
        self.start = start

    def next(self) -> tuple[Floats, Floats, Floats]:
        """S, F and the density at the nodes of the next panel."""
        if self.powers is None:
            self.powers = _series(self.rates, self.times)
        elif self.times[-1] <= self.start:
            self.times = self.times + self.start
            self.powers = _series(self.rates, self.times)
        else:
            self.times = 2 * self.times
            self.powers = self.powers @ self.powers
            self._renew_diagonal()
        row = self.powers[:, 0]
        return row[:, :-1].sum(axis=1), row[:, -1], row[:, -2] * self.rates[-1]

    def _renew_diagonal(self) -> None:
        assert self.powers is not None
        k = np.arange(len(self.rates))
        self.powers[:, k, k] = np.exp(-self.times[:, None] * self.rates)
        self.powers[:, -1, -1] = 1.0


def _series(rates: Floats, times: Floats) -> Floats:
    """exp(Q t) for times so short that the largest rate x time is far below 1."""
    k, fastest = len(rates), float(rates.max())
    # exp(Q t) = exp(-q t) exp((Q + q I) t), whose matrix has no negative element.
    matrix = np.zeros((k + 1, k + 1))
    matrix[np.arange(k), np.arange(k)] = 1 - rates / fastest
    matrix[np.arange(k), np.arange(1, k + 1)] = rates / fastest
    matrix[k, k] = 1.0
    x = (fastest * times)[:, None, None]
    term = np.tile(np.eye(k + 1), (len(times), 1, 1))
    total = term.copy()
    for i in range(1, 12 + k):
        term = term @ matrix * (x / i)
        total += term
    out: Floats = np.exp(-x) * total
    return out


class Quantiles:
    """Inverse of the distribution function of a sum of exponential delays."""

    def __init__(self, means: Sequence[float]) -> None:
        """Table for delays of these *means*; ``ModelError`` for one that is no time."""
        kept = _positive(means)
        self.scale = float(kept.sum())
        self.log_hazard = self.log_time = self.slope = np.zeros(0)
        if len(kept):
            self._tabulate(kept / self.scale)

    def _tabulate(self, means: Floats) -> None:
        panels = _Panels(means, _FIRST_OF_TABLE * float(means.min()), _KNOTS)
        columns = []
        while True:
            tail, reached, density = panels.next()
            if tail[-1] < _LAST_OF_TABLE:
                break
            hazard = _hazard(tail, reached)
            slope = hazard * tail / (panels.times * density)
            columns.append((np.log(hazard), np.log(panels.times), slope))
        self.log_hazard, self.log_time, self.slope = (
            np.concatenate(column) for column in zip(*columns, strict=True)
        )

    def of_maximum(self, minus_log_u: Floats, number: int) -> Floats:
        """
        The maximum of *number* copies at the probabilities u, given as -log u > 0.

        P(max <= t) = F(t)^n = u, so that -log S(t) = -log(1 - u^(1/n)).
        """
        if not number or not len(self.log_hazard):
            return np.zeros_like(minus_log_u)
        exponents = np.clip(minus_log_u / number, 1e-290, 700.0)
        hazard = _hazard(-np.expm1(-exponents), np.exp(-exponents))
        return self.scale * np.exp(self._interpolated(np.log(hazard)))

    def _interpolated(self, at: Floats) -> Floats:
        """Cubic Hermite in the table, straight lines beyond its ends."""
        x, y, slope = self.log_hazard, self.log_time, self.slope
        i = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
        width = x[i + 1] - x[i]
        s = (at - x[i]) / width
        inside: Floats = (
            y[i] * (1 + 2 * s) * (1 - s) ** 2
            + y[i + 1] * s**2 * (3 - 2 * s)
            + width * s * (1 - s) * (slope[i] * (1 - s) - slope[i + 1] * s)
        )
        low = y[0] + slope[0] * (at - x[0])
        high = y[-1] + slope[-1] * (at - x[-1])
        out: Floats = np.where(s < 0, low, np.where(s > 1, high, inside))
        return out


def _positive(means: Sequence[float]) -> Floats:
    """*means* without those of 0 and those that are lost beside the others."""
    values = np.asarray(means, dtype=float)
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise ModelError(f"means of delays {list(means)} are not finite times", where=WHERE)
    kept: Floats = values[values > NEGLIGIBLE * values.sum()]
    return kept


def _count(number: int) -> int:
    if number < 0:
        raise ModelError(f"the maximum of {number} delays", where=WHERE)
    return number
