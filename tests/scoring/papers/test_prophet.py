"""
Tests for `harness.scoring.papers.prophet` and its claims.
"""

import math

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.scoring import i_accu
from harness.scoring.papers import Outcome, Verdict, prophet, prophet_claims

shifts = st.floats(-0.499, 0.499)


def row(indicator="10.0", actual=100.0, model=105.0, whatif=115.0, half=0.05):
    """
    A printed row; by default What-If is off by 15 %, Prophet by 5 %.
    """
    return prophet.Row("sort", "1", actual, model, whatif, indicator, half)


def claim(text):
    """
    The one claim whose text holds *text*.
    """
    (found,) = [c for c in prophet_claims.claims() if text in c.text]
    return found


class TestPossible:
    @given(
        st.tuples(*[st.integers(1, 40)] * 3), st.tuples(shifts, shifts, shifts), st.integers(0, 2)
    )
    def test_holds_every_indicator_of_times_that_round_to_the_printed(self, times, off, digits):
        """
        Also where the true times lie on both sides of each other.
        """
        unit = 10.0**-digits
        printed = [t * unit for t in times]
        true = [t + o * unit for t, o in zip(printed, off, strict=True)]
        low, high = prophet.possible(row("0.0", *printed, half=0.5 * unit))

        got = i_accu(*true)["i_accu_percent"]

        assert low - 1e-6 <= got <= high + 1e-6

    def test_is_reached(self):
        """
        The largest: the measured and Prophet's time as near, What-If's as far as can be.
        """
        low, high = prophet.possible(row(half=0.5))

        assert (low, high) == (
            pytest.approx(100 * (114.5 - 105.5) / 100.5),
            pytest.approx(100 * (115.5 - 104.5) / 99.5),
        )


class TestCheck:
    @pytest.mark.parametrize(
        ("indicator", "outcome", "slip"),
        [
            ("10.0", Outcome.AGREES, ""),
            ("9.9", Outcome.ROUNDING, "PT2"),
            ("9.0", Outcome.DIFFERS, "PT5"),
            ("N", Outcome.DIFFERS, "PT5"),
        ],
    )
    def test_ten_percent(self, indicator, outcome, slip):
        """
        By (6) the row has 10.00: what is printed there decides.
        """
        checked = prophet.check(row(indicator))

        assert (checked.outcome, checked.slip) == (outcome, slip)

    def test_cut_is_told_from_rounded(self):
        """
        10.09 printed as 10.0 was cut.
        """
        checked = prophet.check(row("10.0", whatif=115.09))

        assert (checked.outcome, checked.slip) == (Outcome.CUT, "PT1")

    def test_signs_are_told(self):
        """
        Prophet 5 % below, What-If 15 % above: with signs the difference is 20, by (6) it is 10.
        """
        checked = prophet.check(row("20.0", model=95.0))

        assert (checked.outcome, checked.slip) == (Outcome.DIFFERS, "PT3")

    def test_lost_digit_is_told(self):
        """
        14.27 printed as 14.7.
        """
        checked = prophet.check(row("14.7", whatif=119.27, half=0.005))

        assert (checked.outcome, checked.slip) == (Outcome.DIFFERS, "PT4")

    def test_no_indicator_where_prophet_is_not_better(self):
        """
        N is right for 0 too: both models 5 % off.
        """
        assert prophet.check(row("N", model=95.0, whatif=105.0)).outcome is Outcome.AGREES


class TestSums:
    def test_rest_is_the_job_less_its_tasks(self):
        """
        WordCount with 100 GB: 920 - 53.9 - 863.0, and for What-If 1082 - 61.8 - 1072.2.
        """
        rest = next(r for r in prophet.rests() if r.name == "wordcount 100 GB")

        assert (rest.actual_s, rest.whatif_s) == (pytest.approx(3.1), pytest.approx(-52.0))

    @pytest.mark.parametrize(("rest_s", "short"), [(-0.6, False), (-0.61, True), (0.0, False)])
    def test_rounding_is_no_contradiction(self, rest_s, short):
        """
        A rest below 0 counts from beyond what the rounding of three times can do.
        """
        rest = prophet.Rest("a", 1.0, rest_s, 1.0, uncertain_s=0.6)

        assert rest.too_short == (("Prophet",) if short else ())


class TestClaims:
    def test_contradicted_by_one_row(self):
        """
        TeraSort with 50 GB is the row that is less accurate than the abstract says.
        """
        found = claim("job times is above 94 %")

        assert (found.verdict, found.figures) == (Verdict.CONTRADICTED, ("terasort 50 GB 91.5 %",))

    def test_holds_with_the_figures_it_rests_on(self, monkeypatch):
        """
        Were that row as good as the others, the claim would hold.
        """
        better = tuple(
            replace(r, prophet_s=r.actual_s) if r.name == "terasort 50 GB" else r
            for r in prophet.rows("I")
        )
        as_printed = {number: prophet.rows(number) for number in prophet.FILES}
        monkeypatch.setattr(prophet_claims, "rows", {**as_printed, "I": better}.__getitem__)

        found = next(c for c in prophet_claims._on_jobs() if "94 %" in c.text)

        assert found.verdict is Verdict.HOLDS

    def test_larger_inputs_do_not_always_gain(self):
        """
        Each of the three jobs has a step at which the indicator of its reduce tasks falls.
        """
        figures = claim("larger the input").figures

        assert [f.partition(" ")[0] for f in figures] == ["wordcount", "terasort", "pagerank"]

    def test_erratum_of_map_tasks_is_that_of_the_cell(self):
        """
        The cell that hid the exception is the one with the signs.
        """
        assert claim("map tasks is always above 10 %").erratum == "PT3"


def test_no_minus_from_noise():
    """
    PageRank's map task with 51 GB is as far off by either model: exactly 0.
    """
    (even,) = [r.i_accu for r in prophet.rows("II") if r.name == "pagerank 51 GB"]

    assert math.copysign(1, even) == 1
    assert even == 0
