"""
Tests for `harness.scoring.remedies`: what would tell two models apart, and how long it takes.
"""

import math

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from harness.base.records.score import Score
from harness.base.stats.flips import flip_chances
from harness.scoring.remedies import MOST_MORE, Remedy, cheapest_plan, remedy_text
from tests.strategies import SEEDS


def scores(model, shares, floor=0.0, trials=2, measured_s=100.0):
    """
    Scores of a model that predicts these shares of the measured times.
    """
    return [
        Score(
            model=model, cell=f"c{place}", level="job", quantity="job_s", speed="raw",
            predicted_s=share * measured_s, measured_s=measured_s, trials=trials, floor=floor,
            signed_error=share - 1, relative_error=abs(share - 1),
        )
        for place, share in enumerate(shares)
    ]  # fmt: skip


def remedy(first, second, *, units=None, noun="cell", error=0.05, margin=0.02, **fields):
    """
    A pair that is undecided, by its shares.
    """
    return Remedy(
        scores=[scores("a", first, **fields), scores("b", second, **fields)],
        units=units or [f"c{place}" for place in range(len(first))],
        noun=noun, error=error, margin=margin,
    )  # fmt: skip


def of_gaps(*gaps, **arguments):
    """
    A pair whose second model is off by 50 %, and the first by so much less or more.
    """
    return remedy([1.5 + gap for gap in gaps], [1.5] * len(gaps), **arguments)


def tells(gap, deviation, count, error=0.05, margin=0.02):
    """
    Whether so many units tell a gap in four of five cases, by Student's t.
    """
    needed = (stdtrit(count - 1, 1 - error) + 0.8416) * deviation / math.sqrt(count)
    return count >= 6 and (abs(gap) >= needed or margin - abs(gap) >= needed)


class TestUnits:
    """No repeat of a cell narrows what differs between cells."""

    @pytest.mark.parametrize(
        ("gaps", "error"),
        [((-0.1, 0.05, -0.2, 0.1, -0.05, -0.1), 0.05), ((-0.1, 0.05, -0.2, 0.1, -0.05, -0.1), 0.01),
         ((0.04, -0.04, 0.02, -0.02, 0.01, -0.01), 0.05)],
    )  # fmt: skip
    def test_are_as_few_as_tell(self, gaps, error):
        """
        By the plain rule: one step fewer would not do, nor none at all; the last gaps have no
        mean, and it takes as many to show that they are equal.
        """
        plan = cheapest_plan(of_gaps(*gaps, error=error))
        deviation = np.std(gaps, ddof=1)
        steps = sorted({0, *(round(200 ** (step / 59)) for step in range(60))})
        first = next(more for more in steps if more and tells(np.mean(gaps), deviation, 6 + more,
                                                              error))  # fmt: skip

        assert (plan.units, plan.repeats) == (first, 0)
        assert plan.seconds == pytest.approx(first * 2 * 100)

    def test_that_would_tell_already_are_at_least_one_more(self):
        """
        Something has to be measured for another verdict.
        """
        assert cheapest_plan(of_gaps(-0.2, -0.2, -0.2, -0.2, -0.2, -0.21)).units == 1

    def test_are_six_at_least(self):
        """
        However clear: of two cells four more.
        """
        assert cheapest_plan(of_gaps(-0.2, -0.21)).units == 4
        assert cheapest_plan(of_gaps(-0.2)).units == 5

    def test_two_show_how_much_they_vary(self):
        """
        And one shows nothing.
        """
        deviation = np.std([-0.35, -0.05], ddof=1)
        steps = sorted({round(200 ** (step / 59)) for step in range(60)})
        first = next(more for more in steps if tells(-0.2, deviation, 2 + more))

        assert cheapest_plan(of_gaps(-0.35, -0.05)).units == first > 4

    def test_of_several_cells_cost_as_many(self):
        """
        An input of two cells, each run twice, is four jobs.
        """
        shares = [1.4, 1.4, 1.45, 1.45, 1.42, 1.42, 1.5, 1.5, 1.47, 1.47, 1.48, 1.48]
        inputs = [name for name in "abcdef" for _ in range(2)]
        plan = cheapest_plan(remedy(shares, [1.5] * 12, units=inputs, noun="input"))

        assert plan.seconds == pytest.approx(plan.units * 2 * 2 * 100)
        assert plan.repeats == 0

    def test_of_one_input_count_once(self):
        """
        What cells of an input share is not known better by more of them.
        """
        gaps = [-0.2, 0.1, -0.15, 0.05, -0.1, 0.0]
        doubled = [1.5 + gap for gap in gaps for _ in range(2)]
        inputs = [name for name in "abcdef" for _ in range(2)]

        single = cheapest_plan(of_gaps(*gaps))
        double = cheapest_plan(remedy(doubled, [1.5] * 12, units=inputs))
        assert double.units == single.units
        assert double.seconds == pytest.approx(2 * single.seconds)


