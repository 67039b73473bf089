"""
Tests for `harness.scoring.answers`: the sentence that answers the question of a run.
"""

import math

from itertools import chain
from statistics import fmean

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.base.records.question import BEST, Question
from harness.base.records.score import Comparison, Ranking, Score
from harness.base.stats.flips import normal_draws
from harness.base.stats.resampling import mean_interval
from harness.scoring import answers
from harness.scoring.answers import Scored, answer, fate, listed, no_answer, outcome_of, share
from harness.scoring.comparisons import compare
from harness.scoring.controls import floor_of, perfect_errors
from harness.scoring.metrics.errors import signed_error

NEAR = [1.05, 1.06, 1.04, 1.05, 1.05, 1.06]
FAR = [1.30, 1.28, 1.33, 1.31, 1.27, 1.34]
OPEN = [1.60, 1.00, 1.20, 1.00, 1.30, 1.02]


def row(model, shares, floor=0.01, *, inputs=None, measured_s=None, quantity="job_s", speed="raw"):
    """
    Scores of a model that predicts these shares of the measured times, 100 s unless given.
    """
    cells = shares if isinstance(shares, dict) else {f"c{i}": s for i, s in enumerate(shares)}
    times_s = measured_s or [100.0] * len(cells)
    return [
        Score(
            model=model, cell=cell, level="job", quantity=quantity, speed=speed,
            predicted_s=share * times_s[place], measured_s=times_s[place], trials=3, floor=floor,
            signed_error=signed_error(share, 1.0), relative_error=abs(signed_error(share, 1.0)),
            input=inputs[place] if inputs else "",
        )
        for place, (cell, share) in enumerate(cells.items())
    ]  # fmt: skip


def answered(question, *rows, asked="sealed", **arguments):
    """
    The answer to *question* by these scores.
    """
    scores = [*chain(*rows)]
    rankings, pairs = compare(scores, question=question, asked=asked, **arguments)
    raw = [ranking for ranking in rankings if (ranking.quantity, ranking.speed) == ("job_s", "raw")]
    return answer(question, Scored.of(scores, raw[0], pairs, asked))


def sentence(question, *rows, **arguments):
    """
    What it says.
    """
    return answered(question, *rows, **arguments).sentence


class TestWords:
    def test_shares_have_one_digit(self):
        """
        In percent.
        """
        assert [share(value) for value in (0.0, 0.0625, 1.234)] == ["0.0 %", "6.2 %", "123.4 %"]

    def test_names_are_listed(self):
        """
        The last one with an and.
        """
        assert [listed(names) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]

    def test_nothing_is_told_with_a_reason(self):
        """
        No number stands beside it.
        """
        found = no_answer(Question(how_far="a"), "afterwards", "no job ran")

        assert found.sentence == "It cannot be told: no job ran."
        assert (found.outcome, found.asked, found.error, found.cells) == (
            "cannot tell", "afterwards", None, 0,
        )  # fmt: skip
        assert found.question == Question(how_far="a")


