"""
Tests for `harness.models.spn_gc.estimates`: drawn job times, and what they should be.
"""

import math

from functools import cache

import numpy as np
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.scheduler import schedule
from harness.models.spn_gc.estimates import (
    expected_net_time,
    makespans,
    simulate_net,
    stage_ends,
)
from harness.models.spn_gc.net import VARIANTS
from harness.models.spn_gc.phases import PHASES
from tests.models.spn_gc.given import SMALL, means

VARIANT = pytest.mark.parametrize("variant", VARIANTS)
METHOD = pytest.mark.parametrize("method", ["maxima", "tasks"])
delays = st.lists(st.one_of(st.just(0.0), st.floats(0.01, 100.0)), min_size=9, max_size=9)


@VARIANT
@METHOD
class TestSimulation:
    @settings(max_examples=15)
    @given(values=delays, m=st.integers(1, 60), r=st.integers(0, 10))
    def test_agrees_with_the_expectation(self, variant, method, values, m, r):
        """
        Within 4 standard errors of 2000 replications, and as wide.
        """
        answer = simulate_net(means(*values), m, r, variant=variant, method=method, seed=3)
        exact = expected_net_time(means(*values), m, r, variant)

        error = exact["std_s"] / math.sqrt(2000)
        assert abs(answer["simulated_s"] - exact["expected_s"]) <= 4 * error + 1e-9
        assert answer["standard_error_s"] == pytest.approx(error, rel=0.25, abs=1e-9)

    def test_has_the_distribution_of_the_obvious_form(self, variant, method):
        """
        Quantiles of 10^5 job times, beside those from plain loops over all delays.
        """
        answer = simulate_net(
            SMALL, 7, 3, replications=100_000, seed=5, variant=variant, method=method
        )
        plain = obvious_times(7, 3, variant, 2000)

        error = plain.std() / math.sqrt(2000)
        assert answer["simulated_s"] == pytest.approx(plain.mean(), abs=5 * error)
        for name, share in (
            ("quantile_05_s", 0.05),
            ("quantile_50_s", 0.5),
            ("quantile_95_s", 0.95),
        ):
            # The share of plain times below the quantile: a binomial, whose 5 sigma this is.
            below = (plain <= answer[name]).mean()
            assert below == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 2000))

    def test_seed_decides_all(self, variant, method):
        """
        The same seed, the same times; another one, others; nobody else's numbers are used.
        """
        before = np.random.get_state()[2]  # noqa: NPY002 - the state that libraries share
        one, again, other = (
            simulate_net(SMALL, 5, 2, seed=s, variant=variant, method=method) for s in (1, 1, 2)
        )

        assert one == again
        assert one["simulated_s"] != other["simulated_s"]
        assert np.random.get_state()[2] == before  # noqa: NPY002

    @settings(max_examples=10)
    @given(factor=st.floats(1e-3, 1e3))
    def test_units_cancel(self, variant, method, factor):
        """
        Phases scaled by k scale every answer by k.
        """
        scaled = {name: value * factor for name, value in SMALL.items()}
        one, other = (
            simulate_net(p, 9, 4, variant=variant, method=method) for p in (SMALL, scaled)
        )

        assert list(other.values()) == pytest.approx([v * factor for v in one.values()], rel=1e-10)


@cache
def obvious_times(m, r, variant, number):
    """
    So many of them.
    """
    rng = np.random.default_rng(17)
    return np.array([obvious_time(m, r, variant, rng) for _ in range(number)])


def obvious_time(m, r, variant, rng):
    """
    One job time as the specification's formula has it, delay by delay.
    """
    drawn = {name: [rng.exponential(SMALL[name]) for _ in range(max(m, r))] for name in PHASES}
    x1, x2, x3, x4, x5, x6, x7, x8, x9 = (drawn[name] for name in PHASES)
    reduces = max(x8[i] + x9[i] for i in range(r))
    if variant == "shared_read":
        maps = max(x3[j] + x4[j] + x5[j] + x6[j] + x7[j] for j in range(m))
        return x1[0] + x2[0] + maps + reduces
    return x1[0] + max(x2[j] + x3[j] + x4[j] + x5[j] + x6[j] for j in range(m)) + x7[0] + reduces


