"""Columns that data cannot tell apart."""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.collinear import groups, proportional, soft_constraints
from harness.base.stats.robust import nnls_robust
from tests.strategies import SEEDS, designs


@given(designs())
def test_independent_columns_stand_alone(design):
    """
    Columns of independent numbers are no group.
    """
    assert groups(design) == []


@given(designs(columns=(3, 6)), st.floats(1e-9, 1e9), st.permutations(range(4)))
def test_proportional_columns(design, factor, order):
    """
    A column and its multiple are a group, whatever their units, and nothing else is in it.
    """
    wide = np.column_stack([design[:, :3], factor * design[:, 1]])

    assert groups(wide[:, order]) == [tuple(sorted([order.index(1), order.index(3)]))]


@given(designs(columns=(4, 6)))
def test_sum_of_columns(design):
    """
    Two columns and their sum are a group of three; the others stand alone.
    """
    unit = design / np.linalg.norm(design, axis=0)

    assert groups(np.column_stack([unit, unit[:, 0] + unit[:, 2]])) == [(0, 2, design.shape[1])]


@given(st.permutations(range(3)))
def test_a_small_part_of_a_sum_belongs_to_it(order):
    """
    Wherever it stands, and although the other two are nearly alike.
    """
    first, second = np.random.default_rng(1).uniform(0, 1, size=(2, 40))
    design = np.column_stack([first, first + 0.3 * second, second])

    assert groups(design[:, order]) == [(0, 1, 2)]


@given(designs(columns=(4, 6)))
def test_several_groups(design):
    """
    Groups that have nothing to do with each other are kept apart.
    """
    wide = np.column_stack([design, 3 * design[:, 0], 5 * design[:, 3]])
    k = design.shape[1]

    assert groups(wide) == [(0, k), (3, k + 1)]


def test_pairs_that_are_linked_weakly_are_one_group():
    """
    Four mixtures of two columns: two and two are much alike, and all four hang together.
    """
    first, second = np.random.default_rng(1).uniform(0, 1, size=(2, 40))
    design = np.column_stack([first, first + 0.3 * second, second, second + 0.3 * first])

    assert groups(design) == [(0, 1, 2, 3)]


@given(designs(columns=(3, 4)), SEEDS)
def test_practically_the_same(design, seed):
    """
    A copy that differs by less than the limit allows is a group.
    """
    noise = np.random.default_rng(seed).normal(1, 1e-3, len(design))
    wide = np.column_stack([design, design[:, 0] * noise])

    assert groups(wide) == [(0, design.shape[1])]


def test_columns_of_zeros():
    """
    What no row shows is in no group.
    """
    design = np.array([[1.0, 0.0, 2.0, 0.0], [2.0, 0.0, 1.0, 0.0]])

    assert groups(design) == []
    assert groups(np.zeros((3, 2))) == []


@given(designs(columns=(3, 5)), st.floats(0.1, 10), SEEDS)
def test_ties_divide_a_group(design, ratio, seed):
    """
    Tied columns divide as requested; their sum and every other coefficient are as without noise.
    """
    rng = np.random.default_rng(seed)
    unit = design / np.linalg.norm(design, axis=0)
    wide = np.column_stack([unit, unit[:, 0]])
    true = rng.uniform(0.5, 2, wide.shape[1])
    group = groups(wide)[0]

    rows = soft_constraints(wide, group, np.array([1.0, ratio]))
    result = nnls_robust(wide, wide @ true, constraints=rows).coefficients

    assert len(rows) == 1
    assert result[group[1]] / result[group[0]] == pytest.approx(ratio, rel=1e-6)
    assert result[list(group)].sum() == pytest.approx(true[list(group)].sum(), rel=1e-6)
    assert result[1:-1] == pytest.approx(true[1:-1], rel=1e-6)


def test_ties_divide_coefficients_in_their_own_units():
    """
    Of a column and its triple, whose coefficients are to be 1 to 2: together 7 of the first.
    """
    column = np.random.default_rng(1).uniform(0.5, 1.5, size=(40, 1))
    wide = np.hstack([column, 3 * column])

    tie = soft_constraints(wide, (0, 1), np.array([1.0, 2.0]))
    fit = nnls_robust(wide, 7 * column[:, 0], constraints=tie)

    assert fit.coefficients == pytest.approx([1, 2], rel=1e-6)


def test_ties_leave_alone_what_the_data_tell():
    """
    Of two columns and their sum the data tell two combinations: one tie, and they stay as they are.
    """
    rng = np.random.default_rng(2)
    unit = rng.uniform(0, 1, size=(40, 2))
    wide = np.column_stack([unit, unit.sum(axis=1)])
    target = wide @ np.array([1.0, 2.0, 4.0])

    fit = nnls_robust(
        wide, target, constraints=soft_constraints(wide, (0, 1, 2), np.array([1.0, 1.0, 1.0]))
    )

    assert wide @ fit.coefficients == pytest.approx(target, rel=1e-6)


@given(designs(columns=(3, 5)), st.floats(1e-6, 1e6))
def test_proportional(design, factor):
    """
    A column joins its multiple; a sum of columns is no multiple of either.
    """
    k = design.shape[1]
    unit = design / np.linalg.norm(design, axis=0)
    wide = np.column_stack([unit, factor * unit[:, 1], unit[:, 0] + unit[:, 2]])

    assert proportional(wide) == [(0,), (1, k), *((j,) for j in range(2, k)), (k + 1,)]
