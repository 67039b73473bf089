"""
Tests for `harness.scoring.papers.vet` and its claims.
"""

from dataclasses import replace

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.papers import Outcome, Verdict, vet, vet_claims

small = st.floats(0.001, 0.2)


def row(pr_std=1.0, ei_std=0.2, vet_job=5.0):
    """
    A job with mean PR 10 s and mean EI 2 s.
    """
    return vet.Row("Job9", 2, 10.0, pr_std, 2.0, ei_std, vet_job)


class TestBound:
    @given(small, small, st.floats(-0.95, 0.95))
    def test_holds_the_mean_ratio_of_lognormal_times(self, v_pr, v_ei, r):
        """
        Their mean ratio is known exactly: ratio of means x (1 + v(EI)^2) / (1 + r v(PR) v(EI)).
        The bound leaves out what is of third order and higher.
        """
        exact = 5 * (1 + v_ei**2) / (1 + r * v_pr * v_ei)
        low, high = row(10 * v_pr, 2 * v_ei).bound

        left_out = 5 * 2 * v_pr * v_ei * (v_pr + v_ei) ** 2
        assert low - left_out <= exact <= high + left_out

    def test_is_the_ratio_of_means_where_ideals_are_all_one(self):
        """
        Without spread of EI the mean of ratios is the ratio of means.
        """
        assert row(ei_std=0).bound == (5, 5)

    @pytest.mark.parametrize(
        ("vet_job", "outcome", "slip"),
        [
            (5.0, Outcome.PLAUSIBLE, ""),
            (4.94, Outcome.DIFFERS, "V09"),
            (5.11, Outcome.DIFFERS, "V09"),
        ],
    )
    def test_decides_on_the_printed_value(self, vet_job, outcome, slip):
        """
        v(PR) v(EI) = v(EI)^2 = 0.01: the bound is 5 to 5.1.
        """
        checked = vet.check(row(vet_job=vet_job + 1e-9))

        assert (checked.outcome, checked.slip) == (outcome, slip)


class TestClaims:
    def verdict(self, text):
        """
        What is said of the claim whose text holds *text*.
        """
        (found,) = [c for c in vet_claims.claims() if text in c.text]
        return found

    def test_deviation_of_the_text_is_not_that_of_the_table(self):
        """
        0.79 is 0.279 with a digit lost.
        """
        found = self.verdict("deviations of EI are")

        assert found.figures == ("the table has 0.211 to 0.279",)
        assert found.verdict is Verdict.CONTRADICTED

    @pytest.mark.parametrize(
        ("last_s", "verdict"), [(1.259, Verdict.HOLDS), (1.453, Verdict.CONTRADICTED)]
    )
    def test_constant_is_judged_by_the_spread(self, last_s, verdict):
        """
        A rise of four standard errors is no constant; none is one.
        """
        first = vet.rows("2")[0]
        last = replace(vet.rows("2")[-1], ei_mean_s=last_s)

        assert vet_claims._constant(first, last, last_s / first.ei_mean_s).verdict is verdict

    def test_jobs_outside_the_bound_are_named(self):
        """
        Two jobs of Table 3.
        """
        found = self.verdict("is the mean of PR/EI")

        assert [figure[:4] for figure in found.figures] == ["Jobb", "Jobd"]
