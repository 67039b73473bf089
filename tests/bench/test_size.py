"""The simulation of the whole procedure: its verdicts are the product's, its models are equal."""

import numpy as np
import pytest

from bench_size import (
    APART,
    OFF,
    Grid,
    agreed,
    equal_models,
    gaps_of,
    known_times,
    profile_of,
)


def made_up(seed=1, cells=40):
    """
    A grid of three models whose errors are skew, and not about 0.
    """
    generator = np.random.default_rng(seed)
    logs = (
        0.2
        + 0.15 * generator.exponential(size=(3, cells)) * generator.choice([-1, 1, 1], 3)[:, None]
    )
    return Grid("made up", logs, np.full(cells, 0.05))


def test_says_what_compare_says():
    """
    Both steps of the verdict, at both ends of a drift, with a profile that is off.
    """
    assert agreed([made_up(1), made_up(2)], 24) == 24


@pytest.mark.parametrize("off", [0.0, OFF])
def test_models_are_equally_good(off):
    """
    The longer one errs as much as the other, over many cells and profiles.
    """
    generator = np.random.default_rng(3)
    grid = made_up()
    drawn = [equal_models(generator, grid, 400, apart=APART, off=off).shares for _ in range(60)]
    factors = np.exp(off * generator.standard_normal(60))
    gaps = [gaps_of(shares * by).mean() for shares, by in zip(drawn, factors, strict=True)]

    assert np.log(drawn[0][0] / drawn[0][1]).mean() == pytest.approx(APART, abs=0.03)
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / 60**0.5 + 1e-3


def test_a_profile_lacks_each_trial_once():
    """
    Four cells of three trials have twelve repeats, each near the whole.
    """
    profile = profile_of(np.random.default_rng(4), 4, 3)

    assert len(profile.without) == 12
    assert np.log(profile.without).mean() == pytest.approx(np.log(profile.factor))


def test_knows_the_first_repeats_alone():
    """
    Two of the first cell, three of the second.
    """
    times = np.array([[1.0, 3.0, 99.0], [2.0, 2.0, 5.0]])
    means, spreads = known_times(times, np.array([2, 3]))

    assert means.tolist() == [2, 3]
    assert spreads == pytest.approx([2**0.5, 3**0.5])
