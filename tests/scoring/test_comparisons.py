"""
Tests for `harness.scoring.comparisons`: who is compared where, and what is said of each pair.
"""

import math

from itertools import chain

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.base.records.question import Question
from harness.base.records.score import Drift, Score
from harness.scoring import relative_error, signed_error
from harness.scoring.any_profile import Anew, ProfileSpread, profile_spread, widened
from harness.scoring.comparisons import (
    DRIFT_LEAVES_IT_OPEN,
    UNLEARNT,
    compare,
    mean_error,
    ranked_rows,
    same_predictions,
    scores_by_model,
    units_of,
)
from harness.scoring.remedies import Remedy, remedy_text
from harness.scoring.speeds import ReadAt


def rows(
    model,
    shares,
    floor=0.01,
    *,
    quantity="job_s",
    speed="raw",
    trials=3,
    inputs=None,
    measured_s=100.0,
    in_sample=None,
):
    """
    Scores of a model whose predictions are these *shares* of the measured times, by cell.
    """
    cells = shares if isinstance(shares, dict) else {f"c{i}": s for i, s in enumerate(shares)}
    return [
        Score(
            model=model, cell=cell, level="job", quantity=quantity, speed=speed,
            predicted_s=share * measured_s, measured_s=measured_s, trials=trials, floor=floor,
            signed_error=signed_error(share, 1.0), relative_error=relative_error(share, 1.0),
            input=inputs[place] if inputs else "", in_sample_miss=in_sample,
        )
        for place, (cell, share) in enumerate(cells.items())
    ]  # fmt: skip


def compared(*scores, **arguments):
    """
    The one ranking and the one comparison of these scores.
    """
    (ranking,), (comparison,) = compare([*chain(*scores)], **arguments)
    return ranking, comparison


def asked(*scores, nearer=("a", "b"), scope="jobs", **arguments):
    """
    The comparisons that the question asks for: whether the first is nearer than the others.
    """
    question = Question(nearer=nearer, scope=scope)
    _, pairs = compare([*chain(*scores)], question=question, **arguments)
    return [pair for pair in pairs if pair.family == "asked"]


JOBS = "; this holds for these jobs"
FAR = [1.30, 1.28, 1.33, 1.31, 1.27, 1.34]
NEAR = [1.05, 1.06, 1.04, 1.05, 1.05, 1.06]
# Chance gives as much as between these two in 3.1 % of cases, and of all three in 6.2 %.
CLOSE = {
    "a": [1.12, 1.13, 1.15, 1.19, 1.11, 1.14, 1.10, 1.12],
    "b": [1.21, 1.13, 1.32, 1.19, 1.17, 1.32, 1.13, 1.17],
    "c": [1.12, 1.25, 1.01, 1.10, 1.45, 1.23, 1.16, 1.26],
}
OPEN = [1.60, 1.00, 1.20, 1.00, 1.30, 1.02]


