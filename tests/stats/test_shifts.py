"""
Tests for shifts in series of nights: what a test must not depend on, and what it must not miss.
"""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.nightly.shifts import (
    CLIP,
    FEWEST_NIGHTS,
    LAGS,
    SHORTEST,
    estimate,
    scan,
    scan_spread,
    spread_change,
    threshold,
    wider_since,
)

LIMIT = 3.6  # about the threshold of one of fifty series


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


def test_a_series_is_judged_nearly_by_itself():
    """
    Others lend their autocorrelation, and no more: gaps, constants and units of theirs do nothing.
    """
    values = quiet(50, 4)
    values[10:20, 1] = np.nan
    values[:, 2] = 7.0
    together = scan(values, np.full(4, CLIP)).deviates[:, 3]
    alone = scan(values[:, 3:], np.full(1, CLIP)).deviates[:, 0]
    np.testing.assert_allclose(together, alone, atol=0.3)


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
    assert score(np.full((30, 1), 3.0)) == -np.inf


def autocorrelated(noise, phi):
    """
    Nights of first order with the variance of *noise*.
    """
    slow = noise.copy()
    for night in range(1, len(noise)):
        slow[night] = phi * slow[night - 1] + (1 - phi**2) ** 0.5 * noise[night]
    return slow


def test_autocorrelated_nights_must_show_more():
    """
    The same step of many nights counts for less where nights follow each other.
    """
    noise = quiet(80, 200)
    slow = autocorrelated(noise, 0.6)
    for values in (noise, slow):
        values[-10:] += 2
    clips = np.full(200, CLIP)
    plain, drawn = (np.median(scan(v, clips).scores.max(axis=0)) for v in (noise, slow))
    assert drawn < 0.8 * plain


@pytest.mark.process
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_deviates_are_normal_whatever_the_autocorrelation(phi):
    """
    Of quiet nights about one in twenty lies beyond 2, at each lag.
    """
    values = autocorrelated(quiet(60, 2000, seed=8), phi)
    deviates = scan(values, np.full(2000, CLIP)).deviates[2:8]
    shares = (np.abs(deviates) > 2).mean(axis=1)
    assert all(shares < 0.09)
    assert all(shares > 0.01)


def test_more_nights_must_show_more():
    """
    As there are more of them in which chance may do it; few ask for nothing.
    """
    few, many = (scan(quiet(nights, 50), np.full(50, CLIP)) for nights in (12, 150))
    demands = [np.nanmean(np.abs(each.deviates[2]) - each.scores[2]) for each in (few, many)]
    assert demands[0] < 0.1
    assert 1.4 < demands[1] < 1.7


def test_a_step_after_ten_nights_is_seen_within_three():
    """
    Of five spreads, in four of five series, also where nights are autocorrelated a little.
    """
    for phi, least in ((0.0, 0.85), (0.3, 0.7)):
        values = autocorrelated(quiet(13, 500, seed=4), phi)
        values[10:] += 5
        seen = scan(values, np.full(500, CLIP)).scores.max(axis=0) > LIMIT
        assert seen.mean() > least


def test_disturbed_nights_count_for_less():
    """
    What three nights of a quarter's weight show is less, and never more, than at full weight.
    """
    values = quiet(30, 20)
    values[-3:] += 3
    weights = np.ones(values.shape)
    weights[-3:] = 0.25
    clips = np.full(20, CLIP)
    full, quarter = (scan(values, clips, None, each).deviates[2] for each in (None, weights))
    assert all(quarter < full)
    assert all(quarter > 0)


def test_a_wider_spread_is_told_from_a_step():
    """
    Nights that lie farther apart to both sides, against nights that lie higher.
    """
    values = quiet(50, seed=3)[:, 0]
    step = values.copy()
    step[-10:] += 3
    wide = values.copy()
    wide[-10:] *= 5
    assert wider_since(step, 10) == 0
    assert 6 <= wider_since(wide, 3) <= 12
    ratio, low, high = spread_change(wide, 10)
    assert low < np.log(5) < high
    assert low < ratio < high
    assert spread_change(values, 2) == (0.0, None, None)


def test_a_wider_spread_is_seen_by_itself():
    """
    Where no level moved: of nights that spread three times as far most, and of quiet ones none.
    """
    values = quiet(70, 100, seed=6)
    quiet_scores = scan_spread(values).scores.max(axis=0)
    values[-30:] *= 3
    wide_scores = scan_spread(values).scores.max(axis=0)
    assert (quiet_scores > LIMIT).sum() <= 1
    assert (wide_scores > LIMIT).mean() > 0.5


@pytest.mark.process  # as long as one that starts any
def test_thresholds_hold_their_chance():
    """
    Other series than those that were simulated exceed it about as often in a year.
    """
    nights, series = 365, 500
    values, clips = quiet(nights, series, seed=99), np.full(series, CLIP)
    largest = np.max(
        [scan(values[:n], clips).scores.max(axis=0) for n in range(FEWEST_NIGHTS, nights + 1)],
        axis=0,
    )
    for rate in (0.3, 0.1):
        exceeded = (largest > threshold(rate)).mean()
        assert abs(exceeded + np.expm1(-rate)) < 4 * (rate / series) ** 0.5


def test_rarer_alarms_need_a_higher_threshold():
    """
    In steps that grow smaller, also beyond what was simulated.
    """
    limits = [threshold(rate) for rate in (0.1, 0.01, 0.001, 0.0001, 0.00001)]
    assert all(np.diff(limits) > 0.2)


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
