"""
Tests for `harness.base.stats.cover`: which items are measured, so that others lie within.
"""

import numpy as np
import pytest

from hypothesis import given, reject
from hypothesis import strategies as st

from harness.base.stats.cover import Group, NothingWithinError, choose_items


def group(numbers, *, flags=None, seconds=None, setups=None, name="g"):
    """
    Items with these numbers on one axis.
    """
    count = len(numbers)
    rows = [[True]] * count if flags is None else flags
    return Group(
        name=name,
        flags=np.array(rows, dtype=bool),
        numbers=np.array(numbers, dtype=float).reshape(count, -1),
        seconds=np.array([1.0] * count if seconds is None else seconds, dtype=float),
        setups=[()] * count if setups is None else setups,
    )


def chosen(group, budget_s=1e9, setup_s=None, *, enough=0, fewest_left=0):
    """
    Places that are measured of one group.
    """
    found = choose_items([group], setup_s or {}, budget_s, enough=enough, fewest_left=fewest_left)
    return sorted(found[group.name])


ITEMS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(1, 9)),
    min_size=2,
    max_size=12,
)


@given(ITEMS, st.integers(1, 40))
def test_what_is_left_lies_within_or_was_too_dear(items, budget_s):
    """
    By the definition: of each flag and between both ends of each axis; and no item is of no use.
    """
    first, second, flags, seconds = zip(*items, strict=True)
    numbers = np.array([first, second]).T
    of_items = group(numbers, flags=[[flag, not flag] for flag in flags], seconds=seconds)
    try:
        places = chosen(of_items, budget_s)
    except NothingWithinError:
        reject()

    def within(places):
        measured = numbers[list(places)]
        known = {flags[place] for place in places}
        return {
            place
            for place, row in enumerate(numbers)
            if flags[place] in known
            and all(measured.min(axis=0) <= row)
            and all(row <= measured.max(axis=0))
        }

    inside = within(places)
    assert sum(seconds[place] for place in places) <= budget_s
    assert inside > {*places}
    for place in places:
        others = [other for other in places if other != place]
        assert not others or within(others) < inside


def test_a_setup_is_paid_once():
    """
    The second item of a cluster is cheaper than one of another, however dear that start is.
    """
    numbers = [1, 2, 3, 3]
    setups = [("a",), ("a",), ("a",), ("b",)]
    items = group(numbers, seconds=[1, 1, 2, 1], setups=setups)

    assert chosen(items, setup_s={"a": 5.0, "b": 5.0}) == [0, 2]
    assert chosen(items, setup_s={"a": 5.0, "b": 0.5}) == [0, 3]


def test_the_dearest_end_is_left_outside():
    """
    Where both ends take more than the budget, the range ends earlier.
    """
    items = group([1, 2, 3, 4, 5], seconds=[1, 2, 3, 4, 50])

    assert chosen(items, 9) == [0, 3]
    assert chosen(items, 60) == [0, 4]


def test_further_items_are_spread_over_the_groups():
    """
    Up to the number that is enough, while more than the fewest are left.
    """
    groups = [group(range(1, 9), name="a"), group(range(1, 9), name="b")]

    def counts(enough, fewest_left):
        found = choose_items(groups, {}, 1e9, enough=enough, fewest_left=fewest_left)
        return [len(places) for places in found.values()]

    assert counts(0, 0) == [2, 2]
    assert counts(3, 0) == [3, 3]
    assert counts(9, 0) == [4, 4]
    assert counts(9, 11) == [3, 2]


@pytest.mark.parametrize("numbers", [[1], [1, 2], [5, 7]])
def test_where_nothing_would_be_left_it_is_said_of_whom(numbers):
    """
    By its name.
    """
    with pytest.raises(NothingWithinError, match="no item of g is left") as caught:
        chosen(group(numbers))

    assert caught.value.group == "g"