class TestVerdicts:
    def test_nearer_is_the_model_with_the_smaller_error(self):
        """
        5 % against 31 % in six cells: the nearer model is named first, the difference is below 0,
        and two of 64 flips are as clear.
        """
        ranking, pair = compared(rows("whatif", FAR), rows("prophet", NEAR))

        assert (pair.better, pair.worse, pair.verdict, pair.cells) == (
            "prophet", "whatif", "nearer", 6,
        )  # fmt: skip
        assert (pair.quantity, pair.speed, pair.family) == ("job_s", "raw", "explored")
        assert pair.difference == pytest.approx(-1.52 / 6)
        assert pair.low < pair.difference < pair.high < 0
        assert pair.chance == 2 / 64
        assert pair.errors == pytest.approx((0.31 / 6, 1.83 / 6))
        assert (ranking.models, ranking.nearest) == (("prophet", "whatif"), ("prophet",))
        assert (ranking.quantity, ranking.speed, ranking.reason) == ("job_s", "raw", "")
        assert ranking.errors == pytest.approx((0.31 / 6, 1.83 / 6))
        assert pair.reason == f"chance gives as much in at most 3.1 % of cases{JOBS}"

    def test_differences_that_scatter_over_the_cells_decide_nothing(self):
        """
        The mean differs by 9 points, far more than the floors, and the cells disagree: what counts
        is how the differences vary, not the noise alone.
        """
        _, pair = compared(rows("a", [1.1] * 6), rows("b", OPEN))

        assert (pair.verdict, pair.better) == ("undecided", "a")
        assert pair.chance > 0.05
        assert pair.low < 0 < pair.high
        assert pair.reason.endswith(" more cells would show that one is nearer (285 min of jobs)")

    @pytest.mark.parametrize("floor", [None, 0.0, 0.2])
    def test_the_noise_need_not_be_known(self, floor):
        """
        Single trials, or repeats that never differ: what varies over the cells is what is tested.
        """
        _, pair = compared(rows("a", FAR, floor), rows("b", NEAR, floor))

        assert (pair.verdict, pair.chance) == ("nearer", 2 / 64)

    def test_models_within_two_points_are_equal(self):
        """
        Where the whole interval lies inside, although chance would hardly give as much.
        """
        ranking, pair = compared(rows("a", [1.10] * 6), rows("b", [1.11] * 5 + [1.112]))

        assert (pair.verdict, ranking.nearest) == ("equal", ("a", "b"))
        assert pair.chance == 2 / 64
        assert pair.reason == f"their errors differ by less than 2 points{JOBS}"

    @pytest.mark.parametrize(("gap", "verdict"), [(0.0199, "equal"), (0.0201, "nearer")])
    def test_the_margin_is_two_points(self, gap, verdict):
        """
        Of a difference that hardly varies, in either direction.
        """
        lengths = [1.10 + gap + 1e-6 * place for place in range(6)]
        shorts = [0.90 - gap - 1e-6 * place for place in range(6)]

        assert compared(rows("a", [1.10] * 6), rows("b", lengths))[1].verdict == verdict
        assert compared(rows("a", [0.90] * 6), rows("b", shorts))[1].verdict == verdict
        (pair,) = asked(rows("b", [1.10] * 6), rows("a", lengths))
        assert pair.verdict == {"nearer": "undecided"}.get(verdict, verdict)

    def test_a_small_difference_that_varies_is_not_equal(self):
        """
        One end beyond two points leaves it open.
        """
        varied = [1.14, 1.09, 1.12, 1.10, 1.13, 1.11]
        above = compared(rows("a", [1.1] * 6), rows("b", varied))[1]
        assert above.verdict == "undecided"
        assert above.low < -0.02 < above.high < 0.02
        (mirrored,) = asked(rows("a", varied), rows("b", [1.1] * 6))
        assert mirrored.verdict == "undecided"
        assert -0.02 < mirrored.low < 0.02 < mirrored.high

    def test_more_pairs_need_more_proof(self):
        """
        What is proved of two models is not, where nine have been compared.
        """
        generator = np.random.default_rng(1)
        first, second = rows("a", CLOSE["a"]), rows("b", CLOSE["b"])
        others = [
            rows(f"m{place}", 1 + np.abs(0.25 + 0.15 * generator.standard_normal(8)))
            for place in range(7)
        ]

        alone = compared(first, second)[1]
        _, pairs = compare([*chain(first, second, *others)])

        (among,) = [pair for pair in pairs if {pair.better, pair.worse} == {"a", "b"}]
        assert (alone.verdict, among.verdict, len(pairs)) == ("nearer", "undecided", 36)
        assert alone.chance < 0.05 < among.chance
        assert among.high > alone.high

    def test_a_look_has_a_level_of_its_own(self):
        """
        3.1 % is enough once, and not where eight looks are taken; the interval is wider.
        """
        once = compared(rows("a", NEAR), rows("b", FAR))[1]
        of_eight = compared(rows("a", NEAR), rows("b", FAR), error=0.012)[1]

        assert (once.verdict, of_eight.verdict) == ("nearer", "undecided")
        assert once.chance == of_eight.chance == 2 / 64
        assert of_eight.low < once.low

    def test_an_interval_without_a_bound_says_so(self):
        """
        Of six equal gaps, where no flip is allowed to be as clear.
        """
        _, pair = compared(rows("a", [1.25] * 6), rows("b", [1.5] * 6), error=0.012)

        assert (pair.low, pair.high, pair.verdict) == (None, None, "undecided")

    @given(st.lists(st.tuples(*[st.floats(0.5, 2)] * 3), min_size=1, max_size=7))
    def test_the_better_model_is_named_first(self, shares):
        """
        Whatever the order of the models.
        """
        models = [
            rows(name, of_model)
            for name, of_model in zip("abc", zip(*shares, strict=True), strict=True)
        ]
        (ranking,), pairs = compare([*chain(*models)])
        errors = dict(zip(ranking.models, ranking.errors, strict=True))

        for pair in pairs:
            assert pair.difference == pytest.approx(errors[pair.better] - errors[pair.worse])
            assert pair.errors == (errors[pair.better], errors[pair.worse])
            assert pair.difference <= 1e-12
            assert pair.low is None or pair.low - 1e-9 <= pair.difference
            assert pair.high is None or pair.difference <= pair.high + 1e-9
        assert ranking.nearest[0] == ranking.models[0]
        assert len(pairs) == 3

    @given(st.randoms())
    def test_the_order_of_scores_does_not_matter(self, random):
        """
        Nor who comes first among the models.
        """
        scores = [*rows("a", NEAR), *rows("b", FAR), *rows("c", OPEN)]
        question = Question(nearer=("a", "c"))
        mixed = random.sample(scores, len(scores))

        assert compare(mixed, question=question) == compare(scores, question=question)

    @pytest.mark.parametrize("share", [math.nan, math.inf])
    def test_what_is_no_number_never_gets_here(self, share):
        """
        Errors refuse it.
        """
        with pytest.raises(ModelError, match="not both finite"):
            rows("a", [share])


