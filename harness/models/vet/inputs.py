"""Inputs of vet: times that can be times, or a `ModelError` that names the field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.models.checks import check_count, check_number, range_error

WHERE = "vet"
Times = NDArray[np.float64]

# The square of a sum of that is still a number.
_LONGEST_S = 1e100


def times(name: str, values: Any) -> Times:
    """*values* as an array, if each is a time in seconds: finite and not negative."""
    if isinstance(values, np.ndarray):
        found = values.astype(np.float64, copy=False)
    elif isinstance(values, Sequence) and not isinstance(values, str | bytes):
        _check_types(name, values)
        found = np.array(values, dtype=np.float64)
    else:
        raise range_error(name, values, "a list of times", WHERE)
    # A comparison is false for NaN, so this refuses it, too.
    if found.ndim != 1 or not (not len(found) or 0 <= found.min() <= found.max() <= _LONGEST_S):
        for place, value in enumerate(found.tolist()):
            check_number(f"{name}[{place}]", value, where=WHERE, high=_LONGEST_S)
        raise range_error(name, values, "a list of times", WHERE)
    return found


def _check_types(name: str, values: Sequence[Any]) -> None:
    if not {type(v) for v in values} <= {float}:
        for place, value in enumerate(values):
            check_number(f"{name}[{place}]", value, where=WHERE, high=_LONGEST_S)


def ordered(unit_seconds: Any) -> Times:
    """Y: the unit times, the shortest first."""
    return np.sort(times("unit_seconds", unit_seconds))


def window(omega: Any) -> int:
    """Probing window; below 2 the line through the last two units on the left is none."""
    return check_count("omega", omega, where=WHERE, low=2)