class TestHowFar:
    def test_of_a_model_it_is_its_error_beside_that_of_perfection(self):
        """
        With its interval, and the worst cell.
        """
        found = answered(Question(how_far="b"), row("a", NEAR), row("b", FAR))
        low, high = mean_interval([value - 1 for value in FAR])

        assert (found.outcome, found.model, found.cells, found.asked) == ("yes", "b", 6, "sealed")
        assert found.error == pytest.approx(1.83 / 6)
        assert (found.low, found.high) == pytest.approx((low, high))
        assert (found.worst, found.worst_cell) == (pytest.approx(0.34), "c5")
        assert (found.floor, found.floor_high) == floor_of(perfect_errors(row("b", FAR)))
        assert found.sentence == (
            "b is off by 30.5 % on average (95 %: 27.6 % to 33.4 %) over 6 cells, at worst by"
            " 34.0 %; a perfect model would be off by 0.8 %."
        )

    def test_of_the_best_it_says_whether_it_is_nearest(self):
        """
        Of each of the others.
        """
        found = answered(Question(how_far=BEST), row("a", NEAR), row("b", FAR), row("c", FAR))

        assert found.model == "a"
        assert found.sentence == (
            "Of 3 models a errs least: off by 5.2 % on average (95 %: 4.3 % to 5.9 %) over 6 cells,"
            " at worst by 6.0 %; a perfect model would be off by 0.8 %. It is nearer than each of"
            " the others."
        )

    def test_from_which_it_cannot_be_told_apart_is_named(self):
        """
        And to which it is equal: of four models all three fates.
        """
        rows = row("a", NEAR), row("e", NEAR), row("o", OPEN), row("p", OPEN), row("z", FAR)
        found = sentence(Question(how_far=BEST), *rows)
        some = sentence(Question(how_far=BEST), *rows[:2], rows[4])
        one = sentence(Question(how_far=BEST), rows[0], rows[2])

        assert found.endswith(
            ". It is nearer than z; it is equal to e; it cannot be told apart from o and p."
        )
        assert some.endswith(". It is nearer than z; it is equal to e.")
        assert one.endswith(". It cannot be told apart from o.")

    def test_without_a_comparison_it_cannot_be_told_apart(self):
        """
        Of older scores, say.
        """
        scores = [*row("a", NEAR), *row("b", FAR)]
        (ranking,), _ = compare(scores)

        found = answer(Question(how_far=BEST), Scored.of(scores, ranking, [], "afterwards"))
        assert found.sentence.endswith(" It cannot be told apart from b.")

    def test_where_no_model_reproduces_what_it_learnt_it_cannot_be_told(self, monkeypatch):
        """
        None of them is the best.
        """
        rows = [score.model_copy(update={"in_sample_miss": 0.2}) for score in row("a", NEAR)]

        assert sentence(Question(how_far=BEST), rows) == (
            "It cannot be told: no model reproduces the jobs it learnt from."
        )

    def test_the_best_is_one_of_those_that_reproduce_what_they_learnt(self):
        """
        Also where it is the only one, and others err less.
        """
        unlearnt = [score.model_copy(update={"in_sample_miss": 0.2}) for score in row("a", NEAR)]
        rest = [*row("b", FAR), *row("c", OPEN)]
        some = sentence(Question(how_far=BEST), unlearnt, rest)
        one = sentence(Question(how_far=BEST), unlearnt, row("b", FAR))

        assert some.startswith("Of 2 models that reproduce the jobs they learnt from")
        assert one.startswith("Only b reproduces the jobs it learnt from: off by")

    def test_one_model_alone_is_never_nearest(self):
        """
        Nor is it the best of one.
        """
        found = sentence(Question(how_far=BEST), row("a", NEAR))

        assert found.startswith("a is off by 5.2 % on average")
        assert found.endswith("; a perfect model would be off by 0.8 %.")

    def test_asked_by_name_it_is_not_compared(self):
        """
        Even where it errs least.
        """
        found = sentence(Question(how_far="a"), row("a", NEAR), row("b", FAR))

        assert found.startswith("a is off by")
        assert found.endswith("would be off by 0.8 %.")

    def test_an_error_as_large_as_chance_gives_perfection_is_inside_the_noise(self):
        """
        In 95 of 100 draws; just above it is not.
        """
        cells = row("a", [1.0] * 6, 0.05)
        _, high = floor_of(perfect_errors(cells))
        inside = sentence(Question(how_far="a"), row("a", [1 + 0.999 * high] * 6, 0.05))
        outside = sentence(Question(how_far="a"), row("a", [1 + 1.001 * high] * 6, 0.05))

        assert inside.endswith("; a perfect model would be off by 4.0 %, so that this is inside the"
                               " noise.")  # fmt: skip
        assert outside.endswith("; a perfect model would be off by 4.0 %.")

    def test_perfection_itself_is_inside_the_noise(self):
        """
        An error of 0 is a number.
        """
        found = answered(Question(how_far="a"), row("a", [1.0] * 6))

        assert (found.error, found.low, found.high) == (0, 0, 0)
        assert found.sentence == (
            "a is off by 0.0 % on average (95 %: 0.0 % to 0.0 %) over 6 cells, at worst by 0.0 %;"
            " a perfect model would be off by 0.8 %, so that this is inside the noise."
        )

    @pytest.mark.parametrize("floor", [None, 0.0])
    def test_without_repeats_the_noise_is_not_known(self, floor):
        """
        No floor, and nothing is said to be inside of it.
        """
        found = answered(Question(how_far="a"), row("a", NEAR, floor))

        assert (found.floor, found.floor_high) == (None, None)
        assert found.sentence.endswith("at worst by 6.0 %; the noise is not known.")

    def test_of_few_cells_the_range_is_said(self):
        """
        Five cells have no interval, and one is a cell.
        """
        five = sentence(Question(how_far="a"), row("a", NEAR[:5]))
        one = sentence(Question(how_far="a"), row("a", [1.05]))

        assert five.startswith(
            "a is off by 5.0 % on average (cells: 4.0 % to 6.0 %) over 5 cells, at worst by 6.0 %"
        )
        assert one.startswith(
            "a is off by 5.0 % on average (cells: 5.0 % to 5.0 %) over 1 cell, at worst by 5.0 %"
        )

    def test_no_error_is_below_0(self):
        """
        Nor is the end of its interval.
        """
        found = answered(Question(how_far="a"), row("a", [1.0, 1.0, 1.0, 1.0, 1.0, 1.9]))

        assert mean_interval([0, 0, 0, 0, 0, 0.9])[0] < 0
        assert found.low == 0

    def test_inputs_vary_where_they_are_asked_about(self):
        """
        12 cells of six inputs that vary together have a wider interval.
        """
        shares = [1 + value for value in (0.1, 0.4, 0.2, 0.3, 0.15, 0.35) for _ in range(2)]
        inputs = [name for name in "abcdef" for _ in range(2)]
        cells = row("a", {f"c{i:02}": s for i, s in enumerate(shares)}, inputs=inputs)

        jobs = answered(Question(how_far="a"), cells)
        kind = answered(Question(how_far="a", scope="inputs"), cells)
        assert (jobs.low, jobs.high) == mean_interval([s.relative_error for s in cells])
        assert (kind.low, kind.high) == mean_interval([s.relative_error for s in cells], inputs)
        assert kind.low < jobs.low < jobs.high < kind.high

    def test_of_the_best_the_cells_are_those_that_all_models_answer(self):
        """
        Asked by name it is all of its own.
        """
        a, b = row("a", [*NEAR, 1.5]), row("b", FAR)

        best, named = (answered(Question(how_far=name), a, b) for name in (BEST, "a"))
        assert (best.model, best.cells, best.worst) == ("a", 6, pytest.approx(0.06))
        assert (named.cells, named.worst) == (7, pytest.approx(0.5))

    def test_of_equal_errors_no_cell_is_the_worst(self):
        """
        So that neither the order of scores nor the names of cells matter; else it is named.
        """
        cells = {"c2": 1.2, "c3": 1.2, "c1": 1.2}
        found = answered(Question(how_far="a"), row("a", cells))
        alone = answered(Question(how_far="a"), row("a", {**cells, "c2": 1.3}))

        assert (found.worst, found.worst_cell) == (pytest.approx(0.2), "")
        assert (alone.worst, alone.worst_cell) == (pytest.approx(0.3), "c2")

    def test_a_model_without_an_answer_is_named(self):
        """
        And no number comes of it.
        """
        found = answered(Question(how_far="x"), row("a", NEAR))

        assert found.sentence == "It cannot be told: x has no answer in a cell."
        assert (found.outcome, found.error) == ("cannot tell", None)

    def test_where_no_model_is_ranked_nothing_is_told(self):
        """
        Of the best.
        """
        ranking = Ranking(quantity="job_s", speed="raw", cells=0)

        found = answer(Question(how_far=BEST), Scored.of([], ranking, [], "sealed"))
        assert found.sentence == "It cannot be told: no model has an answer."
        assert found.asked == "sealed"

    def test_what_has_moved_is_not_told_without_the_earlier_run(self):
        """
        And how far the best is off is no answer to it, but stands beside.
        """
        found = answered(Question(moved_since="run-1"), row("a", [*NEAR, 1.5]), row("b", FAR))

        assert found.outcome == "cannot tell"
        assert found.sentence.startswith("It cannot be told: what has moved since another run is")
        assert " by harness compare. Of 2 models a errs least: off by 5.2 %" in found.sentence

    def test_raw_job_times_alone_count(self):
        """
        Other rows of the same model are of another question.
        """
        other = row("a", FAR, quantity="body_s"), row("a", FAR, speed="reference")

        assert sentence(Question(how_far="a"), row("a", NEAR), *other) == sentence(
            Question(how_far="a"), row("a", NEAR)
        )