class TestFewUnits:
    @pytest.mark.parametrize(
        ("cells", "reason"),
        [(5, "from 6 cells on it can be tested: 1 more cell"),
         (4, "from 6 cells on it can be tested: 2 more cells"),
         (1, "from 6 cells on it can be tested: 5 more cells")],
    )  # fmt: skip
    def test_tell_nothing(self, cells, reason):
        """
        However clear it looks: no chance is said, and the range of the cells stands for an
        interval.
        """
        ranking, pair = compared(rows("a", NEAR[:cells]), rows("b", FAR[:cells]))
        gaps = [near - far for near, far in zip(NEAR[:cells], FAR[:cells], strict=True)]

        assert (pair.verdict, pair.chance, pair.reason) == ("undecided", None, reason)
        assert (pair.low, pair.high) == pytest.approx((min(gaps), max(gaps)))
        assert ranking.nearest == ("a", "b")

    def test_a_range_inside_the_margin_is_not_equal(self):
        """
        Five cells say nothing of a sixth.
        """
        assert compared(rows("a", [1.1] * 5), rows("b", [1.101] * 5))[1].verdict == "undecided"

    def test_asked_is_no_better_than_explored(self):
        """
        Five cells are five cells.
        """
        (pair,) = asked(rows("a", NEAR[:5]), rows("b", FAR[:5]))

        assert (pair.verdict, pair.chance) == ("undecided", None)
        assert pair.reason == "from 6 cells on it can be tested: 1 more cell"


class TestSame:
    def test_predictions_are_equal_without_any_test(self):
        """
        Nothing needs to be measured twice for that, nor in six cells.
        """
        for shares in (FAR, FAR[:1]):
            ranking, pair = compared(rows("a", shares, None), rows("b", shares, None))

            assert (pair.verdict, pair.difference, pair.chance) == ("equal", 0, 1)
            assert (pair.low, pair.high, pair.cells) == (0, 0, len(shares))
            assert pair.reason == "both predict the same times"
            assert (pair.quantity, pair.speed, pair.family) == ("job_s", "raw", "explored")
            assert pair.errors == ranking.errors
            assert (pair.better, pair.worse) == ranking.models == ranking.nearest

    def test_counts_once_in_its_family(self):
        """
        What is proved of a pair stays proved where a third model is one of them by another name,
        which has the same verdict.
        """
        _, alone = compared(rows("a", NEAR), rows("b", OPEN))
        _, pairs = compare([*rows("a", NEAR), *rows("b", OPEN), *rows("c", OPEN)])

        found = {(pair.better, pair.worse): pair for pair in pairs}
        assert found["a", "b"] == alone
        assert found["a", "c"] == alone.model_copy(update={"worse": "c"})
        assert found["b", "c"].reason == "both predict the same times"

    def test_asked_of_each_other_they_are_equal_and_others_tested(self):
        """
        In one family.
        """
        same, other = asked(
            rows("a", NEAR), rows("b", NEAR), rows("c", FAR), nearer=("a", "b", "c")
        )

        assert (same.verdict, same.family, same.worse) == ("equal", "asked", "b")
        assert (other.verdict, other.chance) == ("nearer", 1 / 64)

    def test_is_what_rounding_makes_of_it(self):
        """
        A share of 1e-9 in one cell is the same, 1e-8 is not; in the order of the rows.
        """
        three = {
            "a": rows("a", NEAR), "b": rows("b", [*NEAR[:5], NEAR[5] * (1 + 1e-8)]),
            "c": rows("c", [NEAR[0] * (1 + 5e-10), *NEAR[1:]]),
            "d": rows("d", [*NEAR[:5], NEAR[5] * (1 + 1.05e-8)]),
        }  # fmt: skip

        assert same_predictions(three) == {"a": "a", "b": "b", "c": "a", "d": "b"}

    def test_nothing_is_the_same_as_nothing_only(self):
        """
        A prediction of 0 s is no small share of another time.
        """
        two = {"a": rows("a", [0.0]), "b": rows("b", [1e-12]), "c": rows("c", [0.0])}

        assert same_predictions(two) == {"a": "a", "b": "b", "c": "a"}


