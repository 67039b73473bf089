"""
Which columns of a design no data of that design can distinguish.

Columns are brought to length 1 first, so units do not matter.  A direction whose singular value
is less than 1 / `LIMIT` of the largest (its *condition index* is above it) is a combination
of columns that leaves almost no trace in the data: exactly none where columns are proportional or
linearly dependent.  A column belongs to it when more than half of the variance of its coefficient
comes from such directions (Belsley, Kuh and Welsch, Regression Diagnostics, 1980, chapter 3, who
call 30 the start of strong dependence).
"""

from __future__ import annotations

import numpy as np

LIMIT = 30.0

# Rounding leaves exact dependences with singular values of about 1e-16.
_SMALLEST = 1e-10
_COUPLED = 0.01


def groups(design: np.ndarray) -> list[tuple[int, ...]]:
    """
    Columns that cannot be distinguished, each group in the order of its columns.

    Groups do not overlap; columns in none are separable, or zero everywhere.
    """
    from scipy.sparse.csgraph import connected_components

    used_columns, unit, _ = _unit_columns(design)
    if used_columns.size < 2:
        return []
    projector, share = _unseen_directions(unit)
    members = np.flatnonzero(share > 0.5)
    coupling = np.abs(projector[members])
    coupling[np.arange(len(members)), members] = 0.0
    # A column belongs to the one that it is coupled to most, and to all that it is coupled to.
    linked = np.zeros(projector.shape, dtype=bool)
    linked[members] = coupling > _COUPLED * projector[members, members][:, None]
    linked[:, share <= 0.5] = False
    linked[members, coupling.argmax(axis=1)] = True
    count, labels = connected_components(linked, directed=False)
    linked_columns = [tuple(used_columns[labels == label].tolist()) for label in range(count)]
    return [columns for columns in linked_columns if len(columns) > 1]


def proportional(design: np.ndarray) -> list[tuple[int, ...]]:
    """
    Columns that are multiples of each other, as far as `LIMIT` shows.

    Every column is in one tuple, most of them alone.  Two columns at an angle a have the condition
    index 1 / tan(a / 2).
    """
    lengths = np.linalg.norm(design, axis=0)
    unit = design / np.where(lengths > 0, lengths, 1.0)
    least_cosine = np.cos(2 * np.arctan(1 / LIMIT))
    multiples: list[list[int]] = []
    for column in range(design.shape[1]):
        for columns in multiples:
            if unit[:, columns[0]] @ unit[:, column] >= least_cosine:
                columns.append(column)
                break
        else:
            multiples.append([column])
    return [tuple(columns) for columns in multiples]


def soft_constraints(design: np.ndarray, group: tuple[int, ...], ratios: np.ndarray) -> np.ndarray:
    """
    Rows whose product with the coefficients is 0 where the *group* divides as *ratios* say.

    Only the directions that the data leave open have a row, so what the data do show of the group
    stays free.  *ratios* are positive, one for each column of the group.
    """
    columns = list(group)
    used_columns, unit, lengths = _unit_columns(design)
    projector, _ = _unseen_directions(unit)
    places = [used_columns.tolist().index(column) for column in columns]
    values, vectors = np.linalg.eigh(projector[np.ix_(places, places)])
    open_directions = vectors[:, values > 0.5].T
    scale = lengths[places]
    wanted = ratios * scale
    wanted = wanted / np.linalg.norm(wanted)
    constraint_rows = np.zeros((len(open_directions), design.shape[1]))
    constraint_rows[:, columns] = (
        open_directions - np.outer(open_directions @ wanted, wanted)
    ) * scale
    return constraint_rows


def _unit_columns(design: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns that are not zero, those brought to length 1, and the lengths that they had."""
    lengths = np.linalg.norm(design, axis=0)
    used_columns = np.flatnonzero(lengths)
    return used_columns, design[:, used_columns] / lengths[used_columns], lengths[used_columns]


def _unseen_directions(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Projector on the unseen directions, and their share in each coefficient's variance."""
    missing = max(0, unit.shape[1] - len(unit))
    square = np.vstack([unit, np.zeros((missing, unit.shape[1]))])
    _, values, directions = np.linalg.svd(square, full_matrices=False)
    hidden = values < values[0] / LIMIT
    variance = directions**2 / np.maximum(values, values[0] * _SMALLEST)[:, None] ** 2
    share = variance[hidden].sum(axis=0) / variance.sum(axis=0)
    return directions[hidden].T @ directions[hidden], share