class TestNearer:
    ASKS = Question(nearer=("a", "b"))

    def test_yes(self):
        """
        Than each: the errors of all, then the verdict.
        """
        found = answered(
            Question(nearer=("a", "b", "c")), row("a", NEAR), row("b", FAR), row("c", [2.0] * 6)
        )

        assert (found.outcome, found.model, found.cells, found.asked) == ("yes", "a", 6, "sealed")
        assert found.error == pytest.approx(0.31 / 6)
        assert (found.floor, found.floor_high) == floor_of(perfect_errors(row("a", NEAR)))
        assert found.sentence == (
            "Yes: a is off by 5.2 %, b by 30.5 % and c by 100.0 %, over 6 cells; it is nearer than"
            " b and c."
        )

    def test_no_where_another_is_nearer(self):
        """
        Asked, the first stands first although it errs more.
        """
        found = answered(self.ASKS, row("a", FAR), row("b", NEAR))

        assert (found.outcome, found.error) == ("no", pytest.approx(1.83 / 6))
        assert found.sentence == (
            "No: a is off by 30.5 %, b by 5.2 %, over 6 cells; it is farther than b."
        )

    def test_no_where_one_is_equal(self):
        """
        Each fate has its clause, in a fixed order.
        """
        found = answered(
            Question(nearer=("a", "o", "b", "z", "e", "y")), row("a", NEAR), row("o", OPEN),
            row("b", [1.01] * 6), row("z", FAR), row("e", NEAR), row("y", FAR),
        )  # fmt: skip

        assert found.outcome == "no"
        assert found.sentence == (
            "No: a is off by 5.2 %, o by 18.7 %, b by 1.0 %, z by 30.5 %, e by 5.2 % and y by"
            " 30.5 %, over 6 cells; it is nearer than z and y; it is equal to e; it is farther than"
            " b; it cannot be told apart from o."
        )

    def test_it_cannot_be_told_where_one_is_open(self):
        """
        Although another is farther.
        """
        found = answered(
            Question(nearer=("a", "o", "z")), row("a", NEAR), row("o", OPEN), row("z", FAR)
        )

        assert found.outcome == "cannot tell"
        assert found.sentence == (
            "It cannot be told: a is off by 5.2 %, o by 18.7 % and z by 30.5 %, over 6 cells; it is"
            " nearer than z; it cannot be told apart from o."
        )

    @pytest.mark.parametrize("swapped", [False, True])
    def test_of_too_few_cells_nothing_is_told(self, swapped):
        """
        Neither nearer nor farther, however clear it looks.
        """
        shares = (FAR, NEAR) if swapped else (NEAR, FAR)
        found = answered(self.ASKS, row("a", shares[0][:1]), row("b", shares[1][:1]))

        assert found.outcome == "cannot tell"
        assert found.sentence.endswith(", over 1 cell; it cannot be told apart from b.")

    def test_the_same_predictions_are_no(self):
        """
        Equal is not nearer.
        """
        found = answered(self.ASKS, row("a", NEAR[:2]), row("b", NEAR[:2]))

        assert (found.outcome, found.sentence) == (
            "no", "No: a is off by 5.5 %, b by 5.5 %, over 2 cells; it is equal to b.",
        )  # fmt: skip

    def test_a_model_that_answers_nowhere_is_named(self):
        """
        All that do not.
        """
        one = answered(Question(nearer=("a", "x")), row("a", NEAR), row("b", FAR))
        two = answered(Question(nearer=("y", "b", "x")), row("a", NEAR), row("b", FAR))

        assert one.sentence == "It cannot be told: x answers no cell."
        assert two.sentence == "It cannot be told: y and x answer no cell."
        assert (one.outcome, one.error, one.floor, one.cells) == ("cannot tell", None, None, 0)

    def test_models_that_share_no_cell_are_not_compared(self):
        """
        Both answer, and nowhere both.
        """
        found = answered(self.ASKS, row("a", {"c0": 1.0}), row("b", {"c1": 1.2}))

        assert found.sentence == "It cannot be told: they share no cell."

    def test_without_a_noise_there_is_a_verdict_and_no_floor(self):
        """
        What is tested is what varies over the cells.
        """
        found = answered(self.ASKS, row("a", NEAR, None), row("b", FAR, None))

        assert (found.outcome, found.floor, found.floor_high) == ("yes", None, None)

    def test_asked_beside_another_question_it_is_explored(self):
        """
        Two sides, and pairs of all models: what would be proved alone is open, and the sentence is
        of that family; the worse may be the first.
        """
        rows = row("a", NEAR), row("b", FAR)
        proved, explored = (answered(self.ASKS, *rows, asked=how) for how in ("sealed", "explored"))
        turned = answered(Question(nearer=("b", "a")), *rows, asked="explored")

        assert (proved.asked, explored.asked) == ("sealed", "explored")
        assert explored.sentence == proved.sentence
        assert turned.sentence == (
            "No: b is off by 30.5 %, a by 5.2 %, over 6 cells; it is farther than a."
        )
        assert turned.error == pytest.approx(1.83 / 6)

    def test_what_was_asked_goes_before_what_was_explored(self):
        """
        Where both are there: one-sided 4.7 %, two-sided 9.4 %.
        """
        a, b = [1.1] * 6, [1.13, 1.18, 1.17, 1.17, 1.21, 1.07]
        assert answered(self.ASKS, row("a", a), row("b", b)).outcome == "yes"
        assert answered(self.ASKS, row("a", a), row("b", b), asked="explored").outcome == (
            "cannot tell"
        )

    def test_the_cells_are_those_that_the_models_share(self):
        """
        Asked: those of the asked models.
        """
        found = answered(
            self.ASKS, row("a", [*NEAR, 1.9]), row("b", [*FAR, 1.3]), row("c", FAR)
        )  # fmt: skip

        assert found.cells == 7
        assert found.error == pytest.approx((0.31 + 0.9) / 7)
        assert ", over 7 cells;" in found.sentence