class TestAsked:
    def test_is_one_sided_and_in_the_order_of_the_question(self):
        """
        One flip of 64 is as clear for the first, whatever the others are named.
        """
        (pair,) = asked(rows("b", FAR), rows("a", NEAR))

        assert (pair.better, pair.worse, pair.verdict, pair.chance) == ("a", "b", "nearer", 1 / 64)
        assert pair.reason == f"chance gives as much in at most 1.6 % of cases{JOBS}"
        assert pair.errors == pytest.approx((0.31 / 6, 1.83 / 6))

    def test_the_first_may_be_the_worse(self):
        """
        It is named first all the same, and what is tested does not hold: no verdict, and a
        difference above 0.
        """
        (pair,) = asked(rows("a", FAR), rows("b", NEAR))

        assert (pair.better, pair.verdict, pair.chance) == ("a", "undecided", 1.0)
        assert 0 < pair.low < pair.difference < pair.high
        assert pair.errors[0] > pair.errors[1]

    def test_each_other_is_a_pair_of_one_family(self):
        """
        Not all pairs: what is not asked does not count.
        """
        scores = rows("a", NEAR), rows("b", FAR), rows("c", OPEN), rows("d", [9.0] * 6)
        pairs = asked(*scores, nearer=("a", "b", "c"))
        alone = asked(*scores, nearer=("a", "c"))

        assert [(pair.better, pair.worse) for pair in pairs] == [("a", "b"), ("a", "c")]
        assert pairs[0].chance == 1 / 64
        assert pairs[1].chance == alone[0].chance

    def test_is_not_found_where_it_was_explored(self):
        """
        Beside a sealed question everything else is explored; sealed and afterwards are asked.
        """
        models = rows("a", NEAR), rows("b", FAR)

        counts = {how: len(asked(*models, asked=how)) for how in ("sealed", "afterwards")}
        assert counts == {"sealed": 1, "afterwards": 1}
        assert asked(*models, asked="explored") == []
        _, pairs = compare([*chain(*models)], question=Question(how_far="a"))
        assert [pair.family for pair in pairs] == ["explored"]

    def test_is_on_the_cells_that_the_asked_models_share(self):
        """
        A third model that answers seven of eight cells takes none from them.
        """
        a, b = rows("a", [*NEAR, 1.04, 1.05]), rows("b", [*FAR, 1.28, 1.33])
        third = rows("c", [*OPEN, 1.5])
        question = Question(nearer=("a", "b"))

        _, pairs = compare([*a, *b, *third], question=question)
        cells = {(pair.family, pair.worse, pair.better): pair.cells for pair in pairs}
        assert cells == {
            ("asked", "b", "a"): 8, ("explored", "b", "a"): 7, ("explored", "c", "a"): 7,
            ("explored", "b", "c"): 7,
        }  # fmt: skip

    def test_of_a_model_that_answers_nowhere_nothing_is_tested(self):
        """
        Nor of two that share no cell.
        """
        assert asked(rows("a", NEAR), rows("b", FAR), nearer=("a", "x")) == []
        assert asked(rows("a", {"c0": 1.0}), rows("b", {"c1": 1.0})) == []

    def test_the_other_speed_is_explored_alone(self):
        """
        A question is about job times at one speed.
        """
        scores = [
            row
            for speed in ("reference", "raw")
            for model, shares in (("a", NEAR), ("b", FAR))
            for row in rows(model, shares, speed=speed)
        ]

        explored = [("explored", "raw"), ("explored", "reference")]
        for speed in ("raw", "reference"):
            read_at = ReadAt(speed)
            _, pairs = compare(scores, question=Question(nearer=("a", "b")), read_at=read_at)
            found = sorted((pair.family, pair.speed) for pair in pairs)
            assert found == [("asked", speed), *explored]

    @pytest.mark.parametrize(
        ("half", "verdict", "reason"),
        [
            (0.0, "nearer", f"chance gives as much in at most 1.6 % of cases{JOBS}"),
            (0.02, "nearer", f"chance gives as much in at most 1.6 % of cases{JOBS}"),
            (0.1, "undecided", DRIFT_LEAVES_IT_OPEN),
        ],
    )
    def test_holds_at_both_ends_of_the_drift(self, half, verdict, reason):
        """
        A says 5 % too much everywhere and b 12: were the machine slower by a tenth, b was nearer.
        """
        drift = Drift(ratio=1.2, low=1.2 * (1 - half), high=1.2 * (1 + half), sentinels=4, cells=2)
        models = (("b", [1.12] * 6), ("a", [1.05] * 6))
        scores = [row for name, shares in models for row in rows(name, shares, speed="reference")]

        question = Question(nearer=("a", "b"))
        _, pairs = compare(scores, question=question, read_at=ReadAt.of((), drift))
        (pair,) = [pair for pair in pairs if pair.family == "asked"]

        assert (pair.verdict, pair.reason) == (verdict, reason)
        at_ends = [
            abs(1.05 * stretch - 1) - abs(1.12 * stretch - 1)
            for stretch in (1.0, 1 - half, 1 + half)
        ]
        assert pair.difference == pytest.approx(at_ends[0])
        assert (pair.low, pair.high) == (pytest.approx(min(at_ends)), pytest.approx(max(at_ends)))


