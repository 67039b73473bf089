"""
Columns: one value per configuration, for models that answer many configurations at once.

A column is an array of one dimension, of length 1 where all configurations share the value; NumPy's
broadcasting makes the two kinds one.  Columns stand in the records of a model's scalar form and
pass through its plain arithmetic, both of which say `float`, `int` or `bool`: so their type can
only be `Any`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Column: TypeAlias = Any

# Whole numbers up to here are exact in 64-bit floats, and so is the floor of their quotients.
LARGEST_COUNT = 2**53


def choose(test: Column, one: Column, other: Column) -> Column:
    """*one* where the *test* holds, *other* elsewhere; both are evaluated everywhere."""
    return np.where(test, one, other)


def finite(values: Column) -> Column:
    """
    *values*, NaN instead of infinity.

    Before a floor or a ceiling: an infinite count might be lost in a minimum, where `math.floor`
    raises; NaN is lost nowhere.
    """
    return values + (values - values)