def pair(verdict="undecided", better="a", worse="b", low=0.1, chance=0.5, **fields):
    """
    A comparison of two models.
    """
    return Comparison(
        better=better, worse=worse, quantity="job_s", speed="raw", cells=6, difference=0.2,
        low=low, high=0.3, verdict=verdict, reason="", chance=chance, **fields,
    )  # fmt: skip


class TestFate:
    @pytest.mark.parametrize(
        ("found", "expected"),
        [(pair("nearer"), "nearer"), (pair("nearer", "b", "a"), "farther"),
         (pair("equal"), "equal"), (pair("equal", "b", "a"), "equal"),
         (pair(), "farther"), (pair(low=1e-12), "undecided"), (pair(low=1e-8), "farther"),
         (pair(low=-0.1), "undecided"),
         (pair(low=None), "undecided"), (pair(chance=None), "undecided")],
    )  # fmt: skip
    def test_of_the_first(self, found, expected):
        """
        What was tested and does not contain equality is farther; of too few cells nothing is.
        """
        assert fate("a", found) == expected

    @pytest.mark.parametrize(
        "gaps", [[0.23, -0.01, 0.01, 0.01, 0.09, 0.14], [-0.01, -0.02, 0.16, 0.17, 0.14, 0.21]]
    )
    def test_rounding_makes_nothing_farther(self, gaps):
        """
        That the other model is nearer has a chance of 4 in 64: more than 5 %, so that the interval
        ends at 0.
        """
        turned = row("a", [1.5] * 6), row("b", [1.5 + gap for gap in gaps])
        found = answered(
            Question(nearer=("a", "b")), row("a", [1.5 + gap for gap in gaps]), row("b", [1.5] * 6)
        )

        assert answered(Question(nearer=("a", "b")), *turned).outcome == "cannot tell"
        assert found.outcome == "cannot tell"

    @pytest.mark.parametrize(
        ("fates", "expected"),
        [(("nearer",), "yes"), (("nearer", "nearer"), "yes"), (("nearer", "farther"), "no"),
         (("equal",), "no"), (("farther", "undecided"), "no"), (("equal", "nearer"), "no"),
         (("nearer", "undecided"), "cannot tell"), (("undecided",), "cannot tell")],
    )  # fmt: skip
    def test_of_all_is_the_outcome(self, fates, expected):
        """
        Yes only where it is nearer than each.
        """
        assert outcome_of(dict(enumerate(fates))) == expected

    def test_a_pair_is_found_whoever_is_named_first(self):
        """
        As it was asked, else explored; of raw job times alone.
        """
        explored, asked = pair(better="b", worse="a"), pair(family="asked")
        body = pair().model_copy(update={"quantity": "body_s"})
        corrected = pair().model_copy(update={"speed": "reference"})
        others = pair(better="c"), body, corrected
        ranking = Ranking(quantity="job_s", speed="raw", cells=6)

        def found(*pairs):
            return Scored.of([], ranking, [*others, *pairs], "sealed").pair("a", "b")

        assert found() is None
        assert found(explored) == explored
        assert found(explored, asked) == found(asked, explored) == asked

    def test_errors_of_an_older_pair_are_none(self):
        """
        It has no field for them.
        """
        assert (answers.error_in(pair(), "a"), answers.error_in(pair(), "b")) == (0, 0)
        assert answers.error_in(pair(errors=(0.1, 0.2)), "a") == 0.1
        assert answers.error_in(pair(errors=(0.1, 0.2)), "b") == 0.2