class TestScope:
    def test_cells_of_one_input_are_one_unit_where_inputs_are_asked_about(self):
        """
        Twelve cells of six inputs: a flip of 64; on these jobs they are twelve.
        """
        inputs = [name for name in "abcdef" for _ in range(2)]
        a = rows("a", [share for share in NEAR for _ in range(2)], inputs=inputs)
        b = rows("b", [share for share in FAR for _ in range(2)], inputs=inputs)

        (of_inputs,) = asked(a, b, scope="inputs")
        (of_jobs,) = asked(a, b)

        assert (of_inputs.chance, of_jobs.chance) == (1 / 64, 1 / 4096)
        assert of_inputs.reason == (
            "chance gives as much in at most 1.6 % of cases; this holds for inputs of this kind"
            " (6 of them)"
        )
        assert of_jobs.reason == f"chance gives as much in at most 0.024 % of cases{JOBS}"

    def test_five_inputs_are_too_few(self):
        """
        However many cells they have.
        """
        inputs = "aabbccddee"
        (pair,) = asked(
            rows("a", [1.05] * 10, inputs=inputs), rows("b", [1.4] * 10, inputs=inputs),
            scope="inputs",
        )  # fmt: skip

        assert (pair.verdict, pair.chance) == ("undecided", None)
        assert pair.reason == "from 6 inputs on it can be tested: 1 more input"
        one = asked(rows("a", [1.05] * 4, inputs="aaaa"), rows("b", [1.4] * 4), scope="inputs")
        assert one[0].reason == "from 6 inputs on it can be tested: 5 more inputs"

    def test_an_input_that_is_not_known_is_one_of_its_own(self):
        """
        Of jobs each cell is one.
        """
        cells = rows("a", [1.0] * 4, inputs=["x", "", "x", ""])

        assert units_of(cells, "inputs") == [
            "000002 x", "000000 \0c1", "000002 x", "000001 \0c3"
        ]  # fmt: skip
        assert units_of(cells, "jobs") == ["000000 c0", "000001 c1", "000002 c2", "000003 c3"]

    def test_units_are_in_the_order_of_their_times(self):
        """
        However cells are called: the same signs are drawn for the same cells.
        """
        slow = rows("a", [1.0] * 3)
        times = (30.0, 10.0, 20.0)
        cells = [c.model_copy(update={"measured_s": t}) for c, t in zip(slow, times, strict=True)]
        renamed = [
            c.model_copy(update={"cell": name}) for c, name in zip(cells, "xzy", strict=True)
        ]

        assert units_of(cells, "jobs") == ["000002 c0", "000000 c1", "000001 c2"]
        assert [unit[:6] for unit in units_of(renamed, "jobs")] == ["000002", "000000", "000001"]

    def test_equal_holds_for_the_scope_too(self):
        """
        And what is undecided holds for nothing.
        """
        near = rows("a", [1.1] * 6, inputs="abcdef"), rows("b", [1.1001] * 6, inputs="abcdef")

        (pair,) = asked(*near, scope="inputs")
        assert pair.verdict == "equal"
        assert pair.reason.endswith("; this holds for inputs of this kind (6 of them)")


class TestWhatWouldTell:
    @pytest.mark.parametrize(
        ("scope", "noun", "family", "sides"),
        [("jobs", "cell", "explored", 2), ("jobs", "cell", "asked", 1),
         ("inputs", "input", "asked", 1)],
    )  # fmt: skip
    def test_the_level_is_shared_by_the_pairs_that_are_open(self, scope, noun, family, sides):
        """
        Three models, two of which are open with one another: the level is divided by the pairs
        that no verdict has, and by both sides where either may be nearer.
        """
        scores = {
            "a": rows("a", [1.1, 1.12, 1.1, 1.08, 1.1, 1.1], 0.03, inputs="abcdef"),
            "b": rows("b", [1.35, 1.0, 1.2, 1.15, 1.3, 1.02], 0.03, inputs="abcdef"),
            "c": rows("c", [1.3, 1.05, 1.25, 1.0, 1.22, 1.1], 0.03, inputs="abcdef"),
            "d": rows("d", [3.0, 3.1, 3.2, 3.0, 3.3, 2.9], 0.03, inputs="abcdef"),
        }
        question = Question(nearer=("a", "b", "c", "d"), scope=scope)
        _, pairs = compare([*chain(*scores.values())], question=question)
        of_family = [pair for pair in pairs if pair.family == family]
        open_pairs = [pair for pair in of_family if pair.verdict == "undecided"]

        assert len(open_pairs) == {"asked": 2, "explored": 3}[family]
        for pair in open_pairs:
            remedy = Remedy(
                scores=[scores[pair.better], scores[pair.worse]],
                units=units_of(scores["a"], scope), noun=noun,
                error=0.05 / len(open_pairs) / sides, margin=0.02,
            )  # fmt: skip
            assert pair.reason == remedy_text(remedy)


