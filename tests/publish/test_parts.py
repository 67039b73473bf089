"""
Parts of a bundle one by one: the formulas of verify.py by hand, tables, the report as a PDF, texts.
"""

import math

from hashlib import shake_256
from itertools import combinations, product
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from harness.base.documents.document import Document, Figure, Figures, Section, Text, table
from harness.base.errors import DataError
from harness.base.records.prediction import Prediction
from harness.base.records.question import Question
from harness.base.records.score import Measurement
from harness.base.records.trial import Cell, ClusterSpec, Code, NodeSpec, WorkloadSpec
from harness.base.stats import flips
from harness.base.stats.resampling import mean_interval
from harness.base.units import MIB
from harness.observe.storage.opener import Opener
from harness.publish import verify
from harness.publish.compare import relative_change
from harness.publish.data import asked_columns, hardware, read_table, table_field
from harness.publish.paper import cleaned, pdf_blocks
from harness.publish.system import input_licences
from harness.scoring.claims import CLAIMS
from harness.scoring.controls import floor_of
from harness.scoring.score import score

FIX = "get the bundle again, or make it again: harness publish RUN -o DIR"


def asked(
    asks="how_far best", *, scope="jobs", extrapolate="false", level=0.05, cells=None,
    when="sealed", read_at="raw",
):  # fmt: skip
    """
    Tables of a run that say what is asked of it: *cells* have their range and their input.
    """
    about = {
        "asks": asks,
        "scope": scope,
        "extrapolate": extrapolate,
        "level": level,
        "asked": when,
        "read_at": read_at,
    }
    named = {cell: {"range": where, "input": name} for cell, (where, name) in (cells or {}).items()}
    return {"runs": {(): about}, "cells": {(cell,): named[cell] for cell in named}}


def table_of(errors, *, speed="raw", floor=0.02, measured=100.0):
    """
    Scores by model of job times that are off by these shares, cell by cell (`None`: no answer).
    """
    scores = {}
    for model, of_model in errors.items():
        for number, error in enumerate(of_model):
            if error is not None:
                scores[f"c{number:02}", model, "job_s", speed] = {
                    "predicted": measured * (1 + error), "measured": measured, "floor": floor,
                    "relative_error": abs(error),
                }  # fmt: skip
    return scores


def subject_of(errors, asks="how_far best", inputs=None, **options):
    """
    What is asked of these errors, in cells that are within what was profiled.
    """
    count = max(map(len, errors.values()), default=0)
    cells = {f"c{n:02}": ("inside", inputs[n] if inputs else "") for n in range(count)}
    run = asked(asks, cells=cells, **options)
    return verify.subject(run, table_of(errors), "raw")


def said(errors, asks, inputs=None, **options):
    """
    The answer to what is asked of these errors.
    """
    about = subject_of(errors, asks, inputs, **options)
    return verify.answer(about.asks, about, verify.compared(about, "raw"))


class TestRanking:
    def test_is_by_mean_errors_on_common_cells(self):
        """
        Of who is as far off the one whose name is first.
        """
        about = subject_of({"c": [0.1, 0.3], "b": [-0.2, 0.2], "a": [0.2, 0.1, 0.9]})

        assert (about.ranked, about.cells) == (["a", "b", "c"], ["c00", "c01"])
        assert about.error("a", about.cells) == pytest.approx(0.15)
        assert about.errors("b", ["c01", "c00"]) == pytest.approx([0.2, 0.2])

    def test_leaves_out_who_answers_less_than_half(self):
        """
        Half as many are enough.
        """
        about = subject_of({"a": [0.1] * 5, "b": [0.1] * 2, "c": [0.1] * 3})
        assert about.ranked == ["a", "c"]
        about = subject_of({"a": [0.1] * 4, "b": [0.1] * 2})
        assert (about.ranked, about.cells) == (["a", "b"], ["c00", "c01"])

    def test_leaves_out_who_has_fewest_answers_while_no_cell_is_common(self):
        """
        Of several the one whose name is last.
        """
        apart = {"a": [0.1, 0.1, None, None], "b": [None, None, 0.1, 0.1], "c": [0.5] * 4}
        about = subject_of(apart)
        assert (about.ranked, about.cells) == (["a", "c"], ["c00", "c01"])
        about = subject_of(apart | {"b": [None, None, 0.1, 0.1, 0.1]})
        assert (about.ranked, about.cells) == (["b", "c"], ["c02", "c03"])

    def test_is_of_cells_outside_of_what_was_profiled_where_that_is_asked(self):
        """
        At the speed that is asked for, by the job's time alone.
        """
        cells = {"c00": ("inside", ""), "c01": ("outside", ""), "c02": ("outside", "")}
        scores = table_of({"a": [0.1] * 3}) | table_of({"a": [0.5] * 3}, speed="reference")
        scores["c01", "a", "body_s", "raw"] = {"relative_error": 9.0}

        def cells_of(extrapolate, speed):
            about = verify.subject(asked(extrapolate=extrapolate, cells=cells), scores, speed)
            return about.cells, about.errors("a", about.cells)

        assert cells_of("true", "raw") == (["c01", "c02"], pytest.approx([0.1] * 2))
        assert cells_of("false", "reference") == (["c00", "c01", "c02"], pytest.approx([0.5] * 3))
        assert cells_of("out", "raw") == (["c00"], pytest.approx([0.1]))

    def test_of_nobody_is_empty(self):
        """
        And nothing is said.
        """
        about = subject_of({})

        assert (about.ranked, about.cells, verify.compared(about, "raw")) == ([], [], {})
        assert said({}, "how_far best") == "It cannot be told: no model has an answer."

    def test_has_units_that_are_cells_or_inputs(self):
        """
        A cell of which the input is not known is one of its own.
        """
        errors, inputs = {"a": [0.1] * 3}, ["x", "", "x"]
        by_scope = {
            scope: subject_of(errors, inputs=inputs, scope=scope).units(["c02", "c01"])
            for scope in ("jobs", "inputs")
        }

        assert by_scope == {"jobs": ["c02", "c01"], "inputs": ["x", "\0c01"]}


