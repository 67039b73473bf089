"""
Tests for `harness.core.scoring.comparisons`: who is compared where, and what is said of each pair.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.base.records.score import Score
from harness.core.scoring import relative_error, signed_error
from harness.core.scoring.comparisons import compare


def rows(model, shares, floor=0.01, *, quantity="job_s", trials=3, inputs=None, measured_s=100.0):
    """
    Scores of a model whose predictions are these *shares* of the measured times, by cell.
    """
    cells = shares if isinstance(shares, dict) else {f"c{i}": s for i, s in enumerate(shares)}
    return [
        Score(
            model=model, cell=cell, level="job", quantity=quantity, speed="raw",
            predicted_s=share * measured_s, measured_s=measured_s, trials=trials, floor=floor,
            signed_error=signed_error(share, 1.0), relative_error=relative_error(share, 1.0),
            input=inputs[place] if inputs else "",
        )
        for place, (cell, share) in enumerate(cells.items())
    ]  # fmt: skip


def compared(*scores, **arguments):
    """
    The one ranking and the one comparison of these scores.
    """
    (ranking,), (comparison,) = compare(
        [each for several in scores for each in several], {}, **arguments
    )
    return ranking, comparison


GIVEN = "; the profile counts as given"
FAR = [1.30, 1.28, 1.33, 1.31]
NEAR = [1.05, 1.06, 1.04, 1.05]


class TestVerdicts:
    def test_nearer_is_the_model_with_the_smaller_error(self):
        """
        5 % against 31 % in four cells: the nearer model is named first, the difference is below 0.
        """
        ranking, pair = compared(rows("whatif", FAR), rows("prophet", NEAR))

        assert (pair.better, pair.worse, pair.verdict, pair.cells) == (
            "prophet", "whatif", "nearer", 4,
        )  # fmt: skip
        assert pair.difference == pytest.approx(-0.255)
        assert pair.chance < 0.001
        assert (ranking.models, ranking.nearest) == (("prophet", "whatif"), ("prophet",))
        assert ranking.errors == pytest.approx((0.05, 0.305))
        assert pair.reason == f"chance gives as much in at most 0.04 % of cases{GIVEN}"

    def test_differences_that_scatter_over_the_cells_decide_nothing(self):
        """
        The mean differs by 10 points, far more than the floors, and the cells disagree: what counts
        is how the differences vary, not the noise alone.
        """
        _, pair = compared(rows("a", [1.1, 1.1, 1.1, 1.1]), rows("b", [1.6, 1.0, 1.2, 1.0]))

        assert pair.verdict == "undecided"
        assert pair.reason == "68 more cells would tell, more repeats would not"

    def test_noise_that_could_give_the_difference_decides_nothing(self):
        """
        10 points in every cell; with floors of 6 % they may be chance, with half of
        that they are not.
        """

        def verdict(floor):
            return compared(rows("a", [1.05] * 4, floor), rows("b", [0.85] * 4, floor))[1].verdict

        assert (verdict(0.06), verdict(0.03)) == ("undecided", "nearer")

    def test_repeats_may_tell(self):
        """
        Where all that varies is noise.
        """
        _, pair = compared(rows("a", [1.05] * 4, 0.06), rows("b", [0.95] * 3 + [0.85], 0.06))

        assert pair.verdict == "undecided"
        assert "more repeats" in pair.reason

    def test_models_within_two_points_are_equal(self):
        """
        Unless another margin is asked for.
        """
        near = rows("a", [1.10] * 6, 0.003), rows("b", [1.11] * 6, 0.003)
        ranking, pair = compared(*near)

        assert (pair.verdict, ranking.nearest) == ("equal", ("a", "b"))
        assert pair.reason == f"their errors differ by less than 2 points{GIVEN}"
        assert compared(*near, margin=0.005)[1].verdict == "nearer"

    def test_the_same_predictions_are_equal_without_any_noise(self):
        """
        Nothing needs to be measured twice for that.
        """
        _, pair = compared(rows("a", FAR, None), rows("b", FAR, None))

        assert (pair.verdict, pair.difference, pair.chance) == ("equal", 0, None)
        assert pair.reason == f"both predict the same times{GIVEN}"

    def test_more_pairs_need_more_proof(self):
        """
        What is proved of two models is not, where nine have been compared.
        """
        first, second = rows("a", [1.20, 1.30, 1.18, 1.26]), rows("b", [1.10, 1.12, 1.11, 1.14])
        others = [rows(f"m{i}", [1.5 + i, 1.2, 2.0, 1.4 + i]) for i in range(7)]

        alone = compared(first, second)[1]
        _, pairs = compare([each for several in (first, second, *others) for each in several], {})

        (among,) = [pair for pair in pairs if {pair.better, pair.worse} == {"a", "b"}]
        assert (alone.verdict, among.verdict, len(pairs)) == ("nearer", "undecided", 36)

    def test_one_cell_speaks_for_itself_alone(self):
        """
        A clear difference in it is one there.
        """
        _, pair = compared(rows("a", [1.05]), rows("b", [1.40]))

        assert (pair.verdict, pair.better, pair.low, pair.high) == (
            "nearer", "a", pair.difference, pair.difference,
        )  # fmt: skip
        assert pair.reason.endswith(f"; this holds for one cell alone{GIVEN}")

    @pytest.mark.parametrize(
        ("inputs", "ending"),
        [("aaaa", "; this holds for one input alone"),
         ("aabb", "; this holds for two inputs alone"),
         ("aabc", "cases"), ("abcd", "cases")],
    )  # fmt: skip
    def test_few_inputs_speak_for_themselves_alone(self, inputs, ending):
        """
        Three show how inputs vary; cells that share none are what varies.
        """
        _, pair = compared(rows("a", FAR, inputs=inputs), rows("b", NEAR, inputs=inputs))

        assert pair.verdict == "nearer"
        assert pair.reason.endswith(f"{ending}{GIVEN}")

    def test_a_profile_that_varies_decides_nothing(self):
        """
        25 points apart by this profile, and by four others between 5 points and 45.
        """
        first, second = rows("a", NEAR), rows("b", FAR)

        def judged(*moves):
            refits = {("a", each.cell, "job_s"): [each.predicted_s] * 4 for each in first}
            refits |= {
                ("b", each.cell, "job_s"): [each.predicted_s + move for move in moves]
                for each in second
            }
            return compared(first, second, refits=refits)[1]

        far = judged(-20, 20, -20, 20)
        assert far.verdict == "undecided"
        assert far.reason.endswith(" more profiling cells would tell, more repeats would not")
        near = judged(-1, 1, -1, 1)
        assert (near.verdict, near.reason[-6:]) == ("nearer", " cases")
        assert judged(-20, 20, 20).reason.endswith(GIVEN)
        assert compared(first, second, refits={})[1].reason.endswith(GIVEN)

    def test_cells_that_share_an_input_are_no_proof_of_their_own(self):
        """
        Nine cells of three inputs that disagree: what more would tell are inputs.
        """
        shares = [share for share in (1.2, 1.5, 1.3) for _ in range(3)]
        near = [1.20, 1.21, 1.19] * 3
        same = compared(rows("a", shares, inputs="aaabbbccc"), rows("b", near, inputs="aaabbbccc"))

        assert same[1].verdict == "undecided"
        assert "more inputs would tell" in same[1].reason
        assert compared(rows("a", shares), rows("b", near))[1].verdict == "nearer"

    @given(st.lists(st.tuples(*[st.floats(0.5, 2)] * 3), min_size=1, max_size=6))
    def test_the_better_model_is_named_first(self, shares):
        """
        Whatever the order of the models.
        """
        models = [
            rows(name, of_model)
            for name, of_model in zip("abc", zip(*shares, strict=True), strict=True)
        ]
        (ranking,), pairs = compare([each for model in models for each in model], {})
        errors = dict(zip(ranking.models, ranking.errors, strict=True))

        for pair in pairs:
            assert pair.difference == pytest.approx(errors[pair.better] - errors[pair.worse])
            assert pair.difference <= 1e-12
            assert pair.low - 1e-9 <= pair.difference <= pair.high + 1e-9
        assert ranking.nearest[0] == ranking.models[0]
        assert len(pairs) == 3


class TestUnknownNoise:
    @pytest.mark.parametrize("shares", [(FAR, NEAR), (FAR[:1], NEAR[:1])])
    def test_single_trials_have_no_verdict(self, shares):
        """
        A win of 25 points over single trials: the noise is said to be unknown.
        """
        _, pair = compared(*(rows(name, of, None) for name, of in zip("ab", shares, strict=True)))

        assert (pair.verdict, pair.chance) == ("undecided", None)
        assert pair.reason == "the noise is not known, because no cell was measured twice"

    @pytest.mark.parametrize("cells", [1, 4])
    def test_repeats_that_never_differ_have_none_either(self, cells):
        """
        A constant series is no measurement of noise.
        """
        _, pair = compared(rows("a", FAR[:cells], 0.0), rows("b", NEAR[:cells], 0.0))

        assert pair.verdict == "undecided"
        assert pair.reason == "the noise is not known, because repeats do not differ at all"

    def test_a_cell_without_a_floor_has_the_largest(self):
        """
        That of other cells, not none.
        """

        def judged(floor):
            more = {"c8": 1.05}, {"c8": 0.85}
            first = rows("a", {f"c{i}": 1.05 for i in range(3)}, 0.04), rows("a", more[0], floor)
            second = rows("b", {f"c{i}": 0.85 for i in range(3)}, 0.04), rows("b", more[1], floor)
            return compared(*first, *second)[1]

        assert judged(None) == judged(0.04)

    @pytest.mark.parametrize("share", [math.nan, math.inf])
    def test_what_is_no_number_never_gets_here(self, share):
        """
        Errors refuse it.
        """
        with pytest.raises(ModelError, match="not both finite"):
            rows("a", [share])


class TestCommonCells:
    def test_only_cells_that_all_answer_count(self):
        """
        An easy cell that one model alone answers wins nothing.
        """
        ranking, pair = compared(
            rows("a", {"c0": 1.0, "c1": 1.3, "c2": 1.3}), rows("b", {"c1": 1.2, "c2": 1.2})
        )

        assert (ranking.cells, pair.cells, pair.better) == (2, 2, "b")
        assert ranking.errors == pytest.approx((0.2, 0.3))

    def test_who_answers_few_is_never_nearest(self):
        """
        One cell of ten, and right there: it is named with what it answers, and the others are
        compared on all ten.
        """
        ranking, pair = compared(
            rows("a", [1.2] * 10), rows("b", [1.3] * 10), rows("lucky", {"c3": 1.0})
        )

        assert ranking.left_out == {"lucky": "it answers 1 of 10 cells"}
        assert (ranking.models, ranking.cells) == (("a", "b"), 10)
        assert {pair.better, pair.worse} == {"a", "b"}

    def test_who_answers_nowhere_is_named(self):
        """
        It was asked, and has no score.
        """
        ranking, _ = compared(rows("a", NEAR), rows("b", FAR), models=("a", "b", "spn-gc"))

        assert ranking.left_out == {"spn-gc": "it has no answer"}

    def test_without_a_common_cell_the_one_with_the_fewest_goes(self):
        """
        The others are compared.
        """
        ranking, pair = compared(
            rows("a", {"c0": 1.1, "c1": 1.1}), rows("b", {"c2": 1.0, "c3": 1.0}),
            rows("c", dict.fromkeys(("c0", "c1", "c2", "c3"), 1.2)),
        )  # fmt: skip

        assert ranking.left_out == {"b": "it answers no cell that all others answer"}
        assert (pair.better, pair.worse, pair.cells) == ("a", "c", 2)

    def test_two_without_a_common_cell_are_not_compared(self):
        """
        One of them is ranked, alone.
        """
        (ranking,), pairs = compare([*rows("a", {"c0": 1.1}), *rows("b", {"c1": 1.0})], {})

        assert (ranking.models, len(ranking.left_out), pairs) == (("a",), 1, [])


class TestFrame:
    def test_cells_that_are_mostly_frame_say_nothing_of_jobs(self):
        """
        A share of 30 % still counts, 31 % does not; bodies are compared in all cells.
        """
        scores = [
            each
            for quantity in ("job_s", "body_s")
            for model, shares in (("a", FAR), ("b", NEAR))
            for each in rows(model, shares, quantity=quantity)
        ]

        rankings, _ = compare(scores, {"c0": 0.31, "c1": 0.30})

        assert {each.quantity: (each.cells, each.reason) for each in rankings} == {
            "job_s": (3, "the frame exceeds 30 % of the job in 1 of 4 cells"),
            "body_s": (4, ""),
        }

    def test_where_every_cell_is_there_is_no_verdict(self):
        """
        And the reason is the frame.
        """
        (ranking,), pairs = compare(
            [*rows("a", FAR), *rows("b", NEAR)], dict.fromkeys(("c0", "c1", "c2", "c3"), 0.7)
        )

        assert (ranking.models, ranking.nearest, ranking.cells, pairs) == ((), (), 0, [])
        assert ranking.reason == "the frame exceeds 30 % of the job in 4 of 4 cells"