class TestAnyProfile:
    def judged(self, moves, *, nearer=None):
        """
        The pair of a model at 5 % and one at 30 %, whose times move by so much with each profile.
        """
        near, far = rows("a", NEAR), rows("b", FAR)
        anew = {("a", row.cell): Anew("w", [row.predicted_s] * len(moves)) for row in near}
        for row in far:
            times_s = [None if move is None else row.predicted_s + move for move in moves]
            anew["b", row.cell] = Anew("w", times_s)
        if nearer:
            return asked(near, far, nearer=nearer, anew=anew)[0]
        return compared(near, far, anew=anew)[1]

    def test_a_profile_that_hardly_varies_changes_nothing(self):
        """
        25 points apart, and a point more or less by trials that are left out.
        """
        pair = self.judged((1, -1, 0.5, -0.5))

        assert (pair.verdict, pair.any_profile) == ("nearer", "nearer")
        assert pair.any_low < pair.low <= pair.difference <= pair.high < pair.any_high < 0
        assert pair.reason.endswith(f"{JOBS}, with any profile of this kind")

    def test_one_that_varies_much_leaves_it_open(self):
        """
        The verdict is one with this profile, and says so.
        """
        pair = self.judged((15, -15, 12, -14))

        assert (pair.verdict, pair.any_profile) == ("nearer", "undecided")
        assert pair.any_low < 0 < pair.any_high
        ends = f"{100 * pair.any_low:+.1f} to {100 * pair.any_high:+.1f}"
        says = f", with this profile: with any of its kind they differ by {ends} points"
        assert pair.reason.endswith(JOBS + says)

    @pytest.mark.parametrize("moves", [(), (0, 1, None, 0)])
    def test_where_it_is_not_known_nothing_holds_with_another(self, moves):
        """
        Trials that were not repeated, or no answer without one of them.
        """
        pair = self.judged(moves)

        assert (pair.verdict, pair.any_profile) == ("nearer", "undecided")
        assert (pair.any_low, pair.any_high) == (None, None)
        assert pair.reason.endswith(f"{JOBS}, with this profile: how far it varies is not known")

    def test_who_is_farther_may_be_so_with_any_profile(self):
        """
        No verdict, but an interval above 0 with what profiles add.
        """
        pair = self.judged((1, -1, 1, -1), nearer=("b", "a"))

        assert (pair.verdict, pair.any_profile) == ("undecided", "undecided")
        assert 0 < pair.any_low < pair.low

    def test_what_is_open_is_open_with_any(self):
        """
        There is nothing to hold.
        """
        a, b = rows("a", [1.1] * 6), rows("b", OPEN)
        anew = {(row.model, row.cell): Anew("w", [row.predicted_s] * 4)
                for row in [*a, *b]}  # fmt: skip
        pair = compared(a, b, anew=anew)[1]

        assert (pair.verdict, pair.any_profile, pair.any_low) == ("undecided", None, None)
        assert "profile" not in pair.reason

    def test_equal_predictions_are_equal_with_any(self):
        """
        They come of the same profile.
        """
        scores = rows("a", NEAR), rows("b", NEAR)

        assert compared(*scores, anew={})[1].any_profile == "equal"
        assert compared(*scores)[1].any_profile is None