class TestAlike:
    def rows(self, **times):
        """
        Rows with these predicted times.
        """
        return {model: [{"predicted": t} for t in of_model] for model, of_model in times.items()}

    def test_are_predictions_that_differ_by_rounding(self):
        """
        In every cell; the first of them stands for all.
        """
        rows = self.rows(a=[1.0, 2.0], b=[1.0, 2.1], c=[1 + 5e-10, 2.0], d=[1.0, 2.1 - 1e-9])

        assert verify.first_alike(rows) == {"a": "a", "b": "b", "c": "a", "d": "b"}
        assert verify.first_alike(self.rows(a=[1.0], b=[1 + 2e-9])) == {"a": "a", "b": "b"}

    def test_are_equal_and_tested_once(self):
        """
        So a copy of a model costs no other pair its verdict.
        """
        errors = {"a": [0.01] * 6 + [0.02], "b": [0.2] * 7, "b2": [0.2] * 7}
        rows = verify.compared(subject_of(errors), "raw")
        alone = verify.compared(subject_of({name: errors[name] for name in "ab"}), "raw")

        pair = rows["job_s", "raw", "a", "b", "explored"]
        assert pair == alone["job_s", "raw", "a", "b", "explored"]
        assert rows["job_s", "raw", "a", "b2", "explored"] == pair
        assert rows["job_s", "raw", "b", "b2", "explored"] == {
            "difference": 0.0, "low": 0.0, "high": 0.0, "chance": 1.0, "verdict": "equal",
            "cells": 7,
        }  # fmt: skip