class TestChoice:
    """Two inputs, three settings each; a setting is a cell."""

    TIMES = (100.0, 120.0, 150.0, 200.0, 210.0, 300.0)
    INPUTS = "xxxyyy"

    def rows(self, model, predicted_s, floor=0.01):
        """
        Scores of predictions of these six cells.
        """
        shares = [p / m for p, m in zip(predicted_s, self.TIMES, strict=True)]
        return row(model, shares, floor, inputs=self.INPUTS, measured_s=list(self.TIMES))

    def test_who_loses_least_is_named(self):
        """
        The first chooses the second setting of x and the fastest of y: 20 % and 0; the other the
        slowest of both: 50 % each.
        """
        found = answered(
            Question(choice=1), self.rows("good", [90, 80, 150, 200, 210, 300]),
            self.rows("bad", [300, 200, 100, 30, 20, 10]),
        )  # fmt: skip

        assert (found.outcome, found.model, found.cells, found.asked) == (
            "yes",
            "good",
            6,
            "sealed",
        )
        assert found.error == pytest.approx(0.1)
        assert found.worst == pytest.approx(0.2)
        assert found.sentence == (
            "good chooses best: its first choice takes 10.0 % longer than the fastest setting, mean"
            " over 2 inputs with 6 settings in all, at worst 20.0 %; a perfect model would lose 0.0"
            " %; others lose: bad 50.0 %."
        )

    def test_several_choices_may_be_tried(self):
        """
        The best of the first two: nothing is lost where the fastest is the second.
        """
        two = answered(Question(choice=2), self.rows("good", [90, 80, 150, 200, 210, 300]))

        assert (two.error, two.worst) == (0, 0)
        assert two.sentence == (
            "good chooses best: the best of its first 2 choices takes 0.0 % longer than the fastest"
            " setting, mean over 2 inputs with 6 settings in all, at worst 0.0 %; a perfect model"
            " would lose 0.0 %."
        )

    def test_others_stand_in_the_order_of_what_they_lose(self):
        """
        Then of their names.
        """
        found = sentence(
            Question(choice=1), self.rows("z", [1, 2, 3, 1, 2, 3]),
            self.rows("d", [3, 2, 1, 1, 2, 3]), self.rows("c", [2, 1, 3, 1, 2, 3]),
            self.rows("b", [1, 2, 3, 2, 1, 3]), self.rows("a", [3, 2, 1, 1, 2, 3]),
        )  # fmt: skip

        assert found.startswith("z chooses best")
        assert found.endswith("; others lose: b 2.5 %, c 10.0 %, a 25.0 %, d 25.0 %.")

    def test_who_loses_as_much_chooses_equally_well(self):
        """
        Whatever their errors are: both are named, and none is the answer.
        """
        found = answered(
            Question(choice=1), self.rows("b", self.TIMES), self.rows("a", [1, 2, 3, 1, 2, 3])
        )

        assert (found.model, found.outcome) == ("a", "cannot tell")
        assert found.sentence.startswith("a and b choose equally well: their first choice takes ")
        assert "others lose" not in found.sentence

    def test_settings_that_are_predicted_alike_are_tried_slowest_first(self):
        """
        Who says nothing of the settings cannot choose.
        """
        found = answered(Question(choice=1), self.rows("a", [5.0] * 6))

        assert found.error == pytest.approx(0.5)

    def test_perfection_loses_where_settings_lie_within_the_noise(self):
        """
        By a plain program: each draw chooses the shortest of the times that it sees.
        """
        times_s = [100.0, 103.0, 108.0, 115.0, 124.0, 135.0, 148.0, 163.0]
        cells = row("a", [1.0] * 8, 0.2, inputs="xxxxyyyy", measured_s=times_s)
        found = answered(Question(choice=1), cells)
        lost = []
        for draws in normal_draws("perfect", 4):
            of_inputs = []
            for times in (times_s[:4], times_s[4:]):
                seen = [t * (1 + 0.2 * z) for t, z in zip(times, draws, strict=True)]
                of_inputs.append(times[seen.index(min(seen))] / min(times) - 1)
            lost.append(fmean(of_inputs))

        assert found.floor == pytest.approx(fmean(lost))
        assert found.floor_high == pytest.approx(sorted(lost)[189])
        assert f"; a perfect model would lose {share(found.floor)}." in found.sentence
        assert 0 < answered(Question(choice=2), cells).floor < found.floor < found.floor_high

    def test_without_a_noise_nothing_is_said_of_perfection(self):
        """
        Where it is not known for one of the inputs, either.
        """
        known, unknown = self.rows("a", self.TIMES)[:3], self.rows("a", self.TIMES, None)[3:]
        found = answered(Question(choice=1), known, unknown)

        assert (found.floor, found.floor_high) == (None, None)
        assert found.sentence.endswith("at worst 0.0 %.")

    def test_inputs_of_one_setting_are_none(self):
        """
        There is nothing to choose; one input of two settings is singular.
        """
        cells = row("a", [1.0, 1.0, 1.0], inputs="xxy", measured_s=[100.0, 130.0, 50.0])
        found = answered(Question(choice=1), cells)

        assert found.cells == 2
        assert ", mean over 1 input with 2 settings in all, at worst 0.0 %" in found.sentence

    def test_without_two_settings_nothing_is_told(self):
        """
        Of no input; cells whose input is not known are inputs of their own.
        """
        why = "It cannot be told: no input has two settings that all models answer."

        assert sentence(Question(choice=1), row("a", [1.0] * 3, inputs="xyz")) == why
        assert sentence(Question(choice=1), row("a", [1.0] * 3)) == why
        ranking = Ranking(quantity="job_s", speed="raw", cells=0)
        assert answer(Question(choice=1), Scored.of([], ranking, [], "sealed")).sentence == why

    def test_settings_count_where_all_models_answer(self):
        """
        Of x two, of y none but one.
        """
        a = self.rows("a", self.TIMES)
        b = self.rows("b", self.TIMES)
        found = answered(Question(choice=1), a, [b[0], b[2], b[3]])

        assert found.cells == 2
        assert "over 1 input with 2 settings" in found.sentence

    @given(st.permutations(range(6)))
    def test_the_order_of_predictions_is_all_that_counts(self, order):
        """
        Not their size: seconds or the square of them.
        """
        predicted_s = [100.0 + 10 * place for place in order]
        plain = answered(Question(choice=2), self.rows("a", predicted_s))
        squared = answered(Question(choice=2), self.rows("a", [time**2 for time in predicted_s]))

        assert squared == plain
        assert 0 <= plain.error <= plain.worst