class TestRepeats:
    """Where noise is what varies."""

    @staticmethod
    def noisy(cells, gap, trials=2, floor=0.05, **fields):
        """
        Cells in which one is off by 10 % and so much, the other by 10 % to the other side; how much
        varies by 9 points is what 5 % of noise explain.
        """
        first = [1.1 + gap + (0.09 if place % 2 else -0.09) for place in range(cells)]
        return remedy(first, [0.9] * cells, floor=floor, trials=trials, **fields)

    @pytest.mark.parametrize(
        ("cells", "gap", "trials", "plan"),
        [(14, 0.0567, 3, (0, 1)), (40, 0.03167, 6, (0, 2)), (6, 0.0300, 2, (40, 1)),
         (6, 0.0250, 2, (23, 5)), (6, 0.0370, 2, (40, 0))],
    )  # fmt: skip
    def test_may_be_cheaper_than_cells(self, cells, gap, trials, plan):
        """
        Where all that varies is noise; alone, or beside more cells.
        """
        found = cheapest_plan(self.noisy(cells, gap, trials))

        assert (found.units, found.repeats) == plan
        jobs = (cells + found.units) * (trials + found.repeats) - cells * trials
        assert found.seconds == pytest.approx(100 * jobs)

    @pytest.mark.parametrize("floor", [None, 0.0])
    def test_narrow_only_what_is_noise(self, floor):
        """
        Without a floor that is known they are no remedy: where noise explains what varies, they
        make a plan cheaper.
        """
        unknown = cheapest_plan(self.noisy(6, 0.03, floor=floor))
        known = cheapest_plan(self.noisy(6, 0.03))

        assert unknown.repeats == 0
        assert known.repeats == 1
        assert known.seconds < unknown.seconds

    @given(SEEDS)
    def test_the_plan_is_the_cheapest_of_all(self, seed):
        """
        By the plain rule, over the same steps: none that tells costs less.
        """
        generator = np.random.default_rng(seed)
        first = 1.1 + 0.08 * generator.standard_normal(6)
        second = 0.88 + 0.02 * generator.standard_normal(6)
        floor = generator.choice([0.01, 0.03, 0.05])
        gaps = np.abs(first - 1) - np.abs(second - 1)
        lower, upper = np.minimum(first, second), np.maximum(first, second)
        is_between = (lower - 2 * floor < 1) & (upper + 2 * floor > 1)
        noise = np.where(
            is_between, np.minimum(upper - lower, (lower + upper) * floor), (upper - lower) * floor
        )
        variance = gaps.var(ddof=1)
        explained = min(variance, (noise**2).mean())
        costs = []
        for more in sorted({0, *(round(200 ** (step / 59)) for step in range(60))}):
            for repeats in (0, 1, 2, 3, 5, 8, 12, 20):
                left = variance - explained + explained * 2 / (2 + repeats)
                if more + repeats and tells(gaps.mean(), math.sqrt(left), 6 + more, 0.025):
                    costs.append(100 * ((6 + more) * (2 + repeats) - 12))

        plan = cheapest_plan(remedy(first, second, floor=floor, error=0.025))
        assert (plan and plan.seconds) == (pytest.approx(min(costs)) if costs else None)

    def test_are_shared_by_the_cells_of_a_unit(self):
        """
        The noise of an input of two cells is half of that of one, as a variance: with the floor
        with which it explains all that varies over six cells, it does not over inputs.
        """
        single = self.noisy(6, 0.030)
        first, second = (
            [score.predicted_s / 100 for score in row for _ in range(2)] for row in single.scores
        )
        inputs = [name for name in "abcdef" for _ in range(2)]
        noisier = remedy(first, second, floor=0.05 * math.sqrt(2), units=inputs)
        as_noisy = remedy(first, second, floor=0.05, units=inputs)

        one, two = cheapest_plan(single), cheapest_plan(noisier)
        assert (one.units, one.repeats) == (two.units, two.repeats) == (40, 1)
        assert two.seconds == pytest.approx(2 * one.seconds)
        assert cheapest_plan(as_noisy).repeats == 0


