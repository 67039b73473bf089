"""
Tests for shifts in series of nights: what a test must not depend on, and what it must not miss.
"""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.nightly import shifts
from harness.nightly.shifts import CLIP, LAGS, SHORTEST, clip_of, estimate, scan, threshold

LIMIT = 3.0  # about the threshold of one series


def quiet(nights, series=1, seed=1):
    """
    Nights in which nothing moves.
    """
    return np.random.default_rng(seed).standard_normal((nights, series))


def score(values, firm=None):
    """
    Largest score of the first series' last night.
    """
    return scan(values, np.full(values.shape[1], CLIP), firm)[1][:, 0].max()


@given(st.integers(0, 99), st.floats(0.01, 100), st.floats(-100, 100), st.sampled_from([-1, 1]))
def test_unit_level_and_direction_do_not_matter(seed, scale, level, sign):
    """
    A series in another unit gives the same scores, upside down the same with the other sign.
    """
    values = quiet(40, 3, seed)
    plain, _ = scan(values, np.full(3, CLIP))
    other, _ = scan(sign * scale * values + level, np.full(3, CLIP))
    np.testing.assert_allclose(other, sign * plain, rtol=1e-6, atol=1e-6)


def test_a_series_is_judged_by_itself():
    """
    What others do, and nights of which nothing is known in them, changes nothing.
    """
    values = quiet(50, 4)
    values[10:20, 1] = np.nan
    values[:, 2] = 7.0
    together = scan(values, np.full(4, CLIP))[1][:, 3]
    alone = scan(values[:, 3:], np.full(1, CLIP))[1][:, 0]
    np.testing.assert_allclose(together, alone)


@pytest.mark.parametrize("bad_nights", [1, 2])
def test_bad_nights_are_no_shift(bad_nights):
    """
    However far one or two nights lie, they alone raise nothing, as no stretch of them is tested.
    """
    values = quiet(60)
    values[-bad_nights:] += 50
    assert score(values) < LIMIT


def test_a_shift_is_seen_in_its_third_night_and_in_the_first_that_was_measured_again():
    """
    And its beginning is told by the length of the stretch.
    """
    values = quiet(60)
    values[-SHORTEST:] += 8
    _, scores = scan(values, np.full(1, CLIP))
    assert scores.max() > LIMIT
    assert LAGS[scores[:, 0].argmax()] == SHORTEST
    values = quiet(60)
    values[-1] += 8
    firm = np.zeros(values.shape, bool)
    firm[-1] = True
    assert score(values) < LIMIT < score(values, firm)


def test_what_is_not_known_is_not_tested():
    """
    Too few nights, a last night without a value, a constant series.
    """
    assert score(quiet(7)) == -np.inf
    values = quiet(30)
    values[-1] = np.nan
    assert score(values) == -np.inf
    assert score(np.full((30, 1), 3.0)) < 0


def test_autocorrelated_nights_must_show_more():
    """
    The same step counts for less where nights follow each other: half the power at 0.6.
    """
    noise, slow = quiet(80, 200), quiet(80, 200)
    for night in range(1, 80):
        slow[night] = 0.6 * slow[night - 1] + 0.8 * noise[night]
    for values in (noise, slow):
        values[-10:] += 2
    clips = np.full(200, CLIP)
    plain, drawn = (np.median(scan(v, clips)[1].max(axis=0)) for v in (noise, slow))
    assert drawn < 0.7 * plain


def test_long_stretches_must_show_more():
    """
    Of one series all that differs is its length: up to 12 nights ask for nothing.
    """
    deviates, scores = scan(quiet(200, 50), np.full(50, CLIP))
    demands = (np.abs(deviates) - scores)[np.isfinite(scores).all(axis=1)].mean(axis=1)
    lags = LAGS[np.isfinite(scores).all(axis=1)]
    assert np.ptp(demands[lags <= 12]) < 0.05
    assert all(demands[lags > 12] > demands[lags <= 12].max())
    assert demands[-1] - demands[0] == pytest.approx(0.32, abs=0.05)


@pytest.mark.process  # as long as one that starts any
@pytest.mark.parametrize("clip", [CLIP, clip_of(12)])
def test_thresholds_hold_their_chance(clip):
    """
    Of other series than those that were simulated one in a hundred exceeds it within 90 nights.
    """
    values, clips = quiet(90, 3000, seed=99), np.full(3000, clip)
    largest = np.max([scan(values[:n], clips)[1].max(axis=0) for n in range(8, 91)], axis=0)
    for chance in (0.05, 0.01):
        share = (largest > threshold(1, chance)).mean()
        assert abs(share - chance) < 4 * (chance / 3000) ** 0.5


def test_more_series_need_a_higher_threshold():
    """
    In steps that grow smaller, also beyond what was simulated.
    """
    limits = [threshold(count, 0.01) for count in (1, 10, 100, 1000, 10_000)]
    steps = np.diff(limits)
    assert threshold(1, 0.05) == pytest.approx(2.470)
    assert all(steps > 0.3)
    assert threshold(12, 0.02) < threshold(12, 0.01)


@given(st.integers(0, 50), st.floats(-3, 3))
def test_estimates_cover(seed, size):
    """
    The interval has the size in it, the more surely the wider: here with a wide margin.
    """
    values = quiet(60, seed=seed)[:, 0]
    values[-20:] += size
    change, low, high = estimate(values, 20)
    assert low <= change <= high
    assert low - 1 < size < high + 1


def test_few_nights_have_no_interval():
    """
    One night before and one after say by how much, and not how surely.
    """
    assert estimate(np.array([1.0, 3.0]), 1) == (2.0, None, None)
    assert estimate(np.array([np.nan, 3.0]), 1) == (0.0, None, None)


def test_the_inflation_is_that_of_an_autocorrelated_mean():
    """
    Simulated: the variance of a mean of ten nights.
    """
    noise, phi = quiet(60, 4000), 0.5
    for night in range(1, 60):
        noise[night] = phi * noise[night - 1] + (1 - phi**2) ** 0.5 * noise[night]
    expected = shifts._variance_of_mean(np.array(10.0), np.array(phi))
    assert noise[-10:].mean(axis=0).var() == pytest.approx(float(expected), rel=0.1)
