"""
Tests for `harness.models.spn_gc.net`: counts, markings and times of the paper's net.
"""

import math

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.spn_gc.estimates import expected_net_time
from harness.models.spn_gc.net import (
    MOST_ARCS,
    VARIANTS,
    build_net,
    num_places,
    num_transitions,
    timed_net,
)
from harness.models.spn_gc.phases import PHASES
from tests.models.spn_gc.given import SMALL, means
from tests.sim.markov_chain import explore, time_to_end
from tests.sim.nets import tokens
from tests.sim.token_game import play, simulate

VARIANT = pytest.mark.parametrize("variant", VARIANTS)
tasks = st.integers(1, 12)
delays = st.lists(st.one_of(st.just(0.0), st.floats(0.1, 20.0)), min_size=9, max_size=9)


def job_time(drawn, m, r, variant):
    """
    T_job of the specification, from the delays of all transitions.
    """

    def longest(names, number):
        return max(sum(drawn[f"{n}_{k}"] for n in names) for k in range(1, number + 1))

    shared = ("load", "read") if variant == "shared_read" else ("load", "shuffle")
    first = ("to_gpu", "gpu", "from_gpu", "spill")
    line = (*first, "shuffle") if variant == "shared_read" else ("read", *first)
    return sum(drawn[n] for n in shared) + longest(line, m) + longest(("merge", "reduce"), r)


@VARIANT
class TestNet:
    @given(m=tasks, r=tasks)
    def test_counts_are_those_of_the_paper(self, variant, m, r):
        """
        Equations (1) and (2), and the numbers of arcs.
        """
        answer = build_net(m, r, variant)
        arcs = 5 * m + m * r + 2 * r + 1 if variant == "shared_read" else 6 * m + 3 * r

        assert answer["places"] == num_places(m, r) == len(answer["place_names"])
        assert answer["transitions"] == num_transitions(m, r) == answer["input_arcs"]
        assert answer["output_arcs"] == arcs == len(answer["output_arc_list"])

    @pytest.mark.parametrize(("m", "r"), [(1, 1), (1, 3), (2, 2), (3, 2)])
    def test_reachable_markings(self, variant, m, r):
        """
        2 + (6^M - 1) + 3^R of them; one is dead, the final one; places hold what they should.
        """
        net = timed_net(means(*[1.0] * 9), m, r, variant)
        graph = explore(net)
        most = {p: max(k[i] for k in graph.markings) for i, p in enumerate(net.places)}
        joins = (
            {f"fetched_{i}" for i in range(1, r + 1)}
            if variant == "shared_read"
            else {"map_outputs"}
        )

        assert len(graph.markings) == 2 + (6**m - 1) + 3**r
        assert [tokens(net, k) for k in graph.dead] == [build_net(m, r, variant)["final_marking"]]
        assert {p for p, most_tokens in most.items() if most_tokens == m} >= joins
        assert all(count == 1 for p, count in most.items() if p not in joins)

    @pytest.mark.parametrize(("m", "r"), [(1, 1), (2, 3), (3, 2), (3, 0)])
    def test_expectation_is_that_of_the_markov_chain(self, variant, m, r):
        """
        The quadrature and the solved chain of all markings: two ways to one number.
        """
        phases = SMALL if r else SMALL | dict.fromkeys(PHASES[6:], 0.0)
        answer = expected_net_time(phases, m, r, variant)

        mean, std = time_to_end(explore(timed_net(phases, m, r, variant)))

        assert (answer["expected_s"], answer["std_s"]) == pytest.approx((mean, std), rel=1e-10)

    @pytest.mark.process
    @settings(max_examples=2)
    @given(values=delays)
    def test_simulated_net_agrees_with_the_expectation(self, variant, values):
        """
        10^5 runs of two maps and a reduce: within 5 standard errors (one in 10^6 is not).
        """
        phases = means(*values)
        exact = expected_net_time(phases, 2, 1, variant)
        times = simulate(timed_net(phases, 2, 1, variant), 100_000, np.random.default_rng(11))

        error = 5 * exact["std_s"] / math.sqrt(len(times))
        assert abs(times.mean() - exact["expected_s"]) <= error + 1e-9

    @given(m=tasks, r=tasks, seed=st.integers(0, 99))
    def test_token_game_ends_at_the_formula(self, variant, m, r, seed):
        """
        Played with given delays, the net takes what the maxima of the sums say.
        """
        net, rng = timed_net(SMALL, m, r, variant), np.random.default_rng(seed)
        drawn = {t.name: rng.exponential(t.mean) for t in net.transitions}

        run = play(net, rng, drawn.__getitem__)

        assert run.end == pytest.approx(job_time(drawn, m, r, variant))
        assert tokens(net, run.marking) == build_net(m, r, variant)["final_marking"]
        assert len(run.firings) == num_transitions(m, r)

    def test_without_reduces_the_maps_are_all(self, variant):
        """
        Every run ends in the marking that is declared final.
        """
        answer = build_net(3, 0, variant)
        graph = explore(timed_net(SMALL, 3, 0, variant))

        assert [tokens(graph.net, k) for k in graph.dead] == [answer["final_marking"]]
        assert not {"merge_1", "shuffle", "shuffle_1"} & set(answer["transition_names"])

    def test_large_net_is_counted_and_not_listed(self, variant):
        """
        The counts need no list of a hundred million arcs.
        """
        answer = (
            build_net(10_000, 9_999, variant)
            if variant == "shared_read"
            else build_net(MOST_ARCS, 1, variant)
        )

        assert answer.keys() == {"places", "transitions", "input_arcs", "output_arcs"}

    @pytest.mark.parametrize(
        ("m", "r", "name"), [(0, 1, "num_maps"), (1, -1, "num_reduces"), (1.5, 1, "num_maps")]
    )
    def test_refuses_numbers_that_are_none(self, variant, m, r, name):
        """
        A net needs a map.
        """
        with pytest.raises(ModelError, match=f"^{name} = "):
            build_net(m, r, variant)


def test_unknown_variant_is_refused():
    """
    The error names the two that there are.
    """
    with pytest.raises(ModelError, match="variant = 'shared_disk' is not shared_read or"):
        build_net(1, 1, "shared_disk")