class TestFlips:
    @pytest.mark.parametrize("units", [6, 8, 9, 12])
    def test_of_few_units_are_all(self, units):
        """
        Each once, the first without a minus, and as the harness has them.
        """
        signs = self.signs(units)

        assert signs == [*product((1, -1), repeat=units)]
        assert signs == [tuple(row) for row in flips.flip_signs(units).tolist()]

    @pytest.mark.parametrize("units", [13, 16, 17, 96])
    def test_of_more_units_are_drawn_as_the_page_says(self, units):
        """
        By SHAKE-256 of the number, from the highest bit of the first byte on.
        """
        signs = self.signs(units)
        digits = "".join(f"{byte:08b}" for byte in shake_256(b"4095").digest((units + 7) // 8))

        assert len(signs) == 4096
        assert signs[0] == (1,) * units
        assert signs[4095] == tuple(-1 if digit == "1" else 1 for digit in digits[:units])
        assert signs == [tuple(row) for row in flips.flip_signs(units).tolist()]

    def signs(self, units):
        """
        Signs that the bytes of each flip stand for, read by what they do to one unit alone.
        """
        ones = [[float(place == unit) for place in range(units)] for unit in range(units)]
        drawn = verify.flip_bytes(units)
        return [*zip(*(map(int, verify.flipped_sums(one, drawn)) for one in ones), strict=True)]

    @pytest.mark.parametrize("units", [6, 8, 11])
    def test_sum_up_as_plainly(self, units):
        """
        Each sum by its own.
        """
        random = Random(units)
        values = [random.gauss(0, 1) for _ in range(units)]
        plain = [
            math.fsum(sign * value for sign, value in zip(signs, values, strict=True))
            for signs in product((1, -1), repeat=units)
        ]

        assert verify.flipped_sums(values, verify.flip_bytes(units)) == pytest.approx(plain)


class TestChances:
    @pytest.mark.parametrize(
        ("freedom", "t", "chance"),
        [
            (1, 1.0, 0.25),
            (1, -1.0, 0.75),
            (2, 0.0, 0.5),
            (10, 2.228139, 0.025),
            (5, 4.032143, 0.005),
        ],
    )
    def test_are_students(self, freedom, t, chance):
        """
        As tables print them.
        """
        assert verify.tail(freedom, t) == pytest.approx(chance, rel=1e-5)

    @pytest.mark.parametrize(("freedom", "t"), [(1, 12.7062), (5, 2.57058), (30, 2.04227)])
    def test_have_quantiles(self, freedom, t):
        """
        For an interval at 95 %; only below 16.
        """
        assert verify.t_quantile(freedom) == pytest.approx(t, rel=1e-5)

    def test_of_a_family_are_stepped_down(self):
        """
        The clearest is compared with the largest of all, the next one with the largest of the rest.
        """
        seen = [1.0, 3.0, 2.0]
        flipped = [[1.0, 0.5, 2.5, 0.1], [3.0, 0.2, 0.3, 0.4], [2.0, 2.2, 0.1, 0.2]]
        steps = [*verify.step_down(seen, flipped, 0.25)]

        # Largest of all: 3, 2.2, 2.5, 0.4; without the clearest: 2, 2.2, 2.5, 0.2; last: itself.
        assert steps == [(1, 0.25, 2.5), (2, 0.75, 2.2), (0, 0.75, 2.2)]

    def test_of_a_family_never_fall(self):
        """
        Nor do limits, once a chance is above the level; a level holds its own share of the flips.
        """
        steps = [*verify.step_down([5.0, 1.0], [[5.0, 6.0], [0.1, 1.0]], 0.5)]
        assert steps == [(0, 1.0, 5.0), (1, 1.0, 5.0)]
        (step,) = verify.step_down([1.0], [[1.0] + [0.0] * 19], 0.05)
        assert step == (0, 0.05, 0.0)
        assert [*verify.step_down([], [], 0.05)] == []

    def test_reach_what_is_seen_but_for_rounding(self):
        """
        The sum of the same numbers in another order.
        """
        ((_, chance, _),) = verify.step_down([1.0], [[1.0, 1 - 5e-10, 1 - 2e-9, 0.0]], 0.05)

        assert chance == 0.5

    @pytest.mark.parametrize("side", ["asked", "explored"])
    @pytest.mark.parametrize("count", [6, 11, 14])
    def test_are_those_of_the_harness(self, side, count):
        """
        With differences and ends, of units of several sizes as well.
        """
        for seed in range(6):
            random = Random(seed)
            pairs = random.randint(1, 4)
            gaps = [[random.gauss(-0.05, 0.1) for _ in range(count)] for _ in range(pairs)]
            gaps[0] = [0.0] * count if seed == 5 else gaps[0]
            units = [f"u{random.randrange(9) if seed % 2 and number > 5 else number:02}"
                     for number in range(count)]  # fmt: skip
            tests = verify.flip_tests(gaps, units, side, 0.05)
            own = flips.flip_tests(
                np.array(gaps), units, side="first" if side == "asked" else "either", error=0.05
            )
            for place, (difference, low, high, chance) in enumerate(tests):
                assert difference == pytest.approx(own.difference[place], abs=1e-12)
                assert chance == own.chance[place]
                assert (low, high) == pytest.approx((own.low[place], own.high[place]), abs=1e-9)

    def test_of_one_asked_pair_are_a_plain_count(self):
        """
        Of all 64 ways to flip six gaps those whose sum is as low.
        """
        gap = [-0.3, -0.2, -0.25, 0.02, -0.1, -0.05]
        sums = [math.fsum(s * g for s, g in zip(signs, gap, strict=True))
                for signs in product((1, -1), repeat=6)]  # fmt: skip
        ((difference, _, high, chance),) = verify.flip_tests([gap], list("abcdef"), "asked", 0.05)

        assert difference == pytest.approx(sum(gap) / 6)
        assert chance == sum(one <= sum(gap) + 1e-12 for one in sums) / 64 == 2 / 64
        assert high < 0


class TestEnds:
    def distance(self, sums, weights, difference):
        """
        How far a difference is from what is seen.
        """
        left = [x - difference * weight for x, weight in zip(sums, weights, strict=True)]
        return abs(sum(left)) / math.sqrt(sum(x * x for x in left))

    @pytest.mark.parametrize("limit", [0.5, 1.0, 1.8])
    def test_lie_as_far_as_the_limit(self, limit):
        """
        All between them nearer, all beyond farther.
        """
        sums, weights = [0.01, 0.04, -0.02, 0.05, 0.03, 0.02], [1 / 6] * 6
        low, high = verify.ends_of(sums, weights, limit)

        for end in (low, high):
            assert self.distance(sums, weights, end) == pytest.approx(limit)
        for number in range(1, 10):
            between = low + (high - low) * number / 10
            assert self.distance(sums, weights, between) < limit
        for beyond in (low - 0.01, high + 0.01, low - 9, high + 9):
            assert self.distance(sums, weights, beyond) > limit

    def test_are_none_where_no_difference_is_too_far(self):
        """
        A limit that equal units cannot exceed.
        """
        assert verify.ends_of([0.1, 0.2], [0.5, 0.5], math.sqrt(2)) == (-math.inf, math.inf)
        assert verify.ends_of([0.1, 0.2], [0.5, 0.5], 2.0) == (-math.inf, math.inf)

    def test_may_be_one_of_units_that_differ_in_size(self):
        """
        What holds lies outside of both roots: on that side the interval is open.
        """
        weights = [0.7, 0.1, 0.1, 0.1]
        found = set()
        for seed in range(300):
            random = Random(seed)
            sums = [random.gauss(0.02, 0.05) for _ in weights]
            low, high = verify.ends_of(sums, weights, 1.5)
            found.add((math.isfinite(low), math.isfinite(high)))
            assert low <= sum(sums) <= high
            for end in (low, high):
                if math.isfinite(end):
                    assert self.distance(sums, weights, end) == pytest.approx(1.5, rel=1e-6)

        assert {(True, False), (False, True), (False, False)} <= found

    def test_decide_with_the_chance(self):
        """
        Equal within the margin, even where one is nearer; an end that is none is not printed.
        """
        assert verify.with_verdict((-0.1, -0.2, -0.01, 0.05), 0.05)[-1] == "nearer"
        assert verify.with_verdict((-0.1, -0.2, 0.01, 0.051), 0.05)[-1] == "undecided"
        assert verify.with_verdict((-0.01, -0.0199, 0.0199, 0.01), 0.05)[-1] == "equal"
        assert verify.with_verdict((-0.01, -0.02, 0.0, 0.01), 0.05)[-1] == "nearer"
        assert verify.with_verdict((0.01, -math.inf, 0.0, 0.4), 0.012) == (
            0.01, None, 0.0, 0.4, "undecided"
        )  # fmt: skip

    def test_of_too_few_units_are_those_of_the_gaps(self):
        """
        Nothing can be told, however clear.
        """
        rows = verify.compared(subject_of({"a": [0.01] * 5, "b": [0.5, 0.6, 0.7, 0.8, 0.9]}), "raw")
        pair = rows["job_s", "raw", "a", "b", "explored"]

        assert (pair["low"], pair["high"]) == pytest.approx((-0.89, -0.49))
        assert (pair["chance"], pair["verdict"], pair["cells"]) == (None, "undecided", 5)


class TestFamilies:
    def test_what_is_asked_is_one_of_its_own(self):
        """
        On the cells of its models, at the measured speed; at the other one all is explored.
        """
        errors = {"a": [0.01] * 7 + [None], "b": [0.2] * 8, "c": [None] * 2 + [0.3] * 6}
        about = subject_of(errors, "nearer a b")
        rows = verify.compared(about, "raw")

        assert rows["job_s", "raw", "a", "b", "asked"]["cells"] == 7
        assert rows["job_s", "raw", "a", "b", "explored"]["cells"] == 5
        assert {key[4] for key in verify.compared(about, "reference")} == {"explored"}
        assert {key[2:4] for key in rows if key[4] == "explored"} == {*combinations("abc", 2)}

    def test_of_what_was_explored_is_none(self):
        """
        A question that was asked beside another one takes the verdicts of all pairs.
        """
        errors = {"a": list(TestAnswers.NEAR), "b": list(TestAnswers.FAR), "c": [0.9] * 7}
        about = subject_of(errors, "nearer b a", when="explored")
        rows = verify.compared(about, "raw")

        assert {key[4] for key in rows} == {"explored"}
        assert verify.answer(about.asks, about, rows).endswith("; it is farther than a.")

    def test_of_models_that_share_no_cell_is_none(self):
        """
        Or of one that answers nowhere.
        """
        apart = {"a": [0.1, 0.1, None, None], "b": [None, None, 0.1, 0.1], "c": [0.5] * 4}
        for asks in ("nearer a b", "nearer a d"):
            rows = verify.compared(subject_of(apart, asks), "raw")
            assert {key[4] for key in rows} == {"explored"}

    def test_asked_is_tested_to_one_side(self):
        """
        Whether the first is nearer: all six gaps are one of 64, of either side two.
        """
        errors = {
            "a": [0.01 + 0.001 * n for n in range(6)],
            "b": [0.3 + 0.01 * n for n in range(6)],
        }
        rows = verify.compared(subject_of(errors, "nearer a b"), "raw")
        turned = verify.compared(subject_of(errors, "nearer b a"), "raw")

        assert rows["job_s", "raw", "a", "b", "asked"]["chance"] == 1 / 64
        assert rows["job_s", "raw", "a", "b", "explored"]["chance"] == 2 / 64
        assert turned["job_s", "raw", "b", "a", "asked"]["chance"] == 1.0


class TestDraws:
    @pytest.mark.parametrize("name", ["perfect", "coin"])
    @pytest.mark.parametrize("cells", [1, 7, 24])
    def test_are_those_of_the_harness(self, name, cells):
        """
        Draw by draw, cell by cell.
        """
        drawn = verify.normal_draws(name, cells)

        assert (len(drawn), {len(draw) for draw in drawn}) == (200, {cells})
        assert np.array(drawn) == pytest.approx(flips.normal_draws(name, cells), rel=1e-12)

    def test_are_as_the_page_says(self):
        """
        The second draw of three cells, its last cell, by hand.
        """
        digest = shake_256(b"perfect").digest(16 * 200 * 3)
        u, v = (
            ((int.from_bytes(digest[16 * 5 + 8 * n : 16 * 5 + 8 * n + 8], "big") >> 11) + 0.5)
            / 2**53
            for n in (0, 1)
        )
        by_hand = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)

        assert verify.normal_draws("perfect", 3)[1][2] == pytest.approx(by_hand, rel=1e-12)

    def test_make_the_floor(self):
        """
        Mean error of a perfect model, and the 190th of 200; of a cell without one the largest.
        """
        rows = [{"floor": floor} for floor in (0.01, None, 0.04, 0.0)]
        drawn = np.abs(flips.normal_draws("perfect", 4)) * np.array([0.01, 0.04, 0.04, 0.0])
        floor, high = verify.floor_and_high(rows)

        assert verify.floors_of(rows) == [0.01, 0.04, 0.04, 0.0]
        assert floor == pytest.approx(drawn.mean())
        assert high == pytest.approx(sorted(drawn.mean(axis=1))[189])
        assert (floor, high) == pytest.approx(floor_of(drawn))

    def test_make_no_floor_of_no_noise(self):
        """
        Where none is known, or none is above 0.
        """
        for floors in ([None, None], [None, 0.0], [0.0]):
            rows = [{"floor": floor} for floor in floors]
            assert verify.floor_and_high(rows) == (None, None)
            assert verify.floor_clause(rows, 0.1) == "the noise is not known"

    def test_say_what_is_inside_the_noise(self):
        """
        To the 190th of the draws.
        """
        rows = [{"floor": 0.03}] * 6
        floor, high = verify.floor_and_high(rows)
        perfect = f"a perfect model would be off by {100 * floor:.1f} %"

        assert verify.floor_clause(rows, high) == f"{perfect}, so that this is inside the noise"
        assert verify.floor_clause(rows, high * (1 + 1e-9)) == perfect


class TestIntervals:
    @pytest.mark.parametrize("count", [6, 7, 24])
    def test_are_those_of_the_harness(self, count):
        """
        By cells; by inputs, where there are three or more; at 0 at least.
        """
        for seed in range(8):
            random = Random(seed)
            errors = [random.expovariate(10) for _ in range(count)]
            names = [f"i{random.randrange(2 + seed)}" for _ in range(count)]
            for units in ([], names):
                low, high = mean_interval(errors, units)
                found = verify.mean_interval(errors, units or [*map(str, range(count))])
                assert found == pytest.approx((max(0.0, low), high), rel=1e-9)
                assert found[0] <= sum(errors) / count <= found[1]

    def test_of_few_cells_are_their_range(self):
        """
        Five; six have an interval. Equal errors have none.
        """
        assert verify.mean_interval([0.3, 0.1, 0.2, 0.25, 0.15], list("abcde")) == (0.1, 0.3)
        low, high = verify.mean_interval([0.3, 0.1, 0.2, 0.25, 0.15, 0.2], list("abcdef"))
        assert 0.1 < low < 0.2 < high < 0.3
        assert verify.mean_interval([0.25] * 6, list("abcdef")) == (0.25, 0.25)


class TestAnswers:
    NEAR = (0.01, 0.02, 0.03, 0.02, 0.01, 0.03, 0.02)
    FAR = (0.3, 0.4, 0.35, 0.3, 0.45, 0.4, 0.3)

    def test_say_how_far_one_is_off(self):
        """
        On all that it answers, with its range or its interval.
        """
        alone = said({"a": [0.1, -0.2, 0.3]}, "how_far a")
        floor, _ = verify.floor_and_high([{"floor": 0.02}] * 3)
        assert alone == (
            "a is off by 20.0 % on average (cells: 10.0 % to 30.0 %) over 3 cells, at worst by 30.0"
            f" %; a perfect model would be off by {100 * floor:.1f} %."
        )
        errors = {"a": [*self.NEAR, 0.1], "b": self.FAR}
        low, high = mean_interval(errors["a"])
        assert said(errors, "how_far a").startswith(
            f"a is off by 3.0 % on average (95 %: {100 * low:.1f} % to {100 * high:.1f} %) over 8"
            " cells, at worst by 10.0 %; "
        )
        assert said(errors, "how_far c") == "It cannot be told: c has no answer in a cell."
        assert said({"a": [0.1]}, "how_far best").startswith("a is off by 10.0 % on average ")

    def test_say_how_far_the_best_is_off_beside_others(self):
        """
        Nearer than all, equal to some, not told apart from some.
        """
        near, far = list(self.NEAR), list(self.FAR)
        best = said({"a": [*near, 0.9], "b": far}, "how_far best")
        assert best.startswith("Of 2 models a errs least: off by 2.0 % on average (95 %: ")
        assert "over 7 cells, at worst by 3.0 %; " in best
        assert best.endswith(" It is nearer than b.")
        mixed = [0.4, 0.01, 0.02, 0.01, 0.02, 0.03, 0.01]
        all_kinds = {"a": near, "b": [x + 0.001 for x in near], "c": mixed, "d": far}
        assert said(all_kinds, "how_far best").endswith(
            " It is nearer than d; it is equal to b; it cannot be told apart from c."
        )
        assert said({"a": near[:3], "b": far[:3], "c": far[:3]}, "how_far best").endswith(
            " It cannot be told apart from b and c."
        )

    def test_say_whether_the_first_is_nearer(self):
        """
        Yes, no, or it cannot be told; and than whom.
        """
        near, far = list(self.NEAR), list(self.FAR)
        mixed = [0.4, 0.01, 0.02, 0.01, 0.02, 0.03, 0.01]
        errors = {"a": near, "b": far, "c": mixed, "d": [x + 0.001 for x in near]}
        assert said(errors, "nearer a b") == (
            "Yes: a is off by 2.0 %, b by 35.7 %, over 7 cells; it is nearer than b."
        )
        assert said(errors, "nearer b a").startswith("No: ")
        assert said(errors, "nearer b a").endswith("; it is farther than a.")
        assert said(errors, "nearer a c").startswith("It cannot be told: a is off by ")
        assert said(errors, "nearer a b c").endswith(
            "; it is nearer than b; it cannot be told apart from c."
        )
        assert said(errors, "nearer a d b").startswith("No: ")
        assert said(errors, "nearer a d b").endswith("; it is nearer than b; it is equal to d.")

    def test_say_why_nothing_can_be_told_of_some(self):
        """
        Who answers nowhere, or that they share no cell.
        """
        errors = {"a": [0.1, None], "b": [None, 0.1]}
        assert said(errors, "nearer a x") == "It cannot be told: x answers no cell."
        assert said(errors, "nearer x y") == "It cannot be told: x and y answer no cell."
        apart = {"a": [0.1, 0.1, None, None], "b": [None, None, 0.1, 0.1], "c": [0.5] * 4}
        assert said(apart, "nearer a b") == "It cannot be told: they share no cell."

    def test_say_what_is_farther_only_where_it_was_tested(self):
        """
        An interval above 0 but for rounding; of an explored pair its better model counts.
        """

        def fate(verdict, better="a", low=None, chance=0.9):
            pair = {"verdict": verdict, "better": better, "low": low, "chance": chance}
            return verify.fate("a", pair)

        assert fate("nearer") == "nearer"
        assert fate("nearer", better="b") == "farther"
        assert fate("undecided", low=0.01) == "farther"
        assert fate("undecided", low=1e-10) == "undecided"
        assert fate("undecided") == "undecided"
        assert fate("undecided", low=0.01, chance=None) == "undecided"
        assert fate("equal", low=0.01) == "equal"

    def choices(self, asks, inputs, predicted, floor=0.02):
        """
        The answer of models that predict these times of cells that take 10, 20, 30... s.
        """
        cells = {f"c{n:02}": ("inside", name) for n, name in enumerate(inputs)}
        scores = {}
        for model, times in predicted.items():
            for n, time_s in enumerate(times):
                measured = 10.0 * (n + 1)
                scores[f"c{n:02}", model, "job_s", "raw"] = {
                    "predicted": time_s, "measured": measured, "floor": floor,
                    "relative_error": abs(time_s - measured) / measured,
                }  # fmt: skip
        about = verify.subject(asked(asks, cells=cells), scores, "raw")
        return verify.answer(about.asks, about, verify.compared(about, "raw"))

    def test_say_what_a_choice_loses(self):
        """
        The mean over inputs, of the best of so many tries; of cells predicted alike the slower.
        """
        inputs = ["x", "x", "y", "y"]
        predicted = {"a": [12.0, 13.0, 31.0, 32.0], "b": [9.0, 8.0, 7.0, 7.0]}
        assert self.choices("choice 1", inputs, predicted, None) == (
            "a chooses best: its first choice takes 0.0 % longer than the fastest setting, mean"
            " over 2 inputs with 4 settings in all, at worst 0.0 %; others lose: b 66.7 %."
        )
        assert self.choices("choice 2", inputs, {"b": predicted["b"]}, None) == (
            "It cannot be told: no input has more than 2 settings that all models answer."
        )
        three = {"b": [9.0, 8.0, 7.0], "a": [7.0, 8.0, 9.0], "c": [8.0, 7.0, 9.0]}
        assert self.choices("choice 2", ["x", "x", "x"], three, None) == (
            "a and c choose equally well: the best of their first 2 choices takes 0.0 % longer"
            " than the fastest setting, mean over 1 input with 3 settings in all, at worst 0.0 %;"
            " others lose: b 100.0 %."
        )
        one = self.choices("choice 1", ["x", "x", "y"], {"b": [9.0, 8.0, 7.0]})
        assert one == (
            "b chooses best: its first choice takes 100.0 % longer than the fastest setting, mean"
            " over 1 input with 2 settings in all, at worst 100.0 %; a perfect model would lose 0.0"
            " %."
        )
        assert self.choices("choice 1", ["x", "y"], {"b": [9.0, 8.0]}) == (
            "It cannot be told: no input has two settings that all models answer."
        )

    def test_say_what_a_perfect_choice_loses(self):
        """
        By draws of both cells: where the slower one seems to be shorter.
        """
        rows = [{"measured": 10.0, "floor": 0.2}, {"measured": 11.0, "floor": 0.1}]
        drawn = flips.normal_draws("perfect", 2)
        wrong = 10 * (1 + 0.2 * drawn[:, 0]) > 11 * (1 + 0.1 * drawn[:, 1])

        assert 0 < wrong.mean() < 1
        assert verify.perfect_regret([rows], 1) == pytest.approx(0.1 * wrong.mean())
        assert verify.perfect_regret([rows], 2) == 0
        assert verify.perfect_regret([rows, [{"measured": 1.0, "floor": None}]], 1) is None

    def test_say_which_claims_of_a_paper_hold(self):
        """
        In the words of the harness, which are the same questions.
        """
        errors = {"prophet": list(self.NEAR), "whatif": list(self.FAR)}
        title = "Prophet is nearer than What-If (Tables I to III)"
        assert said(errors, "claims prophet") == (
            f"1 of 1 claims of prophet hold. {title}: Yes: prophet is off by 2.0 %, whatif by 35.7"
            " %, over 7 cells; it is nearer than whatif."
        )
        assert said({"whatif": list(self.FAR)}, "claims prophet").startswith("0 of 1 claims ")
        assert {
            paper: [(claim.title, " ".join(("nearer", *claim.nearer))) for claim in claims]
            for paper, claims in CLAIMS.items()
        } == verify.CLAIMS

    def test_of_what_has_moved_say_that_it_is_not_told_here(self):
        """
        A bundle stands alone; how far the best is off is said beside it.
        """
        errors = {"a": list(self.NEAR), "b": list(self.FAR)}
        what, beside = said(errors, "moved_since RUN").split(". ", 1)
        assert what == (
            "It cannot be told: what has moved since another run is seen beside that run alone, by"
            " harness compare"
        )
        assert beside == said(errors, "how_far best")


QUESTIONS = (
    Question(how_far="best"), Question(how_far="m1"), Question(nearer=("m0", "m1")),
    Question(nearer=("m1", "m2", "m0")), Question(nearer=("m2", "m0")), Question(choice=1),
    Question(choice=2), Question(claims="prophet"),
)  # fmt: skip


class TestBothPrograms:
    """
    The harness and verify.py, each from measurements and predictions that are drawn.
    """

    def drawn(self, random):
        """
        Measurements and predictions: few or many cells, models that lack some, and copies.
        """
        cells = [f"{random.getrandbits(64):016x}" for _ in range(random.choice((1, 4, 7, 12, 15)))]
        inputs = {cell: random.choice(("", "i0", "i1", "i2", "i3", "i4", "i5")) for cell in cells}
        measurements, predictions = [], []
        for cell in cells:
            for repeat in range(random.choice((1, 2, 3, 6))):
                job_s = random.gauss(100, 3) * (1 + len(inputs[cell]))
                reference_s = {"job_s": job_s * random.gauss(1, 0.02)}
                measurements.append(
                    Measurement(
                        cell=cell, workload="w", trial=f"{cell}-{repeat}", input=inputs[cell],
                        raw_s={"job_s": job_s}, reference_s=reference_s,
                        range=random.choice(("inside", "outside")) if repeat == 0 else "inside",
                        disturbed="",
                    )
                )  # fmt: skip
        spread = random.choice((0.01, 0.1, 0.4))
        for number, model in enumerate(("m0", "m1", "m2", "prophet", "whatif")):
            for cell in cells:
                if random.random() < 0.1 * number:
                    continue
                job_s = 100 * (1 + len(inputs[cell])) * (1 + 0.1 * number * random.gauss(1, spread))
                predictions.append(Prediction(model=model, cell=cell, job_s=job_s))
        copies = [p.model_copy(update={"model": "m3"}) for p in predictions if p.model == "m1"]
        return measurements, predictions + copies * random.randrange(2)

    def rows(self, measurements, predictions):
        """
        Rows of data/measurements.csv and data/predictions.csv.
        """
        measured = {
            (one.cell, one.trial, "job_s", speed): {
                "workload": one.workload, "cell": one.cell, "quantity": "job_s", "speed": speed,
                "value": times["job_s"]}
            for one in measurements
            for speed, times in (("raw", one.raw_s), ("reference", one.reference_s))
        }  # fmt: skip
        ends = dict.fromkeys(("refit", "low", "high", "low_90", "high_90"))
        predicted = [
            {**ends, "cell": one.cell, "model": one.model, "quantity": "job_s", "rung": "job",
             "predicted": one.job_s}
            for one in predictions
        ]  # fmt: skip
        return measured, predicted

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.kind)
    @pytest.mark.parametrize("scope", ["jobs", "inputs"])
    def test_say_the_same(self, question, scope):
        """
        Scores, comparisons and the sentence; of cells outside of what was profiled, too.
        """
        sentences, verdicts = set(), set()
        for seed in range(12):
            measurements, predictions = self.drawn(Random(seed))
            update = {"scope": scope, "extrapolate": seed % 4 == 3}
            asks = question.model_copy(update=update)
            when = ("sealed", "explored", "afterwards")[seed % 3]
            book = score(predictions, measurements, question=asks, asked=when)
            if book.answer is None:
                continue
            ranges = {one.cell: one.range for one in book.scores}
            cells = {one.cell: (ranges.get(one.cell, ""), one.input) for one in measurements}
            words = asked_columns(book.answer)
            run = asked(words["asks"], scope=words["scope"], cells=cells,
                        extrapolate=str(words["extrapolate"]).lower(), when=when,
                        read_at=book.speed)  # fmt: skip
            scores = verify.scored(*self.rows(measurements, predictions), set())
            found = {}
            for speed in ("raw", "reference"):
                found |= verify.compared(verify.subject(run, scores, speed), speed)
            stored = {
                (one.quantity, one.speed, one.better, one.worse, one.family): {
                    name: float(value) if isinstance(value, int) else value
                    for name in (*verify.PAIR, "verdict")
                    for value in [getattr(one, name)]
                }
                for one in book.comparisons
            }
            verify.compare("comparisons", stored, found)
            about = verify.subject(run, scores, book.speed)
            if about.scores:
                assert verify.answer(about.asks, about, found) == book.answer.sentence, seed
                sentences.add(book.answer.sentence)
                verdicts |= {(one.family, one.verdict) for one in book.comparisons}

        # Few inputs have more than two settings: of many the answer is that it cannot be told.
        assert len(sentences) >= (4 if question.choice > 1 else 5)
        assert {("explored", "undecided"), ("explored", "equal")} <= verdicts
        assert scope == "inputs" or ("explored", "nearer") in verdicts
        assert (question.kind == "nearer") == ("asked" in {family for family, _ in verdicts})


