"""
The oracles of nets held against each other: Markov chain, event loop, many runs in step.
"""

import math

import numpy as np
import pytest

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.sim.markov_chain import TooManyMarkingsError, explore, time_to_end
from tests.sim.nets import forward_nets, net
from tests.sim.token_game import play, simulate

REPLICATIONS = 100_000
# A right mean is further than this from the exact one in 6 of 10 million samples.
STANDARD_ERRORS = 5.0


def rng(seed=7):
    """
    Random numbers of one test.
    """
    return np.random.default_rng(seed)


def small(drawn):
    """
    The reachability graph of a net that is small enough for a test.
    """
    try:
        return explore(drawn, most_markings=150)
    except TooManyMarkingsError:
        assume(False)  # noqa: FBT003 - hypothesis' own signature


def series(*means):
    """
    Delays one after the other.
    """
    arrows = {f"t{i}": (mean, f"p{i}", f"p{i + 1}") for i, mean in enumerate(means)}
    return net(arrows, {"p0": 1})


class TestExactTime:
    def test_of_a_series(self):
        """
        Means add up, and so do variances; an immediate transition takes nothing.
        """
        assert time_to_end(explore(series(3.0, 0.0, 4.0))) == pytest.approx((7.0, 5.0))

    def test_of_a_race(self):
        """
        The first of two, with rates 1 and 3, then the way that it took.
        """
        race = net(
            {"a": (1.0, "p", "q"), "b": (1 / 3, "p", "r"), "then": (8.0, "q", "s")}, {"p": 1}
        )

        assert time_to_end(explore(race))[0] == pytest.approx(1 / 4 + 8 / 4)

    def test_of_a_join(self):
        """
        The last of n equal exponential delays comes after 1 + 1/2 + ... + 1/n means.
        """
        fork = net(
            {**{f"t{i}": (2.0, f"p{i}", "q") for i in range(5)}}, {f"p{i}": 1 for i in range(5)}
        )

        mean, std = time_to_end(explore(fork))

        assert mean == pytest.approx(2 * sum(1 / k for k in range(1, 6)))
        assert std == pytest.approx(2 * math.sqrt(sum(1 / k**2 for k in range(1, 6))))

    def test_of_one_server(self):
        """
        Three tokens in front of one transition wait for one another.
        """
        assert time_to_end(explore(net({"t": (2.0, "p", "q")}, {"p": 3})))[0] == pytest.approx(6.0)

    def test_of_a_choice(self):
        """
        Of two immediate transitions each is taken half of the time.
        """
        choice = net(
            {"a": (0.0, "p", "q"), "b": (0.0, "p", "r"), "then": (4.0, "q", "s")},
            {"p": 1},
        )  # fmt: skip

        assert time_to_end(explore(choice))[0] == pytest.approx(2.0)

    def test_of_a_loop_that_is_left(self):
        """
        Tokens may come back: a second try after each of the half that fail.
        """
        loop = net({"fail": (1.0, "p", "p"), "pass": (1.0, "p", "q")}, {"p": 1})

        assert time_to_end(explore(loop))[0] == pytest.approx(1.0)

    def test_of_nothing(self):
        """
        A net in which nothing is enabled has ended.
        """
        assert time_to_end(explore(net({"t": (1.0, "p", "q")}, {"p": 0}))) == (0.0, 0.0)


class TestSimulation:
    @settings(max_examples=8)
    @given(forward_nets(), st.integers(0, 2**32))
    def test_agrees_with_the_exact_expectation(self, drawn, seed):
        """
        Mean of 10^5 runs: within 5 standard errors; their spread within 4 %.
        """
        mean, std = time_to_end(small(drawn))

        times = simulate(drawn, REPLICATIONS, rng(seed))

        assert abs(times.mean() - mean) <= STANDARD_ERRORS * std / math.sqrt(REPLICATIONS) + 1e-12
        assert times.std() == pytest.approx(std, rel=0.04, abs=1e-9)

    @settings(max_examples=8)
    @given(forward_nets(), st.integers(0, 2**32))
    def test_event_loop_agrees_with_the_exact_expectation(self, drawn, seed):
        """
        The obvious form, 300 runs: within 5 standard errors, and one where the spread is small.
        """
        graph, source = small(drawn), rng(seed)
        mean, std = time_to_end(graph)

        runs = [play(drawn, source) for _ in range(300)]

        error = sum(run.end for run in runs) / 300 - mean
        assert abs(error) <= STANDARD_ERRORS * std / math.sqrt(300) + 0.1 * mean
        assert {run.marking for run in runs} <= set(graph.dead)


class TestEventLoop:
    def test_takes_the_delays_that_it_is_given(self):
        """
        Then the game is no game of chance: a fork, a join, the longest way.
        """
        fork = net(
            {
                "fork": (1.0, "start", "a b"),
                "left": (1.0, "a", "c"),
                "right": (1.0, "b", "d"),
                "join": (0.0, "c d", "end"),
            },
            {"start": 1},
        )
        run = play(fork, rng(), {"fork": 1.0, "left": 5.0, "right": 2.0}.__getitem__)

        assert run.firings == ((1.0, "fork"), (3.0, "right"), (6.0, "left"), (6.0, "join"))
        assert run.end == 6.0

    def test_a_clock_goes_on_while_its_transition_is_enabled(self):
        """
        A firing elsewhere does not set it anew.
        """
        two = net(
            {"a": (1.0, "p", "q"), "b": (1.0, "r", "s"), "c": (1.0, "s", "t")}, {"p": 1, "r": 1}
        )
        run = play(two, rng(), {"a": 4.0, "b": 1.0, "c": 1.0}.__getitem__)

        assert run.end == 4.0

    def test_a_clock_is_dropped_with_its_tokens(self):
        """
        Who loses a race never fires.
        """
        race = net({"a": (1.0, "p", "q"), "b": (1.0, "p", "r")}, {"p": 1})
        run = play(race, rng(), {"a": 2.0, "b": 1.0}.__getitem__)

        assert [name for _, name in run.firings] == ["b"]
