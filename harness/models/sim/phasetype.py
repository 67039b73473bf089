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

`Quantiles` inverts F on the same panels: log t is interpolated (cubic, with the derivative known)
against the log of -log S, of which it is nearly a straight line at both ends; its error is 1e-9 of
t at most, which no number of random draws can reveal.
"""

from __future__ import annotations

import math

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from numpy.typing import NDArray

Floats = NDArray[np.float64]

# A delay shorter than this share of the sum is lost in the rounding of the others.
NEGLIGIBLE = 1e-14
_FIRST_PANEL = 2.0**-2  # the first panel ends at this share of the shortest mean,
_FIRST_TABLE_PANEL = 2.0**-20  # and that of the inverse here: below it, F is one power of t
_PARTS = 4
_NODES = 16  # of a panel, and of a part
_NO_TAIL = 1e-18  # the panels end where n S is below this,
_NO_TABLE_TAIL = 1e-60  # and those of the inverse where S is
_KNOTS = (np.arange(32) + 1) / 32  # of the inverse, in one panel


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation."""

    mean: float
    std: float


def maximum(means: Sequence[float], copies: int) -> Moments:
    """Moments of the maximum of so many *copies* of a sum of exponential delays."""
    positive = positive_means(means)
    if not copies or not len(positive):
        return Moments(0.0, 0.0)
    if copies == 1:  # known in closed form
        return Moments(float(positive.sum()), float(np.sqrt((positive**2).sum())))
    scale = float(positive.sum())
    abscissae, gauss_weights = np.polynomial.legendre.leggauss(_NODES)
    part_starts = np.arange(_PARTS)[:, None] / _PARTS
    nodes = (part_starts + (abscissae + 1) / 2 / _PARTS).ravel()
    weights = np.tile(gauss_weights / 2 / _PARTS, _PARTS)
    width = _FIRST_PANEL * float(positive.min()) / scale
    first_moment = second_moment = panel_start = 0.0
    for times, tail, reached, _ in panels(positive / scale, width, nodes):
        # log F from S where S is small, else from F itself
        log_reached = np.where(tail < 0.5, np.log1p(-np.minimum(tail, 0.5)), np.log(reached))
        remaining = -np.expm1(copies * log_reached)
        first_moment += width * float(weights @ remaining)
        second_moment += width * float(weights @ (2 * times * remaining))
        if remaining[-1] < _NO_TAIL:
            break
        panel_start += width
        width = panel_start  # each panel but the first two is twice as wide as the one before
    variance = max(0.0, second_moment - first_moment**2)
    return Moments(scale * first_moment, scale * math.sqrt(variance))


def panels(
    means: Floats, width: float, nodes: Floats
) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """
    Yield t, S, F and the density at the nodes of one panel after the other.

    The panels are [0, width], [width, 2 width], [2 width, 4 width], ...; the nodes lie in [0, 1].
    """
    rates = 1 / means
    times = width * nodes
    diagonal = np.arange(len(means))
    powers = short_powers(rates, times)
    while True:
        first_row = powers[:, 0]
        yield times, first_row[:, :-1].sum(axis=1), first_row[:, -1], first_row[:, -2] * rates[-1]
        if times[-1] <= width:
            times = times + width
            powers = short_powers(rates, times)
        else:
            times = 2 * times
            powers = powers @ powers
            powers[:, diagonal, diagonal] = np.exp(-times[:, None] * rates)
            powers[:, -1, -1] = 1.0


def short_powers(rates: Floats, times: Floats) -> Floats:
    """exp(Q t) for times so short that the largest rate x time is far below 1."""
    size = len(rates)
    fastest = float(rates.max())
    # exp(Q t) = exp(-q t) exp((Q + q I) t), whose matrix has no negative element.
    matrix = np.zeros((size + 1, size + 1))
    matrix[np.arange(size), np.arange(size)] = 1 - rates / fastest
    matrix[np.arange(size), np.arange(1, size + 1)] = rates / fastest
    matrix[size, size] = 1.0
    exponents = (fastest * times)[:, None, None]
    term = np.tile(np.eye(size + 1), (len(times), 1, 1))
    total = term.copy()
    for power in range(1, 12 + size):
        term = term @ matrix * (exponents / power)
        total += term
    powers: Floats = np.exp(-exponents) * total
    return powers


def positive_means(means: Sequence[float]) -> Floats:
    """*means* without zeros and without those too small to matter beside the others."""
    values = np.asarray(means, dtype=float)
    positive: Floats = values[values > NEGLIGIBLE * values.sum()]
    return positive


class Quantiles:
    """Inverse of the distribution function of a sum of exponential delays."""

    def __init__(self, means: Sequence[float]) -> None:
        positive = positive_means(means)
        self.scale = float(positive.sum())
        self.log_hazard = self.log_time = self.slope = np.zeros(0)
        if not len(positive):
            return
        scaled = positive / self.scale
        columns = []
        for times, tail, reached, density in panels(
            scaled, _FIRST_TABLE_PANEL * float(scaled.min()), _KNOTS
        ):
            if tail[-1] < _NO_TABLE_TAIL:
                break
            hazard = _hazard(tail, reached)
            columns.append((np.log(hazard), np.log(times), hazard * tail / (times * density)))
        self.log_hazard, self.log_time, self.slope = (
            np.concatenate(column) for column in zip(*columns, strict=True)
        )

    def of_maximum(self, minus_log_u: Floats, copies: int) -> Floats:
        """
        The maximum of so many *copies* at the probabilities u, given as -log u > 0.

        P(max <= t) = F(t)^n = u, so that -log S(t) = -log(1 - u^(1/n)).  Cubic Hermite
        interpolation in the table, straight lines beyond its ends.
        """
        if not copies or not len(self.log_hazard):
            return np.zeros_like(minus_log_u)
        exponents = np.clip(minus_log_u / copies, 1e-290, 700.0)
        wanted = np.log(_hazard(-np.expm1(-exponents), np.exp(-exponents)))
        x = self.log_hazard
        y = self.log_time
        slope = self.slope
        left = np.clip(np.searchsorted(x, wanted) - 1, 0, len(x) - 2)
        width = x[left + 1] - x[left]
        share = (wanted - x[left]) / width
        within = (
            y[left] * (1 + 2 * share) * (1 - share) ** 2
            + y[left + 1] * share**2 * (3 - 2 * share)
            + width * share * (1 - share) * (slope[left] * (1 - share) - slope[left + 1] * share)
        )
        below = y[0] + slope[0] * (wanted - x[0])
        above = y[-1] + slope[-1] * (wanted - x[-1])
        log_time = np.where(share < 0, below, np.where(share > 1, above, within))
        maxima: Floats = self.scale * np.exp(log_time)
        return maxima


def _hazard(tail: Floats, reached: Floats) -> Floats:
    """-log S, from F where F is small, else from S itself."""
    return np.where(reached < 0.5, -np.log1p(-np.minimum(reached, 0.5)), -np.log(tail))