class TestProfileSpread:
    def test_is_that_of_a_mean_of_repeats(self):
        """
        A model that predicts the mean of n trials of one cell, too long for what was measured: its
        error varies as their mean does, s / sqrt(n) over the measured time, with n - 1 degrees.
        """
        trials = np.array([110.0, 116.0, 124.0, 118.0])
        without = [(trials.sum() - each) / 3 for each in trials]
        (first,) = rows("a", [trials.mean() / 100])
        (second,) = rows("b", [1.5])
        anew = {
            ("a", "c0"): Anew("w", without),
            ("b", "c0"): Anew("w", [150.0] * 4),
        }

        spread = profile_spread([first], [second], anew)

        expected = trials.std(ddof=1) / 2 / 100
        assert spread == (pytest.approx(expected), pytest.approx(3))

    def test_profiles_of_workloads_vary_on_their_own(self):
        """
        Squares add, and so do degrees of freedom where both vary alike.
        """
        first, second = rows("a", [1.2, 1.2]), rows("b", [1.5, 1.5])
        anew = {(model, cell): Anew(profile, [time_s + move for move in moves])
                for cell, profile in (("c0", "w"), ("c1", "v"))
                for model, time_s, moves in (("a", 120.0, (2, -2, 2, -2)), ("b", 150.0, (0,) * 4))
                }  # fmt: skip

        one = profile_spread(first[:1], second[:1], anew)
        both = profile_spread(first, second, anew)

        assert both.deviation == pytest.approx(one.deviation / 2**0.5)
        assert (one.freedom, both.freedom) == (pytest.approx(3), pytest.approx(6))

    def test_one_that_never_varies_is_certain(self):
        """
        The ends stay.
        """
        first, second = rows("a", [1.2]), rows("b", [1.5])
        anew = {("a", "c0"): Anew("w", [120.0] * 4),
                ("b", "c0"): Anew("w", [150.0] * 4)}  # fmt: skip
        spread = profile_spread(first, second, anew)

        assert spread == (0.0, 3.0)
        assert widened((-0.4, -0.2), -0.3, spread, 0.05) == pytest.approx((-0.4, -0.2))

    def test_what_profiles_add_is_added_as_squares(self):
        """
        Student's t at the level of one side; an open end stays open.
        """
        spread = ProfileSpread(0.1, 4.0)
        reach = 2.131846786 * 0.1

        low, high = widened((-0.4, math.inf), -0.3, spread, 0.05)

        assert (low, high) == (pytest.approx(-0.3 - math.hypot(0.1, reach)), math.inf)


class TestEarlier:
    """Models that had been asked of the same trials before."""

    MODELS = rows("a", CLOSE["a"]), rows("b", CLOSE["b"])
    WILD = CLOSE["c"]

    def test_count_in_what_is_explored(self):
        """
        The same pair, and two more that had been tried: what was proved is not.
        """
        _, alone = compared(*self.MODELS)
        _, pair = compared(*self.MODELS, earlier=rows("old", self.WILD))

        assert (alone.verdict, alone.chance) == ("nearer", 8 / 256)
        assert (pair.verdict, pair.chance) == ("undecided", 16 / 256)
        assert (pair.better, pair.worse) == ("a", "b")

    def test_are_not_ranked(self):
        """
        They were asked of another run.
        """
        ranking, _ = compared(*self.MODELS, earlier=rows("old", [1.0] * 8))

        assert ranking.models == ("a", "b")

    @pytest.mark.parametrize("shares", [CLOSE["c"][:7], CLOSE["a"]])
    def test_that_lack_a_cell_or_say_the_same_add_nothing(self, shares):
        """
        The family is as it was.
        """
        assert compared(*self.MODELS, earlier=rows("old", shares)) == compared(*self.MODELS)

    def test_of_the_same_name_are_others(self):
        """
        The same model by an older profile is one more try.
        """
        again = compared(*self.MODELS, earlier=rows("b", self.WILD))

        assert again == compared(*self.MODELS, earlier=rows("old", self.WILD))
        assert again != compared(*self.MODELS)

    def test_do_not_count_in_what_is_asked(self):
        """
        The question was sealed before.
        """
        earlier = rows("old", self.WILD)

        assert asked(*self.MODELS, earlier=earlier) == asked(*self.MODELS)

    def test_without_models_there_is_nothing_to_compare(self):
        """
        However many had been asked.
        """
        assert compare([], earlier=rows("old", self.WILD)) == ([], [])

    def test_are_kept_by_model_and_cell(self):
        """
        Each with its score.
        """
        scores = [*rows("a", [1.0, 1.1]), *rows("b", [1.2])]

        assert scores_by_model(scores) == {
            "a": {"c0": scores[0], "c1": scores[1]}, "b": {"c0": scores[2]},
        }  # fmt: skip


