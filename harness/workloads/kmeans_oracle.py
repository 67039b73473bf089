"""
K-means computed another way: scikit-learn, one iteration at a time, from the same start.

Where points are too many to be held, centres are judged by a sample of the points: each iteration
is judged from the centres that it began with, so that nothing adds up over iterations.
"""

from __future__ import annotations

import warnings

from dataclasses import dataclass

import numpy as np

from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Sums of doubles in another order: 1e-9 of the largest coordinate is far above what they differ by.
TOLERANCE = 1e-9
SIGMAS = 6.0  # one in 5e8 comparisons of a right output is beyond
LEAST = 30  # points of a sample whose mean is near to normal


@dataclass(frozen=True, slots=True)
class Step:
    """Centres after one iteration (before the first: the start), and the points of each."""

    centres: Floats
    points: Ints


def lloyd(points: Floats, start: Floats, epsilon: float, most: int) -> list[Step]:
    """
    Steps from *start* on until no centre moves farther than *epsilon*, *most* iterations at most.

    A centre without points keeps its place and sits the iteration out: scikit-learn itself would
    move it to a far point.
    """
    steps = [Step(start, np.zeros(len(start), np.int64))]
    for _ in range(most):
        before = steps[-1].centres
        counts = np.bincount(_nearest(points, before), minlength=len(before))
        after = before.copy()
        after[counts > 0] = _one_iteration(points, before[counts > 0])
        steps.append(Step(after, counts))
        if shift(before, after) <= epsilon:
            break
    return steps


def shift(before: Floats, after: Floats) -> float:
    """Farthest way of a centre."""
    return float(np.sqrt(((after - before) ** 2).sum(axis=1)).max())


def _nearest(points: Floats, centres: Floats) -> Ints:
    from sklearn.metrics import pairwise_distances_argmin
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        found: Ints = pairwise_distances_argmin(points, centres)
    return found


def _one_iteration(points: Floats, start: Floats) -> Floats:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # One thread: sums in one order, and no threads that wait for others where the machine is busy.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # one iteration is what is asked for
        model = KMeans(len(start), init=start, n_init=1, max_iter=1, tol=0, algorithm="lloyd")
        centres: Floats = model.fit(points).cluster_centers_
    return centres


def differs(number: int, step: Step, due: Step, scale: float) -> str:
    """What is wrong with iteration *number*, or nothing; *scale* is the largest coordinate."""
    moved = np.flatnonzero(step.points != due.points)
    if moved.size:
        first = moved[0]
        return (
            f"iteration {number}: centre {first} has {step.points[first]} points,"
            f" not {due.points[first]}"
        )
    off = np.abs(step.centres - due.centres).max(axis=1)
    # The start is taken over, digit by digit.
    if off.max() <= (TOLERANCE * scale if number else 0):
        return ""
    return f"iteration {number}: centre {off.argmax()} is off by {off.max():.3g} in a coordinate"


def unlikely(number: int, before: Step, after: Step, sample: Floats, total: int) -> str:
    """
    Say what in iteration *number* cannot be by chance, given a sample of all *total* points.

    The share of points of a centre, and each coordinate of its mean, lie within `SIGMAS` standard
    errors of those of the sample: points of a mixture are independent of their numbers, so any
    rule that picks by number draws a fair sample.
    """
    nearest = _nearest(sample, before.centres)
    for centre, place in enumerate(after.centres):
        own = sample[nearest == centre]
        share = after.points[centre] / total
        error = np.sqrt(max(share * (1 - share), 1 / total) / len(sample))
        if abs(len(own) / len(sample) - share) > SIGMAS * error + 1 / len(sample):
            return (
                f"iteration {number}: centre {centre} has {after.points[centre]} of {total}"
                f" points, and {len(own)} of {len(sample)} of a sample"
            )
        if len(own) < LEAST:
            continue
        errors = own.std(axis=0, ddof=1) / np.sqrt(len(own))
        off = np.abs(own.mean(axis=0) - place)
        if (off > SIGMAS * errors + TOLERANCE * np.abs(place).max()).any():
            return f"iteration {number}: centre {centre} is not where a sample of its points is"
    return ""
