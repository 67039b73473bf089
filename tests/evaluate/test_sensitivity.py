"""
Tests for `harness.core.evaluate.sensitivity`: what a comparison would have shown.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.gaps import change_tests
from harness.core.evaluate.sensitivity import Repeats, sensitivity_of

ERROR = 0.05


def repeats(run="a", *, cells=4, count=3, noise=0.2):
    """
    So many *cells*, each repeated *count* times with a *noise* of one repeat.
    """
    floors = [noise / count**0.5] * cells
    return Repeats(run, [count] * cells, floors, cells * (count - 1))


def both(**changed):
    """
    Two runs that are alike.
    """
    return repeats("a", **changed), repeats("b", **changed)


def found_share(sides, gap, family_size, generator, rounds=4000):
    """
    Share of pairs of runs with that *gap* in which a test of a family of that size finds it.
    """
    (side, _) = sides
    cells, count = len(side.counts), side.counts[0]
    noise = side.floors[0] * count**0.5
    times = noise * generator.standard_normal((2, rounds, cells, count))
    means = times.mean(axis=(2, 3))
    variances = times.var(axis=3, ddof=1).mean(axis=2) / count / cells
    freedoms = np.full((2, rounds, 1), side.freedom)
    gaps = (means[1] - means[0] + gap)[:, None]
    tests = change_tests(gaps, variances[..., None], freedoms, margin=0.02)
    return float(np.mean(tests[2] <= ERROR / family_size))


@pytest.mark.parametrize(("cells", "count", "family_size"), [(1, 3, 1), (4, 2, 5), (8, 5, 9)])
def test_what_would_show_is_found_in_four_cases_of_five(cells, count, family_size):
    """
    Simulated by the test that judges the changes, with its correction; of a few repeats it is a
    tenth less, because their spread is hardly known.
    """
    sides = both(cells=cells, count=count)
    shown = sensitivity_of("sort", sides, 0.0, family_size)
    generator = np.random.default_rng(8)

    found = found_share(sides, math.log(shown.factor), family_size, generator)
    assert 0.7 < found < 0.84


@pytest.mark.parametrize("count", [1, 2, 4])
def test_so_many_more_repeats_show_the_change(count):
    """
    And one less do not; jobs are those of all cells.
    """
    noises = {1: math.nan}
    base = repeats("a", count=max(count, 2))
    other = repeats("b", count=count, noise=noises.get(count, 0.2))
    shown = sensitivity_of("sort", (base, other), 0.0, 5)
    later = [
        sensitivity_of(
            "sort",
            (repeats("a", count=max(count, 2) + more), repeats("b", count=count + more)),
            0.0,
            5,
        ).factor
        for more in (shown.repeats - 1, shown.repeats)
        if count + more > 1
    ]

    assert shown.jobs == 4 * shown.repeats
    assert later[-1] <= 1.1 * (1 + 1e-9)
    assert len(later) == 1 or later[0] > 1.1


@given(st.floats(0.001, 2), st.integers(2, 12), st.integers(1, 6))
def test_more_noise_shows_less(noise, count, cells):
    """
    A factor is 1 at least, and grows with the noise.
    """
    quiet, loud = (
        sensitivity_of("sort", both(cells=cells, count=count, noise=deviation), 0.0, cells + 1)
        for deviation in (noise, 2 * noise)
    )

    assert 1 < quiet.factor < loud.factor
    assert loud.repeats is None or quiet.repeats <= loud.repeats


def test_of_unknown_noise_one_more_repeat_tells_it():
    """
    Nothing is taken for a number.
    """
    shown = sensitivity_of("sort", both(count=1, noise=math.nan), 0.7, 5)

    assert shown[1:5] == (None, None, 1, 4)
    assert shown.is_blind
    assert shown.words() == (
        "nothing tells the noise of a and b, and no change would show;"
        " 4 more jobs in each run, 1 repeat of each cell, would tell the noise"
    )


def test_a_change_that_was_measured_is_asked_for():
    """
    Where it is larger than a tenth, and whichever way it went.
    """
    sides = both(noise=0.6)
    changes = [sensitivity_of("sort", sides, gap, 5).change for gap in (0.01, 0.5, -0.5)]

    assert changes == pytest.approx([0.1, math.expm1(0.5), math.expm1(0.5)])


def test_what_no_number_of_repeats_shows_is_said():
    """
    Up to a thousand are tried.
    """
    shown = sensitivity_of("sort", both(cells=1, noise=30.0), 0.0, 1)

    assert shown.repeats is None
    assert shown.words().endswith("1000 more repeats would not show a change by 10 %")