ENDS = {
    "yes": "it is nearer than whatif",
    "no": "it is equal to whatif",
    "cannot tell": "it cannot be told apart from whatif",
}


class TestClaims:
    ASKS = Question(claims="prophet")

    @pytest.mark.parametrize(
        ("prophet", "outcome", "head", "answer_of_claim"),
        [(NEAR, "yes", "1 of 1 claims", "Yes: prophet is off by 5.2 %"),
         (FAR, "no", "0 of 1 claims", "No: prophet is off by 30.5 %"),
         (OPEN, "cannot tell", "0 of 1 claims", "It cannot be told: prophet is off by 18.7 %")],
    )  # fmt: skip
    def test_each_has_its_answer(self, prophet, outcome, head, answer_of_claim):
        """
        After how many hold.
        """
        found = answered(self.ASKS, row("prophet", prophet), row("whatif", FAR), asked="afterwards")

        assert (found.outcome, found.cells, found.asked) == (outcome, 6, "afterwards")
        assert found.question == self.ASKS
        assert found.sentence == (
            f"{head} of prophet hold. Prophet is nearer than What-If (Tables I to III):"
            f" {answer_of_claim}, whatif by 30.5 %, over 6 cells; {ENDS[outcome]}."
        )

    def test_of_models_that_are_not_there_nothing_is_told(self):
        """
        The claim says so itself.
        """
        found = answered(self.ASKS, row("a", NEAR))

        assert (found.outcome, found.cells) == ("cannot tell", 0)
        assert found.sentence.endswith(
            ": It cannot be told: prophet and whatif answer no cell."
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("shares", "outcome", "holding"),
        [((NEAR, FAR, FAR), "yes", 2), ((NEAR, FAR, OPEN), "cannot tell", 1),
         ((NEAR, FAR, [1.0] * 6), "no", 1), ((OPEN, FAR, NEAR), "cannot tell", 0)],
    )  # fmt: skip
    def test_of_several_all_have_to_hold(self, monkeypatch, shares, outcome, holding):
        """
        One that does not is a no, one that is open leaves it open.
        """
        claims = (
            Question(title="First", nearer=("a", "b")), Question(title="Second", nearer=("a", "c"))
        )  # fmt: skip
        monkeypatch.setitem(answers.CLAIMS, "two", claims)
        models = (row(name, of) for name, of in zip("abc", shares, strict=True))
        found = answered(Question(claims="two"), *models)

        assert found.outcome == outcome
        assert found.sentence.startswith(f"{holding} of 2 claims of two hold. First: ")
        assert ". Second: " in found.sentence