class TestComparing:
    def complaint(self, found, value, column="difference"):
        """
        What is said where *found* is stored in the place of *value*.
        """
        try:
            verify.compare("data/x.csv", {("k",): {column: found}}, {("k",): {column: value}})
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def test_numbers_agree_to_a_billionth(self):
        """
        Where shares may cancel, near 0 as well.
        """
        assert self.complaint(1.0, 1.0 + 5e-10) == ""
        assert self.complaint(1.0, 1) == ""
        assert self.complaint(1.0, 1.0 + 5e-9) != ""
        assert self.complaint(1e-13, 2e-13) == ""
        assert self.complaint(1e-13, 2e-13, "predicted") != ""

    def test_all_else_is_equal_or_not(self):
        """
        A text, a number that is not there, and one in the place of a text.
        """
        assert self.complaint("equal", "equal") == ""
        said = "ValueError: data/x.csv ('k',) difference: stored {}, computed {}"
        for found, value in (("equal", "nearer"), (None, 1.0), (1.0, None), (1.0, "x"), ("x", 1.0)):
            assert self.complaint(found, value) == said.format(found, value)

    def test_rows_are_in_both(self):
        """
        One that lacks and one too many are named.
        """
        for stored, computed, text in (
            ({}, {("k",): {"a": 1.0}}, "stored no such row, computed 1.0"),
            ({("k",): {"a": 1.0}}, {}, "computed no such row"),
            ({("k",): {}}, {("k",): {"a": 1.0}}, "stored this row, computed 1.0"),
        ):
            with pytest.raises(ValueError, match=text):
                verify.compare("f", stored, computed)

    @pytest.mark.parametrize(
        ("old", "new", "change"),
        [
            ("2.0", "3", 0.5),
            ("-2", "-3", -0.5),
            ("0", "1", None),
            ("", "1", None),
            ("1", "x", None),
            (None, "1", None),
            ("1", None, None),
            ("1", "nan", None),
            ("1", "1e999", None),
            ("nan", "1", None),
        ],
    )
    def test_a_change_is_a_share_of_the_old_number(self, old, new, change):
        """
        None where there is no number.
        """
        assert relative_change(old, new) == change


