"""
Tests for `harness.base.stats.drawn`: cells that are drawn, and how much each counts.
"""

import hashlib
import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.stats.drawn import disagreement, draw_chances, draw_counts, drawn_weights
from tests.strategies import SEEDS

APART = st.lists(st.floats(0, 3), min_size=1, max_size=12).filter(any)


def plain_counts(chances, draws, seed):
    """
    As docs/scores.md has it, draw by draw.
    """
    digest = hashlib.shake_256(f"drawn {seed}".encode()).digest(8 * draws)
    counts = [0] * len(chances)
    for number in range(draws):
        integer = int.from_bytes(digest[8 * number : 8 * number + 8], "big")
        uniform = ((integer >> 11) + 0.5) / 2**53
        ends = np.cumsum(chances)
        counts[next(n for n, end in enumerate(ends) if end > uniform * ends[-1])] += 1
    return counts


@given(APART, st.integers(1, 40), SEEDS)
def test_a_plain_program_draws_the_same(apart, draws, seed):
    """
    Whoever has disagreements and seed has the draw.
    """
    chances = draw_chances(np.asarray(apart))

    counts = draw_counts(chances, draws, seed)
    assert counts.tolist() == plain_counts(chances.tolist(), draws, seed)
    assert counts.sum() == draws


@given(APART, st.integers(1, 40), SEEDS)
def test_no_weight_is_out_of_bounds(apart, draws, seed):
    """
    The even half of the chances sees to it: k / (N M p) is 2 k / N at most.
    """
    cells = len(apart)
    chances = draw_chances(np.asarray(apart))
    counts = draw_counts(chances, draws, seed)
    weights = drawn_weights(chances, counts)

    assert math.isclose(chances.sum(), 1)
    assert (chances >= 0.5 / cells * (1 - 1e-12)).all()
    assert (counts / (draws * cells * chances) <= 2 * counts / draws + 1e-12).all()
    assert math.isclose(weights.sum(), 1)
    assert ((weights > 0) == (counts > 0)).all()


def test_models_disagree_by_the_logarithm_of_their_largest_over_their_smallest():
    """
    One alone does not, and neither do those without an answer.
    """
    assert disagreement([2.0, 6.0, 3.0]) == pytest.approx(math.log(3))
    assert disagreement([5.0]) == 0
    assert disagreement([]) == 0


def test_weighted_means_are_those_of_the_grid():
    """
    On average over many draws, whatever the chances; weights that add up to 1 are off by 1 / N.
    """
    random = np.random.default_rng(5)
    values = random.uniform(0, 1, 30)
    chances = draw_chances(random.uniform(0, 1, 30) ** 3)
    plain = []
    shares = []
    for seed in range(3000):
        counts = draw_counts(chances, 24, seed)
        plain.append((counts / (24 * 30 * chances)) @ values)
        shares.append(drawn_weights(chances, counts) @ values)

    assert np.mean(plain) == pytest.approx(values.mean(), abs=0.006)
    assert np.mean(shares) == pytest.approx(values.mean(), abs=0.01)