class TestOrder:
    @settings(max_examples=12)
    @given(delays, st.integers(1, 500), st.integers(1, 50), st.integers(0, 8), st.floats(1, 9))
    def test_more_work_takes_no_less_time(self, values, m, r, which, factor):
        """
        With the same seed, draw by draw: a slower phase, more maps, more reduces.
        """
        slower = [v * factor if i == which else v for i, v in enumerate(values)]
        base, *more = (
            simulate_net(means(*v), maps, reduces)["simulated_s"]
            for v, maps, reduces in (
                (values, m, r), (slower, m, r), (values, 2 * m, r), (values, m, r + 1),
            )
        )  # fmt: skip

        assert min(more) >= base * (1 - 1e-8)

    def test_inflation_of_equal_delays(self):
        """
        16 maps of one exponential phase of T take T (1 + 1/2 + ... + 1/16) = 3.38 T.
        """
        answer = expected_net_time(means(0, 0, 1.0), 16, 0)["expected_s"]

        assert answer == pytest.approx(3.380728993228993)


class TestSlots:
    @pytest.mark.parametrize("runs", [3, 20])
    @given(tasks=st.integers(1, 12), slots=st.integers(1, 6), seed=st.integers(0, 99))
    def test_makespan_is_the_schedulers(self, runs, tasks, slots, seed):
        """
        A few runs by a heap, many in step: both agree with the unified scheduler.
        """
        durations = np.random.default_rng(seed).exponential(size=(runs, tasks))

        plain = [schedule(row.tolist(), 0, 0.0, 0.0, slots, 1, 0.0)["job_s"] for row in durations]

        assert makespans(durations, slots).tolist() == pytest.approx(plain, rel=1e-12)

    def test_all_runs_are_drawn(self):
        """
        In blocks, of both forms: 3,000 tasks on 4 slots take their sum over 4, and a little.
        """
        mean = (1.0,)
        few, many = (stage_ends(mean, n, 4, 70, np.random.default_rng(2)) for n in (300, 3000))

        assert few.shape == many.shape == (70,)
        assert few.mean() == pytest.approx(300 / 4 + 1, rel=0.05)
        assert many.mean() == pytest.approx(3000 / 4 + 1, rel=0.02)

    def test_as_many_slots_as_tasks_are_the_papers_net(self):
        """
        Slots that nobody waits for change nothing.
        """
        free = simulate_net(SMALL, 20, 4)

        assert simulate_net(SMALL, 20, 4, map_slots=20, reduce_slots=9) == free

    def test_one_slot_adds_everything_up(self):
        """
        Then nothing is parallel, and no maximum is left: the sum of all means.
        """
        answer = simulate_net(SMALL, 20, 4, map_slots=1, reduce_slots=1, seed=1)
        maps = 20 * sum(SMALL[p] for p in PHASES[2:7])
        reduces = 4 * sum(SMALL[p] for p in PHASES[7:])
        spread = math.sqrt(sum(20 * SMALL[p] ** 2 for p in PHASES[2:7]))

        assert answer["map_stage_s"] == pytest.approx(maps, abs=4 * spread / math.sqrt(2000))
        assert answer["reduce_stage_s"] == pytest.approx(reduces, rel=0.05)

    def test_fewer_slots_take_longer(self):
        """
        The same delays on 2, 4, 8 and 16 slots.
        """
        answer = [
            simulate_net(SMALL, 32, 2, map_slots=s, replications=200)["map_stage_s"]
            for s in (16, 8, 4, 2)
        ]

        assert answer == sorted(answer)


def test_too_many_delays_are_refused():
    """
    One by one they would take too long.
    """
    with pytest.raises(ModelError, match="too many to draw"):
        simulate_net(SMALL, 10**8, 2, method="tasks")