class TestTables:
    def test_are_read_as_a_whole_or_not_at_all(self, tmp_path):
        """
        A quote that does not end, a field too many, no line, no text.
        """
        (tmp_path / "data").mkdir()
        path = tmp_path / "data/x.csv"
        path.write_text('a,b\n1,"x,y"\n,\n')
        opener = Opener(tmp_path)
        assert read_table(opener, "x") == [{"a": "1", "b": "x,y"}, {"a": "", "b": ""}]
        for content in (b'a,b\n1,"x\n', b"a,b\n1,2,3\n", b"a,b\n1\n", b"", b"\xff", b'a\n"x"y\n'):
            path.write_bytes(content)
            with pytest.raises(DataError) as caught:
                read_table(opener, "x")
            assert caught.value.what.startswith("it cannot be read: ")
            assert (caught.value.where, caught.value.fix) == (str(path), FIX)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, ""),
            (math.nan, ""),
            (math.inf, ""),
            (True, "true"),
            (False, "false"),
            (1, "1"),
            (0.1, "0.1"),
            ("a", "A"),
            ("=a", "'=A"),
            ("-1", "'-1"),
        ],
    )
    def test_have_texts_that_are_no_formula(self, value, text):
        """
        Cleaned; numbers keep every digit.
        """
        assert table_field(value, str.upper) == text

    def test_say_on_what_a_cell_ran(self):
        """
        With what limits all nodes, and what limits one.
        """

        def said(**fields):
            spec = WorkloadSpec(name="sort", input_bytes=MIB)
            return hardware(Cell(cluster=ClusterSpec(**fields), workload=spec))

        assert said(provider="docker", workers=3) == "docker, 3 workers"
        limited = said(
            workers=2, node=NodeSpec(cores=0.5), nodes={"worker1": NodeSpec(disk_bytes_per_s=MIB)}
        )
        assert limited.startswith("local, 2 workers, ")
        assert "0.5" in limited
        assert limited.endswith(" of worker1")