class TestLaws:
    @given(SEEDS, st.floats(1.1, 5))
    def test_a_stricter_level_never_costs_less(self, seed, factor):
        """
        Nor does it tell where a looser one does not.
        """
        gaps = np.random.default_rng(seed).normal(-0.05, 0.1, 7)
        loose = cheapest_plan(of_gaps(*gaps, error=0.05))
        strict = cheapest_plan(of_gaps(*gaps, error=0.05 / factor))

        assert strict is None or loose.seconds <= strict.seconds

    @given(SEEDS, st.floats(1.01, 3))
    def test_what_varies_more_never_costs_less(self, seed, factor):
        """
        Of the same mean gap.
        """
        gaps = np.random.default_rng(seed).normal(-0.08, 0.06, 7)
        calm = cheapest_plan(of_gaps(*gaps))
        wild = cheapest_plan(of_gaps(*(gaps.mean() + factor * (gaps - gaps.mean()))))

        assert wild is None or calm.seconds <= wild.seconds

    @given(SEEDS)
    def test_a_wider_margin_never_costs_more(self, seed):
        """
        To be equal is easier then, and to be nearer no harder.
        """
        gaps = np.random.default_rng(seed).normal(0, 0.05, 7)
        narrow = cheapest_plan(of_gaps(*gaps, margin=0.02))
        wide = cheapest_plan(of_gaps(*gaps, margin=0.04))

        assert narrow is None or wide.seconds <= narrow.seconds

    @given(SEEDS)
    def test_the_direction_does_not_matter(self, seed):
        """
        Who of the two is first.
        """
        generator = np.random.default_rng(seed)
        first, second = 1.1 + 0.1 * generator.standard_normal((2, 7))

        assert cheapest_plan(remedy(first, second, floor=0.02)) == cheapest_plan(
            remedy(second, first, floor=0.02)
        )

    def test_what_is_planned_tells_in_four_cases_of_five(self):
        """
        Simulated: by the test itself, one-sided, with the gap and the spread that were planned for.
        """
        gaps = np.asarray([-0.12, 0.05, -0.15, 0.1, -0.02, -0.04])
        count = 6 + cheapest_plan(of_gaps(*gaps)).units
        generator = np.random.default_rng(8)
        drawn = gaps.mean() + gaps.std(ddof=1) * generator.standard_normal((500, count))

        found = flip_chances(drawn, [f"c{place:03}" for place in range(count)]) <= 0.05
        assert 0.75 <= found.mean() <= 0.87


class TestText:
    def test_names_cells_and_minutes(self):
        """
        Those of the jobs alone: ten more cells of two trials of 100 s are 33 minutes.
        """
        pair = of_gaps(-0.1, 0.05, -0.2, 0.1, -0.05, -0.1)
        plan = cheapest_plan(pair)

        assert remedy_text(pair) == (
            f"{plan.units} more cells would show that one is nearer"
            f" ({round(plan.units * 200 / 60)} min of jobs)"
        )

    def test_one_more_is_singular_and_takes_a_minute_at_least(self):
        """
        However short the jobs are.
        """
        pair = of_gaps(*[-0.2] * 5, -0.21, noun="input", measured_s=1.0)

        assert remedy_text(pair) == "1 more input would show that one is nearer (1 min of jobs)"

    def test_repeats_are_of_each_cell(self):
        """
        Alone, and beside cells.
        """
        alone, several, beside = (
            remedy_text(TestRepeats.noisy(*pair))
            for pair in ((14, 0.0567, 3), (40, 0.03167, 6), (6, 0.03))
        )

        assert alone == "1 more repeat of each cell would show that one is nearer (23 min of jobs)"
        assert several == (
            "2 more repeats of each cell would show that one is nearer (133 min of jobs)"
        )
        assert beside == (
            "40 more cells with 1 more repeat of each cell would show that one is nearer"
            " (210 min of jobs)"
        )

    def test_what_it_shows_may_be_that_both_are_equal(self):
        """
        Their errors hardly differ, and hardly vary.
        """
        pair = of_gaps(-0.001, 0.001, -0.014, 0.013, 0.008, -0.009, 0.0, 0.001, noun="cell")
        plan = cheapest_plan(pair)

        assert plan.shows_equal
        assert " would show that they are equal, within 2 points (" in remedy_text(pair)

    def test_nothing_would(self):
        """
        A gap that is small beside what varies: not even 200 more.
        """
        pair = of_gaps(-0.3, 0.3, -0.3, 0.3, 0.08, -0.02, noun="input")

        assert cheapest_plan(pair) is None
        assert remedy_text(pair) == f"not even {MOST_MORE} more inputs would tell which is nearer"
        assert MOST_MORE == 200

    def test_200_more_are_tried(self):
        """
        And no more.
        """
        deviation = 0.06 * math.sqrt(206) / (stdtrit(205, 0.95) + 0.8416)
        wave = np.asarray([1, -1, 1, -1, 1, -1]) * deviation / np.std([1, -1] * 3, ddof=1)
        assert cheapest_plan(of_gaps(*(0.06 + 0.999 * wave))).units == 200
        assert cheapest_plan(of_gaps(*(0.06 + 1.001 * wave))) is None
