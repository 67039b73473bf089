"""
Tests for `harness.scoring.design`: what a design decides, before anything is measured.
"""

from dataclasses import replace

import numpy as np
import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Question
from harness.base.records.score import Measurement, ScoreBook
from harness.base.stats.flips import flip_tests
from harness.scoring import score
from harness.scoring.comparisons import FAMILY_ERROR
from harness.scoring.design import (
    TYPICAL,
    Design,
    decide,
    decision_sentence,
    family_limit,
    pair_count,
    points,
    spread_of,
    told_gap,
)

ASKED = Question(nearer=("a", "b"))
EXPLORED = Question(how_far=BEST)


def design(units, *, repeats=2, pairs=1):
    """
    As many cells as units.
    """
    return Design(units, "cell", units, repeats, pairs)


class TestPairs:
    def test_of_a_question_are_those_that_it_names(self):
        """
        The first against each other one.
        """
        assert pair_count(Question(nearer=("a", "b", "c")), "abcde") == 2

    def test_else_all_are_explored(self):
        """
        One model has none, and counts as one.
        """
        assert pair_count(EXPLORED, "abcde") == 10
        assert pair_count(EXPLORED, "a") == 1


class TestDecide:
    @pytest.mark.parametrize("units", [0, 1, 5])
    def test_five_units_tell_nothing(self, units):
        """
        Neither a gap nor perfection.
        """
        found = decide(design(units), TYPICAL, ASKED)

        assert (found.gap, found.perfect, found.tells_perfection) == (None, 0.0, False)
        assert found.enough == 8
        assert f"{units} cell" in decision_sentence(found)
        assert "no two models apart: it takes 6" in decision_sentence(found)

    def test_more_cells_tell_smaller_gaps(self):
        """
        And perfection more often.
        """
        gaps = [decide(design(units), TYPICAL, ASKED).gap for units in (6, 12, 24, 48)]
        shares = [decide(design(units), TYPICAL, ASKED).perfect for units in (6, 12, 24)]

        assert gaps == sorted(gaps, reverse=True)
        assert gaps[0] > 3 * gaps[-1]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0

    def test_a_gap_is_told_as_student_tells_it(self):
        """
        Of 24 cells: 1.7 + 0.86 standard errors, at 5 % to one side and in four cases of five.
        """
        assert told_gap(24, 1, TYPICAL, is_asked=True) == pytest.approx(
            (1.714 + 0.86) / 24**0.5 * TYPICAL.gap, rel=0.1
        )

    def test_a_wider_spread_hides_more(self):
        """
        In proportion.
        """
        wide = replace(TYPICAL, gap=2 * TYPICAL.gap)

        assert told_gap(12, 1, wide, is_asked=True) == pytest.approx(
            2 * told_gap(12, 1, TYPICAL, is_asked=True)
        )

    def test_noise_hides_perfection_and_repeats_show_it(self):
        """
        A perfect model errs by the noise of a cell's mean.
        """
        noisy = replace(TYPICAL, noise=0.4)
        few = decide(design(8, repeats=1), noisy, ASKED)
        many = decide(design(8, repeats=20), noisy, ASKED)

        assert few.perfect < 0.5 < many.perfect

    def test_what_is_explored_takes_more(self):
        """
        All pairs to both sides; what a pair tells that is asked alone is said beside it.
        """
        found = decide(design(8, pairs=28), TYPICAL, EXPLORED)

        assert found.gap > 1.5 * found.gap_alone
        assert found.perfect < 0.2
        assert found.perfect_alone > 0.8
        assert found.enough > 12
        sentence = decision_sentence(found)
        assert sentence.startswith("8 cells tell apart of 28 pairs of models that are tested")
        assert f"of 100 cases ({found.enough} cells: 80)" in sentence
        assert "a pair that is asked alone (nearer: [A, B]) is told from 10 points on" in sentence

    @pytest.mark.parametrize(("units", "rivals"), [(8, 3), (24, 3), (12, 6)])
    def test_the_limit_of_a_family_is_that_of_its_test(self, units, rivals):
        """
        Equal models, whose errors are drawn: the first is called nearer in one case of twenty.
        """
        names = [f"{number:03}" for number in range(units)]
        generator = np.random.default_rng(units)
        limit = family_limit(units, rivals, is_asked=True)
        found = told = 0
        for _ in range(200):
            errors = generator.standard_normal((1 + rivals, units))
            gaps = errors[0] - errors[1:]
            tests = flip_tests(gaps, names, side="first", error=FAMILY_ERROR)
            found += tests.chance.min() <= FAMILY_ERROR
            told += (-gaps.sum(axis=1) / np.sqrt((gaps**2).sum(axis=1))).max() >= limit
        assert abs(told - found) <= 8
        assert told <= 20

    @pytest.mark.parametrize(
        ("share", "shown"), [(0.034, "3.4"), (0.0499, "5.0"), (0.05, "5"), (0.123, "12")]
    )
    def test_small_gaps_have_a_decimal(self, share, shown):
        """
        Below five points.
        """
        assert points(share) == shown

    def test_says_what_it_rests_on(self):
        """
        The spread by its origin; what twice as many would do.
        """
        sentence = decision_sentence(decide(design(8), TYPICAL, ASKED))

        assert sentence.startswith(
            "8 cells tell apart two models whose mean errors differ by 10 points, in four of five"
            " cases with one profile and no drift; 16 cells tell gaps of "
        )
        assert "typical of the published grids" in sentence
        assert "told from one that errs as published models do in 9" in sentence


class TestSpread:
    def scored(self, cells=8, repeats=2, models=(1.1, 1.3)):
        """
        Models that miss by shares that vary from cell to cell.
        """
        names = [f"c{place}" for place in range(cells)]
        predictions = [
            Prediction(model=f"m{number}", cell=cell, job_s=100 * share + 3 * place)
            for number, share in enumerate(models)
            for place, cell in enumerate(names)
        ]
        times = [
            Measurement(
                cell=cell, workload="w", trial=f"{cell}-{number}", reference_s={},
                raw_s={"job_s": 100.0 + 4 * number + place * number},
            )
            for place, cell in enumerate(names) for number in range(repeats)
        ]  # fmt: skip
        return score(predictions, times)

    def test_is_that_of_an_earlier_run(self):
        """
        By name.
        """
        found = spread_of(self.scored(), "run x")

        assert found.origin == "run x"
        assert 0 < found.gap < 0.1
        assert 0.02 < found.noise < 0.1
        assert len(found.errors) == 20
        assert list(found.errors) == sorted(found.errors)

    @pytest.mark.parametrize(
        "shape", [{"cells": 5}, {"repeats": 1}, {"models": (1.1,)}, {"models": (1.1, 1.1)}]
    )
    def test_is_not_known_where_the_run_does_not_show_it(self, shape):
        """
        Too few cells, no repeats, one model, or two that predict the same.
        """
        assert spread_of(self.scored(**shape), "run x") is None

    def test_is_not_known_without_scores(self):
        """
        Of a run that was never scored.
        """
        assert spread_of(ScoreBook(), "run x") is None