class TestPdf:
    def test_has_all_blocks_in_their_order(self):
        """
        Question, title, verdict, facts, the figure of all models, their table, the sections.
        """
        figure = Figure("f", "title", "caption", 3.0, 2.0, lambda _: None, {})
        overview = table("models", ("a",), "l", [("x",)])
        document = Document(
            "name",
            "question?",
            "headline",
            [Section("id", "A section", [Text("shown")])],
            overview=overview,
            figure=figure,
            mark="a draft",
        )
        blocks = pdf_blocks(document)

        assert blocks[:3] == [
            Text("question?", "title"),
            Text("Experiment name, a draft."),
            Text("headline", "heading"),
        ]
        assert blocks[3:] == [
            Figures([figure]),
            overview,
            Text("A section", "section"),
            Text("shown"),
        ]
        bare = Document("name", "q", "h", [])
        assert pdf_blocks(bare)[1] == Text("Experiment name.")
        assert len(pdf_blocks(bare)) == 3

    def test_is_cleaned_in_every_text(self):
        """
        In whatever holds it, keys as well; numbers stay as they are.
        """
        spec = WorkloadSpec(name="sort", input_bytes=3, parameters={"a": "b"})

        made = cleaned({"k": ["x", ("y", 1), {"z"}, None, spec]}, str.upper)
        assert made["K"][:4] == ["X", ("Y", 1), {"Z"}, None]
        assert (made["K"][4].name, made["K"][4].input_bytes) == ("SORT", 3)
        assert cleaned(Text("a", "b"), str.upper) == Text("A", "B")


class TestLicences:
    def test_of_inputs_are_said(self):
        """
        Of ours, of a user's own, and of past jobs.
        """
        code = Code(file="a.py", class_name="Mine", sha256="0" * 64)

        def sentences(*codes, was_imported=False):
            workloads = [SimpleNamespace(name="w", code=code) for code in codes]
            return input_licences(SimpleNamespace(was_imported=was_imported, workloads=workloads))

        ours = [
            "Inputs are generated, by programs under Apache-2.0; nobody's data are in them.",
            "Those of terasort are made by TeraGen of Hadoop, others by ours, from a seed.",
        ]
        assert sentences(None) == ours
        assert sentences(None, code) == [
            *ours,
            "w: the user's own Mine; its licence is not known.",
        ]
        assert sentences(code, was_imported=True) == [
            "Inputs are those of jobs that had run before: nobody knows what is in them."
        ]