class TestQuestion:
    @pytest.mark.parametrize(
        ("fields", "error"),
        [({}, "asks nothing; write one of how_far, nearer, choice, claims, moved_since"),
         ({"title": "Which?"}, "asks nothing"),
         ({"how_far": "a", "choice": 1}, "asks 2 things; write one of"),
         ({"nearer": ("a",)}, r"compares one model with none; write nearer: \[A, B\]"),
         ({"nearer": ("a", "b", "a")}, "compares a model with itself; name each model once")],
    )  # fmt: skip
    def test_is_one(self, fields, error):
        """
        What is wrong and what to write.
        """
        with pytest.raises(ValidationError, match=error):
            Question(**fields)

    @pytest.mark.parametrize(
        ("question", "kind", "models", "words"),
        [(Question(how_far="a"), "how_far", ("a",), "How far is a off?"),
         (Question(how_far=BEST), "how_far", (), "How far is the best model off?"),
         (Question(nearer=("a", "b", "c")), "nearer", ("a", "b", "c"), "Is a nearer than b and c?"),
         (Question(choice=3), "choice", (), "Which model chooses the best settings?"),
         (Question(claims="p"), "claims", (), "Do the claims of p hold?"),
         (Question(moved_since="r"), "moved_since", (), "What has moved since r?")],
    )  # fmt: skip
    def test_has_a_kind_models_and_words(self, question, kind, models, words):
        """
        For who gave it no title.
        """
        assert (question.kind, question.models, question.as_words()) == (kind, models, words)

    def test_what_is_sealed_has_no_title(self):
        """
        Words may change, what is asked may not.
        """
        titled = Question(title="Is it?", nearer=("a", "b"), scope="inputs", extrapolate=True)

        assert titled.asks == Question(nearer=("a", "b"), scope="inputs", extrapolate=True)


def test_numbers_of_an_answer_are_finite():
    """
    On any cells, of any floor: never a number from nothing.
    """
    generator = np.random.default_rng(4)
    for cells in (1, 2, 5, 6, 9):
        models = [
            row(name, generator.uniform(0, 3, cells), generator.choice([None, 0.0, 0.1]))
            for name in "ab"
        ]
        for question in (Question(how_far=BEST), Question(nearer=("b", "a"))):
            found = answered(question, *models)
            numbers = [found.error, found.low, found.high, found.floor, found.floor_high]
            assert all(number is None or math.isfinite(number) for number in numbers)
            assert "nan" not in found.sentence
            assert "None" not in found.sentence
