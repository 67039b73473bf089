"""
Greedy D-optimal design.
"""

import numpy as np

from harness.base.stats.design import choose, information


def offer(*designs):
    """
    Information of experiments with these rows, each known to within 1.
    """
    return np.array([information(np.array(rows, float), np.ones(len(rows))) for rows in designs])


def test_what_is_not_known_yet_is_measured_before_what_is():
    """
    Two experiments each show one coefficient, of which the first is known well.
    """
    known = np.diag([100.0, 1.0])
    chosen = [place for place, _ in choose(known, offer([[1, 0]], [[0, 1]]), np.ones(2), 3.0)]
    assert chosen == [1, 1, 1]


def test_the_same_knowledge_is_bought_where_it_takes_less_time():
    """
    Of two equal experiments the quicker one is chosen, as often as the budget allows.
    """
    chosen = [*choose(np.eye(1), offer([[1]], [[1]]), np.array([4.0, 3.0]), 10.0)]
    assert [place for place, _ in chosen] == [1, 1, 1]


def test_gains_add_up_to_the_shrunk_volume():
    """
    The sum of all gains is half the logarithm of the ratio of determinants.
    """
    random = np.random.default_rng(1)
    offered = offer(*random.normal(size=(5, 4, 3)))
    known, chosen = np.eye(3), [*choose(np.eye(3), offered, np.full(5, 2.0), 9.0)]
    after = known + sum(offered[place] for place, _ in chosen)
    assert len(chosen) == 4
    assert np.isclose(sum(gain for _, gain in chosen), np.log(np.linalg.det(after)) / 2)


def test_a_programme_is_not_worse_than_random_ones():
    """
    At equal cost no random programme leaves a volume that is smaller by more than rounding.
    """
    random = np.random.default_rng(2)
    offered = offer(*random.normal(size=(8, 2, 3)))

    def volume(places):
        return np.linalg.slogdet(np.eye(3) + sum(offered[place] for place in places))[1]

    chosen = volume([place for place, _ in choose(np.eye(3), offered, np.ones(8), 6.0)])
    others = [volume(random.integers(8, size=6)) for _ in range(200)]
    assert chosen >= np.quantile(others, 0.99)
