"""
Tests for `harness.base.stats.drift`.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.drift import LEVEL, ratio_of

times = st.lists(st.floats(1.0, 100.0), min_size=1, max_size=4)


def by_least_squares(before, later):
    """
    The shift and its standard error, by the normal equations of a plain design.
    """
    from scipy.stats import t

    names = sorted(before)
    rows = [(n, 0, x) for n in names for x in before[n]]
    rows += [(n, 1, x) for n in names for x in later.get(n, ())]
    design = np.array(
        [[*(name == n for n in names), is_later] for name, is_later, _ in rows], float
    )
    y = np.log([x for _, _, x in rows])
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    freedom = len(y) - len(names) - 1
    variance = ((y - design @ found) ** 2).sum() / freedom
    error = math.sqrt(variance * np.linalg.inv(design.T @ design)[-1, -1])
    return found[-1], error * t.ppf((1 + LEVEL) / 2, freedom)


@given(st.dictionaries(st.sampled_from("abc"), st.tuples(times, times), min_size=1))
def test_is_that_of_least_squares(both):
    """
    With whatever number of times each thing was measured.
    """
    before = {name: first for name, (first, _) in both.items()}
    later = {name: second for name, (_, second) in both.items()}
    if sum(map(len, before.values())) + sum(map(len, later.values())) < len(both) + 2:
        assert ratio_of(before, later) is None
        return
    shift, half = by_least_squares(before, later)
    found = ratio_of(before, later)

    assert math.log(found.value) == pytest.approx(shift, abs=1e-9)
    assert math.log(found.high) == pytest.approx(shift + half, rel=1e-6, abs=1e-7)
    assert math.log(found.low) == pytest.approx(shift - half, rel=1e-6, abs=1e-7)


@given(st.floats(0.5, 2.0), times)
def test_a_machine_that_is_slower_by_a_factor_is_found(factor, before):
    """
    Exactly, where nothing else varies.
    """
    found = ratio_of({"a": before}, {"a": [factor * time_s for time_s in before]})
    if len(before) > 1:
        assert found.value == pytest.approx(factor)
        assert found.low <= found.value * (1 + 1e-12)
        assert found.later_count == len(before)


def test_what_was_not_measured_again_shows_the_spread_alone():
    """
    Times of other things before tell how much such times vary.
    """
    alone = ratio_of({"a": [10.0, 11.0]}, {"a": [12.0]})
    more = ratio_of({"a": [10.0, 11.0], "b": [5.0, 5.0, 5.0, 5.0]}, {"a": [12.0]})

    assert more.value == pytest.approx(alone.value)
    assert more.high < alone.high


@pytest.mark.parametrize(
    ("before", "later"),
    [({}, {}), ({"a": [1.0]}, {}), ({"a": [1.0]}, {"b": [1.0]}), ({"a": [1.0]}, {"a": [2.0]})],
)
def test_nothing_is_known_of_too_little(before, later):
    """
    Nothing in common, or one time each: no number from nothing.
    """
    assert ratio_of(before, later) is None