class TestQuantities:
    def test_job_times_alone_are_compared(self):
        """
        Bodies say where an error comes from: they are ranked, and none is nearest.
        """
        scores = [
            row
            for quantity in ("body_s", "job_s", "map_task_s")
            for model, shares in (("a", FAR), ("b", NEAR))
            for row in rows(model, shares, quantity=quantity)
        ]

        rankings, pairs = compare(scores)
        assert [pair.quantity for pair in pairs] == ["job_s"]
        assert {ranking.quantity: (ranking.models, ranking.nearest) for ranking in rankings} == {
            "body_s": (("b", "a"), ()), "job_s": (("b", "a"), ("b",)),
            "map_task_s": (("b", "a"), ()),
        }  # fmt: skip

    def test_each_speed_has_a_ranking(self):
        """
        And a family of its own.
        """
        scores = [*rows("a", NEAR), *rows("b", FAR), *rows("a", FAR, speed="reference"),
                  *rows("b", NEAR, speed="reference")]  # fmt: skip

        rankings, pairs = compare(scores)
        assert [(ranking.speed, ranking.nearest) for ranking in rankings] == [
            ("raw", ("a",)), ("reference", ("b",)),
        ]  # fmt: skip
        assert [(pair.speed, pair.better, pair.chance) for pair in pairs] == [
            ("raw", "a", 2 / 64), ("reference", "b", 2 / 64),
        ]  # fmt: skip

    def test_one_model_is_ranked_and_not_compared(self):
        """
        There is nobody that it could be nearer than.
        """
        (ranking,), pairs = compare(rows("a", NEAR))

        assert (ranking.models, ranking.nearest, pairs) == (("a",), (), [])


class TestCommonCells:
    def test_only_cells_that_all_answer_count(self):
        """
        An easy cell that one model alone answers wins nothing.
        """
        ranking, pair = compared(
            rows("a", {"c0": 1.0, "c1": 1.3, "c2": 1.3}), rows("b", {"c1": 1.2, "c2": 1.2})
        )

        assert (ranking.cells, pair.cells, pair.better) == (2, 2, "b")
        assert ranking.cells_left_out == {"a model that is compared has no answer": 1}
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
        (ranking,), pairs = compare([*rows("a", {"c0": 1.1}), *rows("b", {"c1": 1.0})])

        assert (ranking.models, len(ranking.left_out), pairs) == (("a",), 1, [])

    def test_half_as_many_answers_are_enough(self):
        """
        Three of six are ranked, two of six are not.
        """
        six = [f"c{place}" for place in range(6)]
        models = {"a": six, "b": six[:3], "c": six[:2]}
        scores = {
            model: {row.cell: row for row in rows(model, dict.fromkeys(cells, 1.1))}
            for model, cells in models.items()
        }

        ranked, left_out = ranked_rows(scores)
        assert [*ranked] == ["a", "b"]
        assert left_out == {"c": "it answers 2 of 6 cells"}
        assert [score.cell for score in ranked["a"]] == ["c0", "c1", "c2"]

    def test_of_several_with_as_few_answers_the_last_by_name_goes(self):
        """
        Until the others share a cell.
        """
        scores = {
            model: {row.cell: row for row in rows(model, dict.fromkeys(cells, 1.1))}
            for model, cells in {"b": ["c0"], "a": ["c1"], "c": ["c1"]}.items()
        }

        ranked, left_out = ranked_rows(scores)
        assert [*ranked] == ["a"]
        assert [*left_out] == ["c", "b"]

    def test_the_nearest_comes_first_then_the_name(self):
        """
        Cells in the order of their names, means over all of them.
        """
        scores = {
            model: {row.cell: row for row in rows(model, {"c9": share, "c10": 1.0})}
            for model, share in (("z", 1.2), ("b", 1.4), ("a", 1.4))
        }

        ranked, _ = ranked_rows(scores)
        assert [*ranked] == ["z", "a", "b"]
        assert [score.cell for score in ranked["z"]] == ["c10", "c9"]
        assert mean_error(ranked["a"]) == pytest.approx(0.2)

    def test_who_does_not_reproduce_what_it_learnt_has_no_rank(self, monkeypatch):
        """
        Above a tenth of the job, whichever its sign; it is asked about all the same.
        """
        scores = [
            *rows("a", NEAR, in_sample=-0.11),
            *rows("b", FAR, in_sample=0.09),
            *rows("c", FAR),
        ]
        question = Question(nearer=("a", "b"))
        (ranking,), pairs = compare(scores, question=question)

        assert ranking.models == ("b", "c")
        assert ranking.left_out == {"a": UNLEARNT}
        assert [(pair.better, pair.worse) for pair in pairs if pair.family == "asked"] == [
            ("a", "b")
        ]

    def test_where_no_model_does_none_is_ranked(self, monkeypatch):
        """
        They are named with the reason.
        """
        (ranking,), pairs = compare(rows("a", NEAR, in_sample=0.2))

        assert (ranking.models, ranking.left_out, pairs) == ((), {"a": UNLEARNT}, [])

    def test_who_is_not_ranked_is_named_only_beside_others(self):
        """
        With no score at all there is no ranking.
        """
        assert compare([], models=("a",)) == ([], [])
        assert ranked_rows({}) == ({}, {})
