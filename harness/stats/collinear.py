"""
Which columns of a design no data of that design can tell apart.

Columns are brought to length 1 first, so units do not matter.  A direction whose singular value
is less than 1 / *limit* of the largest (its *condition index* is above the limit) is a combination
of columns that leaves almost no trace in the data: exactly none where columns are proportional or
linearly dependent.  A column belongs to it when more than half of the variance of its coefficient
comes from such directions (Belsley, Kuh and Welsch, Regression Diagnostics, 1980, chapter 3, who
call 30 the begin of strong dependence).
"""

from __future__ import annotations

import numpy as np

LIMIT = 30.0

# Rounding leaves exact dependences with singular values of about 1e-16.
_SMALLEST = 1e-10
_COUPLED = 0.01


def zero_columns(design: np.ndarray) -> tuple[int, ...]:
    """Columns that are zero in every row: the data cannot know anything of them."""
    return tuple(np.flatnonzero(~np.any(design, axis=0)).tolist())


def groups(design: np.ndarray, limit: float = LIMIT) -> list[tuple[int, ...]]:
    """
    Columns that cannot be told apart, each group in the order of its columns.

    Groups do not overlap; columns in none are separable.  Columns that are zero everywhere are in
    none (`zero_columns`).
    """
    used, lengths = _used(design)
    if used.size < 2:
        return []
    unseen, share = _unseen(design[:, used] / lengths, limit)
    members = np.flatnonzero(share > 0.5)
    parent = list(range(used.size))
    for j in members:
        coupling = np.abs(unseen[j])
        coupling[j] = 0.0
        near = members[coupling[members] > _COUPLED * unseen[j, j]]
        for k in [int(np.argmax(coupling)), *near.tolist()]:
            parent[_root(parent, k)] = _root(parent, int(j))
    found: dict[int, list[int]] = {}
    for k, column in enumerate(used.tolist()):
        found.setdefault(_root(parent, k), []).append(column)
    return [tuple(columns) for columns in found.values() if len(columns) > 1]


def proportional(design: np.ndarray, limit: float = LIMIT) -> list[tuple[int, ...]]:
    """
    Columns that are multiples of each other, as far as the *limit* can tell.

    Every column is in one tuple, most of them alone.  Two columns at an angle a have the condition
    index 1 / tan(a / 2).
    """
    lengths = np.linalg.norm(design, axis=0)
    unit = design / np.where(lengths > 0, lengths, 1.0)
    least = np.cos(2 * np.arctan(1 / limit))
    found: list[list[int]] = []
    for k in range(design.shape[1]):
        first = (f for f in found if unit[:, f[0]] @ unit[:, k] >= least)
        mates = next(first, None)
        if mates is None:
            found.append([k])
        else:
            mates.append(k)
    return [tuple(columns) for columns in found]


def ties(
    design: np.ndarray, group: tuple[int, ...], ratios: np.ndarray, limit: float = LIMIT
) -> np.ndarray:
    """
    Rows whose product with the coefficients is 0 where the *group* divides as *ratios* say.

    Only the directions that the data leave open have a row, so what the data do tell of the group
    stays free.  *ratios* are positive, one for each column of the group.
    """
    columns = list(group)
    used, lengths = _used(design)
    scale = dict(zip(used.tolist(), lengths.tolist(), strict=True))
    unseen, _ = _unseen(design[:, used] / lengths, limit)
    place = [used.tolist().index(c) for c in columns]
    values, vectors = np.linalg.eigh(unseen[np.ix_(place, place)])
    open_directions = vectors[:, values > 0.5].T
    size = np.array([scale[c] for c in columns])
    wanted = ratios * size
    wanted = wanted / np.linalg.norm(wanted)
    rows = np.zeros((len(open_directions), design.shape[1]))
    rows[:, columns] = (open_directions - np.outer(open_directions @ wanted, wanted)) * size
    return rows


def _used(design: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.linalg.norm(design, axis=0)
    used = np.flatnonzero(lengths)
    return used, lengths[used]


def _unseen(unit: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Projector on the unseen directions, and their share in each coefficient's variance."""
    missing = max(0, unit.shape[1] - len(unit))
    square = np.vstack([unit, np.zeros((missing, unit.shape[1]))])
    _, values, rows = np.linalg.svd(square, full_matrices=False)
    hidden = values < values[0] / limit
    spread = rows**2 / np.maximum(values, values[0] * _SMALLEST)[:, None] ** 2
    return rows[hidden].T @ rows[hidden], spread[hidden].sum(axis=0) / spread.sum(axis=0)


def _root(parent: list[int], k: int) -> int:
    while parent[k] != k:
        k = parent[k]
    return k
