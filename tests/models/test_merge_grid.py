"""
Tests for `harness.models.merge_grid`: the closed forms against the simulations.
"""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.models import merge, merge_grid

FUNCTIONS = ("first_pass", "inter_merge", "final_merge", "merge_passes")


def columns(function, numbers, factors):
    """
    A function of the grid form on columns of numbers of files and of factors.
    """
    n, f = np.array(numbers, dtype=float), np.array(factors, dtype=float)
    return getattr(merge_grid, function)(n, f).tolist()


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("factor", [*range(2, 13), 31, 100])
def test_equals_the_scalar_form(function, factor):
    """
    From no file to far beyond F^2, where the scalar form runs the merge queue.
    """
    numbers = range(1500)
    one_by_one = [getattr(merge, function)(n, factor) for n in numbers]

    assert columns(function, numbers, [factor]) == one_by_one


@pytest.mark.parametrize("function", FUNCTIONS)
@given(st.lists(st.tuples(st.integers(0, 10**13), st.integers(2, 10**7)), max_size=20))
def test_equals_the_scalar_form_for_very_many_files(function, sizes):
    """
    Counts of any size, mixed in one column, exactly.
    """
    one_by_one = [getattr(merge, function)(n, f) for n, f in sizes]

    assert columns(function, [n for n, _ in sizes], [f for _, f in sizes]) == one_by_one


@pytest.mark.parametrize("number", [10**k + d for k in range(2, 12) for d in (-1, 0, 1)])
def test_powers_of_the_factor_belong_to_the_lower_level(number):
    """
    F^j files fill a level: one file more begins the next.
    """
    assert columns("inter_merge", [number], [10]) == [merge.inter_merge(number, 10)]
